// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in io_uring: poll, read and SUBMIT, without a worker thread.
 *
 * also in: kunit matrix small-a
 */
#include "uring.h"

#include <dirent.h>
#include <sys/uio.h>

static int fd;

static int workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	if (!dir)
		tap_bail("/proc/self/task: %s", strerror(errno));
	while ((entry = readdir(dir))) {
		char path[300], comm[32];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		read_text(path, comm, sizeof(comm));
		if (!strncmp(comm, "iou-wrk", 7))
			n++;
	}
	closedir(dir);
	return n;
}

static void fresh(int flags)
{
	if (fd > 0)
		close(fd);
	fd = wheel_open(flags);
}

static struct io_uring_sqe sqe_read(void *buf, __u32 len, __u64 user_data)
{
	return (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.fd = fd,
		.addr = (unsigned long)buf,
		.len = len,
		.off = -1,
		.user_data = user_data,
	};
}

static struct io_uring_sqe sqe_poll(__u32 flags, __u64 user_data)
{
	return (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD,
		.fd = fd,
		.len = flags,
		.poll32_events = POLLIN,
		.user_data = user_data,
	};
}

static struct io_uring_sqe sqe_cancel(__u64 which, __u64 user_data)
{
	return (struct io_uring_sqe){
		.opcode = IORING_OP_ASYNC_CANCEL,
		.fd = -1,
		.addr = which,
		.user_data = user_data,
	};
}

static void expect(__u64 user_data, int res)
{
	struct done cqe = ring_next();

	EXPECT_EQ(cqe.user_data, user_data);
	EXPECT_EQ(cqe.res, res, "request %llu", user_data);
}

static void test_poll(void)
{
	fresh(O_NONBLOCK);
	arm_past(fd, 0);
	ring_submit(sqe_poll(0, 1));
	expect(1, POLLIN);
	fresh(O_NONBLOCK);
	ring_submit(sqe_poll(0, 2));
	EXPECT_TRUE(!ring_done(), "nothing ready");
	arm(fd, 0, 20 * MSEC, 0);
	expect(2, POLLIN);
}

static void test_poll_multi(void)
{
	struct twheel_event ev;
	int i;

	fresh(O_NONBLOCK);
	ring_submit(sqe_poll(IORING_POLL_ADD_MULTI, 3));
	for (i = 0; i < 5; i++) {
		struct done cqe;

		arm(fd, 0, 5 * MSEC, i);
		cqe = ring_next();
		EXPECT_EQ(cqe.res & POLLIN, POLLIN, "res %d", cqe.res);
		EXPECT_EQ(cqe.flags & IORING_CQE_F_MORE, IORING_CQE_F_MORE);
		EXPECT_EQ(read_events(fd, &ev, 1), 1);
	}
	EXPECT_TRUE(!ring_done());
	ring_submit(sqe_cancel(3, 4));
	/* the two may come in any order */
	EXPECT_EQ(ring_next().user_data + ring_next().user_data, 7);
}

static void test_read_ready(int flags)
{
	struct twheel_event ev[4];

	fresh(flags);
	arm_past(fd, 10);
	arm_past(fd, 11);
	ring_submit(sqe_read(ev, sizeof(ev), 5));
	expect(5, 2 * sizeof(ev[0]));
	EXPECT_EQ(ev[0].user_data, 10);
	EXPECT_EQ(ev[1].user_data, 11);
}

static void test_read(void)
{
	struct twheel_event ev[4];
	int i;

	test_read_ready(0);
	test_read_ready(O_NONBLOCK);
	fresh(0);
	for (i = 0; i < 10; i++) {
		ring_submit(sqe_read(ev, sizeof(ev), 6));
		EXPECT_TRUE(!ring_done(), "nothing ready");
		arm(fd, 0, i & 1 ? 5 * MSEC : 0, i);
		expect(6, sizeof(ev[0]));
		EXPECT_EQ(ev[0].user_data, i);
	}
}

/* O_NONBLOCK alone does not keep io_uring from waiting: RWF_NOWAIT does */
static void test_read_bad(void)
{
	struct io_uring_sqe sqe;
	struct twheel_event ev;

	fresh(O_NONBLOCK);
	sqe = sqe_read(&ev, sizeof(ev), 7);
	sqe.rw_flags = RWF_NOWAIT;
	ring_submit(sqe);
	expect(7, -EAGAIN);
	ring_submit(sqe_read(&ev, sizeof(ev) - 1, 8));
	expect(8, -EINVAL);
	arm_past(fd, 0);
	ring_submit(sqe_read((void *)8, sizeof(ev), 9));
	expect(9, -EFAULT);
	EXPECT_EQ(read_events(fd, &ev, 1), 1, "not lost by the fault");
}

