// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the wheel: levels, slots, bitmaps, cascading. The host tests
 * go further against a reference model; this is the wheel as the kernel has it.
 */
#include <linux/prandom.h>

#include "fixture.h"

/* Where a wheel may stand when a node comes: at edges of slots and turns. */
static const s64 starts[] = {
	0, 1, TW_LVL_CLK_DIV - 2, TW_LVL_CLK_DIV - 1, TW_LVL_CLK_DIV, 12345,
	TW_LVL_CLK_DIV * TW_LVL_CLK_DIV - 1, 1LL << 30, (1LL << 40) - 1,
};

/* How far ahead the node is: at the edges of each level's reach, in ticks. */
#define EDGES 6

static s64 edge(unsigned int level, unsigned int nr)
{
	const s64 width = 1LL << (level * TW_LVL_CLK_SHIFT);
	const s64 edges[EDGES] = { width - 1, width, width + 1, 2 * width - 1,
				   2 * width, (TW_LVL_CLK_DIV - 1) * width + 1 };

	/* Time ends within the reach of the last level. */
	return clamp_t(s64, edges[nr], 1, FIXTURE_LAST - (1LL << 41));
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
		struct tw_node *node = fixture_arm(test, wheel, expires);

		fixture_check_wheel(test, wheel);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires - 1), 0);
		KUNIT_ASSERT_EQ(test, wheel->pending, 1);
		KUNIT_ASSERT_EQ(test, wheel->next, expires);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires), 1);
		KUNIT_ASSERT_PTR_EQ(test, fixture_first_ready(wheel), node);
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
			KUNIT_ASSERT_LE(test, ++wakeups, 3 + 2 * TW_LVL_DEPTH);
		}
		KUNIT_ASSERT_EQ(test, thirds, 3);
	}
}

static void last_tick_reached(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2);

	fixture_arm(test, wheel, FIXTURE_LAST);
	fixture_arm(test, wheel, FIXTURE_LAST - 1);
	fixture_check_wheel(test, wheel);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, FIXTURE_LAST - 2), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, FIXTURE_LAST - 1), 1);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, FIXTURE_LAST), 1);
}

static void never_deadline_does_not_expire(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2);
	struct tw_node *node;

	fixture_arm_at(test, wheel, KTIME_MAX);
	node = fixture_arm_slack(test, wheel, 1, 0);
	fixture_mod_at(wheel, node, KTIME_MAX, 50);
	fixture_check_wheel(test, wheel);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, FIXTURE_LAST), 0);
	KUNIT_EXPECT_EQ(test, wheel->pending, 2);
}

/* All times of a tick expire with it, and not one of them before. */
static void deadlines_inside_a_tick_share_it(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i, n;

	for (i = 0; i < EDGES; i++) {
		struct tw_wheel *wheel = fixture_wheel(test, 1,
						       FIXTURE_TICK + 1);
		s64 expires = 2 + edge(level, i);
		s64 end = fixture_ns(wheel, expires);
		struct tw_node *node;

		for (n = 0; n <= FIXTURE_TICK; n++)
			node = fixture_arm_at(test, wheel, end - n);
		/* The last of them is of the tick before. */
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires - 2), 0);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires - 1), 1);
		KUNIT_ASSERT_PTR_EQ(test, fixture_first_ready(wheel), node);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires),
				FIXTURE_TICK);
	}
}

static void late_wheel_expires_in_order(struct kunit *test)
{
	static const s64 ticks[] = { 5000000, 64, 1, 4096, 65, 127, 128, 5000001,
				     4095, 63, 2, 262144, 5000000 };
	struct tw_wheel *wheel = fixture_wheel(test, 0, ARRAY_SIZE(ticks));
	struct tw_node *node;
	unsigned int i;
	s64 last = 0;

	for (i = 0; i < ARRAY_SIZE(ticks); i++)
		fixture_arm(test, wheel, ticks[i]);
	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 9999999),
			ARRAY_SIZE(ticks));
	while ((node = fixture_first_ready(wheel))) {
		s64 tick = fixture_tick(wheel, node);

		KUNIT_ASSERT_GE(test, tick, last);
		last = tick;
		fixture_del(wheel, node);
	}
	KUNIT_EXPECT_EQ(test, wheel->ready.count, 0);
}

