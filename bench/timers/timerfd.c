// SPDX-License-Identifier: GPL-2.0
/* timerfd and epoll, for cases.h */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#define NAME "timerfd"
#define settime timerfd_settime
#define gettime timerfd_gettime

static int epoll, timers[TIMERS], left_it;

#include "itimer.h"

static void run(void)
{
	struct epoll_event event;
	uint64_t expiries;

	for (left_it = 0; !left_it;) {
		if (epoll_wait(epoll, &event, 1, -1) != 1)
			continue;
		if (event.data.u32 == TIMERS)
			on_ready();
		else if (read(timers[event.data.u32], &expiries, sizeof(expiries)) > 0)
			on_timer(event.data.u32);
	}
}

static void leave(void) { left_it = 1; }

static void watch(int fd)
{
	static struct epoll_event event = { .events = EPOLLIN, .data.u32 = TIMERS };

	epoll_ctl(epoll, fd < 0 ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, ready[0], &event);
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	epoll = epoll_create1(0);
	for (event.data.u32 = 0; event.data.u32 < TIMERS; event.data.u32++) {
		timers[event.data.u32] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		epoll_ctl(epoll, EPOLL_CTL_ADD, timers[event.data.u32], &event);
	}
	cases();
	return 0;
}
