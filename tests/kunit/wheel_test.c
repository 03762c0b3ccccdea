// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the wheel: levels, slots, bitmaps, cascading. The host tests
 * go further against a reference model; this is the wheel as the kernel has it.
 */
#include <linux/prandom.h>

#include "fixture.h"

static bool is_ready(const struct tw_wheel *wheel, u32 index)
{
	return tw_is_ready(wheel, tw_node(wheel->table, index));
}

/* Where a wheel may stand when a node comes: at edges of slots and turns. */
static const s64 starts[] = {
	0, 1, TW_TURN - 2, TW_TURN - 1, TW_TURN, 12345,
	TW_TURN * TW_TURN - 1, 1LL << 30, (1LL << 40) - 1,
};

/* How far ahead the node is: at the edges of each level's reach, in ticks. */
#define EDGES 6

static s64 edge(unsigned int level, unsigned int nr)
{
	const s64 width = 1LL << (level * TW_TURN_BITS);
	const s64 edges[EDGES] = { width - 1, width, width + 1, 2 * width - 1,
				   2 * width, (TW_TURN - 1) * width + 1 };

	return max_t(s64, 1, edges[nr]);
}

static const unsigned int levels[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

static void describe_level(const unsigned int *level, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "level %u", *level);
}

KUNIT_ARRAY_PARAM(level, levels, describe_level);

static void expires_at_its_tick(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(starts) * EDGES; i++) {
		s64 start = starts[i / EDGES];
		s64 expires = start + edge(level, i % EDGES);
		struct tw_wheel *wheel = fixture_wheel(test, start, 1);
		u32 index = fixture_arm(test, wheel, expires);

		fixture_check_wheel(test, wheel);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires - 1), 0);
		KUNIT_ASSERT_EQ(test, wheel->pending, 1);
		KUNIT_ASSERT_EQ(test, wheel->next, expires);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires), 1);
		KUNIT_ASSERT_EQ(test, wheel->ready.first, index);
		KUNIT_ASSERT_EQ(test, wheel->pending, 0);
		KUNIT_ASSERT_EQ(test, wheel->next, TW_NEVER);
	}
}

static void lone_node_wakes_twice_at_most(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(starts) * EDGES; i++) {
		s64 start = starts[i / EDGES];
		s64 expires = start + edge(level, i % EDGES);
		struct tw_wheel *wheel = fixture_wheel(test, start, 1);
		unsigned int wakeups = 0;

		fixture_arm(test, wheel, expires);
		while (wheel->pending && wakeups < 3) {
			KUNIT_ASSERT_GE(test, wheel->next, wheel->clk);
			fixture_run(test, wheel, wheel->next);
			wakeups++;
		}
		KUNIT_ASSERT_LE(test, wakeups, 2);
		KUNIT_ASSERT_EQ(test, wheel->clk, expires + 1);
	}
}

/* A wheel that is run only when it says, with a third of a crowd each tick. */
static void crowd_expires_at_its_ticks(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	const unsigned int crowd = 3 * TW_SMALL_SLOT;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(starts) * EDGES; i++) {
		s64 start = starts[i / EDGES];
		s64 expires = start + edge(level, i % EDGES);
		struct tw_wheel *wheel = fixture_wheel(test, start, crowd);
		unsigned int wakeups = 0;
		unsigned int thirds = 0;

		for (n = 0; n < crowd; n++)
			fixture_arm(test, wheel, expires + n % 3);
		while (wheel->pending) {
			s64 now = wheel->next;

			KUNIT_ASSERT_LE(test, now, expires + thirds);
			n = fixture_run(test, wheel, now);
			KUNIT_ASSERT_EQ(test, n, now == expires + thirds ?
					crowd / 3 : 0);
			thirds += !!n;
			/* It may come down level by level, in two slots. */
			KUNIT_ASSERT_LE(test, ++wakeups, 3 + 2 * TW_LEVELS);
		}
		KUNIT_ASSERT_EQ(test, thirds, 3);
	}
}

static void last_tick_can_be_reached(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2);

	fixture_arm(test, wheel, TW_TICK_MAX);
	fixture_arm(test, wheel, TW_TICK_MAX - 1);
	fixture_check_wheel(test, wheel);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, TW_TICK_MAX - 2), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, TW_TICK_MAX - 1), 1);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, TW_TICK_MAX), 1);
}

