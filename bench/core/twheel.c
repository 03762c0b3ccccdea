// SPDX-License-Identifier: GPL-2.0
/*
 * The core of this tree, used as kmod/ops.c and kmod/read.c use it.
 * With PREFETCH 0, nothing is prefetched for a batch.
 */
#include <uapi/linux/twheel.h>

#include "../shim.h"
#include "ahead.h"
#include "edition.h"

#ifndef PREFETCH
#define PREFETCH 1
#endif

#define KMALLOC_BYTES 192

static struct tw_wheel wheel;
static struct tw_table table;
static struct edition twheel;

static struct bench_event bench_events[EVENTS];

static void open_wheel(size_t timers)
{
	u32 chunks = timers / TW_CHUNK_NODES + 2;
	struct tw_clock clock = {};
	struct tw_chunk *chunk;
	u32 i;

	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, TICK_NS);
	tw_table_init(&table);
	tw_table_grow(&table, twheel.alloc(TW_DIR_BYTES(chunks), 64), chunks);
	/* (As far apart as kmalloc() puts them) */
	chunk = twheel.alloc(chunks * KMALLOC_BYTES, 64);
	for (i = 1; i < chunks; i++)
		tw_table_add(&table, (void *)chunk + i * KMALLOC_BYTES,
			     twheel.alloc(TW_CHUNK_BYTES, TW_CHUNK_BYTES), TW_CHUNK_BYTES);
	tw_wheel_init(&wheel, &table, &clock, 0, 0);
	tw_wheel_set_slots(&wheel, twheel.alloc(TW_SLOTS_BYTES, 64), false);
}

static void arm(struct bench_op *op, unsigned int nr)
{
	const struct bench_op *end = op + nr;

	for (; op < end; op++) {
		u32 index;
		struct tw_node *node = tw_node_begin(&table, &index);

		op->id = tw_id(node, index);
		node->deadline = op->deadline;
		node->user_data = op->user_data;
		node->flags = 0;
		tw_wheel_add(&wheel, node, index);
	}
}

/* Begin to prefetch. */
static void begin(struct tw_ahead *ahead, struct bench_op *ops, unsigned int nr, u8 opcode)
{
	struct twheel_op *first = (void *)ops;

	*ahead = (struct tw_ahead){ .table = &table };
	if (!PREFETCH)
		return;
	first->opcode = opcode;
	first->flags = TWHEEL_ABS;
	tw_ahead_begin(ahead, &table, ops, nr, sizeof(*ops), 0);
}

static void modify(struct bench_op *op, unsigned int nr)
{
	const struct bench_op *end = op + nr;
	struct tw_ahead ahead;
	struct tw_node *node;
	u32 index;

	begin(&ahead, op, nr, TWHEEL_OP_MODIFY);
	for (; op < end; op++) {
		tw_ahead(&ahead, op, sizeof(*op));
		if (!tw_table_find(&table, op->id, &node, &index))
			errx(1, "there is no such timer");
		tw_wheel_mod(&wheel, node, index, op->deadline, 0);
		node->user_data = op->user_data;
	}
}

static void cancel(struct bench_op *op, unsigned int nr)
{
	const struct bench_op *end = op + nr;
	struct tw_ahead ahead;
	struct tw_node *node;
	u32 index;

	begin(&ahead, op, nr, TWHEEL_OP_CANCEL);
	for (; op < end; op++) {
		tw_ahead(&ahead, op, sizeof(*op));
		if (!tw_table_find(&table, op->id, &node, &index))
			errx(1, "there is no such timer");
		tw_wheel_del(&wheel, node, index);
		tw_node_end(&table, node, index);
	}
}

static unsigned int take(void)
{
	struct tw_reader reader;
	struct tw_node *node;
	unsigned int n = 0, i;
	u32 index;

	tw_reader_init(&wheel, &reader);
	while (n < EVENTS && (node = tw_reader_next(&wheel, &reader, &index))) {
		bench_events[n++] = (struct bench_event){
			.user_data = node->user_data,
			.id = tw_id(node, index),
			.deadline = node->deadline,
		};
	}
	tw_reader_cut(&wheel, &reader);
	for (i = 0; i < n; i++) {
		index = bench_events[i].id;
		tw_node_end(&table, tw_node_at(&table, index), index);
	}
	return n;
}

static size_t expire(int64_t now)
{
	struct tw_step step = {
		.now = tw_clock_floor(&wheel.clock, now),
		.budget = U32_MAX,
	};
	size_t expired = 0, n;

	if (step.now < wheel.next)
		return 0;
	while (tw_wheel_step(&wheel, &step))
		step.budget = 256;
	do {
		n = take();
		expired += n;
	} while (n);
	return expired;
}

static void close_wheel(void)
{
	while (tw_table_take_chunk(&table))
		;
	tw_table_end(&table);
}

static struct edition twheel = {
	.name = "twheel",
	.open = open_wheel,
	.arm = arm,
	.modify = modify,
	.cancel = cancel,
	.expire = expire,
	.close = close_wheel,
};

struct edition *bench_edition(void)
{
	return &twheel;
}
