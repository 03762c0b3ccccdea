// SPDX-License-Identifier: GPL-2.0
/*
 * The server's clock, and its timers.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alarm.h"
#include "base/util.h"

/* A timer is late by half of a tick, on average. */
#define TICK (MILLISECOND / 10)

static struct twheel *wheel;
/* The server's time less CLOCK_BOOTTIME, which never changes while the server runs */
static int64_t offset;
/* How far the database's clock is ahead of CLOCK_BOOTTIME; 0: no database */
static int64_t database;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/** alarm_now - the server's time, in ns since 1970 */
int64_t alarm_now(void)
{
	return clock_ns(CLOCK_BOOTTIME) + offset;
}

/** alarm_wall - the time by the wall clock, or by the database's, in ns since 1970 */
int64_t alarm_wall(void)
{
	int64_t ahead = __atomic_load_n(&database, __ATOMIC_RELAXED);

	return ahead ? clock_ns(CLOCK_BOOTTIME) + ahead : clock_ns(CLOCK_REALTIME);
}

/**
 * alarm_follow - go by another clock than that of this machine
 * @ahead: how far it is ahead of CLOCK_BOOTTIME, in ns; never 0
 */
void alarm_follow(int64_t ahead)
{
	__atomic_store_n(&database, ahead, __ATOMIC_RELAXED);
}

/** alarm_skew - how far the server's time is ahead of the wall clock, in ns */
int64_t alarm_skew(void)
{
	return alarm_now() - alarm_wall();
}

static void alarm_expired(evutil_socket_t fd, short what, void *arg)
{
	int ret;

	ret = twheel_run_once(wheel, 0);
	if (ret < 0 && ret != -EINTR)
		die("timers can't be read: %s", strerror(-ret));
}

/* A number for the machine's boot and the namespace of its clocks; 0: the kernel gives none */
static int64_t this_boot(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned int high = 0, low = 0;
	struct stat space;

	if (file && fscanf(file, "%8x-%4x", &high, &low) != 2)
		high = 0;
	if (file)
		fclose(file);
	if (!high || stat("/proc/self/ns/time", &space) < 0)
		return 0;
	return ((int64_t)high << 16 | low) ^ (int64_t)space.st_ino;
}

/* End the server: TWHEEL_BACKEND may ask for a wheel that can't be had. */
static void no_timers(int ret)
{
	const char *backend = getenv("TWHEEL_BACKEND");

	if (backend && ret == -EINVAL)
		die("TWHEEL_BACKEND=%s: it has to be kernel, bpf or user", backend);
	die("timers can't be had: %s%s", strerror(-ret), backend && !strcmp(backend, "kernel") ?
	    "; TWHEEL_BACKEND=kernel wants those of /dev/twheel, see twheel info" : "");
}

/**
 * alarm_start - open the wheel, and go on with the server's time
 * @base: the loop that calls expired timers
 * @skew: what alarm_skew() was when the server ran last
 * @past: when the server's time began, last time; out: this time
 *
 * Until the machine boots anew, the wall clock is not asked: it may have been set since, or just
 * before the server was killed.
 */
void alarm_start(struct event_base *base, int64_t skew, struct alarm_past *past)
{
	int64_t boot = this_boot();
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_BOOTTIME,
		.tick = TICK,
	};
	int ret;

	if (!boot || boot != past->boot)
		past->offset = alarm_wall() + skew - clock_ns(CLOCK_BOOTTIME);
	past->boot = boot;
	offset = past->offset;
	ret = twheel_open(O_NONBLOCK, &wheel);
	if (ret == 0)
		ret = twheel_setup(wheel, &setup);
	if (ret < 0)
		no_timers(ret);
	event_add(must(event_new(base, twheel_fd(wheel), EV_READ | EV_PERSIST, alarm_expired,
				 NULL)),
		  NULL);
}

void alarm_init(struct twheel_timer *timer,
		void (*fn)(struct twheel *tw, struct twheel_timer *timer,
			   const struct twheel_event *event))
{
	twheel_timer_init(timer, fn, NULL);
}

/**
 * alarm_set - have a timer expire
 * @timer: the timer, armed or not
 * @when: by the server's time; at once if that is over
 *
 * Without memory for it the server ends. Nothing is lost: the jobs are in the store.
 */
void alarm_set(struct twheel_timer *timer, int64_t when)
{
	int64_t at = when - offset;
	int ret = twheel_timer_arm(wheel, timer, TWHEEL_ABS, at > 0 ? at : 1, 0);

	if (ret < 0)
		die("no timer could be armed: %s", strerror(-ret));
}

/** alarm_stop - stop a timer, whether it is armed, not armed, or expired and about to be called */
void alarm_stop(struct twheel_timer *timer)
{
	twheel_timer_cancel(wheel, timer);
}
