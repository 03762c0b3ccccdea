// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of time that passes for a wheel in use: when it goes on with what it may
 * not do, or need not do, at once. (Here, time passes only when nobody works.)
 */
#define tw_device_add test_device_add
#define tw_device_del test_device_del
#define tw_budget test_budget
#define tw_timer_fn test_timer_fn
#define tw_turns_fn test_turns_fn
#define tw_work_fn test_work_fn
#define tw_catch_up test_catch_up
#define tw_assist test_assist

#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include <linux/wait_bit.h>
#include <uapi/linux/twheel.h>

#include "account.h"
#include "context.h"
#include "ops.h"
#include "shared.h"
#include "turns.h"

/*
 * Both are here a second time: the calls of the device are its own; and with one processor
 * no lock is ever taken when a soft interrupt comes, but where a test says so.
 */
static bool lock_taken;

/* What another thread of the program does after each run of one that catches up */
static void (*meanwhile)(struct twheel *tw);

/* How often a worker made room */
static unsigned int yields;

static void made_room(unsigned long least, unsigned long most)
{
	yields++;
}

#define spin_trylock(lock) (!lock_taken && spin_trylock(lock))
#define signal_pending(task) ((meanwhile && (meanwhile(tw), false)) || signal_pending(task))
#define usleep_range made_room
#include "kmod/expire.c"
#undef spin_trylock
#undef signal_pending
#undef usleep_range
#include "kmod/chardev.c"

/* A window in which a processor is shared out, in ns */
#define WINDOW BIT(18)

/* The share of a user in that */
#define SHARE (WINDOW / 8)

/* What a node has to have until it is due, so that there is time, in ns */
#define AHEAD 20000

static struct twheel *set_up(struct kunit *test, struct twheel_setup setup)
{
	struct twheel *tw = tw_create();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	test->priv = tw;
	KUNIT_ASSERT_EQ(test, tw_setup(tw, &setup), 0);
	return tw;
}

static struct twheel *wheel_of(struct kunit *test, u64 tick)
{
	return set_up(test, (struct twheel_setup){
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick = tick,
	});
}

static struct twheel *shared_wheel_of(struct kunit *test, u32 nr)
{
	return set_up(test, (struct twheel_setup){
		.flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick = NSEC_PER_MSEC,
		.shared = nr,
	});
}

static void end_wheel(struct kunit *test)
{
	if (test->priv)
		tw_destroy(test->priv);
	/* The next test begins with an account that owes nothing. */
	tw_users_exit();
}

/* So many timers, so many of them at a time, each 8 ms from that deadline on */
static void arm_each(struct kunit *test, struct twheel *tw, u32 nr, s64 deadline, u32 each)
{
	u32 n, left;

	for (left = nr; left; left -= n) {
		struct tw_batch batch = {};
		u32 i;

		n = min_t(u32, left, TW_BATCH);
		tw_begin(tw, &batch, n, 0);
		for (i = 0; i < n; i++) {
			struct twheel_op op = {
				.opcode = TWHEEL_OP_ARM,
				.flags = TWHEEL_ABS,
				.deadline = deadline + (nr - left + i) / each * 8 * NSEC_PER_MSEC,
			};

			tw_do_ops(tw, &batch, &op, 1, TWHEEL_OP_SIZE_ONCE);
		}
		tw_end(tw, &batch);
	}
	KUNIT_ASSERT_EQ(test, tw->wheel.pending, nr);
}

static void arm(struct kunit *test, struct twheel *tw, u32 nr, s64 deadline)
{
	arm_each(test, tw, nr, deadline, nr);
}

static void sleep_until(s64 ns)
{
	s64 us = div_s64(ns - ktime_get_ns(), NSEC_PER_USEC);

	usleep_range(us, us + 1);
}

static struct tw_share *share_of(struct twheel *tw)
{
	return this_cpu_ptr(tw->user->shares);
}

/* Wait for a time in the first half of a window. */
static void spin_until(s64 ns)
{
	while (ktime_get_ns() < ns || ktime_get_ns() % WINDOW > WINDOW / 2)
		udelay(5);
}

/* The user has taken so many shares, and owes nothing else. */
static void take_shares(struct twheel *tw, unsigned int shares)
{
	tw_share_may_run(share_of(tw), ktime_get());
	tw_share_ran(share_of(tw), shares * SHARE);
}

/* When is the first window in which this wheel's user has something left? */
static s64 window_after(s64 ns, unsigned int shares)
{
	return (ns / WINDOW + shares) * WINDOW;
}

