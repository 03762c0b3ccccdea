/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times at which schedules are left out: a file of dates, or an .ics file.
 *
 * A file of dates has a line for each: 2027-01-01, or 2027-01-01..2027-01-06, with both its
 * ends. A day is what the clock of the zone shows as that day. What is after a # is a
 * comment. A file whose name ends with .ics has events, and the time of each is left out;
 * those that repeat, until the end of 2099.
 *
 * dates_covers() is for any thread, the others for one, which calls calendar_parse().
 */
#ifndef TWHEELD_DATES_H
#define TWHEELD_DATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "when/dates_error.h"

/* A longer file is refused. */
#define DATES_FILE_MOST (4 << 20)

struct dates;
struct zone;
struct time_span;
struct spans;

struct dates *dates_read(const char *path, const char *zone, struct dates_error *error);
struct dates *dates_of(struct time_span *spans, size_t count);
const struct spans *dates_times(const struct dates *dates);
bool dates_covers(const struct dates *dates, int64_t when, int64_t *until);
bool dates_since(const struct dates *dates, int64_t when, int64_t *from);
int64_t dates_days(const struct dates *dates, const struct zone *zone, int64_t from,
		   int64_t *last);
void dates_free(struct dates *dates);

#endif
