/* SPDX-License-Identifier: GPL-2.0 */
/* How finely the kernel's timers come, as the test sets it, for a program. */
#ifndef SHIM_LINUX_HRTIMER_H
#define SHIM_LINUX_HRTIMER_H

extern unsigned int hrtimer_resolution;

#endif /* SHIM_LINUX_HRTIMER_H */
