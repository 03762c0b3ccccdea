// SPDX-License-Identifier: GPL-2.0
/*
 * A pool over the module: how many shared timers it has, what it does without a system
 * call by them, and where it can't have them. Linked with --wrap, and POOL_SHARED is that
 * of the library.
 */

#include "device.h"

#include <stdarg.h>
#include <stdint.h>
#include <sys/uio.h>

#include <twheel_pool.h>

#ifndef POOL_SHARED
#define POOL_SHARED 4096
#endif
#define MOST_SHARED (16 * POOL_SHARED)

/* Errors that are given in place of calls, if not 0; and how many calls there were */
static int setup_error, doorbell_error, map_error;
static unsigned int ioctls, reads;

/* What the last pool was set up with */
static struct twheel_setup set_up;

int __wrap_ioctl(int fd, unsigned long cmd, ...)
{
	int error = 0;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	__atomic_add_fetch(&ioctls, 1, __ATOMIC_RELAXED);
	if (cmd == TWHEEL_IOC_SETUP) {
		set_up = *(struct twheel_setup *)arg;
		error = set_up.flags & TWHEEL_SETUP_SHARED ? setup_error : 0;
	} else if (cmd == TWHEEL_IOC_DOORBELL) {
		error = doorbell_error;
	}
	if (!error)
		return syscall(SYS_ioctl, fd, cmd, arg);
	errno = error;
	return -1;
}

void *__wrap_mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
	if (!map_error || fd < 0)
		return (void *)syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
	errno = map_error;
	return MAP_FAILED;
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int nr, off64_t at, int flags)
{
	__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
	return syscall(SYS_preadv2, fd, parts, nr, at, 0L, flags);
}

#define NR 1000

static struct twheel_pool *pool;
static struct twheel_task tasks[NR];
static unsigned int runs;

static int run(struct twheel_task *task, const struct twheel_run *run)
{
	(void)task;
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= run->deadline, "early");
	__atomic_add_fetch(&runs, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static int made(__u32 threads, __u32 capacity)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = threads, .capacity = capacity,
	};

	return twheel_pool_new(&options, &pool);
}

static struct twheel_task *fresh(unsigned int i)
{
	tasks[i] = (struct twheel_task){ .run = run };
	return &tasks[i];
}

/* Do this many starts. */
static unsigned int started(unsigned int nr, __s64 when)
{
	unsigned int i, done = 0;

	for (i = 0; i < nr; i++)
		done += !twheel_task_start(pool, fresh(i), 0, when, 0);
	return done;
}

static unsigned int cancelled(unsigned int nr)
{
	unsigned int i, done = 0;

	for (i = 0; i < nr; i++)
		done += !twheel_task_cancel(&tasks[i]);
	return done;
}

/* Start this many tasks that are due at once, and run them. */
static void run_all(unsigned int nr, __s64 when)
{
	runs = 0;
	EXPECT_EQ(started(nr, when), nr);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&runs, __ATOMIC_ACQUIRE) == nr), "%u", runs);
}

/* The task does what a pool does: with room for all, or for @capacity. */
static void check_works(unsigned int capacity)
{
	unsigned int nr = capacity && capacity < NR ? capacity : NR;

	EXPECT_EQ(started(NR, HOUR), nr);
	EXPECT_EQ(cancelled(NR), nr);
	run_all(nr, 0);
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

static void test_numbers(void)
{
	const unsigned int capacities[] = { 0, 1, 3, 4, 5, 100, 5000, 1 << 20 };
	unsigned int i, want;

	for (i = 0; i < ARRAY_SIZE(capacities); i++) {
		want = capacities[i] ?: POOL_SHARED;
		if (want > MOST_SHARED)
			want = MOST_SHARED;
		EXPECT_EQ(made(1, capacities[i]), 0);
		EXPECT_EQ(set_up.shared, want);
		check_works(capacities[i]);
	}
	EXPECT_EQ(made(0, 0), 0, "a delay queue");
	EXPECT_EQ(set_up.shared, 0);
	EXPECT_EQ(twheel_pool_free(pool), 0);
	/* As many as the module allows, and more than that */
	EXPECT_EQ(made(1, 1 << 30), 0);
	EXPECT_EQ(set_up.shared, 0);
	check_works(0);
	EXPECT_EQ(made(1, (1 << 30) + 1), -ENOSPC);
}

/*
 * With an early timer no doorbell is needed, and no read without ordinary ones: that is,
 * also after there were more tasks than numbers.
 */
static void test_no_calls(void)
{
	unsigned int n = POOL_SHARED < 100 ? POOL_SHARED - 1 : 100, round, i;
	struct twheel_task first = { .run = run };

	/* (One worker reads all that is due, for the order of tasks.) */
	EXPECT_EQ(made(2, 0), 0);
	run_all(NR, 0);
	EXPECT_EQ(twheel_task_start(pool, &first, 0, HOUR, 0), 0);
	reads = 0;
	ioctls = 0;
	for (round = 0; round < 100; round++) {
		EXPECT_EQ(started(n, 2 * HOUR), n);
		for (i = 0; i < n; i++)
			EXPECT_EQ(twheel_task_reset(&tasks[i], 0, (round % 2 ? 3 : 1) * HOUR +
						    MSEC, 0), 0);
		EXPECT_EQ(cancelled(n), n);
	}
	EXPECT_EQ(ioctls, 0);
	/* What is due at once has ordinary timers. */
	for (round = 0; round < 10; round++)
		run_all(n, MSEC);
	EXPECT_EQ(reads, 0);
	EXPECT_TRUE(ioctls >= 1, "there are doorbells, and they are counted");
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

static void test_refused(void)
{
	const int errors[] = { ENOSPC, ENOMEM, EOPNOTSUPP };
	unsigned int i, capacity;

	for (i = 0; i < 2 * ARRAY_SIZE(errors); i++) {
		setup_error = errors[i / 2];
		capacity = i % 2 ? 5 : 0;
		EXPECT_EQ(made(1, capacity), 0);
		EXPECT_EQ(set_up.shared, 0);
		EXPECT_EQ(set_up.limit, capacity);
		setup_error = 0;
		check_works(capacity);
	}
}

static void test_not_mapped(void)
{
	map_error = ENOMEM;
	reads = 0;
	EXPECT_EQ(made(1, 5), 0);
	map_error = 0;
	check_works(5);
	EXPECT_TRUE(reads >= 1, "it was refused, and reads are counted");
}

static void ended(struct twheel_task *task, int why)
{
	(void)task;
	EXPECT_TRUE(false, "the end of what was not started: %d", why);
}

static void test_doorbell(void)
{
	EXPECT_EQ(made(1, 0), 0);
	doorbell_error = EBADF;
	fresh(0)->end = ended;
	EXPECT_EQ(twheel_task_start(pool, &tasks[0], 0, MSEC, 0), -EBADF);
	doorbell_error = 0;
	EXPECT_EQ(twheel_task_cancel(&tasks[0]), -ENOENT);
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

int main(void)
{
	tap_start(60);
	RUN(test_numbers, "how many shared timers a pool has");
	RUN(test_no_calls, "no system call for start, reset, cancel and run");
	RUN(test_refused, "where shared timers are refused");
	RUN(test_not_mapped, "where they can't be mapped");
	RUN(test_doorbell, "a doorbell that can't be rung");
	return tap_end();
}
