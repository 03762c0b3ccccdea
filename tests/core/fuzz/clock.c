// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as clocks and times: what kmod/clock.[ch] makes of them,
 * against plain arithmetic in 128 bits.
 */
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "clock.h"
#include "host.h"
#include "input.h"

static s64 between(__int128 low, __int128 x, __int128 high)
{
	return max(low, min(x, high));
}

static s64 take_time(struct input *in)
{
	return take_number(in) & KTIME_MAX;
}

/* A namespace's offset: the kernel lets no clock of it run beyond KTIME_MAX. */
static s64 take_offset(struct input *in)
{
	s64 offset = take_time(in) >> 1;

	return take_byte(in) & 1 ? -offset : offset;
}

static struct timespec64 to_timespec(s64 ns)
{
	return (struct timespec64){ ns / 1000000000, ns % 1000000000 };
}

static void check_now(const struct tw_clock *clock)
{
	ktime_t now = clock->id == TWHEEL_CLOCK_REALTIME ? host_real :
		      clock->id == TWHEEL_CLOCK_BOOTTIME ? host_boottime :
		      clock->id == TWHEEL_CLOCK_TAI ? host_tai : host_monotonic;

	ASSERT_EQ(tw_clock_now(clock), max(now, 0LL));
}

/* The first tick that begins at a time or later, and is a multiple of 2^n */
static s64 expires(const struct tw_clock *clock, s64 ns, unsigned int n)
{
	__int128 coarse = (__int128)1 << n;
	__int128 tick = ((__int128)ns + clock->tick - 1) / clock->tick;

	tick = (tick + coarse - 1) / coarse * coarse;
	return min(tick + clock->tick_offset, (__int128)TW_TICK_MAX);
}

static void check_ticks(const struct tw_clock *clock, s64 ns, s64 tick)
{
	unsigned int n;

	ASSERT_EQ(tw_clock_floor(clock, ns), ns / clock->tick + clock->tick_offset);
	ASSERT_EQ(tw_clock_tick_ns(clock, tick),
		  between(0, ((__int128)tick - clock->tick_offset) * clock->tick, KTIME_MAX));
	for (n = 0; n < 54; n++)
		if (ns)
			ASSERT_EQ(tw_clock_expires(clock, ns, n),
				  expires(clock, ns, n));
}

static void check_slack(const struct tw_clock *clock, s64 slack)
{
	unsigned int n = tw_clock_slack_shift(clock, slack);

	/* As much as fits, and not more */
	ASSERT_TRUE((((__int128)1 << n) - 1) * clock->tick <= slack);
	ASSERT_TRUE((((__int128)2 << n) - 1) * clock->tick > slack);
	ASSERT_EQ(tw_clock_slack(clock, n), ((1ULL << n) - 1) * clock->tick);
}

static void check_namespace(const struct tw_clock *clock, s64 a, s64 b)
{
	s64 offset = clock->id == TWHEEL_CLOCK_MONOTONIC ?
		     timespec64_to_ns(&host_monotonic_offset) :
		     clock->id == TWHEEL_CLOCK_BOOTTIME ?
		     timespec64_to_ns(&host_boottime_offset) : 0;

	ASSERT_EQ(clock->offset, offset);
	ASSERT_EQ(tw_clock_to_host(clock, a),
		  between(0, (__int128)a - offset, KTIME_MAX));
	ASSERT_EQ(tw_clock_to_user(clock, a), a == KTIME_MAX ? a :
		  between(0, (__int128)a + offset, KTIME_MAX));
	ASSERT_EQ(tw_time_add(a, b), between(0, (__int128)a + b, KTIME_MAX));
}

int fuzz_one_input(const u8 *data, size_t size)
{
	struct input in = { .at = data, .end = data + size };
	struct tw_clock clock;
	u32 id, tick;

	fuzz_abort_on_failure();
	host_monotonic_offset = to_timespec(take_offset(&in));
	host_boottime_offset = to_timespec(take_offset(&in));
	host_monotonic = take_number(&in);
	host_boottime = take_number(&in);
	host_real = take_number(&in);
	host_tai = take_number(&in);
	tw_clock_init(&clock);
	id = 0x100 ^ take_number(&in);
	tick = take_number(&in) % (TWHEEL_TICK_MAX_NS + 1);
	tick = max_t(u32, tick, TWHEEL_TICK_MIN_NS);
	if (tw_clock_known(id))
		tw_clock_set(&clock, id, take_byte(&in) ? tick : 0);
	ASSERT_TRUE(tw_clock_name(clock.id));
	check_now(&clock);
	clock.tick_offset = take_number(&in) & (TW_TICK_MAX >> 1);
	while (in.at < in.end) {
		s64 a = take_time(&in);
		s64 b = take_time(&in);

		check_ticks(&clock, a, b & TW_TICK_MAX);
		check_slack(&clock, a);
		check_namespace(&clock, a, b);
	}
	return 0;
}
