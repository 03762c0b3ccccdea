// SPDX-License-Identifier: GPL-2.0
/*
 * Shared timers: connection n has timer n, which is armed, cancelled and taken in
 * memory. Arming and cancelling need no batches; that they come in some here is so
 * that both backends are measured alike.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <twheel.h>
#include <twheel_shared.h>

#include "demo.h"
#include "backend.h"

static struct twheel_area area;

static void set_up(struct twheel *wheel, struct twheel_setup *setup, __u32 connections)
{
	int ret;

	setup->flags |= TWHEEL_SETUP_SHARED;
	setup->shared = connections;
	ret = twheel_setup(wheel, setup);
	if (ret)
		die("can't set a wheel with shared timers up: %s", strerror(-ret));
	ret = twheel_shared_map(wheel, &area);
	if (ret)
		die("can't map the shared timers: %s", strerror(-ret));
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	calls.doorbells += request == TWHEEL_IOC_DOORBELL;
	return __real_ioctl(fd, request, arg);
}

long __wrap_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	calls.doorbells += nr == SYS_bpf;
	return __real_syscall(nr, a, b, c, d, e, f);
}

static void do_one(struct twheel_op *op, unsigned int n)
{
	int state = op->opcode == TWHEEL_OP_CANCEL ?
		    twheel_shared_cancel(&area, n) :
		    twheel_shared_arm(&area, n, op->deadline);

	if (state < 0)
		op->result = state;
	else if (op->opcode == TWHEEL_OP_ARM)
		op->result = state == TWHEEL_STATE_NONE ? 0 : -EEXIST;
	else
		op->result = state == TWHEEL_STATE_NONE ? -ENOENT : 0;
	op->state = state;
}

static void submit(struct twheel *wheel, struct twheel_op *ops, const __u64 *whose,
		   unsigned int nr)
{
	unsigned int i;

	/* They come apart from the others: at the begin and the end of the day. */
	if (nr && whose[0] & PERIODIC_BIT) {
		submit_ordinary(wheel, ops, whose, nr);
		return;
	}
	for (i = 0; i < nr; i++)
		do_one(&ops[i], whose[i]);
}

/* The wheel is readable: when it isn't for these, it is for ordinary timers. */
static unsigned int take(struct twheel *wheel, struct twheel_event *events, unsigned int room)
{
	unsigned int timers[256];
	unsigned int most = sizeof(timers) / sizeof(*timers);
	unsigned int nr = twheel_shared_take(&area, timers, room < most ? room : most);
	unsigned int i;

	for (i = 0; i < nr; i++)
		events[i] = (struct twheel_event){
			.user_data = timers[i],
			.deadline = (area.words[timers[i]] & TWHEEL_WORD_NEVER) |
				    TWHEEL_WORD_ARMED,
			.flags = TWHEEL_EVENT_SHARED,
		};
	calls.taken += nr;
	return nr ? nr : read_ordinary(wheel, events, room);
}

const struct backend backend_shared = {
	.name = "shared",
	.title = "shared timers",
	.where = TWHEEL_KERNEL,
	.set_up = set_up,
	.submit = submit,
	.take = take,
};

const struct backend backend_bpf = {
	.name = "bpf",
	.title = "shared timers, in a BPF program",
	.where = TWHEEL_BPF,
	.set_up = set_up,
	.submit = submit,
	.take = take,
};
