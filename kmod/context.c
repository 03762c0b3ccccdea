// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in use: it is created and destroyed here, gets memory for its nodes, and is
 * asked for its settings and counters. See context.h.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>

#include "account.h"
#include "compat.h"
#include "context.h"
#include "stats.h"
#include "turns.h"
#include "user.h"
#include "validate.h"

/* What a chunk costs its user */
#define TW_CHUNK_CHARGE (TW_CHUNK_BYTES + sizeof(struct tw_chunk))
#define TW_SLOTS_CHARGE PAGE_ALIGN(sizeof(struct tw_slots))

static atomic64_t tw_next_nr;

/**
 * tw_create() - make a wheel for the current task
 *
 * Context: may sleep.
 * Return: the wheel, or an error pointer: -ENOMEM or -ENOSPC.
 */
struct twheel *tw_create(void)
{
	struct tw_user *user;
	struct tw_clock clock;
	struct twheel *tw;

	BUILD_BUG_ON(sizeof(struct tw_node) != 32);
	BUILD_BUG_ON(sizeof(struct tw_period) != sizeof(struct tw_node));
	BUILD_BUG_ON(TW_SLOTS > U16_MAX);

	user = tw_user_get();
	if (IS_ERR(user))
		return ERR_CAST(user);
	if (!tw_user_charge(user, sizeof(*tw))) {
		tw_user_put(user);
		return ERR_PTR(-ENOSPC);
	}
	tw = kzalloc(sizeof(*tw), TW_GFP);
	if (!tw) {
		tw_user_uncharge(user, sizeof(*tw));
		tw_user_put(user);
		return ERR_PTR(-ENOMEM);
	}
	tw->user = user;
	tw->memcg = get_mem_cgroup_from_mm(current->mm);
	tw->nr = atomic64_inc_return(&tw_next_nr);
	spin_lock_init(&tw->lock);
	spin_lock_init(&tw->eventfd_lock);
	init_waitqueue_head(&tw->wait);
	INIT_DELAYED_WORK(&tw->work, tw_work_fn);
	INIT_LIST_HEAD(&tw->place_wait);
	hrtimer_setup(&tw->timer, tw_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	tw->timer_tick = TW_NEVER;
	INIT_LIST_HEAD(&tw->turn);
	tw->limit = READ_ONCE(tw_max_timers);
	tw->unit = TWHEEL_EVENT_SIZE_FULL;

	tw_clock_init(&clock);
	tw_table_init(&tw->table);
	tw_table_init(&tw->periods);
	tw_wheel_init(&tw->wheel, &tw->table, &clock,
		      tw_clock_floor(&clock, tw_clock_now(&clock)), tw->nr);
	tw_stats_add(tw);
	return tw;
}

/**
 * tw_free_spare() - free what tw_table_detach_spare() gave
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

/* Free a directory for so many chunks, or none. */
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
	void *dir;

