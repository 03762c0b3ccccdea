// SPDX-License-Identifier: GPL-2.0
/*
 * On which days a rule of RFC 5545 falls, by days, weeks, months or years.
 *
 * libical understands the text of a rule, and the days are found here: libical 3.0 ignores
 * BYSETPOS in days and weeks, and has days of week 1 for BYWEEKNO=53.
 *
 * Each period, from the start's on, is looked through day by day, without months that can't fit.
 * A day has to fit all parts of the rule. BYSETPOS counts all days of the period, also before the
 * start.
 */
#include <time.h>

#include "when/repeat.h"
#include "when/zone.h"

#define MONTHS_OF_YEAR 12
#define WEEK_DAYS 7

struct date {
	int64_t day;			/* since 1970-01-01 */
	int year, month, month_day;
	int year_day;			/* from 1 on */
	int weekday;			/* Sunday is 0 */
	int month_length, year_length;
};

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100) || year % 400 == 0;
}

static int length_of_month(int year, int month)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return month == 2 && is_leap(year) ? 29 : lengths[month - 1];
}

static struct date date_of(int64_t day)
{
	time_t seconds = day * DAY_SECONDS;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return (struct date){
		.day = day, .year = tm.tm_year + 1900, .month = tm.tm_mon + 1,
		.month_day = tm.tm_mday, .year_day = tm.tm_yday + 1, .weekday = tm.tm_wday,
		.month_length = length_of_month(tm.tm_year + 1900, tm.tm_mon + 1),
		.year_length = is_leap(tm.tm_year + 1900) ? 366 : 365,
	};
}

static int64_t first_of_month(int year, int month)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = 1 };

	return timegm(&tm) / DAY_SECONDS;
}

/* Parts of a rule are arrays with an end mark. Does the rule have this one? */

static bool is_there(const short *part)
{
	return *part != ICAL_RECURRENCE_ARRAY_MAX;
}

static bool has(const short *part, int value)
{
	for (; is_there(part); part++)
		if (*part == value)
			return true;
	return false;
}

/* Values count from 1 on, or from -1, the last one, back. */
static bool has_counted(const short *part, int value, int count)
{
	return has(part, value) || has(part, value - count - 1);
}

static bool has_nth(const short *days)
{
	for (; is_there(days); days++)
		if (icalrecurrencetype_day_position(*days))
			return true;
	return false;
}

/**
 * repeat_check - has a rule a meaning, and can repeat_each() do it?
 *
 * Return: a sentence about what is wrong, or NULL.
 */
const char *repeat_check(const struct icalrecurrencetype *rule)
{
	bool weekly = rule->freq == ICAL_WEEKLY_RECURRENCE;
	bool yearly = rule->freq == ICAL_YEARLY_RECURRENCE;

	if (rule->freq < ICAL_DAILY_RECURRENCE || rule->freq > ICAL_YEARLY_RECURRENCE)
		return "the event repeats more often than each day";
	if (is_there(rule->by_hour) || is_there(rule->by_minute) || is_there(rule->by_second))
		return "BYHOUR, BYMINUTE and BYSECOND are not understood";
	if (rule->rscale)
		return "the event has RSCALE, another calendar, which is not understood";
	if (!yearly && (is_there(rule->by_week_no) || is_there(rule->by_year_day)))
		return "BYWEEKNO and BYYEARDAY are for FREQ=YEARLY";
	if (weekly && is_there(rule->by_month_day))
		return "BYMONTHDAY is not for FREQ=WEEKLY";
	if (has_nth(rule->by_day) && (is_there(rule->by_week_no) ||
				      (!yearly && rule->freq != ICAL_MONTHLY_RECURRENCE)))
		return "numbers in BYDAY are for FREQ=MONTHLY, and FREQ=YEARLY without BYWEEKNO";
	return rule->interval < 1 ? "INTERVAL is from 1 on" : NULL;
}

static int week_begins(const struct icalrecurrencetype *rule)
{
	return rule->week_start == ICAL_NO_WEEKDAY ? 1 : rule->week_start - ICAL_SUNDAY_WEEKDAY;
}

/* How many days ago the week has begun */
static int days_of_week(const struct icalrecurrencetype *rule, const struct date *date)
{
	return (date->weekday - week_begins(rule) + WEEK_DAYS) % WEEK_DAYS;
}

/* A week belongs to the year with most of its days: the fourth day says which, and its number. */
static bool week_fits(const struct icalrecurrencetype *rule, const struct date *date)
{
	struct date fourth = date_of(date->day - days_of_week(rule, date) + 3);
	int before = (fourth.year_day - 1) / WEEK_DAYS;
	int after = (fourth.year_length - fourth.year_day) / WEEK_DAYS;

	return has_counted(rule->by_week_no, before + 1, before + 1 + after);
}

/* Is it the Nth of its weekday, from the begin, or from the end, of its month or year? */
static bool nth_fits(int nth, int day, int length)
{
	return nth > 0 ? (day - 1) / WEEK_DAYS + 1 == nth :
		(length - day) / WEEK_DAYS + 1 == -nth;
}

