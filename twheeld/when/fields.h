/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fields of an expression, and which times on a clock they fit. Pure; knows no zones.
 */
#ifndef TWHEELD_FIELDS_H
#define TWHEELD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "when/calendar.h"

/* Sets of numbers, a bit for each */
struct fields {
	uint64_t seconds, minutes, hours;
	uint64_t days;			/* of the month, from bit 1 on */
	uint64_t last;			/* bit n: n days before the last of the month */
	uint64_t near, last_near;	/* the day from Monday to Friday next to these */
	uint64_t months;		/* from bit 1 on */
	uint64_t weekdays;		/* Sunday is bit 0 */
	uint64_t last_weekdays, nth_weekdays[5];	/* of the month */
	uint64_t years[4];		/* since 1970 */
	bool either;			/* day of month or day of week: one is enough */
	bool wild;			/* seconds, minutes or hours begin with a star */
};

bool fields_parse(struct fields *fields, const char *text, size_t length,
		  struct calendar_error *error);
int64_t fields_next(const struct fields *fields, int64_t from);
int64_t fields_prev(const struct fields *fields, int64_t from);

__attribute__((format(printf, 3, 4)))
bool calendar_wrong(struct calendar_error *error, size_t column, const char *format, ...);

#endif