static void wheel_idle_skips_time(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 5, 1);

	KUNIT_EXPECT_EQ(test, wheel->clk, 6);
	KUNIT_EXPECT_EQ(test, tw_wheel_next(wheel), TW_NEVER);
	KUNIT_EXPECT_NULL(test, fixture_first(wheel));
	tw_wheel_forward(wheel, 1000000);
	KUNIT_EXPECT_EQ(test, wheel->clk, 1000001);
	KUNIT_EXPECT_EQ(test, wheel->done_ns, 1000000LL * FIXTURE_TICK);
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
	{ "a turn of level 0 on", 50, 50 + TW_LVL_CLK_DIV, 0 },
	{ "two turns of level 0 on", 50, 50 + 2 * TW_LVL_CLK_DIV, 0 },
	{ "to another level", 50, 5000, 0 },
	{ "from another level", 5000, 50, 0 },
	{ "from afar to the next tick", 5000000, 1, 0 },
	{ "within a wide slot, later", 5000000, 5000001, 0 },
	{ "within a wide slot, earlier", 5000001, 5000000, 0 },
	{ "from one wide slot to the next", 5000000, 5300000, 0 },
	{ "when it has come down", 5000000, 5000010, 4999999 },
	{ "to the last tick", 50, FIXTURE_LAST, 0 },
	{ "from the last tick", FIXTURE_LAST, 50, 0 },
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

		for (i = 0; i < others / 2; i++)
			fixture_arm(test, wheel, change->from);
		node = fixture_arm(test, wheel, change->from);
		for (; i < others; i++)
			fixture_arm(test, wheel, change->from);
		expired = fixture_run(test, wheel, change->at);
		fixture_mod(wheel, node, change->to);
		fixture_check_wheel(test, wheel);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));

		expired += fixture_run(test, wheel, change->to - 1);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
		expired += fixture_run(test, wheel, change->to);
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
		expired += fixture_run(test, wheel, FIXTURE_LAST);
		KUNIT_ASSERT_EQ(test, expired,
				others + 1 + (change->at >= change->from));
		KUNIT_ASSERT_EQ(test, wheel->ready.count, others + 1);
	}
}

/*
 * What a node may be: like most, with slack, periodic, marked as it was before, of a clock
 * that is set back.
 */
static const struct kind {
	unsigned int slack_shift;
	bool periodic;
	bool marked;
	bool set_back;
} kinds[] = {
	{ 0 }, { 1 }, { 4 }, { 0, .periodic = true }, { 3, .periodic = true },
	{ 0, .marked = true }, { 2, .periodic = true, .marked = true },
	{ 0, .set_back = true }, { 2, .set_back = true },
};

static void set_periodic(struct tw_node *node, bool periodic)
{
	node->flags &= ~TW_NODE_PERIODIC;
	if (periodic)
		node->flags |= TW_NODE_PERIODIC;
}

/* What the wheel marks nodes with: of one that is added, this does not matter. */
#define MARKS (TW_NODE_INSPECT | TW_NODE_READY | TW_NODE_AT_ONCE)

static struct tw_node *arm_kind(struct kunit *test, struct tw_wheel *wheel,
				s64 tick, const struct kind *kind)
{
	struct tw_node *node = fixture_alloc(test, wheel);

	fixture_add(wheel, node, fixture_deadline(wheel, tick),
		    kind->slack_shift | (kind->periodic ? TW_NODE_PERIODIC : 0) |
		    (kind->marked ? MARKS : 0));
	return node;
}

static void change_kind(struct kunit *test, const struct change *change,
			const struct kind *from, const struct kind *to)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 3);
	struct tw_node *node;
	s64 tick;

	if (from->set_back)
		fixture_set_back_far(wheel);
	fixture_arm(test, wheel, change->from);
	node = arm_kind(test, wheel, change->from, from);
	fixture_arm(test, wheel, change->from);
	fixture_run(test, wheel, change->at);
	KUNIT_ASSERT_EQ(test, tw_is_ready(wheel, node),
			fixture_tick(wheel, node) <= change->at);

	set_periodic(node, to->periodic);
	fixture_mod_at(wheel, node, fixture_deadline(wheel, change->to),
		       to->slack_shift);
	fixture_check_wheel(test, wheel);
	tick = fixture_tick(wheel, node);
	KUNIT_ASSERT_GE(test, tick, change->to);
	fixture_run(test, wheel, tick - 1);
	KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
	KUNIT_ASSERT_EQ(test, node->flags & TW_NODE_SLACK, to->slack_shift);
	fixture_run(test, wheel, tick);
	KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
	KUNIT_ASSERT_EQ(test, !!(node->flags & TW_NODE_PERIODIC), to->periodic);
	KUNIT_ASSERT_EQ(test, node->flags & TW_NODE_SLACK, to->slack_shift);

	fixture_del(wheel, node);
	fixture_check_wheel(test, wheel);
	KUNIT_ASSERT_EQ(test, wheel->pending + wheel->ready.count, 2);
}

static void rearmed_node_may_be_of_another_kind(struct kunit *test)
{
	unsigned int from, to;

	for (from = 0; from < ARRAY_SIZE(kinds); from++)
		for (to = 0; to < ARRAY_SIZE(kinds); to++)
			if (kinds[from].set_back == kinds[to].set_back)
				change_kind(test, test->param_value,
					    &kinds[from], &kinds[to]);
}

