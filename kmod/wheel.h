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
 * A slot of level 0 that is due is spliced to the list of ready nodes whole. A
 * node is ready if its deadline is not after the wheel's time, so nothing needs
 * to be written to the nodes for that.
 *
 * Where that can't be said by the deadline alone, slots are not expired unseen,
 * but node by node, each with a flag: when a node has slack, and for a while when
 * the clock was set back.
 *
 * When the clock is set back, the wheel's ticks go on, and all deadlines are that
 * much further ahead. So nodes are in slots that come too early. On upper levels
 * that does no harm, as nodes are put where they belong whenever they are brought
 * down; and level 0 is all new two turns later. Nodes that were made ready before
 * have deadlines that lie ahead again. Until they are read, new nodes with such
 * deadlines are marked, so that they are not taken for ready.
 *
 * A node that is moved to later stays where it is, if that is not on level 0,
 * until the wheel comes to its slot and puts it where it belongs by then.
 *
 * Pure: no locks, no time sources, no allocation. The caller serialises all
 * calls on a wheel.
 */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "clock.h"
#include "levels.h"
#include "sizes.h"
#include "table.h"

#define TW_REACH (1LL << TW_REACH_BITS)

/* No tick: later than all. */
#define TW_NEVER S64_MAX

#define TW_TURN (1U << TW_TURN_BITS)
#define TW_LEVEL_SLOTS (2 * TW_TURN)
#define TW_LEVEL_MASK (TW_LEVEL_SLOTS - 1)
#define TW_LEVELS ((TW_REACH_BITS + TW_TURN_BITS - 1) / TW_TURN_BITS)
#define TW_SLOTS (TW_LEVELS * TW_LEVEL_SLOTS)
#define TW_LEVEL_WORDS TW_BITS_WORDS(TW_LEVEL_SLOTS)

/* Ticks that are so far apart have the same slot on each level. A power of 2 */
#define TW_SPAN ((s64)TW_LEVEL_SLOTS << ((TW_LEVELS - 1) * TW_TURN_BITS))

/**
 * struct tw_slot - list of nodes
 * @nodes: the nodes
 * @count: how many
 * @inspect: at level 0, not to be expired unseen, if not 0
 */
struct tw_slot {
	struct list_head nodes;
	u32 count;
	u32 inspect;
};

/* &tw_node.slot counts in units of this: so a slot is found without a product. */
#define TW_SLOT_UNIT sizeof(u64)
#define TW_SLOT_UNITS (sizeof(struct tw_slot) / TW_SLOT_UNIT)

/**
 * struct tw_level - what a level holds
 * @reach: the first tick that it can't hold
 * @shift: its slots are 2^this ticks wide
 * @slots: where its slots begin, as in &tw_node.slot
 */
struct tw_level {
	s64 reach;
	u32 shift;
	u32 slots;
};

struct tw_step;

/**
 * struct tw_wheel - a wheel
 * @clock: makes ticks of deadlines
 * @slots: TW_SLOTS slots
 * @set_back: @done is later than the time that @clk begins at, as @clock was set
 *	back. See tw_wheel_settle()
 * @clk: the tick that comes next. All before it are done
 * @done: the latest time that the tick before @clk began at, in ns: a node whose
 *	deadline is not after it is ready, if it may be expired unseen
 * @next: there is nothing to do before this tick
 * @base: the first tick of the wheel after the host's time 0: one more than @clock
 *	is shifted
 * @level: the levels
 * @pending: nodes in slots
 * @levels: bit n is set when level n has an occupied slot
 * @ready: expired nodes, in the order of their ticks
 * @occupied: a bit for each slot
 * @inspect: no slot of level 0 before this tick is to be expired unseen: it may hold
 *	nodes that came there before @clock was set back
 */
struct tw_wheel {
	struct tw_clock clock;
	struct tw_slot *slots;
	s64 clk;
	s64 done;
	s64 next;
	u32 pending;
	u32 levels;
	s64 base;
	bool set_back;
	struct tw_level level[TW_LEVELS];
	struct tw_slot ready;
	u64 occupied[TW_LEVELS][TW_LEVEL_WORDS];
	s64 inspect;
};

/**
 * struct tw_step - what a step of the wheel shall do, and did
 * @now: in: the tick that it is now
 * @stamp: in: the time that it is now, in ns, not negative
 * @budget: in, out: nodes and slots that may yet be touched
 * @tick: out: the tick whose nodes were made ready
 * @expired: out: how many nodes were made ready
 * @ahead: out: in how many ticks a slot is due of which nodes were brought down ahead
 *	of time; 0 if something was due
 * @left: out: how many nodes it has yet
 * @moved: out: nodes that were put in other slots, summed up
 */
