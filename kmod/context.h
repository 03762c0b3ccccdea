/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel in use: what one open of /dev/twheel gives.
 */
#ifndef TW_CONTEXT_H
#define TW_CONTEXT_H

#include <linux/atomic.h>
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <uapi/linux/twheel.h>

#include "clock.h"
#include "shared.h"
#include "table.h"
#include "wheel.h"

struct mem_cgroup;
struct tw_share;
struct tw_user;

/**
 * struct tw_inner - counters of what the wheel does inside, for debugfs
 * @deferred: times that work was deferred: what is over the budget of a run to a
 *	worker, and what is over the user's share of a processor to a later time
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
 * @all: entry in the list of all wheels, guarded by its lock
 * @wait: readers and pollers
 * @work: goes on with work over the budget
 * @timer: set for the next tick at which there is something to do
 * @turn: entry in the queue of @waits_for, guarded by its lock
 * @turns: turns that it has got from a queue, and that are not over
 * @place: it has one of its user's places with the workers, guarded by the user's lock
 * @wanted: entry in the queue of those who wait for one, likewise
 * @eventfd_lock: guards @eventfd
 * @eventfd: signalled when timers become ready, or NULL
 * @shared: shared timers, or NULL. Set once, under @lock, and released; guarded by
 *	@lock but for what is said there
 * @lock: guards all that follows
 * @wheel: the wheel itself
 * @table: its nodes
 * @periods: what periodic timers have besides
 * @timer_tick: tick that @timer is set for, or TW_NEVER
 * @limit: most timers that it may hold, besides shared ones
 * @flags: TWHEEL_SETUP_*
 * @unit: bytes of an event, or in count mode of the count; read without @lock, too
 * @counted: in count mode, expiries taken from the wheel and not yet read
 * @fixed: the set-up can't be changed any more
 * @waits_for: what is due is throttled until there is time in this share, or NULL; read
 *	without @lock, too
 * @closing: the timer and the worker must not be started any more; read without @lock,
 *	too
 * @stats: counters
 * @inner: more of them
 * @check_saved: see tw_check_due()
 */
struct twheel {
	u64 nr;
	struct tw_user *user;
	struct mem_cgroup *memcg;
	struct list_head all;
	wait_queue_head_t wait;
	struct delayed_work work;
	struct hrtimer timer;
	struct list_head turn;
	atomic_t turns;
	bool place;
	struct list_head wanted;

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
	struct tw_share *waits_for;
	struct twheel_stats stats;
	struct tw_inner inner;
#ifdef TW_CHECK
	u32 check_saved;
#endif
};

/**
 * struct tw_batch - what is common to operations under one hold of the lock
 * @uops: where the program has them, which can be at any address, 0 included
 * @copy: where the copy of them is that is worked on, or NULL if they are done where
 *	they are
 * @now: the time that it is now, in ns
 * @quota: timers that may be armed without looking at limits or memory: so many nodes are
 *	free, and remain so
 * @no_period: an operation was not done as it needs what a periodic timer has besides
 * @error: why there are not as many nodes as there could be need of, or 0
 * @expired: timers that were ready at once
 * @written: false if an operation was not done as its result can't be written
 */
struct tw_batch {
	void __user *uops;
	const void *copy;
	s64 now;
	u32 quota;
	bool no_period;
	int error;
	u32 expired;
	bool written;
};

/* context.c: its life, its memory, its settings */
struct twheel *tw_create(void);
void tw_destroy(struct twheel *tw);
int tw_setup(struct twheel *tw, const struct twheel_setup *setup);
int tw_set_eventfd(struct twheel *tw, int fd);
void tw_get_info(struct twheel *tw, struct twheel_info *info);
void tw_get_stats(struct twheel *tw, struct twheel_stats *stats,
		  struct tw_inner *inner);
int tw_add_nodes(struct twheel *tw, struct tw_table *table, unsigned int nodes);
void tw_free_spare(struct twheel *tw, struct tw_chunk *spare);
s64 tw_now(struct twheel *tw, s64 *tick);

/* ops.c: what a program does to timers */
void tw_begin(struct twheel *tw, struct tw_batch *batch, unsigned int nodes,
	      unsigned int periods);
