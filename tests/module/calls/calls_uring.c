// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel by io_uring, where the kernel has it: operations, and reads that are waited
 * for, or taken back, or left to the end of the ring. A ring to each use.
 */
#include "calls.h"
#include "model_answers.h"
#include "uring.h"

enum { READ = 1, CANCEL, SUBMIT };

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
	struct reading reading = reading_begin(m);
	struct done done;
	__u64 end;

	if (!ring_open(0))
		return;
	expect_notice();
	ring_submit(read_into(fd, buf, 1 + below(seed, sizeof(buf))));
	done = ring_next_in(below(seed, 4));
	if (done.user_data != READ)
		ring_submit((struct io_uring_sqe){
			.opcode = IORING_OP_ASYNC_CANCEL,
			.fd = -1,
			.addr = READ,
			.user_data = CANCEL,
		});
	end = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;
	while (done.user_data != READ && now(CLOCK_MONOTONIC) < end)
		done = ring_next_in(100);
	ring_close();
	if (done.user_data != READ)
		broken("a read by io_uring does not end");
	else if (done.res > 0)
		model_read(m, &reading, buf, done.res);
	else if (done.res != -ECANCELED && done.res != -EAGAIN && done.res != -EINTR &&
		 done.res != -EINVAL)
		broken("a read by io_uring gave %d", done.res);
}

/* SUBMIT, and what it gave; false where it can't be had in this way */
bool uring_submit(int fd, const struct twheel_submit *arg, long *ret)
{
	struct io_uring_sqe sqe = sqe_command(fd, TWHEEL_IOC_SUBMIT,
					      (void *)(unsigned long)arg->ops, arg->nr,
					      arg->op_size);
	struct done done = { 0 };

	if (!(wheel_info(fd).features & TWHEEL_FEATURE_URING) || !ring_open(0))
		return false;
	expect_notice();
	sqe.user_data = SUBMIT;
	ring_submit(sqe);
	do {
		done = ring_next_in(PATIENCE_MS);
	} while (done.user_data != SUBMIT && done.res != -ETIME);
	if (done.user_data != SUBMIT)
		broken("a submit by io_uring does not end");
	ring_close();
	*ret = done.res;
	return true;
}

/* A read into any place, and the ring is closed while it may wait */
void uring_leave(int fd, void *place, __u64 *seed)
{
	if (!ring_open(0))
		return;
	expect_notice();
	if (one_in(seed, 2))
		ring_submit(read_into(fd, place, below(seed, 4000)));
	else
		ring_submit(sqe_command(fd, TWHEEL_IOC_SUBMIT, place, below(seed, 200),
					TWHEEL_OP_SIZE_ID << below(seed, 4)));
	if (one_in(seed, 2))
		ring_next_in(1);
	ring_close();
}
