// SPDX-License-Identifier: GPL-2.0
/* Multishot timeouts of io_uring: 3,000 periods of 1 ms, and some that nobody takes. */
#include <liburing.h>
#include <stdio.h>
#include <time.h>

#ifndef IORING_TIMEOUT_MULTISHOT
#define IORING_TIMEOUT_MULTISHOT 64
#endif

static struct __kernel_timespec period = { 0, 1000000 };

static long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void start(struct io_uring *ring, unsigned int entries)
{
	struct io_uring_sqe *sqe;

	if (io_uring_queue_init(entries, ring, 0))
		return;
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_timeout(sqe, &period, 0, IORING_TIMEOUT_MULTISHOT);
	io_uring_submit(ring);
}

int main(void)
{
	struct io_uring ring;
	struct io_uring_cqe *cqe;
	long began = now();
	int n, more = 1;

	start(&ring, 1024);
	for (n = 0; n < 3000; n++) {
		if (io_uring_wait_cqe(&ring, &cqe))
			return 1;
		io_uring_cqe_seen(&ring, cqe);
	}
	printf("io_uring, periods\t%s", now() - began - n * 1000000L > 5000000 ? "drift" : "keep");
	io_uring_queue_exit(&ring);

	start(&ring, 1);
	nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	for (n = 0; more && n < 20; n++) {
		if (io_uring_wait_cqe(&ring, &cqe))
			return 1;
		more = cqe->flags & IORING_CQE_F_MORE;
		io_uring_cqe_seen(&ring, cqe);
	}
	printf("\t%s\n", more ? "go on" : "end when the ring is full");
	return 0;
}
