// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The wheel: its descriptor, and a function for each thing that it can do. Each asks
 * the kernel, or the wheel in the program itself, see user/.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define DEVICE "/dev/twheel"

#define BACKENDS (TWHEEL_KERNEL | TWHEEL_USER | TWHEEL_BPF)

/* The time of a wheel that the kernel has. An older module says 0. */
static int64_t ask_time(void *wheel)
{
	struct twheel_info info = { .size = sizeof(info) };
	const struct twheel *tw = wheel;

	if (ioctl(tw->fd, TWHEEL_IOC_INFO, &info))
		return -errno;
	return info.now ? (int64_t)info.now : -ENODATA;
}

/* Its clocks are those of clock_gettime(2), with other numbers. */
static void set_clock(struct twheel *tw, uint32_t clock)
{
	tw->clock = clock;
	if (tw->user)
		return;
	tw->timens = (struct timens){
		.id = clock - TWHEEL_CLOCK_MONOTONIC + CLOCK_MONOTONIC,
		.wall = TIMENS_NEW,
		.wall_end = TIMENS_NEW,
		.ask = ask_time,
		.wheel = tw,
	};
}

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
	set_clock(tw, info.clock);
	*twp = tw;
	return 0;
}

static int open_kernel(int flags, struct twheel **twp)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);
	int ret;

	if (fd < 0)
		return -errno;
	ret = twheel_from_fd(fd, twp);
	if (ret)
		close(fd);
	return ret;
}

static int open_user(int flags, int choice, struct twheel **twp)
{
	struct twheel *tw = calloc(1, sizeof(*tw));
	int ret;

	if (!tw)
		return -ENOMEM;
	ret = user_open(flags, &tw->user);
	if (ret) {
		free(tw);
		return ret;
	}
	tw->fd = user_fd(tw->user);
	tw->event_size = TWHEEL_EVENT_SIZE_FULL;
	tw->choice = choice;
	set_clock(tw, TWHEEL_CLOCK_MONOTONIC);
	*twp = tw;
	return 0;
}

/* There is no device, or none for this user. What else is wrong, the caller shall know */
static bool no_device(int error)
{
	return error == -ENOENT || error == -ENXIO || error == -ENODEV ||
	       error == -EACCES || error == -EPERM;
}

/* TWHEEL_KERNEL, TWHEEL_USER, TWHEEL_BPF, 0 for no choice, or a negative error */
static int chosen_by_environment(void)
{
	const char *name = secure_getenv("TWHEEL_BACKEND");

	if (!name || !*name)
		return 0;
	if (!strcmp(name, "kernel"))
		return TWHEEL_KERNEL;
	if (!strcmp(name, "bpf"))
		return TWHEEL_BPF;
	return strcmp(name, "user") ? -EINVAL : TWHEEL_USER;
}

static int open_one(int flags, struct twheel **twp)
{
	int backend = flags & BACKENDS, ret;

	flags &= ~BACKENDS;
	if (flags & ~O_NONBLOCK || backend & (backend - 1))
		return -EINVAL;
	if (!backend)
		backend = chosen_by_environment();
	if (backend < 0)
		return backend;
	if (backend == TWHEEL_KERNEL || !backend) {
		ret = open_kernel(flags, twp);
		if (backend || !no_device(ret))
			return ret;
	}
	ret = backend == TWHEEL_BPF ? bpf_may() : 0;
	return ret ? ret : open_user(flags, backend, twp);
}

/* A thread that is cancelled must leave nothing open. */
int twheel_open(int flags, struct twheel **twp)
{
	int ret, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = open_one(flags, twp);
	pthread_setcancelstate(state, NULL);
	return ret;
}

int twheel_backend(const struct twheel *tw)
{
	if (!tw->user)
		return TWHEEL_KERNEL;
	return tw->bpf || tw->choice == TWHEEL_BPF ? TWHEEL_BPF : TWHEEL_USER;
}