/* A timer comes when its user has taken so many shares of the time. */
static void expect_deferred(struct kunit *test, unsigned int shares)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;
	s64 before, until;

	arm(test, tw, 1, due);
	sleep_until(due - NSEC_PER_MSEC);
	/* Its timer comes, but can't run before the share of this window is used up. */
	local_bh_disable();
	spin_until(due);
	take_shares(tw, shares);
	before = ktime_get_ns();
	local_bh_enable();
	until = ktime_to_ns(hrtimer_get_expires(&share_of(tw)->timer));

	KUNIT_EXPECT_EQ(test, tw->inner.deferred, 1);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 0);
	KUNIT_EXPECT_PTR_EQ(test, tw->waits_for, share_of(tw));
	KUNIT_EXPECT_EQ(test, until, window_after(before, shares));
	sleep_until(until + WINDOW);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
	KUNIT_EXPECT_NULL(test, tw->waits_for);
	/* Other tests judge what keeps the machine by this. */
	KUNIT_EXPECT_GT(test, tw->inner.largest_run, 0);
}

/* What is over its user's share does not wait for the next tick, be it ever so long. */
static void throttled_wheel_runs_within_a_tick(struct kunit *test)
{
	expect_deferred(test, 1);
}

/* What was taken of later shares is paid off first. */
static void throttled_wheel_waits_until_paid_off(struct kunit *test)
{
	expect_deferred(test, 20);
}

/* Each window pays for one share, and not for all that was taken. */
static void debt_paid_off_share_by_share(struct kunit *test)
{
	struct tw_share *share = share_of(wheel_of(test, NSEC_PER_SEC));
	ktime_t now = ktime_get();

	local_bh_disable();
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now));
	tw_share_ran(share, 20 * SHARE);
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, now + 10 * WINDOW));
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, now + 19 * WINDOW));
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now + 20 * WINDOW));
	local_bh_enable();
}

/* A worker may take eight shares, the timer one; both are the user's. */
static void worker_share_is_eight(struct kunit *test)
{
	struct tw_share *share = share_of(wheel_of(test, NSEC_PER_SEC));

	local_bh_disable();
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, ktime_get()));
	tw_share_ran(share, SHARE);
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, ktime_get()));
	KUNIT_EXPECT_TRUE(test, tw_share_may_work(share, ktime_get()));
	tw_share_ran(share, 7 * SHARE);
	KUNIT_EXPECT_FALSE(test, tw_share_may_work(share, ktime_get()));
	local_bh_enable();
}

/* A user who owed nothing has cascaded for a second, which is free. Bottom halves are off. */
static void use_up_free(struct kunit *test, struct tw_share *share, ktime_t now)
{
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now));
	for (i = 0; i < 100; i++)
		tw_share_ran_free(share, 10 * NSEC_PER_MSEC);
}

/* Cascading is free for a second; and then each eight windows for as long as a share. */
static void cascading_free_for_a_second(struct kunit *test)
{
	struct tw_share *share = share_of(wheel_of(test, NSEC_PER_SEC));
	ktime_t now = ktime_get();

	local_bh_disable();
	use_up_free(test, share, now);
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now));
	tw_share_ran_free(share, SHARE);
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, now));
	now += 8 * WINDOW;
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now));
	tw_share_ran_free(share, SHARE);
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now));
	tw_share_ran_free(share, SHARE);
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, now));
	local_bh_enable();
}

/* Was a run free in which so many timers are due, so many of each slot that cascades? */
static bool was_free(struct kunit *test, u32 nr, u32 each)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_MSEC);
	s64 due = ktime_get_ns() + 100 * NSEC_PER_MSEC;
	struct tw_did did = {};

	arm_each(test, tw, nr, due, each);
	local_bh_disable();
	spin_until(due + (nr / each + 1) * 8 * NSEC_PER_MSEC);
	spin_lock(&tw->lock);
	tw_run(tw, ktime_get(), &did);
	spin_unlock(&tw->lock);
	local_bh_enable();
	end_wheel(test);
	test->priv = NULL;
	return did.paid;
}

/* A run with few timers to a slot, or with few at all, was not paid for. */
static void only_full_slots_free(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, was_free(test, 1000, 1000));
	KUNIT_EXPECT_FALSE(test, was_free(test, 300, 3));
	KUNIT_EXPECT_FALSE(test, was_free(test, 10, 10));
}

/* Who closes all wheels, and opens another, has that second no second time. */
static void debt_outlives_last_wheel(struct kunit *test)
{
	struct tw_share *share = share_of(wheel_of(test, NSEC_PER_SEC));
	ktime_t now = ktime_get();
	unsigned int i;

	local_bh_disable();
	use_up_free(test, share, now);
	tw_share_ran(share, 20 * SHARE);
	local_bh_enable();

	tw_destroy(test->priv);
	test->priv = NULL;
	share = share_of(wheel_of(test, NSEC_PER_SEC));
	local_bh_disable();
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, now + 19 * WINDOW));
	KUNIT_EXPECT_TRUE(test, tw_share_may_run(share, now + 20 * WINDOW));
	/* Of the windows since, 20 eighths of a share are free. */
	for (i = 0; i < 4; i++)
		tw_share_ran_free(share, SHARE);
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, now + 20 * WINDOW));
	local_bh_enable();
}