/* Each event to one of them, none to both */
static void test_reads(void)
{
	struct twheel_event ev[8];
	int seen[8] = { 0 };
	int i;

	fresh(0);
	for (i = 0; i < 8; i++)
		ring_submit(sqe_read(&ev[i], sizeof(ev[i]), i));
	EXPECT_TRUE(!ring_done(), "nothing ready");
	for (i = 0; i < 8; i++)
		arm(fd, 0, i / 2 * 10 * MSEC, i);
	for (i = 0; i < 8; i++) {
		struct done cqe = ring_next();

		EXPECT_EQ(cqe.res, sizeof(ev[0]));
		seen[ev[cqe.user_data % 8].user_data % 8]++;
	}
	for (i = 0; i < 8; i++)
		EXPECT_EQ(seen[i], 1, "event %d", i);
}

static void test_cancel(void)
{
	struct twheel_event ev;
	struct done a, b;

	fresh(0);
	ring_submit(sqe_read(&ev, sizeof(ev), 20));
	EXPECT_TRUE(!ring_done(), "nothing ready");
	ring_submit(sqe_cancel(20, 21));
	a = ring_next();
	b = ring_next();
	EXPECT_EQ(a.user_data + b.user_data, 41);
	EXPECT_EQ(a.user_data == 20 ? a.res : b.res, -ECANCELED);
	arm_past(fd, 1);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 1);
}

/* The request holds the wheel until it ends */
static void test_close(void)
{
	struct twheel_event ev;

	fresh(0);
	arm(fd, 0, 200 * MSEC, 5);
	ring_submit(sqe_read(&ev, sizeof(ev), 30));
	close(fd);
	fd = 0;
	expect(30, sizeof(ev));
	EXPECT_EQ(ev.user_data, 5);
}

static void test_no_worker(void)
{
	EXPECT_EQ(workers(), 0, "io_uring made a thread for a wheel");
}

/* ---- SUBMIT ---- */

static struct io_uring_sqe sqe_submit(const void *ops, __u32 nr, __u32 op_size,
				      __u64 user_data)
{
	return sqe_command(fd, TWHEEL_IOC_SUBMIT, ops, nr, op_size, user_data);
}

/* Several wheels, and several lengths of operations, in one call */
static void test_submit(void)
{
	struct twheel_op a[2], b[3], c[2];
	int other = wheel_open(O_NONBLOCK), i;
	struct twheel_event ev[4];
	__u64 id;

	fresh(O_NONBLOCK);
	EXPECT_TRUE(wheel_info(fd).features & TWHEEL_FEATURE_URING);
	id = arm(other, 0, HOUR, 1);
	/* two of 32 bytes in the room of one */
	a[0] = op_arm(TWHEEL_ABS, 1, 10);
	a[1] = op_arm(TWHEEL_ABS, 1, 11);
	memcpy((char *)a + 32, &a[1], 32);
	for (i = 0; i < 3; i++) {
		b[i] = op_arm(0, HOUR, 20 + i);
		b[i].interval = HOUR;
	}
	c[0] = op_for(TWHEEL_OP_CANCEL, id);
	ring_queue(sqe_submit(a, 2, 32, 1));
	ring_queue(sqe_command(other, TWHEEL_IOC_SUBMIT, b, 3, 64, 2));
	ring_queue(sqe_command(other, TWHEEL_IOC_SUBMIT, c, 1, 16, 3));
	ring_enter(3);
	expect(1, 2);
	expect(2, 3);
	expect(3, 1);
	EXPECT_EQ(a[0].result, 0);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(b[i].result, 0);
	EXPECT_EQ(c[0].result, 0);
	EXPECT_EQ(c[0].state, TWHEEL_STATE_PENDING);
	EXPECT_EQ(read_events(fd, ev, 4), 2);
	EXPECT_EQ(ev[0].user_data, 10);
	EXPECT_EQ(ev[0].id, a[0].id);
	EXPECT_EQ(ev[1].user_data, 11);
	EXPECT_EQ(wheel_info(other).pending, 3);
	EXPECT_EQ(cancel(other, b[2].id), 0);
	EXPECT_EQ(cancel(other, id), -ENOENT);
	close(other);
}

