// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in the program itself, and each allocation failing in turn: what needed it
 * gives ENOMEM, and all else is as it was. Linked with --wrap.
 */

#include "device.h"

#include <twheel_pool.h>

typeof(malloc) __real_malloc, __wrap_malloc;
typeof(calloc) __real_calloc, __wrap_calloc;
typeof(aligned_alloc) __real_aligned_alloc, __wrap_aligned_alloc;

/* Which one from now on fails, if not 0; and how many came */
static unsigned int failing, came;

static bool fails(void)
{
	return ++came == failing;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

#define TIMERS 20000

static struct twheel *tw;
static struct twheel_op ops[TIMERS];
static unsigned int armed, refused;

static void count(int ret)
{
	if (ret == -ENOMEM)
		refused++;
	else
		EXPECT_EQ(ret, 0);
}

/* Do that again and again, each allocation failing in turn, until none fails any more. */
static void each_fails(void (*once)(void), unsigned int least)
{
	failing = 0;
	do {
		failing++;
		came = 0;
		refused = 0;
		once();
		EXPECT_TRUE(refused <= 1);
	} while (refused && !tap_bad);
	EXPECT_TRUE(failing > least, "%u", failing);
	tap_diag("%u allocations", failing - 1);
}

static void arm_one(__u64 interval)
{
	struct twheel_op op = twheel_op_arm(0, HOUR, interval, 0);
	int ret = twheel_arm(tw, &op);

	count(ret);
	armed += !ret;
	if (ret || interval)
		return;
	/* A timer stays what it was, if it can't become periodic */
	op = twheel_op_modify(op.id, 0, HOUR, HOUR, 0);
	count(twheel_modify(tw, &op));
}

/* More than the first directory has room for */
static void arm_many(void)
{
	unsigned int i;

	for (i = 0; i < TIMERS; i++)
		ops[i] = twheel_op_arm(0, HOUR, i % 2 ? HOUR : 0, i);
	EXPECT_EQ(twheel_submit(tw, ops, TIMERS), TIMERS);
	for (i = 0; i < TIMERS; i++) {
		count(ops[i].result);
		armed += !ops[i].result;
	}
}

static void use_wheel(void)
{
	struct twheel_info info = { .size = sizeof(info) };
	int ret = twheel_open(TWHEEL_USER, &tw);

	count(ret);
	if (ret)
		return;
	armed = 0;
	arm_one(0);
	arm_one(HOUR);
	arm_many();
	EXPECT_EQ(twheel_info(tw, &info), 0);
	EXPECT_EQ(info.pending, armed);
	EXPECT_TRUE(armed >= TIMERS + 2 - refused);
	EXPECT_EQ(twheel_drain(tw, ops, TIMERS), (int)(armed < TIMERS ? armed : TIMERS));
	twheel_close(tw);
}

static void test_wheel(void)
{
	each_fails(use_wheel, 40);
}

static int run_nothing(struct twheel_task *task, const struct twheel_run *run)
{
	(void)task;
	(void)run;
	return 0;
}

/* A task that found no place is in no pool, and a pool is there or not */
static void use_pool(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .flags = TWHEEL_USER, .threads = 2,
	};
	struct twheel_task tasks[3] = {
		{ .run = run_nothing }, { .run = run_nothing }, { .run = run_nothing },
	};
	struct twheel_pool *pool;
	int ret = twheel_pool_new(&options, &pool), i;

	count(ret);
	if (ret)
		return;
	for (i = 0; i < 3; i++) {
		ret = twheel_task_start(pool, &tasks[i], 0, HOUR, 0);
		count(ret);
		EXPECT_EQ(twheel_task_cancel(&tasks[i]), ret ? -ENOENT : 0);
	}
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

static void test_pool(void)
{
	each_fails(use_pool, 5);
}

int main(void)
{
	tap_start(120);
	RUN(test_wheel, "each allocation fails in turn");
	RUN(test_pool, "each allocation of a pool fails in turn");
	return tap_end();
}
