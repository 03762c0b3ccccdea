/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the demo shows: the progress bar and the summary.
 */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include <linux/twheel.h>
#include <linux/types.h>

#include "workload.h"

/* What the program counted itself, without asking the module. */
struct tally {
	__u64 armed;
	__u64 rearmed;
	__u64 cancelled;
	__u64 expired;	/* of the connections' timers */
	__u64 lapsed;	/* of these: pushed or closed too late */
	__u64 periods;	/* events of periodic timers */
	__u64 overruns;	/* periods that these events counted besides */

	__u64 pending;
	__u64 peak_pending;
	__u64 peak_time;	/* as it is played, in ns */
	__u64 memory_pending;	/* pending when @memory was measured */
	__u64 memory;	/* more than before the first timer */

	__u64 early;
	__u64 lost;
	__u64 twice;
	__u64 after_cancel;
	__u64 refused;	/* live timers that the module didn't know */

	/* From deadline to expiry, as in &struct twheel_stats. */
	__u64 lateness[TWHEEL_LATENESS_BUCKETS];
	__u64 max_lateness;
	__u64 machine_stop;	/* longest stop of a busy loop without timers */
	__u64 elapsed;
};

void report_start(const struct workload *w, const struct twheel_info *info);

/* Draws the bar; @now and @end are as played. Not more often than it should. */
void report_progress(const struct workload *w, const struct tally *t,
		     __u64 now, __u64 end);

/* Draws the summary. Returns how many promises did not hold. */
unsigned int report_summary(const struct workload *w, const struct tally *t,
			    const struct twheel_info *info,
			    const struct twheel_stats *stats);

#endif
