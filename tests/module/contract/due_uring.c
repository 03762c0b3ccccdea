// SPDX-License-Identifier: GPL-2.0
/*
 * A program that io_uring notifies turns a wheel with very much to cascade, and is killed: it
 * ends, although there is more to do, and whoever else watches the wheel is woken. By rings of each
 * kind that tells in another way: of them, one with DEFER_TASKRUN looks while it waits.
 *
 * long: a million timers for each kind of ring
 * most seconds: 300
 */
#include "uring.h"

#include <sched.h>
#include <sys/epoll.h>

#define BATCH 1024

/* To cascade this many takes very much longer than to end. A multiple of BATCH */
#define GROUP (1000 * BATCH)

/* A slot of the fourth level, in ticks */
#define SLOT 262144ULL

/* Not in the headers of older kernels */
#define SINGLE_ISSUER (1U << 12)
#define DEFER_TASKRUN (1U << 13)

/* Timers that a program may cascade which is killed meanwhile: some hundred runs */
#define SOME 100000

static int fd;
static __u32 ring_flags, poll_flags;
static bool reads;
static bool *refused;	/* the kernel has no such rings */

/* All in one slot of an upper level, which begins at a time that is given */
static __u64 arm_group(void)
{
	__u64 lead = 4 * SEC, slot, from;
	struct twheel_op ops[BATCH];
	int i, k;

	for (;;) {
		fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
		from = now(CLOCK_MONOTONIC);
		slot = ((from + lead) / USEC / SLOT + 2) * SLOT;
		for (i = 0; i < GROUP; i += BATCH) {
			for (k = 0; k < BATCH; k++)
				ops[k] = op_arm(TWHEEL_ABS, (slot + SLOT / 2) * USEC, i + k);
			submit_all(fd, ops, BATCH);
		}
		/* A slot begins to be cascaded in the slot before. */
		if (now(CLOCK_MONOTONIC) < (slot - SLOT) * USEC)
			return (slot + SLOT / 2) * USEC;
		close(fd);
		lead *= 2;
		if (lead > 200 * SEC)
			tap_bail("nothing can be armed in time");
	}
}

static void waiting_child(void)
{
	struct twheel_event ev;
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_POLL_ADD,
		.fd = fd,
		.len = poll_flags,
		.poll32_events = POLLIN,
	};

	if (reads)
		sqe = (struct io_uring_sqe){
			.opcode = IORING_OP_READ,
			.fd = fd,
			.addr = (unsigned long)&ev,
			.len = sizeof(ev),
			.off = -1,
		};
	*refused = !ring_open(ring_flags);
	if (*refused)
		return;
	ring_submit(sqe);
	for (;;)
		syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static __u64 time_of(pid_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		tap_bail("clock of %d", pid);
	return now(clock);
}

/* Returns false if it went on, or was not killed in time, as this machine does other things. */
static bool kill_one(void)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u32 = 0 } };
	__u64 due = arm_group(), began, cascaded;
	int ep = epoll_create1(EPOLL_CLOEXEC), status;
	bool in_time = true;
	pid_t pid;

	cascaded = module_counter("cascaded");
	pid = tap_fork(waiting_child);
	EXPECT_TRUE(WAIT_FOR(blocked_in(pid, SYS_io_uring_enter) || *refused));
	if (*refused) {
		tap_join(pid);
		tap_skip("no such rings");
		goto out;
	}
	EXPECT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event), 0);
	EXPECT_EQ(epoll_wait(ep, &event, 1, 0), 0, "not yet");
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 10 });
	began = time_of(pid);
	while (time_of(pid) < began + 4 * MSEC && now(CLOCK_MONOTONIC) < due)
		sleep_ns(MSEC / 2);
	in_time = module_counter("cascaded") > cascaded;
	cascaded = module_counter("cascaded");
	kill(pid, SIGKILL);
	if (!EXPECT_TRUE(WAIT_FOR(waitpid(pid, &status, WNOHANG) == pid), "it can't be killed"))
		tap_bail("it looks again and again");
	cascaded = module_counter("cascaded") - cascaded;
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){});
	tap_diag("%s: %llu cascaded by who was killed", tap_name, cascaded);
	in_time &= cascaded < SOME && !wheel_stats(fd).expired;
	while (wheel_stats(fd).expired < GROUP)
		if (!EXPECT_EQ(epoll_wait(ep, &event, 1, PATIENCE_MS), 1, "nobody is told"))
			break;
out:
	close(ep);
	close(fd);
	return in_time;
}

static void kill_waiter(__u32 with_ring, __u32 with_poll, bool with_read)
{
	int tries = 5;

	ring_flags = with_ring;
	poll_flags = with_poll;
	reads = with_read;
	while (!kill_one())
		if (!EXPECT_TRUE(--tries, "it goes on, or is never told in time"))
			break;
}

int main(void)
{
	tap_start(300);
	refused = map_shared(PAGE);
	if (!ring_open(0)) {
		tap_name = "io_uring";
		tap_skip(strerror(errno));
		tap_report();
		return tap_end();
	}
	ring_close();
	RUN_CALL(kill_waiter(0, 0, false), "io_uring that polls");
	RUN_CALL(kill_waiter(0, 0, true), "io_uring that reads");
	RUN_CALL(kill_waiter(IORING_SETUP_COOP_TASKRUN, 0, false), "COOP_TASKRUN");
	RUN_CALL(kill_waiter(SINGLE_ISSUER | DEFER_TASKRUN, 0, false), "DEFER_TASKRUN");
	RUN_CALL(kill_waiter(SINGLE_ISSUER | DEFER_TASKRUN, IORING_POLL_ADD_MULTI, false),
		 "DEFER_TASKRUN, multishot");
	RUN_CALL(kill_waiter(SINGLE_ISSUER | DEFER_TASKRUN, 0, true), "DEFER_TASKRUN that reads");
	return tap_end();
}
