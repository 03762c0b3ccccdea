// SPDX-License-Identifier: GPL-2.0
/* A pool of twheel with one worker, for cases.h */
#include "cases.h"

#include <errno.h>
#include <semaphore.h>
#include <twheel_pool.h>

static struct twheel_pool *pool;
static struct twheel_task tasks[TIMERS], other;
static sem_t done;

const char *const nevers[] = { "LONG_MAX ns", NULL };
const int periods = 1;

static void version(void) { printf("twheel, pool, one worker"); }

static int expired(struct twheel_task *task, const struct twheel_run *run)
{
	(void)run;
	on_timer(task - tasks);
	return 0;
}

static int run_other(struct twheel_task *task, const struct twheel_run *run)
{
	(void)task;
	(void)run;
	on_ready();
	return 0;
}

static int start(int i, double delay, double period)
{
	int ret;

	/* Its run, which ended the case before, may not be over yet. */
	do {
		ret = twheel_task_start(pool, &tasks[i], 0, delay * 1e6, period * 1e6);
		if (ret == -EBUSY)
			ret = twheel_task_reset(&tasks[i], 0, delay * 1e6, period * 1e6);
	} while (ret == -ENOENT);
	return ret;
}

static int start_never(int i, int which)
{
	(void)which;
	return twheel_task_start(pool, &tasks[i], 0, INT64_MAX, 0);
}

static void stop(int i) { twheel_task_cancel(&tasks[i]); }
static double left(int i) { return i < 0 ? 0 : NAN; }
static int active(int i) { return i < 0 ? 0 : -1; }
static void run(void) { sem_wait(&done); }
static void leave(void) { sem_post(&done); }

static void watch(int fd)
{
	if (fd >= 0)
		twheel_task_start(pool, &other, 0, 0, 0);
}

int main(void)
{
	struct twheel_pool_options options = { .size = sizeof(options), .threads = 1 };
	int i;

	sem_init(&done, 0, 0);
	if (twheel_pool_new(&options, &pool))
		return 1;
	other.run = run_other;
	for (i = 0; i < TIMERS; i++)
		tasks[i].run = expired;
	cases();
	return 0;
}
