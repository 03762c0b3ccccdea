// SPDX-License-Identifier: GPL-2.0
/*
 * Time passes: timers expire, and readers are woken.
 *
 * tw_run() does what is due, but no more than its budget allows. It is called from four
 * places:
 *
 * - the hrtimer of a wheel, which is set for the next tick with something to do;
 * - the worker, to which a run defers what is over its budget;
 * - the timer of a user's share of a processor, for wheels that wait for their turn, see
 *   turns.h: a wheel is throttled when its user has used up the share;
 * - a program that reads or polls a throttled wheel, rings the doorbell or drains shared
 *   timers, in its own time.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "account.h"
#include "compat.h"
#include "context.h"
#include "shared.h"
#include "trace.h"
#include "turns.h"

/* Nodes and slots that one run touches, see main.c. */
unsigned int tw_budget = TW_BUDGET;

/*
 * A worker makes room for ksoftirqd by so many sleeps of so many us, and then makes none for so
 * many ns. (Counted, not timed: beside other workers each sleep lasts longer, and all are
 * needed.)
 */
#define TW_ROOM_US 20
#define TW_ROOM_TIMES 32
#define TW_ROOM_EACH_NS (4 * NSEC_PER_MSEC)

/* A rest of a worker, in jiffies */
#define TW_PACE_JIFFIES 1

/* A slot that cascades ahead of time can wait if each of its nodes has so much time left. */
#define TW_AHEAD_NS 20000ULL

/*
 * A run that takes longer than this, and than this for each node or slot that it may touch, was
 * interrupted, for instance by the host of a virtual machine. It is charged no more.
 */
#define TW_RUN_MOST_NS (200 * NSEC_PER_USEC)
#define TW_TOUCH_MOST_NS 2000ULL

/* Who has the lock for which a worker spins may be stopped, by the same host. */
#define TW_SPIN_MOST_NS (10 * NSEC_PER_MSEC)

/* A wake-up takes as long as there are tasks and watches to wake, which nothing limits. */
#define TW_WAKE_MOST_NS NSEC_PER_SEC

/* A run with so many nodes to a slot was paid for when they were armed, see tw_was_paid(). */
#define TW_PAID_NODES 8

/* What a run has left undone: nothing, work that can wait, or work that is due */
enum tw_left { TW_NOTHING_LEFT, TW_LEFT_FOR_LATER, TW_LEFT };

/**
 * struct tw_did - what a run did
 * @wake: there is something ready: tw_wake() is to be called
 * @paid: the time was paid for when the timers were armed
 */
struct tw_did {
	bool wake;
	bool paid;
};

/* Count what a step made ready. */
static void tw_count_expired(struct twheel *tw, const struct tw_step *step)
{
	u64 lateness = step->stamp - tw_clock_tick_ns(&tw->wheel.clock, step->tick);

	tw->stats.expired += step->expired;
	tw->stats.lateness[fls64(lateness)] += step->expired;
	tw->stats.max_lateness = max(tw->stats.max_lateness, lateness);
	trace_twheel_expire(tw, step->expired, lateness);
}

/*
 * Is all that is left ahead of time, and time enough for it? Then the worker lets programs go
 * first; but the timer comes in each tick, and does a run, until all of it is done.
 */
static bool tw_has_time(const struct twheel *tw, const struct tw_step *step)
{
	u64 ahead = min_t(u64, step->ahead, U32_MAX) * tw->wheel.clock.tick;

	return step->ahead && ahead > TW_AHEAD_NS * step->left;
}

static enum tw_left tw_left_of(const struct twheel *tw, const struct tw_step *step,
			       bool more)
{
	if (!more)
		return TW_NOTHING_LEFT;
	return tw_has_time(tw, step) ? TW_LEFT_FOR_LATER : TW_LEFT;
}

/*
 * Scan for dirty timers, and turn the wheel of shared ones. Those that were due already
 * when the scan found them are as good as in time.
 */
static enum tw_left tw_run_shared(struct twheel *tw, struct tw_step *step, bool *wake)
{
	/* A part of the budget each: for ordinary timers, for due shared ones, for the scan. */
	u32 rest = tw->wheel.next <= step->now ? step->budget / 2 : 1;
	u32 due = (step->budget - rest) / 2;
	bool dirty, more = true;

	step->budget -= rest + due;
	dirty = tw_shared_scan_dirty(tw, step);
	step->budget += due;
	tw->stats.expired += step->expired;
	tw->stats.lateness[0] += step->expired;
	while (more && step->budget) {
		more = tw_shared_turn(tw, step);
		if (step->expired)
			tw_count_expired(tw, step);
	}
	step->budget += rest;
	*wake = tw_shared_must_notify(tw->shared, false);
	return dirty ? TW_LEFT : tw_left_of(tw, step, more);
}

