/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs of this folder share: results as lines of JSON, goals, and timers
 * by the thousand. For a guest in which one instruction takes 1 ns (scripts/vm -i),
 * unless a program says otherwise.
 */
#ifndef GUARANTEES_H
#define GUARANTEES_H

#include <stdarg.h>

#include "../../tests/harness/shared.h"
#include "../random.h"

#define BATCH 256
#define TICK (4 * MSEC)	/* a jiffy of the kernels that this runs on */

static bool promise_broken;

/* The clock that times are of; all wheels are of its kind. */
static clockid_t clock_id = CLOCK_MONOTONIC;

static inline void __attribute__((format(printf, 1, 2)))
say(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

#define broken(...) (promise_broken = true, say("PROMISE BROKEN: " __VA_ARGS__))

static inline void result(const char *operation, __u64 timers,
			  const char *metric, double value)
{
	printf("{\"peer\":\"twheel\",\"operation\":\"%s\",\"timers\":%llu,", operation, timers);
	printf("\"metric\":\"%s\",\"value\":%.12g}\n", metric, value);
	fflush(stdout);
}

/* A result that shall not be more than @goal. Twice as much breaks a promise. */
static inline void result_goal(const char *operation, __u64 timers,
			       const char *metric, double value, double goal)
{
	result(operation, timers, metric, value);
	if (value > 2 * goal)
		broken("%s, %llu timers: %s is %.12g, the goal is %.12g",
		       operation, timers, metric, value, goal);
	else if (value > goal)
		say("GOAL MISSED: %s, %llu timers: %s is %.12g, the goal is %.12g",
		    operation, timers, metric, value, goal);
}

static inline void sleep_until(__u64 ns)
{
	struct timespec ts = { ns / SEC, ns % SEC };

	while (clock_nanosleep(clock_id, TIMER_ABSTIME, &ts, NULL))
		;
}

/* Memory that is all there from the start. */
static inline void *allocate(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("no memory for %zu bytes", size);
	return p;
}

/* For counters that begin again: that of the longest run is the largest ever. */
static inline void reload_module(void)
{
	if (system("modprobe -r twheel && modprobe twheel"))
		tap_bail("can't reload the module");
}

static inline int wheel_with(__u64 tick, __u32 shared)
{
	int wheel = wheel_open(O_NONBLOCK);
	long ret = setup_with(wheel, .clock = wheel_clock(clock_id), .tick = tick,
			      .shared = shared, .flags = shared ? TWHEEL_SETUP_SHARED : 0);

	if (ret)
		tap_bail("SETUP: %s", strerror(-ret));
	return wheel;
}

/* Arm a timer for each of the deadlines; its user data is the place there. */
static inline void arm_all(int wheel, const __u64 *deadlines, __u64 *ids,
			   size_t n)
{
	struct twheel_op ops[BATCH];
	size_t done, i, nr;

	for (done = 0; done < n; done += nr) {
		nr = n - done < BATCH ? n - done : BATCH;
		for (i = 0; i < nr; i++)
			ops[i] = op_arm(TWHEEL_ABS, deadlines[done + i], done + i);
		submit_all(wheel, ops, nr);
		for (i = 0; ids && i < nr; i++)
			ids[done + i] = ops[i].id;
	}
}

#endif
