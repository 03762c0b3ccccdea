// SPDX-License-Identifier: GPL-2.0
/*
 * Batches whose nodes are fetched ahead: whatever is fetched, each operation finds what
 * looking its id up would find when it is done, and nothing but what is a node is ever
 * looked at, whatever ids a program makes up and whenever it changes them.
 */
#include <stdlib.h>
#include <string.h>
#include <uapi/linux/twheel.h>

#include "ahead.h"
#include "host.h"

#define BATCH 300
#define MOST 4000
#define BATCHES 3000
#define TICK_NS 10

/**
 * struct op - an operation of a program
 * @before: whatever is there
 * @id: the timer
 * @deadline: its new deadline, less the base
 */
struct op {
	u64 before;
	u64 id;
	u64 deadline;
};

static struct tw_table table;
static struct tw_wheel wheel;
static struct tw_slots slots;
static struct op ops[BATCH];
static u64 ids[BATCH], live[MOST];
static u32 nr_live;

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
		     calloc(1, TW_CHUNK_BYTES));
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

static void do_op(struct tw_node *node, u32 index, u64 id, bool del, s64 deadline)
{
	if (!del) {
		tw_wheel_mod(&wheel, node, index, deadline, 0);
		return;
	}
	tw_wheel_del(&wheel, node, index);
	tw_node_end(&table, node, index);
	forget(id);
}

static void batch(void)
{
	unsigned int n, nr = 1 + host_below(host_chance(4) ? 3 : BATCH);
	bool del = host_chance(3), hostile = host_chance(2);
	s64 base = host_below(1000);
	struct tw_ahead ahead;

	for (n = 0; n < nr; n++) {
		ops[n].id = any_id();
		ops[n].deadline = any_deadline();
		ids[n] = ops[n].id;
	}
	/* Whatever is in the memory */
	memset(&ahead, host_below(256), sizeof(ahead));
	tw_ahead_init(&ahead, &table, &ops[0].id, del ? NULL : &ops[0].deadline, base,
		      sizeof(ops[0]), nr);
	for (n = 0; n < nr; n++) {
		struct tw_node *node, *found;
		u32 index, at;
		bool is;

		tw_ahead(&ahead, n);
		/* What is needed next was fetched, and not much that is needed later. */
		ASSERT_TRUE(ahead.found > n && ahead.found < nr + TW_AHEAD_STEP);
		ASSERT_TRUE(ahead.linked > n);
		ASSERT_TRUE(ahead.linked < min(nr, n + TW_AHEAD_LINKS) + TW_AHEAD_STEP);
		/* What was read is not read again. */
		if (hostile)
			ops[n + host_below(min(nr, ahead.found) - n)].id = host_random();
		is = tw_table_find(&table, ids[n], &found, &at);
		ASSERT_EQ(tw_ahead_get(&ahead, n, &node, &index), is);
		if (!is)
			continue;
		ASSERT_TRUE(node == found);
		ASSERT_EQ(index, at);
		do_op(node, index, ids[n], del, ops[n].deadline + base);
	}
}

static void begin(void)
{
	struct tw_clock clock = {};

	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, TICK_NS);
	tw_table_init(&table);
	tw_wheel_init(&wheel, &table, &clock, 0, 0);
	tw_wheel_set_slots(&wheel, &slots);
}

static void batches(void)
{
	unsigned int i;
	void *dir;

	host_seed(host_first_seed());
	begin();
	for (i = 0; i < BATCHES; i++) {
		u32 more = host_below(BATCH);

		while (more-- && nr_live < MOST)
			arm();
		batch();
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
	for (struct tw_chunk *left = tw_table_clear(&table, &dir), *next; left; left = next) {
		next = left->next;
		free(left->nodes);
		free(left);
	}
	free(dir);
}

int main(void)
{
	host_plan(1);
	host_test("batches find what looking up would find", batches);
	return host_end();
}
