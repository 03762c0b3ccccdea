// SPDX-License-Identifier: GPL-2.0
/*
 * A delay of 3 s on CLOCK_REALTIME while the clock is set an hour ahead, and an hour back: does it
 * still come after 3 s? Sets the clock: for a virtual machine.
 */
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <twheel.h>
#include <unistd.h>

enum { TIMERFD, POSIX, URING, WHEEL, KINDS };

static const char *const names[] = { "timerfd", "POSIX timer", "io_uring", "twheel" };
static struct io_uring ring;
static sigset_t signals;

static void shift(int hours)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += hours * 3600;
	if (clock_settime(CLOCK_REALTIME, &ts))
		perror("clock_settime");
}

static int now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int arm(int kind)
{
	struct itimerspec when = { .it_value.tv_sec = 3 };
	static struct __kernel_timespec soon = { .tv_sec = 3 };
	struct twheel_setup setup = { .size = sizeof(setup), .clock = TWHEEL_CLOCK_REALTIME };
	struct twheel_op op = twheel_op_arm(0, 3000000000, 0, 0);
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct io_uring_sqe *sqe;
	struct twheel *tw;
	timer_t timer;
	int fd;

	switch (kind) {
	case TIMERFD:
		fd = timerfd_create(CLOCK_REALTIME, 0);
		return timerfd_settime(fd, 0, &when, NULL) ? -1 : fd;
	case POSIX:
		if (timer_create(CLOCK_REALTIME, &event, &timer) ||
		    timer_settime(timer, 0, &when, NULL))
			return -1;
		return signalfd(-1, &signals, 0);
	case URING:
		io_uring_queue_init(8, &ring, 0);
		sqe = io_uring_get_sqe(&ring);
		io_uring_prep_timeout(sqe, &soon, 0, IORING_TIMEOUT_REALTIME);
		io_uring_submit(&ring);
		return ring.ring_fd;
	default:
		if (twheel_open(O_NONBLOCK, &tw) || twheel_setup(tw, &setup) || twheel_arm(tw, &op))
			return -1;
		return twheel_fd(tw);
	}
}

int main(void)
{
	int kind, hours, began, took;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	for (kind = 0; kind < KINDS; kind++) {
		printf("%s", names[kind]);
		for (hours = 1; hours >= -1; hours -= 2) {
			struct pollfd wait = { arm(kind), POLLIN, 0 };

			began = now();
			shift(hours);
			poll(&wait, 1, 6000);
			took = now() - began;
			printf("\t%s", took < 1500 ? "at once" : took < 5000 ? "after 3 s" :
			       "not within 6 s");
			shift(-hours);
			if (kind == POSIX)
				sigtimedwait(&signals, NULL, &(struct timespec){ 0 });
		}
		printf("\n");
	}
	return 0;
}
