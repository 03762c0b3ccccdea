/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ways to have timers, which bench compares. Each does the same to all of its timers.
 */
#ifndef BENCH_H
#define BENCH_H

#include <linux/types.h>

/**
 * struct bench_way - a way to have timers
 * @name: how it is called
 * @open: makes ready for that many timers
 * @arm: starts all, for an absolute time of CLOCK_MONOTONIC
 * @move: gives all another time, in the given order
 * @cancel: stops all, in the given order
 * @take: takes that many expiries, and waits for them
 * @close: the end
 *
 * Each but @close gives 0, or a negative error.
 */
struct bench_way {
	const char *name;
	int (*open)(unsigned int nr);
	int (*arm)(unsigned int nr, __u64 deadline);
	int (*move)(const unsigned int *order, unsigned int nr, __u64 deadline);
	int (*cancel)(const unsigned int *order, unsigned int nr);
	int (*take)(unsigned int nr);
	void (*close)(void);
};

#define BENCH_WHEELS 4

extern const struct bench_way bench_wheels[BENCH_WHEELS];
extern const struct bench_way bench_timerfd;

unsigned int bench_timerfd_most(unsigned int nr);

#endif /* BENCH_H */
