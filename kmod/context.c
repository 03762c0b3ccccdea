// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in use: its life, its memory and its settings. See context.h.
 */
#include <linux/capability.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "context.h"
#include "debugfs.h"
#include "user.h"
#include "validate.h"

/*
 * The first chunk of a wheel is a page, for those that hold few timers. The
 * others are large enough that nothing is lost to speak of, and small enough to
 * be had at all times.
 */
#define TW_CHUNK_ORDER get_order(32768)
#define TW_CHUNK_CAP(order) \
	min_t(unsigned int, (PAGE_SIZE << (order)) / sizeof(struct tw_node), \
	      1U << TW_CHUNK_SHIFT)

/* A program at the limit of its cgroup shall get an error, not be killed. */
#define TW_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Where a SETUP may go beyond the module's limit, this is the end of it. */
#define TW_MOST_TIMERS (1U << 30)

static atomic64_t tw_next_nr;

/**
 * tw_create() - make a wheel for the current task
 *
 * Context: may sleep.
 * Return: the wheel, or NULL without memory.
 */
struct twheel *tw_create(void)
{
	struct twheel *tw;
	s64 tick;

	BUILD_BUG_ON(sizeof(struct tw_node) != 40);
	BUILD_BUG_ON(sizeof(struct tw_period) != sizeof(struct tw_node));
	BUILD_BUG_ON(offsetof(struct tw_period, gen) !=
		     offsetof(struct tw_node, gen));
	BUILD_BUG_ON(TW_SLOTS > U16_MAX);

