// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later
/*
 * The clock of a wheel: reading it, and dividing by the length of a tick. See clock.h.
 */
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "clock.h"

static void tw_clock_read_offsets(struct tw_clock *clock)
{
	struct timespec64 ts = {};

	timens_add_monotonic(&ts);
	clock->monotonic_offset = timespec64_to_ns(&ts);
	ts = (struct timespec64){};
	timens_add_boottime(&ts);
	clock->boottime_offset = timespec64_to_ns(&ts);
}

/**
 * tw_clock_init() - clock of a wheel that the current task opens
 * @clock: the clock, which becomes CLOCK_MONOTONIC with a tick of a jiffy
 */
void tw_clock_init(struct tw_clock *clock)
{
	*clock = (struct tw_clock){};
	tw_clock_read_offsets(clock);
	tw_clock_set(clock, TWHEEL_CLOCK_MONOTONIC, 0);
}

/*
 * With 2^(n - 1) < tick <= 2^n, the factor is 2^(63 + n) / tick, rounded up: 64
 * bits. It is too large by 1 at most, which makes the quotient of less than 2^63
 * ns too large by less than 2^-n, and so by less than 1 / tick: too little to reach
 * the next whole number. (Granlund and Montgomery, Division by Invariant Integers
 * using Multiplication, 1994.)
 */
static void tw_clock_set_mult(struct tw_clock *clock)
{
	unsigned int n = order_base_2(clock->tick);
	u32 rest;
	u64 high = div_u64_rem(1ULL << 63, clock->tick, &rest);

	clock->mult = (high << n) + div_u64((u64)rest << n, clock->tick) + 1;
	clock->shift = n - 1;
}

/**
 * tw_clock_set() - choose the clock and the tick
 * @clock: the clock
 * @id: one that tw_clock_known()
 * @tick: length of a tick in ns, 2 or more, or 0 for a jiffy
 */
void tw_clock_set(struct tw_clock *clock, u32 id, u32 tick)
{
	clock->id = id;
	clock->tick = tick ?: TICK_NSEC;
	tw_clock_set_mult(clock);
	clock->tick_offset = 0;
	clock->offset = id == TWHEEL_CLOCK_MONOTONIC ? clock->monotonic_offset :
			id == TWHEEL_CLOCK_BOOTTIME ? clock->boottime_offset : 0;
}

bool tw_clock_known(u32 id)
{
	return id == TWHEEL_CLOCK_REALTIME || id == TWHEEL_CLOCK_MONOTONIC ||
	       id == TWHEEL_CLOCK_BOOTTIME || id == TWHEEL_CLOCK_TAI;
}

/**
 * tw_clock_kernel_id() - the kernel's number of a clock
 * @id: one that tw_clock_known()
 *
 * Return: the same as for clock_gettime(2).
 */
clockid_t tw_clock_kernel_id(u32 id)
{
	return id - (TWHEEL_CLOCK_MONOTONIC - CLOCK_MONOTONIC);
}

const char *tw_clock_name(u32 id)
{
	switch (id) {
	case TWHEEL_CLOCK_REALTIME:
		return "realtime";
	case TWHEEL_CLOCK_BOOTTIME:
		return "boottime";
	case TWHEEL_CLOCK_TAI:
		return "tai";
	default:
		return "monotonic";
	}
}

/**
 * tw_clock_now() - the time that it is now
 * @clock: the clock
 *
 * Return: the host's time in ns, from 0 on.
 */
s64 tw_clock_now(const struct tw_clock *clock)
{
	ktime_t now;

	switch (clock->id) {
	case TWHEEL_CLOCK_REALTIME:
		now = ktime_get_real();
		break;
	case TWHEEL_CLOCK_BOOTTIME:
		now = ktime_get_boottime();
		break;
	case TWHEEL_CLOCK_TAI:
		now = ktime_get_clocktai();
		break;
	default:
		now = ktime_get();
		break;
	}
	return max_t(s64, now, 0);
}

/**
 * tw_clock_tick_ns() - when a tick of the wheel begins
 * @clock: the clock
 * @tick: the tick
 *
 * Return: the host's time in ns, 0 to KTIME_MAX.
 */
s64 tw_clock_tick_ns(const struct tw_clock *clock, s64 tick)
{
	tick -= clock->tick_offset;
	if (tick <= 0)
		return 0;
	if (tick > div_u64(KTIME_MAX, clock->tick))
		return KTIME_MAX;
	return tick * clock->tick;
}

/**
 * tw_clock_slack_shift() - how coarse a slack lets a timer be
 * @clock: the clock
 * @slack: the slack in ns, 0 to KTIME_MAX
 *
 * Return: the largest n with 2^n ticks of which the last is still in the slack.
 */
unsigned int tw_clock_slack_shift(const struct tw_clock *clock, u64 slack)
{
	if (slack < clock->tick)
		return 0;
	return ilog2(div_u64(slack, clock->tick) + 1);
}

/**
 * tw_clock_slack() - the slack that is used
 * @clock: the clock
 * @slack_shift: of tw_clock_slack_shift()
 *
 * Return: the most in ns by which it puts a timer off.
 */
u64 tw_clock_slack(const struct tw_clock *clock, unsigned int slack_shift)
{
	return ((1ULL << slack_shift) - 1) * clock->tick;
}