struct tw_step {
	s64 now;
	s64 stamp;
	u32 budget;
	u32 expired;
	u32 left;
	s64 ahead;
	s64 tick;
	u64 moved;
};

void tw_wheel_init(struct tw_wheel *wheel, const struct tw_clock *clock, s64 now);
void tw_wheel_set_slots(struct tw_wheel *wheel, struct tw_slot *slots);
void tw_wheel_set_clk(struct tw_wheel *wheel, s64 clk);
s64 tw_wheel_set_back(struct tw_wheel *wheel, s64 now);
bool tw_wheel_settle(struct tw_wheel *wheel);
bool tw_wheel_step(struct tw_wheel *wheel, struct tw_step *step);
s64 tw_wheel_next(const struct tw_wheel *wheel);
struct tw_node *tw_wheel_first(const struct tw_wheel *wheel);

/* The rare parts of what follows. */
void tw_wheel_add_special(struct tw_wheel *wheel, struct tw_node *node);
void tw_slot_empty(struct tw_wheel *wheel, struct tw_slot *slot);
void tw_slot_grown(struct tw_wheel *wheel, struct tw_slot *slot, s64 tick);

static inline struct tw_slot *tw_slot_at(const struct tw_wheel *wheel,
					 unsigned long slot)
{
	return (void *)wheel->slots + slot * TW_SLOT_UNIT;
}

/**
 * tw_is_ready() - has a node expired?
 * @wheel: the wheel
 * @node: a node of it
 *
 * Return: true if so, false if it is pending.
 */
static inline bool tw_is_ready(const struct tw_wheel *wheel,
			       const struct tw_node *node)
{
	if (likely(!(node->flags & (TW_NODE_INSPECT | TW_NODE_READY))))
		return node->deadline <= wheel->done;
	return node->flags & TW_NODE_READY;
}

static inline struct tw_node *tw_first_ready(struct tw_wheel *wheel)
{
	return list_first_entry_or_null(&wheel->ready.nodes, struct tw_node,
					entry);
}

/**
 * tw_wheel_cut_ready() - take the first ready nodes out
 * @wheel: the wheel
 * @rest: what comes after them
 * @nr: how many they are
 */
static inline void tw_wheel_cut_ready(struct tw_wheel *wheel,
				      struct list_head *rest, unsigned int nr)
{
	wheel->ready.nodes.next = rest;
	rest->prev = &wheel->ready.nodes;
	wheel->ready.count -= nr;
}

/**
 * tw_wheel_pop_ready() - take the first ready node out
 * @wheel: the wheel
 * @node: its first ready node
 *
 * The same as tw_wheel_del() of it.
 */
static inline void tw_wheel_pop_ready(struct tw_wheel *wheel,
				      struct tw_node *node)
{
	tw_wheel_cut_ready(wheel, node->entry.next, 1);
}

/**
 * tw_wheel_forward() - let time pass in which there is nothing to do
 * @wheel: the wheel
 * @now: the tick that it is now
 *
 * Does nothing when there is something to do: that is for tw_wheel_step().
 * The nearer the wheel's time, the lower is the level at which a node starts.
 */
static inline void tw_wheel_forward(struct tw_wheel *wheel, s64 now)
{
	if (now >= wheel->clk && now < wheel->next)
		tw_wheel_set_clk(wheel, now + 1);
}

/* (Not list_add_tail(), which some kernels check with a call.) */
static inline void tw_slot_append(struct tw_slot *slot, struct tw_node *node)
{
	struct list_head *last = slot->nodes.prev;

	node->entry.next = &slot->nodes;
	node->entry.prev = last;
	last->next = &node->entry;
	slot->nodes.prev = &node->entry;
}

/* The tick at which a deadline expires that has no slack. */
static __always_inline s64 tw_wheel_tick(const struct tw_wheel *wheel,
					 s64 deadline)
{
	return tw_clock_divide(&wheel->clock, deadline - 1) + wheel->base;
}

/* Put a node into the slot of its tick. Unless @special, it is like most. */
static __always_inline void tw_wheel_place(struct tw_wheel *wheel,
					   struct tw_node *node, s64 tick,
					   bool special)
{
	const struct tw_level *level = wheel->level;
	struct tw_slot *slot;
	unsigned long at;

	while (tick >= level->reach)
		level++;
	at = ((unsigned long)tick >> level->shift) & TW_LEVEL_MASK;
	at = level->slots + at * TW_SLOT_UNITS;
	slot = tw_slot_at(wheel, at);
	node->slot = at;
	if (special && (node->flags & TW_NODE_INSPECT))
		slot->inspect = 1;
	tw_slot_append(slot, node);
	if (tick < wheel->next)
		wheel->next = tick;
	/* The first, and the first that is too many for a small slot. */
	if (unlikely(!(slot->count++ % TW_SMALL_SLOT)))
		tw_slot_grown(wheel, slot, tick);
}

