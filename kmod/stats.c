// SPDX-License-Identifier: GPL-2.0
/*
 * What a wheel holds and has counted; and the file twheel/counters in debugfs: the sums of
 * the counters of all wheels, also of those that are closed.
 */
#include <linux/build_bug.h>
#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "account.h"
#include "context.h"
#include "shared.h"

#define TW_URING_FEATURE (IS_ENABLED(CONFIG_IO_URING) ? TWHEEL_FEATURE_URING : 0)

/**
 * struct tw_sums - counters of several wheels together
 * @stats: what STATS says of each
 * @inner: more of them
 */
struct tw_sums {
	struct twheel_stats stats;
	struct tw_inner inner;
};

/*
 * Guards the list of wheels, the numbers and the sums. Not a mutex: whoever has that may be
 * throttled, and all others who open or close a wheel would wait for him.
 */
static DEFINE_SPINLOCK(tw_all_lock);
/* All wheels, the newest first, and a mark where who reads the counters has come to */
static LIST_HEAD(tw_all);
static u64 tw_nr_open, tw_nr_opened;
/* Sums over wheels that are closed */
static struct tw_sums tw_sum_closed;
/* Sums over wheels that this reading has read, or that were closed before their turn */
static struct tw_sums tw_sum_read;
static u64 tw_reading;

/* One reads at a time, as there is one mark and one sum. */
static DEFINE_MUTEX(tw_reading_lock);
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
		.tick_min = tw_clock_tick(TWHEEL_TICK_MIN_NS),
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
	info->now = tw_clock_to_user(&tw->wheel.clock, tw_clock_now(&tw->wheel.clock));
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

static void tw_sum_up(struct tw_sums *sums, const struct twheel_stats *stats,
		      const struct tw_inner *inner)
{
	tw_add_counters(tw_counters, &sums->stats, stats);
	tw_add_counters(tw_inner_counters, &sums->inner, inner);
}

static void tw_show_counters(struct seq_file *m, const struct tw_counter *counter,
			     const void *values)
{
	for (; counter->name; counter++)
		seq_printf(m, "%s %llu\n", counter->name,
			   *(const u64 *)(values + counter->offset));
}

/* Read the wheel after the mark. */
static void tw_read_wheel(struct list_head *mark, struct twheel_info *info)
{
	struct twheel *tw = list_entry(mark->next, struct twheel, all);
	struct twheel_stats stats;
	struct tw_inner inner;

	lockdep_assert_held(&tw_all_lock);
	list_move(mark, &tw->all);
	tw->reading = tw_reading;
	tw_get_stats(tw, &stats, &inner);
	tw_sum_up(&tw_sum_read, &stats, &inner);
	tw_get_info(tw, info);
}

/*
 * There may be very many wheels, so others open and close wheels meanwhile. All that are open
 * when this begins count: those that are closed before their turn by tw_stats_del().
 */
static int counters_show(struct seq_file *m, void *unused)
{
	u64 open, opened, pending = 0, ready = 0;
	struct twheel_info info;
	LIST_HEAD(mark);

	if (mutex_lock_killable(&tw_reading_lock))
		return -EINTR;
	spin_lock_bh(&tw_all_lock);
	tw_reading++;
	tw_sum_read = tw_sum_closed;
	open = tw_nr_open;
	opened = tw_nr_opened;
	list_add(&mark, &tw_all);
	while (!list_is_last(&mark, &tw_all)) {
		tw_read_wheel(&mark, &info);
		pending += info.pending;
		ready += info.ready;
		spin_unlock_bh(&tw_all_lock);
		cond_resched();
		spin_lock_bh(&tw_all_lock);
	}
	list_del(&mark);
	spin_unlock_bh(&tw_all_lock);
	/* Each wheel is read, or new: nobody adds to the sum now. */
	seq_printf(m, "open %llu\nopened %llu\npending %llu\nready %llu\n",
		   open, opened, pending, ready);
	tw_show_counters(m, tw_counters, &tw_sum_read.stats);
	tw_show_counters(m, tw_inner_counters, &tw_sum_read.inner);
	mutex_unlock(&tw_reading_lock);
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
 * Context: any process.
 */
void tw_stats_add(struct twheel *tw)
{
	spin_lock_bh(&tw_all_lock);
	tw->reading = tw_reading;
	list_add(&tw->all, &tw_all);
	tw_nr_open++;
	tw_nr_opened++;
	spin_unlock_bh(&tw_all_lock);
}

/**
 * tw_stats_del() - keep the counters of a wheel that goes
 * @tw: the wheel, which does not run any more
 *
 * Context: any process.
 */
void tw_stats_del(struct twheel *tw)
{
	spin_lock_bh(&tw_all_lock);
	list_del(&tw->all);
	tw_nr_open--;
	tw_sum_up(&tw_sum_closed, &tw->stats, &tw->inner);
	if (tw->reading != tw_reading)
		tw_sum_up(&tw_sum_read, &tw->stats, &tw->inner);
	spin_unlock_bh(&tw_all_lock);
}
