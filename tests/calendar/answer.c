// SPDX-License-Identifier: GPL-2.0
/*
 * answer: reads lines of ZONE, EXPRESSION and times, with tabs between, and prints for each a
 * line of when that fires next and when it did last, of each time; or what is wrong with it.
 * "-" is the zone of this machine. What must always be so is checked.
 *
 * answer -b N: N times the next time of several expressions, and how many in a second
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../twheeld/calendar.h"

#define ZONES 1000
#define LAST 4102444800LL	/* 2100-01-01 */

#define EXPECT(cond) do {						\
	if (!(cond)) {							\
		printf("broken: %s\n", #cond);				\
		return;							\
	}								\
} while (0)

/* A calendar of each zone is kept, so that its table is made once. */
static void keep_zone(const char *zone)
{
	static char *names[ZONES];
	struct calendar_error error;

	for (size_t i = 0; i < ZONES; i++) {
		if (names[i] && !strcmp(names[i], zone))
			return;
		if (names[i])
			continue;
		if (calendar_parse("@daily", 6, zone, &error))
			names[i] = strdup(zone);
		return;
	}
}

static void answer(const struct calendar *calendar, int64_t time)
{
	int64_t next = calendar_next(calendar, time), prev = calendar_prev(calendar, time);

	EXPECT(next > time && prev < time);
	if (next != CALENDAR_NEVER) {
		int64_t last = calendar_prev(calendar, next);

		EXPECT(calendar_prev(calendar, next + 1) == next);
		EXPECT(calendar_next(calendar, next - 1) == next);
		EXPECT(last == time || last == prev);
	}
	if (prev != CALENDAR_NOT_YET) {
		EXPECT(calendar_prev(calendar, prev + 1) == prev);
		EXPECT(calendar_next(calendar, prev - 1) == prev);
		EXPECT(calendar_next(calendar, prev) == time || calendar_next(calendar, prev) == next);
	}
	printf("%" PRId64 " %" PRId64 " ", next, prev);
}

static void answer_line(char *line)
{
	char *zone = strsep(&line, "\t"), *text = strsep(&line, "\t");
	struct calendar_error error;
	struct calendar *calendar;

	if (!strcmp(zone, "-"))
		zone = NULL;
	else
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

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void measure(int64_t times)
{
	static const char * const texts[] = {
		"*/15 * * * *", "30 2 * * *", "0 0 29 2 *", "0 0 0 ? * 6#3", "0 0 0 LW * ?",
		"* * * * * *", "@every 90s",
	};
	double begin = seconds();

	for (int64_t i = 0; i < times; i++) {
		static struct calendar *calendars[sizeof(texts) / sizeof(*texts)];
		size_t which = i % (sizeof(texts) / sizeof(*texts));
		struct calendar_error error;

		if (!calendars[which])
			calendars[which] = calendar_parse(texts[which], strlen(texts[which]),
							  "America/New_York", &error);
		if (calendar_next(calendars[which], i * 4001 % LAST) == 0)
			abort();
	}
	printf("%.0f\n", times / (seconds() - begin));
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (argc == 3 && !strcmp(argv[1], "-b")) {
		measure(atoll(argv[2]));
		return 0;
	}
	while ((length = getline(&line, &room, stdin)) > 0) {
		line[length - 1] = 0;
		answer_line(line);
	}
	free(line);
	return 0;
}