/**
 * tw_wheel_add_plain() - add a node that is on no list and like most
 * @wheel: the wheel
 * @node: the node; it has no slack and is not periodic. Its deadline is set, and
 *	lies after the time that the wheel was forwarded to last, and after
 *	@wheel->done
 */
static inline void tw_wheel_add_plain(struct tw_wheel *wheel,
				      struct tw_node *node)
{
	s64 tick = tw_wheel_tick(wheel, node->deadline);

	/* (The wheels of some host tests reach less far than a deadline may.) */
	if (TW_REACH_BITS < 54)
		tick = min(tick, wheel->clk + TW_REACH - 1);
	tw_wheel_place(wheel, node, tick, false);
	wheel->pending++;
}

/**
 * tw_wheel_add() - add a node that is on no list
 * @wheel: the wheel
 * @node: the node. Its deadline, its slack and whether it is periodic are set;
 *	the deadline lies after the time that the wheel was forwarded to last
 */
static inline void tw_wheel_add(struct tw_wheel *wheel, struct tw_node *node)
{
	if (node->special || node->deadline <= wheel->done)
		tw_wheel_add_special(wheel, node);
	else
		tw_wheel_add_plain(wheel, node);
}

/**
 * tw_wheel_add_ready() - add a node that is on no list and expires at once
 * @wheel: the wheel
 * @node: the node
 */
static inline void tw_wheel_add_ready(struct tw_wheel *wheel, struct tw_node *node)
{
	node->flags = (node->flags & TW_NODE_PERIODIC) | TW_NODE_READY;
	tw_slot_append(&wheel->ready, node);
	wheel->ready.count++;
}

static inline void tw_slot_unlink(struct tw_wheel *wheel, struct tw_node *node)
{
	struct tw_slot *slot = tw_slot_at(wheel, node->slot);

	__list_del(node->entry.prev, node->entry.next);
	if (unlikely(!--slot->count))
		tw_slot_empty(wheel, slot);
}

/**
 * tw_wheel_del() - take a node out, pending or ready
 * @wheel: the wheel
 * @node: the node
 */
static inline void tw_wheel_del(struct tw_wheel *wheel, struct tw_node *node)
{
	if (likely(!tw_is_ready(wheel, node))) {
		tw_slot_unlink(wheel, node);
		wheel->pending--;
		return;
	}
	__list_del(node->entry.prev, node->entry.next);
	wheel->ready.count--;
}

/**
 * tw_is_plain() - is a node pending and like most: no slack, not periodic?
 * @wheel: the wheel
 * @node: a node of it
 *
 * Return: true if so.
 */
static inline bool tw_is_plain(const struct tw_wheel *wheel,
			       const struct tw_node *node)
{
	return likely(!node->special && node->deadline > wheel->done);
}

/* tw_wheel_del() of a node that tw_is_plain() */
static inline void tw_wheel_del_plain(struct tw_wheel *wheel, struct tw_node *node)
{
	tw_slot_unlink(wheel, node);
	wheel->pending--;
}

/* tw_wheel_mod() of a node that tw_is_plain(), to one without slack after &tw_wheel.done */
static inline void tw_wheel_mod_plain(struct tw_wheel *wheel, struct tw_node *node,
				      s64 deadline)
{
	/* The wheel will find it where it is, and place it then. */
	if (deadline < node->deadline ||
	    node->slot < TW_LEVEL_SLOTS * TW_SLOT_UNITS) {
		tw_wheel_del_plain(wheel, node);
		node->deadline = deadline;
		tw_wheel_add_plain(wheel, node);
		return;
	}
	node->deadline = deadline;
}

/**
 * tw_wheel_mod() - change when a node expires, be it pending or ready
 * @wheel: the wheel
 * @node: the node
 * @deadline: its new deadline, after the time that the wheel was forwarded to
 *	last
 * @slack_shift: its new slack
 */
static inline void tw_wheel_mod(struct tw_wheel *wheel, struct tw_node *node,
				s64 deadline, unsigned int slack_shift)
{
	if (!slack_shift && tw_is_plain(wheel, node) && deadline > wheel->done) {
		tw_wheel_mod_plain(wheel, node, deadline);
		return;
	}
	tw_wheel_del(wheel, node);
	node->deadline = deadline;
	node->slack_shift = slack_shift;
	tw_wheel_add(wheel, node);
}

#endif /* TW_WHEEL_H */
