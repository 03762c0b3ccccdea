// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in io_uring: poll and read, without a worker thread. By the plain
 * system calls, so that nothing but the kernel is between.
 */
#include "util.h"

#include <dirent.h>
#include <linux/io_uring.h>
#include <sys/uio.h>

#define ENTRIES 16

struct ring {
	int fd;
	char *sq, *cq;
	struct io_uring_params p;
	struct io_uring_sqe *sqes;
};

/* What a completion says, without the array at its end */
struct done {
	__u64 user_data;
	__s32 res;
	__u32 flags;
};

static struct ring ring;
static int fd;

static void *ring_map(size_t size, off_t offset)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
		       offset);

	if (p == MAP_FAILED)
		tap_bail("mmap of the ring: %s", strerror(errno));
	return p;
}

static void ring_open(void)
{
	struct io_uring_params *p = &ring.p;

	ring.fd = syscall(SYS_io_uring_setup, ENTRIES, p);
	if (ring.fd < 0)
		tap_bail("io_uring_setup: %s", strerror(errno));
	ring.sq = ring_map(p->sq_off.array + p->sq_entries * 4,
			   IORING_OFF_SQ_RING);
	ring.cq = ring_map(p->cq_off.cqes +
			   p->cq_entries * sizeof(struct io_uring_cqe),
			   IORING_OFF_CQ_RING);
	ring.sqes = ring_map(p->sq_entries * sizeof(*ring.sqes),
			     IORING_OFF_SQES);
}

static __u32 *sq_word(__u32 offset)
{
	return (__u32 *)(ring.sq + offset);
}

static __u32 *cq_word(__u32 offset)
{
	return (__u32 *)(ring.cq + offset);
}

static void ring_submit(struct io_uring_sqe sqe)
{
	__u32 tail = *sq_word(ring.p.sq_off.tail);
	__u32 at = tail & *sq_word(ring.p.sq_off.ring_mask);

	ring.sqes[at] = sqe;
	sq_word(ring.p.sq_off.array)[at] = at;
	__atomic_store_n(sq_word(ring.p.sq_off.tail), tail + 1,
			 __ATOMIC_RELEASE);
	CHECK_EQ(syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0), 1);
}

static bool ring_done(void)
{
	return __atomic_load_n(cq_word(ring.p.cq_off.tail), __ATOMIC_ACQUIRE) !=
	       *cq_word(ring.p.cq_off.head);
}

/* The next completion, waiting for it */
static struct done ring_next(void)
{
	struct io_uring_cqe *cqes = (void *)(ring.cq + ring.p.cq_off.cqes);
	struct done done = { .res = -ETIME };
	__u32 head = *cq_word(ring.p.cq_off.head);

	if (!readable(ring.fd, PATIENCE_MS) || !CHECK(ring_done()))
		return done;
	memcpy(&done, &cqes[head & *cq_word(ring.p.cq_off.ring_mask)],
	       sizeof(done));
	__atomic_store_n(cq_word(ring.p.cq_off.head), head + 1,
			 __ATOMIC_RELEASE);
	return done;
}

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

	CHECK_EQ(cqe.user_data, user_data);
	CHECK_EQ(cqe.res, res, "request %llu", user_data);
}

static void test_poll(void)
{
	fresh(O_NONBLOCK);
	arm_past(fd, 0);
	ring_submit(sqe_poll(0, 1));
	expect(1, POLLIN);
	fresh(O_NONBLOCK);
	ring_submit(sqe_poll(0, 2));
	CHECK(!ring_done(), "nothing ready");
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
		CHECK_EQ(cqe.res & POLLIN, POLLIN, "res %d", cqe.res);
		CHECK_EQ(cqe.flags & IORING_CQE_F_MORE, IORING_CQE_F_MORE);
		CHECK_EQ(read_events(fd, &ev, 1), 1);
	}
	CHECK(!ring_done());
	ring_submit(sqe_cancel(3, 4));
	/* the two may come in any order */
	CHECK_EQ(ring_next().user_data + ring_next().user_data, 7);
}

static void test_read_ready(int flags)
{
	struct twheel_event ev[4];

	fresh(flags);
	arm_past(fd, 10);
	arm_past(fd, 11);
	ring_submit(sqe_read(ev, sizeof(ev), 5));
	expect(5, 2 * sizeof(ev[0]));
	CHECK_EQ(ev[0].user_data, 10);
	CHECK_EQ(ev[1].user_data, 11);
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
		CHECK(!ring_done(), "nothing ready");
		arm(fd, 0, i & 1 ? 5 * MSEC : 0, i);
		expect(6, sizeof(ev[0]));
		CHECK_EQ(ev[0].user_data, i);
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
	CHECK_EQ(read_events(fd, &ev, 1), 1, "not lost by the fault");
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
	CHECK(!ring_done(), "nothing ready");
	for (i = 0; i < 8; i++)
		arm(fd, 0, i / 2 * 10 * MSEC, i);
	for (i = 0; i < 8; i++) {
		struct done cqe = ring_next();

		CHECK_EQ(cqe.res, sizeof(ev[0]));
		seen[ev[cqe.user_data % 8].user_data % 8]++;
	}
	for (i = 0; i < 8; i++)
		CHECK_EQ(seen[i], 1, "event %d", i);
}

static void test_cancel(void)
{
	struct twheel_event ev;
	struct done a, b;

	fresh(0);
	ring_submit(sqe_read(&ev, sizeof(ev), 20));
	CHECK(!ring_done(), "nothing ready");
	ring_submit(sqe_cancel(20, 21));
	a = ring_next();
	b = ring_next();
	CHECK_EQ(a.user_data + b.user_data, 41);
	CHECK_EQ(a.user_data == 20 ? a.res : b.res, -ECANCELED);
	arm_past(fd, 1);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 1);
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
	CHECK_EQ(ev.user_data, 5);
}

static void test_no_worker(void)
{
	CHECK_EQ(workers(), 0, "io_uring made a thread for a wheel");
}

int main(void)
{
	tap_start(60);
	ring_open();
	RUN(test_poll, "poll");
	RUN(test_poll_multi, "poll, multishot");
	RUN(test_read, "read");
	RUN(test_read_bad, "read with RWF_NOWAIT, and into bad buffers");
	RUN(test_reads, "eight reads at once get one event each");
	RUN(test_cancel, "a cancelled read takes no event along");
	RUN(test_close, "a wheel closed under a waiting read");
	RUN(test_no_worker, "all that without a worker thread");
	return tap_end();
}
