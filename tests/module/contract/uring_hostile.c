// SPDX-License-Identifier: GPL-2.0
/*
 * SUBMIT by rings of io_uring of each kind, with what they may be asked besides; and by
 * commands that are so long that others, who have the same ring, would wait for them.
 *
 * also in: small-a
 */
#include "uring.h"

/* Not in the headers of older kernels */
#define CMD_FIXED 0x1
#define CMD_MULTISHOT 0x2

/* Operations that nobody waits for to the end, in memory of which there is one piece */
#define PIECE (2UL << 20)
#define PIECES 2048UL
#define LONG (PIECES * PIECE / TWHEEL_OP_SIZE_ID)

static void ring_close(void)
{
	close(ring.fd);
	munmap(ring.sq, ring.p.sq_off.array + ring.p.sq_entries * 4);
}

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

/* Gives what comes of it, or something else that nobody expects */
static int ask(int fd, void *ops, __u32 nr, __u32 op_size, __u8 sqe_flags, __u32 cmd_flags)
{
	struct io_uring_sqe sqe = sqe_command(fd, TWHEEL_IOC_SUBMIT, ops, nr, op_size, 7);
	__u32 head = *cq_word(ring.p.cq_off.head);

	sqe.flags = sqe_flags;
	sqe.rw_flags = cmd_flags;
	ring_queue(sqe);
	syscall(SYS_io_uring_enter, ring.fd, 1, 0,
		IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL, 0);
	if (!WAIT_FOR(({
		syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
		__atomic_load_n(cq_word(ring.p.cq_off.tail), __ATOMIC_ACQUIRE) != head; })))
		return 12345;
	return ring_next().res;
}

/* Where the kernel has it */
static void ask_for(int fd, __u32 nr, __u8 flags, bool iopoll, const char *name)
{
	struct twheel_op *ops = calloc(nr, sizeof(*ops));
	__u32 i;
	int res;

	for (i = 0; i < nr; i++)
		ops[i] = op_arm(0, HOUR, i);
	res = ask(fd, ops, nr, sizeof(*ops), flags, 0);
	if (iopoll && res == -EOPNOTSUPP)
		nr = 0;
	else
		EXPECT_EQ(res, nr, "%s, flags %u", name, flags);
	for (i = 0; i < nr; i++)
		EXPECT_TRUE(!ops[i].result && ops[i].id, "%s, operation %u of %u", name, i, nr);
	free(ops);
}

static void test_kinds(void)
{
	static const __u32 nrs[] = { 1, 3, 300, 100000 };
	static const __u8 flags[] = { 0, IOSQE_ASYNC, IOSQE_IO_DRAIN };
	__u32 i, k;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		int fd = wheel_open(O_NONBLOCK);

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
	EXPECT_TRUE(ask(fd, &op, 1, sizeof(op), 0, CMD_MULTISHOT) < 0);
	EXPECT_TRUE(ask(fd, &op, 1, sizeof(op), IOSQE_BUFFER_SELECT, CMD_MULTISHOT) <= 1);
	EXPECT_TRUE(ask(fd, &op, 1, sizeof(op), 0, CMD_FIXED) <= 1);
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

static void long_child(void)
{
	struct io_uring_sqe sqe = sqe_command(wheel, TWHEEL_IOC_SUBMIT, pieces, LONG,
					      TWHEEL_OP_SIZE_ID, 1);

	ring_submit(sqe);
	for (;;)
		pause();
}

static void waiting_child(void)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_NOP, .user_data = 2 };

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
		if (cqes[i].user_data == 1)
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

int main(void)
{
	tap_start(100);
	if (!ring_open(0)) {
		tap_diag("io_uring_setup: %s", strerror(errno));
		printf("1..0 # SKIP there is no io_uring\n");
		return 0;
	}
	ring_close();
	RUN(test_kinds, "SUBMIT by rings of each kind");
	RUN(test_long, "SUBMIT of very many: who has the same ring does not wait for it");
	RUN(test_flags, "SUBMIT with flags that other commands have");
	return tap_end();
}