	tw_free_spare(tw, tw_table_clear(table, &dir));
	tw_free_dir(tw, dir, max_chunks);
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
 * tw_destroy() - end a wheel and everything in it
 * @tw: the wheel, which nobody uses any more
 *
 * Context: may sleep.
 */
void tw_destroy(struct twheel *tw)
{
	spin_lock_bh(&tw->lock);
	WRITE_ONCE(tw->closing, true);
	tw_share_leave(tw);
	spin_unlock_bh(&tw->lock);
	hrtimer_cancel(&tw->timer);
	wait_var_event(&tw->turns, !atomic_read(&tw->turns));
	tw_place_leave(tw);

	tw_stats_del(tw);
	if (tw->eventfd)
		eventfd_ctx_put(tw->eventfd);
	tw_shared_destroy(tw, tw->shared);
	tw_table_destroy(tw, &tw->table);
	tw_table_destroy(tw, &tw->periods);
	tw_slots_free(tw, tw->wheel.slots);
	tw_user_uncharge(tw->user, sizeof(*tw));
	tw_user_put(tw->user);
	mem_cgroup_put(tw->memcg);
	kfree(tw);
}

/* The clock was set back. Not inlined, as it is rare and costs tw_now() registers. */
static noinline s64 tw_set_back(struct twheel *tw, s64 *tick, s64 now)
{
	s64 more = tw_wheel_set_back(&tw->wheel, *tick);

	*tick += more;
	/* While the wheel is throttled, @timer_tick is no tick. */
	if (tw->timer_tick != TW_NEVER && !tw->waits_for)
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

/* Choose clock, tick, limit and mode, and give it shared timers or NULL. */
static int tw_set_up(struct twheel *tw, const struct twheel_setup *setup,
		     struct tw_shared *shared)
{
	u32 limit = setup->limit ?: tw->limit;
	struct tw_slots *slots;
	struct tw_clock clock;

	lockdep_assert_held(&tw->lock);
	if (tw->fixed)
		return -EBUSY;
	if (setup->shared > limit)
		return -ENOSPC;
	tw->fixed = true;
	tw->flags = setup->flags;
	tw->limit = limit - setup->shared;
	WRITE_ONCE(tw->unit, setup->flags & TWHEEL_SETUP_COUNT ? sizeof(u64) :
		   setup->event_size ?: TWHEEL_EVENT_SIZE_FULL);
	hrtimer_setup(&tw->timer, tw_timer_fn, tw_clock_kernel_id(setup->clock),
		      HRTIMER_MODE_ABS_SOFT);

	clock = tw->wheel.clock;
	tw_clock_set(&clock, setup->clock, setup->tick);
	slots = tw->wheel.slots;
	tw_wheel_init(&tw->wheel, &tw->table, &clock,
		      tw_clock_floor(&clock, tw_clock_now(&clock)), tw->nr);
	if (slots)
		tw_wheel_set_slots(&tw->wheel, slots);
	/* Pairs with tw_shared_of(). */
	smp_store_release(&tw->shared, shared);
	return 0;
}

/**
 * tw_setup() - choose clock, tick, limit and mode
 * @tw: the wheel
 * @setup: what to choose
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -ENOSPC, -ENOMEM or -EBUSY.
 */
int tw_setup(struct twheel *tw, const struct twheel_setup *setup)
{
	struct tw_shared *shared = NULL;
	int ret;

	ret = tw_check_setup(setup);
	if (ret)
		return ret;
	if (setup->limit > TW_MOST_TIMERS ||
	    (setup->limit > READ_ONCE(tw_max_timers) && !tw_may_exceed_limits()))
		return -ENOSPC;
	if (setup->shared) {
		shared = tw_shared_create(tw, setup->shared, setup->tick ?: TICK_NSEC);
		if (IS_ERR(shared))
			return PTR_ERR(shared);
	}

	spin_lock_bh(&tw->lock);
	ret = tw_set_up(tw, setup, shared);
	spin_unlock_bh(&tw->lock);
	if (ret)
		tw_shared_destroy(tw, shared);
	return ret;
}

/**
 * tw_set_eventfd() - set or end the eventfd to signal
 * @tw: the wheel
 * @fd: the eventfd, or -1
 *
 * Context: may sleep.
 * Return: 0, -EBADF, -EINVAL, -EBUSY or -ENOENT.
 */
int tw_set_eventfd(struct twheel *tw, int fd)
{
	struct eventfd_ctx *ctx = NULL;
	int ret = 0;

	if (fd != -1) {
		ctx = eventfd_ctx_fdget(fd);
		if (IS_ERR(ctx))
			return PTR_ERR(ctx);
	}
	spin_lock_bh(&tw->eventfd_lock);
	if (ctx && tw->eventfd)
		ret = -EBUSY;
	else if (!ctx && !tw->eventfd)
		ret = -ENOENT;
	else
		swap(ctx, tw->eventfd);
	spin_unlock_bh(&tw->eventfd_lock);
	if (ctx)
		eventfd_ctx_put(ctx);
	/* Either this sees what became ready, or tw_wake() sees the eventfd. */
	smp_mb();
	if (!ret && tw_readable(tw))
		tw_wake(tw);
	return ret;
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