static void node_pushed_ahead_stays_pending(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
	struct tw_node *node = fixture_arm(test, wheel, 100);
	s64 now;

	for (now = 1; now < 20000; now += 7) {
		fixture_mod(wheel, node, now + 100);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, now), 0);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
	}
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, now - 7 + 99), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, now - 7 + 100), 1);
}

/* Time is let pass up to where there is something to do, and no further. */
static void wheel_forwarded_stops_at_next(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	const s64 pushes[] = { 1, TW_LVL_CLK_DIV, 3 * TW_LVL_CLK_DIV * TW_LVL_CLK_DIV, 1LL << 36 };
	unsigned int i;

	for (i = 0; i < EDGES * ARRAY_SIZE(pushes); i++) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
		s64 first = edge(level, i % EDGES);
		s64 expires = first + pushes[i / EDGES];
		struct tw_node *node;
		unsigned int wakeups = 0;

		expires = min(expires, FIXTURE_LAST);
		node = fixture_arm(test, wheel, first);
		fixture_mod(wheel, node, expires);
		fixture_run(test, wheel, 0);
		while (wheel->pending) {
			tw_wheel_forward(wheel, wheel->next - 1);
			fixture_check_wheel(test, wheel);
			KUNIT_ASSERT_EQ(test, wheel->clk, wheel->next);
			fixture_run(test, wheel, wheel->next);
			KUNIT_ASSERT_LE(test, ++wakeups, 2 * TW_LVL_DEPTH);
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

/* Does a reader come to it? */
static bool is_read(const struct tw_wheel *wheel, const struct tw_node *node)
{
	struct tw_reader reader;
	struct tw_node *at;
	u32 index;

	tw_reader_init(wheel, &reader);
	do
		at = tw_reader_next(wheel, &reader, &index);
	while (at && at != node);
	return at;
}

static void deleted_node_does_not_expire(struct kunit *test)
{
	static const s64 ticks[] = { 1, TW_LVL_CLK_DIV, 100, 5000, 5000000 };
	unsigned int place = *(const unsigned int *)test->param_value;
	unsigned int t, i;

	for (t = 0; t < ARRAY_SIZE(ticks); t++) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, 3);
		struct tw_node *node[3];

		for (i = 0; i < ARRAY_SIZE(node); i++)
			node[i] = fixture_arm(test, wheel, ticks[t]);
		fixture_del(wheel, node[place]);
		KUNIT_ASSERT_EQ(test, wheel->pending, 2);
		fixture_check_wheel(test, wheel);

		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, ticks[t]), 2);
		for (i = 0; i < ARRAY_SIZE(node); i++)
			KUNIT_ASSERT_EQ(test, is_read(wheel, node[i]), i != place);
	}
}

static void empty_slot_leaves_no_bit(struct kunit *test)
{
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i, slot;

	for (i = 0; i < EDGES; i++) {
		s64 expires = 7 + edge(level, i);
		struct tw_wheel *wheel = fixture_wheel(test, 7, 2);
		struct tw_node *node = fixture_arm(test, wheel, expires);
		struct tw_node *moved = fixture_arm(test, wheel, expires);

		fixture_mod(wheel, moved, expires + 1);
		fixture_del(wheel, node);
		KUNIT_ASSERT_EQ(test, wheel->pending, 1);
		fixture_del(wheel, moved);
		KUNIT_ASSERT_EQ(test, wheel->pending, 0);
		KUNIT_ASSERT_EQ(test, wheel->next, TW_NEVER);
		KUNIT_ASSERT_EQ(test, tw_wheel_next(wheel), TW_NEVER);
		KUNIT_ASSERT_EQ(test, wheel->levels, 0);
		KUNIT_ASSERT_NULL(test, memchr_inv(wheel->occupied, 0,
						   sizeof(wheel->occupied)));
		for (slot = 0; slot < TW_SLOTS; slot++)
			KUNIT_ASSERT_EQ(test, wheel->slots->slot[slot].inspect, 0);
		KUNIT_ASSERT_NULL(test, fixture_first(wheel));
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires + 1), 0);
	}
}

