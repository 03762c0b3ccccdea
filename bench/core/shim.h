/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module's pure sources need besides the headers of tests/core/unit/shim. Each
 * shared object has it once.
 */
#ifndef SHIM_H
#define SHIM_H

#include <linux/bug.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <stdio.h>
#include <stdlib.h>

#include "edition.h"

/* Nobody asks the clock for the time. */
ktime_t host_monotonic, host_boottime, host_real, host_tai;
struct timespec64 host_monotonic_offset, host_boottime_offset;

struct bench_event bench_events[EVENTS];

__attribute__((noreturn))
static void bench_fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

void host_fail(const char *file, int line, const char *fmt, ...)
{
	fprintf(stderr, "%s:%d: ", file, line);
	bench_fail(fmt);
}

#endif /* SHIM_H */
