/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What wheels have counted: from fdinfo, and where it is permitted all of STATS.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdbool.h>
#include <linux/twheel.h>

#include "wheels.h"

/**
 * struct counters - a wheel, and its counters
 * @wheel: its first descriptor
 * @index: of that in its list
 * @full: all of @stats is known, not only what fdinfo has
 * @stats: its counters
 */
struct counters {
	const struct wheel *wheel;
	size_t index;
	bool full;
	struct twheel_stats stats;
};

/**
 * struct counter - a counter of struct twheel_stats
 * @name: as there
 * @offset: where it is there
 * @in_fdinfo: fdinfo has it, too
 * @help: what it counts
 */
struct counter {
	const char *name;
	size_t offset;
	bool in_fdinfo;
	const char *help;
};

/* All that only grow; the last one has no name. */
extern const struct counter counters_of_stats[];

static inline __u64 counter_value(const struct counters *counters,
				  const struct counter *counter)
{
	return *(const __u64 *)((const char *)&counters->stats + counter->offset);
}

struct counters *counters_get(const struct wheels *wheels, size_t *nr);

#endif /* COUNTERS_H */
