// SPDX-License-Identifier: GPL-2.0
/*
 * What the module's pure sources need besides the headers of tests/core/unit/shim.
 */
#include <linux/bug.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Nobody asks the clock for the time. */
ktime_t host_monotonic, host_boottime, host_real, host_tai;
struct timespec64 host_monotonic_offset, host_boottime_offset;

void host_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	exit(1);
}
