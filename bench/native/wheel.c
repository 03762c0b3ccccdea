// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel alone, in a program: core/wheel.c and core/table.c as they are, with a tick
 * of 1 ms. Each timer has a node as long as it lives, and is found by it; nothing is
 * fetched ahead, as operations come one by one. An expiry counts when it is delivered
 * in its own tick, however far time jumps.
 */
#include <uapi/linux/twheel.h>

#include "../shim.h"
#include "wheel.h"

#define TIMER u32 index
#include "peer.h"

static struct tw_wheel wheel;
static struct tw_table table;
static struct tw_slot slots[TW_SLOTS_BYTES / sizeof(struct tw_slot)];

static inline struct tw_node *node_of(const struct timer *t)
{
	return tw_node_at(&table, t->index);
}

static void create(struct timer *t)
{
	t->index = tw_table_alloc(&table);
	node_of(t)->user_data = (uintptr_t)t;
}

static void prepare(struct timer *t)
{
	(void)t;
}

static inline void arm(struct timer *t)
{
	struct tw_node *node = node_of(t);

	node->deadline = t->deadline;
	node->flags = 0;
	tw_wheel_add(&wheel, node, t->index);
}

static inline void modify(struct timer *t)
{
	tw_wheel_mod(&wheel, node_of(t), t->index, t->deadline, 0);
}

static inline void cancel(struct timer *t)
{
	tw_wheel_del(&wheel, node_of(t), t->index);
}

static inline void arm_connection(struct timer *t)
{
	arm(t);
}

static inline void push(struct timer *t)
{
	modify(t);
}

/* Timers that expired in @tick */
static void deliver(s64 tick)
{
	s64 when = tick * wheel.clock.tick;
	struct tw_reader reader;
	struct tw_node *node;
	u32 index;

	tw_reader_init(&wheel, &reader);
	while ((node = tw_reader_next(&wheel, &reader, &index))) {
		struct timer *t = (struct timer *)(uintptr_t)node->user_data;

		if (unlikely(when - t->deadline >= wheel.clock.tick))
			errx(1, "%s: a timer expired in a wrong tick", peer.name);
		expired(t, when);
	}
	tw_reader_cut(&wheel, &reader);
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

static void open_table(size_t n)
{
	u32 chunks = n / TW_CHUNK_NODES + 1, i;
	struct tw_chunk *chunk = array(chunks, sizeof(*chunk));
	struct tw_node *nodes = array(chunks, TW_CHUNK_BYTES);

	tw_table_init(&table);
	tw_table_grow(&table, array(TW_DIR_BYTES(chunks + TW_FIRST_CHUNK), 1),
		      chunks + TW_FIRST_CHUNK);
	for (i = 0; i < chunks; i++)
		tw_table_add(&table, &chunk[i], &nodes[i * TW_CHUNK_NODES], TW_CHUNK_BYTES);
}

static void open_peer(size_t n)
{
	struct tw_clock clock = { 0 };

	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, MS);
	open_table(n);
	tw_wheel_init(&wheel, &table, &clock, tw_clock_floor(&clock, now), 0);
	tw_wheel_set_slots(&wheel, slots, false);
	create_timers(n);
}

const struct peer peer = {
	.name = "wheel",
	.open = open_peer,
	.uniform = uniform,
	.connections = connections,
};
