// SPDX-License-Identifier: GPL-2.0
/*
 * excluded FILE ZONE <TIMES: for each time, 0, or until when it is left out; or what is wrong
 * with the file
 *
 * excluded - ZONE <FILES: for each file, all that is left out, as FROM-UNTIL, or what is wrong
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../twheeld/when/dates.h"
#include "../../../twheeld/when/spans.h"

static void ask(const struct dates *dates)
{
	long long when;

	while (scanf("%lld", &when) == 1) {
		int64_t until = 0;

		dates_covers(dates, when, &until);
		printf("%lld\n", (long long)until);
	}
}

static void print_all(const struct dates *dates)
{
	const struct spans *times = dates_times(dates);

	for (size_t i = 0; i < times->count; i++)
		printf("%lld-%lld ", (long long)times->spans[i].from,
		       (long long)times->spans[i].until);
	putchar('\n');
}

static void with(const char *path, const char *zone, void (*what)(const struct dates *dates))
{
	struct dates_error error;
	struct dates *dates = dates_read(path, *zone ? zone : NULL, &error);

	if (dates)
		what(dates);
	else
		printf("wrong %zu %s\n", error.line, error.text);
	dates_free(dates);
}

int main(int argc, char **argv)
{
	char path[1000];

	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "-"))
		with(argv[1], argv[2], ask);
	else
		while (scanf("%999s", path) == 1)
			with(path, argv[2], print_all);
	return 0;
}
