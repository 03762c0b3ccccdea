// SPDX-License-Identifier: GPL-2.0
/*
 * Many wheels of one program that waits for all of them: at a load of 15 % none of them is late
 * for long; or all are due at the same moment.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 */
#include "cgroup.h"

#include <sys/epoll.h>

#define ALICE 1000
#define WHEELS 4000

static int wheels[WHEELS];

static void open_wheels(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		wheels[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, 0);
}

static void close_wheels(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		close(wheels[i]);
}

/* ---- a thousand timers in each of a thousand, at any time ---- */

#define BUSY 1000
#define TIMERS 1000
#define SPREAD (23 * SEC)
#define LATEST (2 * MSEC)

/*
 * Where a timer is two slots of level 2 away or more, it is in such a slot, which its wheel
 * preloads: so much of a slot is over when the timers are armed that there are some.
 * (When all wheels began at the same tick, they were 114 ms late.)
 */
#define TICK (4 * MSEC)
#define SLOT (4096 * TICK)
#define SOME_TO_PRELOAD (3600 * TICK)

static void arm_spread(__u64 from)
{
	static struct twheel_op ops[TIMERS];
	__u64 seed = 7;
	int i, k;

	for (i = 0; i < BUSY; i++) {
		for (k = 0; k < TIMERS; k++)
			ops[k] = op_arm(TWHEEL_ABS, from + random_next(&seed) % SPREAD, k);
		submit_all(wheels[i], ops, TIMERS);
	}
}

static __u64 idle_time(void)
{
	char text[64];
	double idle;

	read_text("/proc/uptime", text, sizeof(text));
	if (sscanf(text, "%*f %lf", &idle) != 1)
		tap_bail("/proc/uptime: %s", text);
	return idle * SEC;
}

#define EVENTS 64

static int watch_wheels(int nr)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), i;

	for (i = 0; i < nr; i++) {
		struct epoll_event event = { EPOLLIN, { .u32 = i } };

		if (epoll_ctl(ep, EPOLL_CTL_ADD, wheels[i], &event))
			tap_bail("epoll_ctl: %s", strerror(errno));
	}
	return ep;
}

/* Read what there is until @end. */
static void serve(int ep, __u64 end)
{
	struct twheel_event read_to[EVENTS];
	struct epoll_event events[EVENTS];
	__u64 at;
	int i, n;

	while ((at = now(CLOCK_MONOTONIC)) < end) {
		n = epoll_wait(ep, events, EVENTS, (end - at) / MSEC + 1);
		for (i = 0; i < n; i++)
			read_events(wheels[events[i].data.u32], read_to, EVENTS);
	}
}

/* The part of the time that the processor has something to do */
static double load_from(int ep, __u64 start)
{
	__u64 idle, time;

	serve(ep, start);
	start = now(CLOCK_MONOTONIC);
	idle = idle_time();
	serve(ep, start + SPREAD);
	time = now(CLOCK_MONOTONIC) - start;
	return 1 - (double)(idle_time() - idle) / time;
}

static void check_wheels(int nr, __u64 timers, double load, __u64 most)
{
	__u64 expired = 0, latest = 0;
	int i;

	for (i = 0; i < nr; i++) {
		struct twheel_stats stats = wheel_stats(wheels[i]);

		expired += stats.expired;
		if (stats.max_lateness > latest)
			latest = stats.max_lateness;
	}
	tap_diag("%s: load %.1f %%, latest %llu us", tap_name, 100 * load,
		 latest / USEC);
	EXPECT_EQ(expired, timers);
	EXPECT_TRUE(latest <= most, "%llu us", latest / USEC);
}

static void preload_child(void)
{
	__u64 time;
	__u64 from;
	double load;
	int ep;

	become(ALICE);
	open_wheels(BUSY);
	ep = watch_wheels(BUSY);
	EXPECT_EQ(wheel_info(wheels[0]).tick, TICK);
	time = now(CLOCK_MONOTONIC);
	sleep_ns((time / SLOT + 1) * SLOT + SOME_TO_PRELOAD - time);
	from = now(CLOCK_MONOTONIC) + 2 * SEC;
	arm_spread(from);
	load = load_from(ep, from);
	serve(ep, from + SPREAD + 100 * MSEC);
	check_wheels(BUSY, BUSY * TIMERS, load, LATEST);
	close_wheels(BUSY);
	close(ep);
}

/* ---- one timer in each of very many, all due together ---- */

/* All together want so much time, and have the whole processor. */
#define TOGETHER (40 * MSEC)

static __u64 wait_for_all(int ep, __u64 due)
{
	struct epoll_event events[EVENTS];
	struct twheel_event event;
	int left = WHEELS, i, n;

	while (left) {
		n = epoll_wait(ep, events, EVENTS, PATIENCE_MS);
		if (!EXPECT_TRUE(n > 0, "%d are not ready", left))
			break;
		for (i = 0; i < n; i++)
			left -= read_events(wheels[events[i].data.u32], &event, 1) == 1;
	}
	return now(CLOCK_MONOTONIC) - due;
}

static void together_child(void)
{
	int ep, i;
	__u64 due = now(CLOCK_MONOTONIC) + 2 * SEC, took;

	become(ALICE);
	open_wheels(WHEELS);
	ep = watch_wheels(WHEELS);
	for (i = 0; i < WHEELS; i++)
		arm(wheels[i], TWHEEL_ABS, due, i);
	took = wait_for_all(ep, due);
	tap_diag("%s: the last is read after %llu us", tap_name, took / USEC);
	EXPECT_TRUE(took <= TOGETHER, "%llu us", took / USEC);
	close_wheels(WHEELS);
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	allow_descriptors(WHEELS);
	RUN_CALL(tap_join(tap_fork(preload_child)),
		 "a thousand wheels of a thousand timers, at a load of 15 %, which all preload a slot");
	RUN_CALL(tap_join(tap_fork(together_child)),
		 "thousands of wheels with one timer, due together");
	return tap_end();
}
