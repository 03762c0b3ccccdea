/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Schedules: when each fires next, and its firings.
 *
 * Schedules go by the wall clock, not by the server's time: people wrote their times down.
 * The store alone says what was made: a timer is only an alarm.
 */
#ifndef TWHEELD_SCHEDULE_H
#define TWHEELD_SCHEDULE_H

#include <uthash.h>

#include "base/alarm.h"
#include "base/histogram.h"
#include "cron/holidays.h"
#include "store/runs.h"
#include "when/tab.h"

struct figures;

struct schedule {
	int64_t id, digest;
	char *name;
	int64_t time;				/* the time for which it fires next, in seconds */
	int64_t since;				/* earlier times are not made up for */
	bool paused;
	int64_t gone;				/* since when no tab has it, in ns; or 0 */
	UT_hash_handle hash, by_id;
	struct definition *definition;		/* NULL: no tab has it */
	struct holidays *holidays;		/* the times that CALENDAR= leaves out, or NULL */
	const char *file;			/* the path of its tab */
	unsigned int reading;			/* the last reading that has found it */
	bool unwritten;				/* the store has not all of it */
	bool pausing;				/* a pause or its end is being written */
	bool other;				/* the (shared) store has another definition */
	bool busy, queued;			/* a write is under way, or it waits for one */
	bool forgotten;				/* by the store */
	/*
	 * As a page was told: the last run (its schedule is 0: not yet; its time is 0: there is
	 * none); that of the last time which has ended and was not skipped, the worst of its
	 * shards; and the first that is open
	 */
	struct run_row last;
	enum result ended;
	int64_t ended_time;			/* 0: there is none */
	int64_t open_time, open_since;		/* 0: there is none */
	struct figures *figures;		/* for metrics; NULL: it is not among those */
	unsigned int users;			/* schedule_hold() */
	struct twheel_timer timer;
	struct twheel_timer late;		/* when runs that are late are looked for */
	int64_t late_at;			/* that, or 0 */
	int64_t late_quiet;			/* not before this */
	int64_t late_told;			/* times up to this one, in ns, were told */
	bool late_asked;
	struct schedule *prev, *next;		/* the row of those that wait */
};

struct event_base;

/* Paused by a person, or by its line */
static inline bool schedule_is_paused(const struct schedule *schedule)
{
	return schedule->paused || (schedule->definition && schedule->definition->paused);
}

struct schedule_counts {
	size_t active, paused;
	uint64_t jobs;				/* that they have made */
};

void schedule_start(struct event_base *base, int64_t history, bool shared);
int64_t schedule_forgotten(void);
const char *schedule_differs(void);
struct schedule_counts schedule_count(void);
void schedule_tick(void);
struct schedule *schedule_find(const char *name);
struct schedule *schedule_find_id(int64_t id);
struct schedule *schedule_first(void);
struct schedule *schedule_hold(struct schedule *schedule);
void schedule_release(struct schedule *schedule);
const struct histogram *schedule_lateness(void);
void schedule_watch_late(struct schedule *schedule, int64_t time);

/* First the tabs are read; then all their schedules are taken, and the rest stops. */
void schedule_reading_begins(void);
int64_t schedule_digest(const struct definition *definition, const struct holidays *holidays);
void schedule_taking_begins(void);
bool schedule_adopt(struct definition **definition, struct holidays **holidays, int64_t digest,
		    const char *file);
bool schedule_circle(const struct definition *definition, char *why, size_t room);
void schedule_keep(const char *name);
bool schedule_taking_ends(bool complete);

int64_t schedule_next(const struct schedule *schedule, int64_t after);
int64_t schedule_prev(const struct schedule *schedule, int64_t before);
int64_t schedule_due(const struct schedule *schedule);
void schedule_pause(struct schedule *schedule, bool paused, const char *by,
		    void (*done)(void *arg, const char *why), void *arg);

#endif
