// SPDX-License-Identifier: GPL-2.0
/* libev, for cases.h */
#include "cases.h"

#include <ev.h>

static ev_timer timers[TIMERS];
static ev_io poller;

const char *const nevers[] = { "2^64 s", "2^63 s", "INFINITY", NULL };
const int periods = 1;

static void version(void) { printf("libev %d.%d", ev_version_major(), ev_version_minor()); }
static void expired(EV_P_ ev_timer *timer, int what)
{
	(void)loop;
	(void)what;
	on_timer(timer - timers);
}

static void readable(EV_P_ ev_io *io, int what)
{
	(void)loop;
	(void)io;
	(void)what;
	on_ready();
}

static void stop(int i) { ev_timer_stop(EV_DEFAULT_ &timers[i]); }

static int start(int i, double delay, double period)
{
	stop(i);
	ev_timer_init(&timers[i], expired, delay / 1e3, period / 1e3);
	ev_timer_start(EV_DEFAULT_ &timers[i]);
	return 0;
}

static int start_never(int i, int which)
{
	const double values[] = { 0x1p64, 0x1p63, INFINITY };

	return start(i, values[which] * 1e3, 0);
}

static double left(int i) { return ev_timer_remaining(EV_DEFAULT_ &timers[i]) * 1e3; }
static int active(int i) { return ev_is_active(&timers[i]); }
static void run(void) { ev_run(EV_DEFAULT_ 0); }
static void leave(void) { ev_break(EV_DEFAULT_ EVBREAK_ALL); }

static void watch(int fd)
{
	ev_io_stop(EV_DEFAULT_ &poller);
	if (fd < 0)
		return;
	ev_io_init(&poller, readable, fd, EV_READ);
	ev_io_start(EV_DEFAULT_ &poller);
}

int main(void)
{
	cases();
	return 0;
}
