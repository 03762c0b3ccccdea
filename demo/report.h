/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the demo shows: the progress bar and the summary.
 */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <linux/types.h>

#include "promises.h"
#include "workload.h"

/* @tick is the wheel's, in ns. */
void report_start(const struct workload *w, __u64 tick);

/* Says which backend comes now, where there are two. */
void report_backend(const struct backend *backend);

/* Draws the bar; @now and @end are as played. Not more often than it should. */
void report_progress(const struct workload *w, const struct tally *t,
		     __u64 now, __u64 end);

/* Draws the summary. Returns how many promises did not hold. */
unsigned int report_summary(const struct workload *w, const struct result *r);

/* Draws both backends beside each other. Returns how many promises did not hold. */
unsigned int report_both(const struct result *ordinary, const struct result *shared);

#endif
