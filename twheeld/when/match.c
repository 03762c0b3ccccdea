// SPDX-License-Identifier: GPL-2.0
/*
 * The fields of an expression: which times on a clock they fit.
 *
 * A time on the clock is the seconds since its 1970-01-01T00:00. The next that fits is found
 * month by month, so that an expression which fits once in 40 years takes microseconds.
 */
#include <time.h>

#include "when/fields.h"
#include "when/zone.h"

#define YEARS 230
#define BIT(n) (1ULL << (n))

struct month {
	int year;		/* since 1970 */
	unsigned int month;	/* from 1 on */
	unsigned int length;
	unsigned int weekday;	/* of its first day */
	int64_t first;		/* the days before it, since 1970 */
};

static unsigned int length_of(int year, unsigned int month)
{
	year += 1970;
	if (month == 2)
		return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
	return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* The month of a day, and the day's number in it, from 1 on */
static struct month month_of(int64_t day, unsigned int *date)
{
	time_t time = day * DAY_SECONDS;
	struct month month;
	struct tm tm;

	gmtime_r(&time, &tm);
	*date = tm.tm_mday;
	month.year = tm.tm_year - 70;
	month.month = tm.tm_mon + 1;
	month.length = length_of(month.year, month.month);
	month.weekday = (tm.tm_wday + 36 - tm.tm_mday) % 7;
	month.first = day - (tm.tm_mday - 1);
	return month;
}

static void go_forward(struct month *month)
{
	month->first += month->length;
	month->weekday = (month->weekday + month->length) % 7;
	if (++month->month > 12) {
		month->month = 1;
		month->year++;
	}
	month->length = length_of(month->year, month->month);
}

static void go_back(struct month *month)
{
	if (--month->month < 1) {
		month->month = 12;
		month->year--;
	}
	month->length = length_of(month->year, month->month);
	month->first -= month->length;
	month->weekday = (month->weekday + 35 - month->length) % 7;
}

/* Days of the week, as days of a month */
static uint64_t days_of_week(const struct month *month, uint64_t weekdays)
{
	uint64_t week = (weekdays >> month->weekday | weekdays << (7 - month->weekday)) & 127;

	return week * (BIT(1) | BIT(8) | BIT(15) | BIT(22) | BIT(29));
}

/* The day from Monday to Friday next to a day, in the same month */
static uint64_t nearest(const struct month *month, unsigned int day)
{
	unsigned int weekday = (month->weekday + day - 1) % 7;

	if (weekday == 6)
		return BIT(day == 1 ? 3 : day - 1);
	if (weekday == 0)
		return BIT(day == month->length ? day - 2 : day + 1);
	return BIT(day);
}

static uint64_t days_of_month(const struct fields *fields, const struct month *month)
{
	uint64_t days = fields->days;

	if (!(fields->last | fields->near | fields->last_near))
		return days;
	for (unsigned int day = 1; day <= month->length; day++) {
		uint64_t before = BIT(month->length - day);

		if (fields->last & before)
			days |= BIT(day);
		if ((fields->near & BIT(day)) || (fields->last_near & before))
			days |= nearest(month, day);
	}
	return days;
}

static uint64_t weekdays_of_month(const struct fields *fields, const struct month *month)
{
	uint64_t days = days_of_week(month, fields->weekdays) |
		(days_of_week(month, fields->last_weekdays) & -BIT(month->length - 6));

	for (unsigned int i = 0; i < 5; i++)
		if (fields->nth_weekdays[i])
			days |= days_of_week(month, fields->nth_weekdays[i]) &
				127ULL << (7 * i + 1);
	return days;
}

static uint64_t days_that_fit(const struct fields *fields, const struct month *month)
{
	uint64_t of_month, of_week;

	if (!(fields->months & BIT(month->month)) ||
	    !(fields->years[month->year / 64] & BIT(month->year % 64)))
		return 0;
	of_month = days_of_month(fields, month);
	of_week = weekdays_of_month(fields, month);
	return (fields->either ? of_month | of_week : of_month & of_week) &
		(BIT(month->length + 1) - 2);
}

static int lowest(uint64_t set)
{
	return set ? __builtin_ctzll(set) : -1;
}

static int highest(uint64_t set)
{
	return set ? 63 - __builtin_clzll(set) : -1;
}

/* The part of a set from a number on, and by up_to() the one up to it */
static uint64_t from(uint64_t set, unsigned int n)
{
	return set & -BIT(n);
}

static uint64_t up_to(uint64_t set, unsigned int n)
{
	return set & (BIT(n + 1) - 1);
}

static int clock_of(int hour, int minute, int second)
{
	return hour * 3600 + minute * 60 + second;
}

static int first_of_day(const struct fields *fields)
{
	return clock_of(lowest(fields->hours), lowest(fields->minutes), lowest(fields->seconds));
}

static int last_of_day(const struct fields *fields)
{
	return clock_of(highest(fields->hours), highest(fields->minutes),
			highest(fields->seconds));
}

/* The first time of a day that fits, from @clock on; below 0: there is none. */
static int first_from(const struct fields *fields, int clock)
{
	int hour = clock / 3600, minute = clock / 60 % 60, second = clock % 60;

	if (fields->hours & BIT(hour)) {
		if (fields->minutes & BIT(minute) && from(fields->seconds, second))
			return clock_of(hour, minute, lowest(from(fields->seconds, second)));
		if (from(fields->minutes, minute + 1))
			return clock_of(hour, lowest(from(fields->minutes, minute + 1)),
					lowest(fields->seconds));
	}
	hour = lowest(from(fields->hours, hour + 1));
	return hour < 0 ? -1 : clock_of(hour, lowest(fields->minutes), lowest(fields->seconds));
}

/* The last time of a day that fits, up to @clock; below 0: there is none. */
static int last_up_to(const struct fields *fields, int clock)
{
	int hour = clock / 3600, minute = clock / 60 % 60, second = clock % 60;

	if (fields->hours & BIT(hour)) {
		if (fields->minutes & BIT(minute) && up_to(fields->seconds, second))
			return clock_of(hour, minute, highest(up_to(fields->seconds, second)));
		if (minute && up_to(fields->minutes, minute - 1))
			return clock_of(hour, highest(up_to(fields->minutes, minute - 1)),
					highest(fields->seconds));
	}
	hour = hour ? highest(up_to(fields->hours, hour - 1)) : -1;
	return hour < 0 ? -1 : clock_of(hour, highest(fields->minutes), highest(fields->seconds));
}

static int64_t time_of(const struct month *month, int day, int clock)
{
	return (month->first + day - 1) * DAY_SECONDS + clock;
}

/**
 * fields_next - the first time on a clock that fits, from one on
 *
 * Return: the time, or CALENDAR_NEVER: none does until the end of 2199.
 */
int64_t fields_next(const struct fields *fields, int64_t from_time)
{
	int64_t start = from_time > 0 ? from_time : 0;
	unsigned int day;
	struct month month = month_of(start / DAY_SECONDS, &day);
	uint64_t days;

	if (month.year >= YEARS)
		return CALENDAR_NEVER;
	days = days_that_fit(fields, &month);
	if (days & BIT(day)) {
		int clock = first_from(fields, start % DAY_SECONDS);

		if (clock >= 0)
			return time_of(&month, day, clock);
	}
	for (days = from(days, day + 1); !days; days = days_that_fit(fields, &month)) {
		go_forward(&month);
		if (month.year >= YEARS)
			return CALENDAR_NEVER;
	}
	return time_of(&month, lowest(days), first_of_day(fields));
}

/**
 * fields_prev - the last time on a clock that fits, up to one, which is before 2200
 *
 * Return: the time, or CALENDAR_NOT_YET: none does since the beginning of 1970.
 */
int64_t fields_prev(const struct fields *fields, int64_t from_time)
{
	unsigned int day;
	struct month month;
	uint64_t days;

	if (from_time < 0)
		return CALENDAR_NOT_YET;
	month = month_of(from_time / DAY_SECONDS, &day);
	days = days_that_fit(fields, &month);
	if (days & BIT(day)) {
		int clock = last_up_to(fields, from_time % DAY_SECONDS);

		if (clock >= 0)
			return time_of(&month, day, clock);
	}
	for (days = up_to(days, day - 1); !days; days = days_that_fit(fields, &month)) {
		go_back(&month);
		if (month.year < 0)
			return CALENDAR_NOT_YET;
	}
	return time_of(&month, highest(days), last_of_day(fields));
}
