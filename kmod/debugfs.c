// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the whole module, in debugfs: twheel/counters is the sum over all
 * wheels, those that are closed included. See debugfs.h.
 */
#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "context.h"
#include "debugfs.h"

static LIST_HEAD(tw_all);
static DEFINE_MUTEX(tw_all_lock);
/* Sums over the wheels that are closed, and their number. */
static struct twheel_stats tw_closed_stats;
static u64 tw_closed;
static struct dentry *tw_dir;

static const struct {
	const char *name;
	size_t offset;
	bool is_max;
} tw_counters[] = {
#define TW_SUM(field) { #field, offsetof(struct twheel_stats, field), false }
#define TW_MAX(field) { #field, offsetof(struct twheel_stats, field), true }
	TW_SUM(armed),
	TW_SUM(modified),
	TW_SUM(cancelled),
	TW_SUM(expired),
	TW_SUM(overruns),
	TW_SUM(delivered),
	TW_SUM(drained),
	TW_SUM(limited),
	TW_SUM(wakeups),
	TW_SUM(deferred),
	TW_SUM(brought_down),
	TW_MAX(longest_run),
	TW_MAX(largest_run),
	TW_MAX(max_lateness),
};

static u64 *tw_counter(struct twheel_stats *stats, unsigned int i)
{
	return (u64 *)((char *)stats + tw_counters[i].offset);
}

static void tw_add_stats(struct twheel_stats *sum, struct twheel_stats *stats)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw_counters); i++) {
		u64 *to = tw_counter(sum, i);
		u64 value = *tw_counter(stats, i);

		*to = tw_counters[i].is_max ? max(*to, value) : *to + value;
	}
}

static int counters_show(struct seq_file *m, void *unused)
{
	u64 open = 0, pending = 0, ready = 0;
	struct twheel_stats sum, stats;
	struct twheel_info info;
	struct twheel *tw;
	unsigned int i;

	mutex_lock(&tw_all_lock);
	sum = tw_closed_stats;
	list_for_each_entry(tw, &tw_all, all) {
		tw_get_stats(tw, &stats);
		tw_add_stats(&sum, &stats);
		tw_get_info(tw, &info);
		pending += info.pending;
		ready += info.ready;
		open++;
	}
	seq_printf(m, "open %llu\nopened %llu\npending %llu\nready %llu\n",
		   open, tw_closed + open, pending, ready);
	mutex_unlock(&tw_all_lock);
	for (i = 0; i < ARRAY_SIZE(tw_counters); i++)
		seq_printf(m, "%s %llu\n", tw_counters[i].name,
			   *tw_counter(&sum, i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

void tw_debugfs_init(void)
{
	tw_dir = debugfs_create_dir("twheel", NULL);
	debugfs_create_file("counters", 0400, tw_dir, NULL, &counters_fops);
}

void tw_debugfs_exit(void)
{
	debugfs_remove(tw_dir);
}

/**
 * tw_debugfs_add() - count a new wheel
 * @tw: the wheel
 *
 * Context: may sleep.
 */
void tw_debugfs_add(struct twheel *tw)
{
	mutex_lock(&tw_all_lock);
	list_add(&tw->all, &tw_all);
	mutex_unlock(&tw_all_lock);
}

/**
 * tw_debugfs_del() - keep the counters of a wheel that goes
 * @tw: the wheel
 *
 * Context: may sleep.
 */
void tw_debugfs_del(struct twheel *tw)
{
	mutex_lock(&tw_all_lock);
	list_del(&tw->all);
	tw_add_stats(&tw_closed_stats, &tw->stats);
	tw_closed++;
	mutex_unlock(&tw_all_lock);
}