/* A worker, to whom a timer left a wheel, does nothing either when the shares are used up. */
static void worker_without_share_throttled(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;
	s64 until;

	arm(test, tw, 1, due);
	hrtimer_cancel(&tw->timer);
	sleep_until(due);
	local_bh_disable();
	take_shares(tw, 20);
	until = window_after(ktime_get_ns(), 20);
	local_bh_enable();
	tw_work_fn(&tw->work.work);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 0);
	KUNIT_EXPECT_PTR_EQ(test, tw->waits_for, share_of(tw));
	sleep_until(until + WINDOW);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
}

/* One that waits for its turn has no timer, also when all is cancelled and more is armed. */
static void throttled_wheel_has_no_timer(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;

	arm(test, tw, 1, due);
	local_bh_disable();
	take_shares(tw, 20);
	local_bh_enable();
	tw_work_fn(&tw->work.work);
	KUNIT_ASSERT_PTR_EQ(test, tw->waits_for, share_of(tw));
	spin_lock_bh(&tw->lock);
	tw_reprogram_timer(tw, TW_NEVER);
	tw_reprogram_timer(tw, tw->wheel.next);
	spin_unlock_bh(&tw->lock);
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&tw->timer));
	KUNIT_EXPECT_PTR_EQ(test, tw->waits_for, share_of(tw));
}

/* Somebody else had the processor in the middle of a run: that is not charged. */
static void interrupted_run_charged_by_its_budget(struct kunit *test)
{
	u64 most = 200 * NSEC_PER_USEC + 2000ULL * tw_budget;

	KUNIT_EXPECT_EQ(test, tw_ran_for(ktime_get() - NSEC_PER_SEC), most);
	KUNIT_EXPECT_LT(test, tw_ran_for(ktime_get()), most);
}

/* One that is closing is not set to wait: nobody would take it out again. */
static void closing_wheel_not_throttled(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);

	local_bh_disable();
	take_shares(tw, 20);
	local_bh_enable();
	tw->closing = true;
	tw_work_fn(&tw->work.work);
	KUNIT_EXPECT_NULL(test, tw->waits_for);
}

static void soft_interrupt(struct tasklet_struct *tasklet)
{
	mdelay(5);
}

static DECLARE_TASKLET(somebody_else, soft_interrupt);

/* What comes as soon as a worker lets soft interrupts in is not its user's time. */
static void worker_not_charged_for_others(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);
	s64 before = ktime_get_ns();

	tasklet_schedule(&somebody_else);
	tw_work_fn(&tw->work.work);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - before, 5 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LT(test, share_of(tw)->ns, SHARE);
	tasklet_kill(&somebody_else);
}

/* Wheels of one user, of which each has one timer, all due at the same time */
#define WHEELS 3

static void have_all_wait(struct kunit *test, struct twheel **tw)
{
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;
	unsigned int i;

	for (i = 0; i < WHEELS; i++) {
		tw[i] = wheel_of(test, NSEC_PER_SEC);
		test->priv = NULL;
		arm(test, tw[i], 1, due);
	}
	sleep_until(due - NSEC_PER_MSEC);
	local_bh_disable();
	spin_until(due);
	take_shares(tw[0], 4);
	local_bh_enable();
	for (i = 0; i < WHEELS; i++)
		KUNIT_EXPECT_PTR_EQ(test, tw[i]->waits_for, share_of(tw[0]));
}

static void end_all(struct twheel **tw)
{
	unsigned int i;

	for (i = 0; i < WHEELS; i++)
		if (tw[i])
			tw_destroy(tw[i]);
}

/* As @i is the next in turn, it waits no more. */
static void expect_turn(struct kunit *test, struct twheel *tw)
{
	struct tw_share *share = share_of(tw);
	ktime_t later = ktime_add_ns(ktime_get(), 4 * WINDOW);

	tw_share_ran(share, SHARE / 4);
	KUNIT_EXPECT_PTR_EQ(test, tw_share_next(share, later), tw);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->turns), 1);
	atomic_dec(&tw->turns);
}

/* Who waits has its turn in the order in which they came, until the share is used up. */
static void waiting_wheels_run_in_order(struct kunit *test)
{
	struct twheel *tw[WHEELS];
	struct tw_share *share;
	unsigned int i;
	ktime_t later;

	have_all_wait(test, tw);
	share = share_of(tw[0]);
	local_bh_disable();
	KUNIT_EXPECT_NULL(test, tw_share_next(share, ktime_get()));
	/* There is time again, but others were there before. */
	later = ktime_add_ns(ktime_get(), 4 * WINDOW);
	KUNIT_EXPECT_FALSE(test, tw_share_may_run(share, later));
	for (i = 0; i < WHEELS; i++)
		expect_turn(test, tw[i]);
	KUNIT_EXPECT_NULL(test, tw_share_next(share, ktime_get()));
	local_bh_enable();
	end_all(tw);
}

static unsigned int wakeups;

static int count_wakeup(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	wakeups++;
	return 0;
}

/*
 * Who wants to know does what was deferred, and tells those that wait; and one that is closed
 * waits no more.
 */
