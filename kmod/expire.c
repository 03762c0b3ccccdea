// SPDX-License-Identifier: GPL-2.0
/*
 * Time passes: timers expire, and who waits is woken.
 *
 * The hrtimer of a wheel is set for the next tick with something to do. As that of a timerfd, it
 * only wakes who waits: the wheel is *due* then. Who reads or polls a wheel that is due, or makes
 * any other call for it, turns it first: tw_run() does what there is to do, a budget at a time.
 * So the time is charged to the program that has the timers, and whoever makes no call does
 * not notice that a wheel was not turned.
 *
 * But some are notified without a call, by an eventfd, by the ring of shared timers, or by a worker
 * of the kernel that polls for them: such a wheel is unattended. It has another hrtimer, which
 * turns it in a soft interrupt, as long as there is credit: a part of each processor's time, for
 * all wheels together. Without credit, or if something is left, it comes again later. Such wheels,
 * and all that are due at one time, form a queue on each processor, in which users take turns, and
 * so do the wheels of a user.
 */
#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>

#include "account.h"
#include "context.h"
#include "shared.h"
#include "trace.h"

/* Nodes and slots that one run touches, see main.c. */
unsigned int tw_budget = TW_BUDGET;

/* Wheels may keep a processor for one ns in TW_PART, and for TW_CREDIT_NS at once. */
#define TW_PART 16
#define TW_CREDIT_NS (200 * NSEC_PER_USEC)

/* How much more, of what is not there yet, who has waited in the queue may use */
#define TW_OVERDRAFT_NS (5 * NSEC_PER_MSEC)

/* A callback that took longer was interrupted, by the host of a virtual machine for instance. */
#define TW_CALLBACK_MOST_NS (50 * NSEC_PER_MSEC)

/*
 * What a wheel's two hrtimers cost, besides what their callbacks do: the interrupts above all, and
 * with PREEMPT_RT to switch to a thread and back
 */
#define TW_INTERRUPTS_NS ((IS_ENABLED(CONFIG_PREEMPT_RT) ? 10 : 4) * NSEC_PER_USEC)

/*
 * When all that the callbacks of wheels had of a processor is paid for, in ns: a part of the time
 * that goes by. Only soft interrupts of that processor change it.
 */
static DEFINE_PER_CPU(u64, tw_paid);

/* Of each processor; and where wheels are that are closed, so that they are in no other one */
static struct tw_queue tw_queues[TW_QUEUES + 1] = {
	[0 ... TW_QUEUES] = { .lock = __RAW_SPIN_LOCK_UNLOCKED(tw_queues.lock) },
};

/* May a callback begin, where @ns may be unpaid? */
static bool tw_has_credit(u64 now, u64 ns)
{
	return (s64)(this_cpu_read(tw_paid) - now) < (s64)(TW_PART * ns);
}

/* A callback that began at @start, and whose run ended at @ran, ends. */
static void tw_pay(struct twheel *tw, u64 start, u64 ran)
{
	u64 paid = this_cpu_read(tw_paid), most = READ_ONCE(tw_budget) * NSEC_PER_USEC;
	u64 ns;

	/*
	 * A run that takes more than 1 us for a node did not: it was interrupted. But to wake all
	 * who wait can take very long.
	 */
	ns = min(ran - start, most) + (ktime_get_ns() - ran) + atomic64_xchg(&tw->owed, 0);
	ns = min_t(u64, ns, TW_CALLBACK_MOST_NS);
	this_cpu_write(tw_paid, max(paid, start) + TW_PART * (ns + TW_INTERRUPTS_NS));
	WRITE_ONCE(tw->user->run_cost, ns);
}

/*
 * Set the second hrtimer of the first of a user's wheels in a queue for when each user can have had
 * as much as a callback for this one took last; where there is no credit, so that it is paid for.
 */