	tw = kzalloc(sizeof(*tw), GFP_KERNEL_ACCOUNT);
	if (!tw)
		return NULL;
	tw->user = tw_user_get();
	if (!tw->user) {
		kfree(tw);
		return NULL;
	}
	tw->memcg = get_mem_cgroup_from_mm(current->mm);
	tw->nr = atomic64_inc_return(&tw_next_nr);
	spin_lock_init(&tw->lock);
	spin_lock_init(&tw->eventfd_lock);
	init_waitqueue_head(&tw->wait);
	INIT_WORK(&tw->work, tw_work_fn);
	hrtimer_setup(&tw->timer, tw_timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	tw->timer_tick = TW_NEVER;
	tw->limit = READ_ONCE(tw_max_timers);

	tw_clock_init(&tw->clock);
	tick = tw_clock_floor(&tw->clock, tw_clock_now(&tw->clock));
	tw_table_init(&tw->table);
	tw_wheel_init(&tw->wheel, &tw->table, tick);
	tw_debugfs_add(tw);
	return tw;
}

static void tw_chunk_free(struct tw_node *nodes, unsigned int cap)
{
	unsigned int order = cap > TW_CHUNK_CAP(0) ? TW_CHUNK_ORDER : 0;

	free_pages((unsigned long)nodes, order);
}

/**
 * tw_free_spare() - free what tw_table_take_spare() gave
 * @spare: list of memory, may be NULL
 *
 * Context: any, but without a wheel's lock, as it may take long.
 */
void tw_free_spare(struct tw_spare *spare)
{
	while (spare) {
		struct tw_spare *next = spare->next;

		tw_chunk_free((struct tw_node *)spare, spare->cap);
		spare = next;
	}
}

static void tw_free_table(struct tw_table *table)
{
	u32 i;

	tw_free_spare(tw_table_take_spare(table));
	for (i = 0; i < table->nr_chunks; i++) {
		if (table->chunks[i].nodes)
			tw_chunk_free(table->chunks[i].nodes,
				      table->chunks[i].cap);
		cond_resched();
	}
	kvfree(table->chunks);
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
	tw->closing = true;
	spin_unlock_bh(&tw->lock);
	hrtimer_cancel(&tw->timer);
	cancel_work_sync(&tw->work);

	tw_debugfs_del(tw);
	if (tw->eventfd)
		eventfd_ctx_put(tw->eventfd);
	tw_user_uncharge(tw->user, tw->timers);
	tw_user_put(tw->user);
	tw_free_table(&tw->table);
	kvfree(tw->wheel.slots);
	mem_cgroup_put(tw->memcg);
	kfree(tw);
}

/**
 * tw_now() - what time it is on a wheel
 * @tw: the wheel
 * @tick: out: the wheel's tick
 *
 * When the clock was set back, the wheel's time goes on from where it was. The
 * nodes in it then come up too early and are put where they belong, by way of
 * &tw_wheel.refresh.
 *
 * Context: holds @tw->lock.
 * Return: the host's time in ns.
 */
s64 tw_now(struct twheel *tw, s64 *tick)
{
	s64 now = tw_clock_now(&tw->clock);
	s64 back;

	lockdep_assert_held(&tw->lock);
	*tick = tw_clock_floor(&tw->clock, now);
	back = tw->wheel.clk - 1 - *tick;
	if (unlikely(back > 0)) {
		tw->clock.shift += back;
		*tick += back;
		if (tw->timer_tick != TW_NEVER)
			tw->timer_tick += back;
	}
	return now;
}

static s64 tw_refresh(const struct tw_wheel *wheel, const struct tw_node *node)
{
	const struct twheel *tw = container_of(wheel, struct twheel, wheel);

	return max(tw_clock_expires(&tw->clock, node->deadline,
				    node->slack_shift), wheel->clk);
}

/**
 * tw_setup() - choose clock, tick, limit and mode
 * @tw: the wheel
 * @setup: what to choose
 *
 * Context: may sleep.
 * Return: 0, -EINVAL, -EOPNOTSUPP, -ENOSPC or -EBUSY.
 */
int tw_setup(struct twheel *tw, const struct twheel_setup *setup)
{
	struct tw_list *slots;
	int ret;
	s64 tick;

	ret = tw_check_setup(setup);
	if (ret)
		return ret;
	if (setup->limit > TW_MOST_TIMERS ||
	    (setup->limit > READ_ONCE(tw_max_timers) &&
	     !capable(CAP_SYS_RESOURCE)))
		return -ENOSPC;

	spin_lock_bh(&tw->lock);
	if (tw->fixed) {
		spin_unlock_bh(&tw->lock);
		return -EBUSY;
	}
	tw->fixed = true;
	tw->flags = setup->flags;
	if (setup->limit)
		tw->limit = setup->limit;
	tw_clock_set(&tw->clock, setup->clock, setup->tick);
	hrtimer_setup(&tw->timer, tw_timer_fn, setup->clock,
		      HRTIMER_MODE_ABS_SOFT);

	tick = tw_clock_floor(&tw->clock, tw_clock_now(&tw->clock));
	slots = tw->wheel.slots;
	tw_wheel_init(&tw->wheel, &tw->table, tick);
	if (slots)
		tw_wheel_set_slots(&tw->wheel, slots);
	if (tw_clock_settable(&tw->clock))
		tw->wheel.refresh = tw_refresh;
	spin_unlock_bh(&tw->lock);
	return 0;
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
	if (!ret && tw_readable(tw))
		tw_wake(tw);
	return ret;
}

/**
 * tw_get_info() - fill in what a wheel can do and holds
 * @tw: the wheel
 * @info: out
 *
 * Context: any process.
 */
void tw_get_info(struct twheel *tw, struct twheel_info *info)
{
	s64 next;

	*info = (struct twheel_info){
		.size = sizeof(*info),
		.version = TWHEEL_VERSION,
		.features = TWHEEL_FEATURE_COUNT | TWHEEL_FEATURE_EVENTFD |
			    TWHEEL_FEATURE_DRAIN,
		.hz = HZ,
		.tick_min = TWHEEL_TICK_MIN_NS,
		.tick_max = TWHEEL_TICK_MAX_NS,
		.wheel_limit = READ_ONCE(tw_max_timers),
		.user_limit = READ_ONCE(tw_max_user_timers),
	};
	spin_lock_bh(&tw->lock);
	info->clock = tw->clock.id;
	info->tick = tw->clock.tick;
	info->flags = tw->flags;
	info->limit = tw->limit;
	info->pending = tw->wheel.pending;
	info->ready = tw->wheel.ready.count;
	if (tw->wheel.pending) {
		next = tw_clock_tick_ns(&tw->clock, tw->wheel.next);
		info->next_expiry = tw_clock_to_user(&tw->clock, next);
	}
	spin_unlock_bh(&tw->lock);
}

/**
 * tw_get_stats() - copy the counters of a wheel
 * @tw: the wheel
 * @stats: out
 *
 * Context: any process.
 */
void tw_get_stats(struct twheel *tw, struct twheel_stats *stats)
{
	spin_lock_bh(&tw->lock);
	*stats = tw->stats;
	spin_unlock_bh(&tw->lock);
	stats->size = sizeof(*stats);
}

static bool tw_add_slots(struct twheel *tw)
{
	struct tw_list *slots = kvmalloc_array(TW_SLOTS, sizeof(*slots), TW_GFP);

	if (!slots)
		return false;
	spin_lock_bh(&tw->lock);
	if (!tw->wheel.slots) {
		tw_wheel_set_slots(&tw->wheel, slots);
		slots = NULL;
	}
	spin_unlock_bh(&tw->lock);
	kvfree(slots);
	return true;
}

static bool tw_grow_table(struct twheel *tw)
{
	struct tw_table *table = &tw->table;
	u32 old = READ_ONCE(table->max_chunks);
	u32 new = old ? 2 * old : 16;
	struct tw_chunk *chunks;

	if (new > TW_TABLE_MAX_CHUNKS)
		return false;
	chunks = kvmalloc_array(new, sizeof(*chunks), TW_GFP);
	if (!chunks)
		return false;
	spin_lock_bh(&tw->lock);
	if (table->max_chunks == old)
		chunks = tw_table_grow(table, chunks, new);
	spin_unlock_bh(&tw->lock);
	kvfree(chunks);
	return true;
}

static struct tw_node *tw_chunk_alloc(unsigned int order, unsigned int *cap)
{
	gfp_t gfp = order ? GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN :
			    TW_GFP;