static void wheel_assisted_or_closed_leaves_queue(struct kunit *test)
{
	struct wait_queue_entry reader;
	struct twheel *tw[WHEELS];

	have_all_wait(test, tw);
	wakeups = 0;
	init_waitqueue_func_entry(&reader, count_wakeup);
	add_wait_queue(&tw[0]->wait, &reader);
	KUNIT_EXPECT_FALSE(test, tw_assist(tw[0]));
	remove_wait_queue(&tw[0]->wait, &reader);
	KUNIT_EXPECT_EQ(test, wakeups, 1);
	KUNIT_EXPECT_EQ(test, tw[0]->stats.expired, 1);
	KUNIT_EXPECT_NULL(test, tw[0]->waits_for);
	tw_destroy(tw[1]);
	tw[1] = NULL;
	local_bh_disable();
	expect_turn(test, tw[2]);
	KUNIT_EXPECT_NULL(test, tw_share_next(share_of(tw[0]), ktime_get()));
	local_bh_enable();
	end_all(tw);
}

/* What a program that polls sees, and not a thread of the kernel, as this is one */
static u32 poll_of_program(struct file *file)
{
	u32 found;

	current->flags &= ~PF_KTHREAD;
	found = (__force u32)tw_fops.poll(file, NULL);
	current->flags |= PF_KTHREAD;
	return found;
}

/*
 * So does a program that polls, even if it never reads. A thread of the kernel does not, as
 * aio has one that polls: nobody would be charged.
 */
static void polled_wheel_assisted(struct kunit *test)
{
	struct file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);
	struct twheel *tw[WHEELS];

	KUNIT_ASSERT_NOT_NULL(test, file);
	have_all_wait(test, tw);
	file->private_data = tw[0];
	KUNIT_EXPECT_EQ(test, (__force u32)tw_fops.poll(file, NULL), 0);
	KUNIT_EXPECT_EQ(test, tw[0]->stats.expired, 0);
	KUNIT_EXPECT_EQ(test, poll_of_program(file), (__force u32)(EPOLLIN | EPOLLRDNORM));
	KUNIT_EXPECT_EQ(test, tw[0]->stats.expired, 1);
	KUNIT_EXPECT_NULL(test, tw[0]->waits_for);
	KUNIT_EXPECT_EQ(test, tw[1]->stats.expired, 0);
	end_all(tw);
}

/* The lock of a wheel is taken when a soft interrupt comes, for its timer or for its turn. */
static void expect_not_waited_for(struct kunit *test, struct twheel *tw,
				  enum hrtimer_restart (*callback)(struct hrtimer *timer),
				  struct hrtimer *timer)
{
	local_bh_disable();
	lock_taken = true;
	callback(timer);
	lock_taken = false;
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 0);
	KUNIT_EXPECT_EQ(test, work_busy(&tw->work.work), WORK_BUSY_PENDING);
	local_bh_enable();
	flush_delayed_work(&tw->work);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
}

/* Threads of a program may hold it one after the other: then the worker does the work. */
static void taken_lock_not_waited_for(struct kunit *test)
{
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;
	struct twheel *tw[2];
	struct tw_share *share;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw); i++) {
		tw[i] = wheel_of(test, NSEC_PER_SEC);
		test->priv = NULL;
		arm(test, tw[i], 1, due);
		hrtimer_cancel(&tw[i]->timer);
	}
	sleep_until(due + NSEC_PER_MSEC);
	expect_not_waited_for(test, tw[0], tw_timer_fn, &tw[0]->timer);
	share = share_of(tw[1]);
	spin_lock_bh(&share->lock);
	list_add_tail(&tw[1]->turn, &share->waiting);
	spin_unlock_bh(&share->lock);
	expect_not_waited_for(test, tw[1], tw_turns_fn, &share->timer);
	for (i = 0; i < ARRAY_SIZE(tw); i++)
		tw_destroy(tw[i]);
}

/* Who finds nothing to do leaves nothing to others. */
static void caught_up_worker_not_queued(struct kunit *test)
{
	struct twheel *tw = shared_wheel_of(test, 1);

	arm(test, tw, 1, ktime_get_ns() + NSEC_PER_SEC);
	flush_delayed_work(&tw->work);
	tw_catch_up(tw);
	KUNIT_EXPECT_EQ(test, work_busy(&tw->work.work), 0);
}

static long do_one(struct twheel *tw, struct twheel_op *op)
{
	struct tw_batch batch = {};

	tw_begin(tw, &batch, 1, 0);
	tw_do_ops(tw, &batch, op, 1, TWHEEL_OP_SIZE_ONCE);
	tw_end(tw, &batch);
	return op->result;
}

/* Nothing comes for the sake of a timer that is not there any more. */
static void last_timer_cancelled_wheel_sleeps(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_MSEC);
	struct twheel_op op = {
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.deadline = ktime_get_ns() + NSEC_PER_SEC,
	};

	KUNIT_EXPECT_EQ(test, do_one(tw, &op), 0);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&tw->timer));
	op = (struct twheel_op){ .opcode = TWHEEL_OP_CANCEL, .id = op.id };
	KUNIT_EXPECT_EQ(test, do_one(tw, &op), 0);
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&tw->timer));
}

