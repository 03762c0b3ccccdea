/* SPDX-License-Identifier: GPL-2.0 */
/* The time namespace, as the test sets it, for a program. */
#ifndef SHIM_LINUX_TIME_NAMESPACE_H
#define SHIM_LINUX_TIME_NAMESPACE_H

#include <linux/types.h>

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

extern struct timespec64 host_monotonic_offset, host_boottime_offset;

static inline void timens_add_monotonic(struct timespec64 *ts)
{
	ts->tv_sec += host_monotonic_offset.tv_sec;
	ts->tv_nsec += host_monotonic_offset.tv_nsec;
}

static inline void timens_add_boottime(struct timespec64 *ts)
{
	ts->tv_sec += host_boottime_offset.tv_sec;
	ts->tv_nsec += host_boottime_offset.tv_nsec;
}

static inline s64 timespec64_to_ns(const struct timespec64 *ts)
{
	return ts->tv_sec * 1000000000LL + ts->tv_nsec;
}

#endif /* SHIM_LINUX_TIME_NAMESPACE_H */
