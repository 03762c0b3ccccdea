// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Timers of tasks, of whichever kind they are: see pool.c for when they are armed.
 *
 * Without the module they are in a wheel in the program. Over the module, or a BPF program,
 * a pool with workers has shared timers, which take no system call, and ordinary ones for
 * tasks beyond their number or beyond the latest time of a shared one, for those that are due
 * at once, and where it could have none. (Where there is one worker, it reads all that is due
 * at once.)
 *
 * The number of a shared timer is a task's from when it is armed until it is taken, or
 * disarmed. All of that is under the lock of the pool, so nobody has taken an expiry and
 * not acted on it when a number is given back: the next task to have it gets no expiry of
 * the one before.
 *
 * A delay queue has ordinary ones only. It gives tasks in the order of their ticks, also
 * where they are taken one by one, and shared timers come in the order in which the kernel
 * found that they had expired.
 */

#include <fcntl.h>
#include <stdlib.h>

#include "pool.h"

/*
 * Shared timers of a pool that may have any number of tasks, as most have few: 260 KB. And
 * most of one that said for how many it is: 1.8 MB.
 */
#ifndef POOL_SHARED
#define POOL_SHARED 4096
#endif
#define MOST_SHARED (16 * POOL_SHARED)

/* The word of a shared timer has no room for this deadline, nor for later ones. */
#define SHARED_END (TWHEEL_WORD_NEVER - 1)

/* How many shared timers the pool shall have. */
static uint32_t wanted(const struct twheel_pool *pool, uint32_t capacity)
{
	const struct twheel *tw = pool->tw;

	if (!pool->threads)
		return 0;
	/* (A BPF program gives no order to what it finds late, and one worker keeps one.) */
	if (tw->user && (pool->threads == 1 || tw->choice == TWHEEL_USER || bpf_may()))
		return 0;
	if (!capacity)
		return POOL_SHARED;
	return capacity < MOST_SHARED ? capacity : MOST_SHARED;
}

/* Shared timers count as held, and any task may need an ordinary one nevertheless. */
static int set_up(struct twheel_pool *pool, const struct twheel_pool_options *options,
		  uint32_t shared)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = shared ? TWHEEL_SETUP_SHARED : 0,
		.clock = options->clock ?: TWHEEL_CLOCK_MONOTONIC,
		.tick = options->tick,
		.limit = options->capacity ? (uint64_t)options->capacity + shared : 0,
		.shared = shared,
	};

	return twheel_setup(pool->tw, &setup);
}

/* What can't be had, the pool does without. */
static void map(struct twheel_pool *pool, uint32_t shared)
{
	pool->numbers = malloc(shared * sizeof(pool->numbers[0]));
	if (pool->numbers)
		twheel_shared_map(pool->tw, &pool->area);
}

/* A wheel for the pool, which is to be closed also if that fails. */
int pool_open_timers(struct twheel_pool *pool, const struct twheel_pool_options *options)
{
	int ret = twheel_open(options->flags | O_NONBLOCK, &pool->tw);
	struct twheel_info info = { .size = sizeof(info) };
	uint32_t shared;

	if (ret)
		return ret;
	shared = wanted(pool, options->capacity);
	if (!shared || set_up(pool, options, shared))
		return set_up(pool, options, 0);
	ret = twheel_info(pool->tw, &info);
	if (ret)
		return ret;
	pool->tick = info.tick;
	map(pool, shared);
	return 0;
}

void pool_close_timers(struct twheel_pool *pool)
{
	if (pool->area.nr)
		twheel_shared_unmap(&pool->area);
	free(pool->numbers);
	twheel_close(pool->tw);
}

static bool has_number(const struct twheel_pool *pool)
{
	return pool->free || pool->fresh < pool->area.nr;
}

/* There is one. */
static void get_number(struct twheel_pool *pool, struct twheel_task *task)
{
	task->number = pool->free;
	if (task->number)
		pool->free = pool->numbers[task->number - 1].next_free;
	else
		task->number = ++pool->fresh;
	pool->numbers[task->number - 1].task = task;
}

/* Its timer is not armed any more. */
static void put_number(struct twheel_pool *pool, struct twheel_task *task)
{
	pool->numbers[task->number - 1].next_free = pool->free;
	pool->free = task->number;
	task->number = 0;
}

static void disarm_shared(struct twheel_pool *pool, struct twheel_task *task)
{
	twheel_shared_cancel(&pool->area, task->number - 1);
	put_number(pool, task);
}

/* Less than SHARED_END, as @deadline is. */
static uint64_t round_up(const struct twheel_pool *pool, uint64_t deadline)
{
	uint64_t end = deadline + pool->tick - 1;

	return end - end % pool->tick < SHARED_END ? end - end % pool->tick : deadline;
}