/*
 * Was the time of this run paid for, by the program that armed the timers? Cascading a
 * node costs less than arming it did, even if it cascades on every level. But that does
 * not hold when every slot has one node only, as a slot costs far more than a node.
 */
static bool tw_was_paid(const struct twheel *tw, u32 budget, u32 slots,
			enum tw_left left)
{
	return !tw->shared && left != TW_NOTHING_LEFT &&
	       slots * TW_PAID_NODES <= budget;
}

/* Do what there is to do by now, @start, within the budget. Returns what is left. */
static enum tw_left tw_run(struct twheel *tw, ktime_t start, struct tw_did *did)
{
	u32 budget = READ_ONCE(tw_budget);
	struct tw_step step = { .budget = budget };
	enum tw_left left = TW_NOTHING_LEFT;
	bool more = true, dirty = false;
	u32 slots = 0;

	lockdep_assert_held(&tw->lock);
	/*
	 * Its callback may have come and found the lock taken, see tw_softirq_run(). Or it
	 * is throttled, and this is its turn, or done in somebody's own time.
	 */
	if (tw->waits_for || !hrtimer_is_queued(&tw->timer))
		tw->timer_tick = TW_NEVER;
	tw_share_leave(tw);
	step.stamp = tw_now(tw, &step.now);
	if (tw->shared)
		left = tw_run_shared(tw, &step, &did->wake);
	for (; more && step.budget; slots++) {
		more = tw_wheel_step(&tw->wheel, &step);
		if (step.expired) {
			tw_count_expired(tw, &step);
			did->wake = true;
		}
	}
	left = max(left, tw_left_of(tw, &step, more));
	did->paid = tw_was_paid(tw, budget, slots, left);
	/*
	 * With shared timers it comes in each tick until the wheel can sleep: only then a
	 * program is told when it has to ring the doorbell.
	 */
	if (tw->shared && left == TW_NOTHING_LEFT)
		dirty = !tw_shared_sleep(tw, step.now);
	else if (tw->shared || left == TW_LEFT)
		tw_reprogram_timer(tw, step.now + 1);
	else
		tw_reprogram_timer(tw, max(tw_next(tw), step.now + 1));
	left = dirty ? TW_LEFT : left;

	tw->inner.cascaded += step.moved;
	tw->inner.largest_run = max_t(u64, tw->inner.largest_run,
				      budget - step.budget);
	tw->inner.longest_run = max_t(u64, tw->inner.longest_run,
				      ktime_to_ns(ktime_sub(ktime_get(), start)));
	tw_check(tw, dirty ? TW_NEVER : max(tw_next(tw), step.now + 1), 0);
	return tw->closing ? TW_NOTHING_LEFT : left;
}

/*
 * The kernel takes the time once for all timers that it finds expired. When the
 * clock is set back meanwhile, that is ahead of the clock, and a timer that its
 * callback sets would expire at once, over and over until the clock gets there.
 */
static bool tw_set_back_meanwhile(const struct twheel *tw)
{
	return tw_clock_now(&tw->wheel.clock) < hrtimer_get_expires(&tw->timer);
}

/* The user's share of this processor is used up: the wheel waits for its turn. */
static void tw_throttle(struct twheel *tw, struct tw_share *share, ktime_t now,
			struct tw_did *did)
{
	lockdep_assert_held(&tw->lock);
	did->wake |= tw->shared && tw_shared_must_notify(tw->shared, true);
	tw->inner.deferred++;
	if (tw->closing)
		return;
	if (hrtimer_is_queued(&tw->timer))
		hrtimer_try_to_cancel(&tw->timer);
	/* Its turn comes before any tick. */
	tw->timer_tick = S64_MIN;
	tw_share_leave(tw);
	tw_share_wait(share, tw, now);
}

static void tw_queue_worker(struct twheel *tw, enum tw_left left)
{
	/* It may rest just now. */
	if (left == TW_LEFT)
		mod_delayed_work(tw_workqueue_of(tw), &tw->work, 0);
	else
		queue_delayed_work(tw_workqueue_of(tw), &tw->work, 0);
}

/* The budget of a run is used up: the worker does the rest. */
static void tw_defer_to_worker(struct twheel *tw, enum tw_left left)
{
	lockdep_assert_held(&tw->lock);
	tw->inner.deferred++;
	tw_queue_worker(tw, left);
}

/*
 * For how long a worker that waited for the lock has kept the processor. With PREEMPT_RT the
 * lock sleeps, and the wait does not count.
 */
static u64 tw_spun_for(ktime_t start, ktime_t end)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return 0;
	return min_t(u64, ktime_to_ns(ktime_sub(end, start)), TW_SPIN_MOST_NS);
}

