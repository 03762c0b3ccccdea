// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel with one timer at a time. See waiter.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "tool.h"
#include "waiter.h"

#define TICK (100 * USEC)
#define KTIME_MAX 0x7fffffffffffffffULL

/* Opens the wheel, or says why there is none. */
int waiter_open(struct twheel **tw)
{
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC, .tick = TICK,
	};
	int ret = twheel_open(O_NONBLOCK, tw);

	if (ret) {
		say("can't open a wheel: %s%s", strerror(-ret),
		    ret == -EINVAL ? "; TWHEEL_BACKEND has to be kernel or user" :
		    "; twheel info says more");
		return ret;
	}
	ret = twheel_setup(*tw, &setup);
	if (ret) {
		say("can't set up a wheel: %s", strerror(-ret));
		twheel_close(*tw);
	}
	return ret;
}

int waiter_arm(struct twheel *tw, __u64 ns)
{
	struct twheel_op op = twheel_op_arm(0, ns < KTIME_MAX ? ns : KTIME_MAX, 0, 0);

	return twheel_arm(tw, &op);
}

bool waiter_expired(struct twheel *tw)
{
	struct twheel_event event;

	return twheel_read(tw, &event, 1) == 1;
}

/*
 * Waits until the wheel is readable, or @fd is, which may be negative. Whether it was @fd.
 */
bool waiter_wait(struct twheel *tw, int fd)
{
	struct pollfd polls[] = {
		{ .fd = twheel_fd(tw), .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	return poll(polls, ARRAY_SIZE(polls), -1) > 0 && polls[1].revents;
}
