// SPDX-License-Identifier: GPL-2.0
/*
 * Who turns a wheel stops, although there is more to do: a read that does not wait, as it does so
 * much at a time; a program that is killed. Whoever else watches it is notified nevertheless.
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

static struct twheel_op ops[GROUP];

static void move_group(int fd, __u64 to)
{
	int i;

	for (i = 0; i < GROUP; i++)
		ops[i] = op_modify(ops[i].id, TWHEEL_ABS, to, i);
	submit_all(fd, ops, GROUP);
}

/**
 * struct group - many timers in one slot of an upper level
 * @slot: when that begins, in ticks
 * @due: when its timers were due at first, well inside it
 * @later: to when they were moved, which leaves them where they are as yet; or @due
 */
struct group {
	__u64 slot, due, later;
};

/*
 * What it takes to arm them says how soon the slot may begin. If that was too soon, as the
 * machine does other things by now, once more.
 */
static struct group arm_group(int fd, bool moved)
{
	__u64 spare = now(CLOCK_MONOTONIC);
	struct group g;
	int i;

	for (i = 0; i < GROUP; i++)
		ops[i] = op_arm(0, HOUR, i);
	submit_all(fd, ops, GROUP);
	spare = SEC / 2 + 4 * (now(CLOCK_MONOTONIC) - spare);
	do {
		g.slot = ((now(CLOCK_MONOTONIC) + spare) / USEC / SLOT + 1) * SLOT;
		g.due = (g.slot + 100000) * USEC;
		g.later = moved ? g.due + spare : g.due;
		move_group(fd, g.due);
		move_group(fd, g.later);
		spare *= 2;
	} while (now(CLOCK_MONOTONIC) > g.slot * USEC - SEC / 4);
	return g;
}

static void edge(bool short_read)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u32 = 0 } };
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), ep = epoll_create1(EPOLL_CLOEXEC);
	struct group g = arm_group(fd, true);

	arm(fd, TWHEEL_ABS, (g.slot - 5000) * USEC, GROUP);
	EXPECT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event), 0);
	EXPECT_EQ(epoll_wait(ep, &event, 1, 0), 0, "not yet");
	sleep_ns((g.slot + 300000) * USEC - now(CLOCK_MONOTONIC));
	/* One run makes the single timer ready. */
	wheel_info(fd);
	EXPECT_EQ(epoll_wait(ep, &event, 1, PATIENCE_MS), 1, "the single one");
	/* One that gives less than there is room for says that it was all. */
	while (read_nowait(fd) > 0 && !short_read)
		;
	EXPECT_EQ(epoll_wait(ep, &event, 1,
			     (g.later - now(CLOCK_MONOTONIC)) / MSEC + PATIENCE_MS), 1,
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

/* Two processes share an epoll set. That which was woken, and has begun to cascade, is killed. */
static void killed(__u32 events)
{
	struct epoll_event event = { events, { .u32 = 0 } };
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	struct group g;
	__u64 began;
	pid_t pid;

	shared_ep = epoll_create1(EPOLL_CLOEXEC);
	g = arm_group(fd, false);
	EXPECT_EQ(epoll_ctl(shared_ep, EPOLL_CTL_ADD, fd, &event), 0);
	pid = tap_fork(waiting_child);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 10 });
	sleep_ns(100 * MSEC);
	began = time_of(pid);
	while (time_of(pid) < began + 4 * MSEC && now(CLOCK_MONOTONIC) < g.due)
		sleep_ns(MSEC / 2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){});
	EXPECT_EQ(epoll_wait(shared_ep, &event, 1,
			     (g.due - now(CLOCK_MONOTONIC)) / MSEC + PATIENCE_MS), 1,
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
