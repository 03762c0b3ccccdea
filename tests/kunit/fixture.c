// SPDX-License-Identifier: GPL-2.0
/*
 * What the suites share. See fixture.h.
 */
#include <linux/prandom.h>
#include <uapi/linux/twheel.h>

#include "fixture.h"

/**
 * struct fixture - a wheel with all that it needs
 * @wheel: the wheel
 * @table: its nodes
 * @rnd: where in their ticks deadlines lie
 */
struct fixture {
	struct tw_wheel wheel;
	struct tw_table table;
	struct rnd_state rnd;
};

static struct fixture *fixture_of(struct tw_wheel *wheel)
{
	return container_of(wheel, struct fixture, wheel);
}

/**
 * fixture_chunk() - give a table a chunk of free nodes
 * @test: the test, with which the memory goes
 * @table: the table
 * @cap: nodes that it holds
 *
 * Return: the chunk.
 */
struct tw_chunk *fixture_chunk(struct kunit *test, struct tw_table *table,
			       unsigned int cap)
{
	struct tw_chunk *chunk;

	if (tw_table_full(table)) {
		u32 max = table->max_chunks + 1;
		struct tw_entry *dir;

		dir = kunit_kmalloc_array(test, max, sizeof(*dir), GFP_KERNEL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dir);
		memset(dir, FIXTURE_DIRT, max * sizeof(*dir));
		tw_table_grow(table, dir, max);
	}
	chunk = kunit_kmalloc(test, TW_CHUNK_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, chunk);
	KUNIT_ASSERT_TRUE(test, IS_ALIGNED((uintptr_t)chunk, TW_CHUNK_SIZE));
	memset(chunk, FIXTURE_DIRT, TW_CHUNK_SIZE);
	tw_chunk_format(chunk, cap);
	tw_table_add(table, chunk);
	return chunk;
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
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct tw_slot *slots = kunit_kmalloc_array(test, TW_SLOTS,
						    sizeof(*slots), GFP_KERNEL);
	struct tw_clock clock = {};

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, slots);
	tw_table_init(&f->table);
	while (f->table.free < nodes)
		fixture_chunk(test, &f->table,
			      min_t(u32, nodes - f->table.free,
				    TW_CHUNK_CAP));
	prandom_seed_state(&f->rnd, now + nodes);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, FIXTURE_TICK);
	tw_wheel_init(&f->wheel, &clock, now);
	tw_wheel_set_slots(&f->wheel, slots);
	return &f->wheel;
}

/**
 * fixture_alloc() - take a node of a wheel's table
 * @test: the test
 * @wheel: the wheel
 *
 * Return: the node, whose fields say nonsense where no one has to set them.
 */
struct tw_node *fixture_alloc(struct kunit *test, struct tw_wheel *wheel)
{
	struct fixture *f = fixture_of(wheel);
	struct tw_node *node;
	u64 id;

	KUNIT_ASSERT_NE(test, f->table.free, 0);
	node = tw_table_alloc(&f->table, &id);
	node->slack_shift = FIXTURE_DIRT & 0x7f;
	node->flags = FIXTURE_DIRT;
	return node;
}

/* Give back a node that is on no list. */
void fixture_free(struct tw_wheel *wheel, struct tw_node *node)
{
	tw_table_free(&fixture_of(wheel)->table, node);
}

/* When a tick of the wheel begins, in ns */
s64 fixture_ns(const struct tw_wheel *wheel, s64 tick)
{
	return (tick - wheel->clock.shift) * FIXTURE_TICK;
}

/**
 * fixture_deadline() - some time in ns that expires at a tick
 * @wheel: the wheel
 * @tick: the tick; it begins after the host's time began
 *
 * Return: when it begins, a moment after the tick before it, or in between.
 */
s64 fixture_deadline(struct tw_wheel *wheel, s64 tick)
{
	u32 random = prandom_u32_state(&fixture_of(wheel)->rnd);
	s64 end = fixture_ns(wheel, tick);

	switch (random % 4) {
	case 0:
		return end;
	case 1:
		return end - (FIXTURE_TICK - 1);
	default:
		return end - random / 4 % FIXTURE_TICK;
	}
}

/* The tick at which a node has to expire, by plain division */
s64 fixture_tick(const struct tw_wheel *wheel, const struct tw_node *node)
{
	s64 wide = 1LL << node->slack_shift;
	s64 tick = div64_s64(node->deadline, FIXTURE_TICK);

	tick += tick * FIXTURE_TICK < node->deadline;
	return div64_s64(tick + wide - 1, wide) * wide + wheel->clock.shift;
}

/* The time at which fixture_run() runs at a tick: some time in it */
s64 fixture_stamp(const struct tw_wheel *wheel, s64 tick)
{
	return fixture_ns(wheel, tick) + FIXTURE_TICK / 2;
}

/**
 * fixture_arm_at() - add a new node that is like most
 * @test: the test
 * @wheel: the wheel
 * @deadline: its deadline, in ns
 *
 * Return: the node.
 */
struct tw_node *fixture_arm_at(struct kunit *test, struct tw_wheel *wheel,
			       s64 deadline)
{
	struct tw_node *node = fixture_alloc(test, wheel);

	node->deadline = deadline;
	node->special = 0;
	tw_wheel_add(wheel, node);
	return node;
}

/**
 * fixture_arm() - add a new node that is like most
 * @test: the test
 * @wheel: the wheel
 * @tick: at which it expires
 *
 * Return: the node.
 */
struct tw_node *fixture_arm(struct kunit *test, struct tw_wheel *wheel, s64 tick)
{
	return fixture_arm_at(test, wheel, fixture_deadline(wheel, tick));
}

