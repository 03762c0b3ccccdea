// SPDX-License-Identifier: GPL-2.0
/*
 * Measures ways to have timers, in turns. See bench_measure.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench_measure.h"
#include "tool.h"

#define HOUR (3600 * SEC)
/* The most that a round may take; no further one is begun after three times that. */
#define ROUND (12 * SEC)
/* A round with this many timers shows how long one with all will take. */
#define SAMPLE 1000

const struct bench_way *bench_way_of(unsigned int i)
{
	return i < BENCH_WHEELS ? &bench_wheels[i] : &bench_timerfd;
}

static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static void sleep_until(__u64 time)
{
	struct timespec ts = { time / SEC, time % SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* Not in the order in which they are in memory, as timers of a server are not */
static unsigned int *shuffled(unsigned int timers)
{
	unsigned int *order = need(calloc(timers, sizeof(*order)));
	unsigned int i, other, swap;
	__u64 seed = 1;

	for (i = 0; i < timers; i++)
		order[i] = i;
	for (i = timers - 1; i; i--) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		other = (seed >> 33) % (i + 1);
		swap = order[i];
		order[i] = order[other];
		order[other] = swap;
	}
	return order;
}

static void keep(__u64 *least, __u64 start)
{
	__u64 took = now() - start;

	if (!*least || took < *least)
		*least = took;
}

/* All expire in one tick, so it is from there to the last one that counts. */
static int expire(const struct bench_way *way, unsigned int timers, __u64 arming,
		  __u64 *least)
{
	__u64 ahead = 2 * arming + 20 * MSEC, due;
	int ret;

	for (;;) {
		due = (now() + ahead) / MSEC * MSEC;
		ret = way->arm(timers, due);
		if (ret || now() < due)
			break;
		/* The round took too long, and some expired meanwhile: once more. */
		ret = way->take(timers);
		if (ret)
			return ret;
		ahead *= 2;
	}
	if (ret)
		return ret;
	sleep_until(due);
	ret = way->take(timers);
	keep(least, due);
	return ret;
}

static int steps(const struct bench_way *way, const unsigned int *order, unsigned int timers,
		 __u64 *least)
{
	__u64 start = now(), arming;
	int ret = way->arm(timers, start + HOUR);

	keep(&least[BENCH_ARM], start);
	arming = now() - start;
	if (ret)
		return ret;
	start = now();
	ret = way->move(order, timers, start + 2 * HOUR);
	keep(&least[BENCH_MOVE], start);
	if (ret)
		return ret;
	start = now();
	ret = way->cancel(order, timers);
	keep(&least[BENCH_CANCEL], start);
	return ret ? ret : expire(way, timers, arming, &least[BENCH_EXPIRE]);
}

static void go_round(struct bench_result *result, unsigned int i, const unsigned int *order)
{
	const struct bench_way *way = bench_way_of(i);

	result->errors[i] = way->open(result->timers);
	if (result->errors[i])
		return;
	result->errors[i] = steps(way, order, result->timers, result->least[i]);
	way->close();
}

/* Ways take turns, so that what else the machine does is shared by them. */
void bench_measure(struct bench_result *result, bool quiet)
{
	unsigned int *order = shuffled(result->timers);
	unsigned int i, round;
	__u64 start = now();

	for (round = 0; round < BENCH_ROUNDS; round++) {
		if (round && now() - start > BENCH_ROUNDS * ROUND)
			break;
		for (i = 0; i < BENCH_WAYS; i++) {
			if (!quiet)
				fprintf(stderr, "\r\033[Kround %u of %d: %s", round + 1,
					BENCH_ROUNDS, bench_way_of(i)->name);
			if (!result->errors[i])
				go_round(result, i, order);
		}
	}
	if (!quiet)
		fputs("\r\033[K", stderr);
	free(order);
}

/* As many timers, or fewer: on a slow machine, or where descriptors are few */
unsigned int bench_fit(unsigned int timers)
{
	struct bench_result sample = { .timers = SAMPLE };
	unsigned int *order = shuffled(SAMPLE), i;
	__u64 took = 0;
	int step;

	timers = bench_timerfd_most(timers) / SAMPLE * SAMPLE;
	for (i = 0; i < BENCH_WAYS; i++) {
		go_round(&sample, i, order);
		for (step = 0; step < BENCH_STEPS; step++)
			took += sample.least[i][step];
	}
	free(order);
	/* Timers are armed twice, and time goes by until they expire. */
	took = 2 * took / SAMPLE;
	if (took * timers > ROUND)
		timers = ROUND / took / SAMPLE * SAMPLE;
	return timers < SAMPLE ? SAMPLE : timers;
}
