// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of clocks, which only a kernel has. (Ticks, the table and the wheel are pure:
 * tests/core/unit has them beside models.)
 */
#include <kunit/test.h>
#include <linux/jiffies.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "clock.h"

static const struct known {
	u32 id;
	clockid_t kernel_id;
	u64 (*now)(void);
} known[] = {
	{ TWHEEL_CLOCK_REALTIME, CLOCK_REALTIME, ktime_get_real_ns },
	{ TWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC, ktime_get_ns },
	{ TWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME, ktime_get_boottime_ns },
	{ TWHEEL_CLOCK_TAI, CLOCK_TAI, ktime_get_clocktai_ns },
};

static void clock_is_the_kernels(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		struct tw_clock clock;
		s64 before, now;

		tw_clock_init(&clock);
		tw_clock_set(&clock, known[i].id, 0);
		KUNIT_EXPECT_EQ(test, tw_clock_kernel_id(clock.id), known[i].kernel_id);
		KUNIT_EXPECT_EQ(test, clock.tick, TICK_NSEC);
		before = known[i].now();
		now = tw_clock_now(&clock);
		KUNIT_EXPECT_GE(test, now, before);
		KUNIT_EXPECT_LE(test, now, (s64)known[i].now());
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(clock_is_the_kernels),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_clock",
	.test_cases = cases,
};

kunit_test_suite(suite);
