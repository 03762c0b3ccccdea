// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of libevent: its heap, or, compiled with COMMON, its queues for those
 * whose timeout is the same for many ("common timeouts").
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#define TIMER							\
	struct event event;					\
	struct timeval delay
#include "peer.h"

static struct event_base *base;
static struct event kick;
static struct timeval timeout;
static void (*kicked)(void);

static void fired(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	expired(arg, now);
}

static void on_kick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	kicked();
}

static void create(struct timer *t)
{
	evtimer_assign(&t->event, base, fired, t);
}

static void prepare(struct timer *t)
{
	uint64_t us = (t->deadline - now + 999) / 1000;

	t->delay.tv_sec = us / 1000000;
	t->delay.tv_usec = us % 1000000;
}

static inline void arm(struct timer *t)
{
	event_add(&t->event, &t->delay);
}

static inline void modify(struct timer *t)
{
	event_add(&t->event, &t->delay);
}

static inline void cancel(struct timer *t)
{
	event_del(&t->event);
}

static inline void arm_connection(struct timer *t)
{
	event_add(&t->event, &timeout);
}

static inline void push(struct timer *t)
{
	event_add(&t->event, &timeout);
}

static void turn(void (*callback)(void))
{
	kicked = callback;
	if (callback)
		event_active(&kick, 0, 0);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static void open_peer(size_t n)
{
	timeout.tv_sec = TIMEOUT / SECOND;
	base = event_base_new();
	if (!base)
		errx(1, "event_base_new");
	event_assign(&kick, base, -1, 0, on_kick, NULL);
#ifdef COMMON
	timeout = *event_base_init_common_timeout(base, &timeout);
#endif
	create_timers(n);
}

const struct peer peer = {
#ifdef COMMON
	.name = "libevent-common",
#else
	.name = "libevent",
	.uniform = uniform,
#endif
	.bytes = sizeof(struct event),
	.open = open_peer,
	.connections = connections,
};