unsigned int tw_do_ops(struct twheel *tw, struct tw_batch *batch, void *ops,
		       unsigned int nr, u32 size);
void tw_end(struct twheel *tw, struct tw_batch *batch);
void tw_fill_op(struct twheel *tw, const struct tw_node *node, u32 index,
		struct twheel_op *op);
s64 tw_jitter(u64 jitter);

/* expire.c: time passes. (The budget is like the limits in user.h.) */
extern unsigned int tw_budget;
extern struct workqueue_struct *tw_workqueue;
extern struct workqueue_struct *tw_shared_workqueue;
enum hrtimer_restart tw_timer_fn(struct hrtimer *timer);
enum hrtimer_restart tw_turns_fn(struct hrtimer *timer);
void tw_work_fn(struct work_struct *work);
void tw_catch_up(struct twheel *tw);
bool tw_assist(struct twheel *tw);
int tw_doorbell(struct twheel *tw);
void tw_reprogram_timer(struct twheel *tw, s64 next);
void tw_wake(struct twheel *tw);

/* Shared timers, without the lock: once there are some, they are there for good. */
static inline struct tw_shared *tw_shared_of(const struct twheel *tw)
{
	/* Pairs with tw_setup(), which made them. */
	return smp_load_acquire(&tw->shared);
}

/*
 * Where its worker is. That of a wheel with shared timers has no higher priority: its
 * programs may have more work for it than for themselves.
 */
static inline struct workqueue_struct *tw_workqueue_of(const struct twheel *tw)
{
	return tw_shared_of(tw) ? tw_shared_workqueue : tw_workqueue;
}

/*
 * Without the lock: who waits is woken after the change that he waits for, and
 * looks again; who reads takes the lock, and may then find nothing.
 */
static inline bool tw_readable(const struct twheel *tw)
{
	const struct tw_shared *shared = tw_shared_of(tw);

	/* Of any value that it had, this is as good as the next. */
	if (data_race(READ_ONCE(tw->wheel.ready.count)))
		return true;
	/* Pairs with tw_count(): what it took from one is in the other before. */
	smp_rmb();
	/* As above */
	if (data_race(READ_ONCE(tw->counted)))
		return true;
	return shared && tw_shared_ready(shared);
}

/* Timers that a wheel holds, besides shared ones */
static inline u32 tw_timers(const struct twheel *tw)
{
	return tw->wheel.pending + tw->wheel.ready.count;
}

/* Timers that are pending, as far as the kernel knows, with shared ones */
static inline u32 tw_pending(const struct twheel *tw)
{
	return tw->wheel.pending + (tw->shared ? tw->shared->wheel.pending : 0);
}

/* The tick before which there is nothing to do, or TW_NEVER */
static inline s64 tw_next(const struct twheel *tw)
{
	return tw->shared ? min(tw->wheel.next, tw_shared_next(tw)) : tw->wheel.next;
}

/* read.c: read and drain */
struct iov_iter;
ssize_t tw_read_events(struct twheel *tw, struct iov_iter *to, u32 unit);
ssize_t tw_read_count(struct twheel *tw, struct iov_iter *to);
long tw_drain(struct twheel *tw, const struct twheel_drain *drain);

/* check_context.c: invariants, see check.h */
#ifdef TW_CHECK
void tw_check(struct twheel *tw, s64 next, u32 quota);
#else
static inline void tw_check(struct twheel *tw, s64 next, u32 quota) {}
#endif

/* What a periodic timer has besides */
static inline struct tw_period *tw_period_of(const struct twheel *tw,
					     const struct tw_node *node)
{
	return tw_period_at(&tw->periods, node->period);
}

/**
 * tw_free_timer() - end a timer that is on no list of the wheel
 * @tw: the wheel
 * @node: the timer
 * @index: its index
 *
 * Context: holds @tw->lock.
 */
static inline void tw_free_timer(struct twheel *tw, struct tw_node *node, u32 index)
{
	lockdep_assert_held(&tw->lock);
	if (unlikely(node->flags & TW_NODE_PERIODIC))
		tw_table_free(&tw->periods, node->period);
	tw_node_end(&tw->table, node, index);
}

#endif /* TW_CONTEXT_H */
