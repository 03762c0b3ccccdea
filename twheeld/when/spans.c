// SPDX-License-Identifier: GPL-2.0
/*
 * A set of times, as spans in the order of time that don't touch.
 */
#include <stdlib.h>

#include "when/spans.h"

static bool spans_grow(struct spans *times)
{
	size_t room = times->room ? 2 * times->room : 64;
	struct time_span *spans;

	if (times->count >= TIMES_MOST)
		return false;
	spans = realloc(times->spans, room * sizeof(*spans));
	if (!spans)
		return false;
	times->spans = spans;
	times->room = room;
	return true;
}

/** spans_add - add a span; gives false if there are too many, or no memory */
bool spans_add(struct spans *times, int64_t from, int64_t until)
{
	if (from >= until)
		return true;
	if (times->count == times->room && !spans_grow(times))
		return false;
	times->spans[times->count++] = (struct time_span){ from, until };
	return true;
}

/**
 * spans_add_days - add whole days
 * @zone: whose clock has the days; where it is set around midnight, a day may be in two pieces
 * @day: the first, counted from 1970-01-01 on
 * @days: how many
 *
 * Return: false if there are too many spans, or no memory.
 */
bool spans_add_days(struct spans *times, const struct zone *zone, int64_t day, int64_t days)
{
	int64_t begin = day * DAY_SECONDS, end = (day + days) * DAY_SECONDS;

	for (size_t i = zone_at(zone, begin - 2 * DAY_SECONDS); i < zone->count; i++) {
		const struct zone_span *span = &zone->spans[i];
		int64_t from = begin - span->offset, until = end - span->offset;

		if (span->start > end + 2 * DAY_SECONDS)
			break;
		if (from < span->start)
			from = span->start;
		if (until > zone_end(zone, i))
			until = zone_end(zone, i);
		if (!spans_add(times, from, until))
			return false;
	}
	return true;
}

static int spans_compare(const void *a, const void *b)
{
	const struct time_span *one = a, *other = b;

	return (one->from > other->from) - (one->from < other->from);
}

/** spans_sort - sort the spans, for spans_find() */
void spans_sort(struct spans *times)
{
	size_t count = 0;

	if (times->count)
		qsort(times->spans, times->count, sizeof(*times->spans), spans_compare);
	for (size_t i = 0; i < times->count; i++) {
		struct time_span span = times->spans[i];

		if (!count || span.from > times->spans[count - 1].until)
			times->spans[count++] = span;
		else if (span.until > times->spans[count - 1].until)
			times->spans[count - 1].until = span.until;
	}
	times->count = count;
}

/** spans_find - the span that a time is in, or NULL */
const struct time_span *spans_find(const struct spans *times, int64_t when)
{
	size_t first = 0, end = times->count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (when < times->spans[middle].from)
			end = middle;
		else if (when >= times->spans[middle].until)
			first = middle + 1;
		else
			return &times->spans[middle];
	}
	return NULL;
}

void spans_free(struct spans *times)
{
	free(times->spans);
}