static void wheel_drained_one_by_one_empty(struct kunit *test)
{
	const unsigned int nodes = ARRAY_SIZE(levels) * EDGES;
	struct tw_wheel *wheel = fixture_wheel(test, 0, nodes);
	unsigned int i;

	for (i = 0; i < nodes; i++)
		fixture_arm(test, wheel, edge(i / EDGES, i % EDGES));
	for (; i; i--) {
		struct tw_node *node = fixture_first(wheel);

		KUNIT_ASSERT_NOT_NULL(test, node);
		KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
		fixture_del(wheel, node);
		fixture_check_wheel(test, wheel);
	}
	KUNIT_EXPECT_NULL(test, fixture_first(wheel));
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

/* What is handed over as a whole is not written to. */
static void check_flags(struct kunit *test, const struct tw_wheel *wheel, u16 flags)
{
	struct tw_reader reader;
	struct tw_node *node;
	u32 index;

	tw_reader_init(wheel, &reader);
	while ((node = tw_reader_next(wheel, &reader, &index)))
		KUNIT_ASSERT_EQ(test, node->flags & ~TW_NODE_SLACK, flags);
	KUNIT_ASSERT_EQ(test, reader.nr, wheel->ready.count);
}

static void slot_due_expires_whole(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	struct tw_step step = { .now = load->expires, .budget = 1 };
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
	check_flags(test, wheel, 0);
	fixture_check_wheel(test, wheel);
}

/* When the clock was set back, nothing is said by a deadline alone. */
static void slot_after_set_back_expires_by_node(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	u32 budget = max(load->budget, 2U);
	unsigned int i;

	fixture_set_back_far(wheel);
	for (i = 0; i < load->nodes; i++)
		fixture_arm(test, wheel, load->expires);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires - 1,
					   budget), 0);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires, budget),
			load->nodes);
	check_flags(test, wheel, TW_NODE_READY);
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

/* A third of the nodes of a slot is moved to later while they are in it. */
static void arm_and_move(struct kunit *test, struct tw_wheel *wheel,
			 const struct load *load)
{
	struct tw_node *node;
	unsigned int i;

	for (i = 0; i < load->nodes; i++) {
		node = fixture_arm(test, wheel, load->expires);
		if (i % 3 == 0)
			fixture_mod(wheel, node, load->expires + 10);
	}
	fixture_check_wheel(test, wheel);
}

/* From a wide slot it takes steps to bring each to its own tick. */
static void moved_nodes_cascade_to_their_tick(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	u32 budget = max(load->budget, 2U);
	unsigned int moved = (load->nodes + 2) / 3;

	arm_and_move(test, wheel, load);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires - 1,
					   budget), 0);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires, budget),
			load->nodes - moved);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires + 9,
					   budget), 0);
	KUNIT_EXPECT_EQ(test, run_in_steps(test, wheel, load->expires + 10,
					   budget), moved);
}

/* On level 0 they leave the others at once, and both come as wholes. */
static void moved_nodes_leave_slot_whole(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	struct tw_step step = { .now = load->expires };
	unsigned int moved = (load->nodes + 2) / 3;

	tw_wheel_forward(wheel, load->expires - 1);
	arm_and_move(test, wheel, load);
	step.budget = 1;
	tw_wheel_step(wheel, &step);
	KUNIT_EXPECT_EQ(test, step.expired, load->nodes - moved);
	step.now += 10;
	step.budget = 1;
	tw_wheel_step(wheel, &step);
	KUNIT_EXPECT_EQ(test, step.expired, moved);
	KUNIT_EXPECT_EQ(test, step.moved, 0);
	fixture_check_wheel(test, wheel);
}

/* What was ready, or had slack, and is armed without it, comes as a whole as well. */
static void rearmed_nodes_leave_slot_whole(struct kunit *test)
{
	const struct load *load = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, load->nodes);
	struct tw_step step = { .now = 20, .budget = 1 };
	struct tw_node **nodes = kunit_kcalloc(test, load->nodes, sizeof(*nodes), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, nodes);
	for (i = 0; i < load->nodes; i++)
		nodes[i] = i % 2 ? fixture_arm_slack(test, wheel, load->expires, 4) :
				   fixture_arm(test, wheel, 10);
	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 19), (load->nodes + 1) / 2);
	for (i = 0; i < load->nodes; i++)
		fixture_mod(wheel, nodes[i], 20);
	tw_wheel_step(wheel, &step);
	KUNIT_EXPECT_EQ(test, step.expired, load->nodes);
	KUNIT_EXPECT_EQ(test, step.moved, 0);
	check_flags(test, wheel, 0);
	fixture_check_wheel(test, wheel);
}

static void half_expired_slot_accepts_changes(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 100);
	struct tw_step step = { .now = 10, .budget = 33 };
	struct tw_node *node[100];
	unsigned int i, ready = 0;

	for (i = 0; i < 99; i++)
		node[i] = fixture_arm(test, wheel, 10);
	/* Now the slot is not handed over whole. */
	node[99] = fixture_arm_slack(test, wheel, 10, 1);
	KUNIT_ASSERT_TRUE(test, tw_wheel_step(wheel, &step));
	fixture_check_wheel(test, wheel);
	KUNIT_ASSERT_GT(test, step.expired, 0);
	KUNIT_ASSERT_LT(test, step.expired, 98);
	for (i = 0; i < 100; i++) {
		/* Nothing counts as ready before it is on the list. */
		if (tw_is_ready(wheel, node[i]))
			ready++;
	}
	KUNIT_EXPECT_EQ(test, ready, wheel->ready.count);
	KUNIT_EXPECT_EQ(test, ready, step.expired);

	fixture_del(wheel, node[0]);
	fixture_del(wheel, node[98]);
	fixture_mod(wheel, node[1], 15);
	fixture_mod(wheel, node[97], 15);
	fixture_check_wheel(test, wheel);
	fixture_run(test, wheel, 10);
	KUNIT_EXPECT_EQ(test, wheel->ready.count, 96);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 14), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 15), 2);
}

