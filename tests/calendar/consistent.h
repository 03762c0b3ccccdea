/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must be so for any calendar and any time.
 */
#ifndef CONSISTENT_H
#define CONSISTENT_H

#include "../../twheeld/calendar.h"

#define DAY 86400
#define MUST(cond) do {			\
	if (!(cond))			\
		return #cond;		\
} while (0)

/* What is not so; NULL: all is */
static inline const char *inconsistent(const struct calendar *calendar, int64_t time)
{
	int64_t next = calendar_next(calendar, time), prev = calendar_prev(calendar, time);
	int64_t again;

	MUST(next == CALENDAR_NEVER || (next > time && next >= -DAY));
	MUST(prev == CALENDAR_NOT_YET || (prev < time && prev >= -DAY));
	if (next != CALENDAR_NEVER) {
		MUST(calendar_prev(calendar, next + 1) == next);
		MUST(calendar_next(calendar, next - 1) == next);
		again = calendar_prev(calendar, next);
		MUST(again == time || again == prev);
	}
	if (prev != CALENDAR_NOT_YET) {
		MUST(calendar_prev(calendar, prev + 1) == prev);
		MUST(calendar_next(calendar, prev - 1) == prev);
		again = calendar_next(calendar, prev);
		MUST(again == time || again == next);
	}
	return NULL;
}

#endif
