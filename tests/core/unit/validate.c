// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of what a program asks for, with all combinations of values at the
 * edges, against the rules of uapi/linux/twheel.h said once more.
 */
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/mm.h>

#include "host.h"
#include "validate.h"

static const u64 values[] = {
	0, 1, 2, 1000, 1001, KTIME_MAX - 1, KTIME_MAX, (u64)KTIME_MAX + 1, U64_MAX,
};

#define NR_VALUES ARRAY_SIZE(values)

static void more(void)
{
	unsigned int i, k, n;

	for (i = 0; i < NR_VALUES; i++)
		for (k = 0; k < NR_VALUES; k++)
			for (n = 0; n < NR_VALUES; n++) {
				u64 interval = values[i], slack = values[k];
				u64 jitter = values[n];
				bool times_ok = interval <= KTIME_MAX &&
						slack <= KTIME_MAX &&
						jitter <= KTIME_MAX;
				bool in_period = !interval || jitter <= interval;

				ASSERT_EQ(tw_check_more(interval, slack, jitter),
					  times_ok && in_period ? 0 : -EINVAL);
				ASSERT_EQ(tw_time_ok(slack), slack <= KTIME_MAX);
			}
}

static int expected_of_setup(const struct twheel_setup *setup)
{
	u32 clock = setup->clock;
	bool shared = setup->flags == TWHEEL_SETUP_SHARED;

	if (setup->flags > TWHEEL_SETUP_SHARED || setup->tick > KTIME_MAX ||
	    shared != !!setup->shared || setup->shared > 16777216 ||
	    setup->__reserved)
		return -EINVAL;
	if (clock != TWHEEL_CLOCK_REALTIME && clock != TWHEEL_CLOCK_MONOTONIC &&
	    clock != TWHEEL_CLOCK_BOOTTIME && clock != TWHEEL_CLOCK_TAI)
		return -EINVAL;
	if (setup->event_size != 0 &&
	    (setup->flags == TWHEEL_SETUP_COUNT ||
	     (setup->event_size != 16 && setup->event_size != 32)))
		return -EINVAL;
	if (setup->tick && (setup->tick < 1000 || setup->tick > 1000000000))
		return -EOPNOTSUPP;
	return 0;
}

/* A clock's number of clock_gettime(2) is none of a wheel's. */
static u32 nth_clock(unsigned int n)
{
	return n < 33 ? n : n < 66 ? 0x100 + n - 33 : 1U << (n - 66) % 32;
}

static void setups(void)
{
	static const u64 ticks[] = {
		0, 1, 999, 1000, 1001, 4000000, 999999999, 1000000000,
		1000000001, U32_MAX, 1ULL << 32, (1ULL << 32) + 1000, KTIME_MAX,
		(u64)KTIME_MAX + 1, U64_MAX,
	};
	static const u32 shared[] = {
		0, 1, 2, 3, 4096, (1U << 24) - 1, 1U << 24, (1U << 24) + 1,
		1U << 25, 1U << 31, U32_MAX,
	};
	unsigned int clock, flag, many, i;

	for (clock = 0; clock < 98; clock++)
		for (flag = 0; flag < 34; flag++)
			for (many = 0; many < ARRAY_SIZE(shared); many++)
				for (i = 0; i < ARRAY_SIZE(ticks); i++) {
					struct twheel_setup setup = {
						.clock = nth_clock(clock),
						.flags = flag == 33 ? 3 : 1ULL << flag,
						.shared = shared[many],
						.tick = ticks[i],
					};

					ASSERT_EQ(tw_check_setup(&setup),
						  expected_of_setup(&setup));
				}
}

static void event_sizes(void)
{
	struct twheel_setup setup = { .clock = TWHEEL_CLOCK_MONOTONIC };
	unsigned int flags, bit;
	u32 size;

	for (flags = 0; flags < 2; flags++)
		for (size = 0; size < 4096 + 32; size++) {
			setup.flags = flags;
			setup.event_size = size < 4096 ? size : 1U << (size - 4096);
			ASSERT_EQ(tw_check_setup(&setup),
				  expected_of_setup(&setup));
		}
	setup = (struct twheel_setup){ .clock = TWHEEL_CLOCK_MONOTONIC };
	for (bit = 0; bit < 32; bit++) {
		setup.__reserved = 1U << bit;
		ASSERT_EQ(tw_check_setup(&setup), -EINVAL);
	}
}

static int expected_of_array(u32 flags, u32 nr, u32 op_size)
{
	if (flags || nr >= 1U << 31)
		return -EINVAL;
	return op_size == 16 || op_size == 32 || op_size == 64 ? 0 : -EINVAL;
}

static void arrays(void)
{
	static const u32 nrs[] = {
		0, 1, 2, 1U << 30, (1U << 31) - 1, 1U << 31, U32_MAX,
	};
	static const u32 large[] = { 1U << 31, U32_MAX };
	unsigned int flag, i;
	u32 op_size;

	for (flag = 0; flag < 33; flag++)
		for (i = 0; i < ARRAY_SIZE(nrs); i++) {
			u32 flags = 1ULL << flag;

			for (op_size = 0; op_size < 2 * PAGE_SIZE; op_size++)
				ASSERT_EQ(tw_check_array(flags, nrs[i], op_size),
					  expected_of_array(flags, nrs[i],
							    op_size));
			ASSERT_EQ(tw_check_array(flags, nrs[i], large[i % 2]),
				  expected_of_array(flags, nrs[i],
						    large[i % 2]));
		}
}

int main(void)
{
	host_plan(4);
	host_test("what few operations ask for", more);
	host_test("set-ups", setups);
	host_test("lengths of events", event_sizes);
	host_test("arrays of operations", arrays);
	return host_end();
}
