// SPDX-License-Identifier: GPL-2.0
/* sd-event, for cases.h */
#include "cases.h"

#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

static sd_event *loop;
static sd_event_source *timers[TIMERS], *poller;
static int left_it;

const char *const nevers[] = { "UINT64_MAX us", "2^63", "LONG_MAX", NULL };
const int periods;

static void version(void)
{
	printf("sd-event %s", SYSTEMD);
}

static int expired(sd_event_source *source, uint64_t us, void *arg)
{
	(void)source;
	(void)us;
	on_timer((sd_event_source **)arg - timers);
	return 0;
}

static int readable(sd_event_source *source, int fd, uint32_t what, void *arg)
{
	(void)source;
	(void)fd;
	(void)what;
	(void)arg;
	on_ready();
	return 0;
}

static void stop(int i)
{
	sd_event_source_set_enabled(timers[i], SD_EVENT_OFF);
	timers[i] = sd_event_source_unref(timers[i]);
}

static int start_us(int i, uint64_t us)
{
	stop(i);
	return sd_event_add_time_relative(loop, &timers[i], CLOCK_MONOTONIC, us, 1, expired,
					  &timers[i]) < 0;
}

static int start(int i, double delay, double period)
{
	(void)period;
	return start_us(i, delay * 1e3);
}

static int start_never(int i, int which)
{
	static const uint64_t values[] = { UINT64_MAX, 1ULL << 63, INT64_MAX };

	return start_us(i, values[which]);
}

static double left(int i)
{
	uint64_t at;

	if (sd_event_source_get_time(timers[i], &at) < 0)
		return NAN;
	return at / 1e3 - now();
}

static int active(int i)
{
	int enabled = 0;

	sd_event_source_get_enabled(timers[i], &enabled);
	return enabled != SD_EVENT_OFF;
}

static void run(void)
{
	for (left_it = 0; !left_it;)
		sd_event_run(loop, UINT64_MAX);
}

static void leave(void) { left_it = 1; }

static void watch(int fd)
{
	poller = sd_event_source_disable_unref(poller);
	if (fd >= 0)
		sd_event_add_io(loop, &poller, fd, EPOLLIN, readable, NULL);
}

int main(void)
{
	if (sd_event_new(&loop) < 0)
		return 1;
	cases();
	return 0;
}
