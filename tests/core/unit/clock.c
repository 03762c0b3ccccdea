// SPDX-License-Identifier: GPL-2.0
/*
 * The arithmetic of a wheel's clock against numbers of 128 bits: ticks from
 * nanoseconds and back, slack, time namespaces.
 */
#include <linux/hrtimer.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "clock.h"
#include "host.h"

#define TIMES 2000000

static s64 any_time(void)
{
	return host_random() >> 1 >> host_below(63);
}

static u32 any_tick_length(void)
{
	static const u32 lengths[] = {
		TWHEEL_TICK_MIN_NS, TWHEEL_TICK_MIN_NS + 1, 4000000, 1000000,
		TWHEEL_TICK_MAX_NS - 1, TWHEEL_TICK_MAX_NS,
	};

	if (host_chance(2))
		return lengths[host_below(ARRAY_SIZE(lengths))];
	return TWHEEL_TICK_MIN_NS +
	       host_below(TWHEEL_TICK_MAX_NS - TWHEEL_TICK_MIN_NS + 1);
}

static struct tw_clock any_clock(void)
{
	struct tw_clock clock;

	tw_clock_init(&clock);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, any_tick_length());
	if (host_chance(2))
		clock.tick_offset = any_time() >> 10;
	return clock;
}

/* Near the start of a tick, or anywhere, or near the end of all time */
static s64 any_ns(const struct tw_clock *clock)
{
	__int128 ns = any_time();

	if (host_chance(2))
		ns = ns / clock->tick * clock->tick + (s64)host_below(5) - 2;
	if (host_chance(16))
		ns = KTIME_MAX - (s64)host_below(3 * (u64)clock->tick);
	return max(0, min(ns, KTIME_MAX));
}

static void ticks(void)
{
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < TIMES; i++) {
		struct tw_clock clock = any_clock();
		s64 ns = any_ns(&clock) ?: 1;
		s64 floor = tw_clock_floor(&clock, ns);
		s64 expires = tw_clock_expires(&clock, ns, 0);
		__int128 exact = (ns + (__int128)clock.tick - 1) / clock.tick;

		ASSERT_EQ(floor - clock.tick_offset, ns / clock.tick);
		ASSERT_EQ(expires - clock.tick_offset, exact);
		/* Never early, and not a tick late */
		ASSERT_TRUE(tw_clock_tick_ns(&clock, expires) >= ns);
		ASSERT_TRUE(tw_clock_tick_ns(&clock, expires - 1) < ns);
		ASSERT_TRUE(tw_clock_tick_ns(&clock, floor) <= ns);
		ASSERT_TRUE(floor == expires || floor == expires - 1);
	}
}

/* Is a quotient of 128 bits the same, for such ticks of any length? */
static void divide(u32 tick)
{
	struct tw_clock clock;
	unsigned int i, j;

	tw_clock_init(&clock);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, tick);
	for (i = 0; i < 70; i++) {
		__int128 start = i < 64 ? 1ULL << i >> 1 : any_time();

		/* The ends of a tick there, and what lies around */
		start = start / tick * tick - 2;
		if (i >= 67)
			start = (__int128)KTIME_MAX - (i - 67) * (__int128)tick - 2;
		for (j = 0; j < 5; j++, start++) {
			u64 ns = max((__int128)0, min(start, KTIME_MAX));

			ASSERT_EQ(tw_clock_divide(&clock, ns), ns / tick);
		}
	}
	ASSERT_EQ(tw_clock_divide(&clock, 0), 0);
	ASSERT_EQ(tw_clock_divide(&clock, KTIME_MAX), KTIME_MAX / tick);
	/* The last end of a tick is where the error is largest. */
	ASSERT_EQ(tw_clock_divide(&clock, KTIME_MAX / tick * tick - 1),
		  KTIME_MAX / tick - 1);
}

static void division(void)
{
	unsigned int i;
	u32 tick;

	host_seed(host_first_seed());
	for (tick = 2; tick <= 3000; tick++)
		divide(tick);
	for (i = 2; i < 32; i++)
		for (tick = (1U << i) - 1; tick <= (1U << i) + 1; tick++)
			divide(tick);
	for (tick = U32_MAX; tick > U32_MAX - 1000; tick--)
		divide(tick);
	for (tick = TWHEEL_TICK_MAX_NS - 1000; tick <= TWHEEL_TICK_MAX_NS; tick++)
		divide(tick);
	for (i = 0; i < 200000; i++)
		divide(2 + (host_random() >> 33 >> host_below(30)));
}

static void tick_starts(void)
{
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < TIMES; i++) {
		struct tw_clock clock = any_clock();
		s64 tick = any_time() >> 1;
		__int128 exact = (__int128)(tick - clock.tick_offset) * clock.tick;

		ASSERT_EQ(tw_clock_tick_ns(&clock, tick),
			  max(0, min(exact, KTIME_MAX)));
	}
}

