// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of what is ready, and of readers, who come to it in the order of its ticks.
 */
#include "fixture.h"

#define MOST 9

/**
 * struct entry - a node that is ready
 * @node: the node
 * @order: after which others it comes: a number for each tick
 * @at_once: it was ready when it came, and need not wait for those of earlier ticks
 */
struct entry {
	struct tw_node *node;
	unsigned int order;
	bool at_once;
};

/**
 * struct model - what shall be ready
 * @count: nodes
 * @entry: the nodes
 */
struct model {
	unsigned int count;
	struct entry entry[MOST];
};

static void model_add(struct model *model, struct tw_node *node, unsigned int order)
{
	model->entry[model->count++] = (struct entry){ .node = node, .order = order };
}

static void model_add_at_once(struct model *model, struct tw_node *node,
			      unsigned int order)
{
	model_add(model, node, order);
	model->entry[model->count - 1].at_once = true;
}

static void model_remove(struct model *model, unsigned int at)
{
	unsigned int i;

	model->count--;
	for (i = at; i < model->count; i++)
		model->entry[i] = model->entry[i + 1];
}

static unsigned int model_find(struct kunit *test, const struct model *model,
			       const struct tw_node *node)
{
	unsigned int at;

	for (at = 0; at < model->count; at++)
		if (model->entry[at].node == node)
			break;
	KUNIT_ASSERT_LT(test, at, model->count);
	return at;
}

/* A reader came to this one: does it come now, after those of @order? */
static void check_entry(struct kunit *test, const struct model *model,
			const struct tw_node *node, unsigned int *order)
{
	const struct entry *entry = &model->entry[model_find(test, model, node)];

	KUNIT_ASSERT_GE(test, entry->order, *order);
	if (!entry->at_once)
		*order = entry->order;
}

/* Walk along what is ready as a reader of events does: there is all of it, each once. */
static void check(struct kunit *test, const struct tw_wheel *wheel,
		  const struct model *model)
{
	struct tw_reader reader;
	unsigned int order = 0, i;
	struct tw_node *node;
	bool seen[MOST] = {};
	u32 index;

	fixture_check_ready(test, wheel);
	KUNIT_ASSERT_EQ(test, wheel->ready.count, model->count);
	tw_reader_init(wheel, &reader);
	for (i = 0; i < model->count; i++) {
		node = tw_reader_next(wheel, &reader, &index);
		KUNIT_ASSERT_NOT_NULL(test, node);
		KUNIT_ASSERT_EQ(test, index, fixture_index(wheel, node));
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
		KUNIT_ASSERT_EQ(test, reader.nr, i + 1);
		check_entry(test, model, node, &order);
		KUNIT_ASSERT_FALSE(test, seen[model_find(test, model, node)]);
		seen[model_find(test, model, node)] = true;
	}
	KUNIT_ASSERT_NULL(test, tw_reader_next(wheel, &reader, &index));
	KUNIT_ASSERT_EQ(test, reader.nr, model->count);
}

/* Read so many at a time, and take them out, until there are none. */
static void read_all(struct kunit *test, struct tw_wheel *wheel, struct model *model,
		     unsigned int at_a_time)
{
	unsigned int order = 0, n;

	while (model->count) {
		struct tw_node *nodes[MOST];
		struct tw_reader reader;
		u32 index;

		tw_reader_init(wheel, &reader);
		for (n = 0; n < min(at_a_time, model->count); n++) {
			nodes[n] = tw_reader_next(wheel, &reader, &index);
			KUNIT_ASSERT_NOT_NULL(test, nodes[n]);
			check_entry(test, model, nodes[n], &order);
		}
		tw_reader_cut(wheel, &reader);
		while (n--)
			model_remove(model, model_find(test, model, nodes[n]));
		check(test, wheel, model);
	}
}

/* A node is ready at once whatever its deadline says, as the clock may be set back. */
static const s64 deadlines[] = { 0, 1, 1008, U32_MAX, 1LL << 60, KTIME_MAX };

static void describe_deadline(const s64 *deadline, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "deadline %lld", *deadline);
}

KUNIT_ARRAY_PARAM(deadline, deadlines, describe_deadline);

static void ready_at_once_rest_untouched(struct kunit *test)
{
	s64 deadline = *(const s64 *)test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2);
	unsigned int periodic;

	for (periodic = 0; periodic < 2; periodic++) {
		struct tw_node *node = fixture_alloc(test, wheel);
		u32 gen = node->gen;

		node->deadline = deadline;
		node->user_data = U64_MAX;
		node->flags = 53 | TW_NODE_INSPECT | (periodic ? TW_NODE_PERIODIC : 0);
		tw_wheel_add_ready(wheel, node, fixture_index(wheel, node));
		KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, node));
		KUNIT_EXPECT_FALSE(test, node->flags & TW_NODE_INSPECT);
		KUNIT_EXPECT_EQ(test, node->deadline, deadline);
		KUNIT_EXPECT_EQ(test, node->flags & TW_NODE_SLACK, 53);
		KUNIT_EXPECT_EQ(test, node->user_data, U64_MAX);
		KUNIT_EXPECT_EQ(test, node->gen, gen);
		KUNIT_EXPECT_EQ(test, !!(node->flags & TW_NODE_PERIODIC), periodic);
	}
	KUNIT_EXPECT_EQ(test, wheel->pending, 0);
	fixture_check_ready(test, wheel);
}

