// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in io_uring: poll, read and SUBMIT, without a worker thread; SUBMIT by rings of
 * each kind, with what they may be asked besides; and by commands that are so long that
 * others, who have the same ring, would wait for them.
 *
 * also in: kunit matrix small-a
 */
#include "uring.h"

/* ---- poll and read ---- */

static int fd;

/* All threads but this one */
static int workers(void)
{
	struct stat st;

	if (stat("/proc/self/task", &st))
		tap_bail("/proc/self/task: %s", strerror(errno));
	return st.st_nlink - 2 - 1;
}

static struct io_uring_sqe sqe_read(void *buf, __u32 len)
{
	return (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.fd = fd,
		.addr = (unsigned long)buf,
		.len = len,
		.off = -1,
	};
}

static struct io_uring_sqe sqe_poll(__u32 flags)
{
	return (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD,
		.fd = fd,
		.len = flags,
		.poll32_events = POLLIN,
	};
}

/* What completions say that may come in any order, or not for long */
static struct io_uring_sqe as_number(struct io_uring_sqe sqe, __u64 number)
{
	sqe.user_data = number;
	return sqe;
}

static struct io_uring_sqe with_flags(struct io_uring_sqe sqe, __u8 flags)
{
	sqe.flags = flags;
	return sqe;
}

/* What comes of a request, for which it waits */
static int ring_ask(struct io_uring_sqe sqe)
{
	ring_submit(sqe);
	return ring_next().res;
}

/* A request of that number is taken back, or was done before */
static void ring_cancel(__u64 number, int gives)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_ASYNC_CANCEL, .fd = -1, .addr = number };
	struct done a, b;

	ring_submit(sqe);
	a = ring_next();
	b = ring_next();
	EXPECT_EQ(a.user_data + b.user_data, number);
	EXPECT_EQ(a.user_data == number ? a.res : b.res, gives);
}

static void test_poll_multi(void)
{
	struct twheel_event ev;
	int i;

	wheel_replace(&fd, O_NONBLOCK);
	ring_submit(as_number(sqe_poll(IORING_POLL_ADD_MULTI), 3));
	for (i = 0; i < 5; i++) {
		struct done cqe;

		arm(fd, 0, 5 * MSEC, i);
		cqe = ring_next();
		EXPECT_EQ(cqe.res & POLLIN, POLLIN, "res %d", cqe.res);
		EXPECT_EQ(cqe.flags & IORING_CQE_F_MORE, IORING_CQE_F_MORE);
		EXPECT_EQ(read_events(fd, &ev, 1), 1);
	}
	EXPECT_TRUE(!ring_done());
	ring_cancel(3, -ECANCELED);
}

static void test_read_ready(int flags)
{
	struct twheel_event ev[4];

	wheel_replace(&fd, flags);
	arm_past(fd, 10);
	arm_past(fd, 11);
	EXPECT_EQ(ring_ask(sqe_read(ev, sizeof(ev))), 2 * sizeof(ev[0]));
	EXPECT_EQ(ev[0].user_data, 10);
	EXPECT_EQ(ev[1].user_data, 11);
}

static void test_read(void)
{
	struct twheel_event ev[4];
	int i;

	test_read_ready(0);
	test_read_ready(O_NONBLOCK);
	wheel_replace(&fd, 0);
	for (i = 0; i < 10; i++) {
		ring_submit(sqe_read(ev, sizeof(ev)));
		EXPECT_TRUE(!ring_done(), "nothing ready");
		arm(fd, 0, i & 1 ? 5 * MSEC : 0, i);
		EXPECT_EQ(ring_next().res, sizeof(ev[0]));
		EXPECT_EQ(ev[0].user_data, i);
	}
}

/* O_NONBLOCK alone does not keep io_uring from waiting: RWF_NOWAIT does */
static void test_read_bad(void)
{
	struct io_uring_sqe sqe;
	struct twheel_event ev;

	wheel_replace(&fd, O_NONBLOCK);
	sqe = sqe_read(&ev, sizeof(ev));
	sqe.rw_flags = RWF_NOWAIT;
	EXPECT_EQ(ring_ask(sqe), -EAGAIN);
	EXPECT_EQ(ring_ask(sqe_read(&ev, sizeof(ev) - 1)), -EINVAL);
	arm_past(fd, 0);
	EXPECT_EQ(ring_ask(sqe_read((void *)8, sizeof(ev))), -EFAULT);
	EXPECT_EQ(read_events(fd, &ev, 1), 1, "not lost by the fault");
}

