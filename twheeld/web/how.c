// SPDX-License-Identifier: GPL-2.0
/*
 * How a schedule is, by its last runs.
 */
#include "base/util.h"
#include "web/how.h"
#include "when/calendar.h"

/*
 * A run that is open for longer than this, and than its TTR, is late, unless ON_LATE= is there. So
 * is a time that is over.
 */
#define OPEN_LATE (300 * SECOND)
#define DUE_LATE (60 * SECOND)

const char *const how_words[HOWS] = { "failed", "missed", "late", "paused", "fine" };

/** how_next - when it is due next; INT64_MAX: never */
int64_t how_next(const struct schedule *schedule)
{
	return schedule_is_paused(schedule) || schedule->time == CALENDAR_NEVER ? INT64_MAX :
		schedule_due(schedule);
}

static bool is_late(const struct schedule *schedule, int64_t now)
{
	const struct definition *definition = schedule->definition;
	int64_t ttr = definition->ttr * SECOND, most = ttr > OPEN_LATE ? ttr : OPEN_LATE;
	int64_t next = how_next(schedule);

	if (next != INT64_MAX && now - next > DUE_LATE)
		return true;
	if (definition->on_late)
		most = definition->on_late * SECOND;
	return schedule->open_time && now - schedule->open_since > most;
}

/**
 * how_is - how a schedule is, as far as how_take() knows its runs
 * @schedule: one that a tab has
 * @now: the wall clock, in ns
 */
enum how how_is(const struct schedule *schedule, int64_t now)
{
	if (schedule->ended_time &&
	    (schedule->ended == RUN_FAILED || schedule->ended == RUN_BURIED))
		return HOW_FAILED;
	if (schedule->ended_time && schedule->ended == RUN_MISSED)
		return HOW_MISSED;
	if (is_late(schedule, now))
		return HOW_LATE;
	return schedule_is_paused(schedule) ? HOW_PAUSED : HOW_FINE;
}

static void take_run(struct schedule *schedule, const struct run_row *run)
{
	if (!schedule->last.time)
		schedule->last = *run;
	if (run->result == RUN_OPEN) {
		schedule->open_time = run->time;
		schedule->open_since = run->created;
	} else if (run->result != RUN_SKIPPED) {
		schedule->ended_time = run->time;
		schedule->ended = run->result;
	}
}

/**
 * how_take - take what the store says of the last runs of schedules
 * @schedules: as many as @asked has
 * @asked: the answer to a question for those of RUNS_HOW
 */
void how_take(struct schedule *const *schedules, const struct runs_asked *asked)
{
	struct schedule *schedule;

	for (size_t i = 0; i < asked->count; i++) {
		schedules[i]->last = (struct run_row){ .schedule = schedules[i]->id };
		schedules[i]->ended_time = 0;
		schedules[i]->open_time = 0;
	}
	for (size_t i = 0; i < asked->found; i++) {
		schedule = schedule_find_id(asked->runs[i].schedule);
		if (schedule)
			take_run(schedule, &asked->runs[i]);
	}
}
