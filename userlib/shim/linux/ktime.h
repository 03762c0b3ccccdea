/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Time in nanoseconds, for a program. */
#ifndef SHIM_LINUX_KTIME_H
#define SHIM_LINUX_KTIME_H

#include <linux/types.h>

typedef s64 ktime_t;

#define KTIME_MAX S64_MAX

#endif /* SHIM_LINUX_KTIME_H */