/* For how long a run that began at @start has kept the processor */
static u64 tw_ran_for(ktime_t start)
{
	u64 most = TW_RUN_MOST_NS + READ_ONCE(tw_budget) * TW_TOUCH_MOST_NS;

	return min_t(u64, ktime_to_ns(ktime_sub(ktime_get(), start)), most);
}

/* Wake readers. Returns for how long that has kept the processor. */
static u64 tw_wake_for(struct twheel *tw)
{
	ktime_t start = ktime_get();

	tw_wake(tw);
	return min_t(u64, ktime_to_ns(ktime_sub(ktime_get(), start)), TW_WAKE_MOST_NS);
}

/* One run. What it leaves undone is deferred to the worker. */
static void tw_run_or_defer(struct twheel *tw, ktime_t start, struct tw_did *did)
{
	enum tw_left left = tw_run(tw, start, did);

	if (left != TW_NOTHING_LEFT)
		tw_defer_to_worker(tw, left);
}

/* The hrtimer of a wheel came, which may be before its user has time again. */
static void tw_timer_run(struct twheel *tw, struct tw_share *share, ktime_t start,
			 struct tw_did *did)
{
	lockdep_assert_held(&tw->lock);
	tw->timer_tick = TW_NEVER;
	tw->stats.wakeups++;
	if (tw_set_back_meanwhile(tw))
		tw_defer_to_worker(tw, TW_LEFT);
	else if (!tw_share_may_run(share, start))
		tw_throttle(tw, share, start, did);
	else
		tw_run_or_defer(tw, start, did);
}

/*
 * A run in a soft interrupt: of the hrtimer of a wheel; or with @share NULL of one that waited
 * and has its turn. Many threads of a program may hold the lock one after the other, and a
 * soft interrupt must not wait for them. So if the lock is taken, all work is deferred to the
 * worker. With PREEMPT_RT this is a thread, which may wait: for one batch of operations.
 *
 * Returns for how long it has kept the processor.
 */
static u64 tw_softirq_run(struct twheel *tw, struct tw_share *share, ktime_t start)
{
	struct tw_did did = {};
	u64 ns;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		spin_lock(&tw->lock);
	} else if (!spin_trylock(&tw->lock)) {
		tw_queue_worker(tw, TW_LEFT);
		return tw_ran_for(start);
	}
	/* With PREEMPT_RT it may have slept. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		start = ktime_get();
	if (share)
		tw_timer_run(tw, share, start, &did);
	else
		tw_run_or_defer(tw, start, &did);
	spin_unlock(&tw->lock);
	ns = tw_ran_for(start);
	if (did.wake)
		ns += tw_wake_for(tw);
	return ns;
}

enum hrtimer_restart tw_timer_fn(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, timer);
	struct tw_share *share = this_cpu_ptr(tw->user->shares);

	tw_share_ran(share, tw_softirq_run(tw, share, ktime_get()));
	return HRTIMER_NORESTART;
}

/* Only now may it be freed, and its user be forgotten. */
static void tw_turn_over(struct twheel *tw)
{
	if (atomic_dec_and_test(&tw->turns))
		wake_up_var(&tw->turns);
}

enum hrtimer_restart tw_turns_fn(struct hrtimer *timer)
{
	struct tw_share *share = container_of(timer, struct tw_share, timer);
	ktime_t now = ktime_get();
	struct twheel *tw;

	while ((tw = tw_share_next(share, now))) {
		tw_share_ran(share, tw_softirq_run(tw, NULL, now));
		tw_turn_over(tw);
		now = ktime_get();
	}
	return HRTIMER_NORESTART;
}

/* When a worker last ended making room for ksoftirqd, whether or not it had run */
static DEFINE_PER_CPU(u64, tw_made_room);

static bool tw_softirqs_pending(void)
{
	bool pending;

	preempt_disable();
	pending = local_softirq_pending();
	preempt_enable();
	return pending;
}

/*
 * While ksoftirqd is runnable, Linux 6.1 does no soft interrupts on its processor but those
 * that it does itself. So a worker, which has a higher priority, has to make room for it: again
 * and again, as another user's worker may take the processor that it leaves. But not after
 * each run: in a storm of packets some are pending whenever a worker looks, and it can't
 * go on before those under way are done.
 */
