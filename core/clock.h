/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * The clock of a wheel: which clock it is, how ns are made ticks and ticks ns, and the time
 * namespace of its opener.
 *
 * There are three kinds of time. A program's time, in ns, differs from the host's in a time
 * namespace. The host's time, in ns, is that of the kernel's clock. The wheel's time, in
 * ticks, never runs backwards, while a clock that is set back does.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/*
 * Ticks of a wheel run from 0 to this: far beyond KTIME_MAX in ticks of 1 us,
 * since a clock that is set back makes them grow, see tw_wheel_set_back().
 */
#define TW_TICK_MAX ((1LL << 62) - 1)

/**
 * struct tw_clock - clock of a wheel
 * @id: TWHEEL_CLOCK_*
 * @tick: length of a tick in ns
 * @mult: 2^(64 + @shift) / @tick, rounded up, to divide by
 * @shift: see @mult
 * @base: how the kernel reads it, see clock.c
 * @tick_offset: tick of the wheel less tick of the host. It changes when the clock is
 *	set back, so that the wheel's time does not run backwards
 * @monotonic_offset: time namespace's monotonic time less the host's, in ns
 * @boottime_offset: time namespace's boot time less the host's, in ns
 * @offset: of the two, the one that goes with @id, or 0
 */
struct tw_clock {
	u32 id;
	u32 tick;
	u64 mult;
	u32 shift;
	int base;
	s64 tick_offset;
	s64 monotonic_offset;
	s64 boottime_offset;
	s64 offset;
};

void tw_clock_init(struct tw_clock *clock);
void tw_clock_set(struct tw_clock *clock, u32 id, u32 tick);
bool tw_clock_known(u32 id);
const char *tw_clock_name(u32 id);
s64 tw_clock_now(const struct tw_clock *clock);
clockid_t tw_clock_kernel_id(u32 id);
u32 tw_clock_tick(u32 tick);
s64 tw_clock_tick_ns(const struct tw_clock *clock, s64 tick);
unsigned int tw_clock_slack_shift(const struct tw_clock *clock, u64 slack);
u64 tw_clock_slack(const struct tw_clock *clock, unsigned int slack_shift);

/**
 * tw_time_add() - sum of two times that does not overflow
 * @a: a time in ns, 0 to KTIME_MAX
 * @b: another
 *
 * Return: the sum, or KTIME_MAX if that is less.
 */
static inline s64 tw_time_add(u64 a, u64 b)
{
	u64 sum = a + b;

	return sum > KTIME_MAX ? KTIME_MAX : sum;
}

/**
 * tw_clock_to_host() - the host's time of a program's time
 * @clock: the clock
 * @ns: the program's, 0 to KTIME_MAX
 *
 * Return: the host's, 0 to KTIME_MAX, in ns.
 */
static inline s64 tw_clock_to_host(const struct tw_clock *clock, u64 ns)
{
	if (likely(!clock->offset))
		return ns;
	if (clock->offset < 0)
		return tw_time_add(ns, -clock->offset);
	return ns > clock->offset ? ns - clock->offset : 0;
}

/**
 * tw_clock_to_user() - the program's time of a host's time
 * @clock: the clock
 * @ns: the host's, 0 to KTIME_MAX
 *
 * Return: the program's, 0 to KTIME_MAX, in ns. KTIME_MAX stays what it is.
 */
static inline u64 tw_clock_to_user(const struct tw_clock *clock, s64 ns)
{
	if (likely(!clock->offset))
		return ns;
	/* By itself: gcc would compare this first, with each event that is read. */
	if (ns == KTIME_MAX)
		return ns;
	if (clock->offset > 0)
		return tw_time_add(ns, clock->offset);
	return ns > -clock->offset ? ns + clock->offset : 0;
}

/* Whole ticks in a time of less than 2^63 ns. Exact, see clock.c. */
static inline u64 tw_clock_divide(const struct tw_clock *clock, u64 ns)
{
	return mul_u64_u64_shr(ns, clock->mult, 64) >> clock->shift;
}

/**
 * tw_clock_floor() - the wheel's tick in which a time lies
 * @clock: the clock
 * @ns: the host's time, 0 to KTIME_MAX
 *
 * Return: the tick that began last at that time.
 */
static inline s64 tw_clock_floor(const struct tw_clock *clock, s64 ns)
{
	return tw_clock_divide(clock, ns) + clock->tick_offset;
}

/**
 * tw_clock_expires() - the wheel's tick at which a deadline expires
 * @clock: the clock
 * @ns: the deadline, the host's time, 1 to KTIME_MAX
 * @slack_shift: it is put off to the next multiple of 2^this ticks
 *
 * Return: the first such tick that begins at @ns or later.
 */
static inline s64 tw_clock_expires(const struct tw_clock *clock, s64 ns,
				   unsigned int slack_shift)
{
	u64 tick = tw_clock_divide(clock, ns - 1) + 1;

	if (unlikely(slack_shift | clock->tick_offset)) {
		u64 mask = (1ULL << slack_shift) - 1;

		tick = (tick + mask) & ~mask;
		tick = min_t(s64, tick + clock->tick_offset, TW_TICK_MAX);
	}
	return tick;
}

#endif /* TW_CLOCK_H */
