// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel alone, in a program: kmod/wheel.c as it is, with a tick of 1 ms, and
 * nodes that are the program's own. An expiry counts when it is delivered in its
 * own tick, however far time jumps.
 */
#include <linux/bug.h>
#include <linux/ktime.h>
#include <linux/time_namespace.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <uapi/linux/twheel.h>

#include "wheel.h"

#define TIMER struct tw_node node
#include "peer.h"

static struct tw_wheel wheel;
static struct tw_slot slots[TW_SLOTS];

static void create(struct timer *t)
{
	(void)t;
}

static void prepare(struct timer *t)
{
	(void)t;
}

static inline void arm(struct timer *t)
{
	t->node.deadline = t->deadline;
	tw_wheel_add(&wheel, &t->node);
}

static inline void modify(struct timer *t)
{
	tw_wheel_mod(&wheel, &t->node, t->deadline, 0);
}

static inline void cancel(struct timer *t)
{
	tw_wheel_del(&wheel, &t->node);
}

static inline void arm_connection(struct timer *t)
{
	arm(t);
}

static inline void push(struct timer *t)
{
	modify(t);
}

static void jump(uint64_t until)
{
	(void)until;
}

/* Those that expired in @tick */
static void deliver(s64 tick)
{
	s64 when = tick * wheel.clock.tick;
	struct tw_node *node;

	while ((node = tw_first_ready(&wheel))) {
		struct timer *t = (struct timer *)node;

		tw_wheel_pop_ready(&wheel, node);
		if (unlikely(when - t->deadline >= wheel.clock.tick))
			errx(1, "%s: a timer expired in a wrong tick", PEER.name);
		expired(t, when);
	}
}

static void turn(void (*callback)(void))
{
	struct tw_step step = {
		.now = tw_clock_floor(&wheel.clock, now),
		.stamp = now,
		.budget = U32_MAX,
	};

	if (step.now < wheel.next)
		tw_wheel_forward(&wheel, step.now);
	else
		while (tw_wheel_step(&wheel, &step))
			if (step.expired)
				deliver(step.tick);
	if (callback)
		callback();
}

static void open_peer(size_t n)
{
	struct tw_clock clock = { 0 };

	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, MS);
	tw_wheel_init(&wheel, &clock, tw_clock_floor(&clock, now));
	tw_wheel_set_slots(&wheel, slots);
	create_timers(n);
}

static void close_peer(void)
{
	destroy_timers();
}

const struct peer PEER = {
	.name = "wheel",
	.open = open_peer,
	.uniform = uniform,
	.connections = connections,
	.close = close_peer,
};
