// SPDX-License-Identifier: GPL-2.0
/*
 * What libuv says of its timers, case by case, as far as random programs don't show it, see
 * differential.c, or only a real clock does. Built over its own, by which it is seen that the
 * case is right, and over ours.
 */

#include <errno.h>

#include "tap.h"

#include "api.h"

#define MANY 1000

static any_timer_t a, b, c, many[MANY];
static any_timer_t *order[MANY + 8];
static unsigned int calls, closes;
static uint64_t began[MANY];

static void called(any_timer_t *timer)
{
	if (calls < MANY + 8)
		order[calls] = timer;
	calls++;
}

static void closed(any_timer_t *timer)
{
	(void)timer;
	closes++;
}

/* Each case has a loop of its own, with three timers */
static void begin(void)
{
	calls = 0;
	closes = 0;
	memset(order, 0, sizeof(order));
	EXPECT_EQ(open_loop(), 0);
	timer_init(&a);
	timer_init(&b);
	timer_init(&c);
}

static void close_if_open(any_timer_t *timer)
{
	if (!timer_is_closing(timer))
		timer_close(timer, NULL);
}

static void end(void)
{
	close_if_open(&a);
	close_if_open(&b);
	close_if_open(&c);
	EXPECT_EQ(uv_run(&loop, UV_RUN_DEFAULT), 0);
	EXPECT_EQ(close_loop(), 0);
}

static void test_errors(void)
{
	begin();
	EXPECT_EQ(timer_again(&a), UV_EINVAL);
	EXPECT_EQ(timer_start(&a, NULL, 0, 0), UV_EINVAL);
	timer_close(&a, closed);
	EXPECT_TRUE(timer_is_closing(&a));
	EXPECT_EQ(timer_start(&a, called, 0, 0), UV_EINVAL);
	EXPECT_TRUE(!timer_is_active(&a));
	EXPECT_EQ(closes, 0, "not from within close");
	uv_run(&loop, UV_RUN_DEFAULT);
	EXPECT_EQ(closes, 1);
	EXPECT_EQ(calls, 0);
	end();
}

static void never(any_timer_t *timer)
{
	(void)timer;
	EXPECT_TRUE(0, "called");
}

static void expect_order(any_timer_t *first, any_timer_t *second)
{
	EXPECT_EQ(calls, 2);
	EXPECT_TRUE(order[0] == first && order[1] == second);
	calls = 0;
}

