// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later
/*
 * The cascading timer wheel: how it finds the next slot, cascades, expires and follows a
 * clock that is set back. See wheel.h.
 */
#include <linux/string.h>

#include "wheel.h"

#define TW_WHEEL tw_wheel
#define TW_SHIFT TW_LVL_CLK_SHIFT
#include "levels.h"

static inline u32 tw_count(const struct tw_wheel *wheel, unsigned int slot)
{
	return wheel->slots[slot].count;
}

/**
 * tw_wheel_init() - make an empty wheel
 * @wheel: the wheel
 * @table: the table of its nodes
 * @clock: the clock of its deadlines
 * @now: the tick that it is now
 * @phase: any number, best one that wheels of the same machine don't share: see wheel.h
 *
 * tw_wheel_set_slots() has to follow before the first node is added.
 */
void tw_wheel_init(struct tw_wheel *wheel, struct tw_table *table,
		   const struct tw_clock *clock, s64 now, u32 phase)
{
	unsigned int i;

	memset(wheel, 0, sizeof(*wheel));
	wheel->table = table;
	wheel->clock = *clock;
	wheel->base = clock->tick_offset + 1;
	wheel->phase = phase;
	for (i = 0; i < TW_LVL_DEPTH; i++) {
		wheel->level[i].shift = i * TW_LVL_CLK_SHIFT;
		wheel->level[i].slots = i * TW_LVL_SIZE;
	}
	tw_wheel_set_clk(wheel, now + 1);
	wheel->next = TW_NEVER;
}

