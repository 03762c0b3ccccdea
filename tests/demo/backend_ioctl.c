// SPDX-License-Identifier: GPL-2.0
/* Ordinary timers: batches of operations by ioctl(2), events by read(2). */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "demo.h"
#include "backend.h"

struct calls calls;

static void set_up(int wheel, struct twheel_setup *setup, __u32 connections)
{
	(void)connections;
	if (ioctl(wheel, TWHEEL_IOC_SETUP, setup))
		die("can't set the wheel up: %s", strerror(errno));
}

void submit_ordinary(int wheel, struct twheel_op *ops, const __u64 *whose,
		     unsigned int nr)
{
	(void)whose;
	while (nr) {
		struct twheel_submit submit = {
			.size = sizeof(submit),
			.ops = (uintptr_t)ops,
			.nr = nr,
			.op_size = sizeof(*ops),
		};
		int n = ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit);

		calls.submits++;
		if (n <= 0)
			die("can't hand a batch to the wheel: %s", strerror(errno));
		ops += n;
		nr -= n;
	}
}

unsigned int read_ordinary(int wheel, struct twheel_event *events,
			   unsigned int room)
{
	ssize_t size = read(wheel, events, room * sizeof(*events));

	calls.reads++;
	if (size < 0 && errno == EAGAIN)
		return 0;
	if (size <= 0 || size % sizeof(*events))
		die("can't read events from the wheel: %s",
		    size < 0 ? strerror(errno) : "this is no whole number of events");
	return size / sizeof(*events);
}

const struct backend backend_ioctl = {
	.name = "ioctl",
	.title = "ioctl, batches",
	.set_up = set_up,
	.submit = submit_ordinary,
	.take = read_ordinary,
};
