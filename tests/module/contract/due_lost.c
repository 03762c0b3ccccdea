// SPDX-License-Identifier: GPL-2.0
/*
 * Who turns a wheel stops, although there is more to do: a read that does not wait, as it does so
 * much at a time; a program that is killed. Whoever else watches it is told nevertheless.
 */
#include "device.h"

#include <sched.h>
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

/* ---- who is killed ---- */

static int shared_ep;

static void waiting_child(void)
{
	struct epoll_event event;

	for (;;)
		epoll_wait(shared_ep, &event, 1, -1);
}

static __u64 time_of(pid_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		tap_bail("clock of %d", pid);
	return now(clock);
}

/* Two processes share an epoll set. That which was told, and has begun to cascade, is killed. */
static void killed(__u32 events)
{
	struct epoll_event event = { events, { .u32 = 0 } };
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	__u64 slot = ((now(CLOCK_MONOTONIC) / USEC + 8 * SEC / USEC) / SLOT + 1) * SLOT;
	__u64 group = (slot + 100000) * USEC, began;
	pid_t pid;

	shared_ep = epoll_create1(EPOLL_CLOEXEC);
	arm_group(fd, group, group);
	EXPECT_EQ(epoll_ctl(shared_ep, EPOLL_CTL_ADD, fd, &event), 0);
	pid = tap_fork(waiting_child);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 10 });
	sleep_ns(100 * MSEC);
	began = time_of(pid);
	while (time_of(pid) < began + 4 * MSEC && now(CLOCK_MONOTONIC) < group)
		sleep_ns(MSEC / 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){});
	EXPECT_EQ(epoll_wait(shared_ep, &event, 1,
			     (group - now(CLOCK_MONOTONIC)) / MSEC + PATIENCE_MS), 1,
		  "who shares the epoll is not told");
	close(fd);
	close(shared_ep);
}

int main(void)
{
	tap_start(200);
	RUN_CALL(edge(false), "edges and reads that do not wait");
	RUN_CALL(edge(true), "edges and a short read");
	RUN_CALL(killed(EPOLLIN), "one of two who share an epoll is killed");
	RUN_CALL(killed(EPOLLIN | EPOLLET), "the same, with edges");
	return tap_end();
}
