/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What disturbs a call: memory that ends or can't be written in the middle, a
 * signal, and an operation that is to be refused.
 */
#ifndef DISTURB_H
#define DISTURB_H

#include "device.h"

/* Memory for arrays, and never anything behind it */
#define ROOM_PAGES 96

/* A number below @n */
static inline __u64 below(__u64 *seed, __u64 n)
{
	return (random_next(seed) >> 11) % n;
}

static inline bool one_in(__u64 *seed, __u64 n)
{
	return !below(seed, n);
}

/* Memory of which some pages may be bad. It can be seen whole by way of @kept. */
struct room {
	int fd;
	char *at;
	char *kept;
};

static inline void room_init(struct room *room)
{
	room->fd = syscall(SYS_memfd_create, "room", 0);
	if (room->fd < 0 || ftruncate(room->fd, ROOM_PAGES * PAGE))
		tap_bail("memfd_create: %s", strerror(errno));
	room->at = map_edge(ROOM_PAGES) - ROOM_PAGES * PAGE;
	room->kept = mmap(NULL, ROOM_PAGES * PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED, room->fd, 0);
	if (room->kept == MAP_FAILED ||
	    mmap(room->at, ROOM_PAGES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, room->fd, 0) != room->at)
		tap_bail("mmap: %s", strerror(errno));
}

enum fault { FAULT_NONE, FAULT_READ_ONLY, FAULT_HIDDEN, FAULT_UNMAPPED, FAULT_KINDS };

/* The environment's FAULTS=1 is for what need not stand bad addresses */
#define FAULTS number_of("FAULTS", FAULT_KINDS)

static inline void room_spoil(struct room *room, enum fault fault, size_t page)
{
	char *at = room->at + page * PAGE;
	int ret = 0;

	if (fault == FAULT_UNMAPPED)
		ret = munmap(at, PAGE);
	else if (fault)
		ret = mprotect(at, PAGE, fault == FAULT_HIDDEN ? PROT_NONE :
								 PROT_READ);
	if (ret)
		tap_bail("mprotect or munmap: %s", strerror(errno));
}

static inline void room_mend(struct room *room, size_t page)
{
	char *at = room->at + page * PAGE;

	if (mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 room->fd, page * PAGE) != at)
		tap_bail("mmap: %s", strerror(errno));
}

/* A signal that interrupts this thread after so many ns, once, or with 0 not at all */
struct nuisance {
	timer_t timer;
};

static inline void on_nuisance(int sig)
{
	(void)sig;
}

static inline void nuisance_init(struct nuisance *n)
{
	struct sigaction act = { .sa_handler = on_nuisance };
	struct sigevent sev = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGUSR1,
	};

	sev._sigev_un._tid = syscall(SYS_gettid);
	sigaction(SIGUSR1, &act, NULL);
	if (timer_create(CLOCK_MONOTONIC, &sev, &n->timer))
		tap_bail("timer_create: %s", strerror(errno));
}

static inline void nuisance_set(struct nuisance *n, __u64 ns)
{
	struct itimerspec its = { .it_value.tv_nsec = ns };

	if (timer_settime(n->timer, 0, &its, NULL))
		tap_bail("timer_settime: %s", strerror(errno));
}

static inline bool has_times(const struct twheel_op *op)
{
	return op->opcode == TWHEEL_OP_ARM || op->opcode == TWHEEL_OP_MODIFY;
}

/* Make an operation one that is refused for its own sake, if all of it is told */
static inline void op_spoil(__u64 *seed, struct twheel_op *op)
{
	__u64 late = KTIME_MAX + 1 + below(seed, KTIME_MAX);

	switch (below(seed, has_times(op) ? 7 : 3)) {
	case 0:
		if (op->opcode == TWHEEL_OP_QUERY)
			op->flags = TWHEEL_ABS;
		else if (has_times(op) || one_in(seed, 2))
			op->__reserved = 1ULL << below(seed, 64);
		else
			op->user_data = 1ULL << below(seed, 64);
		break;
	case 1:
		op->opcode = one_in(seed, 2) ? 0 : 5 + below(seed, 251);
		break;
	case 2:
		op->flags |= 2 << below(seed, 7);
		break;
	case 3:
		op->slack = late;
		break;
	case 4:
		op->interval = late;
		break;
	case 5:
		op->interval = 1 + below(seed, SEC);
		op->jitter = op->interval + 1;
		break;
	default:
		op->deadline = one_in(seed, 2) ? ~0ULL : late;
		break;
	}
}

/* What is told of an operation that has so many bytes: the rest is 0 */
static inline void op_cut(struct twheel_op *op, __u32 op_size)
{
	memset((char *)op + op_size, 0, sizeof(*op) - op_size);
}

static inline long times_error(const struct twheel_op *op, __u32 op_size)
{
	if (op_size < TWHEEL_OP_SIZE_ONCE || op->__reserved ||
	    op->deadline > KTIME_MAX || op->interval > KTIME_MAX ||
	    op->slack > KTIME_MAX || op->jitter > KTIME_MAX ||
	    (op->interval && op->jitter > op->interval))
		return -EINVAL;
	return 0;
}

/* What is wrong in itself with an operation that was cut to that size? */
static inline long op_error(const struct twheel_op *op, __u32 op_size)
{
	if (!op->opcode || op->opcode > TWHEEL_OP_QUERY)
		return -EINVAL;
	if (has_times(op))
		return op->flags & ~TWHEEL_ABS ? -EINVAL : times_error(op, op_size);
	if (op->flags)
		return -EINVAL;
	if (op->opcode == TWHEEL_OP_CANCEL &&
	    (op->deadline | op->user_data | op->interval | op->slack | op->jitter |
	     op->__reserved))
		return -EINVAL;
	return 0;
}

#endif
