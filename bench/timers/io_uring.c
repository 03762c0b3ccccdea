// SPDX-License-Identifier: GPL-2.0
/* io_uring's timeouts, for cases.h. The result says what was cancelled. */
#include "cases.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <sys/utsname.h>

#ifndef IORING_TIMEOUT_MULTISHOT
#define IORING_TIMEOUT_MULTISHOT 64
#endif

#define REMOVE 1000
#define NONE 2000

static struct io_uring ring;
static struct __kernel_timespec times_of[TIMERS];
static int left_it;

const char *const nevers[] = { "LONG_MAX s", "-1 (UINT64_MAX)", NULL };
const int periods = 1;

static void version(void)
{
	struct utsname name;

	uname(&name);
	printf("io_uring, Linux %.*s", (int)strcspn(name.release, "+-"), name.release);
}

static void submit(struct io_uring_sqe *sqe, unsigned long data)
{
	io_uring_sqe_set_data64(sqe, data);
	io_uring_submit(&ring);
}

static int start_spec(int i, struct __kernel_timespec when, unsigned int flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct io_uring_cqe *cqe;
	unsigned int head;
	int refused = 0;

	times_of[i] = when;
	io_uring_prep_timeout(sqe, &times_of[i], 0, flags);
	submit(sqe, i);
	io_uring_for_each_cqe(&ring, head, cqe)
		refused |= cqe->user_data == (unsigned int)i && cqe->res == -EINVAL;
	return refused;
}

static int start(int i, double delay, double period)
{
	return start_spec(i, (struct __kernel_timespec){ delay / 1e3, fmod(delay, 1e3) * 1e6 },
			  period ? IORING_TIMEOUT_MULTISHOT : 0);
}

static int start_never(int i, int which)
{
	return start_spec(i, (struct __kernel_timespec){ which ? -1 : INT64_MAX, 0 }, 0);
}

static void stop(int i)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_timeout_remove(sqe, i, 0);
	submit(sqe, REMOVE);
}

static double left(int i) { return i < 0 ? 0 : NAN; }
static int active(int i) { return i < 0 ? 0 : -1; }

static void run(void)
{
	for (left_it = 0; !left_it;) {
		struct io_uring_cqe *cqe;
		unsigned long data;
		int result;

		if (io_uring_wait_cqe(&ring, &cqe))
			continue;
		data = cqe->user_data;
		result = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
		if (data < TIMERS && result == -ETIME)
			on_timer(data);
		else if (data == NONE)
			on_ready();
	}
}

static void leave(void) { left_it = 1; }

static void watch(int fd)
{
	struct io_uring_sqe *sqe;

	if (fd < 0)
		return;
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_poll_add(sqe, fd, POLLIN);
	submit(sqe, NONE);
}

int main(void)
{
	if (io_uring_queue_init(1024, &ring, 0))
		return 1;
	cases();
	return 0;
}
