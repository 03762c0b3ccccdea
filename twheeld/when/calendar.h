/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a schedule fires. Pure: no clock, and no files but the zone database.
 *
 * Times are seconds since 1970, UTC. Nothing fires before 1970 or after 2199 on the clock of
 * its zone.
 *
 * An expression is one of
 *
 *	five fields		as in crontab(5): minute, hour, day of month, month, day of week
 *	six or seven fields	as Quartz has them: the second comes first, the year last
 *	@daily ...		@yearly @annually @monthly @weekly @daily @midnight @hourly
 *	@every 1h30m		multiples of this time since 1970-01-01T00:00Z: s, m, min, h, d
 *	@at 2027-01-01T00:00Z	once; without Z or +01:00 at its end, in the zone
 *
 * A field is a list of numbers, ranges a-b, and all: *. Each range can have a step: a-b/n;
 * a/n begins at a. A range may go over the end: 22-2. Months and days of the week have names
 * of three letters. L, L-3, LW, 15W in the days of the month, and 5L, 5#3 in the days of the
 * week, mean what they mean in Quartz. "?" is "*".
 *
 * DAYS OF THE WEEK COUNT IN TWO WAYS: with five fields as in cron (0 and 7 are Sunday, 5 is
 * Friday), with six or seven as in Quartz (1 is Sunday, 6 is Friday). Names are the same.
 *
 * If both day fields are restricted, that is, neither begins with "*" or "?", a day that fits
 * one of them is enough. So it is in cron.
 *
 * When the clock is set forward or back in a zone, it goes as with Debian's cron. Fixed times
 * are those of which neither seconds, minutes nor hours begin with "*". One that falls into
 * the gap fires right after it; one in an hour that comes twice fires the first time. All
 * others fire whenever the clock shows their time: every 15 minutes stays every 15 minutes.
 * Cron itself gives up when the clock is set by more than three hours, as it can't know that
 * the zone is the cause. Here the rule is the same for any change of the zone.
 *
 * calendar_parse() and calendar_free() are for one thread; the others for any.
 */
#ifndef TWHEELD_CALENDAR_H
#define TWHEELD_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALENDAR_NEVER INT64_MAX
#define CALENDAR_NOT_YET INT64_MIN

/* A longer expression is refused. */
#define CALENDAR_TEXT_MOST 1000
/* For messages: how to write a moment */
#define CALENDAR_MOMENT "a day or a time, like 2027-01-31, 2027-01-31T07:00, 2027-01-31T07:00Z"

struct calendar;

/* A mistake: its place in the text, from 0, and a sentence */
struct calendar_error {
	size_t column;
	char text[160];
};

struct calendar *calendar_parse(const char *text, size_t length, const char *zone,
				struct calendar_error *error);
bool calendar_moment(const char *text, const char *zone, bool end, int64_t *seconds);
bool calendar_from(struct calendar *calendar, const char *text, const char *zone);
void calendar_limit(struct calendar *calendar, int64_t first, int64_t last);
int64_t calendar_digest(const struct calendar *calendar);
void calendar_free(struct calendar *calendar);
int64_t calendar_next(const struct calendar *calendar, int64_t after);
int64_t calendar_prev(const struct calendar *calendar, int64_t before);

#endif
