/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all parts of the demo share: the clock, and how it ends.
 */
#ifndef DEMO_H
#define DEMO_H

#include <linux/types.h>

#define EXIT_PROMISE_BROKEN 1
#define EXIT_CANNOT_RUN 2

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Says why the demo can't run, and ends it. */
void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...);

/* The clock that all deadlines are of */
__u64 clock_ns(void);

#endif
