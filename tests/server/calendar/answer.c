// SPDX-License-Identifier: GPL-2.0
/*
 * answer: reads lines of ZONE, EXPRESSION and times, with tabs between, and prints for each a
 * line of when that fires next and when it did last, of each time; or what is wrong with it.
 * "-" is the zone of this machine. What must always be so is checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consistent.h"

#define ZONES 1000

/* A calendar of each zone is kept, so that its table is made once. */
static struct kept {
	char *zone;
	struct calendar *calendar;
} kept[ZONES];

static void keep_zone(const char *zone)
{
	const char *name = zone ? zone : "-";
	struct calendar_error error;
	struct kept *at = kept;

	while (at < kept + ZONES && at->zone && strcmp(at->zone, name))
		at++;
	if (at == kept + ZONES || at->zone)
		return;
	at->calendar = calendar_parse("@daily", 6, zone, &error);
	if (at->calendar)
		at->zone = strdup(name);
}

static void forget_zones(void)
{
	for (struct kept *at = kept; at < kept + ZONES; at++) {
		calendar_free(at->calendar);
		free(at->zone);
	}
}

static void answer(const struct calendar *calendar, int64_t time)
{
	const char *broken = inconsistent(calendar, time);

	if (broken)
		printf("broken: %s\n", broken);
	printf("%lld %lld ", (long long)calendar_next(calendar, time),
	       (long long)calendar_prev(calendar, time));
}

static void answer_line(char *line)
{
	char *zone = strsep(&line, "\t"), *text = strsep(&line, "\t");
	struct calendar_error error;
	struct calendar *calendar;

	zone = strcmp(zone, "-") ? zone : NULL;
	keep_zone(zone);
	calendar = calendar_parse(text, strlen(text), zone, &error);
	if (!calendar) {
		printf("wrong %zu %s\n", error.column, error.text);
		return;
	}
	for (char *time; (time = strsep(&line, "\t"));)
		answer(calendar, atoll(time));
	putchar('\n');
	calendar_free(calendar);
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, stdin)) > 0) {
		line[length - 1] = 0;
		answer_line(line);
	}
	free(line);
	forget_zones();
	return 0;
}
