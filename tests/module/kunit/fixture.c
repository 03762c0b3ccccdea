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

static void *dirty_memory(struct kunit *test, size_t bytes)
{
	void *memory = kunit_kmalloc(test, bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, memory);
	return memset(memory, FIXTURE_DIRT, bytes);
}

/**
 * fixture_room() - see to it that a table has room for another chunk
 * @test: the test, with which the memory goes
 * @table: the table
 */
void fixture_room(struct kunit *test, struct tw_table *table)
{
	u32 more = table->max_chunks + 1;

	if (tw_table_full(table))
		tw_table_grow(table, dirty_memory(test, TW_DIR_BYTES(more)), more);
}

/**
 * fixture_chunk() - give a table a chunk of free nodes
 * @test: the test, with which the memory goes
 * @table: the table
 *
 * Return: the chunk.
 */
struct tw_chunk *fixture_chunk(struct kunit *test, struct tw_table *table)
{
	struct tw_node *nodes = kunit_kzalloc(test, TW_CHUNK_BYTES, GFP_KERNEL);
	struct tw_chunk *chunk;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, nodes);
	fixture_room(test, table);
	chunk = dirty_memory(test, sizeof(*chunk));
	tw_table_add(table, chunk, nodes);
	return chunk;
}

/**
 * fixture_free_chunks() - free what tw_table_detach_spare() gave
 * @test: the test
 * @spare: the chunks
 *
 * Return: how many they were.
 */
unsigned int fixture_free_chunks(struct kunit *test, struct tw_chunk *spare)
{
	struct tw_chunk *next;
	unsigned int n;

	for (n = 0; spare; spare = next, n++) {
		next = spare->next;
		kunit_kfree(test, spare->nodes);
		kunit_kfree(test, spare);
	}
	return n;
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
	struct fixture *f = dirty_memory(test, sizeof(*f));
	struct tw_slots *slots = kunit_kzalloc(test, sizeof(*slots), GFP_KERNEL);
	struct tw_clock clock = {};

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, slots);
	tw_table_init(&f->table);
	while (f->table.free < nodes)
		fixture_chunk(test, &f->table);
	prandom_seed_state(&f->rnd, now + nodes);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, FIXTURE_TICK);
	tw_wheel_init(&f->wheel, &f->table, &clock, now, 0);
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
	struct tw_node *node;
	u32 index, gen;

	KUNIT_ASSERT_NE(test, wheel->table->free, 0);
	node = tw_node_begin(wheel->table, &index);
	gen = node->gen;
	memset(node, FIXTURE_DIRT, sizeof(*node));
	node->gen = gen;
	return node;
}

/* The index of a node, by its address: so tests need not keep both. */
u32 fixture_index(const struct tw_wheel *wheel, const struct tw_node *node)
{
	const struct tw_table *table = wheel->table;
	u32 nr;

	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++) {
		const struct tw_node *nodes = tw_table_nodes(table, nr);

		if (node >= nodes && node < nodes + TW_CHUNK_NODES)
			return nr << TW_CHUNK_SHIFT | (node - nodes);
	}
	return 0;
}

/* Give back a node that is on no list. */
void fixture_free(struct tw_wheel *wheel, struct tw_node *node)
{
	tw_node_end(wheel->table, node, fixture_index(wheel, node));
}

/* When a tick of the wheel begins, in ns */
s64 fixture_ns(const struct tw_wheel *wheel, s64 tick)
{
	return (tick - wheel->clock.tick_offset) * FIXTURE_TICK;
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
	s64 wide = 1LL << (node->flags & TW_NODE_SLACK);
	s64 tick = div64_s64(node->deadline, FIXTURE_TICK);

	tick += tick * FIXTURE_TICK < node->deadline;
	return div64_s64(tick + wide - 1, wide) * wide + wheel->clock.tick_offset;
}

/**
 * fixture_add() - add a node
 * @wheel: the wheel
 * @node: a node that is on no list
 * @deadline: its deadline, in ns
 * @flags: its slack, and whether it is periodic
 */
void fixture_add(struct tw_wheel *wheel, struct tw_node *node, s64 deadline, u16 flags)
{
	node->deadline = deadline;
	node->flags = flags;
	tw_wheel_add(wheel, node, fixture_index(wheel, node));
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

	fixture_add(wheel, node, deadline, 0);
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

	fixture_add(wheel, node, fixture_deadline(wheel, tick), slack_shift);
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
	node->flags = 0;
	tw_wheel_add_ready(wheel, node, fixture_index(wheel, node));
	return node;
}

/* Change when a node expires, and its slack. */
void fixture_mod_at(struct tw_wheel *wheel, struct tw_node *node, s64 deadline,
		    unsigned int slack_shift)
{
	tw_wheel_mod(wheel, node, fixture_index(wheel, node), deadline, slack_shift);
}

/* Change a node to expire at a tick, without slack. */
void fixture_mod(struct tw_wheel *wheel, struct tw_node *node, s64 tick)
{
	fixture_mod_at(wheel, node, fixture_deadline(wheel, tick), 0);
}

/* Take a node out, pending or ready. */
void fixture_del(struct tw_wheel *wheel, struct tw_node *node)
{
	tw_wheel_del(wheel, node, fixture_index(wheel, node));
}

/* Any pending node, or NULL */
struct tw_node *fixture_first(const struct tw_wheel *wheel)
{
	u32 index;