static void late_wheel_expires_in_order(struct kunit *test)
{
	static const s64 ticks[] = { 5000000, 64, 1, 4096, 65, 127, 128, 5000001,
				     4095, 63, 2, 262144, 5000000 };
	struct tw_wheel *wheel = fixture_wheel(test, 0, ARRAY_SIZE(ticks));
	u32 index[ARRAY_SIZE(ticks)];
	unsigned int i;
	s64 last = 0;

	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		index[i] = fixture_arm(test, wheel, ticks[i]);
	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 9999999),
			ARRAY_SIZE(ticks));
	while (wheel->ready.count) {
		for (i = 0; index[i] != wheel->ready.first; i++)
			KUNIT_ASSERT_LT(test, i + 1, ARRAY_SIZE(ticks));
		KUNIT_ASSERT_GE(test, ticks[i], last);
		last = ticks[i];
		tw_wheel_del(wheel, index[i]);
	}
}

static void idle_time_is_skipped(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 5, 1);

	KUNIT_EXPECT_EQ(test, wheel->clk, 6);
	KUNIT_EXPECT_EQ(test, tw_wheel_next(wheel), TW_NEVER);
	KUNIT_EXPECT_EQ(test, tw_wheel_first(wheel), TW_NIL);
	tw_wheel_forward(wheel, 1000000);
	KUNIT_EXPECT_EQ(test, wheel->clk, 1000001);
	tw_wheel_forward(wheel, 999);
	KUNIT_EXPECT_EQ(test, wheel->clk, 1000001);

	fixture_arm(test, wheel, 2000000);
	tw_wheel_forward(wheel, wheel->next - 1);
	KUNIT_EXPECT_EQ(test, wheel->clk, wheel->next);
	/* What is due now is not to be jumped over. */
	tw_wheel_forward(wheel, 2000000);
	tw_wheel_forward(wheel, 3000000);
	KUNIT_EXPECT_EQ(test, wheel->pending, 1);
	KUNIT_EXPECT_LE(test, wheel->clk, 2000000);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 2000000), 1);
}

/* From one tick to another, with some time in between or none. */
static const struct change {
	const char *name;
	s64 from;
	s64 to;
	s64 at;
} changes[] = {
	{ "to the same tick", 50, 50, 0 },
	{ "to the next tick", 50, 51, 0 },
	{ "to the tick before", 50, 49, 0 },
	{ "at the last moment", 50, 51, 49 },
	{ "at the last moment and far", 50, 5000000, 49 },
	{ "a turn of level 0 on", 50, 50 + TW_TURN, 0 },
	{ "two turns of level 0 on", 50, 50 + 2 * TW_TURN, 0 },
	{ "to another level", 50, 5000, 0 },
	{ "from another level", 5000, 50, 0 },
	{ "from afar to the next tick", 5000000, 1, 0 },
	{ "within a wide slot, later", 5000000, 5000001, 0 },
	{ "within a wide slot, earlier", 5000001, 5000000, 0 },
	{ "from one wide slot to the next", 5000000, 5300000, 0 },
	{ "when it has come down", 5000000, 5000010, 4999999 },
	{ "to the last tick", 50, TW_TICK_MAX, 0 },
	{ "from the last tick", TW_TICK_MAX, 50, 0 },
	{ "when it is ready", 50, 60, 50 },
	{ "when it is ready for long", 50, 70000, 60000 },
};

static void describe_change(const struct change *change, char *desc)
{
	strscpy(desc, change->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(change, changes, describe_change);

static void rearmed_node_expires_at_its_new_tick(struct kunit *test)
{
	const struct change *change = test->param_value;
	/* Alone, or behind and before others that stay. */
	unsigned int others, i;

	for (others = 0; others <= 2 * TW_SMALL_SLOT; others += TW_SMALL_SLOT) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, others + 1);
		struct tw_node *node;
		u64 expired;
		u32 index;

		for (i = 0; i < others / 2; i++)
			fixture_arm(test, wheel, change->from);
		index = fixture_arm(test, wheel, change->from);
		node = tw_node(wheel->table, index);
		for (; i < others; i++)
			fixture_arm(test, wheel, change->from);
		expired = fixture_run(test, wheel, change->at);
		tw_wheel_mod(wheel, index, change->to);
		fixture_check_wheel(test, wheel);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));

		expired += fixture_run(test, wheel, change->to - 1);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
		expired += fixture_run(test, wheel, change->to);
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
		expired += fixture_run(test, wheel, TW_TICK_MAX);
		KUNIT_ASSERT_EQ(test, expired,
				others + 1 + (change->at >= change->from));
		KUNIT_ASSERT_EQ(test, wheel->ready.count, others + 1);
	}
}

static void pushed_ahead_again_and_again(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
	u32 index = fixture_arm(test, wheel, 100);
	struct tw_node *node = tw_node(wheel->table, index);
	s64 now;

	for (now = 1; now < 20000; now += 7) {
		tw_wheel_mod(wheel, index, now + 100);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, now), 0);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
	}
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, now - 7 + 99), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, now - 7 + 100), 1);
}

