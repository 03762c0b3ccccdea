// SPDX-License-Identifier: GPL-2.0
/* Shared timers of /dev/twheel, which a program arms and cancels in memory. */
#define _GNU_SOURCE
#include "bench.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <twheel.h>
#include <twheel_shared.h>
#include <unistd.h>

/* When the timer goes off that stands for what else a program waits for. */
#define SOON (10 * SECOND)

static struct twheel *wheel;
static struct twheel_area area;
static size_t count;
static bool delivering;
static enum operation operation;
static const uint32_t *subject;
static uint64_t when[BATCH];
static unsigned int numbers[BATCH];

static uint64_t calls, inside;

/* (In the place of the library's, which the functions of the header get to.) */
int ioctl(int fd, unsigned long cmd, ...)
{
	uint64_t start = now();
	va_list args;
	int ret;

	va_start(args, cmd);
	ret = syscall(SYS_ioctl, fd, cmd, va_arg(args, void *));
	va_end(args);
	inside += now() - start;
	calls++;
	return ret;
}

static void sh_open(size_t timers, bool deliver)
{
	count = timers;
	delivering = deliver;
}

/* Have its pages mapped, as those of a program that has run for a while are. */
static void touch(void)
{
	char *p = (char *)area.shared;
	uint64_t i;

	for (i = 0; i < area.size; i += getpagesize())
		__atomic_fetch_or(&p[i], 0, __ATOMIC_RELAXED);
}

static void create(size_t first, unsigned int n)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.shared = count + 1,
	};
	int ret;

	(void)n;
	if (first)
		return;
	ret = twheel_open(TWHEEL_KERNEL | O_NONBLOCK, &wheel);
	if (!ret)
		ret = twheel_setup(wheel, &setup);
	if (!ret)
		ret = twheel_shared_map(wheel, &area);
	if (ret < 0)
		errx(1, "shared timers: %s", strerror(-ret));
	touch();
	if (!delivering)
		twheel_shared_arm(&area, count, now() + SOON);
}

static void destroy(size_t first, unsigned int n)
{
	if (first + n < count)
		return;
	twheel_shared_unmap(&area);
	twheel_close(wheel);
}

/* A program that sets timers knows what time it is. */
static void prepare(enum operation op, const uint32_t *timer, const uint64_t *time,
		    bool absolute, unsigned int n)
{
	uint64_t start = absolute ? 0 : now();
	unsigned int i;

	operation = op;
	subject = timer;
	for (i = 0; op != CANCEL && i < n; i++)
		when[i] = start + time[i];
}

/*
 * In functions of their own, so that the loops are plain ones. What state a timer was
 * in is of interest where one is cancelled: did that come in time? (What is constant
 * may be copied to where the compiler can keep it at hand.)
 */
static __attribute__((noinline)) void arm(unsigned int n)
{
	const struct twheel_area own = area;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (twheel_shared_arm(&own, subject[i], when[i]) < 0)
			err(1, "arm");
}

static __attribute__((noinline)) void arm_nothing(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		asm volatile("" : : "r"(subject[i]), "r"(when[i]) : "memory");
}

static __attribute__((noinline)) void cancel(unsigned int n)
{
	const struct twheel_area own = area;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (twheel_shared_cancel(&own, subject[i]) != TWHEEL_STATE_PENDING)
			errx(1, "cancel: not pending");
}

static __attribute__((noinline)) void cancel_nothing(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		asm volatile("" : : "r"(subject[i]) : "memory");
}

static void submit(unsigned int n)
{
	if (operation == CANCEL)
		cancel(n);
	else
		arm(n);
}

static void submit_nothing(unsigned int n)
{
	if (operation == CANCEL)
		cancel_nothing(n);
	else
		arm_nothing(n);
}

static void check(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		uint64_t word = area.words[subject[i]];

		if (operation == CANCEL ? word & TWHEEL_WORD_ARMED :
		    word != (when[i] | TWHEEL_WORD_ARMED))
			errx(1, "operation %d: the word is %#lx", operation, word);
	}
}

static unsigned int collect(void)
{
	return twheel_shared_take(&area, numbers, BATCH);
}

static void collect_nothing(unsigned int n)
{
	(void)n;
}

static void check_collected(unsigned int n)
{
	uint64_t by = now();
	unsigned int i;

	for (i = 0; i < n; i++)
		note_expiry(numbers[i], by);
}

static void sh_close(void)
{
}

int main(int argc, char **argv)
{
	static const struct peer shared = {
		.name = "twheel-shared",
		.batch = 1,
		.whole = SIZE_MAX,
		.open = sh_open,
		.create = create,
		.destroy = destroy,
		.prepare = prepare,
		.submit = submit,
		.submit_nothing = submit_nothing,
		.check = check,
		.collect = collect,
		.collect_nothing = collect_nothing,
		.check_collected = check_collected,
		.close = sh_close,
		.calls = &calls,
		.inside = &inside,
	};

	return bench(&shared, argc, argv);
}
