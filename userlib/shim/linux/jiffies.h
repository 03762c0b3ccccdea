/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The length of a jiffy, for a program: the coarse clocks show it. */
#ifndef SHIM_LINUX_JIFFIES_H
#define SHIM_LINUX_JIFFIES_H

#include <linux/types.h>

static inline u32 shim_jiffy(void)
{
	struct timespec ts;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) || ts.tv_sec)
		return 4000000;
	return ts.tv_nsec;
}

#define TICK_NSEC shim_jiffy()

#endif /* SHIM_LINUX_JIFFIES_H */