/* Time is let pass up to where there is something to do, and no further. */
static void pushed_ahead_and_forwarded(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	const s64 pushes[] = { 1, TW_TURN, 3 * TW_TURN * TW_TURN, 1LL << 36 };
	unsigned int i;

	for (i = 0; i < EDGES * ARRAY_SIZE(pushes); i++) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
		s64 first = edge(level, i % EDGES);
		s64 expires = first + pushes[i / EDGES];
		u32 index = fixture_arm(test, wheel, first);
		unsigned int wakeups = 0;

		tw_wheel_mod(wheel, index, expires);
		fixture_run(test, wheel, 0);
		while (wheel->pending) {
			tw_wheel_forward(wheel, wheel->next - 1);
			fixture_check_wheel(test, wheel);
			KUNIT_ASSERT_EQ(test, wheel->clk, wheel->next);
			fixture_run(test, wheel, wheel->next);
			KUNIT_ASSERT_LE(test, ++wakeups, 2 * TW_LEVELS);
		}
		KUNIT_ASSERT_EQ(test, wheel->clk, expires + 1);
	}
}

static const unsigned int places[] = { 0, 1, 2 };

static void describe_place(const unsigned int *place, char *desc)
{
	static const char * const names[] = { "first", "middle", "last" };

	strscpy(desc, names[*place], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(place, places, describe_place);

static void deleted_node_does_not_expire(struct kunit *test)
{
	static const s64 ticks[] = { 1, TW_TURN, 100, 5000, 5000000 };
	unsigned int place = *(const unsigned int *)test->param_value;
	unsigned int t, i;

	for (t = 0; t < ARRAY_SIZE(ticks); t++) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, 3);
		u32 index[3];

		for (i = 0; i < ARRAY_SIZE(index); i++)
			index[i] = fixture_arm(test, wheel, ticks[t]);
		tw_wheel_del(wheel, index[place]);
		KUNIT_ASSERT_EQ(test, wheel->pending, 2);
		fixture_check_wheel(test, wheel);

		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, ticks[t]), 2);
		KUNIT_ASSERT_EQ(test, wheel->ready.first, index[!place]);
		KUNIT_ASSERT_EQ(test, wheel->ready.last,
				index[place == 2 ? 1 : 2]);
	}
}

static void empty_slot_leaves_no_bit(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i;

	for (i = 0; i < EDGES; i++) {
		s64 expires = 7 + edge(level, i);
		struct tw_wheel *wheel = fixture_wheel(test, 7, 2);
		u32 index = fixture_arm(test, wheel, expires);
		u32 moved = fixture_arm(test, wheel, expires);

		tw_wheel_mod(wheel, moved, expires + 1);
		tw_wheel_del(wheel, index);
		KUNIT_ASSERT_EQ(test, wheel->pending, 1);
		tw_wheel_del(wheel, moved);
		KUNIT_ASSERT_EQ(test, wheel->pending, 0);
		KUNIT_ASSERT_EQ(test, wheel->next, TW_NEVER);
		KUNIT_ASSERT_EQ(test, tw_wheel_next(wheel), TW_NEVER);
		KUNIT_ASSERT_EQ(test, wheel->levels, 0);
		KUNIT_ASSERT_NULL(test, memchr_inv(wheel->occupied, 0,
						   sizeof(wheel->occupied)));
		KUNIT_ASSERT_NULL(test, memchr_inv(wheel->moved, 0,
						   sizeof(wheel->moved)));
		KUNIT_ASSERT_EQ(test, tw_wheel_first(wheel), TW_NIL);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires + 1), 0);
	}
}

static void drained_one_by_one(struct kunit *test)
{
	const unsigned int nodes = ARRAY_SIZE(levels) * EDGES;
	struct tw_wheel *wheel = fixture_wheel(test, 0, nodes);
	unsigned int i;

	for (i = 0; i < nodes; i++)
		fixture_arm(test, wheel, edge(i / EDGES, i % EDGES));
	for (; i; i--) {
		u32 index = tw_wheel_first(wheel);

		KUNIT_ASSERT_NE(test, index, TW_NIL);
		KUNIT_ASSERT_FALSE(test, is_ready(wheel, index));
		tw_wheel_del(wheel, index);
		fixture_check_wheel(test, wheel);
	}
	KUNIT_EXPECT_EQ(test, tw_wheel_first(wheel), TW_NIL);
	KUNIT_EXPECT_EQ(test, wheel->pending, 0);
}

