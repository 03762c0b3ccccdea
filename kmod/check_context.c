// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of a wheel in use: what it holds, and what is charged for it. See
 * check.h.
 */
#include <linux/bug.h>

#include "check.h"
#include "context.h"
#include "user.h"

/* What a look at all nodes that are on a list finds */
struct tw_seen {
	u32 timers;
	u32 periods;
};

/* A timer has an id by which it is found, and its period has none. */
static bool tw_check_timer(const struct twheel *tw, const struct tw_node *node)
{
	struct tw_node *found;

	return tw_so(tw_table_find(&tw->table, tw_id(node), &found)) &&
	       tw_so(!(node->flags & TW_NODE_PERIODIC) || !node->period->gen);
}

static bool tw_check_nodes(const struct twheel *tw, const struct tw_slot *slot,
			   struct tw_seen *seen)
{
	const struct tw_node *node;

	list_for_each_entry(node, &slot->nodes, entry) {
		if (!tw_check_timer(tw, node))
			return false;
		seen->timers++;
		seen->periods += !!(node->flags & TW_NODE_PERIODIC);
	}
	return true;
}

/* What a look at all chunks finds */
struct tw_memory {
	u32 used;
	u64 bytes;
};

static struct tw_memory tw_memory(const struct twheel *tw)
{
	struct tw_memory memory = { .bytes = sizeof(*tw) };
	const struct tw_chunk *chunk;
	u32 nr;

	for (nr = TW_FIRST_CHUNK; nr < tw->table.nr_chunks; nr++) {
		chunk = tw->table.dir[nr].chunk;
		memory.used += tw_chunk_used(chunk);
		memory.bytes += chunk == &tw_no_chunk ? 0 : TW_CHUNK_SIZE;
	}
	for (chunk = tw->table.spare; chunk; chunk = chunk->next)
		memory.bytes += TW_CHUNK_SIZE;
	if (tw->shared)
		memory.bytes += tw->shared->charged;
	return memory;
}

static bool tw_check_held(const struct twheel *tw)
{
	struct tw_memory memory = tw_memory(tw);
	struct tw_seen seen = {};
	unsigned int i;

	if (!tw_check_nodes(tw, &tw->wheel.ready, &seen))
		return false;
	for (i = 0; tw->wheel.slots && i < TW_SLOTS; i++)
		if (!tw_check_nodes(tw, &tw->wheel.slots[i], &seen))
			return false;
	/* Else nodes are lost. */
	return tw_so(seen.timers + seen.periods == memory.used) &&
	       tw_so(tw_user_held(tw->user) >= memory.bytes);
}

/* (What is in the area is the program's.) */
static bool tw_check_shared(const struct tw_shared *shared)
{
	return tw_check_entries(&shared->wheel, shared->nr) &&
	       tw_so(shared->ring_mask >= shared->nr - 1);
}

/* No more is held than was allowed, and what was set aside is there. */
static bool tw_check_limits(const struct twheel *tw, u32 room)
{
	return tw_so(tw_timers(tw) <= tw->limit) &&
	       tw_so(tw->table.free >= room) && tw_so(!tw->table.reserved);
}

/* The timer will come in time, or else the worker. */
static bool tw_check_wakeup(struct twheel *tw, s64 next)
{
	return tw_so(tw->timer_tick <= next || tw->closing) &&
	       tw_so(tw->timer_tick == TW_NEVER || hrtimer_active(&tw->timer) ||
		     tw->waits_for || work_busy(&tw->work.work));
}

/**
 * tw_check() - is a wheel in use as it must be?
 * @tw: the wheel, between two operations
 * @next: the tick for which its timer has to be set at the latest, or TW_NEVER
 * @room: so many nodes are free at least
 *
 * Context: holds @tw->lock.
 */
void tw_check(struct twheel *tw, s64 next, u32 room)
{
	u32 things = tw_check_things(&tw->table, &tw->wheel);

	lockdep_assert_held(&tw->lock);
	if (tw->shared)
		things += tw->shared->nr + TW_ENTRY_ALL_SLOTS;
	if (!tw_check_limits(tw, room) || !tw_check_wakeup(tw, next) ||
	    !tw_check_levels(&tw->wheel) ||
	    !tw_check_due(&tw->check_saved, things))
		return;
	if (tw_check_table(&tw->table) && tw_check_wheel(&tw->wheel) &&
	    tw_check_held(tw) && tw->shared)
		tw_check_shared(tw->shared);
}
