/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long something took, counted in buckets, as Prometheus has it. Pure.
 */
#ifndef TWHEELD_HISTOGRAM_H
#define TWHEELD_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 17

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS + 1];	/* by bucket; the last is for all above */
	double seconds;				/* the sum */
};

extern const double histogram_bounds[HISTOGRAM_BUCKETS];

void histogram_add(struct histogram *histogram, int64_t ns);

#endif