void twheel_close(struct twheel *tw)
{
	int state;

	if (!tw)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	bpf_close(tw->bpf);
	if (tw->user)
		user_close(tw->user);
	else
		close(tw->fd);
	pthread_setcancelstate(state, NULL);
	free(tw);
}

int twheel_fd(const struct twheel *tw)
{
	return tw->fd;
}

struct got_shared {
	const struct twheel *tw;
	struct bpf_wheel *bpf;
};

/*
 * A wheel in the program is to have shared timers, with that tick. Where nobody said so, and there
 * is no loader for this user, there are none.
 */
static int get_shared(void *arg, const struct twheel_setup *setup, uint64_t tick)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct got_shared *got = arg;
	const struct twheel *tw = got->tw;
	int ret;

	if (tw->choice == TWHEEL_USER || bpf_may())
		return -ENODEV;
	if (setup->clock != TWHEEL_CLOCK_MONOTONIC)
		return -EOPNOTSUPP;
	ret = bpf_open(setup->shared, tick, &got->bpf);
	if (ret)
		return ret;
	return result(epoll_ctl(tw->fd, EPOLL_CTL_ADD, got->bpf->fds[TWHEEL_BPF_WAKE], &event));
}

/* A set-up that fails leaves no shared timers. */
static int set_up_user(struct twheel *tw, const struct twheel_setup *setup)
{
	struct got_shared got = { .tw = tw };
	int ret = user_setup(tw->user, setup, get_shared, &got);

	if (!ret) {
		tw->bpf = got.bpf;
	} else if (got.bpf) {
		/* Where a child has it, too, to close it doesn't take it out. */
		epoll_ctl(tw->fd, EPOLL_CTL_DEL, got.bpf->fds[TWHEEL_BPF_WAKE], NULL);
		bpf_close(got.bpf);
	}
	return ret;
}

int twheel_setup(struct twheel *tw, const struct twheel_setup *setup)
{
	struct twheel_info info = { .size = sizeof(info) };
	int ret;

	if (tw->user)
		ret = set_up_user(tw, setup);
	else
		ret = result(ioctl(tw->fd, TWHEEL_IOC_SETUP, setup));
	if (!ret)
		ret = twheel_info(tw, &info);
	if (ret)
		return ret;
	tw->event_size = info.event_size;
	set_clock(tw, info.clock);
	return 0;
}

uint64_t twheel_now(const struct twheel *tw)
{
	/* What it knows of its clock is no part of the wheel that the caller sees. */
	struct timens *timens = (struct timens *)&tw->timens;

	if (tw->user)
		return user_time(tw->user);
	return timens_time(timens, timens_here(timens->id));
}

int twheel_info(struct twheel *tw, struct twheel_info *info)
{
	int ret;

	if (!tw->user)
		return result(ioctl(tw->fd, TWHEEL_IOC_INFO, info));
	ret = user_info(tw->user, info);
	if (ret)
		return ret;
	if (tw->bpf)
		bpf_info(tw->bpf, info);
	if (tw->bpf || (tw->choice != TWHEEL_USER && !bpf_may()))
		info->features |= TWHEEL_FEATURE_SHARED;
	return 0;
}

int twheel_stats(struct twheel *tw, struct twheel_stats *stats)
{
	if (tw->user)
		return user_stats(tw->user, stats);
	return result(ioctl(tw->fd, TWHEEL_IOC_STATS, stats));
}

static int submit_one(struct twheel *tw, struct twheel_op *op)
{
	int ret;

	/* A signal that came before it was done is no reason not to do it */
	do {
		ret = submit_ops(tw, op, 1, short_size(op));
	} while (ret == -EINTR);
	return ret < 0 ? ret : op->result;
}

static int one(struct twheel *tw, uint8_t opcode, struct twheel_op *op)
{
	if (op->opcode != opcode)
		return -EINVAL;
	return tw->user ? user_do(tw->user, op) : submit_one(tw, op);
}

