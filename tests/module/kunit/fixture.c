// SPDX-License-Identifier: GPL-2.0
/*
 * What the suites share. See fixture.h.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <uapi/linux/twheel.h>

#include "account.h"
#include "fixture.h"
#include "ops.h"

#define MOST_WHEELS 8

/**
 * struct fixture - what a test has
 * @wheels: that are open
 */
struct fixture {
	struct twheel *wheels[MOST_WHEELS];
};

/* Before a test of a suite that uses this */
int fixture_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct fixture), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

/* After it: the next one begins with a user who owes nothing. */
void fixture_exit(struct kunit *test)
{
	struct fixture *fixture = test->priv;
	unsigned int i;

	for (i = 0; fixture && i < MOST_WHEELS; i++)
		if (fixture->wheels[i])
			tw_destroy(fixture->wheels[i]);
	tw_users_exit();
}

static struct twheel *open_wheel(struct kunit *test, const struct twheel_setup *setup)
{
	struct fixture *fixture = test->priv;
	struct twheel *tw = tw_create();
	unsigned int i = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw);
	while (i < MOST_WHEELS - 1 && fixture->wheels[i])
		i++;
	KUNIT_ASSERT_NULL(test, fixture->wheels[i]);
	fixture->wheels[i] = tw;
	KUNIT_ASSERT_EQ(test, tw_setup(tw, setup), 0);
	return tw;
}

/**
 * fixture_wheel() - open a wheel
 * @test: the test
 * @tick: length of its tick, in ns
 *
 * Return: the wheel.
 */
struct twheel *fixture_wheel(struct kunit *test, u64 tick)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.tick = tick,
	};

	return open_wheel(test, &setup);
}

/**
 * fixture_shared_wheel() - open a wheel with shared timers
 * @test: the test
 * @tick: length of its tick, in ns
 * @nr: how many shared timers
 *
 * Return: the wheel.
 */
struct twheel *fixture_shared_wheel(struct kunit *test, u64 tick, u32 nr)
{
	struct twheel_setup setup = {
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = TWHEEL_SETUP_SHARED,
		.tick = tick,
		.shared = nr,
	};

	return open_wheel(test, &setup);
}

/* Close a wheel before the test ends. */
void fixture_close(struct kunit *test, struct twheel *tw)
{
	struct fixture *fixture = test->priv;
	unsigned int i;

	for (i = 0; i < MOST_WHEELS; i++)
		if (fixture->wheels[i] == tw)
			fixture->wheels[i] = NULL;
	tw_destroy(tw);
}

static void do_op(struct kunit *test, struct twheel *tw, struct twheel_op *op)
{
	struct tw_batch batch = {};

	tw_begin(tw, &batch, 1, 0);
	tw_do_ops(tw, &batch, op, 1, TWHEEL_OP_SIZE_ONCE);
	tw_end(tw, &batch);
	KUNIT_ASSERT_EQ(test, op->result, 0);
}

/* Arm a timer. Returns its id. */
u64 fixture_arm(struct kunit *test, struct twheel *tw, s64 deadline)
{
	struct twheel_op op = {
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.deadline = deadline,
	};

	do_op(test, tw, &op);
	return op.id;
}

void fixture_sleep_until(s64 ns)
{
	s64 us = div_s64(ns - ktime_get_ns(), NSEC_PER_USEC) + 1;

	if (us > 0)
		usleep_range(us, us + 1);
}

/**
 * fixture_far() - a time that does not come while the tests run
 *
 * Shares that were used then are not paid off before it, however long a test takes.
 *
 * Return: an hour from now.
 */
ktime_t fixture_far(void)
{
	return ktime_add_ns(ktime_get(), 3600 * NSEC_PER_SEC);
}

/* The share of the wheel's user of this processor */
struct tw_share *fixture_share(struct twheel *tw)
{
	return raw_cpu_ptr(tw->user->shares);
}

/**
 * fixture_owe() - wheels have kept the processor
 * @share: of their user, which owed nothing
 * @now: when
 * @shares: for how many shares of a window
 */
void fixture_owe(struct tw_share *share, ktime_t now, u64 shares)
{
	local_bh_disable();
	tw_share_may_work(share, now);
	tw_share_ran(share, shares * FIXTURE_SHARE);
	local_bh_enable();
}
