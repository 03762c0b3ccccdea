// SPDX-License-Identifier: GPL-2.0
/*
 * One wheel in several hands: threads, processes, copies of the descriptor,
 * and how it ends with the last of them.
 *
 * also in: both both-threads matrix sanitize small
 */
#include "device.h"

#include <pthread.h>
#include <sys/socket.h>

#define N 20000

struct shared {
	unsigned char seen[N];	/* how often the event of each was read */
	__u32 readers;		/* that saw at least one event */
	__u64 ids[N];
};

static struct shared *shared;
static int fd;

static void fresh(void)
{
	if (fd > 0)
		close(fd);
	fd = wheel_open(O_NONBLOCK);
	memset(shared, 0, sizeof(*shared));
}

/* Some ready, the rest becoming so for a while */
static void arm_many(void)
{
	static struct twheel_op ops[N];
	int i;

	for (i = 0; i < N; i++)
		ops[i] = op_arm(0, (i * 7919ULL) % 1000 * MSEC, i);
	submit_all(fd, ops, N);
	for (i = 0; i < N; i++)
		shared->ids[i] = ops[i].id;
}

static void note(const struct twheel_event *ev)
{
	if (!EXPECT_TRUE(ev->user_data < N, "user data %llu", ev->user_data))
		return;
	__atomic_add_fetch(&shared->seen[ev->user_data], 1, __ATOMIC_RELAXED);
}

static bool all_seen(void)
{
	struct twheel_info info = wheel_info(fd);

	return !info.pending && !info.ready;
}

static void *reader(void *arg)
{
	struct twheel_event ev[37];
	bool any = false;
	long i, n;

	(void)arg;
	while (!all_seen()) {
		if (!readable(fd, 100))
			continue;
		n = read_events(fd, ev, ARRAY_SIZE(ev));
		if (n == -EAGAIN)
			continue;
		if (!EXPECT_TRUE(n > 0, "read gave %ld", n))
			break;
		for (i = 0; i < n; i++)
			note(&ev[i]);
		any = true;
	}
	if (any)
		__atomic_add_fetch(&shared->readers, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void reader_child(void)
{
	reader(NULL);
}

static void each_once(void)
{
	int i;

	for (i = 0; i < N; i++)
		EXPECT_EQ(shared->seen[i], 1, "events of timer %d", i);
}

static void test_threads(void)
{
	pthread_t threads[3];
	int i;

	fresh();
	arm_many();
	for (i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, reader, NULL))
			tap_bail("pthread_create failed");
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	each_once();
	EXPECT_TRUE(shared->readers >= 2, "%u of 3 read anything", shared->readers);
}

static void test_processes(void)
{
	pid_t pids[3];
	int i;

	fresh();
	arm_many();
	for (i = 0; i < 3; i++)
		pids[i] = tap_fork(reader_child);
	for (i = 0; i < 3; i++)
		tap_join(pids[i]);
	each_once();
	EXPECT_TRUE(shared->readers >= 2, "%u of 3 read anything", shared->readers);
}

static void test_dup(void)
{
	struct twheel_event ev[2];
	__u64 id;
	int copy;

	fresh();
	copy = dup(fd);
	id = arm(copy, 0, HOUR, 1);
	EXPECT_EQ(wheel_info(fd).pending, 1);
	EXPECT_EQ(cancel(fd, id), 0);
	EXPECT_EQ(cancel(copy, id), -ENOENT);
	arm_past(fd, 2);
	EXPECT_EQ(read_events(copy, ev, 2), 1);
	EXPECT_EQ(read_events(fd, ev, 2), -EAGAIN);
	arm(fd, 0, 50 * MSEC, 3);
	close(fd);
	fd = copy;
	EXPECT_EQ(readable(fd, PATIENCE_MS), 1, "one close is not the last");
	EXPECT_EQ(read_events(fd, ev, 2), 1);
	EXPECT_EQ(ev[0].user_data, 3);
}

/* open gives a wheel of its own each time */
static void test_open_twice(void)
{
	struct twheel_event ev;
	int other;

	fresh();
	other = wheel_open(O_NONBLOCK);
	arm_past(fd, 1);
	EXPECT_EQ(readable(other, 0), 0);
	EXPECT_EQ(read_events(other, &ev, 1), -EAGAIN);
	EXPECT_EQ(wheel_info(other).ready, 0);
	EXPECT_EQ(wheel_setup(other, TWHEEL_CLOCK_BOOTTIME, 0, 0, 0), 0);
	EXPECT_EQ(wheel_info(fd).clock, TWHEEL_CLOCK_MONOTONIC);
	close(other);
}

static void fork_child(void)
{
	EXPECT_EQ(wheel_info(fd).pending, 1);
	EXPECT_EQ(cancel(fd, shared->ids[0]), 0, "the parent's timer");
	shared->ids[1] = arm(fd, 0, HOUR, 5);
	arm(fd, 0, 20 * MSEC, 6);
}

static void test_fork(void)
{
	struct twheel_event ev;
	struct twheel_op op;

	fresh();
	shared->ids[0] = arm(fd, 0, HOUR, 4);
	tap_join(tap_fork(fork_child));
	EXPECT_EQ(query(fd, shared->ids[0], &op), -ENOENT);
	EXPECT_EQ(query(fd, shared->ids[1], &op), 0, "the child's timer");
	EXPECT_EQ(op.user_data, 5);
	EXPECT_EQ(readable(fd, PATIENCE_MS), 1);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 6);
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
	/* sent, never received: closed with the socket */
	wheel = wheel_open(O_NONBLOCK);
	arm(wheel, 0, 10 * MSEC, 0);
	send_fd(socks[1], wheel);
	close(wheel);
	close(socks[0]);
	close(socks[1]);
}

