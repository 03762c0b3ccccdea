/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Firings: the jobs of a schedule for one or several times.
 */
#ifndef TWHEELD_FIRING_H
#define TWHEELD_FIRING_H

#include "cron/schedule.h"

/* How many runs of a firing were made, skipped, and so on */
struct firing_counts {
	size_t made, skipped, there, waiting;
};

struct op *firing_new(struct schedule *schedule, const int64_t *times, size_t count);
void firing_submit(struct op *op, void (*done)(struct op *op));
struct firing_counts firing_end(struct op *op);

#endif
