/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cascading timer wheel.
 *
 * Levels of slots, each slot a list of nodes (see table.h). Level 0 has a slot
 * for each tick, and each further level slots that are TW_TURN times as wide.
 * Each level has room for two turns, the present one and the next: a node goes
 * to the lowest level at which its tick is in one of them. So a wide slot can
 * be brought down to the level below while the slot before it still runs.
 * That is done in pieces, ahead of time when the slot is large (preloading),
 * so that neither the size of the pieces nor their sum makes anybody late.
 *
 * A slot of level 0 that is due is spliced to the list of ready nodes whole.
 * A node is ready if, and only if, its tick lies before the wheel's time,
 * so nothing needs to be written to the nodes for that.
 *
 * A node whose expiry is moved to later stays where it is, until the wheel
 * comes to its slot and puts it where it belongs by then.
 *
 * Pure: no locks, no time sources, no allocation. The caller serialises all
 * calls on a wheel and its table.
 */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/types.h>

#include "table.h"

/* The host tests also build this with narrower levels. */
#ifndef TW_TURN_BITS
#define TW_TURN_BITS 6
#endif

/*
 * Ticks run from 0 to TW_TICK_MAX: far beyond KTIME_MAX in ticks of 1 us, since
 * a clock that is set back makes them grow. The levels reach less far, to that
 * KTIME_MAX; what lies beyond is looked at when the end of their reach comes.
 */
#define TW_TICK_MAX ((1LL << 62) - 1)
#ifndef TW_REACH_BITS
#define TW_REACH_BITS 54
#endif
#define TW_REACH (1LL << TW_REACH_BITS)

/* No tick: later than all. */
#define TW_NEVER S64_MAX

#define TW_TURN (1U << TW_TURN_BITS)
#define TW_LEVEL_SLOTS (2 * TW_TURN)
#define TW_LEVEL_MASK (TW_LEVEL_SLOTS - 1)
#define TW_LEVELS ((TW_REACH_BITS + TW_TURN_BITS - 1) / TW_TURN_BITS)
#define TW_SLOTS (TW_LEVELS * TW_LEVEL_SLOTS)
#define TW_LEVEL_WORDS ((TW_LEVEL_SLOTS + 63) / 64)

/*
 * A slot of this many nodes at most is small: it is brought down together with
 * its first expiry and causes no wake-up of its own.
 */
#ifndef TW_SMALL_SLOT
#define TW_SMALL_SLOT 32
#endif

/**
 * struct tw_list - list of nodes
 * @first: index of the first, or TW_NIL
 * @last: index of the last, or TW_NIL
 * @count: how many
 * @unused: makes it a power of two long, to be found in an array
 */
struct tw_list {
	u32 first;
	u32 last;
	u32 count;
	u32 unused;
};

/**
 * struct tw_wheel - a wheel
 * @table: where its nodes live
 * @slots: TW_SLOTS slots
 * @refresh: NULL, or gives the tick at which a node expires, where that can
 *	become later without the wheel being told. No slot is then expired
 *	unseen
 * @clk: the tick that comes next. All before it are done
 * @next: there is nothing to do before this tick
 * @stamp: when those at the head of @ready were made ready
 * @pending: nodes in slots
 * @levels: bit n is set when level n has an occupied slot
 * @ready: expired nodes, in the order of their ticks
 * @occupied: a bit for each slot
 * @moved: bit for each slot of level 0 with nodes that were moved to later
 *
 * &tw_node.expires is the tick at which the node expires. In a ready node that
 * was the first of those that were made ready together it holds when that
 * was, as tw_stamp() of it, which is less than any tick.
 */
struct tw_wheel {
	struct tw_table *table;
	struct tw_list *slots;
	s64 (*refresh)(const struct tw_wheel *wheel, const struct tw_node *node);
	s64 clk;
	s64 next;
	s64 stamp;
	u32 pending;
	u32 levels;
	struct tw_list ready;
	u64 occupied[TW_LEVELS][TW_LEVEL_WORDS];
	u64 moved[TW_LEVEL_WORDS];
};

/**
 * struct tw_step - what a step of the wheel shall do, and did
 * @now: in: the tick that it is now
 * @stamp: in: the time that it is now, in ns, not negative
 * @budget: in, out: nodes and slots that may yet be touched
 * @tick: out: the tick whose nodes were made ready
 * @expired: out: how many nodes were made ready
 * @moved: out: nodes that were put in other slots, summed up
 */
struct tw_step {
	s64 now;
	s64 stamp;
	u32 budget;
	u32 expired;
	s64 tick;
	u64 moved;
};

static inline s64 tw_stamp(s64 ns)
{
	return S64_MIN + ns;
}

static inline bool tw_is_stamp(s64 expires)
{
	return expires < 0;
}

static inline s64 tw_stamp_ns(s64 expires)
{
	return expires - S64_MIN;
}

static inline bool tw_is_ready(const struct tw_wheel *wheel,
			       const struct tw_node *node)
{
	return node->expires < wheel->clk;
}

/**
 * tw_wheel_pop_ready() - take the first ready node out
 * @wheel: the wheel, with a ready node
 *
 * The same as tw_wheel_del() of it.
 */
static inline void tw_wheel_pop_ready(struct tw_wheel *wheel)
{
	struct tw_list *ready = &wheel->ready;
	struct tw_node *node = tw_node(wheel->table, ready->first);

	if (tw_is_stamp(node->expires))
		wheel->stamp = tw_stamp_ns(node->expires);
	ready->first = node->next;
	if (node->next == TW_NIL)
		ready->last = TW_NIL;
	else
		tw_node(wheel->table, node->next)->prev = TW_NIL;
	ready->count--;
}

void tw_wheel_init(struct tw_wheel *wheel, struct tw_table *table, s64 now);
void tw_wheel_set_slots(struct tw_wheel *wheel, struct tw_list *slots);
void tw_wheel_forward(struct tw_wheel *wheel, s64 now);
void tw_wheel_add(struct tw_wheel *wheel, u32 index, s64 expires);
void tw_wheel_add_ready(struct tw_wheel *wheel, u32 index, s64 stamp);
void tw_wheel_mod(struct tw_wheel *wheel, u32 index, s64 expires);
void tw_wheel_del(struct tw_wheel *wheel, u32 index);
bool tw_wheel_step(struct tw_wheel *wheel, struct tw_step *step);
s64 tw_wheel_next(const struct tw_wheel *wheel);
u32 tw_wheel_first(const struct tw_wheel *wheel);

#endif /* TW_WHEEL_H */