/* A node with slack is pending when its deadline is long over. */
static void slack_node_waits_for_its_multiple(struct kunit *test)
{
	static const unsigned int shifts[] = { 1, 3, 6, 7, 13, 20 };
	unsigned int level = *(const unsigned int *)test->param_value;
	unsigned int i;

	for (i = 0; i < EDGES * ARRAY_SIZE(shifts); i++) {
		struct tw_wheel *wheel = fixture_wheel(test, 5, 1);
		s64 tick = 5 + edge(level, i % EDGES);
		struct tw_node *node;
		s64 expires;

		node = fixture_arm_slack(test, wheel, tick, shifts[i / EDGES]);
		expires = fixture_tick(wheel, node);
		fixture_check_wheel(test, wheel);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, tick - 1), 0);
		KUNIT_ASSERT_EQ(test, wheel->next, expires);
		if (expires > tick) {
			KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, tick), 0);
			KUNIT_ASSERT_EQ(test, fixture_run(test, wheel,
							  expires - 1), 0);
			KUNIT_ASSERT_LE(test, node->deadline, wheel->done_ns);
			KUNIT_ASSERT_FALSE(test, tw_is_ready(wheel, node));
		}
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, expires), 1);
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
	}
}

/* And so it can be changed and taken out of where it is, which is no ready list. */
static void slack_node_overdue_accepts_changes(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 4);
	struct tw_node *later = fixture_arm_slack(test, wheel, 65, 7);
	struct tw_node *exact = fixture_arm_slack(test, wheel, 65, 7);
	struct tw_node *gone = fixture_arm_slack(test, wheel, 65, 7);
	struct tw_node *stays = fixture_arm_slack(test, wheel, 65, 7);

	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 100), 0);
	fixture_mod(wheel, exact, 110);
	fixture_mod_at(wheel, later, fixture_deadline(wheel, 129), 7);
	fixture_del(wheel, gone);
	fixture_check_wheel(test, wheel);
	KUNIT_EXPECT_EQ(test, wheel->pending, 3);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 109), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 110), 1);
	KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, exact));
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 127), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 128), 1);
	KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, stays));
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 255), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 256), 1);
	KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, later));
}

/* One node with slack in a slot, and none of it is expired whole. */
static void slack_node_slot_never_expires_whole(struct kunit *test)
{
	static const s64 ticks[] = { 8, TW_LVL_CLK_DIV, 5000, 5000000 };
	unsigned int place = *(const unsigned int *)test->param_value;
	const unsigned int nodes = 3 * TW_SMALL_SLOT;
	unsigned int slack_at = place * (nodes - 1) / 2;
	unsigned int t, i;
	bool more;

	for (t = 0; t < ARRAY_SIZE(ticks); t++) {
		struct tw_wheel *wheel = fixture_wheel(test, 0, nodes + 2);
		struct tw_node *slack = NULL;
		struct tw_step step = { .now = ticks[t] };

		for (i = 0; i < nodes; i++)
			if (i == slack_at)
				slack = fixture_arm_slack(test, wheel,
							  ticks[t] - 6, 3);
			else
				fixture_arm(test, wheel, ticks[t]);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, ticks[t] - 1), 0);
		do {
			step.budget = 5;
			more = tw_wheel_step(wheel, &step);
			KUNIT_ASSERT_TRUE(test, more || !wheel->pending);
			fixture_check_wheel(test, wheel);
			KUNIT_ASSERT_LE(test, step.expired, 4);
			KUNIT_ASSERT_EQ(test, tw_is_ready(wheel, slack),
					!!(slack->flags & TW_NODE_READY));
		} while (wheel->pending);
		check_flags(test, wheel, TW_NODE_READY);

		/* Of that, the slot knows nothing more when it is used again. */
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, ticks[t]), 0);
		tw_wheel_forward(wheel, ticks[t] + TW_LVL_SIZE - 1);
		fixture_arm(test, wheel, ticks[t] + TW_LVL_SIZE);
		fixture_arm(test, wheel, ticks[t] + TW_LVL_SIZE);
		step.now = ticks[t] + TW_LVL_SIZE;
		step.budget = 1;
		tw_wheel_step(wheel, &step);
		KUNIT_ASSERT_EQ(test, step.expired, 2);
	}
}

