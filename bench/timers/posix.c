// SPDX-License-Identifier: GPL-2.0
/* POSIX timers with a realtime signal that sigtimedwait(2) takes, for cases.h */
#include "cases.h"

#include <poll.h>
#include <signal.h>

#define NAME "POSIX timers"
#define settime timer_settime
#define gettime timer_gettime

static timer_t timers[TIMERS];
static int watched = -1, left_it;

#include "itimer.h"

static void run(void)
{
	struct timespec soon = { 0, 1000000 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (left_it = 0; !left_it;) {
		if (sigtimedwait(&set, &info, &soon) == SIGRTMIN)
			on_timer(info.si_value.sival_int);
		if (watched >= 0 && poll(&(struct pollfd){ watched, POLLIN, 0 }, 1, 0) > 0)
			on_ready();
	}
}

static void leave(void) { left_it = 1; }
static void watch(int fd) { watched = fd; }

int main(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	sigset_t set;
	int i;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < TIMERS; i++) {
		event.sigev_value.sival_int = i;
		if (timer_create(CLOCK_MONOTONIC, &event, &timers[i]))
			return 1;
	}
	cases();
	return 0;
}