static void test_cancel(void)
{
	struct twheel_event ev;

	wheel_replace(&fd, 0);
	ring_submit(as_number(sqe_read(&ev, sizeof(ev)), 20));
	EXPECT_TRUE(!ring_done(), "nothing ready");
	ring_cancel(20, -ECANCELED);
	arm_past(fd, 1);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 1);
}

/* The request holds the wheel until it ends */
static void test_close(void)
{
	struct twheel_event ev;

	wheel_replace(&fd, 0);
	arm(fd, 0, 200 * MSEC, 5);
	ring_submit(sqe_read(&ev, sizeof(ev)));
	close(fd);
	fd = 0;
	EXPECT_EQ(ring_next().res, sizeof(ev));
	EXPECT_EQ(ev.user_data, 5);
}

/* ---- SUBMIT ---- */

static struct io_uring_sqe sqe_submit(const void *ops, __u32 nr, __u32 op_size)
{
	return sqe_command(fd, TWHEEL_IOC_SUBMIT, ops, nr, op_size);
}

/* Several wheels, and several lengths of operations, in one call */
static void test_submit(void)
{
	struct twheel_op a[2], b[3], c[2];
	int other = wheel_open(O_NONBLOCK), i;
	struct twheel_event ev[4];
	__u64 id;

	wheel_replace(&fd, O_NONBLOCK);
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
	ring_queue(sqe_submit(a, 2, 32));
	ring_queue(sqe_command(other, TWHEEL_IOC_SUBMIT, b, 3, 64));
	ring_queue(sqe_command(other, TWHEEL_IOC_SUBMIT, c, 1, 16));
	ring_enter(3);
	EXPECT_EQ(ring_next().res, 2);
	EXPECT_EQ(ring_next().res, 3);
	EXPECT_EQ(ring_next().res, 1);
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

/* No other command is known, and none does anything */
static void test_unknown_commands(void)
{
	static const __u32 commands[] = {
		0, 1, 2, TWHEEL_IOC_INFO, TWHEEL_IOC_SETUP, TWHEEL_IOC_DRAIN,
		TWHEEL_IOC_EVENTFD, TWHEEL_IOC_STATS, TWHEEL_IOC_DOORBELL,
		TWHEEL_IOC_SUBMIT | 1U << 30, TWHEEL_IOC_SUBMIT + 0x100, -1,
	};
	struct twheel_op op;
	size_t i;
	int res;

	wheel_replace(&fd, O_NONBLOCK);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		op = op_arm(0, HOUR, 0);
		res = ring_ask(sqe_command(fd, commands[i], &op, 1, sizeof(op)));
		EXPECT_TRUE(res == -EOPNOTSUPP || res == -ENOTTY, "command %#x gave %d",
			    commands[i], res);
		EXPECT_EQ(op.id, 0);
	}
	EXPECT_EQ(wheel_info(fd).pending, 0);
	EXPECT_EQ(wheel_stats(fd).armed, 0);
}

/* While a ring is locked, who waits for it can't be killed: no read takes too many there. */
static void test_read_long(void)
{
	enum { MOST = 65536, MORE = 10 };
	static struct twheel_event ev[MOST + MORE];
	__u64 counted[2];
	int i;

	wheel_replace(&fd, O_NONBLOCK);
	arm_numbered(fd, TWHEEL_ABS, 1, 0, MOST + MORE);
	EXPECT_EQ(ring_ask(sqe_read(ev, sizeof(ev))), MOST * sizeof(*ev));
	EXPECT_EQ(ring_ask(sqe_read(ev + MOST, MORE * sizeof(*ev))), MORE * sizeof(*ev));
	for (i = 0; i < MOST + MORE; i++)
		EXPECT_EQ(ev[i].user_data, i);

	wheel_replace(&fd, O_NONBLOCK);
	EXPECT_EQ(setup_with(fd, .clock = TWHEEL_CLOCK_MONOTONIC, .flags = TWHEEL_SETUP_COUNT), 0);
	arm_numbered(fd, TWHEEL_ABS, 1, 0, MOST + MORE);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(ring_ask(sqe_read(&counted[i], sizeof(*counted))), sizeof(*counted));
	EXPECT_EQ(counted[0], MOST);
	EXPECT_EQ(counted[1], MORE);
}

