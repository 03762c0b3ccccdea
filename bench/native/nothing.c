// SPDX-License-Identifier: GPL-2.0
/*
 * No timers at all: what the program itself does between the operations, to be
 * taken off where instructions are counted.
 */
#define PEER peer
#define TIMER void *unused
#include "peer.h"

static void create(struct timer *t)
{
	(void)t;
}

static void prepare(struct timer *t)
{
	(void)t;
}

/* The compiler shall not leave out the loop around it. */
static inline void arm(struct timer *t)
{
	asm volatile("" : : "r"(t) : "memory");
}

static inline void modify(struct timer *t)
{
	arm(t);
}

static inline void cancel(struct timer *t)
{
	arm(t);
}

static inline void arm_connection(struct timer *t)
{
	arm(t);
}

static inline void push(struct timer *t)
{
	arm(t);
}

static void jump(uint64_t until)
{
	(void)until;
	left = 0;
}

static void turn(void (*callback)(void))
{
	if (callback)
		callback();
}

const struct peer peer = {
	.name = "nothing",
	.open = create_timers,
	.uniform = uniform,
	.connections = connections,
	.close = destroy_timers,
};
