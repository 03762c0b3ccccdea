// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in the program itself puts timers of pools off (userlib/src/user/later.c): the
 * timerfd must come by the first of them all the same. Tasks of a delay queue at random,
 * under a clock that the test itself moves, also back. Linked with --wrap.
 */

#include "device.h"

#include <sys/timerfd.h>

#include <twheel_pool.h>

#define TICK MSEC
#define TASKS 200
#define OPERATIONS 30000

/* What time it is, and the time that the timerfd is set for, or 0 */
static __u64 time_now = 1000 * SEC, timer;

static struct twheel_pool *pool;
static struct twheel_task tasks[TASKS];
/* When each task expires, or 0 if it is in no pool */
static __u64 deadlines[TASKS];
/* How often it was */
static unsigned int set_back;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ time_now / SEC, time_now % SEC };
	return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old)
{
	(void)fd;
	(void)flags;
	(void)old;
	timer = when->it_value.tv_sec * SEC + when->it_value.tv_nsec;
	return 0;
}

static __u64 rnd(__u64 below)
{
	static __u64 seed = 1;

	return (random_next(&seed) >> 32) % below;
}

static void take_due(void)
{
	struct twheel_task *taken[TASKS];
	int i, nr = twheel_pool_take(pool, taken, TASKS, 0);

	EXPECT_TRUE(nr >= 0, "take: %d", nr);
	for (i = 0; i < nr; i++) {
		unsigned int task = taken[i] - tasks;

		EXPECT_TRUE(deadlines[task] && deadlines[task] <= time_now,
			    "not one that is due");
		EXPECT_TRUE(!i || taken[i - 1]->deadline <= taken[i]->deadline, "in order");
		deadlines[task] = 0;
	}
}

/* None is overdue, and the timerfd comes by the tick of the first one */
static void check_timer(void)
{
	unsigned int i;

	for (i = 0; i < TASKS; i++) {
		__u64 tick = (deadlines[i] + TICK - 1) / TICK * TICK;

		if (!deadlines[i])
			continue;
		EXPECT_TRUE(timer && timer <= tick, "at %llu: timerfd %llu, deadline %llu",
			    time_now, timer, deadlines[i]);
		EXPECT_TRUE(timer <= time_now || tick > time_now, "overdue: %llu at %llu",
			    deadlines[i], time_now);
	}
}

static void do_one(unsigned int task)
{
	__u64 delay = rnd(2) ? 1 + rnd(20 * MSEC) : 1 + rnd(SEC);
	int ret;

	if (!deadlines[task]) {
		ret = twheel_task_start(pool, &tasks[task], 0, delay, 0);
		deadlines[task] = time_now + delay;
	} else if (rnd(3)) {
		ret = twheel_task_cancel(&tasks[task]);
		deadlines[task] = 0;
	} else {
		ret = twheel_task_reset(&tasks[task], TWHEEL_ABS, time_now + delay, 0);
		deadlines[task] = time_now + delay;
	}
	EXPECT_EQ(ret, 0);
}

static void move_clock(void)
{
	if (!rnd(50) && timer > time_now) {
		time_now -= rnd(SEC);
		set_back++;
	} else if (rnd(2) && timer > time_now) {
		time_now = timer;
	} else {
		time_now += rnd(5 * MSEC);
	}
}

static void at_random(__u32 clock, unsigned int nr)
{
	const struct twheel_pool_options options = {
		.size = sizeof(options),
		.flags = TWHEEL_USER,
		.clock = clock,
		.tick = TICK,
	};
	unsigned int i;

	memset(tasks, 0, sizeof(tasks));
	memset(deadlines, 0, sizeof(deadlines));
	EXPECT_EQ(twheel_pool_new(&options, &pool), 0);
	for (i = 0; i < OPERATIONS && !tap_bad; i++) {
		do_one(rnd(nr));
		check_timer();
		if (rnd(8))
			continue;
		if (clock == TWHEEL_CLOCK_REALTIME)
			move_clock();
		else
			time_now += rnd(5 * MSEC);
		if (timer <= time_now || !rnd(4))
			take_due();
		check_timer();
	}
	EXPECT_EQ(twheel_pool_free(pool), 0);
}

static void test_monotonic(void)
{
	at_random(TWHEEL_CLOCK_MONOTONIC, TASKS);
	at_random(TWHEEL_CLOCK_MONOTONIC, 3);
}

static void test_set_back(void)
{
	at_random(TWHEEL_CLOCK_REALTIME, TASKS);
	/* Where all that is armed is often cancelled, and what was put off is left */
	at_random(TWHEEL_CLOCK_REALTIME, 3);
	EXPECT_TRUE(set_back > 20, "%u", set_back);
}

int main(void)
{
	tap_start(120);
	RUN(test_monotonic, "the timerfd comes by the first of what is put off");
	RUN(test_set_back, "and also where the clock is set back");
	return tap_end();
}