/* By how many ticks the clock is set back, when the wheel is so far on its way. */
static const struct set_back {
	const char *name;
	s64 ticks;
	unsigned int quarters;
} set_backs[] = {
	{ "a tick, at once", 1, 0 },
	{ "a tick, on the way", 1, 2 },
	{ "a tick, at the last moment", 1, 4 },
	{ "a turn, on the way", TW_LVL_CLK_DIV, 2 },
	{ "two turns, at the last moment", 2 * TW_LVL_CLK_DIV, 4 },
	{ "far, at once", 1LL << 36, 0 },
	{ "far, on the way", 1LL << 36, 3 },
	{ "far, at the last moment", (1LL << 36) + 1, 4 },
};

static void describe_set_back(const struct set_back *back, char *desc)
{
	strscpy(desc, back->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(set_back, set_backs, describe_set_back);

/* Where a wheel starts whose clock is set back by any of that, twice. */
#define START (TW_REACH >> 14)

/* Run from expiry to expiry, and see each node expire then and not before. */
static void check_expiries(struct kunit *test, struct tw_wheel *wheel,
			   struct tw_node **nodes, unsigned int nr)
{
	while (wheel->pending) {
		s64 first = TW_NEVER;
		unsigned int i, due = 0;

		for (i = 0; i < nr; i++)
			if (!tw_is_ready(wheel, nodes[i]))
				first = min(first, fixture_tick(wheel, nodes[i]));
		for (i = 0; i < nr; i++)
			due += !tw_is_ready(wheel, nodes[i]) &&
			       fixture_tick(wheel, nodes[i]) == first;
		KUNIT_ASSERT_GE(test, first, wheel->clk);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, first - 1), 0);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, first), due);
	}
}

static void clock_set_back_deadlines_kept(struct kunit *test)
{
	const struct set_back *back = test->param_value;
	unsigned int i, n;

	/* (What the last level reaches to is too far for all that.) */
	for (i = 0; i < 8 * EDGES; i++) {
		struct tw_wheel *wheel = fixture_wheel(test, START, 3);
		s64 ahead = edge(i / EDGES, i % EDGES) + 4;
		s64 at = START + (ahead - 1) * back->quarters / 4;
		struct tw_node *node[3];

		node[0] = fixture_arm(test, wheel, START + ahead);
		node[1] = fixture_arm(test, wheel, START + ahead);
		node[2] = fixture_arm_slack(test, wheel, START + ahead - 2, 3);
		for (n = 0; n < 2; n++) {
			fixture_run(test, wheel, at);
			fixture_set_back(test, wheel, back->ticks);
			fixture_check_wheel(test, wheel);
		}
		/* So that one is put in by the new time, beside the others. */
		fixture_mod(wheel, node[1], fixture_tick(wheel, node[0]));
		check_expiries(test, wheel, node, 3);
	}
}

/* A wheel that is run when it asks for it finds out that it asked too early. */
static void wheel_woken_early_after_set_back_asks_again(struct kunit *test)
{
	const struct set_back *back = test->param_value;
	unsigned int i;

	for (i = 0; i < 8 * EDGES; i++) {
		struct tw_wheel *wheel = fixture_wheel(test, START, 1);
		s64 expires = START + edge(i / EDGES, i % EDGES);
		unsigned int wakeups = 0;

		fixture_arm(test, wheel, expires);
		fixture_set_back(test, wheel, back->ticks);
		while (wheel->pending) {
			KUNIT_ASSERT_GE(test, wheel->next, wheel->clk);
			KUNIT_ASSERT_LE(test, wheel->next, expires + back->ticks);
			fixture_run(test, wheel, wheel->next);
			KUNIT_ASSERT_LE(test, ++wakeups, 2 * TW_LVL_DEPTH);
		}
		KUNIT_ASSERT_EQ(test, wheel->clk, expires + back->ticks + 1);
	}
}

static void ready_node_stays_ready_after_set_back(struct kunit *test)
{
	const struct set_back *back = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, START, 2);
	struct tw_node *node[2];

	node[0] = fixture_arm(test, wheel, START + 10);
	node[1] = fixture_arm(test, wheel, START + 10);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, START + 10), 2);
	fixture_set_back(test, wheel, back->ticks);
	fixture_run(test, wheel, START + 10);
	KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, node[0]));
	KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, node[1]));

	/* Until it is changed. The same deadline lies ahead again. */
	fixture_mod_at(wheel, node[0], node[0]->deadline, 0);
	KUNIT_EXPECT_FALSE(test, tw_is_ready(wheel, node[0]));
	KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, node[1]));
	KUNIT_EXPECT_EQ(test, wheel->ready.count, 1);

	/* As long as there is the other, that one has to be marked. */
	KUNIT_EXPECT_FALSE(test, tw_wheel_settle(wheel));
	fixture_del(wheel, node[1]);
	KUNIT_EXPECT_TRUE(test, tw_wheel_settle(wheel));
	KUNIT_EXPECT_FALSE(test, wheel->set_back);
	KUNIT_EXPECT_EQ(test, wheel->done_ns, fixture_ns(wheel, START + 10));
	KUNIT_EXPECT_FALSE(test, tw_is_ready(wheel, node[0]));
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, START + 9 + back->ticks),
			0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, START + 10 + back->ticks),
			1);
}

