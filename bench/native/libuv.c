// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of libuv. They are to the millisecond.
 */
#include <uv.h>

#define TIMER							\
	uv_timer_t uv;						\
	uint64_t delay
#include "peer.h"

static uv_loop_t loop;

static void fired(uv_timer_t *uv)
{
	/* One that is pushed by uv_timer_again() would go on. */
	if (uv_timer_get_repeat(uv))
		uv_timer_stop(uv);
	expired((struct timer *)uv, now);
}

static void create(struct timer *t)
{
	uv_timer_init(&loop, &t->uv);
}

static void prepare(struct timer *t)
{
	t->delay = (t->deadline - now + MS - 1) / MS;
}

static inline void arm(struct timer *t)
{
	uv_timer_start(&t->uv, fired, t->delay, 0);
}

static inline void modify(struct timer *t)
{
	uv_timer_start(&t->uv, fired, t->delay, 0);
}

static inline void cancel(struct timer *t)
{
	uv_timer_stop(&t->uv);
}

static inline void arm_connection(struct timer *t)
{
	uv_timer_start(&t->uv, fired, TIMEOUT / MS, TIMEOUT / MS);
}

static inline void push(struct timer *t)
{
	uv_timer_again(&t->uv);
}

static void turn(void (*callback)(void))
{
	uv_run(&loop, UV_RUN_NOWAIT);
	if (callback)
		callback();
}

static void open_peer(size_t n)
{
	if (uv_loop_init(&loop))
		errx(1, "uv_loop_init");
	create_timers(n);
}

const struct peer peer = {
	.name = "libuv",
	.bytes = sizeof(uv_timer_t),
	.open = open_peer,
	.uniform = uniform,
	.connections = connections,
};
