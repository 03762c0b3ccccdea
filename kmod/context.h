/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel in use: &struct twheel, which each open of /dev/twheel creates.
 *
 * It joins the pure parts (the wheel, its table of nodes and its clock) with what the
 * kernel needs around them: a lock, hrtimers, readers that wait, the limits and the account
 * of the user. What is here and in context.c, all other files work with:
 *
 *	life.c		create, set up, destroy
 *	ops.c		what a program does to timers
 *	read.c		events, counts and drained timers go to the program
 *	expire.c	what happens as time passes
 *	shared.c	the same for shared timers
 *	stats.c		what it holds, and has counted
 */
#ifndef TW_CONTEXT_H
#define TW_CONTEXT_H

#include <linux/atomic.h>
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <uapi/linux/twheel.h>

#include "account.h"
#include "clock.h"
#include "table.h"
#include "wheel.h"

struct iov_iter;
struct mem_cgroup;
struct tw_shared;

/**
 * struct tw_inner - counters of what the wheel does inside, for debugfs
 * @deferred: runs that left something to the next one, as it was more than a budget
 * @cascaded: timers moved from one level of the wheel to another
 * @longest_run: longest single run of expiry work, in ns: the time for which a
 *	processor was held
 * @largest_run: most of the budget that a single run used
 */
struct tw_inner {
	u64 deferred;
	u64 cascaded;
	u64 longest_run;
	u64 largest_run;
};

/**
 * struct twheel - a wheel in use
 * @nr: number that tells it apart in traces
 * @user: account of the opener
 * @memcg: cgroup of the opener, to which its memory is charged
 * @all: entry in the list of all wheels, guarded like @reading by its lock, see stats.c
 * @reading: the reading of all counters in which it was last read, or opened
 * @wait: readers and pollers
 * @timer: set for the next tick at which there is something to do
 * @again: turns a wheel that is due and unattended, see expire.c
 * @due: how often @timer came since the wheel was turned: there is something to do unless this is
 *	0; without @lock, like the four fields that follow
 * @owed: what was done for it in nobody's time, in ns, and is to be paid for by @again
 * @unattended: somebody is notified of what is ready who makes no call before
 * @untold: who was woken by @timer may not turn it, so @again wakes who waits
 * @queue: the one in which it is, or is about to be; or NULL; or that of wheels that are closed
 * @turn: entry in the user's part of it, guarded like @waits by its lock
 * @waits: it was not to come at once
 * @eventfd_lock: guards @eventfd
 * @eventfd: signalled when timers become ready, or NULL
 * @shared: shared timers, or NULL. Set once, under @lock, and released; guarded by
 *	@lock but for what is said there
 * @lock: guards all that follows
 * @wheel: the wheel itself
 * @table: its nodes
 * @periods: what periodic timers have besides
 * @timer_tick: tick that @timer is set for; or TW_NEVER; or TW_DUE, if it need not come
 * @limit: most timers that it may hold, besides shared ones
 * @flags: TWHEEL_SETUP_*
 * @unit: bytes of an event, or in count mode of the count; read without @lock, too
 * @counted: in count mode, expiries taken from the wheel and not yet read
 * @fixed: it was set up
 * @closing: @timer must not be set any more
 * @stats: counters
 * @inner: more of them
 * @check_saved: see tw_check_due()
 */
struct twheel {
	u64 nr;
	struct tw_user *user;
	struct mem_cgroup *memcg;
	struct list_head all;
	u64 reading;
	wait_queue_head_t wait;
	struct hrtimer timer;
	struct hrtimer again;
	atomic_t due;
	atomic64_t owed;
	bool unattended;
	bool untold;
	struct tw_queue *queue;
	struct list_head turn;
	bool waits;

	spinlock_t eventfd_lock;	/* guards the next field */
	struct eventfd_ctx *eventfd;
	struct tw_shared *shared;

	/* guards all that follows */
	spinlock_t lock ____cacheline_aligned;
	struct tw_wheel wheel;
	struct tw_table table;
	struct tw_table periods;
	s64 timer_tick;
	u32 limit;
	u32 flags;
	u32 unit;
	u64 counted;
	bool fixed;
	bool closing;
	struct twheel_stats stats;
	struct tw_inner inner;
#ifdef TW_CHECK
	u32 check_saved;
#endif
};

