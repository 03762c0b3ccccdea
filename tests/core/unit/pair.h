/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel and a reference model side by side: every operation is done on both,
 * and after it the two must agree.
 *
 * The model is a sorted array of what is pending. It keeps expiries in ticks of
 * the host, which it computes itself, by plain division: when the clock is set
 * back, the wheel's ticks go on, and the expiries move away from them by @shift.
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

/* No timer */
#define PAIR_NONE U32_MAX

enum pair_state {
	PAIR_FREE,
	PAIR_PENDING,
	PAIR_READY,
};

/**
 * struct pair_want - when a timer shall expire, and how
 * @deadline: in ns of the host
 * @slack_shift: it may wait for a multiple of 2^this ticks
 * @periodic: is it to be marked as periodic?
 * @rare: is the wheel not to be asked to settle before?
 */
struct pair_want {
	s64 deadline;
	unsigned int slack_shift;
	bool periodic;
	bool rare;
};

/**
 * struct pair_timer - what the model knows of a timer
 * @state: what has become of it
 * @want: what was asked for
 * @due: when it expires, in ticks of the host
 * @tick: when it is ready, the wheel's tick at which it was made so
 * @in_order: its event does not come before that of an earlier tick
 * @id: its id
 */
struct pair_timer {
	enum pair_state state;
	struct pair_want want;
	s64 due;
	s64 tick;
	bool in_order;
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
 * @settable: its clock can be set back
 * @table: its nodes
 * @few: its slots, if it begins with few
 * @all: all slots
 * @small: it begins with few slots and nodes
 * @now: the time that it is now, in ns of the host
 * @shift: tick of the wheel less tick of the host
 * @tick: length of a tick in ns
 * @read: the latest tick of which an event was read, while there were ready timers
 * @ordered: the clock was not set back while there were ready timers
 * @nr_pending: length of @sorted
 * @nr_ready: how many timers are ready
 * @nr_traced: operations so far
 * @timers: by index
 * @sorted: those that are pending, the latest first
 */
struct pair {
	struct tw_wheel wheel;
	bool settable;
	struct tw_table table;
	struct tw_slot few[TW_FEW_SLOTS_BYTES / sizeof(struct tw_slot)];
	struct tw_slot all[TW_SLOTS_BYTES / sizeof(struct tw_slot)];
	bool small;
	s64 now;
	s64 shift;
	u32 tick;
	s64 read;
	bool ordered;
	u32 nr_pending;
	u32 nr_ready;
	u64 nr_traced;
	struct pair_timer timers[PAIR_MOST];
	struct pair_due sorted[PAIR_MOST];
};

/* The wheel's tick that it is now */
static inline s64 pair_tick(const struct pair *p)
{
	return p->now / p->tick + p->shift;
}

/* The time of the host at which a tick of the wheel begins, if it ever does */
static inline s64 pair_ns(const struct pair *p, s64 tick)
{
	return max((__int128)0, min((__int128)KTIME_MAX,
				    ((__int128)tick - p->shift) * p->tick));
}

/* The time up to which all has expired: deadlines have to lie after it. */
static inline s64 pair_done(const struct pair *p)
{
	return pair_ns(p, p->wheel.clk - 1);
}

void pair_init(struct pair *p, u32 tick, s64 now, bool settable, s64 shift, bool small);
void pair_grow(struct pair *p);
void pair_end(struct pair *p);
void pair_add_chunk(struct pair *p);
bool pair_has_room(const struct pair *p);
u32 pair_index(u32 index);
u32 pair_first_ready(const struct pair *p);
u32 pair_first_pending(const struct pair *p);

u32 pair_add(struct pair *p, const struct pair_want *want);
u32 pair_add_ready(struct pair *p, const struct pair_want *want);
void pair_mod(struct pair *p, u32 index, const struct pair_want *want);
void pair_expire(struct pair *p, u32 index, s64 deadline);
void pair_cancel(struct pair *p, u32 index);
void pair_read(struct pair *p);
u32 pair_read_several(struct pair *p, u32 most, u32 *read);
void pair_read_periodic(struct pair *p, s64 deadline);
void pair_drain(struct pair *p);
void pair_undrain(struct pair *p);
void pair_advance(struct pair *p, s64 now);
void pair_set_back(struct pair *p, s64 now);
void pair_forward(struct pair *p);
bool pair_step(struct pair *p, u32 budget);

s64 pair_first(const struct pair *p);
void pair_check_invariants(const struct pair *p);
void pair_check(const struct pair *p);

#endif /* PAIR_H */