	*cap = TW_CHUNK_CAP(order);
	return (struct tw_node *)__get_free_pages(gfp, order);
}

static bool tw_add_chunk(struct twheel *tw)
{
	struct tw_table *table = &tw->table;
	struct tw_node *nodes = NULL;
	unsigned int cap;

	if (READ_ONCE(table->nr_chunks))
		nodes = tw_chunk_alloc(TW_CHUNK_ORDER, &cap);
	if (!nodes)
		nodes = tw_chunk_alloc(0, &cap);
	if (!nodes)
		return false;
	tw_chunk_format(nodes, cap);

	spin_lock_bh(&tw->lock);
	if (!tw_table_full(table)) {
		tw_table_add(table, nodes, cap);
		nodes = NULL;
	}
	spin_unlock_bh(&tw->lock);
	/* Another thread took the last place of the directory: try again. */
	if (nodes)
		tw_chunk_free(nodes, cap);
	return true;
}

/**
 * tw_reserve() - get memory for nodes, so that none is needed under the lock
 * @tw: the wheel
 * @nodes: how many free nodes there shall be
 *
 * Other threads may take them at once.
 *
 * Context: may sleep.
 * Return: false without memory.
 */
bool tw_reserve(struct twheel *tw, unsigned int nodes)
{
	struct mem_cgroup *old;
	bool ok = true;

	if (READ_ONCE(tw->table.free) >= nodes && READ_ONCE(tw->wheel.slots))
		return true;
	old = set_active_memcg(tw->memcg);
	if (!READ_ONCE(tw->wheel.slots))
		ok = tw_add_slots(tw);
	while (ok && READ_ONCE(tw->table.free) < nodes) {
		if (tw_table_full(&tw->table))
			ok = tw_grow_table(tw);
		else
			ok = tw_add_chunk(tw);
	}
	set_active_memcg(old);
	return ok;
}
