// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later
/*
 * The clock of a wheel: reading it, and dividing by the length of a tick. See clock.h.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <uapi/linux/twheel.h>

#include "clock.h"

/* A clock that is read by itself, without an offset of the kernel's */
#define TW_MONOTONIC (-1)

/**
 * struct tw_clock_kind - a clock that a wheel can have
 * @id: TWHEEL_CLOCK_*
 * @base: which of the kernel's offsets it has, TK_OFFS_* or TW_MONOTONIC
 * @name: its name, in fdinfo
 * @timens: where &struct tw_clock has its offset in a time namespace, or 0 if it has none,
 *	as that is not the first field
 */
struct tw_clock_kind {
	u32 id;
	int base;
	const char *name;
	size_t timens;
};

/* All that tells clocks apart but for their numbers, see tw_clock_kernel_id() */
static const struct tw_clock_kind tw_clock_kinds[] = {
	{ TWHEEL_CLOCK_REALTIME, TK_OFFS_REAL, "realtime", 0 },
	{ TWHEEL_CLOCK_MONOTONIC, TW_MONOTONIC, "monotonic",
	  offsetof(struct tw_clock, monotonic_offset) },
	{ TWHEEL_CLOCK_BOOTTIME, TK_OFFS_BOOT, "boottime",
	  offsetof(struct tw_clock, boottime_offset) },
	{ TWHEEL_CLOCK_TAI, TK_OFFS_TAI, "tai", 0 },
	{}
};

static const struct tw_clock_kind *tw_clock_kind(u32 id)
{
	const struct tw_clock_kind *kind;

	for (kind = tw_clock_kinds; kind->name; kind++)
		if (kind->id == id)
			return kind;
	return NULL;
}

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
 * tw_clock_tick() - the length of a tick that this machine can keep
 * @tick: what was asked for in ns, or 0 for a jiffy
 *
 * Without high-resolution timers (highres=off), timers come at jiffies only.
 *
 * Return: @tick, or the resolution of the kernel's timers if that is longer.
 */
u32 tw_clock_tick(u32 tick)
{
	return max_t(u32, tick ?: TICK_NSEC, hrtimer_resolution);
}

/**
 * tw_clock_set() - choose the clock and the tick
 * @clock: the clock
 * @id: one that tw_clock_known()
 * @tick: length of a tick in ns, 2 or more, or 0 for a jiffy; see tw_clock_tick()
 */
void tw_clock_set(struct tw_clock *clock, u32 id, u32 tick)
{
	const struct tw_clock_kind *kind = tw_clock_kind(id);

	clock->id = id;
	clock->base = kind->base;
	clock->tick = tw_clock_tick(tick);
	tw_clock_set_mult(clock);
	clock->tick_offset = 0;
	clock->offset = kind->timens ? *(s64 *)((void *)clock + kind->timens) : 0;
}

bool tw_clock_known(u32 id)
{
	return tw_clock_kind(id);
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

/**
 * tw_clock_name() - the name of a clock
 * @id: one that tw_clock_known()
 *
 * Return: the name.
 */
const char *tw_clock_name(u32 id)
{
	return tw_clock_kind(id)->name;
}

/**
 * tw_clock_now() - the time that it is now
 * @clock: the clock
 *
 * Return: the host's time in ns, from 0 on.
 */
s64 tw_clock_now(const struct tw_clock *clock)
{
	ktime_t now = clock->base == TW_MONOTONIC ? ktime_get() :
						    ktime_get_with_offset(clock->base);

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