/*
 * The kernel expires one that it finds within the tick of its deadline at once, and one that it
 * knew before at the end of that. Both are to come then where there is an order, see pool_due.c.
 */
static int set_shared(struct twheel_pool *pool, struct twheel_task *task, uint64_t deadline)
{
	uint64_t at = pool->threads == 1 ? round_up(pool, deadline) : deadline;
	int ret = twheel_shared_arm(&pool->area, task->number - 1, at);

	task->deadline = deadline;
	return ret < 0 ? ret : 0;
}

static int arm_shared(struct twheel_pool *pool, struct twheel_task *task, uint64_t deadline)
{
	int ret;

	get_number(pool, task);
	ret = set_shared(pool, task, deadline);
	if (ret)
		disarm_shared(pool, task);
	return ret;
}

static int arm_ordinary(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
			uint64_t when)
{
	struct twheel_op op = twheel_op_arm(flags, when, 0, (uintptr_t)task);
	int ret = twheel_arm(pool->tw, &op);

	if (ret)
		return ret;
	task->id = op.id;
	pool->ordinary++;
	return 0;
}

static uint64_t deadline_of(const struct twheel_pool *pool, uint32_t flags, uint64_t when)
{
	return flags ? when : pool_add(twheel_now(pool->tw), when);
}

/*
 * Shall it be an ordinary timer though there are others? One that is due is ready at once,
 * while the kernel may come to a shared one at the end of this tick.
 */
static bool is_ordinary(const struct twheel_pool *pool, uint32_t flags, uint64_t when,
			uint64_t deadline)
{
	if (deadline >= SHARED_END)
		return true;
	return flags ? when <= twheel_now(pool->tw) : !when;
}

/* The latest one that it can have, if it can't have a later one */
static uint64_t shared_deadline(uint64_t deadline)
{
	return deadline < SHARED_END ? deadline : SHARED_END - 1;
}

static int arm_timer(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		     uint64_t when)
{
	uint64_t deadline;

	if (!has_number(pool))
		return arm_ordinary(pool, task, flags, when);
	deadline = deadline_of(pool, flags, when);
	if (is_ordinary(pool, flags, when, deadline) &&
	    !arm_ordinary(pool, task, flags, when))
		return 0;
	return arm_shared(pool, task, shared_deadline(deadline));
}

/* Returns 0, and then the task is armed; or a negative error. */
int pool_arm(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags, uint64_t when)
{
	struct user_wheel *user = pool_user(pool);
	int ret;

	flags &= TWHEEL_ABS;
	if (user)
		ret = user_arm(user, flags, when, (uintptr_t)task, &task->id);
	else
		ret = arm_timer(pool, task, flags, when);
	if (ret)
		return ret;
	task->flags &= ~TASK_RESET;
	__atomic_store_n(&task->pool, pool, __ATOMIC_RELAXED);
	pool_set_state(task, TASK_ARMED);
	return 0;
}

static int move_shared(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		       uint64_t when)
{
	uint64_t deadline = deadline_of(pool, flags, when);

	if (is_ordinary(pool, flags, when, deadline) &&
	    !arm_ordinary(pool, task, flags, when)) {
		disarm_shared(pool, task);
		return 0;
	}
	return set_shared(pool, task, shared_deadline(deadline));
}

/* See pool_move(). */
int pool_move_module(struct twheel_pool *pool, struct twheel_task *task, uint32_t flags,
		     uint64_t when)
{
	struct twheel_op op;

	if (task->number)
		return move_shared(pool, task, flags, when);
	op = twheel_op_modify(task->id, flags, when, 0, (uintptr_t)task);
	return twheel_modify(pool->tw, &op);
}

/* See pool_disarm(). */
int pool_disarm_module(struct twheel_pool *pool, struct twheel_task *task)
{
	int ret;

	if (task->number) {
		disarm_shared(pool, task);
		return 0;
	}
	ret = twheel_cancel(pool->tw, task->id);
	if (!ret)
		pool->ordinary--;
	return ret;
}

/* The task of a shared timer that is not armed any more */
static struct twheel_task *end_shared(struct twheel_pool *pool, uint64_t number)
{
	struct twheel_task *task = pool->numbers[number].task;

	put_number(pool, task);
	return task;
}

/* The task of a timer that is not in the wheel any more */
static struct twheel_task *end_ordinary(struct twheel_pool *pool, uint64_t user_data,
					uint64_t deadline)
{
	struct twheel_task *task = (struct twheel_task *)(uintptr_t)user_data;

	task->deadline = deadline;
	if (!pool_user(pool))
		pool->ordinary--;
	return task;
}

