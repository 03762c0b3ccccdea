// SPDX-License-Identifier: GPL-2.0
/*
 * uv PEER ns|instructions TIMERS: what timers cost in a loop of libuv, each operation on all
 * of them, as lines of JSON. Built over libuv's own timers (-DNATIVE), and over ours. In a
 * machine in which an instruction takes 1 ns, the second word says so.
 *
 * Of expiry it is the program's time, with the kernel's on its behalf: what the kernel does
 * while the program sleeps is not in it.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api.h"
#include "../random.h"

static any_timer_t *timers;
static unsigned int *order;
static unsigned int nr, expired;
static const char *peer, *metric;

static unsigned long long cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void print(const char *operation, const char *of, double value)
{
	printf("{\"peer\":\"%s\",\"operation\":\"%s\",\"timers\":%u,", peer, operation, nr);
	printf("\"metric\":\"%s\",\"value\":%.1f}\n", of, value);
}

static void line(const char *operation, unsigned long long start, unsigned int ops)
{
	print(operation, metric, (double)(cpu_ns() - start) / ops);
}

static void fired(any_timer_t *timer)
{
	(void)timer;
	expired++;
}

/* The loop goes round once, as a program's does between its operations */
static void turn(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
}

/* All to somewhere in @range ms from @from on, in a random order */
static void start_all(const char *operation, unsigned int from, unsigned int range)
{
	unsigned int *delay = malloc(nr * sizeof(*delay)), i;
	unsigned long long start;

	if (!delay)
		err(1, "malloc");
	for (i = 0; i < nr; i++)
		delay[i] = from + rnd(range);
	shuffle(order, nr);
	turn();
	start = cpu_ns();
	for (i = 0; i < nr; i++)
		timer_start(&timers[order[i]], fired, delay[i], 0);
	turn();
	line(operation, start, nr);
	free(delay);
}

static void stop_all(void)
{
	unsigned long long start;
	unsigned int i;

	shuffle(order, nr);
	start = cpu_ns();
	for (i = 0; i < nr; i++)
		timer_stop(&timers[order[i]]);
	turn();
	line("stop", start, nr);
}

/* A connection's timeout: pushed ahead 20 times, most of them by all in turn */
static void push_all(void)
{
	unsigned long long start;
	unsigned int i, times;

	for (i = 0; i < nr; i++)
		timer_start(&timers[i], fired, 60000, 60000);
	turn();
	shuffle(order, nr);
	start = cpu_ns();
	for (times = 0; times < 20; times++) {
		for (i = 0; i < nr; i++)
			timer_again(&timers[order[i]]);
		turn();
	}
	line("push", start, 20 * nr);
	for (i = 0; i < nr; i++)
		timer_stop(&timers[i]);
}

static void expire_all(void)
{
	unsigned long long start;
	unsigned int i;

	/* All in the wheel before the first is due */
	uv_update_time(&loop);
	for (i = 0; i < nr; i++)
		timer_start(&timers[i], fired, 2000 + rnd(1000), 0);
	start = cpu_ns();
	uv_run(&loop, UV_RUN_DEFAULT);
	line("expire", start, nr);
	if (expired != nr)
		errx(1, "%u of %u expired", expired, nr);
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc != 4)
		errx(2, "usage: %s PEER ns|instructions TIMERS", argv[0]);
	peer = argv[1];
	metric = argv[2];
	nr = strtoul(argv[3], NULL, 0);
	timers = calloc(nr, sizeof(*timers));
	order = malloc(nr * sizeof(*order));
	if (!timers || !order || open_loop())
		errx(1, "no memory, or no wheel");
	for (i = 0; i < nr; i++) {
		order[i] = i;
		timer_init(&timers[i]);
	}
	start_all("start", 600000, 60000);
	start_all("start_later", 700000, 60000);
	start_all("start_earlier", 500000, 60000);
	stop_all();
	start_all("start_stopped", 550000, 60000);
	push_all();
	expire_all();
	print("timer", "bytes", sizeof(*timers));
	for (i = 0; i < nr; i++)
		timer_close(&timers[i], NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	return close_loop() != 0;
}
