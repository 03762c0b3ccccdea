/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How finely the kernel's timers come, for a program, in ns. */
#ifndef SHIM_LINUX_HRTIMER_H
#define SHIM_LINUX_HRTIMER_H

#include <linux/types.h>

static inline u32 shim_resolution(void)
{
	struct timespec ts;

	if (clock_getres(CLOCK_MONOTONIC, &ts) || ts.tv_sec)
		return 1;
	return ts.tv_nsec;
}

#define hrtimer_resolution shim_resolution()

#endif /* SHIM_LINUX_HRTIMER_H */