static struct twheel_task *end_read(struct twheel_pool *pool, const struct twheel_event *event)
{
	if (event->flags & TWHEEL_EVENT_SHARED)
		return end_shared(pool, event->user_data);
	return end_ordinary(pool, event->user_data, event->deadline);
}

/**
 * pool_next_due() - take a task that is due out of the wheel
 * @pool: the pool
 *
 * Where there are timers of both kinds, they take turns: if more comes than workers can
 * run, neither kind waits for ever. (A read gives ordinary ones first.)
 *
 * Return: the task, with its deadline, or NULL.
 */
struct twheel_task *pool_next_due(struct twheel_pool *pool)
{
	struct twheel_event event;
	unsigned int number;

	if (pool->area.nr) {
		if (pool->ordinary)
			pool->turn = !pool->turn;
		if ((!pool->ordinary || pool->turn) &&
		    twheel_shared_take(&pool->area, &number, 1))
			return end_shared(pool, number);
		/* A wheel in the program is to be called when it is readable, if for nothing. */
		if (!pool->ordinary && !pool->tw->user)
			return NULL;
	}
	if (read_events(pool->tw, &event, 1, true) != 1)
		return NULL;
	return end_read(pool, &event);
}

/**
 * pool_read_due() - take tasks that are due out of a wheel in which none is a shared timer
 * @pool: the pool
 * @tasks: out: which, with their deadlines
 * @max: room in @tasks
 *
 * Return: how many, %POOL_TAKEN at most, or a negative error.
 */
int pool_read_due(struct twheel_pool *pool, struct twheel_task **tasks, unsigned int max)
{
	struct twheel_event events[POOL_TAKEN];
	int i, nr = read_events(pool->tw, events, max < POOL_TAKEN ? max : POOL_TAKEN, true);

	for (i = 0; i < nr; i++)
		tasks[i] = end_read(pool, &events[i]);
	return nr;
}

/* Returns where the next one is to be entered. */
static struct twheel_task **add(struct twheel_task **end, struct twheel_task *task)
{
	*end = task;
	return &task->link;
}

/* Pending and ready ones are the same there. One that is free is neither. */
static struct twheel_task **drain_shared(struct twheel_pool *pool, struct twheel_task **end)
{
	uint32_t i;

	for (i = 0; i < pool->fresh; i++)
		if (twheel_shared_cancel(&pool->area, i) != TWHEEL_STATE_NONE)
			end = add(end, end_shared(pool, i));
	return end;
}

/* A signal is no reason to leave any there. */
static bool goes_on(int ret)
{
	return ret > 0 || ret == -EINTR;
}

static struct twheel_task **drain_pending(struct twheel_pool *pool, struct twheel_task **end)
{
	struct twheel_op ops[POOL_TAKEN];
	int i, nr;

	do {
		nr = twheel_drain(pool->tw, ops, POOL_TAKEN);
		for (i = 0; i < nr; i++)
			end = add(end, end_ordinary(pool, ops[i].user_data, ops[i].deadline));
	} while (goes_on(nr));
	return end;
}

static struct twheel_task **take_ready(struct twheel_pool *pool, struct twheel_task **end)
{
	struct twheel_task *tasks[POOL_TAKEN];
	int i, nr;

	do {
		nr = pool_read_due(pool, tasks, POOL_TAKEN);
		for (i = 0; i < nr; i++)
			end = add(end, tasks[i]);
	} while (goes_on(nr));
	return end;
}

/*
 * All tasks that are due, out of the wheel, with their deadlines; each is the link of one. If
 * the kernel has put no shared timer into the ring, and there are no others, none is looked for
 * that it has yet to find.
 */
struct twheel_task *pool_all_due(struct twheel_pool *pool)
{
	struct twheel_task *list = NULL, **end = &list;
	unsigned int number;

	if (pool->area.nr && !pool->ordinary) {
		if (!twheel_shared_take(&pool->area, &number, 1))
			return NULL;
		end = add(end, end_shared(pool, number));
	}
	end = take_ready(pool, end);
	*end = NULL;
	return list;
}

/*
 * All tasks that are armed or due, out of the wheel, with their deadlines; each is the link of
 * one. Those that are due come first, in the order in which they became so.
 */
struct twheel_task *pool_drain(struct twheel_pool *pool)
{
	struct twheel_task *list = pool->due, *pending, **end = &list;

	pool->due = NULL;
	while (*end)
		end = &(*end)->link;
	*drain_pending(pool, drain_shared(pool, &pending)) = NULL;
	*take_ready(pool, end) = pending;
	return list;
}