static void tw_yield_to_ksoftirqd(void)
{
	unsigned int times;

	/* There, the timers of wheels expire in a thread of a higher priority than the worker's. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !tw_softirqs_pending() ||
	    ktime_get_ns() - this_cpu_read(tw_made_room) < TW_ROOM_EACH_NS)
		return;
	for (times = 0; times < TW_ROOM_TIMES && tw_softirqs_pending(); times++)
		usleep_range(TW_ROOM_US, 2 * TW_ROOM_US);
	this_cpu_write(tw_made_room, ktime_get_ns());
}

/*
 * One run of the worker. Its time is charged to the user's share of this processor, and so
 * is the wait for the lock, unless the run was paid for and is free. If the share is used
 * up, the wheel is throttled instead.
 */
static enum tw_left tw_work_once(struct twheel *tw)
{
	enum tw_left left = TW_NOTHING_LEFT;
	struct tw_did did = {};
	struct tw_share *share;
	ktime_t wait, start;
	u64 ns;

	local_bh_disable();
	share = this_cpu_ptr(tw->user->shares);
	wait = ktime_get();
	spin_lock(&tw->lock);
	start = ktime_get();
	if (tw_share_may_work(share, start))
		left = tw_run(tw, start, &did);
	else
		tw_throttle(tw, share, start, &did);
	spin_unlock(&tw->lock);
	ns = tw_spun_for(wait, start) + tw_ran_for(start);
	if (did.paid)
		tw_share_ran_free(share, ns);
	else
		tw_share_ran(share, ns);
	if (did.wake)
		tw_share_ran(share, tw_wake_for(tw));
	local_bh_enable();
	cond_resched();
	return left;
}

/*
 * The workers of all users share a limited number of threads. So a worker gives its thread
 * back after some runs, and sleeps in it only to make room for ksoftirqd.
 *
 * With shared timers a wheel needs no place: all its time is charged, see tw_was_paid(), and
 * its share limits it. If it had one, it could lose the processor to any program while
 * other wheels wait for the place, as its workqueue has no higher priority.
 */
void tw_work_fn(struct work_struct *work)
{
	struct twheel *tw = container_of(to_delayed_work(work), struct twheel, work);
	bool charged = tw_shared_of(tw);
	unsigned int runs = 0;
	enum tw_left left;

	if (!charged && !tw_place_get(tw))
		return;
	do {
		left = tw_work_once(tw);
		if (!charged)
			tw_yield_to_ksoftirqd();
	} while (left != TW_NOTHING_LEFT && ++runs < TW_PACE_RUNS);
	if (!charged)
		tw_place_put(tw);
	if (left == TW_NOTHING_LEFT)
		return;
	queue_delayed_work(tw_workqueue_of(tw), &tw->work,
			   left == TW_LEFT ? 0 : TW_PACE_JIFFIES);
}

/*
 * One run for a program that called at @tick; @pass is the last that may find what was dirty
 * then. What came since is not waited for: else a program that arms timers faster than they
 * are found would never be done.
 */
static enum tw_left tw_catch_up_once(struct twheel *tw, s64 tick, u32 pass, bool *done)
{
	struct tw_did did = {};
	enum tw_left left;

	spin_lock_bh(&tw->lock);
	left = tw_run(tw, ktime_get(), &did);
	*done = left != TW_LEFT || (tw->wheel.clk > tick && tw_shared_done(tw, tick, pass));
	spin_unlock_bh(&tw->lock);
	if (did.wake)
		tw_wake(tw);
	cond_resched();
	return left;
}

/**
 * tw_catch_up() - do what there is to do by now
 * @tw: the wheel, with shared timers
 *
 * What can wait, what came meanwhile, and what is left when a signal comes, is deferred to the
 * worker.
 *
 * Context: may sleep.
 */
void tw_catch_up(struct twheel *tw)
{
	enum tw_left left;
	bool done;
	s64 tick;
	u32 pass;

	spin_lock_bh(&tw->lock);
	tw_now(tw, &tick);
	pass = tw_shared_scan_anew(tw->shared);
	spin_unlock_bh(&tw->lock);
	do {
		left = tw_catch_up_once(tw, tick, pass, &done);
	} while (!done && !signal_pending(current));
	if (left != TW_NOTHING_LEFT)
		tw_queue_worker(tw, left);
}

/**
 * tw_assist() - do a piece of what was throttled, in the time of the current task
 * @tw: the wheel
 *
 * A program that reads or polls a throttled wheel does the work in its own time, and need
 * not wait for the wheel's turn.
 *
 * Context: any process; may sleep.
 * Return: true if some of it is left.
 */
bool tw_assist(struct twheel *tw)
{
	struct tw_did did = {};
	bool more = false;
	ktime_t now;

	/* If it is throttled just now, that is as good as later. */
	if (!data_race(READ_ONCE(tw->waits_for)))
		return false;
	spin_lock_bh(&tw->lock);
	now = ktime_get();
	if (tw->waits_for)
		more = tw_run(tw, now, &did) != TW_NOTHING_LEFT;
	if (more)
		tw_throttle(tw, this_cpu_ptr(tw->user->shares), now, &did);
	spin_unlock_bh(&tw->lock);
	if (did.wake)
		tw_wake(tw);
	cond_resched();
	return more;
}
