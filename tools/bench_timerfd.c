// SPDX-License-Identifier: GPL-2.0
/*
 * A timerfd for each timer, and epoll, for bench. See bench.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"
#include "tool.h"

#define BATCH 256
/* Descriptors that there are besides */
#define OTHERS 32

static int epoll = -1;
static int *fds;
static unsigned int made;

/* How many timers this way can have: root may have more than it is allowed now. */
unsigned int bench_timerfd_most(unsigned int nr)
{
	struct rlimit limit, more = { nr + OTHERS, nr + OTHERS };

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= more.rlim_cur)
		return nr;
	if (limit.rlim_max < more.rlim_max && !setrlimit(RLIMIT_NOFILE, &more))
		return nr;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max >= more.rlim_max)
		return nr;
	return limit.rlim_max > OTHERS ? limit.rlim_max - OTHERS : 0;
}

static int fd_open(unsigned int nr)
{
	if (bench_timerfd_most(nr) < nr)
		return -EMFILE;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		return -errno;
	fds = need(calloc(nr, sizeof(*fds)));
	made = 0;
	return 0;
}

static int set(int fd, __u64 deadline)
{
	struct itimerspec spec = {
		.it_value = { .tv_sec = deadline / SEC, .tv_nsec = deadline % SEC },
	};

	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) ? -errno : 0;
}

static int make(unsigned int i)
{
	struct epoll_event event = { .events = EPOLLIN };

	fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fds[i] < 0)
		return -errno;
	made++;
	event.data.fd = fds[i];
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) ? -errno : 0;
}

static int fd_arm(unsigned int nr, __u64 deadline)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < nr; i++) {
		if (i == made)
			ret = make(i);
		if (!ret)
			ret = set(fds[i], deadline);
	}
	return ret;
}

static int fd_move(const unsigned int *order, unsigned int nr, __u64 deadline)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < nr; i++)
		ret = set(fds[order[i]], deadline);
	return ret;
}

static int fd_cancel(const unsigned int *order, unsigned int nr)
{
	return fd_move(order, nr, 0);
}

static int fd_take(unsigned int nr)
{
	struct epoll_event events[BATCH];
	unsigned int taken = 0;
	__u64 count;
	int n;

	while (taken < nr) {
		n = epoll_wait(epoll, events, BATCH, -1);
		if (n < 0)
			return -errno;
		while (n--)
			taken += read(events[n].data.fd, &count, sizeof(count)) > 0;
	}
	return 0;
}

static void fd_close(void)
{
	while (made)
		close(fds[--made]);
	free(fds);
	close(epoll);
}

const struct bench_way bench_timerfd = {
	"timerfd and epoll", fd_open, fd_arm, fd_move, fd_cancel, fd_take, fd_close
};
