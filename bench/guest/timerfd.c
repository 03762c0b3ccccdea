// SPDX-License-Identifier: GPL-2.0
/*
 * timerfd with epoll: a descriptor for each timer, all in one epoll.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int epoll;
static const uint32_t *subject;
static int flags;
static struct itimerspec spec[BATCH];
static struct epoll_event events[BATCH];

static void raise_limit(const char *file, size_t to)
{
	FILE *f = fopen(file, "w");

	if (!f || fprintf(f, "%zu\n", to) < 0 || fclose(f))
		err(1, "%s", file);
}

static void tfd_open(size_t timers, bool deliver)
{
	struct rlimit limit = { timers + 64, timers + 64 };

	(void)deliver;
	raise_limit("/proc/sys/fs/nr_open", 1 << 24);
	raise_limit("/proc/sys/fs/epoll/max_user_watches", 1 << 24);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "setrlimit");
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		err(1, "epoll_create1");
}

static void tfd_close(void)
{
	close(epoll);
}

static void create(size_t first, unsigned int n)
{
	size_t i;

	for (i = first; i < first + n; i++) {
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		struct epoll_event event = {
			.events = EPOLLIN,
			.data.u32 = i,
		};

		if (fd < 0)
			err(1, "timerfd_create");
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			err(1, "epoll_ctl");
		handle[i] = fd;
	}
}

static void destroy(size_t first, unsigned int n)
{
	size_t i;

	for (i = first; i < first + n; i++)
		close(handle[i]);
}

static void prepare(enum operation op, const uint32_t *timer, const uint64_t *time,
		    bool absolute, unsigned int n)
{
	unsigned int i;

	subject = timer;
	flags = absolute ? TFD_TIMER_ABSTIME : 0;
	for (i = 0; i < n; i++) {
		uint64_t t = op == CANCEL ? 0 : time[i];

		spec[i].it_value.tv_sec = t / SECOND;
		spec[i].it_value.tv_nsec = t % SECOND;
	}
}

static void submit(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (timerfd_settime(handle[subject[i]], flags, &spec[i], NULL))
			err(1, "timerfd_settime");
}

/* What it could say is said by its result. */
static void check(unsigned int n)
{
	(void)n;
}

static unsigned int collect(void)
{
	int i, n = epoll_wait(epoll, events, BATCH, 0);

	if (n < 0)
		err(1, "epoll_wait");
	for (i = 0; i < n; i++) {
		uint64_t expiries;

		if (read(handle[events[i].data.u32], &expiries, sizeof(expiries)) !=
		    sizeof(expiries))
			err(1, "read");
	}
	return n;
}

static void check_collected(unsigned int n)
{
	uint64_t when = now();
	unsigned int i;

	for (i = 0; i < n; i++)
		note_expiry(events[i].data.u32, when);
}

int main(int argc, char **argv)
{
	static const struct peer timerfd = {
		.name = "timerfd",
		.batch = 1,
		.whole = 100000,
		.open = tfd_open,
		.create = create,
		.destroy = destroy,
		.prepare = prepare,
		.submit = submit,
		.check = check,
		.collect = collect,
		.check_collected = check_collected,
		.close = tfd_close,
	};

	return bench(&timerfd, argc, argv);
}
