// SPDX-License-Identifier: GPL-2.0
/*
 * Durations that people write.
 */
#include <stddef.h>
#include <string.h>

#include "base/duration.h"

/* 146 years, so that the sum of two is a number, too */
#define MOST (INT64_MAX / 2)
#define MINUTE (60LL * 1000000000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static const struct {
	const char *name;
	int64_t ns;
} units[] = {
	{ "ns", 1 }, { "us", 1000 }, { "usec", 1000 }, { "ms", 1000000 }, { "msec", 1000000 },
	{ "s", 1000000000 }, { "sec", 1000000000 }, { "second", 1000000000 },
	{ "seconds", 1000000000 },
	{ "m", MINUTE }, { "min", MINUTE }, { "minute", MINUTE }, { "minutes", MINUTE },
	{ "h", HOUR }, { "hr", HOUR }, { "hour", HOUR }, { "hours", HOUR },
	{ "d", DAY }, { "day", DAY }, { "days", DAY },
	{ "w", 7 * DAY }, { "week", 7 * DAY }, { "weeks", 7 * DAY },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number of one duration: two dots begin the next */
static bool is_end(const char *at)
{
	return !*at || (*at == '.' && at[1] == '.');
}

/* A decimal number, in billionths; NULL: none, too large, or over nine digits of a fraction */
static const char *duration_take_number(const char *at, __int128 *billionths)
{
	int64_t part = 1000000000;
	bool some = false;

	*billionths = 0;
	for (; is_digit(*at); at++, some = true) {
		*billionths = 10 * *billionths + (*at - '0') * part;
		if (*billionths > (__int128)MOST * part)
			return NULL;
	}
	if (*at == '.' && !is_end(at)) {
		for (at++; is_digit(*at); at++, some = true) {
			part /= 10;
			*billionths += (*at - '0') * part;
		}
	}
	return some && part ? at : NULL;
}

static int64_t unit_of(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strlen(units[i].name) == length && !memcmp(units[i].name, name, length))
			return units[i].ns;
	return 0;
}

/* Numbers with their units, up to the end or two dots; a fraction of 1 ns counts as 1 */
static const char *duration_take(const char *at, int64_t bare, int64_t *ns)
{
	bool first = true;

	*ns = 0;
	do {
		__int128 number;
		size_t length;
		int64_t unit;

		at = duration_take_number(at + strspn(at, " "), &number);
		if (!at)
			return NULL;
		length = strspn(at + strspn(at, " "), "abcdefghijklmnopqrstuvwxyz");
		if (length) {
			at += strspn(at, " ");
			unit = unit_of(at, length);
			at += length;
		} else {
			unit = first && is_end(at) ? bare : 0;
		}
		if (!unit || number > (__int128)MOST * 1000000000 / unit)
			return NULL;
		number = (number * unit + 999999999) / 1000000000;
		if (number > MOST - *ns)
			return NULL;
		*ns += number;
		first = false;
	} while (!is_end(at));
	return at;
}

/**
 * duration_parse - understand a duration, up to 146 years
 * @text: numbers, each with a unit; they may have fractions, and spaces between them
 * @bare: ns of a unit for a number that has none and stands alone; 0: it needs one
 * @ns: the duration; a fraction of a ns is rounded up
 *
 * Return: false if the text is no duration, or it is too long.
 */
bool duration_parse(const char *text, int64_t bare, int64_t *ns)
{
	const char *end = duration_take(text, bare, ns);

	return end && !*end;
}

/** duration_range - understand FIRST..LAST, or one duration, which is both */
bool duration_range(const char *text, int64_t bare, int64_t *first, int64_t *last)
{
	const char *end = duration_take(text, bare, first);

	*last = *first;
	if (end && !strncmp(end, "..", 2))
		return duration_parse(end + 2, bare, last) && *first <= *last;
	return end && !*end;
}
