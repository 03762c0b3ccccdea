/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time for random programs, which stands still but while the loop waits, or the program says;
 * and for twheel_uv.h a wheel as the module's: what is due is readable, at that very moment.
 * (The module itself is under cases.c, in the virtual machine, where time is real.)
 */
#ifndef EXACT_H
#define EXACT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <twheel.h>
#include <twheel_shared.h>

#define MS 1000000ULL
#define EXACT_TIMERS 64

static unsigned long long now = 1000 * MS;

/* A timer of the wheel: its number and 1 is its id. It is not there with a deadline of 0. */
static struct {
	unsigned long long deadline;
	unsigned long long user_data;
} exact_timers[EXACT_TIMERS];
static int exact_fd = -1;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = now / (1000 * MS);
	ts->tv_nsec = now % (1000 * MS);
	return 0;
}

static unsigned long long exact_first(void)
{
	unsigned long long first = -1ULL;
	int i;

	for (i = 0; i < EXACT_TIMERS; i++)
		if (exact_timers[i].deadline && exact_timers[i].deadline < first)
			first = exact_timers[i].deadline;
	return first;
}

/* The descriptor is readable as long as one is due. */
static void exact_tell(void)
{
	eventfd_t count;

	if (exact_fd < 0)
		return;
	if (exact_first() <= now)
		eventfd_write(exact_fd, 1);
	else
		eventfd_read(exact_fd, &count);
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *set)
{
	unsigned long long end = timeout < 0 ? -1ULL : now + timeout * MS;
	int nr;

	exact_tell();
	do {
		nr = syscall(SYS_epoll_pwait, fd, events, max, 0, set, 8);
	} while (nr < 0 && errno == EINTR);
	if (nr || !timeout)
		return nr;
	if (exact_first() < end)
		end = exact_first();
	if (end == -1ULL)
		abort();
	now = end;
	exact_tell();
	return syscall(SYS_epoll_pwait, fd, events, max, 0, set, 8);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(fd, events, max, timeout, NULL);
}

#ifndef NATIVE
int twheel_open(int flags, struct twheel **twp)
{
	(void)flags;
	exact_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	*twp = (struct twheel *)&exact_fd;
	return exact_fd < 0 ? -errno : 0;
}

int twheel_backend(const struct twheel *tw)
{
	(void)tw;
	return TWHEEL_KERNEL;
}

void twheel_close(struct twheel *tw)
{
	(void)tw;
	close(exact_fd);
	exact_fd = -1;
}

int twheel_fd(const struct twheel *tw)
{
	(void)tw;
	return exact_fd;
}

int twheel_setup(struct twheel *tw, const struct twheel_setup *setup)
{
	(void)tw;
	return setup->clock == TWHEEL_CLOCK_MONOTONIC && setup->tick == MS ? 0 : -EINVAL;
}

int twheel_info(struct twheel *tw, struct twheel_info *info)
{
	(void)tw;
	/* Not before a slot of 128 ms in which the next one is */
	info->pending = exact_first() != -1ULL;
	info->next_expiry = info->pending ? exact_first() / (128 * MS) * (128 * MS) : 0;
	return 0;
}

int twheel_modify(struct twheel *tw, struct twheel_op *op)
{
	(void)tw;
	if (op->flags != TWHEEL_ABS || !op->deadline || !op->id || op->id > EXACT_TIMERS ||
	    !exact_timers[op->id - 1].deadline)
		abort();
	exact_timers[op->id - 1].deadline = op->deadline;
	exact_timers[op->id - 1].user_data = op->user_data;
	return 0;
}

int twheel_arm(struct twheel *tw, struct twheel_op *op)
{
	for (op->id = 1; exact_timers[op->id - 1].deadline; op->id++)
		if (op->id == EXACT_TIMERS)
			abort();
	exact_timers[op->id - 1].deadline = 1;
	return twheel_modify(tw, op);
}

int twheel_cancel(struct twheel *tw, uint64_t id)
{
	(void)tw;
	if (!id || id > EXACT_TIMERS || !exact_timers[id - 1].deadline)
		abort();
	exact_timers[id - 1].deadline = 0;
	return 0;
}

/* In any order */
int twheel_read(struct twheel *tw, struct twheel_event *events, unsigned int nr)
{
	unsigned int n = 0;
	int i;

	(void)tw;
	for (i = EXACT_TIMERS - 1; i >= 0 && n < nr; i--) {
		if (!exact_timers[i].deadline || exact_timers[i].deadline > now)
			continue;
		events[n++] = (struct twheel_event){
			.id = i + 1, .user_data = exact_timers[i].user_data,
		};
		exact_timers[i].deadline = 0;
	}
	return n ? (int)n : -EAGAIN;
}

/* There are none. */
int twheel_shared_map(struct twheel *tw, struct twheel_area *area)
{
	(void)tw;
	(void)area;
	return -ENODEV;
}

void twheel_shared_unmap(struct twheel_area *area)
{
	(void)area;
}

int twheel_internal_push(struct twheel_shared *shared, int fd, unsigned long group,
			 uint64_t word)
{
	(void)shared;
	(void)fd;
	(void)group;
	(void)word;
	return -ENODEV;
}

int twheel_internal_seen(const struct twheel_area *area)
{
	(void)area;
	return 0;
}
#endif

#endif
