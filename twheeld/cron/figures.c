// SPDX-License-Identifier: GPL-2.0
/*
 * Figures of schedules, for metrics.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/alarm.h"
#include "base/util.h"
#include "cron/figures.h"

/* Schedules of which the store is asked at a time, and runs of each that are looked at */
#define PIECE 64
#define RUNS 100

static struct figures *all;
static size_t count;
static bool asking;

/** figures_begin - a tab has the schedule: it gets figures, if not too many have some */
void figures_begin(struct schedule *schedule)
{
	if (schedule->figures || count == FIGURES_MOST)
		return;
	schedule->figures = zalloc(sizeof(*schedule->figures));
	schedule->figures->schedule = schedule;
	DL_APPEND(all, schedule->figures);
	count++;
}

/** figures_end - no tab has it any more */
void figures_end(struct schedule *schedule)
{
	if (!schedule->figures)
		return;
	DL_DELETE(all, schedule->figures);
	count--;
	free(schedule->figures);
	schedule->figures = NULL;
}

/** figures_fired - some of its times have no jobs */
void figures_fired(struct schedule *schedule, size_t skipped, int64_t missed)
{
	if (!schedule->figures)
		return;
	schedule->figures->ends[RUN_END_SKIPPED] += skipped;
	schedule->figures->ends[RUN_END_MISSED] += missed;
}

/** figures_ended - a job of it was done, or has failed: the last try's trace, or NULL */
void figures_ended(struct schedule *schedule, bool failed, const struct trace *trace)
{
	struct figures *figures = schedule->figures;

	if (!figures)
		return;
	figures->ends[failed ? RUN_END_FAILED : RUN_END_DONE]++;
	*(failed ? &figures->failed_at : &figures->done_at) = alarm_wall();
	if (!trace || !trace->begun)
		return;
	histogram_add(&figures->duration, trace->ended - trace->begun);
	if (trace->try == 1)
		histogram_add(&figures->lateness, trace->begun - trace->made);
}

struct figures *figures_first(void)
{
	return all;
}

size_t figures_count(void)
{
	return count;
}

static void count_run(struct figures *figures, const struct run_row *run)
{
	int64_t *last = run->result == RUN_DONE ? &figures->done_at : &figures->failed_at;

	if ((run->result == RUN_DONE || run->result == RUN_FAILED || run->result == RUN_BURIED) &&
	    run->ended > *last)
		*last = run->ended;
}

/* The schedules of the question are held; the figures may have gone. */
static void figures_answered(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct schedule **schedules = asked->arg;

	asking = false;
	for (size_t i = 0; i < asked->count; i++) {
		struct figures *figures = schedules[i]->figures;

		if (figures && op->failed)
			figures->asked = false;
		for (size_t at = 0; figures && !op->failed && at < asked->found; at++)
			if (asked->runs[at].schedule == asked->schedules[i])
				count_run(figures, &asked->runs[at]);
		schedule_release(schedules[i]);
	}
	free(schedules);
	runs_free(asked);
}

static int by_id(const void *a, const void *b)
{
	int64_t one = (*(struct schedule *const *)a)->id;
	int64_t other = (*(struct schedule *const *)b)->id;

	return (one > other) - (one < other);
}

/** figures_tick - to be called each second: what the store knows of some schedules is taken over */
void figures_tick(void)
{
	struct schedule *some[PIECE];
	struct runs_asked *asked;
	struct figures *figures;
	size_t found = 0;

	if (asking)
		return;
	DL_FOREACH(all, figures) {
		if (figures->asked || found == PIECE)
			continue;
		figures->asked = true;
		some[found++] = schedule_hold(figures->schedule);
	}
	if (!found)
		return;
	asked = zalloc(sizeof(*asked) + found * sizeof(*asked->schedules));
	asked->arg = must(malloc(found * sizeof(*some)));
	qsort(some, found, sizeof(*some), by_id);
	memcpy(asked->arg, some, found * sizeof(*some));
	for (; asked->count < found; asked->count++)
		asked->schedules[asked->count] = some[asked->count]->id;
	asked->op.kind = OP_RUNS;
	asked->op.done = figures_answered;
	asked->most = RUNS;
	asking = true;
	store->runs(asked);
}
