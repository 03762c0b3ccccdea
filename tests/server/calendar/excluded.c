// SPDX-License-Identifier: GPL-2.0
/*
 * excluded FILE ZONE <TIMES: for each time, 0, or until when it is left out; or what is wrong
 * with the file
 *
 * excluded - ZONE [ZONE...] <FILES, each with a time: what it leaves out that begins before that
 * time, as FROM-UNTIL, or what is wrong; zones that many name are kept
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../twheeld/when/dates.h"
#include "../../../twheeld/when/spans.h"
#include "../../../twheeld/when/zone.h"

/* NULL: the error says what is wrong. */
static struct dates *read_dates(const char *path, const char *zone)
{
	struct dates_error error;
	struct dates *dates = dates_read(path, *zone ? zone : NULL, &error);

	if (!dates)
		printf("wrong %zu %s\n", error.line, error.text);
	return dates;
}

static void ask(const char *path, const char *zone)
{
	struct dates *dates = read_dates(path, zone);
	long long when;

	while (dates && scanf("%lld", &when) == 1) {
		int64_t until = 0;

		dates_covers(dates, when, &until);
		printf("%lld\n", (long long)until);
	}
	dates_free(dates);
}

static void print_all(const char *path, const char *zone, long long end)
{
	struct dates *dates = read_dates(path, zone);
	const struct spans *times;

	if (!dates)
		return;
	times = dates_times(dates);
	for (size_t i = 0; i < times->count && times->spans[i].from < end; i++)
		printf("%lld-%lld ", (long long)times->spans[i].from,
		       (long long)times->spans[i].until);
	putchar('\n');
	dates_free(dates);
}

int main(int argc, char **argv)
{
	char path[1000];
	long long end;

	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "-")) {
		ask(argv[1], argv[2]);
		return 0;
	}
	/* To make the table of a zone takes longer than all else of a file. */
	for (int i = 2; i < argc; i++)
		if (!zone_get(argv[i]))
			return 2;
	while (scanf("%999s %lld", path, &end) == 2)
		print_all(path, argv[2], end);
	for (int i = 2; i < argc; i++) {
		struct zone *kept = zone_get(argv[i]);

		zone_put(kept);
		zone_put(kept);
	}
	return 0;
}