/**
 * fixture_arm_slack() - add a new node that may expire late
 * @test: the test
 * @wheel: the wheel
 * @tick: at which it would expire without slack
 * @slack_shift: its slack
 *
 * Return: the node.
 */
struct tw_node *fixture_arm_slack(struct kunit *test, struct tw_wheel *wheel,
				  s64 tick, unsigned int slack_shift)
{
	struct tw_node *node = fixture_alloc(test, wheel);

	node->deadline = fixture_deadline(wheel, tick);
	node->slack_shift = slack_shift;
	node->flags = 0;
	tw_wheel_add(wheel, node);
	return node;
}

/**
 * fixture_arm_ready() - add a new node that is ready at once
 * @test: the test
 * @wheel: the wheel
 * @deadline: its deadline, in ns
 *
 * Return: the node.
 */
struct tw_node *fixture_arm_ready(struct kunit *test, struct tw_wheel *wheel,
				  s64 deadline)
{
	struct tw_node *node = fixture_alloc(test, wheel);

	node->deadline = deadline;
	node->slack_shift = 0;
	node->flags = 0;
	tw_wheel_add_ready(wheel, node);
	return node;
}

/* Change a node to expire at a tick, without slack. */
void fixture_mod(struct tw_wheel *wheel, struct tw_node *node, s64 tick)
{
	tw_wheel_mod(wheel, node, fixture_deadline(wheel, tick), 0);
}

/**
 * fixture_set_back() - the clock is set back
 * @test: the test
 * @wheel: the wheel, which has done all that was due by then
 * @ticks: by how much
 *
 * The wheel's time goes on.
 */
void fixture_set_back(struct kunit *test, struct tw_wheel *wheel, s64 ticks)
{
	KUNIT_ASSERT_EQ(test, tw_wheel_set_back(wheel, wheel->clk - 1 - ticks),
			ticks);
}

/**
 * fixture_set_back_far() - the clock is set back from its end
 * @wheel: the wheel, which is empty
 *
 * As if something was ready by then that nobody reads, and level 0 was full: nothing
 * is said by a deadline alone any more.
 */
void fixture_set_back_far(struct tw_wheel *wheel)
{
	wheel->set_back = true;
	wheel->done = KTIME_MAX;
	wheel->inspect = TW_NEVER;
}

/**
 * fixture_run() - let it become a time, and do all that there is to do
 * @test: the test
 * @wheel: the wheel
 * @now: the tick that it becomes; see also fixture_stamp()
 *
 * Return: how many nodes became ready.
 */
u64 fixture_run(struct kunit *test, struct tw_wheel *wheel, s64 now)
{
	struct tw_step step = { .now = now, .stamp = fixture_stamp(wheel, now) };
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
 * @slot: the list
 */
void fixture_check_list(struct kunit *test, const struct tw_slot *slot)
{
	const struct list_head *prev = &slot->nodes, *entry = prev->next;
	u32 count = 0;

	while (entry != &slot->nodes && count <= slot->count) {
		KUNIT_ASSERT_PTR_EQ(test, entry->prev, prev);
		prev = entry;
		entry = entry->next;
		count++;
	}
	KUNIT_ASSERT_EQ(test, count, slot->count);
	KUNIT_ASSERT_PTR_EQ(test, slot->nodes.prev, prev);
}

static void check_pending(struct kunit *test, const struct tw_wheel *wheel,
			  unsigned int nr, const struct tw_node *node)
{
	s64 tick = fixture_tick(wheel, node);

	KUNIT_ASSERT_PTR_EQ(test, tw_slot_at(wheel, node->slot),
			    &wheel->slots[nr]);
	KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
	KUNIT_ASSERT_LE(test, wheel->next, tick);
	if (nr >= TW_LEVEL_SLOTS)
		return;
	if (wheel->clk >= wheel->inspect) {
		KUNIT_ASSERT_GE(test, tick, wheel->clk);
		KUNIT_ASSERT_LT(test, tick, wheel->clk + TW_LEVEL_SLOTS);
		KUNIT_ASSERT_EQ(test, tick & TW_LEVEL_MASK, nr);
	}
	/* What is expired unseen can do with that. */
	if (!wheel->slots[nr].inspect) {
		KUNIT_ASSERT_EQ(test, node->flags & ~TW_NODE_PERIODIC, 0);
		KUNIT_ASSERT_EQ(test, (u32)node->slack_shift, 0);
	}
}

static void check_ready(struct kunit *test, const struct tw_wheel *wheel)
{
	const struct tw_node *node;

	fixture_check_list(test, &wheel->ready);
	list_for_each_entry(node, &wheel->ready.nodes, entry)
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
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
	const struct tw_node *node;
	unsigned int slot;
	u32 pending = 0;
	u32 levels = 0;

	for (slot = 0; slot < TW_SLOTS; slot++) {
		const struct tw_slot *list = &wheel->slots[slot];
		unsigned int level = slot / TW_LEVEL_SLOTS;
		unsigned int nr = slot % TW_LEVEL_SLOTS;
		bool bit = wheel->occupied[level][nr / 64] >> (nr % 64) & 1;

		if (bit != !!list->count)
			KUNIT_FAIL(test, "slot %u: bit %d, but %u nodes", slot,
				   bit, list->count);
		fixture_check_list(test, list);
		if (!list->count)
			continue;
		levels |= 1U << level;
		pending += list->count;
		list_for_each_entry(node, &list->nodes, entry) {
			check_pending(test, wheel, slot, node);
			KUNIT_ASSERT_LE(test, next, fixture_tick(wheel, node));
		}
	}
	KUNIT_EXPECT_EQ(test, levels, wheel->levels);
	KUNIT_EXPECT_EQ(test, pending, wheel->pending);
	check_ready(test, wheel);
}
