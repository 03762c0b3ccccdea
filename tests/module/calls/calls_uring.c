// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel by io_uring, where the kernel has it: operations, and reads that are waited
 * for, or taken back, or left to the end of the ring. By the plain system calls, a
 * ring to each use.
 */
#include "calls.h"

#include <linux/io_uring.h>

enum { READ = 1, CANCEL, SUBMIT };

struct ring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static void *ring_map(const struct ring *r, size_t size, off_t offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, offset);
}

static size_t sq_size(const struct ring *r)
{
	return r->p.sq_off.array + r->p.sq_entries * sizeof(__u32);
}

static size_t cq_size(const struct ring *r)
{
	return r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe);
}

static bool ring_open(struct ring *r)
{
	*r = (struct ring){ 0 };
	r->fd = syscall(SYS_io_uring_setup, 4, &r->p);
	if (r->fd < 0)
		return false;
	r->sq = ring_map(r, sq_size(r), IORING_OFF_SQ_RING);
	r->cq = ring_map(r, cq_size(r), IORING_OFF_CQ_RING);
	r->sqes = ring_map(r, r->p.sq_entries * sizeof(*r->sqes), IORING_OFF_SQES);
	if (r->sq == MAP_FAILED || r->cq == MAP_FAILED || r->sqes == MAP_FAILED)
		tap_bail("mmap of a ring: %s", strerror(errno));
	return true;
}

static void ring_close(struct ring *r)
{
	munmap(r->sq, sq_size(r));
	munmap(r->cq, cq_size(r));
	munmap(r->sqes, r->p.sq_entries * sizeof(*r->sqes));
	close(r->fd);
}

static void ring_submit(struct ring *r, struct io_uring_sqe sqe)
{
	__u32 *tail = (__u32 *)(r->sq + r->p.sq_off.tail);
	__u32 at = *tail & *(__u32 *)(r->sq + r->p.sq_off.ring_mask);
	long ret;

	r->sqes[at] = sqe;
	((__u32 *)(r->sq + r->p.sq_off.array))[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	do {
		ret = syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0);
	} while (ret < 0 && errno == EINTR);
	if (ret != 1)
		broken("io_uring_enter gave %ld, %s", ret, strerror(errno));
}

/* What came of a request: its user data, or 0 when nothing came in so long */
static __u64 ring_next(struct ring *r, int ms, __s32 *res)
{
	__u32 *head = (__u32 *)(r->cq + r->p.cq_off.head);
	__u32 *tail = (__u32 *)(r->cq + r->p.cq_off.tail);
	struct io_uring_cqe *cqe;
	__u64 data;

	if (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head &&
	    !readable(r->fd, ms))
		return 0;
	/* (A poll may end a little before what it waits for can be seen.) */
	if (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
		return 0;
	cqe = (struct io_uring_cqe *)(r->cq + r->p.cq_off.cqes) +
	      (*head & *(__u32 *)(r->cq + r->p.cq_off.ring_mask));
	data = cqe->user_data;
	*res = cqe->res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return data;
}

static struct io_uring_sqe read_into(int fd, void *to, __u32 size)
{
	return (struct io_uring_sqe){
		.opcode = IORING_OP_READ,
		.fd = fd,
		.addr = (unsigned long)to,
		.len = size,
		.off = -1,
		.user_data = READ,
	};
}

/* Read; if nothing comes soon, take the request back, and see which was first */
void uring_read(struct model *m, int fd, __u64 *seed)
{
	static __thread char buf[8 * sizeof(struct twheel_event)];
	__u64 begin = moment(), data, end;
	__s32 res = 0, result = -EINPROGRESS;
	struct ring r;

	if (!ring_open(&r))
		return;
	expect_notice();
	ring_submit(&r, read_into(fd, buf, 1 + below(seed, sizeof(buf))));
	if (ring_next(&r, below(seed, 4), &res) == READ) {
		result = res;
	} else {
		ring_submit(&r, (struct io_uring_sqe){
			.opcode = IORING_OP_ASYNC_CANCEL,
			.fd = -1,
			.addr = READ,
			.user_data = CANCEL,
		});
	}
	end = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;
	while (result == -EINPROGRESS && now(CLOCK_MONOTONIC) < end) {
		data = ring_next(&r, 100, &res);
		if (data == READ)
			result = res;
	}
	ring_close(&r);
	if (result > 0)
		model_read(m, buf, result, begin);
	else if (result != -ECANCELED && result != -EAGAIN && result != -EINTR &&
		 result != -EINVAL)
		broken("a read by io_uring gave %d", result);
}

static struct io_uring_sqe submit_of(int fd, const struct twheel_submit *arg)
{
	struct twheel_uring_submit cmd = {
		.ops = arg->ops,
		.nr = arg->nr,
		.op_size = arg->op_size,
	};
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_URING_CMD,
		.fd = fd,
		.cmd_op = TWHEEL_IOC_SUBMIT,
		.user_data = SUBMIT,
	};

	memcpy(sqe.cmd, &cmd, sizeof(cmd));
	return sqe;
}

/* SUBMIT, and what it gave; false where it can't be had in this way */
bool uring_submit(int fd, const struct twheel_submit *arg, long *ret)
{
	struct ring r;
	__s32 res = 0;

	if (!(wheel_info(fd).features & TWHEEL_FEATURE_URING) || !ring_open(&r))
		return false;
	expect_notice();
	ring_submit(&r, submit_of(fd, arg));
	if (!WAIT_FOR(ring_next(&r, 100, &res) == SUBMIT || halted()))
		broken("a submit by io_uring does not end");
	ring_close(&r);
	*ret = res;
	return true;
}

/* A read into any place, and the ring is closed while it may wait */
void uring_leave(int fd, void *place, __u64 *seed)
{
	struct ring r;
	__s32 res;

	if (!ring_open(&r))
		return;
	expect_notice();
	if (one_in(seed, 2))
		ring_submit(&r, read_into(fd, place, below(seed, 4000)));
	else
		ring_submit(&r, submit_of(fd, &(struct twheel_submit){
			.ops = (unsigned long)place,
			.nr = below(seed, 200),
			.op_size = TWHEEL_OP_SIZE_ID << below(seed, 4),
		}));
	if (one_in(seed, 2))
		ring_next(&r, 1, &res);
	ring_close(&r);
}
