/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * The cascading timer wheel: it keeps timers by the tick at which they expire.
 *
 * A wheel has levels of slots, and a slot is a list of nodes, see table.h. On level 0 a
 * slot is one tick wide. On each further level it is TW_LVL_CLK_DIV times as wide:
 *
 * Level  Granularity  Range       Range with ticks of
 *        (ticks)      (ticks)     4 ms         1 us
 *   0    1            2^6         256 ms       64 us
 *   1    2^6          2^12        16 s         4 ms
 *   2    2^12         2^18        17 min       262 ms
 *   3    2^18         2^24        18 h         16 s
 *   4    2^24         2^30        49 days      17 min
 *   5    2^30         2^36        8 years      19 h
 *   6    2^36         2^42        557 years    50 days
 *   7    2^42         2^48                     8 years
 *   8    2^48         2^54                     571 years
 *
 * The range is what a level holds at least. It has TW_LVL_SIZE slots: one turn of
 * TW_LVL_CLK_DIV slots that runs at present, and the next one. A node is put on the
 * lowest level on which its tick lies in one of the two.
 *
 * How a node travels: It waits in a wide slot. When the wheel's time comes to that slot,
 * the slot cascades: each of its nodes is put on a lower level, by what its deadline is
 * then. A node comes to level 0 at last. When its tick comes, its slot expires, and the
 * node is on a list of nodes that are ready. There it stays until it is read.
 *
 * Preloading: As each level has room for the next turn, a slot can cascade while the slot
 * before it still runs. A large slot does that ahead of time and in pieces. Each piece
 * keeps to a budget, and there is most of a slot's time for them. Each wheel begins at a
 * time of its own (@phase), in the first quarter of the slot before. So a thousand wheels
 * do not have a slot to preload at the same tick.
 *
 * Moving to later: A node that gets a later deadline stays where it is, unless it is on
 * level 0. The wheel finds the new deadline when the slot cascades.
 *
 * Stripes: On the lowest levels, a slot is several lists, and a node's index says which
 * of them it is on. A walk along a slot takes a node of each list in turn, so that
 * several nodes are on their way from memory at a time. A slot that expires is spliced to
 * the lists of ready nodes, stripe by stripe, without touching its nodes.
 *
 * Few timers: A wheel begins with the lowest levels, without stripes. A node that is too far
 * away for them waits in the last slot of the highest. That only takes more wake-ups, so nothing
 * that happens as time passes needs memory. But then, or when its nodes become many, the caller
 * gives the wheel all slots, and its nodes are moved there.
 *
 * How ready nodes differ from pending ones: A node is ready if its deadline is not
 * after the wheel's time (@done_ns), so nothing has to be written to a node that expires.
 * That does not hold for a node with slack, and not for some time after the clock was set
 * back. Then a slot does not expire as a whole: each of its nodes is inspected, and each
 * that expires gets the flag TW_NODE_READY.
 *
 * When the clock is set back: The wheel's ticks go on, and all deadlines are that much
 * further ahead, so nodes are in slots that come too early. Cascading puts them right on
 * the upper levels, and after two turns all nodes of level 0 are new. Nodes that were
 * ready before have deadlines that lie ahead again. Until they are read, nodes that are
 * added with such deadlines get the flag TW_NODE_INSPECT, so that they count as pending.
 *
 * Pure: no locks, no time sources, no allocation. The caller serialises all calls on a
 * wheel.
 */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/types.h>

#include "clock.h"
#include "sizes.h"
#include "table.h"

#define TW_REACH (1LL << TW_REACH_BITS)

/* No tick: later than all. */
#define TW_NEVER S64_MAX

#define TW_LVL_CLK_DIV (1U << TW_LVL_CLK_SHIFT)
#define TW_LVL_SIZE (2 * TW_LVL_CLK_DIV)
#define TW_LVL_MASK (TW_LVL_SIZE - 1)
#define TW_LVL_DEPTH ((TW_REACH_BITS + TW_LVL_CLK_SHIFT - 1) / TW_LVL_CLK_SHIFT)
#define TW_SLOTS (TW_LVL_DEPTH * TW_LVL_SIZE)
#define TW_LVL_WORDS ((TW_LVL_SIZE + 63) / 64)

/* Ticks that are so far apart have the same slot on each level. A power of 2 */
#define TW_SPAN ((s64)TW_LVL_SIZE << ((TW_LVL_DEPTH - 1) * TW_LVL_CLK_SHIFT))

