// SPDX-License-Identifier: GPL-2.0
/*
 * Times that people write.
 */
#include <stddef.h>
#include <string.h>

#include "base/duration.h"

/* 100 years, so that sums of a few of them are numbers, too */
#define MOST (36525LL * 86400 * 1000000000)

static const struct {
	const char *name;
	int64_t ns;
} units[] = {
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "min", 60LL * 1000000000 },
	{ "h", 3600LL * 1000000000 },
	{ "d", 86400LL * 1000000000 },
};

/* The number that a text begins with; NULL if there is none, or it is too large */
static const char *take_number(const char *text, int64_t *value)
{
	const char *at = text;

	*value = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (*value > MOST / 100)
			return NULL;
		*value = 10 * *value + (*at - '0');
	}
	return at == text ? NULL : at;
}

/* The time that a text begins with, up to its end, or dots */
static const char *take(const char *text, int64_t *ns)
{
	int64_t value;
	const char *at = take_number(text, &value);

	for (size_t i = 0; at && i < sizeof(units) / sizeof(*units); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(at, units[i].name, length) || (at[length] && at[length] != '.'))
			continue;
		if (value > MOST / units[i].ns)
			return NULL;
		*ns = value * units[i].ns;
		return at + length;
	}
	return NULL;
}

/** duration_parse - understand a time: digits and a unit; gives false if it is none */
bool duration_parse(const char *text, int64_t *ns)
{
	const char *end = take(text, ns);

	return end && !*end;
}

/** duration_range - understand FIRST..LAST, or one time, which is both */
bool duration_range(const char *text, int64_t *first, int64_t *last)
{
	const char *end = take(text, first);

	*last = *first;
	if (end && !strncmp(end, "..", 2))
		return duration_parse(end + 2, last) && *first <= *last;
	return end && !*end;
}