/* A worker keeps its thread for some runs, not for one, nor until nothing is left. */
static void worker_leaves_its_place_after_some_runs(struct kunit *test)
{
	const u32 nr = 2 * TW_PACE_RUNS * TW_BUDGET_MIN, before = tw_budget;
	struct twheel *tw = wheel_of(test, NSEC_PER_MSEC);
	s64 due = ktime_get_ns() + NSEC_PER_SEC;
	u64 expired;
	u32 i;

	/* Each at a tick of its own, which is a piece of work. */
	for (i = 0; i < nr; i++) {
		struct twheel_op op = {
			.opcode = TWHEEL_OP_ARM,
			.flags = TWHEEL_ABS,
			.deadline = due + i * NSEC_PER_MSEC,
		};

		KUNIT_ASSERT_EQ(test, do_one(tw, &op), 0);
	}
	hrtimer_cancel(&tw->timer);
	sleep_until(due + nr * NSEC_PER_MSEC);
	tw_budget = TW_BUDGET_MIN;
	tw_work_fn(&tw->work.work);
	expired = tw->stats.expired;
	flush_delayed_work(&tw->work);
	tw_budget = before;
	KUNIT_EXPECT_GT(test, expired, TW_BUDGET_MIN);
	KUNIT_EXPECT_LE(test, expired, TW_PACE_RUNS * TW_BUDGET_MIN);
	/* What was left was put into the queue. */
	KUNIT_EXPECT_GT(test, tw->stats.expired, expired);
}

/* As if the clock was set back: the wheel's ticks go on, and its timer is for the same one. */
static void expect_ticks_go_on(struct kunit *test, struct twheel *tw)
{
	s64 tick, timer_tick;

	spin_lock_bh(&tw->lock);
	tw_now(tw, &tick);
	tw_wheel_forward(&tw->wheel, tick + 1000);
	timer_tick = tw->timer_tick;
	tw_now(tw, &tick);
	KUNIT_EXPECT_EQ(test, tick, tw->wheel.clk - 1);
	KUNIT_EXPECT_EQ(test, tw->timer_tick,
			timer_tick == TW_NEVER ? TW_NEVER : timer_tick + 1000);
	spin_unlock_bh(&tw->lock);
}

static void clock_set_back_ticks_go_on(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_MSEC);

	expect_ticks_go_on(test, tw);
	arm(test, tw, 1, ktime_get_ns() + 10 * NSEC_PER_SEC);
	expect_ticks_go_on(test, tw);
}

struct closing {
	struct twheel *tw;
	struct completion over;
};

static int close_wheel(void *arg)
{
	struct closing *closing = arg;

	tw_destroy(closing->tw);
	complete(&closing->over);
	return 0;
}

/* Who closes a wheel while it has its turn sleeps until that is over, and no longer. */
static void wheel_closed_in_its_turn_waits_for_its_end(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);
	struct tw_share *share = share_of(tw);
	struct closing closing = { .tw = tw };
	struct task_struct *task;

	init_completion(&closing.over);
	test->priv = NULL;
	atomic_inc(&tw->turns);
	task = kthread_run(close_wheel, &closing, "twheel-close");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&closing.over, HZ));
	/* Nor does its turn begin anything that would come later. */
	KUNIT_EXPECT_TRUE(test, READ_ONCE(tw->closing));

	/* That turn again, which really takes place */
	atomic_dec(&tw->turns);
	local_bh_disable();
	spin_lock(&share->lock);
	list_add_tail(&tw->turn, &share->waiting);
	spin_unlock(&share->lock);
	tw_turns_fn(&share->timer);
	local_bh_enable();
	if (wait_for_completion_timeout(&closing.over, HZ))
		return;
	KUNIT_FAIL(test, "it sleeps still");
	wake_up_var(&tw->turns);
	wait_for_completion(&closing.over);
}

/* Wheels of a user that workers turn at a time; there is one processor here */
#define PLACES 1

/* Then it is the turn of who waits. */
static void place_put_waiting_wheel_gets_it(struct kunit *test)
{
	struct twheel *tw[PLACES + 3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw); i++) {
		tw[i] = wheel_of(test, NSEC_PER_SEC);
		test->priv = NULL;
		KUNIT_EXPECT_EQ(test, tw_place_get(tw[i]), i < PLACES);
	}
	/* Who is closed waits no more, and is not to begin it. */
	tw_destroy(tw[PLACES]);
	list_del_init(&tw[PLACES + 1]->place_wait);
	tw[PLACES + 1]->closing = true;
	KUNIT_EXPECT_FALSE(test, tw_place_get(tw[PLACES + 1]));
	KUNIT_EXPECT_TRUE(test, list_empty(&tw[PLACES + 1]->place_wait));

	tw_place_put(tw[0]);
	KUNIT_EXPECT_FALSE(test, tw[0]->place);
	KUNIT_EXPECT_TRUE(test, tw[PLACES + 2]->place);
	KUNIT_EXPECT_EQ(test, work_busy(&tw[PLACES + 2]->work.work), WORK_BUSY_PENDING);
	KUNIT_EXPECT_EQ(test, tw[0]->user->places, PLACES);
	/* Nor does one that is closed keep it. */
	tw_destroy(tw[PLACES + 2]);
	KUNIT_EXPECT_EQ(test, tw[0]->user->places, PLACES - 1);
	for (i = 0; i < PLACES; i++)
		tw_destroy(tw[i]);
	tw_destroy(tw[PLACES + 1]);
}

