// SPDX-License-Identifier: LGPL-2.1-or-later
/* The wheel: its descriptor, and a function for each thing that it can do. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "internal.h"

#define DEVICE "/dev/twheel"

int twheel_from_fd(int fd, struct twheel **twp)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel *tw;

	if (ioctl(fd, TWHEEL_IOC_INFO, &info))
		return -errno;
	tw = calloc(1, sizeof(*tw));
	if (!tw)
		return -ENOMEM;
	tw->fd = fd;
	*twp = tw;
	return 0;
}

int twheel_open(int flags, struct twheel **twp)
{
	int fd, ret;

	if (flags & ~O_NONBLOCK)
		return -EINVAL;
	fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);
	if (fd < 0)
		return -errno;
	ret = twheel_from_fd(fd, twp);
	if (ret)
		close(fd);
	return ret;
}

void twheel_close(struct twheel *tw)
{
	if (!tw)
		return;
	close(tw->fd);
	free(tw);
}

int twheel_fd(const struct twheel *tw)
{
	return tw->fd;
}

int twheel_setup(struct twheel *tw, const struct twheel_setup *setup)
{
	return result(ioctl(tw->fd, TWHEEL_IOC_SETUP, setup));
}

int twheel_info(struct twheel *tw, struct twheel_info *info)
{
	return result(ioctl(tw->fd, TWHEEL_IOC_INFO, info));
}

int twheel_stats(struct twheel *tw, struct twheel_stats *stats)
{
	return result(ioctl(tw->fd, TWHEEL_IOC_STATS, stats));
}

/* The ioctls for one timer want no opcode; the caller may want to see it again */
static int one(struct twheel *tw, unsigned long request, __u16 opcode,
	       struct twheel_op *op)
{
	int ret;

	if (op->opcode != opcode)
		return -EINVAL;
	op->opcode = 0;
	ret = result(ioctl(tw->fd, request, op));
	op->opcode = opcode;
	return ret;
}

int twheel_arm(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_IOC_ARM, TWHEEL_OP_ARM, op);
}

int twheel_modify(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_IOC_MODIFY, TWHEEL_OP_MODIFY, op);
}

int twheel_cancel(struct twheel *tw, __u64 id)
{
	struct twheel_op op = twheel_op_cancel(id);

	return one(tw, TWHEEL_IOC_CANCEL, TWHEEL_OP_CANCEL, &op);
}

int twheel_query(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_IOC_QUERY, TWHEEL_OP_QUERY, op);
}

int twheel_submit(struct twheel *tw, struct twheel_op *ops, unsigned int nr)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (uintptr_t)ops,
		.nr = nr,
		/* The distance is the caller's, whose header may be another */
		.op_size = nr ? ops->size : sizeof(*ops),
	};

	return result(ioctl(tw->fd, TWHEEL_IOC_SUBMIT, &submit));
}

int twheel_drain(struct twheel *tw, struct twheel_op *ops, unsigned int nr)
{
	struct twheel_drain drain = {
		.size = sizeof(drain),
		.ops = (uintptr_t)ops,
		.nr = nr,
		.op_size = sizeof(*ops),
	};

	return result(ioctl(tw->fd, TWHEEL_IOC_DRAIN, &drain));
}

int twheel_set_eventfd(struct twheel *tw, int fd)
{
	struct twheel_eventfd eventfd = { .size = sizeof(eventfd), .fd = fd };

	return result(ioctl(tw->fd, TWHEEL_IOC_EVENTFD, &eventfd));
}

int twheel_read(struct twheel *tw, struct twheel_event *events,
		unsigned int nr)
{
	return whole_events(read(tw->fd, events, (size_t)nr * sizeof(*events)));
}

int twheel_read_count(struct twheel *tw, __u64 *count)
{
	return read(tw->fd, count, sizeof(*count)) < 0 ? -errno : 0;
}
