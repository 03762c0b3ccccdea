/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times at which schedules are left out: a file of dates, or an .ics file.
 *
 * A file of dates has a line for each: 2027-01-01, or 2027-01-01..2027-01-06, with both its
 * ends. A day is what the clock of the zone shows as that day. What is after a # is a
 * comment. A file whose name ends with .ics has events, and the time of each is left out;
 * those that repeat, until the end of 2099.
 *
 * exclusion_covers() is for any thread, the others for one, which calls calendar_parse().
 */
#ifndef TWHEELD_EXCLUSION_H
#define TWHEELD_EXCLUSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer file is refused. */
#define EXCLUSION_FILE_MOST (4 << 20)

struct exclusion;
struct time_span;
struct times;

/* What was wrong: in which line, from 1, or 0: no line of the file; and a sentence */
struct exclusion_error {
	size_t line;
	char text[160];
};

bool exclusion_wrong(struct exclusion_error *error, size_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
struct exclusion *exclusion_read(const char *path, const char *zone,
				 struct exclusion_error *error);
struct exclusion *exclusion_of(struct time_span *spans, size_t count);
const struct times *exclusion_times(const struct exclusion *exclusion);
bool exclusion_covers(const struct exclusion *exclusion, int64_t when, int64_t *until);
bool exclusion_since(const struct exclusion *exclusion, int64_t when, int64_t *from);
void exclusion_free(struct exclusion *exclusion);

#endif