	return tw_wheel_first(wheel, &index);
}

/* The node that is read next, or NULL */
struct tw_node *fixture_first_ready(const struct tw_wheel *wheel)
{
	struct tw_reader reader;
	u32 index;

	tw_reader_init(wheel, &reader);
	return tw_reader_next(wheel, &reader, &index);
}

/* Take out the node that is read next, if there is one, and say which it was. */
struct tw_node *fixture_read(struct tw_wheel *wheel)
{
	struct tw_reader reader;
	struct tw_node *node;
	u32 index;

	tw_reader_init(wheel, &reader);
	node = tw_reader_next(wheel, &reader, &index);
	tw_reader_cut(wheel, &reader);
	return node;
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
	wheel->done_ns = KTIME_MAX;
	wheel->inspect = TW_NEVER;
}

/**
 * fixture_run() - let it become a time, and do all that there is to do
 * @test: the test
 * @wheel: the wheel
 * @now: the tick that it becomes
 *
 * Return: how many nodes became ready.
 */
u64 fixture_run(struct kunit *test, struct tw_wheel *wheel, s64 now)
{
	struct tw_step step = { .now = now };
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

/* Check that a list hangs together, and is of its stripe. Returns its length. */
static u32 check_list(struct kunit *test, const struct tw_wheel *wheel,
		      const struct tw_list *list, unsigned int stripe,
		      unsigned int stripe_mask)
{
	u32 index, prev = 0, count = 0;

	for (index = list->first; index; count++) {
		const struct tw_node *node = tw_node_at(wheel->table, index);

		KUNIT_ASSERT_EQ(test, index & stripe_mask, stripe);
		KUNIT_ASSERT_EQ(test, node->prev, prev);
		/* Where links go in a circle */
		KUNIT_ASSERT_LT(test, count, wheel->table->nr_chunks << TW_CHUNK_SHIFT);
		prev = index;
		index = node->next;
	}
	KUNIT_ASSERT_EQ(test, list->last, prev);
	return count;
}

static void check_pending(struct kunit *test, const struct tw_wheel *wheel,
			  unsigned int nr, const struct tw_node *node)
{
	s64 tick = fixture_tick(wheel, node);

	KUNIT_ASSERT_EQ(test, node->slot, nr);
	KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
	KUNIT_ASSERT_LE(test, wheel->next, tick);
	if (nr >= TW_LVL_SIZE)
		return;
	if (wheel->clk >= wheel->inspect) {
		KUNIT_ASSERT_GE(test, tick, wheel->clk);
		KUNIT_ASSERT_LT(test, tick, wheel->clk + TW_LVL_SIZE);
		KUNIT_ASSERT_EQ(test, tick & TW_LVL_MASK, nr);
	}
	/* What is expired whole can do with that. */
	if (!wheel->slots->slot[nr].inspect)
		KUNIT_ASSERT_EQ(test, node->flags & ~TW_NODE_PERIODIC, 0);
}

/**
 * fixture_check_ready() - check that the lists of what is ready hang together
 * @test: the test
 * @wheel: the wheel
 */
void fixture_check_ready(struct kunit *test, const struct tw_wheel *wheel)
{
	u32 index, count = 0;
	unsigned int i;

	for (i = 0; i < TW_READY_LISTS; i++) {
		const struct tw_list *list = &wheel->ready.list[i];
		bool at_once = i == TW_AT_ONCE;

		count += check_list(test, wheel, list, at_once ? 0 : i - 1,
				    at_once ? 0 : TW_STRIPES - 1);
		for (index = list->first; index;
		     index = tw_node_at(wheel->table, index)->next)
			KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, tw_node_at(wheel->table,
									      index)));
	}
	KUNIT_ASSERT_EQ(test, count, wheel->ready.count);
	if (!count)
		KUNIT_ASSERT_EQ(test, wheel->ready.until, 0);
}

/* Check a slot. Returns how many nodes are in it. */
static u32 check_slot(struct kunit *test, const struct tw_wheel *wheel,
		      unsigned int slot, s64 next)
{
	unsigned int i, stripe_mask;
	const struct tw_list *lists = tw_slot_lists(wheel, slot, &stripe_mask);
	u32 index, count = 0;

	for (i = 0; i <= stripe_mask; i++) {
		count += check_list(test, wheel, &lists[i], i, stripe_mask);
		for (index = lists[i].first; index;
		     index = tw_node_at(wheel->table, index)->next) {
			const struct tw_node *node = tw_node_at(wheel->table, index);

			check_pending(test, wheel, slot, node);
			KUNIT_ASSERT_LE(test, next, fixture_tick(wheel, node));
		}
	}
	KUNIT_ASSERT_EQ(test, count, wheel->slots->slot[slot].count);
	return count;
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
		unsigned int level = slot / TW_LVL_SIZE;
		unsigned int nr = slot % TW_LVL_SIZE;
		bool bit = wheel->occupied[level][nr / 64] >> (nr % 64) & 1;
		u32 count = check_slot(test, wheel, slot, next);

		if (bit != !!count)
			KUNIT_FAIL(test, "slot %u: bit %d, but %u nodes", slot, bit, count);
		if (count)
			levels |= 1U << level;
		pending += count;
	}
	KUNIT_EXPECT_EQ(test, levels, wheel->levels);
	KUNIT_EXPECT_EQ(test, pending, wheel->pending);
	fixture_check_ready(test, wheel);
}
