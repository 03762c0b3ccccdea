/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A set of times, as spans in the order of time that don't touch. Pure.
 */
#ifndef TWHEELD_SPANS_H
#define TWHEELD_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "when/zone.h"

/* Adding more spans than these fails. */
#define TIMES_MOST 500000

struct time_span {
	int64_t from, until;	/* @until: exclusive */
};

struct spans {
	size_t count, room;
	struct time_span *spans;
};

bool spans_add(struct spans *times, int64_t from, int64_t until);
bool spans_add_days(struct spans *times, const struct zone *zone, int64_t day, int64_t days);
void spans_sort(struct spans *times);
const struct time_span *spans_find(const struct spans *times, int64_t when);
void spans_free(struct spans *times);

#endif
