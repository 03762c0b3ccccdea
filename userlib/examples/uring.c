// SPDX-License-Identifier: MIT
/*
 * Two wheels through io_uring: the timers of both are armed by one system call,
 * and the reads wait in the ring until timers have expired. Needs liburing.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <liburing.h>
#include <twheel.h>

#define MS 1000000ULL
#define WHEELS 2
#define TIMERS 3

static struct twheel *wheels[WHEELS];
static struct twheel_op ops[WHEELS][TIMERS];

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

/* Wait for an entry that was submitted, and give what its call would return */
static int complete(struct io_uring *ring, int *wheel, const char *what)
{
	struct io_uring_cqe *cqe;
	int ret;

	must(io_uring_wait_cqe(ring, &cqe), "io_uring_wait_cqe");
	*wheel = cqe->user_data;
	ret = must(cqe->res, what);
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static void queue_submit(struct io_uring *ring, int wheel)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct twheel_uring_submit submit = {
		.ops = (uintptr_t)ops[wheel],
		.nr = TIMERS,
		.op_size = sizeof(ops[wheel][0]),
	};

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, twheel_fd(wheels[wheel]), NULL, 0, 0);
	sqe->cmd_op = TWHEEL_IOC_SUBMIT;
	memcpy(sqe->cmd, &submit, sizeof(submit));
	sqe->user_data = wheel;
}

static void arm_all(struct io_uring *ring)
{
	struct twheel_info info = { .size = sizeof(info) };
	int wheel;

	for (wheel = 0; wheel < WHEELS; wheel++)
		for (int i = 0; i < TIMERS; i++)
			ops[wheel][i] = twheel_op_arm(0, (i + 1) * 30 * MS, 0, i);

	must(twheel_info(wheels[0], &info), "twheel_info");
	if (!(info.features & TWHEEL_FEATURE_URING)) {
		for (wheel = 0; wheel < WHEELS; wheel++)
			must(twheel_submit(wheels[wheel], ops[wheel], TIMERS), "submit");
		return;
	}
	for (wheel = 0; wheel < WHEELS; wheel++)
		queue_submit(ring, wheel);
	must(io_uring_submit(ring), "io_uring_submit");
	for (int i = 0; i < WHEELS; i++)
		if (complete(ring, &wheel, "submit") != TIMERS)
			exit(1);
}

static void queue_read(struct io_uring *ring, int wheel, struct twheel_event *events)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_read(sqe, twheel_fd(wheels[wheel]), events,
			   TIMERS * sizeof(*events), 0);
	sqe->user_data = wheel;
	must(io_uring_submit(ring), "io_uring_submit");
}

int main(void)
{
	struct twheel_event events[WHEELS][TIMERS];
	struct io_uring ring;
	int expired = 0, wheel, nr;

	for (wheel = 0; wheel < WHEELS; wheel++)
		must(twheel_open(TWHEEL_KERNEL, &wheels[wheel]), "open (is the module loaded?)");
	must(io_uring_queue_init(4, &ring, 0), "io_uring_queue_init");
	arm_all(&ring);

	for (wheel = 0; wheel < WHEELS; wheel++)
		queue_read(&ring, wheel, events[wheel]);
	while (expired < WHEELS * TIMERS) {
		nr = complete(&ring, &wheel, "read") / (int)sizeof(events[0][0]);
		for (int i = 0; i < nr; i++)
			printf("timer %llu of wheel %d expired\n",
			       (unsigned long long)events[wheel][i].user_data, wheel);
		expired += nr;
		queue_read(&ring, wheel, events[wheel]);
	}
	io_uring_queue_exit(&ring);
	for (wheel = 0; wheel < WHEELS; wheel++)
		twheel_close(wheels[wheel]);
	return 0;
}
