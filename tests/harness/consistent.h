/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must be so for any calendar and any time.
 */
#ifndef CONSISTENT_H
#define CONSISTENT_H

#include "when/calendar.h"

#define DAY 86400

/* What is not so of a calendar, near @time; NULL: all is */
static inline const char *inconsistent_next(const struct calendar *calendar, int64_t time,
					    int64_t next, int64_t prev)
{
	int64_t back = calendar_prev(calendar, next);

	if (next <= time || next < -DAY)
		return "the next time is not after it";
	if (calendar_prev(calendar, next + 1) != next)
		return "the next time is not before the second after it";
	if (calendar_next(calendar, next - 1) != next)
		return "the next time is not after the second before it";
	return back == time || back == prev ? NULL : "there is one before the next time";
}

static inline const char *inconsistent_prev(const struct calendar *calendar, int64_t time,
					    int64_t next, int64_t prev)
{
	int64_t again = calendar_next(calendar, prev);

	if (prev >= time || prev < -DAY)
		return "the last time is not before it";
	if (calendar_prev(calendar, prev + 1) != prev)
		return "the last time is not before the second after it";
	if (calendar_next(calendar, prev - 1) != prev)
		return "the last time is not after the second before it";
	return again == time || again == next ? NULL : "there is one after the last time";
}

static inline const char *inconsistent(const struct calendar *calendar, int64_t time)
{
	int64_t next = calendar_next(calendar, time), prev = calendar_prev(calendar, time);
	const char *what = NULL;

	if (next != CALENDAR_NEVER)
		what = inconsistent_next(calendar, time, next, prev);
	if (!what && prev != CALENDAR_NOT_YET)
		what = inconsistent_prev(calendar, time, next, prev);
	return what;
}

#endif
