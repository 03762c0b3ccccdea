// SPDX-License-Identifier: GPL-2.0
/*
 * The cascading timer wheel: levels, slots, bitmaps. See wheel.h.
 */
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/minmax.h>
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

static inline struct tw_list *tw_slot(const struct tw_wheel *wheel,
				      unsigned int level, s64 position)
{
	return &wheel->slots[level * TW_LEVEL_SLOTS +
			     (position & TW_LEVEL_MASK)];
}

static inline bool tw_bit_test(const u64 *bits, unsigned int nr)
{
	return bits[nr / 64] >> (nr % 64) & 1;
}

static inline void tw_bit_set(u64 *bits, unsigned int nr)
{
	bits[nr / 64] |= 1ULL << (nr % 64);
}

static inline void tw_bit_clear(u64 *bits, unsigned int nr)
{
	bits[nr / 64] &= ~(1ULL << (nr % 64));
}

static inline bool tw_bits_empty(const u64 *bits)
{
	u64 all = 0;
	unsigned int i;

	for (i = 0; i < TW_LEVEL_WORDS; i++)
		all |= bits[i];
	return !all;
}

static void tw_list_init(struct tw_list *list)
{
	list->first = TW_NIL;
	list->last = TW_NIL;
	list->count = 0;
}

static inline void tw_list_append(const struct tw_table *table,
				  struct tw_list *list, u32 index,
				  struct tw_node *node)
{
	node->next = TW_NIL;
	node->prev = list->last;
	if (list->last == TW_NIL)
		list->first = index;
	else
		tw_node(table, list->last)->next = index;
	list->last = index;
	list->count++;
}

static inline void tw_list_unlink(const struct tw_table *table,
				  struct tw_list *list, struct tw_node *node)
{
	if (node->prev == TW_NIL)
		list->first = node->next;
	else
		tw_node(table, node->prev)->next = node->next;
	if (node->next == TW_NIL)
		list->last = node->prev;
	else
		tw_node(table, node->next)->prev = node->prev;
	list->count--;
}

static void tw_list_splice(const struct tw_table *table, struct tw_list *to,
			   struct tw_list *from)
{
	if (to->last == TW_NIL) {
		to->first = from->first;
	} else {
		tw_node(table, to->last)->next = from->first;
		tw_node(table, from->first)->prev = to->last;
	}
	to->last = from->last;
	to->count += from->count;
	tw_list_init(from);
}

/**
 * tw_wheel_init() - make an empty wheel
 * @wheel: the wheel
 * @table: where its nodes will live
 * @now: the tick that it is now
 *
 * tw_wheel_set_slots() has to follow before the first node is added.
 */
void tw_wheel_init(struct tw_wheel *wheel, struct tw_table *table, s64 now)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->table = table;
	wheel->clk = now + 1;
	wheel->next = TW_NEVER;
	tw_list_init(&wheel->ready);
}

/**
 * tw_wheel_set_slots() - give the wheel its slots
 * @wheel: the wheel
 * @slots: TW_SLOTS of them
 */
void tw_wheel_set_slots(struct tw_wheel *wheel, struct tw_list *slots)
{
	unsigned int i;

	for (i = 0; i < TW_SLOTS; i++)
		tw_list_init(&slots[i]);
	wheel->slots = slots;
}

/**
 * tw_wheel_forward() - let time pass in which there is nothing to do
 * @wheel: the wheel
 * @now: the tick that it is now
 *
 * Does nothing when there is something to do: that is for tw_wheel_step().
 * The nearer the wheel's time, the lower is the level at which a node starts.
 */
void tw_wheel_forward(struct tw_wheel *wheel, s64 now)
{
	if (now >= wheel->clk && now < wheel->next)
		wheel->clk = now + 1;
}

/* The lowest level at which @tick is in the present turn or the next. */
static inline unsigned int tw_level(const struct tw_wheel *wheel, s64 tick)
{
	u64 delta = tick - wheel->clk;
	unsigned int level = (unsigned int)(fls64(delta | 1) - 1) / TW_TURN_BITS;

	if (level && tw_position(level, tick) -
		     tw_position(level, wheel->clk) <= 1)
		level--;
	return level;
}

static inline void tw_place(struct tw_wheel *wheel, u32 index,
			    struct tw_node *node)
{
	s64 tick = min(node->expires, wheel->clk + TW_REACH - 1);
	unsigned int level = tw_level(wheel, tick);
	s64 position = tw_position(level, tick);
	unsigned int nr = position & TW_LEVEL_MASK;
	struct tw_list *list = &wheel->slots[level * TW_LEVEL_SLOTS + nr];

	node->slot = level * TW_LEVEL_SLOTS + nr;
	if (!list->count) {
		tw_bit_set(wheel->occupied[level], nr);
		wheel->levels |= 1U << level;
	}
	tw_list_append(wheel->table, list, index, node);
	if (tick < wheel->next)
		wheel->next = tick;
	if (unlikely(list->count == TW_SMALL_SLOT + 1) && level)
		wheel->next = min(wheel->next,
				  tw_position_start(level, position - 1));
}