/* ---- SUBMIT by rings of each kind, and long ones ---- */

/* Not in the headers of older kernels */
#define CMD_FIXED 0x1
#define CMD_MULTISHOT 0x2

/* Operations that nobody waits for to the end, in memory of which there is one piece */
#define PIECE (2UL << 20)
#define PIECES 2048UL
#define LONG (PIECES * PIECE / TWHEEL_OP_SIZE_ID)

static const struct {
	__u32 flags;
	const char *name;
} kinds[] = {
	{ 0, "as it is" },
	{ IORING_SETUP_SQPOLL, "SQPOLL" },
	{ IORING_SETUP_IOPOLL, "IOPOLL" },
	{ IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL, "IOPOLL and SQPOLL" },
	{ IORING_SETUP_SQE128, "SQE128" },
	{ IORING_SETUP_CQE32, "CQE32" },
	{ IORING_SETUP_COOP_TASKRUN, "COOP_TASKRUN" },
	{ 1U << 12 | 1U << 13, "SINGLE_ISSUER and DEFER_TASKRUN" },
};

/* Gives what comes of it, or something that is no result */
#define NOT_ENDED 12345

static int ask(int fd, void *ops, __u32 nr, __u8 sqe_flags, __u32 cmd_flags)
{
	struct io_uring_sqe sqe = sqe_command(fd, TWHEEL_IOC_SUBMIT, ops, nr,
					      sizeof(struct twheel_op));
	__u32 head = *cq_word(ring.p.cq_off.head);

	sqe.rw_flags = cmd_flags;
	ring_queue(with_flags(sqe, sqe_flags));
	syscall(SYS_io_uring_enter, ring.fd, 1, 0,
		IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL, 0);
	if (!WAIT_FOR(({
		syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
		__atomic_load_n(cq_word(ring.p.cq_off.tail), __ATOMIC_ACQUIRE) != head; })))
		return NOT_ENDED;
	return ring_next().res;
}

/* Where the kernel has it */
static void ask_for(int fd, __u32 nr, __u8 flags, bool iopoll, const char *name)
{
	struct twheel_op *ops = calloc(nr, sizeof(*ops));
	__u32 i, done = 0;
	int res;

	for (i = 0; i < nr; i++)
		ops[i] = op_arm(0, HOUR, i);
	/* Work for this thread, as at the end of an earlier ring, ends a command early. */
	do {
		res = ask(fd, ops + done, nr - done, flags, 0);
		done += res > 0 ? res : 0;
	} while (res > 0 && done < nr);
	if (iopoll && res == -EOPNOTSUPP)
		nr = 0;
	else
		EXPECT_EQ(done, nr, "%s, flags %u: %d", name, flags, res);
	for (i = 0; i < nr; i++)
		EXPECT_TRUE(!ops[i].result && ops[i].id, "%s, operation %u of %u", name, i, nr);
	free(ops);
}

static void test_kinds(void)
{
	static const __u32 nrs[] = { 1, 300, 20000 };
	static const __u8 flags[] = { 0, IOSQE_ASYNC, IOSQE_IO_DRAIN };
	__u32 i, k;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int fd;

		/* Its thread works until some time has passed: tests/harness/uml/boot */
		if ((kinds[i].flags & IORING_SETUP_SQPOLL) && getenv("TIME_STANDS"))
			continue;
		fd = wheel_open(O_NONBLOCK);
		if (!ring_open(kinds[i].flags)) {
			tap_diag("%s: %s", kinds[i].name, strerror(errno));
			continue;
		}
		for (k = 0; k < ARRAY_SIZE(nrs) * ARRAY_SIZE(flags); k++)
			ask_for(fd, nrs[k / ARRAY_SIZE(flags)], flags[k % ARRAY_SIZE(flags)],
				kinds[i].flags & IORING_SETUP_IOPOLL, kinds[i].name);
		close(fd);
		ring_close();
	}
}

