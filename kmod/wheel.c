// SPDX-License-Identifier: GPL-2.0
/*
 * The cascading timer wheel: levels, slots, bitmaps. See wheel.h.
 */
#include <linux/string.h>

#include "wheel.h"

static inline unsigned int tw_level_shift(unsigned int level)
{
	return level * TW_TURN_BITS;
}

/* The position that holds @tick, counted in slots of @level from tick 0. */
static inline s64 tw_position(unsigned int level, s64 tick)
{
	return tick >> tw_level_shift(level);
}

static inline s64 tw_position_start(unsigned int level, s64 position)
{
	return position << tw_level_shift(level);
}

static inline struct tw_slot *tw_slot(const struct tw_wheel *wheel,
				      unsigned int level, s64 position)
{
	return &wheel->slots[level * TW_LEVEL_SLOTS +
			     (position & TW_LEVEL_MASK)];
}

static void tw_slot_init(struct tw_slot *slot)
{
	INIT_LIST_HEAD(&slot->nodes);
	slot->count = 0;
	slot->inspect = 0;
}

static inline struct tw_node *tw_slot_head(const struct tw_slot *slot)
{
	return list_first_entry(&slot->nodes, struct tw_node, entry);
}

/**
 * tw_wheel_init() - make an empty wheel
 * @wheel: the wheel
 * @clock: the clock of its deadlines
 * @now: the tick that it is now
 *
 * tw_wheel_set_slots() has to follow before the first node is added.
 */
void tw_wheel_init(struct tw_wheel *wheel, const struct tw_clock *clock, s64 now)
{
	unsigned int level;

	memset(wheel, 0, sizeof(*wheel));
	wheel->clock = *clock;
	wheel->base = clock->shift + 1;
	for (level = 0; level < TW_LEVELS; level++) {
		wheel->level[level].shift = tw_level_shift(level);
		wheel->level[level].slots = level * TW_LEVEL_SLOTS *
					     TW_SLOT_UNITS;
	}
	tw_wheel_set_clk(wheel, now + 1);
	wheel->next = TW_NEVER;
	tw_slot_init(&wheel->ready);
}

/**
 * tw_wheel_set_slots() - give the wheel its slots
 * @wheel: the wheel
 * @slots: TW_SLOTS of them
 */
void tw_wheel_set_slots(struct tw_wheel *wheel, struct tw_slot *slots)
{
	unsigned int i;

	for (i = 0; i < TW_SLOTS; i++)
		tw_slot_init(&slots[i]);
	wheel->slots = slots;
}

/* The wheel's time is @clk, to which there is nothing to do. */
void tw_wheel_set_clk(struct tw_wheel *wheel, s64 clk)
{
	unsigned int level;

	wheel->clk = clk;
	wheel->done = max(wheel->done, (clk - 1 - wheel->clock.shift) *
				       wheel->clock.tick);
	for (level = 0; level < TW_LEVELS; level++) {
		s64 turn = tw_position(level + 1, clk);
		s64 reach = tw_position_start(level + 1, turn + 2);

		/* Higher levels turn only when lower ones do. */
		if (wheel->level[level].reach == reach)
			break;
		wheel->level[level].reach = reach;
	}
}

/**
 * tw_wheel_set_back() - the clock was set back
 * @wheel: the wheel
 * @now: the tick that it would be now, which lies before the wheel's time
 *
 * From now on, all that the host's clock shows is at other ticks of the wheel, so
 * that the wheel's time goes on from where it was. These ticks grow with each time,
 * but not without end: what is a whole span of all levels is taken off again.
 *
 * Return: how much is to be added to a tick of the host that the caller knows.
 */
s64 tw_wheel_set_back(struct tw_wheel *wheel, s64 now)
{
	s64 back = wheel->clk - 1 - now;
	s64 spans = (wheel->clock.shift + back) & ~(TW_SPAN - 1);
	unsigned int level;

	wheel->clock.shift += back - spans;
	wheel->base += back - spans;
	wheel->clk -= spans;
	if (wheel->next != TW_NEVER)
		wheel->next -= spans;
	for (level = 0; level < TW_LEVELS; level++)
		wheel->level[level].reach -= spans;
	wheel->inspect = wheel->level[0].reach;
	wheel->set_back = true;
	return back - spans;
}

/**
 * tw_wheel_settle() - can nodes be added and moved as if the clock was never set back?
 * @wheel: the wheel, to be asked when its @set_back is true
 *
 * A node that was made ready unseen before that is told from one that is pending by
 * @done as it was then. So a node that expires before that time again has to be
 * marked, which tw_wheel_add() does, as long as there may be such ready ones.
 *
 * Return: true if so. Then @set_back is false again.
 */
bool tw_wheel_settle(struct tw_wheel *wheel)
{
	s64 done = (wheel->clk - 1 - wheel->clock.shift) * wheel->clock.tick;

	if (wheel->ready.count && done < wheel->done)
		return false;
	wheel->done = done;
	wheel->set_back = false;
	return true;
}

