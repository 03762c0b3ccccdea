/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's clocks, as the test sets them, for a program. */
#ifndef SHIM_LINUX_TIMEKEEPING_H
#define SHIM_LINUX_TIMEKEEPING_H

#include <linux/ktime.h>

/* As in time.h, which has a function clock() as well */
#define CLOCK_MONOTONIC 1

extern ktime_t host_monotonic, host_boottime, host_real, host_tai;

static inline ktime_t ktime_get(void)
{
	return host_monotonic;
}

enum tk_offsets { TK_OFFS_REAL, TK_OFFS_BOOT, TK_OFFS_TAI };

static inline ktime_t ktime_get_with_offset(enum tk_offsets offset)
{
	return offset == TK_OFFS_REAL ? host_real :
	       offset == TK_OFFS_BOOT ? host_boottime : host_tai;
}

static inline ktime_t ktime_get_real(void)
{
	return host_real;
}

static inline ktime_t ktime_get_clocktai(void)
{
	return host_tai;
}

#endif /* SHIM_LINUX_TIMEKEEPING_H */