/* The last node of a slot is gone. */
static void tw_slot_empty(struct tw_wheel *wheel, unsigned int slot)
{
	unsigned int level = slot / TW_LEVEL_SLOTS;
	unsigned int nr = slot % TW_LEVEL_SLOTS;

	tw_bit_clear(wheel->occupied[level], nr);
	if (!level)
		tw_bit_clear(wheel->moved, nr);
	if (tw_bits_empty(wheel->occupied[level]))
		wheel->levels &= ~(1U << level);
}

static void tw_slot_unlink(struct tw_wheel *wheel, struct tw_node *node)
{
	struct tw_list *list = &wheel->slots[node->slot];

	tw_list_unlink(wheel->table, list, node);
	if (!list->count)
		tw_slot_empty(wheel, node->slot);
}

/**
 * tw_wheel_add() - add a node that is on no list
 * @wheel: the wheel
 * @index: index of the node
 * @expires: tick at which it expires, from the wheel's time to TW_TICK_MAX
 */
void tw_wheel_add(struct tw_wheel *wheel, u32 index, s64 expires)
{
	struct tw_node *node = tw_node(wheel->table, index);

	/* Whatever the caller did, the wheel stays sound. */
	node->expires = max(expires, wheel->clk);
	tw_place(wheel, index, node);
	wheel->pending++;
}

/**
 * tw_wheel_add_ready() - add a node that is on no list and expires at once
 * @wheel: the wheel
 * @index: index of the node
 * @stamp: the time that it is now, in ns, not negative
 */
void tw_wheel_add_ready(struct tw_wheel *wheel, u32 index, s64 stamp)
{
	struct tw_node *node = tw_node(wheel->table, index);

	node->expires = tw_stamp(stamp);
	tw_list_append(wheel->table, &wheel->ready, index, node);
}

static void tw_ready_unlink(struct tw_wheel *wheel, struct tw_node *node)
{
	if (tw_is_stamp(node->expires)) {
		/* Those made ready together with it need to know when. */
		if (node->prev == TW_NIL)
			wheel->stamp = tw_stamp_ns(node->expires);
		else if (node->next != TW_NIL &&
			 !tw_is_stamp(tw_node(wheel->table, node->next)->expires))
			tw_node(wheel->table, node->next)->expires =
				node->expires;
	}
	tw_list_unlink(wheel->table, &wheel->ready, node);
}

/**
 * tw_wheel_del() - take a node out, pending or ready
 * @wheel: the wheel
 * @index: index of the node
 */
void tw_wheel_del(struct tw_wheel *wheel, u32 index)
{
	struct tw_node *node = tw_node(wheel->table, index);

	if (tw_is_ready(wheel, node)) {
		tw_ready_unlink(wheel, node);
		return;
	}
	tw_slot_unlink(wheel, node);
	if (!--wheel->pending)
		wheel->next = TW_NEVER;
}

/**
 * tw_wheel_mod() - change when a node expires, be it pending or ready
 * @wheel: the wheel
 * @index: index of the node
 * @expires: tick at which it expires, from the wheel's time to TW_TICK_MAX
 */
void tw_wheel_mod(struct tw_wheel *wheel, u32 index, s64 expires)
{
	struct tw_node *node = tw_node(wheel->table, index);

	if (!tw_is_ready(wheel, node) && expires >= node->expires) {
		if (node->slot < TW_LEVEL_SLOTS && expires > node->expires)
			tw_bit_set(wheel->moved, node->slot);
		node->expires = expires;
		return;
	}
	tw_wheel_del(wheel, index);
	tw_wheel_add(wheel, index, expires);
}

static u64 tw_bits_from(const u64 *bits, unsigned int word, unsigned int from)
{
	return bits[word] & (~0ULL << from);
}

/*
 * The first occupied position of @level that does not come before @from. The
 * level's slots are a ring in which @from is the oldest that can be occupied.
 */