/* Before all ticks */
#define TW_DUE S64_MIN

/* What poll(2) says of a wheel that is readable */
#define TW_READABLE (EPOLLIN | EPOLLRDNORM)

s64 tw_now(struct twheel *tw, s64 *tick);
void tw_reprogram_timer(struct twheel *tw, s64 next);
void tw_signal(struct twheel *tw);
void tw_wake(struct twheel *tw);
void tw_add_all_slots(struct twheel *tw);
int __tw_add_nodes(struct twheel *tw, struct tw_table *table, unsigned int nodes);
void tw_free_spare(struct twheel *tw, struct tw_chunk *spare);
void tw_free_nodes(struct twheel *tw);

/**
 * tw_add_nodes() - allocate memory for nodes, unless so many are free
 * @tw: the wheel
 * @table: its table, or that of its periods
 * @nodes: how many free nodes there shall be
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM or, at the limit of the user, -ENOSPC.
 */
static inline int tw_add_nodes(struct twheel *tw, struct tw_table *table, unsigned int nodes)
{
	/* May be out of date: the caller checks again. Where there are nodes, there are slots. */
	if (likely(data_race(READ_ONCE(table->free)) >= nodes))
		return 0;
	return __tw_add_nodes(tw, table, nodes);
}

/* Shared timers, without the lock: once there are some, they are there for good. */
static inline struct tw_shared *tw_shared_of(const struct twheel *tw)
{
	/* Pairs with tw_setup(), which made them. */
	return smp_load_acquire(&tw->shared);
}

/* Is there something to do? Then who makes a call does it first. */
static inline bool tw_is_due(const struct twheel *tw)
{
	/* Pairs with tw_run(): if it is not, what was made ready can be seen. */
	return atomic_read_acquire(&tw->due);
}

/* Timers that a wheel holds, besides shared ones */
static inline u32 tw_timers(const struct twheel *tw)
{
	return tw->wheel.pending + tw->wheel.ready.count;
}

/* check_context.c: invariants, compiled in with TW_CHECK only */
#ifdef TW_CHECK
void tw_check(struct twheel *tw, s64 next, u32 quota);
#else
static inline void tw_check(struct twheel *tw, s64 next, u32 quota) {}
#endif

/*
 * What the other files are to each other, from the top of the picture in
 * docs/architecture.md on: each uses only what comes after it there.
 */

/* chardev.c */
int tw_device_add(void);
void tw_device_del(void);

/* submit.c */
long tw_submit(struct twheel *tw, u64 ops, u32 nr, u32 size);

/* life.c */
struct twheel *tw_create(void);
void tw_destroy(struct twheel *tw);
int tw_setup(struct twheel *tw, const struct twheel_setup *setup);
int tw_set_eventfd(struct twheel *tw, int fd);

/* read.c */
ssize_t tw_read_events(struct twheel *tw, struct iov_iter *to, u32 unit, u32 most);
ssize_t tw_read_count(struct twheel *tw, struct iov_iter *to, u32 most);
long tw_drain(struct twheel *tw, const struct twheel_drain *drain);

/* expire.c; @tw_budget is a parameter, which is read like the limits in account.h. */
extern unsigned int tw_budget;
enum hrtimer_restart tw_timer_fn(struct hrtimer *timer);
enum hrtimer_restart tw_again_fn(struct hrtimer *timer);
bool tw_dying(void);
bool tw_turn(struct twheel *tw, unsigned int runs);
void tw_catch_up(struct twheel *tw);
void tw_queue(struct twheel *tw, bool again);
void tw_set_unattended(struct twheel *tw);
void tw_end_timers(struct twheel *tw);

/* stats.c */
void tw_get_info(struct twheel *tw, struct twheel_info *info);
void tw_get_stats(struct twheel *tw, struct twheel_stats *stats,
		  struct tw_inner *inner);
void tw_stats_init(void);
void tw_stats_exit(void);
void tw_stats_add(struct twheel *tw);
void tw_stats_del(struct twheel *tw);

#endif /* TW_CONTEXT_H */