#define TW_STRIPES (1U << TW_STRIPE_BITS)
#define TW_STRIPED_SLOTS (TW_STRIPED_LEVELS * TW_LVL_SIZE)
#define TW_FEW_SLOTS (TW_FEW_LEVELS * TW_LVL_SIZE)
#define TW_LISTS (TW_STRIPED_SLOTS * TW_STRIPES + TW_SLOTS - TW_STRIPED_SLOTS)

/**
 * struct tw_list - list of nodes
 * @first: index of the first, or 0
 * @last: index of the last, or 0
 */
struct tw_list {
	u32 first;
	u32 last;
};

/**
 * struct tw_slot - a slot, but for its lists
 * @count: number of nodes in it
 * @inspect: if not 0, a slot of level 0 that must not expire whole: each of its nodes is
 *	inspected
 * @stripes: a bit for each of its lists that is not empty, and for some that are
 */
struct tw_slot {
	u32 count;
	u16 inspect;
	u16 stripes;
};

/*
 * Memory of all slots, or of few: the slots, and then their lists, TW_STRIPES for each of a
 * striped level, and then one for each
 */
#define TW_SLOTS_BYTES (TW_SLOTS * sizeof(struct tw_slot) + TW_LISTS * sizeof(struct tw_list))
#define TW_FEW_SLOTS_BYTES (TW_FEW_SLOTS * (sizeof(struct tw_slot) + sizeof(struct tw_list)))

/**
 * struct tw_level - a level
 * @reach: the first tick that is beyond its two turns
 * @lists: where its lists begin; NULL if the wheel has no such level
 * @slots: number of its first slot
 * @shift: its slots are 2^this ticks wide
 * @stripe_bits: they have 2^this lists each
 * @stripe_mask: one less than that
 */
struct tw_level {
	s64 reach;
	struct tw_list *lists;
	u32 slots;
	u32 shift;
	u32 stripe_bits;
	u32 stripe_mask;
};

/*
 * The lists of ready nodes: one for each stripe, and TW_AT_ONCE for nodes that were due
 * when they were added. The latter stay in the order in which they came.
 */
#define TW_AT_ONCE 0
#define TW_READY_STRIPE(index) (1 + (index) % TW_STRIPES)
#define TW_READY_LISTS (1 + TW_STRIPES)
#define TW_READY_STRIPES (~(1U << TW_AT_ONCE))

/**
 * struct tw_ready - nodes that have expired
 * @list: the nodes
 * @until: a time in ns. From the stripes, nodes with deadlines up to it are read first,
 *	so that events come in the order of their ticks. TW_NEVER: nodes were ready when the
 *	clock was set back, so their deadlines are in the future, and all lists are read in
 *	turn
 * @count: how many nodes
 * @lists: a bit for each list that is not empty, and for some that are
 * @live: a bit for each list that may have one that can be read
 * @round: a bit for each list that is yet to give a node, before any gives two
 */
struct tw_ready {
	struct tw_list list[TW_READY_LISTS];
	s64 until;
	u32 count;
	u32 lists;
	u32 live;
	u32 round;
};

/**
 * struct tw_wheel - a wheel
 * @table: the table of its nodes
 * @clock: makes ticks of deadlines
 * @slots: its slots, with their lists
 * @clk: the tick that comes next. All ticks before it are done
 * @done_ns: the time in ns at which the tick before @clk began. A node without
 *	TW_NODE_INSPECT is ready if its deadline is not after this
 * @next: there is nothing to do before this tick
 * @base: the first tick of the wheel after the host's time 0: one more than @clock
 *	is shifted
 * @phase: where in a slot's width this wheel begins to preload the next
 * @pending: nodes in slots
 * @depth: how many levels it has
 * @far: a node is further away than these reach
 * @levels: bit n is set when level n has an occupied slot
 * @level: the levels
 * @ready: expired nodes
 * @occupied: a bit for each slot
 * @inspect: no slot of level 0 before this tick may expire whole: it may hold nodes that
 *	came there before @clock was set back
 * @set_back: @clock was set back, and so @done_ns is later than @clk says. See
 *	tw_wheel_settle()
 */
struct tw_wheel {
	struct tw_table *table;
	struct tw_clock clock;
	struct tw_slot *slots;
	s64 clk;
	s64 done_ns;
	s64 next;
	s64 base;
	u32 phase;
	u32 pending;
	u16 depth;
	bool far;
	u32 levels;
	struct tw_level level[TW_LVL_DEPTH];
	struct tw_ready ready;
	u64 occupied[TW_LVL_DEPTH][TW_LVL_WORDS];
	s64 inspect;
	bool set_back;
};

