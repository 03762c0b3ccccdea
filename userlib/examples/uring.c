// SPDX-License-Identifier: MIT
/*
 * The events of a wheel read through io_uring: the read waits in the ring, and
 * completes when timers have expired. Needs liburing.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <liburing.h>
#include <twheel.h>

#define MS 1000000ULL
#define TIMERS 3

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

/* Gives how many events were read */
static int read_events(struct io_uring *ring, int fd,
		       struct twheel_event *events, unsigned int nr)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int bytes;

	io_uring_prep_read(sqe, fd, events, nr * sizeof(*events), 0);
	must(io_uring_submit(ring), "io_uring_submit");
	must(io_uring_wait_cqe(ring, &cqe), "io_uring_wait_cqe");
	bytes = must(cqe->res, "read");
	io_uring_cqe_seen(ring, cqe);
	return bytes / sizeof(*events);
}

int main(void)
{
	struct twheel_event events[TIMERS];
	struct io_uring ring;
	struct twheel *tw;
	int expired = 0;

	must(twheel_open(0, &tw), "twheel_open");
	must(io_uring_queue_init(4, &ring, 0), "io_uring_queue_init");
	for (int i = 0; i < TIMERS; i++) {
		struct twheel_op op = twheel_op_arm(0, (i + 1) * 30 * MS, 0, i);

		must(twheel_arm(tw, &op), "twheel_arm");
	}

	while (expired < TIMERS) {
		int nr = read_events(&ring, twheel_fd(tw), events, TIMERS);

		for (int i = 0; i < nr; i++)
			printf("timer %llu expired\n",
			       (unsigned long long)events[i].user_data);
		expired += nr;
	}
	io_uring_queue_exit(&ring);
	twheel_close(tw);
	return 0;
}
