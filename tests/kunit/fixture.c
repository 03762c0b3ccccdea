// SPDX-License-Identifier: GPL-2.0
/*
 * What the suites share. See fixture.h.
 */
#include "fixture.h"

/**
 * fixture_chunk() - give a table a chunk of free nodes
 * @test: the test, with which the memory goes
 * @table: the table
 * @cap: nodes that it holds
 *
 * Return: the memory.
 */
struct tw_node *fixture_chunk(struct kunit *test, struct tw_table *table,
			      unsigned int cap)
{
	struct tw_node *nodes;

	if (tw_table_full(table)) {
		u32 max = table->max_chunks + 1;
		struct tw_chunk *chunks;

		/* Not zeroed, as the module's memory is not. */
		chunks = kunit_kmalloc_array(test, max, sizeof(*chunks),
					     GFP_KERNEL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, chunks);
		tw_table_grow(table, chunks, max);
	}
	nodes = kunit_kmalloc_array(test, cap, sizeof(*nodes), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, nodes);
	tw_chunk_format(nodes, cap);
	tw_table_add(table, nodes, cap);
	return nodes;
}

/**
 * fixture_wheel() - make a wheel
 * @test: the test, with which the wheel goes
 * @now: tick that it is now
 * @nodes: how many nodes its table shall have free at least
 *
 * Return: the wheel.
 */
struct tw_wheel *fixture_wheel(struct kunit *test, s64 now, unsigned int nodes)
{
	struct tw_wheel *wheel = kunit_kzalloc(test, sizeof(*wheel), GFP_KERNEL);
	struct tw_table *table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);
	struct tw_list *slots = kunit_kmalloc_array(test, TW_SLOTS,
						    sizeof(*slots), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, wheel);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, table);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, slots);
	tw_table_init(table);
	while (table->free < nodes)
		fixture_chunk(test, table, min(nodes - table->free,
					       1U << TW_CHUNK_SHIFT));
	tw_wheel_init(wheel, table, now);
	tw_wheel_set_slots(wheel, slots);
	return wheel;
}

static u32 fixture_alloc(struct kunit *test, struct tw_wheel *wheel)
{
	u32 index = tw_table_alloc(wheel->table);

	KUNIT_ASSERT_NE(test, index, TW_NIL);
	return index;
}

/**
 * fixture_arm() - add a new node
 * @test: the test
 * @wheel: the wheel
 * @expires: tick at which it expires
 *
 * Return: its index.
 */
u32 fixture_arm(struct kunit *test, struct tw_wheel *wheel, s64 expires)
{
	u32 index = fixture_alloc(test, wheel);

	tw_wheel_add(wheel, index, expires);
	return index;
}

/**
 * fixture_arm_ready() - add a new node that is ready at once
 * @test: the test
 * @wheel: the wheel
 * @stamp: the time that it is now, in ns
 *
 * Return: its index.
 */
u32 fixture_arm_ready(struct kunit *test, struct tw_wheel *wheel, s64 stamp)
{
	u32 index = fixture_alloc(test, wheel);

	tw_wheel_add_ready(wheel, index, stamp);
	return index;
}

/**
 * fixture_run() - let it become a time, and do all that there is to do
 * @test: the test
 * @wheel: the wheel
 * @now: the tick that it becomes; it stamps what it makes ready with that
 *
 * Return: how many nodes became ready.
 */
u64 fixture_run(struct kunit *test, struct tw_wheel *wheel, s64 now)
{
	struct tw_step step = { .now = now, .stamp = now };
	unsigned int steps = 0;
	u64 expired = 0;
	bool more;

	do {
		step.budget = 64;
		more = tw_wheel_step(wheel, &step);
		expired += step.expired;
		/* Many more than it takes: a wheel that runs in circles. */
		KUNIT_ASSERT_LT(test, ++steps, 2000);
	} while (more);
	KUNIT_ASSERT_EQ(test, wheel->clk, now + 1);
	fixture_check_wheel(test, wheel);
	return expired;
}

/**
 * fixture_check_list() - check that a list hangs together
 * @test: the test
 * @wheel: its wheel
 * @list: the list
 */
void fixture_check_list(struct kunit *test, const struct tw_wheel *wheel,
			const struct tw_list *list)
{
	u32 prev = TW_NIL, index = list->first, count = 0;

	while (index != TW_NIL && count <= list->count) {
		const struct tw_node *node = tw_node(wheel->table, index);

		KUNIT_ASSERT_EQ(test, node->prev, prev);
		prev = index;
		index = node->next;
		count++;
	}
	KUNIT_ASSERT_EQ(test, count, list->count);
	KUNIT_ASSERT_EQ(test, list->last, prev);
}

/**
 * fixture_check_wheel() - check what must hold in a wheel at all times
 * @test: the test
 * @wheel: the wheel
 *
 * Bits, counts and lists agree, nodes are where they say that they are, and
 * none expires before the wheel is to look again.
 */
void fixture_check_wheel(struct kunit *test, const struct tw_wheel *wheel)
{
	s64 next = tw_wheel_next(wheel);
	unsigned int slot;
	u32 pending = 0;
	u32 levels = 0;

	for (slot = 0; slot < TW_SLOTS; slot++) {
		const struct tw_list *list = &wheel->slots[slot];
		unsigned int level = slot / TW_LEVEL_SLOTS;
		unsigned int nr = slot % TW_LEVEL_SLOTS;
		bool bit = wheel->occupied[level][nr / 64] >> (nr % 64) & 1;
		u32 index;

		if (bit != !!list->count)
			KUNIT_FAIL(test, "slot %u: bit %d, but %u nodes", slot,
				   bit, list->count);
		if (!list->count)
			continue;
		levels |= 1U << level;
		pending += list->count;
		fixture_check_list(test, wheel, list);
		for (index = list->first; index != TW_NIL;
		     index = tw_node(wheel->table, index)->next) {
			const struct tw_node *node = tw_node(wheel->table, index);

			KUNIT_ASSERT_EQ(test, node->slot, slot);
			KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
			KUNIT_ASSERT_LE(test, next, node->expires);
			KUNIT_ASSERT_LE(test, wheel->next, node->expires);
		}
	}
	KUNIT_EXPECT_EQ(test, levels, wheel->levels);
	KUNIT_EXPECT_EQ(test, pending, wheel->pending);
	fixture_check_list(test, wheel, &wheel->ready);
}
