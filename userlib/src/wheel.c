// SPDX-License-Identifier: LGPL-2.1-or-later
/* The wheel: its descriptor, and a function for each thing that it can do. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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
	tw->event_size = info.event_size;
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
	struct twheel_info info = { .size = sizeof(info) };
	int ret = result(ioctl(tw->fd, TWHEEL_IOC_SETUP, setup));

	if (!ret)
		ret = twheel_info(tw, &info);
	if (!ret)
		tw->event_size = info.event_size;
	return ret;
}

int twheel_info(struct twheel *tw, struct twheel_info *info)
{
	return result(ioctl(tw->fd, TWHEEL_IOC_INFO, info));
}

int twheel_stats(struct twheel *tw, struct twheel_stats *stats)
{
	return result(ioctl(tw->fd, TWHEEL_IOC_STATS, stats));
}

static int one(struct twheel *tw, __u8 opcode, struct twheel_op *op)
{
	int ret;

	if (op->opcode != opcode)
		return -EINVAL;
	/* A signal that came before it was done is no reason not to do it */
	do {
		ret = submit_ops(tw, op, 1, short_size(op));
	} while (ret == -EINTR);
	return ret < 0 ? ret : op->result;
}

int twheel_arm(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_OP_ARM, op);
}

int twheel_modify(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_OP_MODIFY, op);
}

int twheel_cancel(struct twheel *tw, __u64 id)
{
	struct twheel_op op = twheel_op_cancel(id);

	return one(tw, TWHEEL_OP_CANCEL, &op);
}

int twheel_query(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_OP_QUERY, op);
}

int twheel_submit(struct twheel *tw, struct twheel_op *ops, unsigned int nr)
{
	return submit_ops(tw, ops, nr, sizeof(*ops));
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

/* Short events are read to where the first of them will be; the last moves first */
static void lengthen(struct twheel_event *events, unsigned int nr)
{
	const char *from = (const char *)events;
	__u64 words[TWHEEL_EVENT_SIZE_ID / sizeof(__u64)];

	while (nr--) {
		memcpy(words, from + nr * sizeof(words), sizeof(words));
		events[nr] = (struct twheel_event){
			.user_data = words[0],
			.id = words[1],
		};
	}
}

int twheel_read(struct twheel *tw, struct twheel_event *events,
		unsigned int nr)
{
	size_t size = tw->event_size;
	ssize_t bytes;

	/* Not a count, which would be lost */
	if (size != TWHEEL_EVENT_SIZE_ID && size != TWHEEL_EVENT_SIZE_FULL)
		return -EINVAL;
	bytes = read(tw->fd, events, nr * size);
	if (bytes < 0)
		return -errno;
	if (size == TWHEEL_EVENT_SIZE_ID)
		lengthen(events, bytes / size);
	return bytes / size;
}

int twheel_read_count(struct twheel *tw, __u64 *count)
{
	return read(tw->fd, count, sizeof(*count)) < 0 ? -errno : 0;
}
