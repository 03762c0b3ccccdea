// SPDX-License-Identifier: GPL-2.0
/*
 * While the kernel preloads a slot with a million shared timers, which takes it many runs,
 * what the program arms is found in time.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 */
#include "shared.h"

#define MANY 1000000
#define FEW 64
#define TICK MSEC

/* All of the many are in one slot of this length. */
#define SLOT (65536 * TICK)

/* The latest that one of the few may be seen, beyond what the program sleeps */
#define LATE (10 * MSEC)

static struct client c;

static void sleep_until(__u64 time)
{
	__u64 at = now(CLOCK_MONOTONIC);

	if (time > at)
		sleep_ns(time - at);
}

/* Arms the many. Gives when their slot begins to be preloaded. */
static __u64 arm_many(void)
{
	__u64 begin;
	__u32 i;

	client_open(&c, TWHEEL_CLOCK_MONOTONIC, TICK, FEW + MANY);
	begin = (now(CLOCK_MONOTONIC) / SLOT + 1) * SLOT;
	for (i = 0; i < MANY; i++)
		shared_arm(&c, FEW + i, begin + SLOT + SLOT / 2 + i * 1000ULL);
	doorbell(&c);
	EXPECT_EQ(wheel_info(c.fd).pending, MANY);
	return begin;
}

/* Little is cascaded while nothing is preloaded. */
static bool is_preloading(void)
{
	static __u64 before;
	__u64 cascaded = module_counter("cascaded"), more = cascaded - before;

	before = cascaded;
	return more > 1000;
}

static __u64 lateness(__u32 nr)
{
	__u64 deadline = now(CLOCK_MONOTONIC) + 3 * MSEC;
	__u32 taken;

	shared_arm(&c, nr, deadline);
	while (!(read64(&c.words[nr]) & FIRED))
		sleep_ns(MSEC);
	while (shared_take(&c, &taken))
		;
	return now(CLOCK_MONOTONIC) - deadline;
}

static void test_in_time(void)
{
	__u64 begin = arm_many(), latest = 0;
	unsigned int i, preloading = 0;

	sleep_until(begin - 20 * MSEC);
	is_preloading();
	for (i = 0; now(CLOCK_MONOTONIC) < begin + 2 * SEC; i++) {
		__u64 late = lateness(i % FEW);

		latest = late > latest ? late : latest;
		preloading += is_preloading();
	}
	tap_diag("%u timers, of which %u while a slot was preloaded: the latest after %llu us",
		 i, preloading, latest / USEC);
	EXPECT_TRUE(preloading >= 5);
	EXPECT_TRUE(latest < LATE, "%llu us", latest / USEC);
	client_close(&c);
}

int main(void)
{
	tap_start(200);
	RUN(test_in_time, "others are in time while a slot is preloaded");
	return tap_end();
}