/* Whatever their deadlines, none of them waits for another. */
static void ready_at_once_all_read(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2 * MOST * MOST);
	unsigned int at_a_time, i;

	for (at_a_time = 1; at_a_time <= MOST; at_a_time++) {
		struct model model = {};

		for (i = 0; i < MOST; i++) {
			s64 deadline = deadlines[i % ARRAY_SIZE(deadlines)];

			model_add_at_once(&model, fixture_arm_ready(test, wheel, deadline),
					  0);
			check(test, wheel, &model);
		}
		read_all(test, wheel, &model, at_a_time);
		KUNIT_EXPECT_NULL(test, fixture_first_ready(wheel));
	}
}

/* There are two ways to take out the first one. */
static void first_ready_deleted_others_stay(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2 * MOST);
	struct model model = {};
	unsigned int way;

	for (way = 0; way < 2; way++) {
		while (model.count < MOST)
			model_add_at_once(&model, fixture_arm_ready(test, wheel, 0), 0);
		while (model.count) {
			struct tw_node *node = fixture_first_ready(wheel);

			if (way)
				KUNIT_ASSERT_PTR_EQ(test, fixture_read(wheel), node);
			else
				fixture_del(wheel, node);
			model_remove(&model, model_find(test, &model, node));
			check(test, wheel, &model);
		}
		KUNIT_EXPECT_NULL(test, fixture_first_ready(wheel));
	}
}

/* Nodes of three slots that expire one after the other, each at its time. */
static const struct sizes {
	unsigned int nodes[3];
} sizes[] = {
	{ { 1, 1, 1 } }, { { 2, 1, 1 } }, { { 1, 2, 1 } }, { { 1, 1, 2 } },
	{ { 2, 2, 2 } }, { { 3, 1, 2 } }, { { 1, 3, 1 } }, { { 3, 3, 3 } },
	{ { 9, 0, 0 } }, { { 0, 0, 1 } },
};

static void describe_sizes(const struct sizes *sizes, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u, %u and %u nodes",
		 sizes->nodes[0], sizes->nodes[1], sizes->nodes[2]);
}

KUNIT_ARRAY_PARAM(sizes, sizes, describe_sizes);

/* By how many ticks the wheel is late: then slots expire together */
static const s64 lates[] = { 0, 1, 1000, 1LL << 40 };

/* Arm and expire the nodes of the three slots, @late. */
static void expire_slots(struct kunit *test, struct tw_wheel *wheel,
			 const struct sizes *sizes, s64 late,
			 struct model *model)
{
	s64 start = wheel->clk;
	unsigned int slot, i;

	*model = (struct model){};
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++)
		for (i = 0; i < sizes->nodes[slot]; i++)
			model_add(model, fixture_arm(test, wheel, start + slot), slot);
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++) {
		struct tw_step step = { .now = start + slot + late };

		do
			step.budget = 16;
		while (tw_wheel_step(wheel, &step));
	}
	check(test, wheel, model);
}

/* Take all out that is ready, so that the wheel can be used again. */
static void empty(struct kunit *test, struct tw_wheel *wheel)
{
	struct tw_node *node;

	while ((node = fixture_read(wheel)))
		fixture_free(wheel, node);
	KUNIT_ASSERT_EQ(test, wheel->ready.count, 0);
	KUNIT_ASSERT_EQ(test, wheel->pending, 0);
}

static void slots_come_in_order(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, 2 * MOST * MOST * ARRAY_SIZE(lates));
	unsigned int i, at_a_time;
	struct model model;

	for (i = 0; i < ARRAY_SIZE(lates); i++)
		for (at_a_time = 1; at_a_time <= MOST; at_a_time++) {
			expire_slots(test, wheel, test->param_value, lates[i], &model);
			KUNIT_EXPECT_EQ(test, wheel->pending, 0);
			read_all(test, wheel, &model, at_a_time);
			KUNIT_EXPECT_EQ(test, wheel->ready.count, 0);
		}
}

/*
 * A node that is taken out from anywhere leaves the others ready, in order. Which are
 * taken, and in which order, is gone through by counting in a number system with as
 * many digits as there are nodes.
 */
