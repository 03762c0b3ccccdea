// SPDX-License-Identifier: GPL-2.0
/* libevent, for cases.h */
#include "cases.h"

#include <event2/event.h>

static struct event_base *base;
static struct event *timers[TIMERS], *poller;

const char *const nevers[] = { "LONG_MAX s", "2^63 s", "UINT_MAX s", NULL };
const int periods = 1;

static void version(void) { printf("libevent %s", event_get_version()); }
static void readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	on_ready();
}

static void expired(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	on_timer((struct event **)arg - timers);
}

static int add(int i, struct timeval when, int flags)
{
	event_del(timers[i]);
	event_assign(timers[i], base, -1, flags, expired, &timers[i]);
	return event_add(timers[i], &when);
}

static int start(int i, double delay, double period)
{
	struct timeval when = { delay / 1000, fmod(delay, 1000) * 1000 };

	return add(i, when, period ? EV_PERSIST : 0);
}

static int start_never(int i, int which)
{
	static const time_t values[] = { INT64_MAX, INT64_MIN, 4294967295 };

	return add(i, (struct timeval){ values[which], 0 }, 0);
}

static void stop(int i) { event_del(timers[i]); }

static double left(int i)
{
	struct timeval at, here;

	if (!event_pending(timers[i], EV_TIMEOUT, &at))
		return NAN;
	gettimeofday(&here, NULL);
	return (at.tv_sec - here.tv_sec) * 1e3 + (at.tv_usec - here.tv_usec) / 1e3;
}

static int active(int i) { return event_pending(timers[i], EV_TIMEOUT, NULL); }
static void run(void) { event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY); }
static void leave(void) { event_base_loopbreak(base); }

static void watch(int fd)
{
	if (fd < 0) {
		event_del(poller);
		return;
	}
	event_assign(poller, base, fd, EV_READ | EV_PERSIST, readable, NULL);
	event_add(poller, NULL);
}

int main(void)
{
	int i;

	base = event_base_new();
	for (i = 0; i < TIMERS; i++)
		timers[i] = evtimer_new(base, expired, &timers[i]);
	poller = evtimer_new(base, expired, NULL);
	cases();
	return 0;
}
