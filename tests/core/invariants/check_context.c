// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of a wheel in use: its timers, its limits, its memory and its hrtimer. See
 * check.h.
 */
#include <linux/bug.h>

#include "account.h"
#include "check.h"
#include "context.h"
#include "shared.h"

/* Counts over all nodes that are on a list */
struct tw_seen {
	u32 timers;
	u32 periods;
};

/* A timer has an id by which it is found. */
static bool tw_check_list(const struct twheel *tw, const struct tw_list *list,
			  struct tw_seen *seen)
{
	const struct tw_node *node;
	struct tw_node *found;
	u32 index, at;

	for (index = list->first; index; index = node->next) {
		node = tw_node_at(&tw->table, index);
		if (!tw_so(tw_table_find(&tw->table, tw_id(node, index), &found, &at)))
			return false;
		seen->timers++;
		seen->periods += !!(node->flags & TW_NODE_PERIODIC);
	}
	return true;
}

/* Bytes of a table's chunks and directory, and nodes of them that are used */
static u64 tw_memory(const struct tw_table *table, u32 *used)
{
	u64 bytes = table->max_chunks > TW_FIRST_CHUNK ?
		    TW_DIR_BYTES((u64)table->max_chunks) : 0;
	u32 nr;

	*used = -table->free;
	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++) {
		if (!table->chunks[nr])
			continue;
		*used += table->chunks[nr]->bytes / sizeof(struct tw_node);
		bytes += table->chunks[nr]->bytes + sizeof(struct tw_chunk);
	}
	return bytes;
}

static bool tw_check_held(const struct twheel *tw)
{
	bool small = tw_wheel_is_small(&tw->wheel);
	u64 bytes = sizeof(*tw) + (!tw->wheel.slots ? 0 :
				   small ? TW_FEW_SLOTS_BYTES : TW_SLOTS_BYTES);
	const struct tw_list *lists = (void *)&tw->wheel.slots[small ? TW_FEW_SLOTS : TW_SLOTS];
	struct tw_seen seen = {};
	u32 timers, periods;
	unsigned int i;

	bytes += tw_memory(&tw->table, &timers);
	bytes += tw_memory(&tw->periods, &periods);
	if (tw->shared)
		bytes += tw->shared->memory.charged + tw->shared->private.charged;
	for (i = 0; i < TW_READY_LISTS; i++)
		if (!tw_check_list(tw, &tw->wheel.ready.list[i], &seen))
			return false;
	for (i = 0; tw->wheel.slots && i < (small ? TW_FEW_SLOTS : TW_LISTS); i++)
		if (!tw_check_list(tw, &lists[i], &seen))
			return false;
	/* Otherwise nodes are lost. A node without generations left counts as used. */
	return tw_so(seen.timers == timers || (seen.timers < timers && TW_LAST_GEN < U32_MAX)) &&
	       tw_so(seen.periods == periods) &&
	       tw_so(READ_ONCE(tw->user->bytes) >= bytes);
}

/* Only private memory is checked: a program may write anything to the area. */
static bool tw_check_shared(const struct tw_shared *shared)
{
	return tw_check_entries(&shared->wheel, shared->nr) &&
	       tw_so(shared->ring_mask >= shared->nr - 1);
}

/* No more is held than was allowed, and what may be armed has its nodes. */
static bool tw_check_limits(const struct twheel *tw, u32 quota)
{
	return tw_so(tw_timers(tw) <= tw->limit) &&
	       tw_so(!tw_wheel_is_small(&tw->wheel) ||
		     tw->table.nr_chunks <= TW_FIRST_CHUNK + 1) &&
	       tw_so(tw->table.free >= quota);
}

static bool tw_check_timer(struct twheel *tw)
{
	if (tw->timer_tick == TW_NEVER)
		return true;
	/* Others write what this reads, but it reads again if the timer ran meanwhile. */
	return data_race(hrtimer_active(&tw->timer));
}

/*
 * The timer will come in time, or the wheel is due: then who makes a call turns it, and nothing
 * relies on the timer before that.
 */
static bool tw_check_wakeup(struct twheel *tw, s64 next)
{
	return tw_so(tw->timer_tick <= next || tw->closing) &&
	       tw_so(tw_check_timer(tw) || tw_is_due(tw) || tw->closing);
}

/**
 * tw_check() - is a wheel in use as it must be?
 * @tw: the wheel, between two operations
 * @next: the tick for which its timer has to be set at the latest, or TW_NEVER
 * @quota: how many nodes are free at least
 *
 * Context: holds @tw->lock.
 */
void tw_check(struct twheel *tw, s64 next, u32 quota)
{
	u32 things = tw_check_things(&tw->table, &tw->wheel);

	lockdep_assert_held(&tw->lock);
	if (tw->shared)
		things += tw->shared->nr + TW_ENTRY_ALL_SLOTS;
	if (!tw_check_limits(tw, quota) || !tw_check_wakeup(tw, next) ||
	    !tw_check_levels(&tw->wheel) ||
	    !tw_check_due(&tw->check_saved, things))
		return;
	if (tw_check_table(&tw->table, true) && tw_check_table(&tw->periods, false) &&
	    tw_check_wheel(&tw->wheel) &&
	    tw_check_held(tw) && tw->shared)
		tw_check_shared(tw->shared);
}
