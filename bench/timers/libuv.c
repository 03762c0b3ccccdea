// SPDX-License-Identifier: GPL-2.0
/* libuv, for cases.h */
#include "cases.h"

#include <uv.h>

static uv_timer_t timers[TIMERS];
static uv_poll_t poller;

const char *const nevers[] = { "UINT64_MAX ms", "2^63", "LONG_MAX", NULL };
const int periods = 1;

static void version(void) { printf("libuv %s", uv_version_string()); }
static void expired(uv_timer_t *timer) { on_timer(timer - timers); }
static void readable(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
	on_ready();
}

static int start(int i, double delay, double period)
{
	return uv_timer_start(&timers[i], expired, delay, period);
}

static int start_never(int i, int which)
{
	static const uint64_t values[] = { UINT64_MAX, 1ULL << 63, INT64_MAX };

	return uv_timer_start(&timers[i], expired, values[which], 0);
}

static void stop(int i) { uv_timer_stop(&timers[i]); }
static double left(int i) { return uv_timer_get_due_in(&timers[i]); }
static int active(int i) { return uv_is_active((uv_handle_t *)&timers[i]); }
static void run(void) { uv_run(uv_default_loop(), UV_RUN_DEFAULT); }
static void leave(void) { uv_stop(uv_default_loop()); }

static void watch(int fd)
{
	if (fd < 0) {
		uv_poll_stop(&poller);
		return;
	}
	uv_poll_init(uv_default_loop(), &poller, fd);
	uv_poll_start(&poller, UV_READABLE, readable);
}

int main(void)
{
	int i;

	for (i = 0; i < TIMERS; i++)
		uv_timer_init(uv_default_loop(), &timers[i]);
	cases();
	return 0;
}
