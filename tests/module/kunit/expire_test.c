// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of a wheel that is due: what its hrtimers' callbacks and a run leave behind, which no
 * program can see.
 */
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <uapi/linux/twheel.h>

#include "account.h"
#include "context.h"
#include "fixture.h"
#include "ops.h"

#define TICK NSEC_PER_MSEC
#define FAR (3600 * NSEC_PER_SEC)

static void arm(struct kunit *test, struct twheel *tw, s64 delay)
{
	struct twheel_op op = { .opcode = TWHEEL_OP_ARM, .deadline = delay };
	struct tw_batch batch = {};

	tw_do_ops(tw, &batch, &op, 1, TWHEEL_OP_SIZE_ONCE);
	KUNIT_ASSERT_EQ(test, op.result, 0);
}

/* As if it had come */
static void comes(struct twheel *tw)
{
	hrtimer_cancel(&tw->timer);
	tw_timer_fn(&tw->timer);
}

static bool in_queue(struct twheel *tw)
{
	return !list_empty_careful(&tw->turn);
}

static void each_time_counts_until_a_run(struct kunit *test)
{
	struct twheel *tw = fixture_open(test, TICK, 0);

	arm(test, tw, FAR);
	comes(tw);
	comes(tw);
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->due), 2);
	KUNIT_EXPECT_FALSE(test, tw_turn(tw, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&tw->due), 0);
	KUNIT_EXPECT_EQ(test, tw->stats.wakeups, 2);
	/* The run has set it anew. */
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&tw->timer));
	KUNIT_EXPECT_FALSE(test, in_queue(tw));
}

static void plain_wheel_waits_for_a_call(struct kunit *test)
{
	struct twheel *tw = fixture_open(test, TICK, 0);

	arm(test, tw, TICK);
	msleep(20);
	KUNIT_EXPECT_TRUE(test, tw_is_due(tw));
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 0);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&tw->again));
	tw_turn(tw, 1);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
}

static void unattended_wheel_does_not(struct kunit *test)
{
	struct twheel *tw = fixture_open(test, TICK, 0);
	unsigned int i;

	arm(test, tw, TICK);
	msleep(20);
	/* The wheel is due already. */
	tw_set_unattended(tw);
	for (i = 0; i < 500 && tw_is_due(tw); i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 1);
	arm(test, tw, TICK);
	for (i = 0; i < 500 && tw->stats.expired < 2; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, tw->stats.expired, 2);
}

/* Within ten seconds, *@what is @value. */
static bool becomes(const atomic_t *what, int value)
{
	unsigned int i;

	for (i = 0; i < 1000 && atomic_read(what) != value; i++)
		usleep_range(10000, 11000);
	return i < 1000;
}

/* The callback comes until the credit of this processor is used up. A run seems to take 20 ms. */
static bool use_up_credit(struct twheel *tw)
{
	unsigned int i;

	for (i = 0; i < 100000 && !in_queue(tw); i++) {
		tw->user->run_cost = 20 * NSEC_PER_MSEC;
		comes(tw);
	}
	return in_queue(tw);
}

/* Its second hrtimer comes at once, and when the credit is used up, in its turn. */
static void unattended_wheel_waits_for_credit(struct kunit *test)
{
	struct twheel *tw = fixture_open(test, TICK, 0);
	const struct tw_queue *queue;

	arm(test, tw, FAR);
	tw_set_unattended(tw);
	migrate_disable();
	KUNIT_ASSERT_TRUE(test, use_up_credit(tw));
	/* This kernel has one processor. */
	queue = tw->queue;
	KUNIT_EXPECT_EQ(test, queue->users, 1);
	comes(tw);
	KUNIT_EXPECT_EQ(test, queue->users, 1);
	KUNIT_EXPECT_TRUE(test, becomes(&tw->due, 0));
	KUNIT_EXPECT_FALSE(test, in_queue(tw));
	KUNIT_EXPECT_EQ(test, queue->users, 0);
	/* The wheel is closed while it is in the queue. */
	KUNIT_EXPECT_TRUE(test, use_up_credit(tw));
	migrate_enable();
	fixture_close(tw);
	KUNIT_EXPECT_EQ(test, queue->users, 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_time_counts_until_a_run),
	KUNIT_CASE(plain_wheel_waits_for_a_call),
	KUNIT_CASE(unattended_wheel_does_not),
	KUNIT_CASE(unattended_wheel_waits_for_credit),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_expire",
	.exit = fixture_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
