// SPDX-License-Identifier: GPL-2.0
/*
 * A read that does not wait stops, although there is more to do than it does at a time: who watches
 * for edges is told nevertheless.
 */
#include "device.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#define GROUP 200000

/* A slot of the fourth level, in ticks */
#define SLOT 262144ULL

static long read_nowait(int fd)
{
	struct twheel_event ev[64];
	struct iovec iov = { ev, sizeof(ev) };

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
}

/* All in one slot of an upper level, in which they are moved to later. */
static void arm_group(int fd, __u64 at, __u64 later)
{
	static struct twheel_op ops[GROUP];
	int i;

	for (i = 0; i < GROUP; i++)
		ops[i] = op_arm(TWHEEL_ABS, at, i);
	submit_all(fd, ops, GROUP);
	for (i = 0; i < GROUP; i++)
		ops[i] = op_modify(ops[i].id, TWHEEL_ABS, later, i);
	submit_all(fd, ops, GROUP);
}

static void edge(bool short_read)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u32 = 0 } };
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), ep = epoll_create1(EPOLL_CLOEXEC);
	__u64 slot = ((now(CLOCK_MONOTONIC) / USEC + 8 * SEC / USEC) / SLOT + 1) * SLOT;
	__u64 group = (slot + 100000) * USEC, end = group + 12 * SEC;

	arm_group(fd, group, end);
	arm(fd, TWHEEL_ABS, (slot - 5000) * USEC, GROUP);
	EXPECT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event), 0);
	EXPECT_EQ(epoll_wait(ep, &event, 1, 0), 0, "not yet");
	sleep_ns((slot + 300000) * USEC - now(CLOCK_MONOTONIC));
	/* One run makes the single timer ready. */
	wheel_info(fd);
	EXPECT_EQ(epoll_wait(ep, &event, 1, PATIENCE_MS), 1, "the single one");
	/* One that gives less than there is room for says that it was all. */
	while (read_nowait(fd) > 0 && !short_read)
		;
	EXPECT_EQ(epoll_wait(ep, &event, 1, (end - now(CLOCK_MONOTONIC)) / MSEC + PATIENCE_MS), 1,
		  "the group is due, and nobody is told");
	close(fd);
	close(ep);
}

int main(void)
{
	tap_start(200);
	RUN_CALL(edge(false), "edges and reads that do not wait");
	RUN_CALL(edge(true), "edges and a short read");
	return tap_end();
}
