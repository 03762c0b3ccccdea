/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's clocks, for a program. */
#ifndef SHIM_LINUX_TIMEKEEPING_H
#define SHIM_LINUX_TIMEKEEPING_H

#include <linux/ktime.h>

static inline ktime_t shim_time(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static inline ktime_t ktime_get(void)
{
	return shim_time(CLOCK_MONOTONIC);
}

/* What the kernel adds to its monotonic clock, by the number of the clock that it makes */
enum tk_offsets {
	TK_OFFS_REAL = CLOCK_REALTIME,
	TK_OFFS_BOOT = CLOCK_BOOTTIME,
	TK_OFFS_TAI = CLOCK_TAI,
};

static inline ktime_t ktime_get_with_offset(enum tk_offsets offset)
{
	return shim_time(offset);
}

static inline ktime_t ktime_get_real(void)
{
	return shim_time(CLOCK_REALTIME);
}

static inline ktime_t ktime_get_clocktai(void)
{
	return shim_time(CLOCK_TAI);
}

#endif /* SHIM_LINUX_TIMEKEEPING_H */
