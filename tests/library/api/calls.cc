// SPDX-License-Identifier: GPL-2.0
/*
 * Each function of the library once, as C++ has it, which takes no pointer to another
 * type: with the types that programs have, which are not those of the kernel. It is only
 * compiled.
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

int timers(struct twheel *&tw)
{
	struct twheel_op op = twheel_op_arm(0, uint64_t(1), uint64_t(0), uint64_t(42));
	uint64_t id = op.id;
	int ret = 0;

	ret |= twheel_open(TWHEEL_USER, &tw);
	ret |= twheel_from_fd(0, &tw);
	ret |= twheel_fd(tw);
	ret |= twheel_backend(tw);
	ret |= twheel_arm(tw, &op);
	op = twheel_op_modify(id, TWHEEL_ABS, uint64_t(1), uint64_t(0), uint64_t(42));
	ret |= twheel_modify(tw, &op);
	op = twheel_op_query(id);
	ret |= twheel_query(tw, &op);
	op = twheel_op_cancel(id);
	ret |= twheel_cancel(tw, id);
	ret |= twheel_submit(tw, &op, 1);
	ret |= twheel_drain(tw, &op, 1);
	return ret;
}

int wheels(struct twheel *tw)
{
	struct twheel_setup setup = {};
	struct twheel_info info = {};
	struct twheel_stats stats = {};
	struct twheel_event event;
	uint64_t count = 0;
	uint64_t now = twheel_now(tw);
	int ret = now != 0;

	ret |= twheel_setup(tw, &setup);
	ret |= twheel_info(tw, &info);
	ret |= twheel_stats(tw, &stats);
	ret |= twheel_set_eventfd(tw, -1);
	ret |= twheel_read(tw, &event, 1);
	ret |= twheel_read_count(tw, &count);
	twheel_close(tw);
	return ret;
}

int callbacks(struct twheel *tw)
{
	struct twheel_batch *batch;
	struct twheel_timer timer;
	struct twheel_op op = twheel_op_query(uint64_t(1));
	int ret = 0;

	ret |= twheel_batch_new(tw, 1, done, 0, &batch);
	ret |= twheel_batch_add(batch, &op);
	ret |= twheel_batch_flush(batch);
	twheel_batch_free(batch);
	twheel_timer_init(&timer, expired, 0);
	ret |= twheel_timer_arm(tw, &timer, 0, uint64_t(1), uint64_t(0));
	ret |= twheel_timer_cancel(tw, &timer);
	ret |= twheel_run_once(tw, -1);
	return ret;
}

int shared(struct twheel *tw)
{
	struct twheel_area area;
	unsigned int timer;
	int ret = 0;

	ret |= twheel_shared_map(tw, &area);
	ret |= twheel_shared_recover(&area);
	ret |= twheel_shared_arm(&area, 0, uint64_t(1));
	ret |= twheel_shared_cancel(&area, 0);
	ret |= twheel_shared_take(&area, &timer, 1) != 0;
	twheel_shared_unmap(&area);
	return ret;
}

int pools(struct twheel_task *task)
{
	struct twheel_pool_options options = {};
	struct twheel_pool *pool;
	int64_t when = 1;
	uint64_t period = 1;
	int ret = 0;

	task->next = next;
	ret |= twheel_pool_new(&options, &pool);
	ret |= twheel_pool_fd(pool);
	ret |= twheel_pool_take(pool, &task, 1, when);
	ret |= twheel_pool_stop(pool, TWHEEL_RUN_ONCE, left, 0);
	ret |= twheel_task_start(pool, task, 0, when, period);
	ret |= twheel_task_reset(task, 0, when, period);
	ret |= twheel_task_run_now(task);
	ret |= twheel_task_cancel(task);
	ret |= twheel_task_cancel_wait(task);
	ret |= twheel_pool_free(pool);
	return ret;
}
