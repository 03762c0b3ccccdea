/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module's pure sources need in a program, besides the headers of the tests' shim.
 */
#ifndef BENCH_SHIM_H
#define BENCH_SHIM_H

#include <linux/bug.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <err.h>

/* Nobody asks the clock for the time. */
ktime_t host_monotonic, host_boottime, host_real, host_tai;
unsigned int hrtimer_resolution = 1;
struct timespec64 host_monotonic_offset, host_boottime_offset;

void host_fail(const char *file, int line, const char *fmt, ...)
{
	errx(1, "%s:%d: %s", file, line, fmt);
}

#endif /* BENCH_SHIM_H */
