/* SPDX-License-Identifier: GPL-2.0 */
/* The length of a jiffy, at 250 Hz, for a program. */
#ifndef SHIM_LINUX_JIFFIES_H
#define SHIM_LINUX_JIFFIES_H

#define TICK_NSEC 4000000L

#endif /* SHIM_LINUX_JIFFIES_H */