/* A slot, that of @tick, got its first node or one that makes it large. */
void tw_slot_grown(struct tw_wheel *wheel, struct tw_slot *slot, s64 tick)
{
	unsigned int nr = slot - wheel->slots;
	unsigned int level = nr / TW_LEVEL_SLOTS;
	s64 before = tw_position(level, tick) - 1;

	if (slot->count == 1) {
		tw_bit_set(wheel->occupied[level], nr % TW_LEVEL_SLOTS);
		wheel->levels |= 1U << level;
	} else if (slot->count == TW_SMALL_SLOT + 1 && level) {
		wheel->next = min(wheel->next, tw_position_start(level, before));
	}
}

/* The last node of a slot is gone. */
void tw_slot_empty(struct tw_wheel *wheel, struct tw_slot *slot)
{
	unsigned int nr = slot - wheel->slots;
	unsigned int level = nr / TW_LEVEL_SLOTS;

	slot->inspect = 0;
	tw_bit_clear(wheel->occupied[level], nr % TW_LEVEL_SLOTS);
	if (!tw_bits_empty(wheel->occupied[level], TW_LEVEL_SLOTS))
		return;
	wheel->levels &= ~(1U << level);
	if (!wheel->levels)
		wheel->next = TW_NEVER;
}

/* Where a node belongs by now */
static s64 tw_node_tick(const struct tw_wheel *wheel, const struct tw_node *node)
{
	return tw_clock_expires(&wheel->clock, node->deadline, node->slack_shift);
}

/* Put a node to @tick, or to what comes next to that. */
static void tw_put(struct tw_wheel *wheel, struct tw_node *node, s64 tick)
{
	tw_wheel_place(wheel, node, clamp(tick, wheel->clk,
					  wheel->clk + TW_REACH - 1), true);
}

/* A node that is not like most: see tw_wheel_add(). */
void tw_wheel_add_special(struct tw_wheel *wheel, struct tw_node *node)
{
	node->flags &= TW_NODE_PERIODIC;
	/* Whatever the caller did, the wheel stays sound. */
	if (node->slack_shift || node->deadline <= wheel->done)
		node->flags |= TW_NODE_INSPECT;
	tw_put(wheel, node, tw_node_tick(wheel, node));
	wheel->pending++;
}

/* The first occupied position of @level that does not come before @from. */
static s64 tw_find(const struct tw_wheel *wheel, unsigned int level, s64 from)
{
	return tw_bits_find(wheel->occupied[level], TW_LEVEL_SLOTS, from);
}

/* The first tick in any slot, and of those that share it the highest level. */
static s64 tw_first_due(const struct tw_wheel *wheel, unsigned int *level)
{
	u32 levels = wheel->levels;
	s64 first = TW_NEVER;

	while (levels) {
		unsigned int l = fls(levels) - 1;
		s64 position = tw_find(wheel, l, tw_position(l, wheel->clk));
		s64 start = tw_position_start(l, position);

		if (start < first) {
			first = start;
			*level = l;
		}
		levels &= ~(1U << l);
	}
	return first;
}

/* Put a node of a slot to where it belongs by now. */
static inline void tw_move(struct tw_wheel *wheel, struct tw_node *node)
{
	s64 tick;

	if (likely(!node->special)) {
		tick = tw_wheel_tick(wheel, node->deadline);
		if (likely(tick < wheel->clk + TW_REACH)) {
			tw_wheel_place(wheel, node, tick, false);
			return;
		}
	}
	tw_put(wheel, node, tw_node_tick(wheel, node));
}

/* Bring nodes of a slot to where they belong by now, as the budget allows. */
static void tw_bring_down(struct tw_wheel *wheel, struct tw_slot *slot,
			  struct tw_step *step)
{
	struct list_head *at = slot->nodes.next;
	u32 i, nr = min(slot->count, step->budget - 1);

	for (i = 0; i < nr; i++) {
		struct tw_node *node = list_entry(at, struct tw_node, entry);

		at = at->next;
		tw_move(wheel, node);
	}
	slot->nodes.next = at;
	at->prev = &slot->nodes;
	slot->count -= nr;
	if (!slot->count)
		tw_slot_empty(wheel, slot);
	step->budget -= 1 + nr;
	step->moved += nr;
}

/* Expire a slot one by one: it has nodes that are not to expire yet. */
static void tw_expire_seen(struct tw_wheel *wheel, struct tw_slot *slot,
			   struct tw_step *step)
{
	while (slot->count && step->budget) {
		struct tw_node *node = tw_slot_head(slot);
		s64 tick = tw_node_tick(wheel, node);

		step->budget--;
		__list_del(&slot->nodes, node->entry.next);
		slot->count--;
		if (tick > wheel->clk) {
			tw_put(wheel, node, tick);
			step->moved++;
			continue;
		}
		wheel->pending--;
		tw_wheel_add_ready(wheel, node);
		step->expired++;
	}
	if (!slot->count)
		tw_slot_empty(wheel, slot);
}

/* Expire a slot whole. */
static void tw_expire_unseen(struct tw_wheel *wheel, struct tw_slot *slot,
			     struct tw_step *step)
{
	list_splice_tail_init(&slot->nodes, &wheel->ready.nodes);
	wheel->ready.count += slot->count;
	wheel->pending -= slot->count;
	step->expired = slot->count;
	slot->count = 0;
	tw_slot_empty(wheel, slot);
}