static void half_expired_slot_set_back_kept(struct kunit *test)
{
	const struct set_back *back = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, START, 100);
	struct tw_step step = { .now = START + 10, .budget = 33 };
	unsigned int i;

	fixture_set_back_far(wheel);
	for (i = 0; i < 100; i++)
		fixture_arm(test, wheel, START + 10);
	KUNIT_ASSERT_TRUE(test, tw_wheel_step(wheel, &step));
	KUNIT_ASSERT_EQ(test, step.expired, 32);
	fixture_set_back(test, wheel, back->ticks);
	fixture_check_wheel(test, wheel);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, START + 10), 0);
	KUNIT_EXPECT_EQ(test, wheel->ready.count, 32);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, START + 9 + back->ticks),
			0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, START + 10 + back->ticks),
			68);
}

/* What is ready and what is on level 0 goes by, and the wheel is as it was. */
static void set_back_ends(struct kunit *test)
{
	const struct set_back *back = test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, START, 100);
	struct tw_step step = { .budget = 1 };
	unsigned int i;
	s64 tick;

	for (i = 0; i < 10; i++)
		fixture_arm(test, wheel, START + 1 + i % 2);
	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, START + 1), 5);
	fixture_set_back(test, wheel, back->ticks);
	KUNIT_EXPECT_FALSE(test, tw_wheel_settle(wheel));
	while (fixture_read(wheel))
		;
	KUNIT_EXPECT_TRUE(test, tw_wheel_settle(wheel));

	tick = max(START + 2 + back->ticks, START + 2 + TW_LVL_SIZE);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, tick), 5);
	KUNIT_EXPECT_GE(test, wheel->clk, wheel->inspect);
	while (fixture_read(wheel))
		;
	for (i = 0; i < 50; i++)
		fixture_arm(test, wheel, tick + 1);
	step.now = tick + 1;
	tw_wheel_step(wheel, &step);
	KUNIT_EXPECT_EQ(test, step.expired, 50);
	check_flags(test, wheel, 0);
	fixture_check_wheel(test, wheel);
}

/* To the end of time and back, over and over: it could go on for ever. */
static void clock_set_back_repeatedly_ticks_bounded(struct kunit *test)
{
	s64 far = div_s64(KTIME_MAX, FIXTURE_TICK) / 4, expires;
	struct tw_wheel *wheel = fixture_wheel(test, far, 2);
	struct tw_node *node[2];
	unsigned int turn, spans = 0;

	node[0] = fixture_arm(test, wheel, 3 * far);
	node[1] = fixture_arm_slack(test, wheel, 3 * far, 3);
	for (turn = 0; turn < 1000; turn++) {
		s64 now = wheel->clk - 1, added;

		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, now + far), 0);
		added = tw_wheel_set_back(wheel, now);
		KUNIT_ASSERT_TRUE(test, added == far || added == far - TW_SPAN);
		spans += added != far;
		KUNIT_ASSERT_GE(test, wheel->clock.tick_offset, 0);
		KUNIT_ASSERT_LT(test, wheel->clock.tick_offset, TW_SPAN);
		KUNIT_ASSERT_EQ(test, wheel->clk - 1 - wheel->clock.tick_offset, far);
		KUNIT_ASSERT_TRUE(test, tw_wheel_settle(wheel));
		fixture_check_wheel(test, wheel);
		/* The wheel's levels are as if it had begun there. */
		KUNIT_ASSERT_LE(test, wheel->clk, wheel->level[0].reach);
		KUNIT_ASSERT_LE(test, wheel->level[0].reach,
				wheel->clk + TW_LVL_SIZE);
	}
	KUNIT_EXPECT_GT(test, spans, 10);
	expires = fixture_tick(wheel, node[0]);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, expires - 1), 0);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, expires + 8), 2);
}

static const struct seed {
	u64 seed;
	s64 span;
	bool settable;
} seeds[] = {
	{ 1, TW_LVL_CLK_DIV }, { 2, 3 * TW_LVL_CLK_DIV }, { 3, TW_LVL_CLK_DIV * TW_LVL_CLK_DIV },
	{ 4, 1LL << 20 }, { 5, 1LL << 40 }, { 6, TW_LVL_CLK_DIV, true },
	{ 7, 3 * TW_LVL_CLK_DIV, true }, { 8, TW_LVL_CLK_DIV * TW_LVL_CLK_DIV, true },
	{ 9, 1LL << 20, true }, { 10, 1LL << 40, true },
};

static void describe_seed(const struct seed *seed, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "seed %llu, span %lld%s",
		 seed->seed, seed->span, seed->settable ? ", settable" : "");
}

KUNIT_ARRAY_PARAM(seed, seeds, describe_seed);

#define NODES 200