/* The wheel's time is @clk, to which there is nothing to do. */
void tw_wheel_set_clk(struct tw_wheel *wheel, s64 clk)
{
	unsigned int level;

	wheel->clk = clk;
	wheel->done_ns = max(wheel->done_ns, (clk - 1 - wheel->clock.tick_offset) *
					     wheel->clock.tick);
	for (level = 0; level < wheel->depth; level++) {
		s64 reach = tw_reach(level, clk);

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
	s64 spans = (wheel->clock.tick_offset + back) & ~(TW_SPAN - 1);
	unsigned int level;

	wheel->clock.tick_offset += back - spans;
	wheel->base += back - spans;
	wheel->clk -= spans;
	if (wheel->next != TW_NEVER)
		wheel->next -= spans;
	for (level = 0; level < wheel->depth; level++)
		wheel->level[level].reach -= spans;
	wheel->inspect = wheel->level[0].reach;
	wheel->set_back = true;
	if (wheel->ready.count)
		wheel->ready.until = TW_NEVER;
	return back - spans;
}

/**
 * tw_wheel_settle() - can nodes be added and moved as if the clock was never set back?
 * @wheel: the wheel, to be asked when its @set_back is true
 *
 * Nodes that expired before the clock was set back count as ready by the old @done_ns. As
 * long as some of them are not read, @done_ns can't go back. A node that is added then
 * with a deadline before it gets TW_NODE_INSPECT from tw_wheel_add().
 *
 * Return: true if so. Then @set_back is false again.
 */
bool tw_wheel_settle(struct tw_wheel *wheel)
{
	s64 done_ns = (wheel->clk - 1 - wheel->clock.tick_offset) * wheel->clock.tick;

	if (wheel->ready.count && done_ns < wheel->done_ns)
		return false;
	wheel->done_ns = done_ns;
	wheel->set_back = false;
	wheel->ready.until = 0;
	return true;
}

/* A slot, that of @tick, got its first node or one that makes it large. */
void tw_slot_grown(struct tw_wheel *wheel, unsigned int slot, s64 tick)
{
	unsigned int level = slot / TW_LVL_SIZE;
	s64 position = tw_position(level, tick);
	u32 count = tw_count(wheel, slot);

	if (count == 1)
		tw_slot_begin(wheel, slot);
	else if (count == TW_SMALL_SLOT + 1 && level)
		wheel->next = min(wheel->next, tw_preload_start(wheel, level, position));
}

/* The last node of a slot is gone. */
void tw_slot_empty(struct tw_wheel *wheel, unsigned int slot)
{
	wheel->slots[slot].inspect = 0;
	wheel->slots[slot].stripes = 0;
	tw_slot_end(wheel, slot);
}

/* Where a node belongs by now */
static s64 tw_node_tick(const struct tw_wheel *wheel, const struct tw_node *node)
{
	return tw_clock_expires(&wheel->clock, node->deadline,
				node->flags & TW_NODE_SLACK);
}

/* A node is further away than there are levels: put it to what comes last. */
void tw_wheel_place_far(struct tw_wheel *wheel, struct tw_node *node, u32 index)
{
	wheel->far = true;
	tw_wheel_place(wheel, node, index, wheel->level[wheel->depth - 1].reach - 1);
}

/* Put a node to @tick, or to what comes next to that. */
static void tw_put(struct tw_wheel *wheel, struct tw_node *node, u32 index, s64 tick)
{
	tick = clamp(tick, wheel->clk, wheel->clk + TW_REACH - 1);
	tw_wheel_place(wheel, node, index, tick);
	if (node->flags & TW_NODE_INSPECT)
		wheel->slots[node->slot].inspect = 1;
}

/* The slow path of tw_wheel_add(): the node has slack, or a deadline before @done_ns. */
void tw_wheel_place_special(struct tw_wheel *wheel, struct tw_node *node, u32 index)
{
	s64 tick = tw_node_tick(wheel, node);

	node->flags &= TW_NODE_PERIODIC | TW_NODE_SLACK;
	if (node->flags & TW_NODE_SLACK || node->deadline <= wheel->done_ns)
		node->flags |= TW_NODE_INSPECT;
	tw_put(wheel, node, index, tick);
}

/* The slow path of tw_wheel_mod(): the node has flags, or is ready, or gets slack. */
void tw_wheel_mod_special(struct tw_wheel *wheel, struct tw_node *node, u32 index,
			  s64 deadline, unsigned int slack_shift)
{
	tw_wheel_del(wheel, node, index);
	node->deadline = deadline;
	node->flags = (node->flags & TW_NODE_PERIODIC) | slack_shift;
	wheel->pending++;
	tw_wheel_place_special(wheel, node, index);
}

static unsigned int tw_ready_stripe(const struct tw_wheel *wheel, u32 index)
{
	return TW_READY_STRIPE(index & wheel->level[0].stripe_mask);
}

/* Put a node, which is on no list, at the end of one of what is ready. */
static void tw_ready_append(struct tw_wheel *wheel, unsigned int list,
			    struct tw_node *node, u32 index)
{
	tw_list_append(wheel->table->dir, &wheel->ready.list[list], node, index);
	wheel->ready.lists |= 1U << list;
	wheel->ready.count++;
}

/**
 * tw_wheel_add_ready() - add a node that is on no list and expires at once
 * @wheel: the wheel
 * @node: the node
 * @index: its index
 */
void tw_wheel_add_ready(struct tw_wheel *wheel, struct tw_node *node, u32 index)
{
	node->flags &= ~TW_NODE_INSPECT;
	node->flags |= TW_NODE_READY | TW_NODE_AT_ONCE;
	tw_ready_append(wheel, TW_AT_ONCE, node, index);
}

/* The list begins with @first now. */
static void tw_list_cut(const struct tw_wheel *wheel, struct tw_list *list, u32 first)
{
	list->first = first;
	if (first)
		tw_wheel_node(wheel, first)->prev = 0;
	else
		list->last = 0;
}

/* Nodes are not ready any more. */
static void tw_ready_less(struct tw_wheel *wheel, u32 nr)
{
	wheel->ready.count -= nr;
	if (!wheel->ready.count)
		wheel->ready.until = 0;
}

/* Take out a node that is ready. */
void tw_ready_unlink(struct tw_wheel *wheel, struct tw_node *node, u32 index)
{
	struct tw_list *list = &wheel->ready.list[node->flags & TW_NODE_AT_ONCE ?
						  TW_AT_ONCE : tw_ready_stripe(wheel, index)];

	if (node->prev)
		tw_wheel_node(wheel, node->prev)->next = node->next;
	else
		list->first = node->next;
	if (node->next)
		tw_wheel_node(wheel, node->next)->prev = node->prev;
	else
		list->last = node->prev;
	tw_ready_less(wheel, 1);
}

/* All ready nodes up to @reader->until were read: find the tick that comes after it. */
void tw_reader_next_tick(const struct tw_wheel *wheel, struct tw_reader *reader)
{
	u32 stripes = reader->left & TW_READY_STRIPES;
	s64 first = TW_NEVER, tick;

	reader->live = reader->left;
	if (!stripes)
		return;
	for (; stripes; stripes &= stripes - 1) {
		u32 at = reader->at[__ffs(stripes)];

		first = min(first, tw_wheel_node(wheel, at)->deadline);
	}
	tick = tw_clock_expires(&wheel->clock, first, 0);
	reader->until = max(first, tw_clock_tick_ns(&wheel->clock, tick));
}

/**
 * tw_reader_cut() - take out the nodes that a reader came to
 * @wheel: the wheel
 * @reader: where it is
 *
 * They are on no list then.
 */
void tw_reader_cut(struct tw_wheel *wheel, const struct tw_reader *reader)
{
	u32 lists;

	for (lists = wheel->ready.lists; lists; lists &= lists - 1) {
		unsigned int i = __ffs(lists);

		if (reader->at[i] != wheel->ready.list[i].first)
			tw_list_cut(wheel, &wheel->ready.list[i], reader->at[i]);
	}
	wheel->ready.lists = reader->left;
	wheel->ready.until = reader->until;
	wheel->ready.live = reader->live;
	wheel->ready.round = reader->round;
	tw_ready_less(wheel, reader->nr);
}

/* Put a node of a slot to where it belongs by now. */
static __always_inline void tw_move(struct tw_wheel *wheel, struct tw_node *node, u32 index)
{
	if (likely(!(node->flags & TW_NODE_SPECIAL)))
		tw_wheel_place_plain(wheel, node, index);
	else
		tw_put(wheel, node, index, tw_node_tick(wheel, node));
}

/* Cascade nodes of a slot to where they belong by now, as the budget allows. */
static void tw_cascade(struct tw_wheel *wheel, unsigned int slot,
		       struct tw_step *step)
{
	u32 nr = min(tw_count(wheel, slot), step->budget - 1);
	unsigned int i, left, mask;
	struct tw_list *lists = tw_slot_lists(wheel, slot, &mask);
	u32 all = wheel->slots[slot].stripes, stripes;
	const unsigned long *dir = wheel->table->dir;
	u32 at[TW_STRIPES] = {};

	for (stripes = all; stripes; stripes &= stripes - 1) {
		i = __ffs(stripes);
		at[i] = lists[i].first;
		prefetchw(tw_dir_at(dir, at[i]));
	}
	for (i = 0, left = nr; left; i = (i + 1) & mask) {
		u32 index = at[i];
		struct tw_node *node;

		if (!index)
			continue;
		node = tw_dir_at(dir, index);
		at[i] = node->next;
		prefetchw(tw_dir_at(dir, node->next));
		tw_move(wheel, node, index);
		left--;
	}
	for (stripes = all; stripes; stripes &= stripes - 1) {
		i = __ffs(stripes);
		tw_list_cut(wheel, &lists[i], at[i]);
	}
	wheel->slots[slot].count -= nr;
	if (!tw_count(wheel, slot))
		tw_slot_empty(wheel, slot);
	step->budget -= 1 + nr;
	step->moved += nr;
}

/* Expire a node of a slot, the first of a list, or put it to where it belongs. */
static void tw_expire_node(struct tw_wheel *wheel, struct tw_node *node, u32 index,
			   struct tw_step *step)
{
	s64 tick = tw_node_tick(wheel, node);

	if (tick > wheel->clk) {
		tw_put(wheel, node, index, tick);
		step->moved++;
		return;
	}
	node->flags &= ~TW_NODE_INSPECT;
	node->flags |= TW_NODE_READY;
	tw_ready_append(wheel, tw_ready_stripe(wheel, index), node, index);
	wheel->pending--;
	step->expired++;
}

/* Expire a slot node by node: some of them may have to wait for a later tick. */
static void tw_expire_nodes(struct tw_wheel *wheel, unsigned int slot,
			    struct tw_step *step)
{
	unsigned int i, mask;
	struct tw_list *lists = tw_slot_lists(wheel, slot, &mask);

	for (i = 0; i <= mask; i++) {
		u32 index;

		while ((index = lists[i].first) && step->budget) {
			struct tw_node *node = tw_wheel_node(wheel, index);

			tw_list_cut(wheel, &lists[i], node->next);
			wheel->slots[slot].count--;
			step->budget--;
			tw_expire_node(wheel, node, index, step);
		}
	}
	if (!tw_count(wheel, slot))
		tw_slot_empty(wheel, slot);
}

/* Put a list at the end of another, and leave it empty. */
static void tw_list_splice(const struct tw_wheel *wheel, struct tw_list *list,
			   struct tw_list *to)
{
	if (!list->first)
		return;
	if (to->last) {
		tw_wheel_node(wheel, to->last)->next = list->first;
		tw_wheel_node(wheel, list->first)->prev = to->last;
	} else {
		to->first = list->first;
	}
	to->last = list->last;
	*list = (struct tw_list){};
}

/* Expire a slot whole: in constant time, however many nodes it has. */
static void tw_expire_slot(struct tw_wheel *wheel, unsigned int slot,
			   struct tw_step *step)
{
	u32 count = tw_count(wheel, slot);
	u32 stripes = wheel->slots[slot].stripes;
	unsigned int mask;
	struct tw_list *lists = tw_slot_lists(wheel, slot, &mask);

	wheel->ready.lists |= stripes << TW_READY_STRIPE(0);
	for (; stripes; stripes &= stripes - 1) {
		unsigned int i = __ffs(stripes);

		tw_list_splice(wheel, &lists[i], &wheel->ready.list[TW_READY_STRIPE(i)]);
	}
	wheel->ready.count += count;
	wheel->pending -= count;
	step->expired = count;
	wheel->slots[slot].count = 0;
	tw_slot_empty(wheel, slot);
}

static void tw_expire(struct tw_wheel *wheel, struct tw_step *step)
{
	unsigned int slot = tw_slot_nr(0, wheel->clk);

	step->tick = wheel->clk;
	step->budget--;
	if (wheel->slots[slot].inspect || wheel->clk < wheel->inspect)
		tw_expire_nodes(wheel, slot, step);
	else
		tw_expire_slot(wheel, slot, step);
	/* Only now are all its nodes ready. */
	if (!tw_count(wheel, slot))
		tw_wheel_set_clk(wheel, wheel->clk + 1);
}

/*
 * Look for a slot to be preloaded by now, at the present position or the one after it.
 * Returns false if there is none.
 */
static bool tw_preload_slot(const struct tw_wheel *wheel, struct tw_step *step,
			    unsigned int *slot)
{
	u32 levels = wheel->levels & ~1U;

	while (levels) {
		unsigned int l = fls(levels) - 1;
		s64 position = tw_position(l, wheel->clk);

		*slot = tw_slot_nr(l, position);
		if (tw_count(wheel, *slot) > TW_SMALL_SLOT)
			return true;
		*slot = tw_slot_nr(l, position + 1);
		if (tw_count(wheel, *slot) > TW_SMALL_SLOT &&
		    step->now >= tw_preload_start(wheel, l, position + 1))
			return true;
		levels &= ~(1U << l);
	}
	return false;
}

/* The earliest that one of the few nodes of a slot expires. */
static s64 tw_slot_next(const struct tw_wheel *wheel, unsigned int slot)
{
	u32 stripes = wheel->slots[slot].stripes;
	unsigned int mask;
	const struct tw_list *lists = tw_slot_lists(wheel, slot, &mask);
	s64 first = TW_NEVER;

	for (; stripes; stripes &= stripes - 1) {
		const struct tw_node *node;
		u32 index;

		for (index = lists[__ffs(stripes)].first; index; index = node->next) {
			node = tw_wheel_node(wheel, index);
			first = min(first, tw_node_tick(wheel, node));
		}
	}
	return first;
}

/* The tick at which @level first has something to do, or @next if that is earlier. */
static s64 tw_level_next(const struct tw_wheel *wheel, unsigned int level, s64 next)
{
	s64 position = tw_find(wheel, level);
	unsigned int slot = tw_slot_nr(level, position);

	if (!level)
		return position;
	if (tw_count(wheel, slot) > TW_SMALL_SLOT)
		return min(next, tw_preload_start(wheel, level, position));
	/*
	 * Nodes that were moved to later may expire after the slot's end, by
	 * which it has to be empty.
	 */
	if (tw_position_start(level, position) < next) {
		next = min(next, tw_position_start(level, position + 1) - 1);
		next = min(next, tw_slot_next(wheel, slot));
	}
	/* The slot after it may be large, and then it is preloaded meanwhile. */
	slot = tw_slot_nr(level, position + 1);
	if (tw_count(wheel, slot) > TW_SMALL_SLOT)
		next = min(next, tw_preload_start(wheel, level, position + 1));
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
	s64 next = TW_NEVER;
	u32 levels;

	for (levels = wheel->levels; levels; levels &= levels - 1)
		next = tw_level_next(wheel, __ffs(levels), next);
	return next;
}

/* Levels get their lists, and reach as far as they do when it is @wheel->clk. */
static void tw_set_levels(struct tw_wheel *wheel, bool few)
{
	struct tw_list *lists = (void *)&wheel->slots[few ? TW_FEW_SLOTS : TW_SLOTS];
	unsigned int i;

	wheel->depth = few ? TW_FEW_LEVELS : TW_LVL_DEPTH;
	for (i = 0; i < wheel->depth; i++) {
		struct tw_level *level = &wheel->level[i];

		level->stripe_bits = i < TW_STRIPED_LEVELS && !few ? TW_STRIPE_BITS : 0;
		level->stripe_mask = (1U << level->stripe_bits) - 1;
		level->reach = tw_reach(i, wheel->clk);
		level->lists = lists;
		lists += TW_LVL_SIZE << level->stripe_bits;
	}
	if (few)
		wheel->level[i].reach = TW_NEVER;
}

/* Put a list before a chain of nodes that begins with @first; returns the first of both. */
static u32 tw_list_chain(const struct tw_wheel *wheel, const struct tw_list *list, u32 first)
{
	if (!list->first)
		return first;
	tw_wheel_node(wheel, list->last)->next = first;
	return list->first;
}

/* All nodes in slots, as a chain */
static u32 tw_chain_pending(const struct tw_wheel *wheel)
{
	struct tw_list *lists = (void *)&wheel->slots[TW_FEW_SLOTS];
	unsigned int slot;
	u32 first = 0;

	for (slot = TW_FEW_SLOTS; slot--; )
		first = tw_list_chain(wheel, &lists[slot], first);
	return first;
}

/* Ready nodes of a wheel that had no stripes go to those that they have now. */
static void tw_stripe_ready(struct tw_wheel *wheel)
{
	struct tw_ready *ready = &wheel->ready;
	u32 index = ready->list[TW_READY_STRIPE(0)].first, next;

	ready->list[TW_READY_STRIPE(0)] = (struct tw_list){};
	for (; index; index = next) {
		struct tw_node *node = tw_wheel_node(wheel, index);

		next = node->next;
		tw_list_append(wheel->table->dir, &ready->list[TW_READY_STRIPE(index)],
			       node, index);
		ready->lists |= 1U << TW_READY_STRIPE(index);
	}
	if (ready->live & 1U << TW_READY_STRIPE(0))
		ready->live |= ready->lists & TW_READY_STRIPES;
}

/**
 * tw_wheel_set_slots() - give the wheel its slots
 * @wheel: the wheel, which has none; or which is small, as tw_wheel_is_small() says
 * @slots: memory for them, all 0
 * @few: false: TW_SLOTS_BYTES; true, but not for a wheel that has some: TW_FEW_SLOTS_BYTES
 *
 * Nodes in slots are moved to the new ones, in a time that grows with them: they are
 * not to be more than those of a chunk. The old slots are the caller's again.
 */
void tw_wheel_set_slots(struct tw_wheel *wheel, struct tw_slot *slots, bool few)
{
	u32 index = wheel->pending ? tw_chain_pending(wheel) : 0, next;

	wheel->slots = slots;
	tw_set_levels(wheel, few);
	wheel->far = false;
	if (!few)
		tw_stripe_ready(wheel);
	if (!index)
		return;
	memset(wheel->occupied, 0, sizeof(wheel->occupied));
	wheel->levels = 0;
	for (; index; index = next) {
		struct tw_node *node = tw_wheel_node(wheel, index);

		next = node->next;
		tw_move(wheel, node, index);
	}
	wheel->next = tw_wheel_next(wheel);
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
	unsigned int slot;
	s64 due;

	step->expired = 0;
	due = tw_first_due(wheel, &level);
	if (due <= step->now) {
		if (due > wheel->clk)
			tw_wheel_set_clk(wheel, due);
		if (level)
			tw_cascade(wheel, tw_slot_nr(level, tw_position(level, due)), step);
		else
			tw_expire(wheel, step);
		if (wheel->clk <= step->now)
			return true;
		/* Mostly nothing else is due. Then the caller need not come again. */
		wheel->next = tw_wheel_next(wheel);
		return wheel->next <= step->now;
	}

	if (step->now >= wheel->clk)
		tw_wheel_set_clk(wheel, step->now + 1);
	if (!tw_preload_slot(wheel, step, &slot)) {
		wheel->next = tw_wheel_next(wheel);
		return false;
	}
	tw_cascade(wheel, slot, step);
	step->left = tw_count(wheel, slot);
	return true;
}

/**
 * tw_wheel_first() - any pending node
 * @wheel: the wheel
 * @index: out: its index
 *
 * Return: a pending node, of the earliest of its level, or NULL.
 */
struct tw_node *tw_wheel_first(const struct tw_wheel *wheel, u32 *index)
{
	const struct tw_list *list;
	unsigned int mask;

	if (!wheel->levels)
		return NULL;
	list = tw_slot_lists(wheel, tw_any_slot(wheel), &mask);
	while (!list->first)
		list++;
	*index = list->first;
	return tw_wheel_node(wheel, *index);
}