/**
 * struct tw_step - one step of the wheel: its arguments and its results
 * @now: in: the present tick
 * @stamp: in: the present time in ns, which the wheel itself does not need
 * @budget: in, out: nodes and slots that may yet be touched
 * @expired: out: how many nodes were made ready
 * @left: out: how many nodes are left in the slot that cascades
 * @tick: out: the tick whose nodes were made ready
 * @moved: out: nodes that were put in other slots, summed up
 */
struct tw_step {
	s64 now;
	s64 stamp;
	u32 budget;
	u32 expired;
	u32 left;
	s64 tick;
	u64 moved;
};

/**
 * struct tw_reader - a walk along nodes that are ready, in the order of their ticks
 * @at: index of the next node of each list that had any, or 0
 * @left: a bit for each list that has any
 * @live: of these, a bit for each list that may have one that can be read
 * @round: as in &struct tw_ready
 * @nr: nodes that it came to so far
 * @until: as in &struct tw_ready
 * @dir: that of the table
 */
struct tw_reader {
	u32 at[TW_READY_LISTS];
	u32 left;
	u32 live;
	u32 round;
	u32 nr;
	s64 until;
	const unsigned long *dir;
};

void tw_wheel_init(struct tw_wheel *wheel, struct tw_table *table,
		   const struct tw_clock *clock, s64 now, u32 phase);
void tw_wheel_set_slots(struct tw_wheel *wheel, struct tw_slot *slots, bool few);
void tw_wheel_set_clk(struct tw_wheel *wheel, s64 clk);
s64 tw_wheel_set_back(struct tw_wheel *wheel, s64 now);
bool tw_wheel_settle(struct tw_wheel *wheel);
void tw_wheel_add_ready(struct tw_wheel *wheel, struct tw_node *node, u32 index);
bool tw_wheel_step(struct tw_wheel *wheel, struct tw_step *step);
s64 tw_wheel_next(const struct tw_wheel *wheel);
struct tw_node *tw_wheel_first(const struct tw_wheel *wheel, u32 *index);

/* The rare parts of what follows. */
void tw_slot_empty(struct tw_wheel *wheel, unsigned int slot);
void tw_slot_grown(struct tw_wheel *wheel, unsigned int slot, s64 tick);
void tw_wheel_place_far(struct tw_wheel *wheel, struct tw_node *node, u32 index);
void tw_wheel_place_special(struct tw_wheel *wheel, struct tw_node *node, u32 index);
void tw_ready_unlink(struct tw_wheel *wheel, struct tw_node *node, u32 index);
void tw_wheel_mod_special(struct tw_wheel *wheel, struct tw_node *node, u32 index,
			  s64 deadline, unsigned int slack_shift);
void tw_reader_next_tick(const struct tw_wheel *wheel, struct tw_reader *reader);

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
		return node->deadline <= wheel->done_ns;
	return node->flags & TW_NODE_READY;
}

/* Has it all its slots yet? */
static inline bool tw_wheel_is_small(const struct tw_wheel *wheel)
{
	return wheel->depth < TW_LVL_DEPTH;
}

/**
 * tw_is_plain() - can a node take the fast path?
 * @wheel: the wheel
 * @node: a node of it
 *
 * Return: true if it is pending and has no flags. A periodic node has some, and so has a
 * node with slack, and one that has to be inspected.
 */
static __always_inline bool tw_is_plain(const struct tw_wheel *wheel,
					const struct tw_node *node)
{
	return likely(!node->flags && node->deadline > wheel->done_ns);
}

/* The lists of a slot, and how many more than one there are */
static inline struct tw_list *tw_slot_lists(const struct tw_wheel *wheel,
					    unsigned int slot,
					    unsigned int *stripe_mask)
{
	const struct tw_level *level = &wheel->level[slot / TW_LVL_SIZE];

	*stripe_mask = level->stripe_mask;
	return level->lists + (slot % TW_LVL_SIZE << level->stripe_bits);
}

static inline struct tw_list *tw_slot_list(const struct tw_wheel *wheel,
					   unsigned int slot, u32 index)
{
	unsigned int stripe_mask;
	struct tw_list *lists = tw_slot_lists(wheel, slot, &stripe_mask);

	return lists + (index & stripe_mask);
}

static inline struct tw_node *tw_wheel_node(const struct tw_wheel *wheel, u32 index)
{
	return tw_node_at(wheel->table, index);
}

