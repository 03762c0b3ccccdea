/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel and a reference model side by side: every operation is done on both,
 * and after it the two must agree.
 *
 * The model is a sorted array of what is pending. It keeps deadlines in ticks
 * of the host, as the module does: when the clock is set back, the wheel's ticks
 * go on, and the deadlines move away from them by @shift.
 */
#ifndef PAIR_H
#define PAIR_H

#include "table.h"
#include "wheel.h"

/* Indices are below this. */
#ifndef PAIR_MOST
#define PAIR_MOST 8192
#endif
#define PAIR_MOST_CHUNKS ((PAIR_MOST + TW_CHUNK_MASK) >> TW_CHUNK_SHIFT)

enum pair_state {
	PAIR_FREE,
	PAIR_PENDING,
	PAIR_READY,
};

/**
 * struct pair_timer - what the model knows of a timer
 * @state: what has become of it
 * @due: when it expires, in ticks of the host
 * @stamp: when it was made ready
 * @nr: number in the order in which timers were made ready
 * @id: its id
 */
struct pair_timer {
	enum pair_state state;
	s64 due;
	s64 stamp;
	u64 nr;
	u64 id;
};

/**
 * struct pair_due - entry of the model's sorted array
 * @due: when it expires, in ticks of the host
 * @index: the timer
 */
struct pair_due {
	s64 due;
	u32 index;
};

/**
 * struct pair - the two
 * @wheel: the wheel
 * @table: its nodes
 * @slots: its slots
 * @host_now: the time that it is now, in ticks of the host
 * @shift: tick of the wheel less tick of the host
 * @ns: a clock that stamps what is made ready, and never stands still
 * @last: number of the timer that was made ready last
 * @nr_pending: length of @sorted
 * @nr_ready: how many timers are ready
 * @nr_traced: operations so far
 * @timers: by index
 * @sorted: those that are pending, the latest first
 */
struct pair {
	struct tw_wheel wheel;
	struct tw_table table;
	struct tw_list slots[TW_SLOTS];
	s64 host_now;
	s64 shift;
	s64 ns;
	u64 last;
	u32 nr_pending;
	u32 nr_ready;
	u64 nr_traced;
	struct pair_timer timers[PAIR_MOST];
	struct pair_due sorted[PAIR_MOST];
};

/* The wheel's tick that it is now */
static inline s64 pair_now(const struct pair *p)
{
	return p->host_now + p->shift;
}

void pair_init(struct pair *p, s64 now, bool refresh);
void pair_end(struct pair *p);
void pair_add_chunk(struct pair *p, unsigned int cap);
bool pair_has_room(const struct pair *p);

u32 pair_add(struct pair *p, s64 expires);
u32 pair_add_ready(struct pair *p);
void pair_mod(struct pair *p, u32 index, s64 expires);
void pair_cancel(struct pair *p, u32 index);
void pair_read(struct pair *p);
void pair_read_periodic(struct pair *p, s64 expires);
void pair_drain(struct pair *p);
void pair_advance(struct pair *p, s64 now);
void pair_set_back(struct pair *p, s64 ticks);
void pair_forward(struct pair *p);
bool pair_step(struct pair *p, u32 budget);

s64 pair_first(const struct pair *p);
void pair_check(const struct pair *p);
void pair_trace(struct pair *p);

#endif /* PAIR_H */
