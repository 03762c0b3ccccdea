// SPDX-License-Identifier: GPL-2.0
/*
 * One wheel in several hands: processes that read it, and one that it is passed to.
 * (Threads are in race.c.)
 *
 * also in: matrix sanitize small
 */
#include "device.h"

#define N 20000

struct shared {
	unsigned char seen[N];	/* how often the event of each was read */
	__u32 readers;		/* that saw at least one event */
	__u64 ids[2];
};

static struct shared *shared;
static int fd;

static void fresh(void)
{
	wheel_replace(&fd, O_NONBLOCK);
	memset(shared, 0, sizeof(*shared));
}

static void reading_child(void)
{
	struct twheel_event ev[37];
	struct twheel_info info;
	long got = 0, n, i;

	do {
		n = readable(fd, 100) ? read_events(fd, ev, ARRAY_SIZE(ev)) : 0;
		EXPECT_TRUE(n >= 0 || n == -EAGAIN, "read gave %ld", n);
		for (i = 0; i < n; i++)
			if (EXPECT_TRUE(ev[i].user_data < N, "user data %llu", ev[i].user_data))
				__atomic_add_fetch(&shared->seen[ev[i].user_data], 1,
						   __ATOMIC_RELAXED);
		got += n > 0 ? n : 0;
		info = wheel_info(fd);
	} while (info.pending + info.ready);
	__atomic_add_fetch(&shared->readers, got > 0, __ATOMIC_RELAXED);
}

/* Some are ready, and the rest become so for a while. */
static void test_processes(void)
{
	static struct twheel_op ops[N];
	pid_t pids[3];
	int i;

	fresh();
	for (i = 0; i < N; i++)
		ops[i] = op_arm(0, (i * 7919ULL) % 1000 * MSEC, i);
	submit_all(fd, ops, N);
	for (i = 0; i < 3; i++)
		pids[i] = tap_fork(reading_child);
	for (i = 0; i < 3; i++)
		tap_join(pids[i]);
	EXPECT_EACH_ONCE(shared->seen, N);
	EXPECT_TRUE(shared->readers >= 2, "%u of 3 read anything", shared->readers);
}

static int socks[2];

static void passing_child(void)
{
	int wheel = wheel_open(O_NONBLOCK);

	arm_past(wheel, 1);
	arm(wheel, 0, 100 * MSEC, 2);
	shared->ids[0] = arm(wheel, 0, HOUR, 3);
	send_fd(socks[1], wheel);
}

/* Its opener is gone, and the wheel was in flight for a while */
static void test_passing(void)
{
	struct twheel_event ev[3];
	struct twheel_op op;
	int wheel;

	fresh();
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks))
		tap_bail("socketpair: %s", strerror(errno));
	tap_join(tap_fork(passing_child));
	sleep_ns(150 * MSEC);
	wheel = receive_fd(socks[0]);
	EXPECT_EQ(collect(wheel, ev, 2), 2);
	EXPECT_EQ(ev[0].user_data, 1);
	EXPECT_EQ(ev[1].user_data, 2);
	EXPECT_EQ(query(wheel, shared->ids[0], &op), 0);
	EXPECT_EQ(op.user_data, 3);
	EXPECT_EQ(wheel_info(wheel).pending, 1);
	close(wheel);
	close(socks[0]);
	close(socks[1]);
}

int main(void)
{
	tap_start(60);
	shared = map_shared(sizeof(*shared));
	RUN(test_processes, "three reading processes: each event exactly once");
	RUN(test_passing, "passed to another process");
	return tap_end();
}