static void test_order(void)
{
	begin();
	timer_start(&a, called, 0, 0);
	timer_start(&b, called, 0, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	expect_order(&a, &b);

	timer_start(&b, called, 0, 0);
	timer_start(&a, called, 0, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	expect_order(&b, &a);

	timer_start(&a, called, 7, 0);
	timer_start(&b, called, 7, 0);
	timer_start(&a, called, 7, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	expect_order(&b, &a);

	timer_start(&a, called, 9, 0);
	timer_start(&b, called, 8, 0);
	uv_sleep(30);
	uv_run(&loop, UV_RUN_DEFAULT);
	expect_order(&b, &a);
	end();
}

static void test_huge(void)
{
	begin();
	timer_start(&a, never, UINT64_MAX, 0);
	timer_start(&b, never, UINT64_MAX - 1, 0);
	timer_start(&c, called, 5, UINT64_MAX);
	EXPECT_TRUE(timer_get_due_in(&a) > INT64_MAX);
	timer_unref(&a);
	timer_unref(&b);
	/* A turn that may wait would do so for ever where @c runs at its begin. */
	do
		EXPECT_TRUE(uv_run(&loop, UV_RUN_NOWAIT) != 0);
	while (!calls);
	EXPECT_TRUE(timer_is_active(&c));
	uv_run(&loop, UV_RUN_NOWAIT);
	EXPECT_EQ(calls, 1);
	end();
}

static void test_turns(void)
{
	begin();
	timer_start(&a, called, 0, 0);
	EXPECT_EQ(calls, 0, "not from within start");
	EXPECT_EQ(uv_run(&loop, UV_RUN_ONCE), 0);
	EXPECT_EQ(calls, 1);
	timer_start(&a, called, 0, 0);
	uv_run(&loop, UV_RUN_NOWAIT);
	EXPECT_EQ(calls, 2);
	timer_start(&a, called, 86400000, 0);
	EXPECT_TRUE(uv_run(&loop, UV_RUN_NOWAIT) != 0);
	EXPECT_EQ(calls, 2);
	end();
}

static void test_ref(void)
{
	begin();
	timer_unref(&a);
	EXPECT_TRUE(!timer_has_ref(&a));
	timer_start(&a, never, 60000, 0);
	EXPECT_EQ(uv_loop_alive(&loop), 0);
	EXPECT_EQ(uv_run(&loop, UV_RUN_DEFAULT), 0);
	timer_ref(&a);
	EXPECT_TRUE(uv_loop_alive(&loop));
	timer_ref(&a);
	timer_unref(&a);
	EXPECT_EQ(uv_loop_alive(&loop), 0);
	timer_start(&b, called, 10, 0);
	EXPECT_TRUE(uv_loop_alive(&loop));
	EXPECT_EQ(uv_run(&loop, UV_RUN_DEFAULT), 0);
	EXPECT_EQ(calls, 1);
	timer_ref(&a);
	timer_stop(&a);
	EXPECT_EQ(uv_loop_alive(&loop), 0);
	timer_start(&a, never, 0, 0);
	timer_stop(&a);
	EXPECT_EQ(uv_run(&loop, UV_RUN_DEFAULT), 0);
	end();
}

static void on_time(any_timer_t *timer)
{
	uint64_t due = began[timer - many] + timer_get_repeat(timer);

	EXPECT_TRUE(uv_now(&loop) >= due, "early by %llu ms",
		    (unsigned long long)(due - uv_now(&loop)));
	EXPECT_TRUE(uv_hrtime() / 1000000 >= due);
	timer_stop(timer);
	called(timer);
}

/* Each once, none before its time, in the order of their times; by thousands */
static void test_many(void)
{
	unsigned int i, stopped = 0;

	begin();
	for (i = 0; i < MANY; i++) {
		timer_init(&many[i]);
		/* The period says for which time it was started. */
		timer_start(&many[i], on_time, i * 7 % 300, i * 7 % 300);
		began[i] = uv_now(&loop);
		if (i % 3 == 1)
			timer_again(&many[i]);
		if (i % 3 == 2)
			timer_stop(&many[i]);
		if (i % 3 == 2 && i % 2)
			timer_start(&many[i], on_time, 100, 100);
		stopped += !timer_is_active(&many[i]);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	EXPECT_EQ(calls, MANY - stopped);
	EXPECT_TRUE(stopped > MANY / 10);
	for (i = 0; i < MANY; i++)
		timer_close(&many[i], closed);
	uv_run(&loop, UV_RUN_DEFAULT);
	EXPECT_EQ(closes, MANY);
	end();
}

static void init_again(any_timer_t *timer)
{
	closed(timer);
	timer_init(timer);
	if (closes < 5) {
		timer_start(timer, called, 3600000, 0);
		timer_close(timer, init_again);
	}
}

/* The memory is the caller's from its close callback on; one end follows the other */
static void test_close_again(void)
{
	begin();
	timer_start(&a, called, 3600000, 0);
	timer_close(&a, init_again);
	uv_run(&loop, UV_RUN_DEFAULT);
	EXPECT_EQ(closes, 5);
	EXPECT_EQ(calls, 0);
	end();
}

static void freed(any_timer_t *timer)
{
	closed(timer);
	free(timer);
}

/* Nothing of a timer that is closed is left where its time would come */
static void test_freed(void)
{
	unsigned int i;

	begin();
	for (i = 0; i < 40; i++) {
		any_timer_t *timer = malloc(sizeof(*timer));

		timer_init(timer);
		timer_start(timer, never, 10, i % 2);
		if (i % 4 == 0)
			timer_stop(timer);
		timer_close(timer, freed);
	}
	timer_start(&a, called, 50, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	EXPECT_EQ(closes, 40);
	EXPECT_EQ(calls, 1);
	end();
}

static void takes_long(uv_timer_t *timer)
{
	(void)timer;
	uv_sleep(30);
}

/* Found due when the loop's own time is a while ago: the callback must not see that */
static void test_stale(void)
{
	uv_timer_t busy;

	begin();
	timer_init(&many[0]);
	began[0] = uv_now(&loop);
	timer_start(&many[0], on_time, 10, 10);
	timer_start(&a, called, 0, 0);
	uv_timer_init(&loop, &busy);
	uv_timer_start(&busy, takes_long, 0, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	EXPECT_EQ(calls, 2);
	uv_close((uv_handle_t *)&busy, NULL);
	timer_close(&many[0], NULL);
	end();
}

#ifndef NATIVE
static int init_fails, start_fails;

typeof(uv_poll_init) __real_uv_poll_init, __wrap_uv_poll_init;
typeof(uv_poll_start) __real_uv_poll_start, __wrap_uv_poll_start;

int __wrap_uv_poll_init(uv_loop_t *at, uv_poll_t *poll, int fd)
{
	return init_fails ?: __real_uv_poll_init(at, poll, fd);
}

int __wrap_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb)
{
	return start_fails ?: __real_uv_poll_start(poll, events, cb);
}

/*
 * A loop that can't watch the wheel: the error comes, the wheel's memory is the caller's at
 * once, and the loop goes to its end.
 */
static void free_wheel(struct twheel_uv *mine)
{
	free(mine);
}

static void init_once(int init, int start)
{
	struct twheel_uv *mine = malloc(sizeof(*mine));
	int ret;

	init_fails = init;
	start_fails = start;
	EXPECT_EQ(uv_loop_init(&loop), 0);
	ret = twheel_uv_init(&loop, mine, 0, SHARED);
	init_fails = 0;
	start_fails = 0;
	/* Without the module there is nothing to be watched. */
	if (!ret && !mine->tw) {
		EXPECT_EQ(twheel_uv_close(mine, free_wheel), 0);
	} else {
		EXPECT_EQ(ret, init ?: start);
		free(mine);
	}
	EXPECT_EQ(uv_run(&loop, UV_RUN_DEFAULT), 0);
	EXPECT_EQ(uv_loop_close(&loop), 0);
}

static void test_unwatched(void)
{
	init_once(UV_EEXIST, 0);
	init_once(0, UV_ENOMEM);
}

static unsigned int walked;

static void count_foreign(uv_handle_t *handle, void *arg)
{
	(void)arg;
	walked += !twheel_uv_owns(&wheel, handle);
}

static void test_wheel(void)
{
	begin();
	EXPECT_EQ(twheel_uv_close(&wheel, NULL), UV_EBUSY);
	walked = 0;
	uv_walk(&loop, count_foreign, NULL);
	EXPECT_EQ(walked, 0);
	timer_start(&a, never, 3600000, 0);
	timer_start(&a, never, 7200000, 0);
	timer_stop(&a);
	timer_close(&a, NULL);
	end();
}
#endif

int main(void)
{
	tap_start(60);
	RUN(test_errors, "errors");
	RUN(test_order, "the same time: as they were started; else by time");
	RUN(test_huge, "times that never come");
	RUN(test_turns, "one turn of the loop, waiting or not");
	RUN(test_ref, "the loop lives for those with a reference");
	RUN(test_many, "a thousand, none early, none lost");
	RUN(test_close_again, "closed, and used again by the close callback");
	RUN(test_freed, "closed and freed before their time");
	RUN(test_stale, "found due later than the loop has looked at the clock");
#ifndef NATIVE
	RUN(test_wheel, "the wheel's own handles, and when it can be closed");
	RUN(test_unwatched, "a loop that can't watch the wheel");
#endif
	return tap_end();
}