static void *blocked_reader(void *arg)
{
	struct twheel_event ev;
	pid_t *tid = arg;

	__atomic_store_n(tid, gettid(), __ATOMIC_RELEASE);
	return (void *)read_events(fd, &ev, 1);
}

/* close() in one thread does not end another's read: that holds the wheel */
static void test_close_while_reading(void)
{
	pthread_t thread;
	pid_t tid = 0;
	void *ret;

	fresh();
	if (fcntl(fd, F_SETFL, 0) ||
	    pthread_create(&thread, NULL, blocked_reader, &tid))
		tap_bail("no reader");
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&tid, __ATOMIC_ACQUIRE)));
	EXPECT_TRUE(WAIT_FOR(blocked_in(tid, SYS_read)));
	arm(fd, 0, 200 * MSEC, 9);
	close(fd);
	pthread_join(thread, &ret);
	EXPECT_EQ((long)ret, 1);
	fd = 0;
}

/* Closed with timers in every state, and due at that very moment */
static void test_close(void)
{
	struct twheel_op ops[100];
	int i, round;

	for (round = 0; round < 200; round++) {
		int wheel = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);

		for (i = 0; i < 100; i++) {
			ops[i] = op_arm(0, i * round * USEC, i);
			ops[i].interval = i % 3 ? 0 : MSEC;
		}
		submit_all(wheel, ops, 100);
		close(wheel);
	}
}

static void exit_child(void)
{
	int i;

	for (i = 0; i < 10; i++) {
		int wheel = wheel_open(0);

		arm_past(wheel, 0);
		arm(wheel, 0, MSEC, 0);
		arm(wheel, 0, HOUR, 0);
	}
}

static void killed_child(void)
{
	struct twheel_event ev;
	int wheel = wheel_open(0);

	arm(wheel, 0, HOUR, 0);
	shared->ids[0] = 1;
	read_events(wheel, &ev, 1);
}

static void test_exit(void)
{
	int status;
	pid_t pid;

	fresh();
	tap_join(tap_fork(exit_child));
	pid = tap_fork(killed_child);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&shared->ids[0], __ATOMIC_ACQUIRE)));
	EXPECT_TRUE(WAIT_FOR(blocked_in(pid, SYS_read)));
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFSIGNALED(status), "status %#x", status);
}

int main(void)
{
	tap_start(60);
	shared = map_shared(sizeof(*shared));
	RUN(test_threads, "three reading threads: each event exactly once");
	RUN(test_processes, "three reading processes: each event exactly once");
	RUN(test_dup, "dup");
	RUN(test_open_twice, "two opens, two wheels");
	RUN(test_fork, "fork");
	RUN(test_passing, "passed to another process");
	RUN(test_close_while_reading, "closed while another thread reads");
	RUN(test_close, "closed with timers in every state");
	RUN(test_exit, "a process that exits, and one that is killed");
	return tap_end();
}
