/* SPDX-License-Identifier: GPL-2.0 */
/*
 * io_uring by the plain system calls, so that nothing but the kernel is between: one
 * ring at a time.
 */
#ifndef URING_H
#define URING_H

#include "device.h"

#include <linux/io_uring.h>

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

/* A ring for each thread that wants one */
static __thread struct ring ring;

static inline void *ring_map(size_t size, off_t offset)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
		       offset);

	if (p == MAP_FAILED)
		tap_bail("mmap of the ring: %s", strerror(errno));
	return p;
}

/* False if there is no io_uring here, or none with these IORING_SETUP_* */
static inline bool ring_open(__u32 flags)
{
	struct io_uring_params *p = &ring.p;

	*p = (struct io_uring_params){ .flags = flags };
	ring.fd = syscall(SYS_io_uring_setup, ENTRIES, p);
	if (ring.fd < 0)
		return false;
	ring.sq = ring_map(p->sq_off.array + p->sq_entries * 4,
			   IORING_OFF_SQ_RING);
	ring.cq = ring_map(p->cq_off.cqes +
			   (p->cq_entries * sizeof(struct io_uring_cqe) <<
			    !!(flags & IORING_SETUP_CQE32)), IORING_OFF_CQ_RING);
	ring.sqes = ring_map(p->sq_entries * sizeof(*ring.sqes) <<
			     !!(flags & IORING_SETUP_SQE128), IORING_OFF_SQES);
	return true;
}

static inline __u32 *sq_word(__u32 offset)
{
	return (__u32 *)(ring.sq + offset);
}

static inline __u32 *cq_word(__u32 offset)
{
	return (__u32 *)(ring.cq + offset);
}

static inline void ring_queue(struct io_uring_sqe sqe)
{
	__u32 tail = *sq_word(ring.p.sq_off.tail);
	__u32 at = tail & *sq_word(ring.p.sq_off.ring_mask);

	ring.sqes[at << !!(ring.p.flags & IORING_SETUP_SQE128)] = sqe;
	sq_word(ring.p.sq_off.array)[at] = at;
	__atomic_store_n(sq_word(ring.p.sq_off.tail), tail + 1,
			 __ATOMIC_RELEASE);
}

static inline void ring_enter(__u32 nr)
{
	long ret;

	do {
		ret = syscall(SYS_io_uring_enter, ring.fd, nr, 0, 0, NULL, 0);
	} while (ret < 0 && errno == EINTR);
	EXPECT_EQ(ret, nr);
}

static inline void ring_submit(struct io_uring_sqe sqe)
{
	ring_queue(sqe);
	ring_enter(1);
}

static inline bool ring_done(void)
{
	return __atomic_load_n(cq_word(ring.p.cq_off.tail), __ATOMIC_ACQUIRE) !=
	       *cq_word(ring.p.cq_off.head);
}

/* The next completion, or -ETIME when nothing came in so long */
static inline struct done ring_next_in(int ms)
{
	struct io_uring_cqe *cqes = (void *)(ring.cq + ring.p.cq_off.cqes);
	struct done done = { .res = -ETIME };
	__u32 head = *cq_word(ring.p.cq_off.head);

	/* (A poll may end a little before what it waits for can be seen.) */
	if (!readable(ring.fd, ms) || !ring_done())
		return done;
	memcpy(&done, &cqes[(head & *cq_word(ring.p.cq_off.ring_mask)) <<
			    !!(ring.p.flags & IORING_SETUP_CQE32)],
	       sizeof(done));
	__atomic_store_n(cq_word(ring.p.cq_off.head), head + 1,
			 __ATOMIC_RELEASE);
	return done;
}

/* The next completion, waiting for it */
static inline struct done ring_next(void)
{
	struct done done = ring_next_in(PATIENCE_MS);

	EXPECT_TRUE(done.res != -ETIME, "no completion");
	return done;
}

static inline void ring_close(void)
{
	struct io_uring_params *p = &ring.p;

	munmap(ring.sq, p->sq_off.array + p->sq_entries * 4);
	munmap(ring.cq, p->cq_off.cqes + (p->cq_entries * sizeof(struct io_uring_cqe) <<
					  !!(p->flags & IORING_SETUP_CQE32)));
	munmap(ring.sqes, p->sq_entries * sizeof(*ring.sqes) <<
			  !!(p->flags & IORING_SETUP_SQE128));
	close(ring.fd);
}

static inline struct io_uring_sqe sqe_command(int wheel, __u32 command, const void *ops,
					      __u32 nr, __u32 op_size)
{
	const struct twheel_uring_submit submit = {
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = op_size,
	};
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_URING_CMD,
		.fd = wheel,
		.cmd_op = command,
	};

	memcpy((char *)&sqe + offsetof(struct io_uring_sqe, cmd), &submit,
	       sizeof(submit));
	return sqe;
}

#endif
