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

static inline ktime_t ktime_get_boottime(void)
{
	return shim_time(CLOCK_BOOTTIME);
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
