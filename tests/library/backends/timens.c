// SPDX-License-Identifier: GPL-2.0
/*
 * The clock of a wheel of another time namespace among threads: a thread that looks while another
 * one asks what time it is there gets that, too.
 */

#include "device.h"

#include <errno.h>
#include <pthread.h>

#include "../../../userlib/src/timens.h"

#define THREADS 3
#define ROUNDS 200
#define LOOKS 20
#define AWAY (1000 * (__s64)SEC)

static struct timens timens;
static pthread_barrier_t begin;
static bool inside;
static __s64 looked, meanwhile;

static int64_t time_there(void *wheel)
{
	(void)wheel;
	return timens_here(CLOCK_MONOTONIC) + AWAY;
}

/* Another thread looks before the first one has its answer. */
static int64_t time_at_last(void *wheel)
{
	if (!inside) {
		inside = true;
		meanwhile = timens_time(&timens, looked);
	}
	return time_there(wheel);
}

static void start(int64_t (*ask)(void *wheel))
{
	timens = (struct timens){
		.id = CLOCK_MONOTONIC, .wall = TIMENS_NEW, .wall_end = TIMENS_NEW, .ask = ask,
	};
}

static void test_meanwhile(void)
{
	__s64 before = timens_here(CLOCK_MONOTONIC);

	/* The other one is no later. */
	looked = before;
	start(time_at_last);
	EXPECT_TRUE(timens_time(&timens, before) >= before + AWAY - (__s64)SEC);
	EXPECT_TRUE(meanwhile >= before + AWAY - (__s64)SEC);
}

/* The library does not know at the first look, however often it is asked. */
static int64_t time_later(void *wheel)
{
	return inside ? time_there(wheel) : -EAGAIN;
}

static void test_later(void)
{
	__s64 before = timens_here(CLOCK_MONOTONIC);

	inside = false;
	start(time_later);
	EXPECT_EQ(timens_time(&timens, before), before);
	inside = true;
	before = timens_here(CLOCK_MONOTONIC) + 2 * TIMENS_BLIND;
	EXPECT_TRUE(timens_time(&timens, before) >= before + AWAY - (__s64)SEC);
}

static void *look(void *wrong)
{
	__s64 here;
	int i;

	pthread_barrier_wait(&begin);
	for (i = 0; i < LOOKS; i++) {
		here = timens_here(CLOCK_MONOTONIC);
		if (timens_time(&timens, here) < here + AWAY - (__s64)SEC)
			__atomic_store_n((bool *)wrong, true, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[THREADS];
	bool wrong = false;
	int i, round;

	pthread_barrier_init(&begin, NULL, THREADS);
	for (round = 0; round < ROUNDS && !wrong; round++) {
		start(time_there);
		for (i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, look, &wrong);
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	EXPECT_TRUE(!wrong);
	pthread_barrier_destroy(&begin);
}

int main(void)
{
	tap_start(60);
	RUN(test_meanwhile, "a look while another thread is told the time");
	RUN(test_later, "a wheel that can't say yet what time it is there");
	RUN(test_threads, "threads that look for the first time");
	return tap_end();
}