static s64 tw_find(const struct tw_wheel *wheel, unsigned int level, s64 from)
{
	const u64 *bits = wheel->occupied[level];
	unsigned int start = from & TW_LEVEL_MASK;
	unsigned int word = start / 64;
	u64 found = tw_bits_from(bits, word, start % 64);
	unsigned int i, nr;

	for (i = 0; !found && i < TW_LEVEL_WORDS; i++) {
		word = (word + 1) % TW_LEVEL_WORDS;
		found = bits[word];
	}
	if (!found)
		return TW_NEVER;
	nr = word * 64 + __ffs64(found);
	return from + ((nr - start) & TW_LEVEL_MASK);
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

/* Take the first node of a slot, to look at it. */
static u32 tw_slot_pop(struct tw_wheel *wheel, struct tw_list *list)
{
	u32 index = list->first;
	struct tw_node *node = tw_node(wheel->table, index);

	tw_slot_unlink(wheel, node);
	if (wheel->refresh)
		node->expires = wheel->refresh(wheel, node);
	return index;
}

/* Bring nodes of a slot to where they belong by now, as the budget allows. */
static void tw_bring_down(struct tw_wheel *wheel, struct tw_list *list,
			  struct tw_step *step)
{
	step->budget--;
	while (list->count && step->budget) {
		u32 index = tw_slot_pop(wheel, list);
		struct tw_node *node = tw_node(wheel->table, index);

		if (WARN_ON_ONCE(node->expires < wheel->clk))
			node->expires = wheel->clk;
		tw_place(wheel, index, node);
		step->budget--;
		step->moved++;
	}
}

/* Expire a slot one by one: it has nodes that are not to expire yet. */
static void tw_expire_seen(struct tw_wheel *wheel, struct tw_list *list,
			   struct tw_step *step)
{
	while (list->count && step->budget) {
		u32 index = tw_slot_pop(wheel, list);
		struct tw_node *node = tw_node(wheel->table, index);

		step->budget--;
		if (node->expires > wheel->clk) {
			tw_place(wheel, index, node);
			step->moved++;
			continue;
		}
		tw_wheel_add_ready(wheel, index, step->stamp);
		wheel->pending--;
		step->expired++;
	}
}

/* Expire a slot whole. */
static void tw_expire_unseen(struct tw_wheel *wheel, struct tw_list *list,
			     struct tw_step *step)
{
	struct tw_node *first = tw_node(wheel->table, list->first);
	unsigned int slot = first->slot;

	first->expires = tw_stamp(step->stamp);
	wheel->pending -= list->count;
	step->expired = list->count;
	tw_list_splice(wheel->table, &wheel->ready, list);
	tw_slot_empty(wheel, slot);
}

static void tw_expire(struct tw_wheel *wheel, struct tw_step *step)
{
	struct tw_list *list = tw_slot(wheel, 0, wheel->clk);

	step->tick = wheel->clk;
	step->budget--;
	if (wheel->refresh ||
	    tw_bit_test(wheel->moved, wheel->clk & TW_LEVEL_MASK))
		tw_expire_seen(wheel, list, step);
	else
		tw_expire_unseen(wheel, list, step);
	/* Only now are all its nodes ready. */
	if (!list->count)
		wheel->clk++;
}

/* The slot to preload next, with the position after the present one. */
static struct tw_list *tw_preload_slot(const struct tw_wheel *wheel)
{
	u32 levels = wheel->levels & ~1U;

	while (levels) {
		unsigned int l = fls(levels) - 1;
		s64 position = tw_position(l, wheel->clk);
		struct tw_list *list = tw_slot(wheel, l, position);

		if (list->count > TW_SMALL_SLOT)
			return list;
		list = tw_slot(wheel, l, position + 1);
		if (list->count > TW_SMALL_SLOT)
			return list;
		levels &= ~(1U << l);
	}
	return NULL;
}

/* The earliest that one of the few nodes of a slot expires. */
static s64 tw_list_first(const struct tw_wheel *wheel,
			 const struct tw_list *list)
{
	s64 first = TW_NEVER;
	u32 index;

	for (index = list->first; index != TW_NIL;
	     index = tw_node(wheel->table, index)->next)
		first = min(first, tw_node(wheel->table, index)->expires);
	return first;
}

/* When the wheel has to look at @level for the first time. */
static s64 tw_level_next(const struct tw_wheel *wheel, unsigned int level)
{
	s64 position = tw_find(wheel, level, tw_position(level, wheel->clk));
	const struct tw_list *list = tw_slot(wheel, level, position);
	s64 next;

	if (!level)
		return position;
	if (list->count > TW_SMALL_SLOT)
		return tw_position_start(level, position - 1);
	/*
	 * Nodes that were moved to later may expire after the slot's end, by
	 * which it has to be empty.
	 */
	next = min(tw_list_first(wheel, list),
		   tw_position_start(level, position + 1) - 1);
	/* The slot after it may want to be preloaded meanwhile. */
	list = tw_slot(wheel, level, position + 1);
	if (list->count > TW_SMALL_SLOT)
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
	struct tw_list *list;
	s64 due;

	step->expired = 0;
	due = tw_first_due(wheel, &level);
	if (due <= step->now) {
		wheel->clk = max(wheel->clk, due);
		if (level)
			tw_bring_down(wheel, tw_slot(wheel, level,
						     tw_position(level, due)),
				      step);
		else
			tw_expire(wheel, step);
		return true;
	}

	wheel->clk = max(wheel->clk, step->now + 1);
	list = tw_preload_slot(wheel);
	if (!list) {
		wheel->next = tw_wheel_next(wheel);
		return false;
	}
	tw_bring_down(wheel, list, step);
	return true;
}

/**
 * tw_wheel_first() - any pending node
 * @wheel: the wheel
 *
 * Return: index of a pending node, of the earliest of its level, or TW_NIL.
 */
u32 tw_wheel_first(const struct tw_wheel *wheel)
{
	unsigned int level;

	if (!wheel->levels)
		return TW_NIL;
	level = fls(wheel->levels) - 1;
	return tw_slot(wheel, level,
		       tw_find(wheel, level, tw_position(level, wheel->clk)))->first;
}
