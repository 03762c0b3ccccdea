// SPDX-License-Identifier: GPL-2.0
/*
 * How long something took.
 */
#include "base/histogram.h"

/* Seconds: from some ticks of a timer to a server that did not run for an hour */
const double histogram_bounds[HISTOGRAM_BUCKETS] = {
	0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5, 10, 60, 600,
	3600,
};

void histogram_add(struct histogram *histogram, int64_t ns)
{
	double seconds = ns > 0 ? ns / 1e9 : 0;
	int i;

	for (i = 0; i < HISTOGRAM_BUCKETS && seconds > histogram_bounds[i]; i++)
		;
	histogram->counts[i]++;
	histogram->seconds += seconds;
}
