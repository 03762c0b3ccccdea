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

/* What a chunk costs its user */
#define TW_CHUNK_CHARGE (TW_CHUNK_BYTES + sizeof(struct tw_chunk))
#define TW_SLOTS_CHARGE PAGE_ALIGN(sizeof(struct tw_slots))

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
 * kmalloc() would round this size up, by half as much again. Contiguous pages are better, but
 * not worth compaction.
 */
static struct tw_slots *tw_slots_alloc(void)
{
	const gfp_t gfp = (TW_GFP & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY | __GFP_ZERO;
	struct tw_slots *slots = alloc_pages_exact(sizeof(*slots), gfp);

	return slots ?: __vmalloc(sizeof(*slots), TW_GFP | __GFP_ZERO);
}

static void tw_slots_free(struct twheel *tw, struct tw_slots *slots)
{
	if (!slots)
		return;
	if (is_vmalloc_addr(slots))
		vfree(slots);
	else
		free_pages_exact(slots, sizeof(*slots));
	tw_user_uncharge(tw->user, TW_SLOTS_CHARGE);
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
	tw_slots_free(tw, tw->wheel.slots);
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

static int tw_add_chunk(struct twheel *tw, struct tw_table *table)
{
	struct tw_chunk *chunk;
	struct tw_node *nodes;
	int ret = -ENOMEM;

	if (!tw_user_charge(tw->user, TW_CHUNK_CHARGE))
		return -ENOSPC;
	chunk = kmalloc(sizeof(*chunk), TW_GFP);
	nodes = kzalloc(TW_CHUNK_BYTES, TW_GFP);
	if (!chunk || !nodes)
		goto free;
	ret = 0;
	spin_lock_bh(&tw->lock);
	/* Another thread may have used the last entry: then the caller tries again. */
	if (!tw_table_full(table)) {
		tw_table_add(table, chunk, nodes);
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

/* Slots are allocated together with the first nodes. */
static int tw_add_slots(struct twheel *tw)
{
	struct tw_slots *slots;

	if (!tw_user_charge(tw->user, TW_SLOTS_CHARGE))
		return -ENOSPC;
	slots = tw_slots_alloc();
	if (!slots) {
		tw_user_uncharge(tw->user, TW_SLOTS_CHARGE);
		return -ENOMEM;
	}
	spin_lock_bh(&tw->lock);
	if (!tw->wheel.slots) {
		tw_wheel_set_slots(&tw->wheel, slots);
		slots = NULL;
	}
	spin_unlock_bh(&tw->lock);
	tw_slots_free(tw, slots);
	return 0;
}

/**
 * tw_add_nodes() - allocate memory for nodes
 * @tw: the wheel
 * @table: its table, or that of its periods
 * @nodes: how many free nodes there shall be
 *
 * Called without the lock, under which nothing can be allocated. So every field that is
 * read here may be out of date, and the nodes may be gone as soon as they are there. That
 * is harmless: tw_grow_table() and tw_add_chunk() check again under the lock before they
 * change the table, and the caller counts the nodes again once it has the lock.
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM or, at the limit of the user, -ENOSPC.
 */
int tw_add_nodes(struct twheel *tw, struct tw_table *table, unsigned int nodes)
{
	struct mem_cgroup *old;
	int ret = 0;

	/* May be out of date, as said above. Where there are nodes, there are slots. */
	if (data_race(READ_ONCE(table->free)) >= nodes)
		return 0;
	old = set_active_memcg(tw->memcg);
	/* May be out of date: tw_add_slots() checks it again. */
	if (!data_race(READ_ONCE(tw->wheel.slots)))
		ret = tw_add_slots(tw);
	/* May be out of date: the caller checks it again. */
	while (!ret && data_race(READ_ONCE(table->free)) < nodes) {
		/* May be out of date: tw_add_chunk() checks it again. */
		if (data_race(tw_table_full(table)))
			ret = tw_grow_table(tw, table);
		else
			ret = tw_add_chunk(tw, table);
	}
	set_active_memcg(old);
	return ret;
}