static bool weekday_fits(const struct icalrecurrencetype *rule, const struct date *date)
{
	bool of_month = rule->freq == ICAL_MONTHLY_RECURRENCE || is_there(rule->by_month);

	for (const short *day = rule->by_day; is_there(day); day++) {
		int nth = icalrecurrencetype_day_position(*day);

		if ((int)icalrecurrencetype_day_day_of_week(*day) - ICAL_SUNDAY_WEEKDAY !=
		    date->weekday)
			continue;
		if (!nth || (of_month ? nth_fits(nth, date->month_day, date->month_length) :
			     nth_fits(nth, date->year_day, date->year_length)))
			return true;
	}
	return false;
}

/* Has a yearly rule its start's month, as it names no months, weeks or days? */
static bool has_month_of_start(const struct icalrecurrencetype *rule)
{
	return rule->freq == ICAL_YEARLY_RECURRENCE && !is_there(rule->by_month) &&
		!is_there(rule->by_day) && !is_there(rule->by_month_day) &&
		!is_there(rule->by_year_day) && !is_there(rule->by_week_no);
}

static bool month_fits(const struct icalrecurrencetype *rule, const struct date *start,
		       const struct date *date)
{
	if (is_there(rule->by_month))
		return has(rule->by_month, date->month);
	return !has_month_of_start(rule) || date->month == start->month;
}

/* Parts that a rule does not have are the start's. */
static bool start_fits(const struct icalrecurrencetype *rule, const struct date *start,
		       const struct date *date)
{
	if (is_there(rule->by_day) || is_there(rule->by_month_day) || is_there(rule->by_year_day))
		return true;
	switch (rule->freq) {
	case ICAL_DAILY_RECURRENCE:
		return true;
	case ICAL_WEEKLY_RECURRENCE:
		return date->weekday == start->weekday;
	case ICAL_MONTHLY_RECURRENCE:
		return date->month_day == start->month_day;
	default:
		if (is_there(rule->by_week_no))
			return date->weekday == start->weekday;
		return date->month_day == start->month_day;
	}
}

static bool repeat_fits(const struct icalrecurrencetype *rule, const struct date *start,
			const struct date *date)
{
	return start_fits(rule, start, date) &&
		(!is_there(rule->by_month_day) ||
		 has_counted(rule->by_month_day, date->month_day, date->month_length)) &&
		(!is_there(rule->by_year_day) ||
		 has_counted(rule->by_year_day, date->year_day, date->year_length)) &&
		(!is_there(rule->by_day) || weekday_fits(rule, date)) &&
		(!is_there(rule->by_week_no) || week_fits(rule, date));
}

/* The first day of a period, and the first one after it; a period's number counts from 0 on. */
static void find_period(const struct icalrecurrencetype *rule, const struct date *start,
			int64_t number, int64_t *first, int64_t *end)
{
	int64_t step = number * rule->interval, month;

	switch (rule->freq) {
	case ICAL_DAILY_RECURRENCE:
		*first = start->day + step;
		*end = *first + 1;
		break;
	case ICAL_WEEKLY_RECURRENCE:
		*first = start->day + step * WEEK_DAYS - days_of_week(rule, start);
		*end = *first + WEEK_DAYS;
		break;
	case ICAL_MONTHLY_RECURRENCE:
		month = start->month - 1 + step;
		*first = first_of_month(start->year + month / MONTHS_OF_YEAR,
					month % MONTHS_OF_YEAR + 1);
		*end = first_of_month(start->year + (month + 1) / MONTHS_OF_YEAR,
				      (month + 1) % MONTHS_OF_YEAR + 1);
		break;
	default:
		*first = first_of_month(start->year + step, 1);
		*end = first_of_month(start->year + step + 1, 1);
	}
}

/* The days of a period that fit, 366 at most; @left goes down by the days that were looked at. */
static int days_of_period(const struct icalrecurrencetype *rule, const struct date *start,
			  int64_t first, int64_t end, int64_t *days, int64_t *left)
{
	int count = 0;

	for (int64_t day = first; day < end; day++) {
		struct date date = date_of(day);

		--*left;
		if (!month_fits(rule, start, &date))
			day += date.month_length - date.month_day;
		else if (repeat_fits(rule, start, &date))
			days[count++] = day;
	}
	return count;
}

/**
 * repeat_each - go through the days on which a rule falls
 * @rule: one that repeat_check() has passed; its UNTIL does not count
 * @start: the day of DTSTART, since 1970-01-01; one of the days only if it fits
 * @last: no day after this one, before the year 2300
 * @left: how many days may be looked at; out: how many of them are left
 * @each: called for each day; gives false to stop
 * @arg: for @each
 *
 * Return: false if @each gave false, or there were too many days, and @left is below 0.
 */
bool repeat_each(const struct icalrecurrencetype *rule, int64_t start, int64_t last,
		 int64_t *left, bool (*each)(void *arg, int64_t day), void *arg)
{
	struct date from = date_of(start);
	int64_t days[366], first, end;
	int made = 0;

	for (int64_t number = 0; ; number++) {
		int count;

		find_period(rule, &from, number, &first, &end);
		if (first > last)
			return true;
		if (*left < 0)
			return false;
		count = days_of_period(rule, &from, first, end, days, left);
		for (int i = 0; i < count; i++) {
			if (is_there(rule->by_set_pos) &&
			    !has_counted(rule->by_set_pos, i + 1, count))
				continue;
			if (days[i] < start || days[i] > last)
				continue;
			if (!each(arg, days[i]))
				return false;
			if (++made == rule->count)
				return true;
		}
	}
}
