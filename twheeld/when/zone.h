/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zones: how far their clocks are from UTC, and since when. Not for several threads.
 */
#ifndef TWHEELD_ZONE_H
#define TWHEELD_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DAY_SECONDS 86400LL

/* The day, since 1970-01-01, that a clock shows */
static inline int64_t day_of(int64_t clock)
{
	return (clock - (clock < 0 ? DAY_SECONDS - 1 : 0)) / DAY_SECONDS;
}

/* 1970 to 2199 on any clock, and a bit more */
#define ZONE_FIRST (-2 * 86400LL)
#define ZONE_END (7258118400LL + 2 * 86400)

/* A span of time in which the clock is not set */
struct zone_span {
	int64_t start;
	int64_t offset;		/* the clock shows the time plus this */
	int64_t reached;	/* the clock has shown all times below this before */
};

struct zone {
	struct zone *next;
	char *name;
	bool old;		/* not given out any more */
	int64_t digest;		/* of the whole table */
	size_t users, count;
	struct zone_span *spans;
};

/* From a time on, the clock shows the time plus an offset */
struct zone_change {
	int64_t start, offset;
};

bool zone_exists(const char *name);
struct zone *zone_get(const char *name);
struct zone *zone_made(const struct zone_change *changes, size_t count, int64_t before);
void zone_put(struct zone *zone);
void zone_forget(void);
size_t zone_at(const struct zone *zone, int64_t time);
int64_t zone_end(const struct zone *zone, size_t span);
int64_t zone_clock(const struct zone *zone, int64_t time);
int64_t zone_time(const struct zone *zone, int64_t clock);

#endif
