/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A set of times, as spans in the order of time that don't touch. Pure.
 */
#ifndef TWHEELD_TIMES_H
#define TWHEELD_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zone.h"

/* Adding more spans than these fails. */
#define TIMES_MOST 500000

struct time_span {
	int64_t from, until;	/* @until is the first second that is not in it */
};

struct times {
	size_t count, room;
	struct time_span *spans;
};

bool times_add(struct times *times, int64_t from, int64_t until);
bool times_add_days(struct times *times, const struct zone *zone, int64_t day, int64_t days);
void times_sort(struct times *times);
const struct time_span *times_find(const struct times *times, int64_t when);
void times_free(struct times *times);

#endif