/* What the ioctl would give, EINTR aside */
static void test_submit_errors(void)
{
	static const __u32 sizes[] = { 0, 1, 15, 17, 24, 48, 63, 65, 128, -1 };
	const size_t size = sizeof(struct twheel_op);
	struct twheel_op ops[4], *edge = (struct twheel_op *)map_edge(1);
	size_t i;

	fresh(O_NONBLOCK);
	for (i = 0; i < 4; i++)
		ops[i] = op_arm(0, HOUR, i);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ring_submit(sqe_submit(ops, 1, sizes[i], i));
		expect(i, -EINVAL);
		ring_submit(sqe_submit(ops, 0, sizes[i], i));
		expect(i, -EINVAL);
	}
	ring_submit(sqe_submit(ops, 0x80000000, size, 20));
	expect(20, -EINVAL);
	ring_submit(sqe_submit(NULL, 0, size, 21));
	expect(21, 0);
	ring_submit(sqe_submit(NULL, 1, size, 22));
	expect(22, -EFAULT);
	ring_submit(sqe_submit((void *)0xffff888000000000, 500, size, 23));
	expect(23, -EFAULT);
	EXPECT_EQ(wheel_info(fd).pending, 0);
	memcpy(edge - 2, ops, 2 * size);
	ring_submit(sqe_submit(edge - 2, 4, size, 24));
	expect(24, 2);
	EXPECT_EQ(wheel_info(fd).pending, 2);
	/* a bad one has its own error, and counts */
	ops[0] = op_for(TWHEEL_OP_CANCEL, edge[-1].id);
	ops[1] = op_for(TWHEEL_OP_CANCEL, 1);
	ops[2] = op_for(99, 0);
	ring_submit(sqe_submit(ops, 3, size, 25));
	expect(25, 3);
	EXPECT_EQ(ops[0].result, 0);
	EXPECT_EQ(ops[1].result, -ENOENT);
	EXPECT_EQ(ops[2].result, -EINVAL);
	EXPECT_EQ(wheel_info(fd).pending, 1);
	munmap((char *)edge - PAGE, 2 * PAGE);
}

/* No other command is known, and none does anything */
static void test_unknown_commands(void)
{
	static const __u32 commands[] = {
		0, 1, 2, TWHEEL_IOC_INFO, TWHEEL_IOC_SETUP, TWHEEL_IOC_DRAIN,
		TWHEEL_IOC_EVENTFD, TWHEEL_IOC_STATS, TWHEEL_IOC_DOORBELL,
		TWHEEL_IOC_SUBMIT | 1U << 30, TWHEEL_IOC_SUBMIT + 0x100, -1,
	};
	struct twheel_op op;
	struct done cqe;
	size_t i;

	fresh(O_NONBLOCK);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		op = op_arm(0, HOUR, 0);
		ring_submit(sqe_command(fd, commands[i], &op, 1, sizeof(op), i));
		cqe = ring_next();
		EXPECT_TRUE(cqe.res == -EOPNOTSUPP || cqe.res == -ENOTTY,
			    "command %#x gave %d", commands[i], cqe.res);
		EXPECT_EQ(op.id, 0);
	}
	EXPECT_EQ(wheel_info(fd).pending, 0);
	EXPECT_EQ(wheel_stats(fd).armed, 0);
}

static void test_submit_many(void)
{
	enum { MANY = 5000 };
	static struct twheel_op ops[MANY];
	int i;

	fresh(O_NONBLOCK);
	for (i = 0; i < MANY; i++)
		ops[i] = op_arm(0, HOUR, i);
	ring_submit(sqe_submit(ops, MANY, sizeof(*ops), 1));
	expect(1, MANY);
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(ops[i].result, 0, "operation %d", i);
		ops[i] = op_for(TWHEEL_OP_CANCEL, ops[i].id);
	}
	EXPECT_EQ(wheel_info(fd).pending, MANY);
	ring_submit(sqe_submit(ops, MANY, sizeof(*ops), 2));
	expect(2, MANY);
	EXPECT_EQ(wheel_info(fd).pending, 0);
}

/* While a ring is locked, who waits for it can't be killed: no read takes too many there. */
static void test_read_long(void)
{
	enum { MOST = 65536, MORE = 10 };
	struct twheel_op *ops = calloc(MOST + MORE, sizeof(*ops));
	static struct twheel_event ev[MOST + MORE];
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = sizeof(*ev),
	};
	__u64 counted[2];
	int mode, i;

	for (mode = 0; mode < 2; mode++) {
		fresh(O_NONBLOCK);
		setup.flags = mode ? TWHEEL_SETUP_COUNT : 0;
		setup.event_size = mode ? 0 : TWHEEL_EVENT_SIZE_FULL;
		EXPECT_EQ(wheel_ioctl(fd, TWHEEL_IOC_SETUP, &setup), 0);
		for (i = 0; i < MOST + MORE; i++)
			ops[i] = op_arm(TWHEEL_ABS, 1, i);
		EXPECT_EQ(submit_sized(fd, ops, MOST + MORE, sizeof(*ops)),
			  MOST + MORE);
		if (mode) {
			for (i = 0; i < 2; i++) {
				ring_submit(sqe_read(&counted[i], sizeof(*counted), 1 + i));
				expect(1 + i, sizeof(*counted));
			}
			EXPECT_EQ(counted[0], MOST);
			EXPECT_EQ(counted[1], MORE);
			continue;
		}
		ring_submit(sqe_read(ev, sizeof(ev), 1));
		expect(1, MOST * sizeof(*ev));
		ring_submit(sqe_read(ev + MOST, MORE * sizeof(*ev), 2));
		expect(2, MORE * sizeof(*ev));
		for (i = 0; i < MOST + MORE; i++)
			EXPECT_EQ(ev[i].user_data, i);
	}
	free(ops);
}

