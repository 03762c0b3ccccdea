// SPDX-License-Identifier: GPL-2.0
/*
 * The state of a wheel in use: what time it is, when its timer comes, who is woken, and the
 * memory for its nodes. See context.h.
 */
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "compat.h"
#include "context.h"

/*
 * What a chunk and slots cost their user: also a short one and few, as the limit is not to stand
 * in the way of a wheel that becomes large
 */
#define TW_CHUNK_CHARGE (TW_CHUNK_BYTES + sizeof(struct tw_chunk))
#define TW_SLOTS_CHARGE PAGE_ALIGN(TW_SLOTS_BYTES)

/* The clock was set back. Not inlined, as it is rare and costs tw_now() registers. */
static noinline s64 tw_set_back(struct twheel *tw, s64 *tick, s64 now)
{
	s64 more = tw_wheel_set_back(&tw->wheel, *tick);

	*tick += more;
	if (tw->timer_tick != TW_NEVER && tw->timer_tick != TW_DUE)
		tw->timer_tick += more;
	return now;
}

/**
 * tw_now() - what time it is on a wheel
 * @tw: the wheel
 * @tick: out: the wheel's tick
 *
 * When the clock was set back, the wheel's time goes on from where it was.
 *
 * Context: holds @tw->lock.
 * Return: the host's time in ns.
 */
s64 tw_now(struct twheel *tw, s64 *tick)
{
	s64 now = tw_clock_now(&tw->wheel.clock);

	lockdep_assert_held(&tw->lock);
	*tick = tw_clock_floor(&tw->wheel.clock, now);
	if (unlikely(*tick < tw->wheel.clk - 1))
		return tw_set_back(tw, tick, now);
	return now;
}

/**
 * tw_reprogram_timer() - set the timer for the next tick with something to do
 * @tw: the wheel
 * @next: that tick, or TW_NEVER
 *
 * Leaves a timer alone that is set for an earlier tick.
 *
 * Context: holds @tw->lock.
 */
void tw_reprogram_timer(struct twheel *tw, s64 next)
{
	lockdep_assert_held(&tw->lock);
	/* Programs that share timers rely on the published wake-up, see shared.c. */
	if (next == TW_NEVER && tw->timer_tick != TW_NEVER && !tw->shared) {
		/* A callback that runs already will find nothing to do. */
		hrtimer_try_to_cancel(&tw->timer);
		tw->timer_tick = TW_NEVER;
	}
	if (next >= tw->timer_tick || tw->closing)
		return;
	tw->timer_tick = next;
	hrtimer_start(&tw->timer, tw_clock_tick_ns(&tw->wheel.clock, next),
		      HRTIMER_MODE_ABS);
}

/**
 * tw_signal() - signal the eventfd, as timers are ready
 * @tw: the wheel
 *
 * Context: any but hard interrupts; without @tw->lock.
 */
void tw_signal(struct twheel *tw)
{
	/* Only to spare the lock: one that is set just now looks by itself. */
	if (!data_race(READ_ONCE(tw->eventfd)))
		return;
	spin_lock_bh(&tw->eventfd_lock);
	if (tw->eventfd)
		tw_eventfd_signal(tw->eventfd);
	spin_unlock_bh(&tw->eventfd_lock);
}

/**
 * tw_wake() - notify all who wait that timers are ready
 * @tw: the wheel
 *
 * Context: any process; without @tw->lock, as there may be many.
 */
void tw_wake(struct twheel *tw)
{
	if (wq_has_sleeper(&tw->wait))
		wake_up_poll(&tw->wait, TW_READABLE);
	tw_signal(tw);
}

/**
 * tw_free_spare() - free chunks that were taken out of a table
 * @tw: the wheel
 * @spare: list of chunks, may be NULL
 *
 * Context: may sleep.
 */
void tw_free_spare(struct twheel *tw, struct tw_chunk *spare)
{
	while (spare) {
		struct tw_chunk *next = spare->next;

		kfree(spare->nodes);
		kfree(spare);
		tw_user_uncharge(tw->user, TW_CHUNK_CHARGE);
		spare = next;
		cond_resched();
	}
}

/* Free a directory for @max_chunks chunks, or none. */
static void tw_free_dir(struct twheel *tw, void *dir, u32 max_chunks)
{
	if (!dir)
		return;
	kvfree(dir);
	tw_user_uncharge(tw->user, TW_DIR_BYTES((u64)max_chunks));
}

