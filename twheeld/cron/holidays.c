// SPDX-License-Identifier: GPL-2.0
/*
 * The files of CALENDAR=: times that schedules leave out.
 */
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "base/alarm.h"
#include "base/limits.h"
#include "base/util.h"
#include "cron/holidays.h"
#include "cron/holidays_child.h"
#include "when/calendar.h"
#include "when/dates.h"
#include "when/spans.h"

/* How many left-out times of a schedule are passed before it counts as left out for ever */
#define TRIES 2000
/* A time from then on counts as an event without an end: 2199-01-01 */
#define LAST_YEAR 7226582400LL
/* All schedules of a reading together pass this many; after that, each may pass fewer */
#define TRIES_MOST 2000000
#define TRIES_LEAST 50
/* Seconds for a child in all: one that waits, for a disk perhaps, uses no processor. */
#define PATIENCE (10 * DAYS_SECONDS)
/* The most files that are read, and the most bytes */
#define FILES_MOST 256
#define BYTES_MOST (16 << 20)

/* A file that had days to come when it was read the last time */
struct before {
	char *path, *zone;
	struct before *next;
};

/* The files of this reading */
static struct holidays *all;
static struct before *before;
static size_t files;
static int64_t bytes, tries, took;
static struct holidays *pending;	/* the file that is being read */
static int pending_fd;
static struct event *readiness;
static void (*was_read)(void);

static struct holidays *holidays_find(const char *path, const char *zone)
{
	struct holidays *one;

	DL_FOREACH(all, one)
		if (!strcmp(one->path, path) && !strcmp(one->zone, zone))
			return one;
	return NULL;
}

/* Is there room for one more file? */
static bool holidays_fits(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		bytes += st.st_size;
	return ++files <= FILES_MOST && bytes <= BYTES_MOST;
}

static char *say_why(const char *path, const struct dates_error *error)
{
	char *why;

	if ((error->line ? asprintf(&why, "CALENDAR=%s:%zu: %s", path, error->line, error->text) :
	     asprintf(&why, "CALENDAR=%s: %s", path, error->text)) < 0)
		must(NULL);
	return why;
}

static bool was_before(const char *path, const char *zone)
{
	for (const struct before *one = before; one; one = one->next)
		if (!strcmp(one->path, path) && !strcmp(one->zone, zone))
			return true;
	return false;
}

static bool has_days(const struct holidays *one)
{
	const struct spans *times = one->dates ? dates_times(one->dates) : NULL;

	return times && times->count &&
		times->spans[times->count - 1].until > alarm_wall() / SECOND;
}

static void forget_before(void)
{
	while (before) {
		struct before *one = before;

		before = one->next;
		free(one->path);
		free(one->zone);
		free(one);
	}
}

static void note_before(const struct holidays *holidays)
{
	struct before *one = zalloc(sizeof(*one));

	one->path = must(strdup(holidays->path));
	one->zone = must(strdup(holidays->zone));
	one->next = before;
	before = one;
}

/* A wrong file is kept, too, so that it is not read again for each line that names it. */
static struct holidays *holidays_add(const char *path, const char *zone)
{
	struct holidays *one = zalloc(sizeof(*one));

	one->path = must(strdup(path));
	one->zone = must(strdup(zone));
	one->users = 1;
	one->lost = was_before(path, zone);
	DL_APPEND(all, one);
	return one;
}

/* Take what the child has read; false: there is more to come. */
static bool holidays_take(void)
{
	struct dates_error error = { .line = 0 };
	struct aside aside = { .error = &error };

	if (!holidays_child_take(&aside))
		return false;
	pending->dates = aside.dates;
	pending->digest = aside.digest;
	if (!aside.dates)
		pending->why = say_why(pending->path, &error);
	took += aside.took;
	pending = NULL;
	return true;
}

/* Start a child for a file; false: the file is wrong without reading it. */
static bool start_child(const char *path, const char *zone)
{
	static const struct dates_error many = {
		.text = "256 such files of 16 MiB are the most, each once for each zone",
	}, slow = {
		.text = "such files take too long to be understood, all of them together",
	};
	int64_t left = DAYS_SECONDS_MOST - took / SECOND;

	pending = holidays_add(path, zone);
	if (holidays_fits(path) && left > 0) {
		pending_fd = holidays_child_start(path, zone,
						  left < DAYS_SECONDS ? left : DAYS_SECONDS);
		return pending_fd >= 0 || !holidays_take();
	}
	pending->why = say_why(path, left > 0 ? &many : &slow);
	pending = NULL;
	return false;
}

static void wait_for_it(void)
{
	struct pollfd pollfd = { .fd = pending_fd, .events = POLLIN };

	while (pending && !holidays_take())
		if (poll(&pollfd, 1, PATIENCE * 1000) == 0)
			holidays_child_stop();
}

static void await(void)
{
	static const struct timeval patience = { PATIENCE, 0 };

	event_add(readiness, &patience);
}