static void take_out(struct kunit *test, struct tw_wheel *wheel,
		     const struct sizes *sizes, s64 late)
{
	unsigned int way, nodes, ways = 1;
	unsigned int i;

	for (i = 0, nodes = 0; i < ARRAY_SIZE(sizes->nodes); i++)
		nodes += sizes->nodes[i];
	for (i = 0; i < min(nodes, 3U); i++)
		ways *= nodes - i;
	for (way = 0; way < ways; way++) {
		unsigned int digits = way;
		struct model model;

		expire_slots(test, wheel, sizes, late, &model);
		for (i = 0; i < min(nodes, 3U); i++) {
			unsigned int at = digits % model.count;

			digits /= model.count;
			fixture_del(wheel, model.entry[at].node);
			fixture_free(wheel, model.entry[at].node);
			model_remove(&model, at);
			check(test, wheel, &model);
		}
		empty(test, wheel);
	}
}

static void ready_node_deleted_others_stay(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lates); i++)
		take_out(test, wheel, test->param_value, lates[i]);
}

static void rearm_ready(struct kunit *test, const struct sizes *sizes,
			unsigned int at, s64 late)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	struct tw_node *node;
	struct model model;
	s64 tick;

	expire_slots(test, wheel, sizes, late, &model);
	tick = wheel->clk + 100;
	node = model.entry[at].node;
	fixture_mod(wheel, node, tick);
	model_remove(&model, at);
	check(test, wheel, &model);
	KUNIT_ASSERT_EQ(test, wheel->pending, 1);

	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, tick - 1), 0);
	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, tick), 1);
	model_add(&model, node, ARRAY_SIZE(sizes->nodes));
	check(test, wheel, &model);
}

static void rearmed_node_is_withdrawn(struct kunit *test)
{
	const struct sizes *sizes = test->param_value;
	unsigned int at, nodes, i;

	for (i = 0, nodes = 0; i < ARRAY_SIZE(sizes->nodes); i++)
		nodes += sizes->nodes[i];
	for (at = 0; at < nodes; at++)
		for (i = 0; i < ARRAY_SIZE(lates); i++)
			rearm_ready(test, sizes, at, lates[i]);
}

static void node_overdue_ready_at_once(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, 3);
	struct tw_node *soon, *later, *now;
	struct model model = {};

	/* Behind what has expired, before what has yet to. */
	soon = fixture_arm(test, wheel, 101);
	later = fixture_arm(test, wheel, 102);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 101), 1);
	now = fixture_arm_ready(test, wheel, fixture_ns(wheel, 101) + 1);
	KUNIT_EXPECT_EQ(test, wheel->pending, 1);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 102), 1);
	model_add(&model, soon, 0);
	model_add_at_once(&model, now, 0);
	model_add(&model, later, 1);
	check(test, wheel, &model);
}

static void ready_at_once_takes_turns_with_slots(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, 5);
	struct model model = {};
	unsigned int i;

	for (i = 0; i < 2; i++)
		model_add(&model, fixture_arm(test, wheel, 101), 0);
	fixture_run(test, wheel, 101);
	model_add_at_once(&model, fixture_arm_ready(test, wheel, 1), 0);
	for (i = 0; i < 2; i++)
		model_add(&model, fixture_arm(test, wheel, 102), 1);
	fixture_run(test, wheel, 102);
	check(test, wheel, &model);
	/* From behind, so that each is taken from the end once. */
	while (model.count) {
		fixture_del(wheel, model.entry[model.count - 1].node);
		model.count--;
		check(test, wheel, &model);
	}
}

/* Who has begun to read a tick goes on with it, before what becomes ready meanwhile. */
static void reader_in_a_tick_finishes_it(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	struct model model = {};
	unsigned int i;

	for (i = 0; i < 4; i++)
		model_add(&model, fixture_arm(test, wheel, 101), 0);
	fixture_run(test, wheel, 101);
	for (i = 0; i < 2; i++)
		model_remove(&model, model_find(test, &model, fixture_read(wheel)));
	for (i = 0; i < 3; i++)
		model_add(&model, fixture_arm(test, wheel, 102), 1);
	fixture_run(test, wheel, 102);
	check(test, wheel, &model);
	read_all(test, wheel, &model, 1);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(ready_at_once_rest_untouched, deadline_gen_params),
	KUNIT_CASE(ready_at_once_all_read),
	KUNIT_CASE(first_ready_deleted_others_stay),
	KUNIT_CASE_PARAM(slots_come_in_order, sizes_gen_params),
	KUNIT_CASE_PARAM(ready_node_deleted_others_stay, sizes_gen_params),
	KUNIT_CASE_PARAM(rearmed_node_is_withdrawn, sizes_gen_params),
	KUNIT_CASE(node_overdue_ready_at_once),
	KUNIT_CASE(ready_at_once_takes_turns_with_slots),
	KUNIT_CASE(reader_in_a_tick_finishes_it),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_ready",
	.test_cases = cases,
};

kunit_test_suite(suite);
