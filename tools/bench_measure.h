/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How bench measures: the steps that each way goes through, and the least time of each.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>

#include "bench.h"

#define BENCH_WAYS (BENCH_WHEELS + 1)
#define BENCH_ROUNDS 3

enum { BENCH_ARM, BENCH_MOVE, BENCH_CANCEL, BENCH_EXPIRE, BENCH_STEPS };

/**
 * struct bench_result - what came of it
 * @timers: number of timers
 * @least: least time of each way and step, for all timers, in ns
 * @errors: why a way has no times, a negative error, or 0
 */
struct bench_result {
	unsigned int timers;
	__u64 least[BENCH_WAYS][BENCH_STEPS];
	int errors[BENCH_WAYS];
};

const struct bench_way *bench_way_of(unsigned int i);
unsigned int bench_fit(unsigned int timers);
void bench_measure(struct bench_result *result, bool quiet);

#endif /* BENCH_MEASURE_H */