static void tw_table_destroy(struct twheel *tw, struct tw_table *table)
{
	u32 max_chunks = table->max_chunks;
	struct tw_chunk *chunk;

	while ((chunk = tw_table_take_chunk(table)))
		tw_free_spare(tw, chunk);
	tw_free_dir(tw, tw_table_end(table), max_chunks);
}

/*
 * kmalloc() would round the size of all slots up, by half as much again. Contiguous pages are
 * better, but not worth compaction.
 */
static struct tw_slot *tw_slots_alloc(bool few)
{
	const gfp_t gfp = (TW_GFP & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY | __GFP_ZERO;
	struct tw_slot *slots;

	if (few)
		return kzalloc(TW_FEW_SLOTS_BYTES, TW_GFP);
	slots = alloc_pages_exact(TW_SLOTS_BYTES, gfp);
	return slots ?: __vmalloc(TW_SLOTS_BYTES, TW_GFP | __GFP_ZERO);
}

static void tw_slots_free(struct tw_slot *slots, bool few)
{
	if (few)
		kfree(slots);
	else if (is_vmalloc_addr(slots))
		vfree(slots);
	else
		free_pages_exact(slots, TW_SLOTS_BYTES);
}

/**
 * tw_free_nodes() - free all memory of nodes, and the slots
 * @tw: the wheel, which nobody uses any more
 *
 * Context: may sleep.
 */
void tw_free_nodes(struct twheel *tw)
{
	tw_table_destroy(tw, &tw->table);
	tw_table_destroy(tw, &tw->periods);
	if (!tw->wheel.slots)
		return;
	tw_slots_free(tw->wheel.slots, tw_wheel_is_small(&tw->wheel));
	tw_user_uncharge(tw->user, TW_SLOTS_CHARGE);
}

static int tw_grow_table(struct twheel *tw, struct tw_table *table)
{
	/* A guess: it is compared again under the lock. */
	u32 old = data_race(READ_ONCE(table->max_chunks));
	u32 new = max_t(u32, 2 * old, TW_FIRST_DIR), freed;
	void *dir;

	if (new > TW_TABLE_MAX_CHUNKS)
		return -ENOMEM;
	if (!tw_user_charge(tw->user, TW_DIR_BYTES((u64)new)))
		return -ENOSPC;
	dir = kvmalloc(TW_DIR_BYTES((size_t)new), TW_GFP);
	if (!dir) {
		tw_user_uncharge(tw->user, TW_DIR_BYTES((u64)new));
		return -ENOMEM;
	}
	spin_lock_bh(&tw->lock);
	/* Unless another thread was faster: then it is this one that is not needed. */
	freed = new;
	if (table->max_chunks == old) {
		dir = tw_table_grow(table, dir, new);
		freed = old;
	}
	spin_unlock_bh(&tw->lock);
	tw_free_dir(tw, dir, freed);
	return 0;
}

/*
 * A wheel has slots before it has nodes, and all slots before it has a second chunk of nodes: so
 * what is moved to them is no more than a chunk.
 */
static bool tw_lacks_slots(const struct twheel *tw, const struct tw_table *table)
{
	return !tw->wheel.slots || (table == &tw->table && table->nr_chunks > TW_FIRST_CHUNK &&
				    tw_wheel_is_small(&tw->wheel));
}

static int tw_add_chunk(struct twheel *tw, struct tw_table *table, u32 bytes)
{
	struct tw_chunk *chunk;
	struct tw_node *nodes;
	int ret = -ENOMEM;

	if (!tw_user_charge(tw->user, TW_CHUNK_CHARGE))
		return -ENOSPC;
	chunk = kmalloc(sizeof(*chunk), TW_GFP);
	nodes = kzalloc(bytes, TW_GFP);
	if (!chunk || !nodes)
		goto free;
	ret = 0;
	spin_lock_bh(&tw->lock);
	/* Another thread may have been faster: then the caller tries again. */
	if (!tw_table_short(table) && !tw_table_full(table) && !tw_lacks_slots(tw, table) &&
	    bytes >= tw_table_next_bytes(table, 0)) {
		tw_table_add(table, chunk, nodes, bytes);
		chunk = NULL;
	}
	spin_unlock_bh(&tw->lock);
	if (!chunk)
		return 0;
free:
	kfree(chunk);
	kfree(nodes);
	tw_user_uncharge(tw->user, TW_CHUNK_CHARGE);
	return ret;
}

/* A short chunk gets its whole length. */
static int tw_lengthen_chunk(struct twheel *tw, struct tw_table *table)
{
	struct tw_node *nodes = kzalloc(TW_CHUNK_BYTES, TW_GFP);

	if (!nodes)
		return -ENOMEM;
	spin_lock_bh(&tw->lock);
	/* Unless another thread was faster: then it is these that are not needed. */
	if (tw_table_short(table))
		nodes = tw_table_lengthen(table, nodes);
	spin_unlock_bh(&tw->lock);
	kfree(nodes);
	return 0;
}

/* Slots are allocated together with the first nodes: few. */
static int tw_add_slots(struct twheel *tw)
{
	struct tw_slot *slots;

	if (!tw_user_charge(tw->user, TW_SLOTS_CHARGE))
		return -ENOSPC;
	slots = tw_slots_alloc(true);
	spin_lock_bh(&tw->lock);
	if (slots && !tw->wheel.slots) {
		tw_wheel_set_slots(&tw->wheel, slots, true);
		spin_unlock_bh(&tw->lock);
		return 0;
	}
	spin_unlock_bh(&tw->lock);
	tw_user_uncharge(tw->user, TW_SLOTS_CHARGE);
	tw_slots_free(slots, true);
	return slots ? 0 : -ENOMEM;
}

/* And all when these are not enough. */
static int tw_grow_slots(struct twheel *tw)
{
	struct tw_slot *slots = tw_slots_alloc(false), *old = NULL;

	if (!slots)
		return -ENOMEM;
	spin_lock_bh(&tw->lock);
	if (tw_wheel_is_small(&tw->wheel)) {
		old = tw->wheel.slots;
		tw_wheel_set_slots(&tw->wheel, slots, false);
		/* It was set for the last of few slots, where a far timer had to wait. */
		if (tw->timer_tick != TW_DUE && !tw->shared)
			tw->timer_tick = TW_NEVER;
		tw_reprogram_timer(tw, tw->wheel.next);
	}
	spin_unlock_bh(&tw->lock);
	if (old)
		tw_slots_free(old, true);
	else
		tw_slots_free(slots, false);
	return 0;
}

/**
 * tw_add_all_slots() - a timer is further away than those slots that a wheel has
 * @tw: the wheel
 *
 * Where there is no memory it stays as it is, and is woken more often.
 *
 * Context: may sleep.
 */
void tw_add_all_slots(struct twheel *tw)
{
	struct mem_cgroup *old = set_active_memcg(tw->memcg);

	tw_grow_slots(tw);
	set_active_memcg(old);
}

/* One step of tw_add_nodes() */
static int tw_grow(struct twheel *tw, struct tw_table *table, unsigned int nodes)
{
	/* May be out of date, like all that follows: what it calls checks it again. */
	if (data_race(tw_table_short(table)))
		return tw_lengthen_chunk(tw, table);
	/* May be out of date. */
	if (!data_race(READ_ONCE(tw->wheel.slots)))
		return tw_add_slots(tw);
	/* May be out of date. */
	if (data_race(tw_lacks_slots(tw, table)))
		return tw_grow_slots(tw);
	/* May be out of date. */
	if (data_race(tw_table_full(table)))
		return tw_grow_table(tw, table);
	/* May be out of date. */
	return tw_add_chunk(tw, table, data_race(tw_table_next_bytes(table, nodes)));
}

/*
 * Called without the lock, under which nothing can be allocated. So every field that is
 * read here may be out of date, and the nodes may be gone as soon as they are there. That
 * is harmless: what tw_grow() calls checks again under the lock before it changes the table,
 * and the caller counts the nodes again once it has the lock.
 */
int __tw_add_nodes(struct twheel *tw, struct tw_table *table, unsigned int nodes)
{
	struct mem_cgroup *old = set_active_memcg(tw->memcg);
	int ret = 0;

	/* May be out of date: the caller checks it again. */
	while (!ret && data_race(READ_ONCE(table->free)) < nodes)
		ret = tw_grow(tw, table, nodes);
	set_active_memcg(old);
	return ret;
}