static void holidays_readable(evutil_socket_t fd, short what, void *arg)
{
	if (what & EV_TIMEOUT)
		holidays_child_stop();
	if (!holidays_take()) {
		await();
		return;
	}
	event_free(readiness);
	was_read();
}

/**
 * holidays_begin - have a file read while the loop goes on, unless it was read before
 * @base: the loop
 * @done: called when it was read
 * @path: the file
 * @zone: of its days
 *
 * Return: true if holidays_get() does not have to wait; @done is not called then.
 */
bool holidays_begin(struct event_base *base, void (*done)(void), const char *path,
		    const char *zone)
{
	if (holidays_find(path, zone) || !start_child(path, zone))
		return true;
	was_read = done;
	readiness = must(event_new(base, pending_fd, EV_READ, holidays_readable, NULL));
	await();
	return false;
}

/** holidays_named - does a line name this file, as CALENDAR=? */
bool holidays_named(const char *path)
{
	struct holidays *one;

	DL_FOREACH(all, one)
		if (!strcmp(one->path, path))
			return true;
	return false;
}

/**
 * holidays_get - the times that a file leaves out, until holidays_put(). Waits until it is read
 * @path: the file
 * @zone: of its days
 * @why: out: the reason for NULL
 * @room: bytes in @why
 */
struct holidays *holidays_get(const char *path, const char *zone, char *why, size_t room)
{
	struct holidays *one = holidays_find(path, zone);

	if (!one && start_child(path, zone))
		wait_for_it();
	one = holidays_find(path, zone);
	if (one->why) {
		snprintf(why, room, "%s", one->why);
		return NULL;
	}
	one->users++;
	return one;
}

void holidays_put(struct holidays *one)
{
	if (!one || --one->users)
		return;
	dates_free(one->dates);
	free(one->path);
	free(one->zone);
	free(one->why);
	free(one);
}

/** holidays_look - log once which files leave out no more times; to be called now and then */
void holidays_look(void)
{
	struct holidays *one;

	DL_FOREACH(all, one) {
		if (!one->dates || one->said || has_days(one))
			continue;
		one->said = true;
		complain("CALENDAR=%s leaves out nothing from now on: %s", one->path, one->lost ?
			 "the days that were to come are gone" : "has it run out?");
	}
}

/** holidays_empty - how many files leave out no more times */
size_t holidays_empty(void)
{
	struct holidays *one;
	size_t count = 0;

	DL_FOREACH(all, one)
		count += one->dates && !has_days(one);
	return count;
}

/** holidays_took - ns of a processor for the files since holidays_forget() */
int64_t holidays_took(void)
{
	return took;
}

/** holidays_forget - read each file anew when it is needed next */
void holidays_forget(void)
{
	struct holidays *one, *next;

	files = 0;
	bytes = 0;
	tries = 0;
	took = 0;
	forget_before();
	DL_FOREACH_SAFE(all, one, next) {
		if (has_days(one))
			note_before(one);
		DL_DELETE(all, one);
		holidays_put(one);
	}
}

static int64_t find_next(const struct holidays *holidays, const struct calendar *calendar,
			 int64_t after, int most)
{
	int64_t time = calendar_next(calendar, after), until;

	for (int i = 0; i < most && time != CALENDAR_NEVER; i++) {
		if (!dates_covers(holidays->dates, time, &until))
			return time;
		tries++;
		time = calendar_next(calendar, until - 1);
	}
	return CALENDAR_NEVER;
}

/** holidays_next - the first time after one that is not left out; @holidays may be NULL */
int64_t holidays_next(const struct holidays *holidays, const struct calendar *calendar,
		      int64_t after)
{
	return holidays ? find_next(holidays, calendar, after, TRIES) :
		calendar_next(calendar, after);
}

/**
 * holidays_always - are all times after one left out, as far as it is searched?
 *
 * A schedule with an end may have its last times left out: then it has run out, which is no
 * mistake.
 */
bool holidays_always(const struct holidays *holidays, const struct calendar *calendar,
		     int64_t after)
{
	int most = tries < TRIES_MOST ? TRIES : TRIES_LEAST;

	return holidays && calendar_next(calendar, after) != CALENDAR_NEVER &&
		find_next(holidays, calendar, after, most) == CALENDAR_NEVER &&
		(calendar_next(calendar, LAST_YEAR) != CALENDAR_NEVER ||
		 find_next(holidays, calendar, -1, most) == CALENDAR_NEVER);
}

/** holidays_prev - the last time before one that is not left out */
int64_t holidays_prev(const struct holidays *holidays, const struct calendar *calendar,
		      int64_t before)
{
	int64_t time = calendar_prev(calendar, before), from;

	for (int i = 0; holidays && i < TRIES && time != CALENDAR_NEVER; i++) {
		if (!dates_since(holidays->dates, time, &from))
			return time;
		time = calendar_prev(calendar, from);
	}
	return holidays ? CALENDAR_NEVER : time;
}
