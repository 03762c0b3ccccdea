/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Figures of schedules, for metrics: of the first ones that there are, so that they are not
 * without number.
 */
#ifndef TWHEELD_FIGURES_H
#define TWHEELD_FIGURES_H

#include "base/histogram.h"
#include "base/limits.h"
#include "cron/schedule.h"

enum run_end { RUN_END_DONE, RUN_END_FAILED, RUN_END_SKIPPED, RUN_END_MISSED, RUN_ENDS };

struct figures {
	struct schedule *schedule;
	uint64_t ends[RUN_ENDS];	/* since the server's start */
	int64_t done_at, failed_at;	/* the last one, by the wall clock; 0: not known */
	struct histogram duration;	/* of tries that were the last of a job */
	struct histogram lateness;	/* from when a job was made to its first try */
	bool asked;			/* the store, for the last ones */
	struct figures *prev, *next;
};

void figures_begin(struct schedule *schedule);
void figures_end(struct schedule *schedule);
void figures_fired(struct schedule *schedule, size_t skipped, int64_t missed);
void figures_ended(struct schedule *schedule, bool failed, const struct trace *trace);
struct figures *figures_first(void);
size_t figures_count(void);
void figures_tick(void);

#endif