/* Returns true if it is the first of the list. */
static __always_inline bool tw_list_append(const unsigned long *dir,
					   struct tw_list *list,
					   struct tw_node *node, u32 index)
{
	u32 last = list->last;

	node->prev = last;
	node->next = 0;
	list->last = index;
	if (likely(last))
		tw_dir_at(dir, last)->next = index;
	else
		list->first = index;
	return unlikely(!last);
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

/* The tick at which a deadline expires that has no slack. */
static __always_inline s64 tw_wheel_tick(const struct tw_wheel *wheel,
					 s64 deadline)
{
	return tw_clock_divide(&wheel->clock, deadline - 1) + wheel->base;
}

/* Put a node into the slot of its tick. */
static __always_inline void tw_wheel_place(struct tw_wheel *wheel,
					   struct tw_node *node, u32 index, s64 tick)
{
	const struct tw_level *level = wheel->level;
	unsigned long position;
	unsigned int slot, stripe;

	while (tick >= level->reach)
		level++;
	if (unlikely(!level->lists)) {
		tw_wheel_place_far(wheel, node, index);
		return;
	}
	position = (unsigned long)tick >> level->shift & TW_LVL_MASK;
	slot = level->slots + position;
	node->slot = slot;
	stripe = index & level->stripe_mask;
	if (tw_list_append(wheel->table->dir,
			   level->lists + (position << level->stripe_bits) + stripe,
			   node, index))
		wheel->slots[slot].stripes |= 1U << stripe;
	if (tick < wheel->next)
		wheel->next = tick;
	/* The first, and the first that is too many for a small slot. */
	if (unlikely(!(wheel->slots[slot].count++ % TW_SMALL_SLOT)))
		tw_slot_grown(wheel, slot, tick);
}

/* Put a node into a slot that is like most, and has a deadline to come. */
static __always_inline void tw_wheel_place_plain(struct tw_wheel *wheel,
						 struct tw_node *node, u32 index)
{
	s64 tick = tw_wheel_tick(wheel, node->deadline);

	/* The wheels of some unit tests reach less far than a deadline may. */
	if (TW_REACH_BITS < 54)
		tick = min(tick, wheel->clk + TW_REACH - 1);
	tw_wheel_place(wheel, node, index, tick);
}

/**
 * tw_wheel_add() - add a node that is on no list
 * @wheel: the wheel
 * @node: the node. Its deadline, its slack and its flags are set, of which only
 *	whether it is periodic matters
 * @index: its index
 *
 * A node whose deadline is not after the wheel's time should go to tw_wheel_add_ready().
 * If it comes here nevertheless, it expires at the next tick.
 */
static __always_inline void tw_wheel_add(struct tw_wheel *wheel,
					 struct tw_node *node, u32 index)
{
	wheel->pending++;
	if (likely(!(node->flags & TW_NODE_SPECIAL) && node->deadline > wheel->done_ns))
		tw_wheel_place_plain(wheel, node, index);
	else
		tw_wheel_place_special(wheel, node, index);
}

/* Take a node out of its slot. */
static __always_inline void tw_slot_unlink(struct tw_wheel *wheel,
					   struct tw_node *node, u32 index)
{
	const unsigned long *dir = wheel->table->dir;
	unsigned int slot = node->slot;
	u32 prev = node->prev, next = node->next;