static void slack(void)
{
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < TIMES; i++) {
		struct tw_clock clock = any_clock();
		s64 most = any_ns(&clock);
		s64 ns = any_ns(&clock) ?: 1;
		unsigned int shift = tw_clock_slack_shift(&clock, most);
		u64 coarse = 1ULL << shift;
		s64 exact = tw_clock_expires(&clock, ns, 0);
		s64 expires = tw_clock_expires(&clock, ns, shift);

		/* The most that is in the slack, and not more */
		ASSERT_TRUE((__int128)(coarse - 1) * clock.tick <= most);
		ASSERT_TRUE((__int128)(2 * coarse - 1) * clock.tick > most);
		ASSERT_EQ(tw_clock_slack(&clock, shift),
			  (coarse - 1) * clock.tick);
		ASSERT_TRUE(expires >= exact);
		ASSERT_TRUE(expires - exact < (s64)coarse);
		ASSERT_TRUE(!((expires - clock.tick_offset) % coarse));
	}
}

static void namespaces(void)
{
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < TIMES; i++) {
		struct tw_clock clock;
		s64 ns = any_time();
		s64 offset;
		__int128 user;

		host_monotonic_offset.tv_sec = any_time() >> 31;
		if (host_chance(2))
			host_monotonic_offset.tv_sec *= -1;
		host_monotonic_offset.tv_nsec = host_below(1000000000);
		host_boottime_offset.tv_sec = any_time() >> 31;
		tw_clock_init(&clock);
		if (host_chance(3)) {
			tw_clock_set(&clock, TWHEEL_CLOCK_BOOTTIME, 0);
			offset = timespec64_to_ns(&host_boottime_offset);
		} else if (host_chance(3)) {
			tw_clock_set(&clock, TWHEEL_CLOCK_REALTIME, 0);
			offset = 0;
		} else {
			offset = timespec64_to_ns(&host_monotonic_offset);
		}

		user = max(0, min((__int128)ns + offset, KTIME_MAX));
		if (ns == KTIME_MAX)
			user = KTIME_MAX;
		ASSERT_EQ(tw_clock_to_user(&clock, ns), user);
		ASSERT_EQ(tw_clock_to_host(&clock, ns),
			  max(0, min((__int128)ns - offset, KTIME_MAX)));
		if (user && user < KTIME_MAX)
			ASSERT_EQ(tw_clock_to_host(&clock, user), ns);
	}
}

static void sums(void)
{
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < TIMES; i++) {
		s64 a = any_time(), b = host_chance(2) ? any_time() : KTIME_MAX - a;

		b = min((__int128)b + host_below(3), KTIME_MAX);
		ASSERT_EQ(tw_time_add(a, b), min((__int128)a + b, KTIME_MAX));
	}
}

static void clocks(void)
{
	struct tw_clock clock;
	u32 id;

	host_monotonic = 1;
	host_boottime = 2;
	host_real = 3;
	host_tai = 4;
	tw_clock_init(&clock);
	ASSERT_EQ(clock.tick, 4000000);
	ASSERT_EQ(tw_clock_now(&clock), 1);
	tw_clock_set(&clock, TWHEEL_CLOCK_BOOTTIME, 1000);
	ASSERT_EQ(tw_clock_now(&clock), 2);
	tw_clock_set(&clock, TWHEEL_CLOCK_REALTIME, 1000);
	ASSERT_EQ(tw_clock_now(&clock), 3);
	tw_clock_set(&clock, TWHEEL_CLOCK_TAI, 1000);
	ASSERT_EQ(tw_clock_now(&clock), 4);
	/* A wall clock that was set to before 1970 */
	host_tai = -5;
	ASSERT_EQ(tw_clock_now(&clock), 0);
	for (id = 0; id < 0x1000; id++)
		ASSERT_EQ(tw_clock_known(id), id == 0x100 || id == 0x101 ||
			  id == 0x107 || id == 0x10b);
	ASSERT_TRUE(!tw_clock_known(U32_MAX));
	ASSERT_EQ(tw_clock_kernel_id(TWHEEL_CLOCK_REALTIME), 0);
	ASSERT_EQ(tw_clock_kernel_id(TWHEEL_CLOCK_MONOTONIC), 1);
	ASSERT_EQ(tw_clock_kernel_id(TWHEEL_CLOCK_BOOTTIME), 7);
	ASSERT_EQ(tw_clock_kernel_id(TWHEEL_CLOCK_TAI), 11);
}

/* Where timers come at jiffies only, no tick is shorter. */
static void coarse(void)
{
	hrtimer_resolution = 4000000;
	ASSERT_EQ(tw_clock_tick(0), 4000000);
	ASSERT_EQ(tw_clock_tick(TWHEEL_TICK_MIN_NS), 4000000);
	ASSERT_EQ(tw_clock_tick(3999999), 4000000);
	ASSERT_EQ(tw_clock_tick(4000001), 4000001);
	ASSERT_EQ(tw_clock_tick(TWHEEL_TICK_MAX_NS), TWHEEL_TICK_MAX_NS);
	hrtimer_resolution = 1;
	ASSERT_EQ(tw_clock_tick(TWHEEL_TICK_MIN_NS), TWHEEL_TICK_MIN_NS);
}

int main(void)
{
	host_plan(8);
	host_test("division: the same as with 128 bits", division);
	host_test("ticks of times: never early, not a tick late", ticks);
	host_test("times of ticks", tick_starts);
	host_test("slack: the coarsest that is in it", slack);
	host_test("times of a time namespace", namespaces);
	host_test("sums of times end where time does", sums);
	host_test("clocks", clocks);
	host_test("ticks of timers that are coarse", coarse);
	return host_end();
}
