// SPDX-License-Identifier: GPL-2.0
/*
 * Batches whose nodes are prefetched: at its turn, all that an operation needs has been
 * prefetched, or was used by an operation before it; and nothing but what is a node is ever
 * looked at, nor any operation that is not of the batch, whatever ids a program makes up
 * and whenever it changes them.
 */
#include <linux/prefetch.h>
#include <stdlib.h>
#include <string.h>
#include <uapi/linux/twheel.h>

/* What is prefetched, the test wants to know. */
static void now_here(const void *what);
#define prefetchw(what) now_here(what)
#include "sizes.h"
/* (The table is small.) */
#undef TW_AHEAD_CHUNKS
#define TW_AHEAD_CHUNKS 3
#include "ahead.h"
#include "host.h"

#define BATCH 300
#define MOST 4000
#define BATCHES 3000
#define TICK_NS 10

static struct tw_table table;
static struct tw_wheel wheel;
static struct tw_slot slots[TW_SLOTS_BYTES / sizeof(struct tw_slot)];
static u64 live[MOST];
static u32 nr_live;

/* A set of what is in the cache: hashed addresses */
static const void *here[1 << 14];

static const void **place_of(const void *what)
{
	u32 at = (u32)((uintptr_t)what >> TW_NODE_SHIFT) * 2654435761U >> 18;

	while (here[at] && here[at] != what)
		at = (at + 1) % ARRAY_SIZE(here);
	return &here[at];
}

static void now_here(const void *what)
{
	*place_of(what) = what;
}

static bool is_here(const void *what)
{
	return *place_of(what);
}

static s64 any_deadline(void)
{
	return 1 + host_below(host_chance(2) ? 3000 : 3000000);
}

static void add_chunk(void)
{
	u32 more = table.max_chunks + 1;

	if (tw_table_full(&table))
		free(tw_table_grow(&table, malloc(TW_DIR_BYTES(more)), more));
	tw_table_add(&table, malloc(sizeof(struct tw_chunk)),
		     calloc(1, TW_CHUNK_BYTES), TW_CHUNK_BYTES);
}

static void give_back(void)
{
	struct tw_chunk *spare = tw_table_detach_spare(&table), *next;

	for (; spare; spare = next) {
		next = spare->next;
		free(spare->nodes);
		free(spare);
	}
}

static void arm(void)
{
	struct tw_node *node;
	u32 index;

	if (!table.free)
		add_chunk();
	node = tw_node_begin(&table, &index);
	node->deadline = any_deadline();
	node->flags = 0;
	tw_wheel_add(&wheel, node, index);
	live[nr_live++] = tw_id(node, index);
}

/* Most are of timers, and some of them more than once in a batch. */
static u64 any_id(void)
{
	u64 id = nr_live ? live[host_below(nr_live)] : 0;

	switch (host_below(12)) {
	case 0:
		return host_random();
	case 1:
		return id ^ 1ULL << host_below(64);
	case 2:
		return (u32)id;
	case 3:
		return (id & ~(u64)U32_MAX) |
		       host_below((table.nr_chunks + 2) << TW_CHUNK_SHIFT);
	default:
		return id;
	}
}

static void forget(u64 id)
{
	u32 i = 0;

	while (live[i] != id)
		i++;
	live[i] = live[--nr_live];
}

static void links_here(const struct tw_node *node)
{
	now_here(tw_node_at(&table, node->prev));
	now_here(tw_node_at(&table, node->next));
}

static void do_op(struct tw_node *node, u32 index, u64 id, bool del, s64 deadline)
{
	now_here(node);
	links_here(node);
	if (!del) {
		tw_wheel_mod(&wheel, node, index, deadline, 0);
		links_here(node);
		return;
	}
	tw_wheel_del(&wheel, node, index);
	tw_node_end(&table, node, index);
	forget(id);
}

/* @used: nodes of operations before */
static void see_that_here(const struct tw_node *node, bool del, s64 deadline, bool used)
{
	ASSERT_TRUE(is_here(node));
	/* A deadline that has changed since makes it leave a list or stay. */
	if (used || (!del && tw_wheel_stays(node, deadline)))
		return;
	ASSERT_TRUE(is_here(tw_node_at(&table, node->prev)));
	ASSERT_TRUE(is_here(tw_node_at(&table, node->next)));
}

