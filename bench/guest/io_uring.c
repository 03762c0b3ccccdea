// SPDX-License-Identifier: GPL-2.0
/*
 * Timeouts of io_uring, in batches, through liburing. Reaping needs no system
 * call. To find a timeout that is updated or removed, the kernel walks a list of
 * all: where there are many, a sample stands for all.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>

/* Marks what is not the completion of a timeout, but of an operation on one. */
#define OPERATION 0x100000000ULL

static struct io_uring ring;
static enum operation operation;
static struct __kernel_timespec spec[BATCH];
static struct {
	uint32_t timer;
	int32_t result;
} completed[BATCH];

static void ring_open(size_t timers, bool deliver)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE,
		.cq_entries = 1 << 16,
	};
	int ret;

	(void)timers;
	(void)deliver;
	ret = io_uring_queue_init_params(BATCH, &ring, &params);
	if (ret)
		errx(1, "io_uring: %s", strerror(-ret));
}

static void ring_close(void)
{
	io_uring_queue_exit(&ring);
}

static void prepare(enum operation op, const uint32_t *timer, const uint64_t *time,
		    bool absolute, unsigned int n)
{
	unsigned int i, flags = absolute ? IORING_TIMEOUT_ABS : 0;

	operation = op;
	for (i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		spec[i].tv_sec = time[i] / SECOND;
		spec[i].tv_nsec = time[i] % SECOND;
		if (op == ARM)
			io_uring_prep_timeout(sqe, &spec[i], 0, flags);
		else if (op == MODIFY)
			io_uring_prep_timeout_update(sqe, &spec[i], timer[i], flags);
		else
			io_uring_prep_timeout_remove(sqe, timer[i], 0);
		io_uring_sqe_set_data64(sqe, op == ARM ? timer[i] : OPERATION);
	}
}

static void submit(unsigned int n)
{
	int ret = io_uring_submit(&ring);

	if (ret != (int)n)
		errx(1, "io_uring: submitted %d of %u", ret, n);
}

/*
 * Modifying completes by itself, removing together with the timeout that was
 * removed, and arming not at all.
 */
static void check(unsigned int n)
{
	static const unsigned int completions[] = { [ARM] = 0, [MODIFY] = 1, [CANCEL] = 2 };
	unsigned int head, seen = 0;
	struct io_uring_cqe *cqe;

	if (operation == ARM)
		return;
	io_uring_for_each_cqe(&ring, head, cqe) {
		int wanted = cqe->user_data & OPERATION ? 0 : -ECANCELED;

		if (cqe->res != wanted)
			errx(1, "io_uring: operation %d: %s", operation,
			     strerror(-cqe->res));
		seen++;
	}
	io_uring_cq_advance(&ring, seen);
	if (seen != n * completions[operation])
		errx(1, "io_uring: %u completions of %u operations %d", seen, n,
		     operation);
}

static unsigned int collect(void)
{
	unsigned int head, n = 0;
	struct io_uring_cqe *cqe;

	io_uring_for_each_cqe(&ring, head, cqe) {
		if (n == BATCH)
			break;
		completed[n].timer = cqe->user_data;
		completed[n].result = cqe->res;
		n++;
	}
	io_uring_cq_advance(&ring, n);
	return n;
}

static void check_collected(unsigned int n)
{
	uint64_t when = now();
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (completed[i].result != -ETIME)
			errx(1, "io_uring: expiry says %s", strerror(-completed[i].result));
		note_expiry(completed[i].timer, when);
	}
	if (io_uring_cq_has_overflow(&ring))
		errx(1, "io_uring: completions overflowed");
}

int main(int argc, char **argv)
{
	static const struct peer io_uring = {
		.name = "io_uring",
		.batch = BATCH,
		.whole = 10000,
		.open = ring_open,
		.prepare = prepare,
		.submit = submit,
		.check = check,
		.collect = collect,
		.check_collected = check_collected,
		.close = ring_close,
	};

	return bench(&io_uring, argc, argv);
}
