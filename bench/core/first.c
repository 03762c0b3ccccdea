// SPDX-License-Identifier: GPL-2.0
/*
 * The core of the first edition, which the Makefile takes from the repository's
 * history, used as its kmod/plain.c and kmod/take.c used it.
 */
#include "wheel.h"
#include "edition.h"
#include "shim.h"

/* Nodes of a chunk besides its head */
#define CHUNK_CAP TW_CHUNK_CAP(TW_CHUNK_SIZE)

static struct tw_wheel wheel;
static struct tw_table table;
static struct tw_slot *slots;
static struct edition first;

static void add_chunk(struct tw_chunk *chunk)
{
	tw_chunk_format(chunk, CHUNK_CAP);
	tw_table_add(&table, chunk);
}

static void open_wheel(size_t timers)
{
	u32 chunks = timers / CHUNK_CAP + 2;
	struct tw_clock clock = {};
	u32 i;

	tw_clock_set(&clock, 1, TICK_NS);
	tw_table_init(&table);
	tw_table_grow(&table, first.alloc(chunks * sizeof(struct tw_entry), 64),
		      chunks);
	for (i = 1; i < chunks; i++)
		add_chunk(first.alloc(TW_CHUNK_SIZE, TW_CHUNK_SIZE));
	slots = first.alloc(TW_SLOTS * sizeof(*slots), 64);
	tw_wheel_init(&wheel, &clock, 0);
	tw_wheel_set_slots(&wheel, slots);
}

static void arm(struct bench_op *ops, unsigned int nr)
{
	struct bench_op *op;

	for (op = ops; op < ops + nr; op++) {
		struct tw_node *node;
		u64 id;

		node = tw_table_alloc_uncounted(&table, &id);
		op->id = id;
		node->deadline = op->deadline;
		node->user_data = op->user_data;
		tw_wheel_add_plain(&wheel, node);
	}
	table.free -= nr;
	wheel.pending += nr;
}

static void modify(struct bench_op *ops, unsigned int nr)
{
	struct tw_node *node;
	struct bench_op *op;

	for (op = ops; op < ops + nr; op++) {
		if (!tw_table_find(&table, op->id, &node) ||
		    !tw_wheel_mod_plain(&wheel, node, op->deadline))
			bench_fail("there is no such timer");
		node->user_data = op->user_data;
	}
}

static void cancel(struct bench_op *ops, unsigned int nr)
{
	struct tw_chunk *chunk;
	struct tw_node *node;
	struct bench_op *op;

	/* (No chunk is given back here, so it does not matter what is counted when.) */
	table.free += nr;
	wheel.pending -= nr;
	for (op = ops; op < ops + nr; op++) {
		if (!tw_table_find_in(&table, op->id, &chunk, &node) ||
		    !tw_wheel_del_plain(&wheel, node))
			bench_fail("there is no such timer");
		if (tw_table_put(chunk, node))
			tw_chunk_freed(&table, node);
	}
}

static unsigned int take(void)
{
	struct list_head *at = wheel.ready.nodes.next;
	s64 stamp = wheel.stamp;
	struct tw_node *node;
	unsigned int n = 0, i;

	list_for_each_entry(node, &wheel.ready.nodes, entry) {
		if (n == EVENTS)
			break;
		if (node->flags & TW_NODE_STAMPED)
			stamp = tw_stamp(node);
		bench_events[n++] = (struct bench_event){
			.user_data = node->user_data,
			.id = tw_id(node),
			.deadline = max(stamp, node->deadline),
		};
	}
	for (i = 0; i < n; i++) {
		node = list_entry(at, struct tw_node, entry);
		at = at->next;
		tw_wheel_keep_stamp(&wheel, node);
		table.free++;
		if (tw_table_put(tw_chunk_of(node), node))
			tw_chunk_freed(&table, node);
	}
	tw_wheel_cut_ready(&wheel, at, n);
	return n;
}

static size_t expire(int64_t now)
{
	struct tw_step step = {
		.now = tw_clock_floor(&wheel.clock, now),
		.stamp = now,
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
	tw_table_clear(&table);
	tw_table_take_spare(&table);
}

static struct edition first = {
	.name = "first",
	.open = open_wheel,
	.arm = arm,
	.modify = modify,
	.cancel = cancel,
	.expire = expire,
	.close = close_wheel,
};

struct edition *bench_edition(void)
{
	return &first;
}