/* In a worker of io_uring's, which is who is made to do it there */
static void test_submit_async(void)
{
	struct twheel_op ops[300];
	struct io_uring_sqe sqe;
	int i;

	fresh(O_NONBLOCK);
	for (i = 0; i < 300; i++)
		ops[i] = op_arm(0, HOUR, i);
	sqe = sqe_submit(ops, 300, sizeof(*ops), 1);
	sqe.flags = IOSQE_ASYNC;
	ring_submit(sqe);
	expect(1, 300);
	sqe = sqe_submit(ops, 3, sizeof(*ops), 2);
	sqe.flags = IOSQE_ASYNC;
	ring_submit(sqe);
	expect(2, 3);
	EXPECT_EQ(wheel_info(fd).pending, 303);
	sqe = sqe_submit((void *)8, 3, sizeof(*ops), 3);
	sqe.flags = IOSQE_ASYNC;
	ring_submit(sqe);
	expect(3, -EFAULT);
}

/* It was done, so what is linked to it is done next */
static void test_submit_linked(void)
{
	struct twheel_op ops[2] = { op_arm(TWHEEL_ABS, 1, 5), op_arm(0, HOUR, 6) };
	struct twheel_event ev[2];
	struct io_uring_sqe sqe;

	fresh(O_NONBLOCK);
	sqe = sqe_submit(ops, 2, sizeof(*ops), 1);
	sqe.flags = IOSQE_IO_LINK;
	ring_queue(sqe);
	ring_queue(sqe_read(ev, sizeof(ev), 2));
	ring_enter(2);
	expect(1, 2);
	expect(2, sizeof(ev[0]));
	EXPECT_EQ(ev[0].user_data, 5);
	/* and is not when it failed */
	sqe = sqe_submit(NULL, 2, sizeof(*ops), 3);
	sqe.flags = IOSQE_IO_LINK;
	ring_queue(sqe);
	ring_queue(sqe_submit(ops, 2, sizeof(*ops), 4));
	ring_enter(2);
	expect(3, -EFAULT);
	expect(4, -ECANCELED);
	EXPECT_EQ(wheel_info(fd).pending, 1);
}

/* ---- no io_uring ---- */

static int why_not;

static void test_none(void)
{
	int wheel = wheel_open(O_NONBLOCK);

	/* one that is only forbidden is there */
	if (why_not != EPERM)
		EXPECT_TRUE(!(wheel_info(wheel).features & TWHEEL_FEATURE_URING));
	close(wheel);
}

static void test_off(void)
{
	char text[64];

	snprintf(text, sizeof(text), "io_uring_setup: %s", strerror(why_not));
	tap_skip(text);
}

int main(void)
{
	tap_start(60);
	if (!ring_open(0)) {
		why_not = errno;
		RUN(test_none, "the module says what there is");
		RUN(test_off, "a wheel in io_uring");
		return tap_end();
	}
	RUN(test_poll, "poll");
	RUN(test_poll_multi, "poll, multishot");
	RUN(test_read, "read");
	RUN(test_read_bad, "read with RWF_NOWAIT, and into bad buffers");
	RUN(test_reads, "eight reads at once get one event each");
	RUN(test_cancel, "a cancelled read takes no event along");
	RUN(test_close, "a wheel closed under a waiting read");
	RUN(test_submit, "SUBMIT to two wheels in one call");
	RUN(test_submit_errors, "SUBMIT: errors, and arrays that end too soon");
	RUN(test_unknown_commands, "commands that there are not");
	RUN(test_submit_many, "SUBMIT of 5,000 operations");
	RUN(test_read_long, "read of more than are read at once");
	RUN(test_submit_linked, "SUBMIT, and what is linked to it");
	RUN(test_no_worker, "all that without a worker thread");
	RUN(test_submit_async, "SUBMIT in a worker thread");
	return tap_end();
}