/*
 * A slot that is due after 64 ticks leaves no time until so many nodes are left; the
 * worker rests only then, and a run or so may have been before it does. There are more
 * than 2^32 / AHEAD of them.
 */
static void large_slot_close_by_not_paced(struct kunit *test)
{
	const s64 tick = 16 * NSEC_PER_MSEC, turn = TW_LVL_CLK_DIV * tick;
	const u64 all = 265000, may_wait = turn / AHEAD;
	struct twheel *tw = wheel_of(test, tick);
	s64 start = (ktime_get_ns() / turn + 4) * turn;
	u64 left;

	tw->wheel.phase = 0;
	arm(test, tw, all, start);
	sleep_until(start - turn + 100 * NSEC_PER_USEC);
	left = all - tw->inner.cascaded;
	KUNIT_EXPECT_LE(test, left, may_wait);
	KUNIT_EXPECT_GT(test, left, may_wait - 16 * tw_budget);
	/* Meanwhile it is nobody's work. */
	KUNIT_EXPECT_EQ(test, work_busy(&tw->work.work), WORK_BUSY_PENDING);
	sleep_until(start);
	KUNIT_EXPECT_EQ(test, tw->inner.cascaded, all);
}

/*
 * The clock was set back after the kernel took the time by which a timer has expired: so
 * it comes before its time. To start it then would be for it to come at once, again.
 */
static void timer_early_not_restarted(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_MSEC);
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;

	arm(test, tw, 1, due);
	hrtimer_cancel(&tw->timer);
	local_bh_disable();
	tw_timer_fn(&tw->timer);
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&tw->timer));
	local_bh_enable();

	/* Nor is what there is to do forgotten. */
	sleep_until(due - NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&tw->timer));
	KUNIT_EXPECT_EQ(test, ktime_to_ns(hrtimer_get_expires(&tw->timer)), due);
}

/*
 * The callback came and found the lock taken, so that the worker does what it left. The
 * wheel must not take the callback for one that is still to come.
 */
static void timer_found_lock_taken_set_again(struct kunit *test)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_MSEC);
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;

	arm(test, tw, 1, due);
	hrtimer_cancel(&tw->timer);
	sleep_until(due - NSEC_PER_MSEC);
	queue_delayed_work(system_wq, &tw->work, 0);
	flush_delayed_work(&tw->work);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&tw->timer));
	KUNIT_EXPECT_EQ(test, ktime_to_ns(hrtimer_get_expires(&tw->timer)), due);
}

/* Processors come while it waits, so that it finds a place by itself. */
static void processor_added_place_got_once(struct kunit *test)
{
	struct twheel *tw[PLACES + 1];
	struct tw_user *user;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw); i++) {
		tw[i] = wheel_of(test, NSEC_PER_SEC);
		test->priv = NULL;
		KUNIT_EXPECT_EQ(test, tw_place_get(tw[i]), i < PLACES);
	}
	user = tw[0]->user;
	/* As if there was one more */
	user->places--;
	KUNIT_EXPECT_TRUE(test, tw_place_get(tw[PLACES]));
	user->places++;
	KUNIT_EXPECT_TRUE(test, list_empty(&tw[PLACES]->place_wait));
	for (i = 0; i < ARRAY_SIZE(tw); i++)
		tw_place_put(tw[i]);
	KUNIT_EXPECT_EQ(test, user->places, 0);
	for (i = 0; i < ARRAY_SIZE(tw); i++)
		tw_destroy(tw[i]);
}

/* With fewer processors there are fewer places: the next wheel waits until one is left. */
static void processor_gone_place_not_handed_on(struct kunit *test)
{
	struct twheel *tw[PLACES + 2];
	struct tw_user *user;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw); i++) {
		tw[i] = wheel_of(test, NSEC_PER_SEC);
		test->priv = NULL;
		user = tw[i]->user;
		/* As if there was one more, at first */
		user->places -= i == PLACES;
		KUNIT_EXPECT_EQ(test, tw_place_get(tw[i]), i <= PLACES);
		user->places += i == PLACES;
	}
	tw_place_put(tw[0]);
	KUNIT_EXPECT_EQ(test, user->places, PLACES);
	KUNIT_EXPECT_FALSE(test, tw[PLACES + 1]->place);
	tw_place_put(tw[1]);
	KUNIT_EXPECT_EQ(test, user->places, PLACES);
	KUNIT_EXPECT_TRUE(test, tw[PLACES + 1]->place);
	KUNIT_EXPECT_TRUE(test, list_empty(&user->waiting));
	for (i = 0; i < ARRAY_SIZE(tw); i++)
		tw_destroy(tw[i]);
}

