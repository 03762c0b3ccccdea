// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as events of an .ics file: they are refused with a sentence that has a
 * line of the file, or what is left out is in order.
 */
#include "fuzz_input.h"
#include "../../../../twheeld/when/ics.h"

bool dates_wrong(struct dates_error *error, size_t line, const char *format, ...)
{
	EXPECT(line >= 1 && strlen(format) > 1);
	error->line = line;
	return false;
}

static void check_order(struct spans *times)
{
	spans_sort(times);
	for (size_t i = 0; i < times->count; i++) {
		EXPECT(times->spans[i].from < times->spans[i].until);
		EXPECT(!i || times->spans[i - 1].until < times->spans[i].from);
		EXPECT(spans_find(times, times->spans[i].from) == &times->spans[i]);
		EXPECT(!spans_find(times, times->spans[i].until));
	}
}

int fuzz_one_input(const uint8_t *data, size_t size)
{
	static const char begin[] = "BEGIN:VCALENDAR\nBEGIN:VEVENT\n", end[] =
		"\nEND:VEVENT\nEND:VCALENDAR\n";
	static struct zone *zone;
	struct spans times = { 0 };
	struct dates_error error;
	char *text;

	if (memchr(data, 0, size))
		return 0;
	if (!zone)
		zone = zone_get("Europe/Berlin");
	text = malloc(sizeof(begin) + size + sizeof(end));
	EXPECT(zone && text);
	memcpy(text, begin, sizeof(begin) - 1);
	memcpy(text + sizeof(begin) - 1, data, size);
	memcpy(text + sizeof(begin) - 1 + size, end, sizeof(end));
	if (ics_read(&times, text, zone, &error))
		check_order(&times);
	spans_free(&times);
	free(text);
	return 0;
}