/* Nodes of one slot, its width, and what a step may touch of it. */
static const struct load {
	unsigned int nodes;
	s64 expires;
	u32 budget;
} loads[] = {
	{ 1000, 5000, 1 }, { 1000, 5000, 2 }, { 1000, 5000, 16 },
	{ 1000, 5000, 999 }, { 1000, 5000, 1000 }, { 1000, 5000, 1001 },
	{ 1000, 5000, 1002 }, { 1000, 5000000, 1 }, { 1000, 5000000, 16 },
	{ TW_SMALL_SLOT, 5000, 16 }, { TW_SMALL_SLOT + 1, 5000, 16 },
	{ 1000, 50, 1 }, { 1, 50, 1 },
};

static void describe_load(const struct load *load, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u nodes at %lld, budget %u",
		 load->nodes, load->expires, load->budget);
}

KUNIT_ARRAY_PARAM(load, loads, describe_load);

/* As fixture_run(), but with a budget for each step, which must keep to it. */
static u64 run_in_steps(struct kunit *test, struct tw_wheel *wheel, s64 now,
			u32 budget)
{
	struct tw_step step = { .now = now };
	u64 expired = 0;
	unsigned int steps = 0;
	bool more;

	do {
		u64 before = step.moved;

		step.budget = budget;
		more = tw_wheel_step(wheel, &step);
		KUNIT_ASSERT_LE(test, step.budget, budget);
		KUNIT_ASSERT_LE(test, step.moved - before, budget);
		expired += step.expired;
		fixture_check_wheel(test, wheel);
		KUNIT_ASSERT_LE(test, ++steps, 10000);
	} while (more);
	return expired;
}

static void slot_is_handed_over_whole(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	struct tw_step step = { .now = load->expires, .stamp = 1, .budget = 1 };
	unsigned int i;

	/* All at one tick, to which the wheel has come down before. */
	tw_wheel_forward(wheel, load->expires - 1);
	for (i = 0; i < load->nodes; i++)
		fixture_arm(test, wheel, load->expires);
	tw_wheel_step(wheel, &step);
	KUNIT_EXPECT_EQ(test, step.expired, load->nodes);
	KUNIT_EXPECT_EQ(test, step.tick, load->expires);
	KUNIT_EXPECT_EQ(test, step.budget, 0);
	KUNIT_EXPECT_EQ(test, step.moved, 0);
	KUNIT_EXPECT_EQ(test, wheel->ready.count, load->nodes);
	fixture_check_wheel(test, wheel);
}

/* Each step does at least one piece, and never more than it may. */
static void steps_keep_to_their_budget(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	u32 budget = max(load->budget, 2U);
	unsigned int i;

	for (i = 0; i < load->nodes; i++)
		fixture_arm(test, wheel, load->expires + i % 2);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires - 1,
					   budget), 0);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires, budget),
			(load->nodes + 1) / 2);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires + 1,
					   budget), load->nodes / 2);
}

/* A slot with nodes that were moved is looked through, in pieces too. */
static void moved_nodes_are_looked_through(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	u32 budget = max(load->budget, 2U);
	unsigned int i;
	u32 index;

	tw_wheel_forward(wheel, load->expires - 1);
	for (i = 0; i < load->nodes; i++) {
		index = fixture_arm(test, wheel, load->expires);
		if (i % 3 == 0)
			tw_wheel_mod(wheel, index, load->expires + 10);
	}
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires, budget),
			load->nodes - (load->nodes + 2) / 3);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires + 9,
					   budget), 0);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires + 10,
					   budget), (load->nodes + 2) / 3);
}

static void half_expired_slot_takes_changes(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 100);
	struct tw_step step = { .now = 10, .stamp = 10, .budget = 33 };
	unsigned int i, ready = 0;
	u32 index[100];

	for (i = 0; i < 100; i++)
		index[i] = fixture_arm(test, wheel, 10);
	/* Now the slot is not handed over whole. */
	tw_wheel_mod(wheel, index[99], 20);
	KUNIT_ASSERT_TRUE(test, tw_wheel_step(wheel, &step));
	fixture_check_wheel(test, wheel);
	KUNIT_ASSERT_GT(test, step.expired, 0);
	KUNIT_ASSERT_LT(test, step.expired, 99);
	for (i = 0; i < 100; i++) {
		/* Nothing counts as ready before it is on the list. */
		if (is_ready(wheel, index[i]))
			ready++;
	}
	KUNIT_EXPECT_EQ(test, ready, wheel->ready.count);
	KUNIT_EXPECT_EQ(test, ready, step.expired);

	tw_wheel_del(wheel, index[0]);
	tw_wheel_del(wheel, index[98]);
	tw_wheel_mod(wheel, index[1], 15);
	tw_wheel_mod(wheel, index[97], 15);
	fixture_check_wheel(test, wheel);
	fixture_run(test, wheel, 10);
	KUNIT_EXPECT_EQ(test, wheel->ready.count, 95);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 14), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 15), 2);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 20), 1);
}

