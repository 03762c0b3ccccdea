// SPDX-License-Identifier: GPL-2.0
/*
 * A loop that can't watch the wheel: the error comes, the wheel's memory is the caller's at
 * once, and the loop goes to its end. Linked with --wrap of what fails.
 */

#include <stdlib.h>

#include "tap.h"

#include "twheel_uv.h"

static int init_fails, start_fails;

typeof(uv_poll_init) __real_uv_poll_init, __wrap_uv_poll_init;
typeof(uv_poll_start) __real_uv_poll_start, __wrap_uv_poll_start;

int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
	return init_fails ? init_fails : __real_uv_poll_init(loop, poll, fd);
}

int __wrap_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb)
{
	return start_fails ? start_fails : __real_uv_poll_start(poll, events, cb);
}

static void init_once(int want)
{
	struct twheel_uv *wheel = malloc(sizeof(*wheel));
	uv_loop_t loop;

	EXPECT_EQ(uv_loop_init(&loop), 0);
	EXPECT_EQ(twheel_uv_init(&loop, wheel, 0, TWHEEL_UV_SHARED), want);
	if (want) {
		free(wheel);
		wheel = NULL;
	} else {
		EXPECT_EQ(twheel_uv_close(wheel, NULL), 0);
	}
	EXPECT_EQ(uv_run(&loop, UV_RUN_DEFAULT), 0);
	EXPECT_EQ(uv_loop_close(&loop), 0);
	free(wheel);
}

static void test_init_fails(void)
{
	init_fails = UV_EEXIST;
	init_once(UV_EEXIST);
	init_fails = 0;
}

static void test_start_fails(void)
{
	start_fails = UV_ENOMEM;
	init_once(UV_ENOMEM);
	start_fails = 0;
}

static void test_none_fails(void)
{
	init_once(0);
}

int main(void)
{
	tap_start(60);
	RUN(test_init_fails, "uv_poll_init() fails");
	RUN(test_start_fails, "uv_poll_start() fails");
	RUN(test_none_fails, "neither fails");
	return tap_end();
}