int twheel_arm(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_OP_ARM, op);
}

int twheel_modify(struct twheel *tw, struct twheel_op *op)
{
	return one(tw, TWHEEL_OP_MODIFY, op);
}

int twheel_cancel(struct twheel *tw, uint64_t id)
{
	struct twheel_op op;

	if (tw->user)
		return user_cancel(tw->user, id);
	op = twheel_op_cancel(id);
	return submit_one(tw, &op);
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
	return drain_ops(tw, ops, nr, sizeof(*ops));
}

int twheel_set_eventfd(struct twheel *tw, int fd)
{
	struct twheel_eventfd eventfd = { .size = sizeof(eventfd), .fd = fd };

	/* Nobody runs who could signal it */
	if (tw->user)
		return -EOPNOTSUPP;
	return result(ioctl(tw->fd, TWHEEL_IOC_EVENTFD, &eventfd));
}

/* Each kind comes first in turn: a program that never has all of one reads the other, too. */
static ssize_t read_ready(struct twheel *tw, void *to, size_t bytes)
{
	bool shared_first = __atomic_fetch_xor(&tw->turn, 1, __ATOMIC_RELAXED);
	ssize_t ret = -EAGAIN;

	if (shared_first)
		ret = bpf_read(tw->bpf, to, bytes, tw->event_size);
	if (ret == -EAGAIN)
		ret = user_read(tw->user, to, bytes, true);
	if (ret == -EAGAIN && !shared_first)
		ret = bpf_read(tw->bpf, to, bytes, tw->event_size);
	return ret;
}

static ssize_t read_both(struct twheel *tw, void *to, size_t bytes, bool nowait)
{
	ssize_t ret;

	do {
		ret = read_ready(tw, to, bytes);
		if (ret != -EAGAIN || nowait || fcntl(tw->fd, F_GETFL) & O_NONBLOCK)
			return ret;
		ret = user_wait(tw->user);
	} while (!ret);
	return ret;
}

/* O_NONBLOCK is the user's affair, and another process may have changed it */
ssize_t read_bytes(struct twheel *tw, void *to, size_t bytes, bool nowait)
{
	struct iovec room = { to, bytes };
	ssize_t ret;

	if (tw->bpf)
		return read_both(tw, to, bytes, nowait);
	if (tw->user)
		return user_read(tw->user, to, bytes, nowait);
	ret = nowait ? preadv2(tw->fd, &room, 1, -1, RWF_NOWAIT) :
		       read(tw->fd, to, bytes);
	return ret < 0 ? -errno : ret;
}

/* Short events are read to where the first of them will be; the last moves first */
static void lengthen(struct twheel_event *events, unsigned int nr)
{
	const char *from = (const char *)events;
	uint64_t words[TWHEEL_EVENT_SIZE_ID / sizeof(uint64_t)];

	while (nr--) {
		memcpy(words, from + nr * sizeof(words), sizeof(words));
		events[nr] = (struct twheel_event){
			.user_data = words[0],
			.id = words[1],
		};
	}
}

int read_events(struct twheel *tw, struct twheel_event *events, unsigned int nr, bool nowait)
{
	size_t size = tw->event_size;
	ssize_t bytes;

	/* Not a count, which would be lost */
	if (size != TWHEEL_EVENT_SIZE_ID && size != TWHEEL_EVENT_SIZE_FULL)
		return -EINVAL;
	bytes = read_bytes(tw, events, nr * size, nowait);
	if (bytes < 0)
		return bytes;
	if (size == TWHEEL_EVENT_SIZE_ID)
		lengthen(events, bytes / size);
	return bytes / size;
}

int twheel_read(struct twheel *tw, struct twheel_event *events,
		unsigned int nr)
{
	return read_events(tw, events, nr, false);
}

int twheel_read_count(struct twheel *tw, uint64_t *count)
{
	ssize_t bytes = read_bytes(tw, count, sizeof(*count), false);

	return bytes < 0 ? bytes : 0;
}