	if (likely(prev))
		tw_dir_at(dir, prev)->next = next;
	else
		tw_slot_list(wheel, slot, index)->first = next;
	if (likely(next))
		tw_dir_at(dir, next)->prev = prev;
	else
		tw_slot_list(wheel, slot, index)->last = prev;
	if (unlikely(!--wheel->slots[slot].count))
		tw_slot_empty(wheel, slot);
}

/**
 * tw_wheel_del_plain() - take out a node that is plain
 * @wheel: the wheel
 * @node: the node, for which tw_is_plain() is true
 * @index: its index
 */
static __always_inline void tw_wheel_del_plain(struct tw_wheel *wheel,
					       struct tw_node *node, u32 index)
{
	wheel->pending--;
	tw_slot_unlink(wheel, node, index);
}

/**
 * tw_wheel_del() - take a node out, pending or ready
 * @wheel: the wheel
 * @node: the node
 * @index: its index
 */
static inline void tw_wheel_del(struct tw_wheel *wheel, struct tw_node *node, u32 index)
{
	if (unlikely(tw_is_ready(wheel, node)))
		tw_ready_unlink(wheel, node, index);
	else
		tw_wheel_del_plain(wheel, node, index);
}

/* Is it enough to change the deadline of a node that is pending and like most? */
static __always_inline bool tw_wheel_stays(const struct tw_node *node, s64 deadline)
{
	/* The wheel will find it where it is, and place it then. */
	return deadline >= node->deadline && node->slot >= TW_LVL_SIZE;
}

/**
 * tw_wheel_mod_plain() - change when a node expires that is plain and remains so
 * @wheel: the wheel
 * @node: the node, for which tw_is_plain() is true
 * @index: its index
 * @deadline: its new deadline, after the wheel's @done_ns
 */
static __always_inline void tw_wheel_mod_plain(struct tw_wheel *wheel,
					       struct tw_node *node, u32 index,
					       s64 deadline)
{
	if (likely(tw_wheel_stays(node, deadline))) {
		node->deadline = deadline;
		return;
	}
	tw_slot_unlink(wheel, node, index);
	node->deadline = deadline;
	tw_wheel_place_plain(wheel, node, index);
}

/**
 * tw_wheel_mod() - change when a node expires, be it pending or ready
 * @wheel: the wheel
 * @node: the node
 * @index: its index
 * @deadline: its new deadline, after the time that the wheel was forwarded to
 *	last
 * @slack_shift: its new slack
 */
static inline void tw_wheel_mod(struct tw_wheel *wheel, struct tw_node *node, u32 index,
				s64 deadline, unsigned int slack_shift)
{
	/* The fast path is for nodes that are pending by the old and the new deadline. */
	if (unlikely(node->flags & TW_NODE_SPECIAL || slack_shift ||
		     min(node->deadline, deadline) <= wheel->done_ns))
		tw_wheel_mod_special(wheel, node, index, deadline, slack_shift);
	else
		tw_wheel_mod_plain(wheel, node, index, deadline);
}

/**
 * tw_reader_init() - begin to walk along nodes that are ready
 * @wheel: the wheel
 * @reader: filled in. It holds as long as the wheel is not changed, but for what was
 *	taken out by tw_reader_cut(); to walk the same way again, init it again
 */
static inline void tw_reader_init(const struct tw_wheel *wheel,
				  struct tw_reader *reader)
{
	u32 lists;

	reader->dir = wheel->table->dir;
	reader->left = 0;
	for (lists = wheel->ready.lists; lists; lists &= lists - 1) {
		unsigned int i = __ffs(lists);
		u32 first = wheel->ready.list[i].first;

		reader->at[i] = first;
		reader->left |= !!first << i;
		prefetchw(tw_dir_at(reader->dir, first));
	}
	reader->live = reader->left & wheel->ready.live;
	if (unlikely(wheel->ready.until == TW_NEVER))
		reader->live = reader->left;
	reader->round = reader->live & wheel->ready.round;
	reader->nr = 0;
	reader->until = wheel->ready.until;
}

/**
 * tw_reader_next() - walk on
 * @wheel: the wheel
 * @reader: where it is
 * @index: out: the index of the node
 *
 * The lists give a node each in turn, of what expired at one tick. Those that were ready
 * when they came have a turn as the others do, but don't keep them from going on to the
 * next tick: otherwise a program that arms such ones again and again would.
 *
 * Return: the next node, or NULL at the end.
 */
static __always_inline struct tw_node *
tw_reader_next(const struct tw_wheel *wheel, struct tw_reader *reader, u32 *index)
{
	for (;;) {
		unsigned long list;
		struct tw_node *node;
		u32 next;

		while (unlikely(!reader->round)) {
			if (!reader->left)
				return NULL;
			if (!(reader->live & TW_READY_STRIPES))
				tw_reader_next_tick(wheel, reader);
			reader->round = reader->live;
		}
		list = __ffs(reader->round);
		reader->round &= reader->round - 1;
		*index = reader->at[list];
		node = tw_dir_at(reader->dir, *index);
		if (unlikely(node->deadline > reader->until) &&
		    reader->left & TW_READY_STRIPES) {
			reader->live &= ~(1U << list);
			continue;
		}
		next = node->next;
		prefetchw(tw_dir_at(reader->dir, next));
		reader->at[list] = next;
		if (unlikely(!next)) {
			reader->left &= ~(1U << list);
			reader->live &= ~(1U << list);
		}
		reader->nr++;
		return node;
	}
}

void tw_reader_cut(struct tw_wheel *wheel, const struct tw_reader *reader);

#endif /* TW_WHEEL_H */
