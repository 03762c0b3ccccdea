// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of libev. A timer that is put off is started again by ev_timer_again(),
 * which its manual recommends, as it moves the timer within the heap.
 */
#include <ev.h>

#define TIMER							\
	struct ev_timer ev;					\
	double delay
#include "peer.h"

static struct ev_loop *loop;

static void fired(EV_P_ struct ev_timer *w, int events)
{
	(void)events;
	/* One that is started by ev_timer_again() would go on. */
	if (w->repeat)
		ev_timer_stop(EV_A_ w);
	/* Its time is a double, which has less digits than ours. */
	expired((struct timer *)w, now + 1000);
}

static void create(struct timer *t)
{
	ev_timer_init(&t->ev, fired, 0, 0);
}

static void prepare(struct timer *t)
{
	t->delay = (t->deadline - now) / 1e9;
}

static inline void arm(struct timer *t)
{
	ev_timer_set(&t->ev, t->delay, 0);
	ev_timer_start(loop, &t->ev);
}

static inline void modify(struct timer *t)
{
	t->ev.repeat = t->delay;
	ev_timer_again(loop, &t->ev);
}

static inline void cancel(struct timer *t)
{
	ev_timer_stop(loop, &t->ev);
}

static inline void push(struct timer *t)
{
	t->ev.repeat = TIMEOUT / SECOND;
	ev_timer_again(loop, &t->ev);
}

static inline void arm_connection(struct timer *t)
{
	push(t);
}

static void turn(void (*callback)(void))
{
	ev_run(loop, EVRUN_NOWAIT);
	if (callback)
		callback();
}

static void open_peer(size_t n)
{
	loop = ev_loop_new(EVBACKEND_EPOLL);
	if (!loop)
		errx(1, "ev_loop_new");
	create_timers(n);
}

const struct peer peer = {
	.name = "libev",
	.bytes = sizeof(ev_timer),
	.open = open_peer,
	.uniform = uniform,
	.connections = connections,
};
