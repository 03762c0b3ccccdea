/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The time namespace, for a program: the clocks that it reads are in it already. */
#ifndef SHIM_LINUX_TIME_NAMESPACE_H
#define SHIM_LINUX_TIME_NAMESPACE_H

#include <linux/types.h>

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

static inline void timens_add_monotonic(struct timespec64 *ts)
{
	(void)ts;
}

static inline void timens_add_boottime(struct timespec64 *ts)
{
	(void)ts;
}

static inline s64 timespec64_to_ns(const struct timespec64 *ts)
{
	return ts->tv_sec * 1000000000LL + ts->tv_nsec;
}

#endif /* SHIM_LINUX_TIME_NAMESPACE_H */
