// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of the library that take pointers to numbers or functions, with the types
 * that programs have, which are not those of the kernel: C++ takes no pointer to another
 * type. It is only compiled.
 */

#include <twheel.h>
#include <twheel_pool.h>
#include <twheel_shared.h>

static void done(const struct twheel_op *, void *)
{
}

static void expired(struct twheel *, struct twheel_timer *, const struct twheel_event *)
{
}

static void left(struct twheel_task *, void *)
{
}

static int64_t next(struct twheel_task *, uint64_t now, uint64_t period)
{
	return static_cast<int64_t>(now % period);
}

int calls(struct twheel *tw, struct twheel_pool *pool, struct twheel_task *task)
{
	struct twheel_op op = twheel_op_arm(0, uint64_t(1), uint64_t(0), uint64_t(42));
	struct twheel_batch *batch;
	struct twheel_timer timer;
	struct twheel_area area;
	unsigned int number;
	uint64_t count = op.id;
	int ret = twheel_read_count(tw, &count);

	ret |= twheel_batch_new(tw, 1, done, 0, &batch);
	twheel_timer_init(&timer, expired, 0);
	ret |= twheel_shared_map(tw, &area);
	ret |= twheel_shared_take(&area, &number, 1) != 0;
	task->next = next;
	ret |= twheel_pool_stop(pool, TWHEEL_RUN_ONCE, left, 0);
	return ret;
}