/* A deadline that becomes later without the wheel being told. */
static s64 refresh(const struct tw_wheel *wheel, const struct tw_node *node)
{
	return max_t(s64, node->deadline, wheel->clk);
}

static void wheel_asks_before_it_expires(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i, n;

	for (i = 0; i < EDGES; i++) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, 3);
		s64 ticks = edge(level, i);
		u32 index;

		wheel->refresh = refresh;
		for (n = 0; n < 3; n++) {
			index = fixture_arm(test, wheel, ticks);
			tw_node(wheel->table, index)->deadline = ticks + 100 * n;
		}
		for (n = 0; n < 3; n++) {
			s64 now = ticks + 100 * n;

			KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, now - 1), 0);
			KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, now), 1);
		}
	}
}

static const struct seed {
	u64 seed;
	s64 span;
} seeds[] = {
	{ 1, TW_TURN }, { 2, 3 * TW_TURN }, { 3, TW_TURN * TW_TURN },
	{ 4, 1LL << 20 }, { 5, 1LL << 40 },
};

static void describe_seed(const struct seed *seed, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "seed %llu, span %lld",
		 seed->seed, seed->span);
}

KUNIT_ARRAY_PARAM(seed, seeds, describe_seed);

#define NODES 200

/* What became ready must have been due; and all that was due is ready. */
static void random_use(struct kunit *test)
{
	const struct seed *param = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, NODES);
	struct rnd_state rnd;
	unsigned int round, i;
	s64 *expires;
	s64 now = 0;
	u32 *index;

	expires = kunit_kmalloc_array(test, NODES, sizeof(*expires), GFP_KERNEL);
	index = kunit_kmalloc_array(test, NODES, sizeof(*index), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, expires);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, index);
	prandom_seed_state(&rnd, param->seed);
	for (i = 0; i < NODES; i++) {
		expires[i] = 1 + prandom_u32_state(&rnd) * (u64)param->span / U32_MAX;
		index[i] = fixture_arm(test, wheel, expires[i]);
	}
	for (round = 0; round < 2000; round++) {
		i = prandom_u32_state(&rnd) % NODES;
		expires[i] = wheel->clk +
			     mul_u64_u32_shr(param->span, prandom_u32_state(&rnd), 32);
		tw_wheel_mod(wheel, index[i], expires[i]);
		if (round % 4)
			continue;
		now += mul_u64_u32_shr(param->span / 16, prandom_u32_state(&rnd), 32);
		if (now < wheel->clk)
			continue;
		fixture_run(test, wheel, now);
		for (i = 0; i < NODES; i++)
			KUNIT_ASSERT_EQ(test, expires[i] <= now,
					is_ready(wheel, index[i]));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(expires_at_its_tick, level_gen_params),
	KUNIT_CASE_PARAM(lone_node_wakes_twice_at_most, level_gen_params),
	KUNIT_CASE_PARAM(crowd_expires_at_its_ticks, level_gen_params),
	KUNIT_CASE(last_tick_can_be_reached),
	KUNIT_CASE(late_wheel_expires_in_order),
	KUNIT_CASE(idle_time_is_skipped),
	KUNIT_CASE_PARAM(rearmed_node_expires_at_its_new_tick, change_gen_params),
	KUNIT_CASE(pushed_ahead_again_and_again),
	KUNIT_CASE_PARAM(pushed_ahead_and_forwarded, level_gen_params),
	KUNIT_CASE_PARAM(deleted_node_does_not_expire, place_gen_params),
	KUNIT_CASE_PARAM(empty_slot_leaves_no_bit, level_gen_params),
	KUNIT_CASE(drained_one_by_one),
	KUNIT_CASE_PARAM(slot_is_handed_over_whole, load_gen_params),
	KUNIT_CASE_PARAM(steps_keep_to_their_budget, load_gen_params),
	KUNIT_CASE_PARAM(moved_nodes_are_looked_through, load_gen_params),
	KUNIT_CASE(half_expired_slot_takes_changes),
	KUNIT_CASE_PARAM(wheel_asks_before_it_expires, level_gen_params),
	KUNIT_CASE_PARAM(random_use, seed_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_wheel",
	.test_cases = cases,
};

kunit_test_suite(suite);
