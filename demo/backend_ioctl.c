// SPDX-License-Identifier: GPL-2.0
/*
 * Ordinary timers: batches of operations, and of events. Of a wheel in the kernel, a
 * batch is one ioctl(2) or one read(2).
 */
#include <errno.h>
#include <string.h>

#include "demo.h"
#include "backend.h"

struct calls calls;

static void set_up(struct twheel *wheel, struct twheel_setup *setup, __u32 connections)
{
	int ret = twheel_setup(wheel, setup);

	(void)connections;
	if (ret)
		die("can't set the wheel up: %s", strerror(-ret));
}

void submit_ordinary(struct twheel *wheel, struct twheel_op *ops, const __u64 *whose,
		     unsigned int nr)
{
	(void)whose;
	while (nr) {
		int n = twheel_submit(wheel, ops, nr);

		calls.submits++;
		if (n <= 0)
			die("can't hand a batch to the wheel: %s", strerror(-n));
		ops += n;
		nr -= n;
	}
}

unsigned int read_ordinary(struct twheel *wheel, struct twheel_event *events,
			   unsigned int room)
{
	int n = twheel_read(wheel, events, room);

	calls.reads++;
	if (n == -EAGAIN)
		return 0;
	if (n < 0)
		die("can't read events from the wheel: %s", strerror(-n));
	return n;
}

const struct backend backend_ioctl = {
	.name = "ioctl",
	.title = "ioctl, batches",
	.where = TWHEEL_KERNEL,
	.set_up = set_up,
	.submit = submit_ordinary,
	.take = read_ordinary,
};

const struct backend backend_user = {
	.name = "user",
	.title = "in the program itself",
	.where = TWHEEL_USER,
	.set_up = set_up,
	.submit = submit_ordinary,
	.take = read_ordinary,
};