/* What they mean is not said for wheels: that each ends is what is asked for. */
static void flags_child(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	int fd = wheel_open(O_NONBLOCK);

	if (!ring_open(0))
		return;
	EXPECT_TRUE(ask(fd, &op, 1, 0, CMD_MULTISHOT) < 0);
	EXPECT_TRUE(ask(fd, &op, 1, IOSQE_BUFFER_SELECT, CMD_MULTISHOT) <= 1);
	EXPECT_TRUE(ask(fd, &op, 1, 0, CMD_FIXED) <= 1);
}

/* (In a process of its own, as it may never end.) */
static void test_flags(void)
{
	pid_t pid = tap_fork(flags_child);
	int status;

	if (!EXPECT_TRUE(WAIT_FOR(waitpid(pid, &status, WNOHANG) == pid), "it does not end"))
		kill(pid, SIGKILL);
	else
		EXPECT_EQ(status, 0);
}

static struct {
	__u32 begun;
} *shared;

static int wheel;
static char *pieces;

#define LONG_ONE 1	/* number of that command */

static void long_child(void)
{
	ring_submit(as_number(sqe_command(wheel, TWHEEL_IOC_SUBMIT, pieces, LONG,
					  TWHEEL_OP_SIZE_ID), LONG_ONE));
	for (;;)
		pause();
}

static void waiting_child(void)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_NOP };

	ring_queue(sqe);
	__atomic_store_n(&shared->begun, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0);
	__atomic_store_n(&shared->begun, 2, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static bool long_done(void)
{
	const struct io_uring_cqe *cqes = (void *)(ring.cq + ring.p.cq_off.cqes);
	__u32 i, tail = __atomic_load_n(cq_word(ring.p.cq_off.tail), __ATOMIC_ACQUIRE);

	for (i = 0; i < tail; i++)
		if (cqes[i].user_data == LONG_ONE)
			return true;
	return false;
}

static void end_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	EXPECT_TRUE(WAIT_FOR(waitpid(pid, &status, WNOHANG) == pid), "it can't be killed");
}

/* Who has the same ring can be killed, and the one whose command it is, too. */
static void test_long(void)
{
	int memfd = memfd_create("ops", 0);
	pid_t first, second;
	struct twheel_op *ops;
	unsigned long i;

	wheel = wheel_open(O_NONBLOCK);
	shared = map_shared(sizeof(*shared));
	pieces = mmap(NULL, PIECES * PIECE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!ring_open(0) || pieces == MAP_FAILED || ftruncate(memfd, PIECE))
		tap_bail("setting up: %s", strerror(errno));
	for (i = 0; i < PIECES; i++)
		if (mmap(pieces + i * PIECE, PIECE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, memfd, 0) == MAP_FAILED)
			tap_bail("mmap: %s", strerror(errno));
	ops = (struct twheel_op *)pieces;
	first = tap_fork(long_child);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&ops->result, __ATOMIC_RELAXED) == -EINVAL));
	second = tap_fork(waiting_child);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&shared->begun, __ATOMIC_SEQ_CST)));
	EXPECT_TRUE(WAIT_FOR(shared->begun == 2 || blocked_in(second, SYS_io_uring_enter)));
	end_child(second);
	EXPECT_TRUE(!long_done(), "it had to wait for the command");
	end_child(first);
	close(wheel);
	ring_close();
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
	RUN(test_poll_multi, "poll, multishot");
	RUN(test_read, "read");
	RUN(test_read_bad, "read with RWF_NOWAIT, and into bad buffers");
	RUN(test_cancel, "a cancelled read takes no event along");
	RUN(test_close, "a wheel closed under a waiting read");
	RUN(test_submit, "SUBMIT to two wheels in one call");
	RUN(test_unknown_commands, "commands that there are not");
	RUN(test_read_long, "read of more than are read at once");
	RUN_CALL(EXPECT_EQ(workers(), 0, "io_uring made a thread for a wheel"),
		 "all that without a worker thread");
	ring_close();
	RUN(test_kinds, "SUBMIT by rings of each kind");
	/* Where nobody is ever too late, the two look the same. */
	if (!getenv("TIME_STANDS"))
		RUN(test_long, "SUBMIT of very many: who has the same ring does not wait for it");
	RUN(test_flags, "SUBMIT with flags that other commands have");
	return tap_end();
}