/* Who rings the doorbell does all in one run, within its budget, and wakes who waits. */
static void due_shared_timers_wake_once(struct kunit *test)
{
	struct twheel *tw = shared_wheel_of(test, 10);
	struct tw_shared *shared = tw->shared;
	struct wait_queue_entry reader;
	u32 i;

	for (i = 0; i < 10; i++)
		atomic64_set(&shared->words[i], 1 | TWHEEL_WORD_ARMED);
	atomic64_set(&shared->dirty[0], GENMASK(9, 0));
	atomic64_set(&shared->groups[0], GENMASK(9 / TW_GROUP, 0));
	wakeups = 0;
	init_waitqueue_func_entry(&reader, count_wakeup);
	add_wait_queue(&tw->wait, &reader);
	tw_catch_up(tw);
	remove_wait_queue(&tw->wait, &reader);
	KUNIT_EXPECT_EQ(test, wakeups, 1);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 10);
	KUNIT_EXPECT_LE(test, tw->inner.largest_run, tw_budget);
}

/* Groups, each with more timers than a run may inspect, at a ms for a run */
#define GROUPS 8
static unsigned int runs;

/* Arm all timers of some groups. */
static void arm_groups(struct twheel *tw, unsigned int first, unsigned int nr, s64 deadline)
{
	struct tw_shared *shared = tw->shared;
	unsigned int i;

	for (i = first * TW_GROUP; i < (first + nr) * TW_GROUP; i++)
		atomic64_set(&shared->words[i], deadline | TWHEEL_WORD_ARMED);
	for (i = first * TW_GROUP_WORDS; i < (first + nr) * TW_GROUP_WORDS; i++)
		atomic64_set(&shared->dirty[i], U64_MAX);
	atomic64_set(&shared->groups[0], GENMASK(first + nr - 1, first));
}

/* A tick passes, and nobody else does any of it. Is the program to go on? */
static bool ran(struct twheel *tw)
{
	lock_taken = true;
	mdelay(1);
	lock_taken = false;
	hrtimer_cancel(&tw->timer);
	cancel_delayed_work_sync(&tw->work);
	return ++runs < 1000;
}

static void armed_far_again(struct twheel *tw)
{
	if (ran(tw))
		arm_groups(tw, 0, GROUPS, ktime_get_ns() + NSEC_PER_SEC);
}

static void armed_near_again(struct twheel *tw)
{
	if (ran(tw))
		arm_groups(tw, 0, 1, ktime_get_ns() + NSEC_PER_MSEC);
}

static void catch_up_beside(struct twheel *tw, void (*other)(struct twheel *tw))
{
	const u32 before = tw_budget;

	hrtimer_cancel(&tw->timer);
	cancel_delayed_work_sync(&tw->work);
	tw_budget = TW_BUDGET_MIN;
	runs = 0;
	meanwhile = other;
	tw_catch_up(tw);
	meanwhile = NULL;
	tw_budget = before;
}

/* A program that arms faster than its timers are found gets back from the doorbell. */
static void catching_up_ends(struct kunit *test)
{
	struct twheel *tw = shared_wheel_of(test, GROUPS * TW_GROUP);

	arm_groups(tw, 0, GROUPS, ktime_get_ns() + NSEC_PER_SEC);
	catch_up_beside(tw, armed_far_again);
	KUNIT_EXPECT_LT(test, runs, 1000);
	KUNIT_EXPECT_EQ(test, tw->shared->wheel.pending, GROUPS * TW_GROUP);
}

/* What is moved to later is not dirty, and inspected when it was due. */
static void moved_again(struct twheel *tw)
{
	s64 deadline = ktime_get_ns() + 3 * NSEC_PER_MSEC;
	unsigned int i;

	if (ran(tw))
		for (i = 0; i < GROUPS * TW_GROUP; i++)
			atomic64_set(&tw->shared->words[i], deadline | TWHEEL_WORD_ARMED);
}

/* Nor does a program that moves timers faster than they are inspected wait. */
static void catching_up_ends_with_nothing_dirty(struct kunit *test)
{
	struct twheel *tw = shared_wheel_of(test, GROUPS * TW_GROUP);
	s64 due = ktime_get_ns() + 10 * NSEC_PER_MSEC;

	arm_groups(tw, 0, GROUPS, due);
	tw_catch_up(tw);
	hrtimer_cancel(&tw->timer);
	sleep_until(due + NSEC_PER_MSEC);
	catch_up_beside(tw, moved_again);
	KUNIT_EXPECT_GT(test, runs, 0);
	KUNIT_EXPECT_LT(test, runs, 1000);
}

