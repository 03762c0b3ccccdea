// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order of tasks that are due: by their deadlines, and of equal ones as they were started
 * or reset. A wheel has no order within a tick. So where there is one worker, as in a delay
 * queue, all that is due is taken out of the wheel at once and sorted; what becomes due later
 * has later deadlines. Tasks wait for the worker in a list, in which all can still reach them:
 * the next one is a task's link, and the one before stands where its timer's id did.
 */

#include "pool.h"

/* More tasks than twice to the power of this are in no memory. */
#define MOST_RUNS 48

/* Is the first one to be run before the other? */
bool pool_before(const struct twheel_task *a, const struct twheel_task *b)
{
	if (a->deadline != b->deadline)
		return a->deadline < b->deadline;
	return (int32_t)(a->order - b->order) < 0;
}

static struct twheel_task *merge(struct twheel_task *a, struct twheel_task *b)
{
	struct twheel_task *first, **end = &first;

	while (a && b) {
		struct twheel_task **from = pool_before(b, a) ? &b : &a;

		*end = *from;
		end = &(*end)->link;
		*from = *end;
	}
	*end = a ?: b;
	return first;
}

/* Sorted pieces of 1, 2, 4, ... tasks wait for one of their length. */
static struct twheel_task *sort(struct twheel_task *list)
{
	struct twheel_task *waiting[MOST_RUNS] = { 0 }, *piece, *next;
	unsigned int i;

	for (; list; list = next) {
		next = list->link;
		list->link = NULL;
		piece = list;
		for (i = 0; waiting[i]; i++) {
			piece = merge(waiting[i], piece);
			waiting[i] = NULL;
		}
		waiting[i] = piece;
	}
	for (i = 0; i < MOST_RUNS; i++)
		list = merge(waiting[i], list);
	return list;
}

static void set_before(struct twheel_task *task, struct twheel_task *before)
{
	if (task)
		task->id = (uintptr_t)before;
}

static void look(struct twheel_pool *pool)
{
	struct twheel_task *task, *before = NULL;

	pool->due = sort(pool_all_due(pool));
	for (task = pool->due; task; task = task->link) {
		set_before(task, before);
		pool_set_state(task, TASK_DUE);
		before = task;
	}
}

/* A task that is to be run no more, or later */
void pool_drop_due(struct twheel_pool *pool, struct twheel_task *task)
{
	struct twheel_task *before = (struct twheel_task *)(uintptr_t)task->id;

	*(before ? &before->link : &pool->due) = task->link;
	set_before(task->link, before);
}

/* Where there is one worker: the next task that is due, or NULL. */
struct twheel_task *pool_first_due(struct twheel_pool *pool)
{
	struct twheel_task *task;

	if (!pool->due)
		look(pool);
	task = pool->due;
	if (task)
		pool_drop_due(pool, task);
	return task;
}

/* Give a task that is due another time, and arm it; or it stays the next one, with an error. */
int pool_move_due(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		  uint64_t when)
{
	int ret;

	pool_drop_due(pool, task);
	ret = pool_arm(pool, task, flags, when);
	if (!ret)
		return 0;
	set_before(pool->due, task);
	set_before(task, NULL);
	task->link = pool->due;
	pool->due = task;
	return ret;
}