static bool is_in(const u64 *ids, unsigned int nr, u64 id)
{
	while (nr--)
		if ((u32)ids[nr] == (u32)id)
			return true;
	return false;
}

static void batch(void)
{
	unsigned int n, nr = 1 + host_below(host_chance(4) ? 3 : BATCH);
	bool del = host_chance(3), hostile = host_chance(2), full = host_chance(2);
	u32 once = del ? TWHEEL_OP_SIZE_ID : TWHEEL_OP_SIZE_ONCE;
	u32 index, size = full ? TWHEEL_OP_SIZE_FULL : once;
	s64 base = host_below(1000);
	/* As long as need be, so that it is seen what looks beyond */
	void *ops = calloc(nr, size);
	struct twheel_op *op = ops;
	struct tw_node *node;
	struct tw_ahead ahead;
	u64 done[BATCH];

	memset(here, 0, sizeof(here));
	op->opcode = del ? TWHEEL_OP_CANCEL : TWHEEL_OP_MODIFY;
	op->flags = host_chance(2) ? TWHEEL_ABS : 0;
	for (n = 0; n < nr; n++, op = (void *)op + size) {
		op->id = any_id();
		if (!del)
			op->deadline = any_deadline();
	}
	op = ops;
	if (op->flags)
		base = 0;
	/* Whatever is in the memory */
	memset(&ahead, host_below(256), sizeof(ahead));
	tw_ahead_begin(&ahead, &table, ops, nr, size, base);
	ASSERT_EQ(!!ahead.end, nr >= TW_AHEAD_LEAST && table.nr_chunks >= TW_AHEAD_CHUNKS);
	for (n = 0; n < nr; n++, op = (void *)op + size) {
		s64 deadline = 0;

		tw_ahead(&ahead, op, size);
		if (hostile)
			((struct twheel_op *)(ops + (n + host_below(nr - n)) * size))->id =
				any_id();
		done[n] = op->id;
		if (!tw_table_find(&table, op->id, &node, &index))
			continue;
		if (!del)
			deadline = op->deadline + base;
		if (ahead.end && !hostile)
			see_that_here(node, del, deadline, is_in(done, n, op->id));
		do_op(node, index, op->id, del, deadline);
	}
	free(ops);
}

/* What makes new timers, or is little, prefetches nothing. */
static void nothing(void)
{
	struct twheel_op *ops = calloc(TW_AHEAD_LEAST, sizeof(*ops));
	struct tw_ahead ahead;

	memset(here, 0, sizeof(here));
	for (unsigned int opcode = 0; opcode < 8; opcode++) {
		ops[0].opcode = opcode;
		tw_ahead_begin(&ahead, &table, ops, TW_AHEAD_LEAST - 1, sizeof(*ops), 0);
		tw_ahead(&ahead, ops, sizeof(*ops));
		if (opcode == TWHEEL_OP_MODIFY || opcode == TWHEEL_OP_CANCEL)
			continue;
		tw_ahead_begin(&ahead, &table, ops, TW_AHEAD_LEAST, sizeof(*ops), 0);
		tw_ahead(&ahead, ops, sizeof(*ops));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(here); i++)
		ASSERT_TRUE(!here[i]);
	free(ops);
}

static void begin(void)
{
	struct tw_clock clock = {};

	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, TICK_NS);
	tw_table_init(&table);
	tw_wheel_init(&wheel, &table, &clock, 0, 0);
	tw_wheel_set_slots(&wheel, slots, false);
}

static void batches(void)
{
	struct tw_chunk *chunk;
	unsigned int i;

	host_seed(host_first_seed());
	begin();
	for (i = 0; i < BATCHES; i++) {
		u32 more = host_below(BATCH);

		while (more-- && nr_live < MOST)
			arm();
		batch();
		nothing();
		if (host_chance(4))
			give_back();
	}
	ASSERT_EQ(wheel.pending, nr_live);
	while (nr_live) {
		struct tw_node *node;
		u32 index;

		ASSERT_TRUE(tw_table_find(&table, live[0], &node, &index));
		do_op(node, index, live[0], true, 0);
	}
	ASSERT_EQ(wheel.levels, 0);
	give_back();
	while ((chunk = tw_table_take_chunk(&table))) {
		free(chunk->nodes);
		free(chunk);
	}
	free(tw_table_end(&table));
}

int main(void)
{
	host_plan(1);
	host_test("what operations need is prefetched, and nothing else is read", batches);
	return host_end();
}
