// SPDX-License-Identifier: GPL-2.0
/*
 * What a wheel holds and has counted; and the file twheel/counters in debugfs: the sums of
 * the counters of all wheels, also of those that are closed.
 */
#include <linux/build_bug.h>
#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "account.h"
#include "context.h"
#include "shared.h"

#define TW_URING_FEATURE (IS_ENABLED(CONFIG_IO_URING) ? TWHEEL_FEATURE_URING : 0)

static LIST_HEAD(tw_all);
static DEFINE_MUTEX(tw_all_lock);
/* Sums over the wheels that are closed, and their number. */
static struct twheel_stats tw_closed_stats;
static struct tw_inner tw_closed_inner;
static u64 tw_closed;
static struct dentry *tw_dir;

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
		.features = TWHEEL_FEATURE_COUNT | TWHEEL_FEATURE_EVENTFD |
			    TWHEEL_FEATURE_DRAIN | TW_URING_FEATURE |
			    (tw_shared_possible() ? TWHEEL_FEATURE_SHARED : 0),
		.tick_min = TWHEEL_TICK_MIN_NS,
		.tick_max = TWHEEL_TICK_MAX_NS,
		.wheel_limit = READ_ONCE(tw_max_timers),
		.user_limit = READ_ONCE(tw_max_user_timers),
	};
	spin_lock_bh(&tw->lock);
	info->clock = tw->wheel.clock.id;
	info->tick = tw->wheel.clock.tick;
	info->flags = tw->flags;
	info->event_size = tw->unit;
	info->limit = tw->limit;
	info->pending = tw_pending(tw);
	info->ready = tw->wheel.ready.count;
	if (info->pending) {
		next = tw_clock_tick_ns(&tw->wheel.clock, tw_next(tw));
		info->next_expiry = tw_clock_to_user(&tw->wheel.clock, next);
	}
	if (tw->shared) {
		info->limit += tw->shared->nr;
		info->ready += tw_shared_ready(tw->shared);
		info->shared = tw->shared->nr;
		info->shared_size = tw->shared->size;
	}
	spin_unlock_bh(&tw->lock);
}

/**
 * tw_get_stats() - copy the counters of a wheel
 * @tw: the wheel
 * @stats: out
 * @inner: out, or NULL
 *
 * Context: any process.
 */
void tw_get_stats(struct twheel *tw, struct twheel_stats *stats,
		  struct tw_inner *inner)
{
	spin_lock_bh(&tw->lock);
	*stats = tw->stats;
	if (inner)
		*inner = tw->inner;
	spin_unlock_bh(&tw->lock);
	stats->size = sizeof(*stats);
}

struct tw_counter {
	const char *name;
	size_t offset;
	bool is_max;
};

#define TW_SUM(type, field) { #field, offsetof(struct type, field), false }
#define TW_MAX(type, field) { #field, offsetof(struct type, field), true }
static const struct tw_counter tw_counters[] = {
	TW_SUM(twheel_stats, armed),
	TW_SUM(twheel_stats, modified),
	TW_SUM(twheel_stats, cancelled),
	TW_SUM(twheel_stats, expired),
	TW_SUM(twheel_stats, overruns),
	TW_SUM(twheel_stats, delivered),
	TW_SUM(twheel_stats, drained),
	TW_SUM(twheel_stats, refused),
	TW_SUM(twheel_stats, wakeups),
	TW_MAX(twheel_stats, max_lateness),
	{}
};

static const struct tw_counter tw_inner_counters[] = {
	TW_SUM(tw_inner, deferred),
	TW_SUM(tw_inner, cascaded),
	TW_MAX(tw_inner, longest_run),
	TW_MAX(tw_inner, largest_run),
	{}
};

/* A counter that is missing above would be missing in the file. */
static_assert(ARRAY_SIZE(tw_counters) - 1 ==
	      (sizeof(struct twheel_stats) - offsetof(struct twheel_stats, armed) -
	       sizeof_field(struct twheel_stats, lateness)) / sizeof(u64));
static_assert(ARRAY_SIZE(tw_inner_counters) - 1 == sizeof(struct tw_inner) / sizeof(u64));

static void tw_add_counters(const struct tw_counter *counter, void *sums,
			    const void *values)
{
	for (; counter->name; counter++) {
		const u64 *value = values + counter->offset;
		u64 *sum = sums + counter->offset;

		*sum = counter->is_max ? max(*sum, *value) : *sum + *value;
	}
}

static void tw_show_counters(struct seq_file *m, const struct tw_counter *counter,
			     const void *values)
{
	for (; counter->name; counter++)
		seq_printf(m, "%s %llu\n", counter->name,
			   *(const u64 *)(values + counter->offset));
}

static int counters_show(struct seq_file *m, void *unused)
{
	u64 open = 0, pending = 0, ready = 0;
	struct twheel_stats sum, stats;
	struct tw_inner inner_sum, inner;
	struct twheel_info info;
	struct twheel *tw;

	mutex_lock(&tw_all_lock);
	sum = tw_closed_stats;
	inner_sum = tw_closed_inner;
	list_for_each_entry(tw, &tw_all, all) {
		tw_get_stats(tw, &stats, &inner);
		tw_add_counters(tw_counters, &sum, &stats);
		tw_add_counters(tw_inner_counters, &inner_sum, &inner);
		tw_get_info(tw, &info);
		pending += info.pending;
		ready += info.ready;
		open++;
		cond_resched();
	}
	seq_printf(m, "open %llu\nopened %llu\npending %llu\nready %llu\n",
		   open, tw_closed + open, pending, ready);
	mutex_unlock(&tw_all_lock);
	tw_show_counters(m, tw_counters, &sum);
	tw_show_counters(m, tw_inner_counters, &inner_sum);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

void tw_stats_init(void)
{
	tw_dir = debugfs_create_dir("twheel", NULL);
	debugfs_create_file("counters", 0400, tw_dir, NULL, &counters_fops);
}

void tw_stats_exit(void)
{
	debugfs_remove(tw_dir);
}

/**
 * tw_stats_add() - count a new wheel
 * @tw: the wheel
 *
 * Context: may sleep.
 */
void tw_stats_add(struct twheel *tw)
{
	mutex_lock(&tw_all_lock);
	list_add(&tw->all, &tw_all);
	mutex_unlock(&tw_all_lock);
}

/**
 * tw_stats_del() - keep the counters of a wheel that goes
 * @tw: the wheel
 *
 * Context: may sleep.
 */
void tw_stats_del(struct twheel *tw)
{
	mutex_lock(&tw_all_lock);
	list_del(&tw->all);
	tw_add_counters(tw_counters, &tw_closed_stats, &tw->stats);
	tw_add_counters(tw_inner_counters, &tw_closed_inner, &tw->inner);
	tw_closed++;
	mutex_unlock(&tw_all_lock);
}