static void tw_expire(struct tw_wheel *wheel, struct tw_step *step)
{
	struct tw_slot *slot = tw_slot(wheel, 0, wheel->clk);

	step->tick = wheel->clk;
	step->budget--;
	if (slot->inspect || wheel->clk < wheel->inspect)
		tw_expire_seen(wheel, slot, step);
	else
		tw_expire_unseen(wheel, slot, step);
	/* Only now are all its nodes ready. */
	if (!slot->count)
		tw_wheel_set_clk(wheel, wheel->clk + 1);
}

/* The slot to preload next, with the position after the present one, if there is one. */
static struct tw_slot *tw_preload_slot(const struct tw_wheel *wheel,
				       struct tw_step *step)
{
	u32 levels = wheel->levels & ~1U;

	while (levels) {
		unsigned int l = fls(levels) - 1;
		s64 position = tw_position(l, wheel->clk);
		struct tw_slot *slot = tw_slot(wheel, l, position);

		if (slot->count > TW_SMALL_SLOT)
			return slot;
		slot = tw_slot(wheel, l, position + 1);
		if (slot->count > TW_SMALL_SLOT) {
			step->ahead = tw_position_start(l, position + 1) -
				      step->now;
			return slot;
		}
		levels &= ~(1U << l);
	}
	return NULL;
}

/* The earliest that one of the few nodes of a slot expires. */
static s64 tw_slot_next(const struct tw_wheel *wheel, const struct tw_slot *slot)
{
	const struct tw_node *node;
	s64 first = TW_NEVER;

	list_for_each_entry(node, &slot->nodes, entry)
		first = min(first, tw_node_tick(wheel, node));
	return first;
}

/* When the wheel has to look at @level for the first time. */
static s64 tw_level_next(const struct tw_wheel *wheel, unsigned int level)
{
	s64 position = tw_find(wheel, level, tw_position(level, wheel->clk));
	const struct tw_slot *slot = tw_slot(wheel, level, position);
	s64 next;

	if (!level)
		return position;
	if (slot->count > TW_SMALL_SLOT)
		return tw_position_start(level, position - 1);
	/*
	 * Nodes that were moved to later may expire after the slot's end, by
	 * which it has to be empty.
	 */
	next = min(tw_slot_next(wheel, slot),
		   tw_position_start(level, position + 1) - 1);
	/* The slot after it may want to be preloaded meanwhile. */
	slot = tw_slot(wheel, level, position + 1);
	if (slot->count > TW_SMALL_SLOT)
		next = min(next, tw_position_start(level, position));
	return next;
}

/**
 * tw_wheel_next() - when is there something to do again?
 * @wheel: the wheel
 *
 * Return: a tick before which there is nothing to do and no node expires, or
 * TW_NEVER.
 */
s64 tw_wheel_next(const struct tw_wheel *wheel)
{
	u32 levels = wheel->levels;
	s64 next = TW_NEVER;

	while (levels) {
		unsigned int l = fls(levels) - 1;

		next = min(next, tw_level_next(wheel, l));
		levels &= ~(1U << l);
	}
	return next;
}

/**
 * tw_wheel_step() - do the next piece of what there is to do by now
 * @wheel: the wheel
 * @step: what it may do and did; @step->budget is not 0
 *
 * What is due comes before what is only preloaded. It takes a budget of 2 to
 * get on for sure: a slot and a node.
 *
 * Return: true when there may be more to do, false when there is not; then the
 * wheel's time is the tick after @step->now.
 */
bool tw_wheel_step(struct tw_wheel *wheel, struct tw_step *step)
{
	unsigned int level = 0;
	struct tw_slot *slot;
	s64 due;

	step->expired = 0;
	step->ahead = 0;
	due = tw_first_due(wheel, &level);
	if (due <= step->now) {
		if (due > wheel->clk)
			tw_wheel_set_clk(wheel, due);
		if (level)
			tw_bring_down(wheel, tw_slot(wheel, level,
						     tw_position(level, due)),
				      step);
		else
			tw_expire(wheel, step);
		return true;
	}

	if (step->now >= wheel->clk)
		tw_wheel_set_clk(wheel, step->now + 1);
	slot = tw_preload_slot(wheel, step);
	if (!slot) {
		wheel->next = tw_wheel_next(wheel);
		return false;
	}
	tw_bring_down(wheel, slot, step);
	step->left = slot->count;
	return true;
}

/**
 * tw_wheel_first() - any pending node
 * @wheel: the wheel
 *
 * Return: a pending node, of the earliest of its level, or NULL.
 */
struct tw_node *tw_wheel_first(const struct tw_wheel *wheel)
{
	unsigned int level;
	s64 position;

	if (!wheel->levels)
		return NULL;
	level = fls(wheel->levels) - 1;
	position = tw_find(wheel, level, tw_position(level, wheel->clk));
	return tw_slot_head(tw_slot(wheel, level, position));
}
