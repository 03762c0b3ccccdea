// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of time that passes for a wheel in use: when it goes on with what it may
 * not do, or need not do, at once. (Here, time passes only when nobody works.)
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <uapi/linux/twheel.h>

#include "context.h"
/* (User-mode Linux has a user.h of its own.) */
#include "kmod/user.h"

/* For so long a wheel is deferred whose user has few of them, in ns */
#define DELAY BIT(18)

/* The share of a user in that */
#define SHARE (DELAY / 8)

/* What a node has to have until it is due, so that there is time, in ns */
#define AHEAD 20000

static struct twheel *wheel_of(struct kunit *test, u64 tick)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick = tick,
	};
	struct twheel *tw = tw_create();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	test->priv = tw;
	KUNIT_ASSERT_EQ(test, tw_setup(tw, &setup), 0);
	return tw;
}

static void end_wheel(struct kunit *test)
{
	if (test->priv)
		tw_destroy(test->priv);
}

static void arm(struct kunit *test, struct twheel *tw, u32 nr, s64 deadline)
{
	u32 n, left;

	for (left = nr; left; left -= n) {
		struct tw_batch batch = {};
		u32 i;

		n = min_t(u32, left, TW_BATCH);
		tw_begin(tw, &batch, n);
		for (i = 0; i < n; i++) {
			struct twheel_op op = {
				.opcode = TWHEEL_OP_ARM,
				.flags = TWHEEL_ABS,
				.deadline = deadline,
			};

			tw_do_ops(tw, &batch, &op, 1, TWHEEL_OP_SIZE_ONCE);
		}
		tw_end(tw, &batch);
	}
	KUNIT_ASSERT_EQ(test, tw->wheel.pending, nr);
}

static void sleep_until(s64 ns)
{
	s64 us = div_s64(ns - ktime_get_ns(), NSEC_PER_USEC);

	usleep_range(us, us + 1);
}

/* A timer comes when its user has taken so many shares of the time. */
static void expect_deferred(struct kunit *test, unsigned int shares)
{
	struct twheel *tw = wheel_of(test, NSEC_PER_SEC);
	s64 delay = shares * DELAY;
	s64 due = (ktime_get_ns() / NSEC_PER_SEC + 2) * NSEC_PER_SEC;
	s64 before, after, until;

	arm(test, tw, 1, due);
	sleep_until(due - NSEC_PER_MSEC);
	/* Its timer comes, but can't run before the share of this window is used up. */
	local_bh_disable();
	while (ktime_get_ns() < due || ktime_get_ns() % DELAY > DELAY / 2)
		udelay(5);
	tw_user_may_run(tw->user);
	tw_user_ran(tw->user, shares * SHARE);
	before = ktime_get_ns();
	local_bh_enable();
	after = ktime_get_ns();
	until = hrtimer_get_expires_ns(&tw->timer);

	KUNIT_EXPECT_EQ(test, tw->inner.deferred, 1);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 0);
	KUNIT_EXPECT_GE(test, until, before + delay);
	KUNIT_EXPECT_LE(test, until, after + delay);
	sleep_until(after + delay + DELAY);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
}

/* What is over its user's share does not wait for the next tick, be it ever so long. */
static void deferred_by_less_than_a_tick(struct kunit *test)
{
	expect_deferred(test, 1);
}

/* What was taken of later shares is paid off first. */
static void deferred_until_shares_are_paid_off(struct kunit *test)
{
	expect_deferred(test, 20);
}

/* A worker may take eight shares, the timer one; both are the user's. */
static void worker_may_take_eight_shares(struct kunit *test)
{
	struct tw_user *user = wheel_of(test, NSEC_PER_SEC)->user;

	local_bh_disable();
	KUNIT_EXPECT_TRUE(test, tw_user_may_run(user));
	tw_user_ran(user, SHARE);
	KUNIT_EXPECT_FALSE(test, tw_user_may_run(user));
	KUNIT_EXPECT_TRUE(test, tw_user_may_work(user));
	tw_user_ran(user, 7 * SHARE);
	KUNIT_EXPECT_FALSE(test, tw_user_may_work(user));
	local_bh_enable();
}

/*
 * A slot that is due after 64 ticks leaves no time until so many nodes are left; the
 * worker rests only then, and a run or so may have been before it does. There are more
 * than 2^32 / AHEAD of them.
 */
static void large_slot_leaves_no_time(struct kunit *test)
{
	const s64 tick = 16 * NSEC_PER_MSEC, turn = TW_TURN * tick;
	const u64 all = 265000, may_wait = turn / AHEAD;
	struct twheel *tw = wheel_of(test, tick);
	s64 start = (ktime_get_ns() / turn + 4) * turn;
	u64 left;

	arm(test, tw, all, start);
	sleep_until(start - turn + 100 * NSEC_PER_USEC);
	left = all - tw->inner.cascaded;
	KUNIT_EXPECT_LE(test, left, may_wait);
	KUNIT_EXPECT_GT(test, left, may_wait - 16 * tw_budget);
	sleep_until(start);
	KUNIT_EXPECT_EQ(test, tw->inner.cascaded, all);
}

/*
 * The clock was set back after the kernel took the time by which a timer has expired: so
 * it comes before its time. To start it then would be for it to come at once, again.
 */
static void timer_before_its_time_is_not_started(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, hrtimer_get_expires_ns(&tw->timer), due);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(timer_before_its_time_is_not_started),
	KUNIT_CASE(deferred_by_less_than_a_tick),
	KUNIT_CASE(deferred_until_shares_are_paid_off),
	KUNIT_CASE(worker_may_take_eight_shares),
	KUNIT_CASE(large_slot_leaves_no_time),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_expire",
	.exit = end_wheel,
	.test_cases = cases,
};

kunit_test_suite(suite);
