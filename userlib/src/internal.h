/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the library's own files share: the wheel, its two backends, and how errors are given. */
#ifndef TWHEEL_INTERNAL_H
#define TWHEEL_INTERNAL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include "bpf.h"
#include "timens.h"
#include "twheel.h"
#include "user/user.h"

/* Events that one run of the loop reads: 2 KiB, few enough to stay in cache */
#define LOOP_EVENTS 64

struct twheel {
	int fd;
	uint32_t event_size;
	uint32_t clock;
	/* Where the kernel has the wheel: its time namespace */
	struct timens timens;
	/* The wheel itself, if it is in the program: else the kernel has it */
	struct user_wheel *user;
	/* Its shared timers, if it has any: the kernel has these then */
	struct bpf_wheel *bpf;
	/* Which of both kinds is read first: odd, the shared ones */
	unsigned int turn;
	/* TWHEEL_USER or TWHEEL_BPF, if that was said to be, of a wheel in the program */
	int choice;

	/* For loop.c: events that were read, from @next to @end not dealt with */
	unsigned int next;
	unsigned int end;
	struct twheel_event events[LOOP_EVENTS];
};

static inline int result(int ret)
{
	return ret < 0 ? -errno : ret;
}

/* In how few bytes that operation says all that it does; a query gets all of it */
static inline unsigned int short_size(const struct twheel_op *op)
{
	if (op->opcode == TWHEEL_OP_QUERY ||
	    op->interval | op->slack | op->jitter | op->__reserved)
		return TWHEEL_OP_SIZE_FULL;
	if (op->opcode != TWHEEL_OP_CANCEL || op->deadline | op->user_data)
		return TWHEEL_OP_SIZE_ONCE;
	return TWHEEL_OP_SIZE_ID;
}

static inline int submit_ops(struct twheel *tw, void *ops, unsigned int nr,
			     unsigned int op_size)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (uintptr_t)ops,
		.nr = nr,
		.op_size = op_size,
	};

	if (tw->user)
		return user_submit(tw->user, ops, nr, op_size);
	return result(ioctl(tw->fd, TWHEEL_IOC_SUBMIT, &submit));
}

static inline int drain_ops(struct twheel *tw, void *ops, unsigned int nr,
			    unsigned int op_size)
{
	struct twheel_drain drain = {
		.size = sizeof(drain),
		.ops = (uintptr_t)ops,
		.nr = nr,
		.op_size = op_size,
	};

	int ret;

	if (!tw->user)
		return result(ioctl(tw->fd, TWHEEL_IOC_DRAIN, &drain));
	ret = user_drain(tw->user, ops, nr, op_size);
	return ret || !tw->bpf ? ret : (int)bpf_drain(tw->bpf, ops, nr, op_size);
}

/* Bytes of events or of a count. @nowait: whether or not the descriptor waits */
ssize_t read_bytes(struct twheel *tw, void *to, size_t bytes, bool nowait);
int read_events(struct twheel *tw, struct twheel_event *events, unsigned int nr, bool nowait);

#endif