/* Nor does it wait for what became due meanwhile; but all that was due is done. */
static void catching_up_does_what_was_due(struct kunit *test)
{
	struct twheel *tw = shared_wheel_of(test, GROUPS * TW_GROUP);
	s64 due = ktime_get_ns() + 10 * NSEC_PER_MSEC;

	arm_groups(tw, 1, GROUPS - 1, due);
	tw_catch_up(tw);
	hrtimer_cancel(&tw->timer);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 0);
	sleep_until(due + NSEC_PER_MSEC);
	catch_up_beside(tw, armed_near_again);
	KUNIT_EXPECT_LT(test, runs, 1000);
	KUNIT_EXPECT_GE(test, tw->stats.expired, (GROUPS - 1) * TW_GROUP);
}

static void nothing(struct tasklet_struct *tasklet)
{
}

/* However long soft interrupts are pending, workers make room for them only now and then. */
static void worker_yields_now_and_then(struct kunit *test)
{
	DECLARE_TASKLET(pending, nothing);

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "no worker yields there");
	sleep_until(ktime_get_ns() + 5 * NSEC_PER_MSEC);
	local_bh_disable();
	yields = 0;
	tw_yield_to_ksoftirqd();
	KUNIT_EXPECT_EQ(test, yields, 0);
	tasklet_schedule(&pending);
	tw_yield_to_ksoftirqd();
	tw_yield_to_ksoftirqd();
	KUNIT_EXPECT_EQ(test, yields, TW_ROOM_TIMES);
	mdelay(5);
	tw_yield_to_ksoftirqd();
	KUNIT_EXPECT_EQ(test, yields, 2 * TW_ROOM_TIMES);
	local_bh_enable();
	tasklet_kill(&pending);
}

/* Its worker runs while another wheel has the place, and does not take it from others. */
static void shared_wheel_needs_no_place(struct kunit *test)
{
	struct twheel *other = wheel_of(test, NSEC_PER_SEC), *tw = shared_wheel_of(test, 1);
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 1) * NSEC_PER_SEC;

	test->priv = NULL;
	arm(test, tw, 1, due);
	hrtimer_cancel(&tw->timer);
	KUNIT_EXPECT_TRUE(test, tw_place_get(other));
	sleep_until(due + NSEC_PER_MSEC);
	tw_work_fn(&tw->work.work);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&tw->place_wait));
	KUNIT_EXPECT_FALSE(test, tw->place);
	KUNIT_EXPECT_TRUE(test, other->place);
	tw_place_put(other);
	KUNIT_EXPECT_EQ(test, tw->user->places, 0);
	tw_destroy(tw);
	tw_destroy(other);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(timer_early_not_restarted),
	KUNIT_CASE(timer_found_lock_taken_set_again),
	KUNIT_CASE(throttled_wheel_runs_within_a_tick),
	KUNIT_CASE(throttled_wheel_waits_until_paid_off),
	KUNIT_CASE(debt_paid_off_share_by_share),
	KUNIT_CASE(worker_share_is_eight),
	KUNIT_CASE(cascading_free_for_a_second),
	KUNIT_CASE(only_full_slots_free),
	KUNIT_CASE(debt_outlives_last_wheel),
	KUNIT_CASE(worker_without_share_throttled),
	KUNIT_CASE(throttled_wheel_has_no_timer),
	KUNIT_CASE(interrupted_run_charged_by_its_budget),
	KUNIT_CASE(closing_wheel_not_throttled),
	KUNIT_CASE(worker_not_charged_for_others),
	KUNIT_CASE(waiting_wheels_run_in_order),
	KUNIT_CASE(wheel_assisted_or_closed_leaves_queue),
	KUNIT_CASE(polled_wheel_assisted),
	KUNIT_CASE(taken_lock_not_waited_for),
	KUNIT_CASE(caught_up_worker_not_queued),
	KUNIT_CASE(last_timer_cancelled_wheel_sleeps),
	KUNIT_CASE(worker_leaves_its_place_after_some_runs),
	KUNIT_CASE(clock_set_back_ticks_go_on),
	KUNIT_CASE(wheel_closed_in_its_turn_waits_for_its_end),
	KUNIT_CASE(place_put_waiting_wheel_gets_it),
	KUNIT_CASE(processor_added_place_got_once),
	KUNIT_CASE(processor_gone_place_not_handed_on),
	KUNIT_CASE(due_shared_timers_wake_once),
	KUNIT_CASE(catching_up_ends),
	KUNIT_CASE(catching_up_ends_with_nothing_dirty),
	KUNIT_CASE(catching_up_does_what_was_due),
	KUNIT_CASE(worker_yields_now_and_then),
	KUNIT_CASE(shared_wheel_needs_no_place),
	KUNIT_CASE(large_slot_close_by_not_paced),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_expire",
	.exit = end_wheel,
	.test_cases = cases,
};

kunit_test_suite(suite);