static void tw_set_turn(const struct tw_queue *queue, struct twheel *tw, bool at_once)
{
	u64 ns = (u64)queue->users * (READ_ONCE(tw->user->run_cost) + TW_INTERRUPTS_NS);
	u64 now = ktime_get_ns();

	lockdep_assert_held(&queue->lock);
	ns *= tw_has_credit(now, TW_CREDIT_NS) ? 1 : TW_PART;
	hrtimer_start(&tw->again, ns_to_ktime(at_once ? now : now + ns),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * tw_queue() - put a wheel that is due into this processor's queue, unless it is in one
 * @tw: the wheel
 * @again: something is left, or there was no credit
 *
 * What becomes due at one time comes one by one, so that programs run in between.
 *
 * Context: any.
 */
void tw_queue(struct twheel *tw, bool again)
{
	struct list_head *wheels;
	struct tw_queue *queue;
	unsigned long flags;
	bool first;

	/* Who is in it has its hrtimer set: nobody is to be preempted in between. */
	local_irq_save(flags);
	queue = &tw_queues[smp_processor_id() % TW_QUEUES];
	wheels = &tw->user->queued[queue - tw_queues];
	/* If it is in one: who takes it out sees what was done before. */
	smp_mb();
	if (!cmpxchg(&tw->queue, NULL, queue)) {
		raw_spin_lock(&queue->lock);
		first = list_empty(wheels);
		tw->waits = again || !first;
		list_add_tail(&tw->turn, wheels);
		if (first) {
			queue->users++;
			tw_set_turn(queue, tw, !again);
		}
		raw_spin_unlock(&queue->lock);
	}
	local_irq_restore(flags);
}

/* Take a wheel out of its queue. Returns true if it had to wait there. */
static bool tw_leave_queue(struct twheel *tw)
{
	struct tw_queue *queue = READ_ONCE(tw->queue);
	struct list_head *wheels;
	bool first, waited = false;
	unsigned long flags;

	if (!queue)
		return false;
	raw_spin_lock_irqsave(&queue->lock, flags);
	/*
	 * Or it is just getting there; or tw_again_fn() is faster, and it is in another one. Who
	 * sees it claimed sees it out of the list before, which has another lock.
	 */
	if (smp_load_acquire(&tw->queue) == queue && !list_empty(&tw->turn)) {
		wheels = &tw->user->queued[queue - tw_queues];
		waited = tw->waits;
		first = list_is_first(&tw->turn, wheels);
		list_del_init(&tw->turn);
		if (list_empty(wheels))
			queue->users--;
		else if (first)
			tw_set_turn(queue, list_first_entry(wheels, struct twheel, turn), false);
		/*
		 * Ordered both ways: who claims it next, for a queue with another lock, sees it out
		 * of this list; and who finds it here has done before what this then sees.
		 */
		xchg(&tw->queue, NULL);
	}
	raw_spin_unlock_irqrestore(&queue->lock, flags);
	return waited;
}

/**
 * tw_set_unattended() - somebody is notified of what is ready who makes no call before
 * @tw: the wheel, from now on
 *
 * Context: any process. With a full barrier.
 */
void tw_set_unattended(struct twheel *tw)
{
	WRITE_ONCE(tw->unattended, true);
	/* Either this sees that it is due, or the timer sees that it is unattended. */
	smp_mb();
	if (tw_is_due(tw))
		tw_queue(tw, false);
}

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
 * Scan for dirty timers, and turn the wheel of shared ones. Those that were due already
 * when the scan found them are as good as in time. Returns true if something is left.
 */
static bool tw_run_shared(struct twheel *tw, struct tw_step *step, bool *wake)
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
	*wake = tw_shared_must_notify(tw->shared);
	return dirty || more;
}

/*
 * Do what there is to do by now, within the budget.
 *
 * While something is left, and until what is ready can be seen, the wheel is due: so who looks
 * meanwhile waits for the lock. What makes it due meanwhile is for the next run.
 *
 * Returns true if something is left; *@ready becomes true if timers are ready.
 */
static bool tw_run(struct twheel *tw, bool *ready)
{
	int due = atomic_read_acquire(&tw->due);
	u32 budget = READ_ONCE(tw_budget);
	struct tw_step step = { .budget = budget };
	u64 start = ktime_get_ns();
	bool more = true, left = false;

	lockdep_assert_held(&tw->lock);
	/* The timer has come; or it came while it was to be cancelled, and was set meanwhile. */
	if (!hrtimer_is_queued(&tw->timer) || tw->timer_tick == TW_DUE)
		tw->timer_tick = TW_NEVER;
	step.stamp = tw_now(tw, &step.now);
	if (tw->shared)
		left = tw_run_shared(tw, &step, ready);
	while (more && step.budget) {
		more = tw_wheel_step(&tw->wheel, &step);
		if (step.expired) {
			tw_count_expired(tw, &step);
			*ready = true;
		}
	}
	left |= more;
	/* With shared timers, the program reads in the area when it has to ring the doorbell. */
	if (!left && tw->shared)
		left = !tw_shared_sleep(tw, step.now);
	else if (!left)
		tw_reprogram_timer(tw, max(tw_next(tw), step.now + 1));

	if (!left) {
		tw->stats.wakeups += due;
		atomic_sub_return_release(due, &tw->due);
	} else {
		/* The timer is not to come for what is left. */
		hrtimer_try_to_cancel(&tw->timer);
		tw->timer_tick = TW_DUE;
		tw->inner.deferred++;
		if (!due)
			atomic_inc(&tw->due);
	}

	tw->inner.cascaded += step.moved;
	tw->inner.largest_run = max_t(u64, tw->inner.largest_run,
				      budget - step.budget);
	tw->inner.longest_run = max(tw->inner.longest_run, ktime_get_ns() - start);
	tw_check(tw, left ? TW_NEVER : max(tw_next(tw), step.now + 1), 0);
	return left;
}

/* There is something to do: who waits is to look. In a hard interrupt, but with PREEMPT_RT. */
enum hrtimer_restart tw_timer_fn(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, timer);
	bool unattended, untold;
	u64 start = 0;

	atomic_inc(&tw->due);
	/* Pairs with tw_set_unattended(), and with those who wait, before they look. */
	smp_mb__after_atomic();
	unattended = READ_ONCE(tw->unattended);
	/* Before it looks at the queue: then @again, which leaves it later, sees it, too. */
	untold = READ_ONCE(tw->untold);
	if (unattended)
		tw_queue(tw, false);
	/* To wake workers costs the program nothing: @again does it, when there is credit. */
	if ((unattended && untold) || !waitqueue_active(&tw->wait))
		return HRTIMER_NORESTART;
	if (unattended)
		start = ktime_get_ns();
	wake_up_poll(&tw->wait, 0);
	/* Else each expiry costs the program a call. */
	if (unattended)
		atomic64_add(ktime_get_ns() - start, &tw->owed);
	return HRTIMER_NORESTART;
}

