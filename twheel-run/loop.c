// SPDX-License-Identifier: GPL-2.0
/*
 * The loop that calls all else, and timers in it.
 */
#include <time.h>

#include "loop.h"
#include "must.h"

struct event_base *loop;

/** loop_now - a time in ms that nobody sets */
long long loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

struct event *loop_timer(event_callback_fn fn, void *arg)
{
	return must(evtimer_new(loop, fn, arg));
}

/** loop_set - have a timer expire in @ms, and not when it was to before */
void loop_set(struct event *timer, long long ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (event_add(timer, &tv) < 0)
		errx(1, "no timer could be armed");
}