static s64 random_below(struct rnd_state *rnd, s64 limit)
{
	return mul_u64_u32_shr(limit, prandom_u32_state(rnd), 32);
}

static void random_mod(struct tw_wheel *wheel, struct tw_node *node, s64 tick,
		       struct rnd_state *rnd)
{
	u32 random = prandom_u32_state(rnd);

	if (random % 4 == 0)
		set_periodic(node, random & 4);
	fixture_mod_at(wheel, node, fixture_deadline(wheel, tick),
		       random % 3 ? 0 : random % 5);
}

/* What became ready must have been due; and all that was due is ready. */
static void random_use(struct kunit *test)
{
	const struct seed *param = test->param_value;
	s64 now = param->settable ? START : 0;
	struct tw_wheel *wheel = fixture_wheel(test, now, NODES);
	struct rnd_state rnd;
	unsigned int round, i;
	struct used {
		struct tw_node *node;
		bool ready;
	} *used;

	used = kunit_kcalloc(test, NODES, sizeof(*used), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, used);
	prandom_seed_state(&rnd, param->seed);
	for (i = 0; i < NODES; i++)
		used[i].node = fixture_arm(test, wheel, now + 1 +
					   random_below(&rnd, param->span));
	for (round = 0; round < 2000; round++) {
		i = random_below(&rnd, NODES);
		random_mod(wheel, used[i].node, wheel->clk +
			   random_below(&rnd, param->span), &rnd);
		used[i].ready = false;
		if (round % 4)
			continue;
		now += random_below(&rnd, param->span / 16);
		if (param->settable && round % 64 == 0)
			fixture_set_back(test, wheel,
					 random_below(&rnd, param->span / 8));
		if (now < wheel->clk)
			continue;
		fixture_run(test, wheel, now);
		for (i = 0; i < NODES; i++) {
			used[i].ready |= fixture_tick(wheel, used[i].node) <= now;
			KUNIT_ASSERT_EQ(test, used[i].ready,
					tw_is_ready(wheel, used[i].node));
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(expires_at_its_tick, level_gen_params),
	KUNIT_CASE_PARAM(lone_node_wakes_twice_at_most, level_gen_params),
	KUNIT_CASE_PARAM(crowd_expires_at_its_ticks, level_gen_params),
	KUNIT_CASE_PARAM(deadlines_inside_a_tick_share_it, level_gen_params),
	KUNIT_CASE(last_tick_reached),
	KUNIT_CASE(never_deadline_does_not_expire),
	KUNIT_CASE(late_wheel_expires_in_order),
	KUNIT_CASE(wheel_idle_skips_time),
	KUNIT_CASE_PARAM(rearmed_node_expires_at_its_new_tick, change_gen_params),
	KUNIT_CASE_PARAM(rearmed_node_may_be_of_another_kind, change_gen_params),
	KUNIT_CASE(node_pushed_ahead_stays_pending),
	KUNIT_CASE_PARAM(wheel_forwarded_stops_at_next, level_gen_params),
	KUNIT_CASE_PARAM(deleted_node_does_not_expire, place_gen_params),
	KUNIT_CASE_PARAM(empty_slot_leaves_no_bit, level_gen_params),
	KUNIT_CASE(wheel_drained_one_by_one_empty),
	KUNIT_CASE_PARAM(slot_due_expires_whole, load_gen_params),
	KUNIT_CASE_PARAM(slot_after_set_back_expires_by_node, load_gen_params),
	KUNIT_CASE_PARAM(steps_keep_to_their_budget, load_gen_params),
	KUNIT_CASE_PARAM(moved_nodes_cascade_to_their_tick, load_gen_params),
	KUNIT_CASE_PARAM(moved_nodes_leave_slot_whole, load_gen_params),
	KUNIT_CASE_PARAM(rearmed_nodes_leave_slot_whole, load_gen_params),
	KUNIT_CASE(half_expired_slot_accepts_changes),
	KUNIT_CASE_PARAM(slack_node_waits_for_its_multiple, level_gen_params),
	KUNIT_CASE(slack_node_overdue_accepts_changes),
	KUNIT_CASE_PARAM(slack_node_slot_never_expires_whole, place_gen_params),
	KUNIT_CASE_PARAM(clock_set_back_deadlines_kept, set_back_gen_params),
	KUNIT_CASE_PARAM(wheel_woken_early_after_set_back_asks_again, set_back_gen_params),
	KUNIT_CASE_PARAM(ready_node_stays_ready_after_set_back,
			 set_back_gen_params),
	KUNIT_CASE_PARAM(half_expired_slot_set_back_kept, set_back_gen_params),
	KUNIT_CASE_PARAM(set_back_ends, set_back_gen_params),
	KUNIT_CASE(clock_set_back_repeatedly_ticks_bounded),
	KUNIT_CASE_PARAM(random_use, seed_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_wheel",
	.test_cases = cases,
};

kunit_test_suite(suite);