/*
 * Turn an unattended wheel. Who waits was woken by the first hrtimer, unless the wheel is untold.
 * Without credit, that waits for its turn in the queue.
 */
enum hrtimer_restart tw_again_fn(struct hrtimer *timer)
{
	struct twheel *tw = container_of(timer, struct twheel, again);
	u64 start = ktime_get_ns(), ran, may = TW_CREDIT_NS;
	bool ready = false;

	if (tw_leave_queue(tw))
		may += TW_OVERDRAFT_NS;
	if (!tw_has_credit(start, may)) {
		tw_queue(tw, true);
		return HRTIMER_NORESTART;
	}
	/* Or a task was faster, or has the lock, for which this does not wait. */
	if (READ_ONCE(tw->unattended) && tw_is_due(tw) && spin_trylock(&tw->lock)) {
		tw_run(tw, &ready);
		spin_unlock(&tw->lock);
	}
	ran = ktime_get_ns();
	/* Pairs with tw_look() and tw_set_eventfd(). */
	smp_mb();
	if (READ_ONCE(tw->untold))
		wake_up_poll(&tw->wait, 0);
	if (ready)
		tw_signal(tw);
	tw_pay(tw, start, ran);
	if (READ_ONCE(tw->unattended) && tw_is_due(tw))
		tw_queue(tw, true);
	return HRTIMER_NORESTART;
}

/* One run in the time of the current task. Returns true if something is left. */
static bool tw_turn_once(struct twheel *tw)
{
	bool left, told, ready = false;

	spin_lock_bh(&tw->lock);
	/* Who waits was woken as the wheel became due, */
	told = tw_is_due(tw);
	left = tw_run(tw, &ready);
	spin_unlock_bh(&tw->lock);
	/* Pairs with tw_look(), tw_set_unattended(), and with those who wait, before they look. */
	smp_mb();
	if (left && READ_ONCE(tw->unattended))
		tw_queue(tw, true);
	/* unless it is untold. What is left is for who waits, too. */
	if ((ready || left) && (!told || READ_ONCE(tw->untold)) && waitqueue_active(&tw->wait))
		wake_up_poll(&tw->wait, ready ? TW_READABLE : 0);
	if (ready)
		tw_signal(tw);
	return left;
}

/**
 * tw_dying() - was the current task killed?
 *
 * Its signal is not pending any more when it gives back what it has open.
 *
 * Context: any process.
 * Return: true if so.
 */
bool tw_dying(void)
{
	return fatal_signal_pending(current) || current->flags & PF_EXITING ||
		READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT;
}

/**
 * tw_turn() - do what is due, in the time of the current task
 * @tw: the wheel
 * @runs: how many runs at most
 *
 * Context: any process; may sleep.
 * Return: true if the wheel is due nevertheless, as it is if the task was killed.
 */
bool tw_turn(struct twheel *tw, unsigned int runs)
{
	/* Who was killed may look again and again, as io_uring does for him. */
	for (; tw_is_due(tw) && runs && !tw_dying(); runs--) {
		tw_turn_once(tw);
		cond_resched();
	}
	return tw_is_due(tw);
}

/**
 * tw_catch_up() - do what there is to do by now
 * @tw: the wheel
 *
 * What comes meanwhile is not waited for: else a program that arms shared timers faster than they
 * are found would never be done. That, and what is left when a signal comes, is for who waits.
 *
 * Context: may sleep.
 */
void tw_catch_up(struct twheel *tw)
{
	u32 pass = 0;
	bool done;
	s64 tick;

	spin_lock_bh(&tw->lock);
	tw_now(tw, &tick);
	if (tw->shared)
		pass = tw_shared_scan_anew(tw->shared);
	spin_unlock_bh(&tw->lock);
	do {
		done = !tw_turn_once(tw);
		spin_lock_bh(&tw->lock);
		done |= tw->wheel.clk > tick &&
			(!tw->shared || tw_shared_done(tw, tick, pass));
		spin_unlock_bh(&tw->lock);
		cond_resched();
	} while (!done && !signal_pending(current));
}

/**
 * tw_end_timers() - a wheel goes
 * @tw: the wheel, which is closing
 *
 * Context: may sleep.
 */
void tw_end_timers(struct twheel *tw)
{
	hrtimer_cancel(&tw->timer);
	/* As long as it is in a queue, or may get there, one before it may set the second. */
	while (cmpxchg(&tw->queue, NULL, &tw_queues[TW_QUEUES])) {
		tw_leave_queue(tw);
		cpu_relax();
	}
	hrtimer_cancel(&tw->again);
}
