// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the ready list: what is ready, and in which order it expired.
 */
#include "fixture.h"

#define MOST 9

/**
 * struct model - what the ready list shall be
 * @count: nodes
 * @node: the nodes, in order
 */
struct model {
	unsigned int count;
	struct tw_node *node[MOST];
};

static void model_add(struct model *model, struct tw_node *node)
{
	model->node[model->count++] = node;
}

static void model_remove(struct model *model, unsigned int at)
{
	unsigned int i;

	model->count--;
	for (i = at; i < model->count; i++)
		model->node[i] = model->node[i + 1];
}

/* Read the list as a reader of events does. */
static void check(struct kunit *test, const struct tw_wheel *wheel,
		  const struct model *model)
{
	const struct tw_node *node;
	unsigned int i = 0;

	fixture_check_list(test, &wheel->ready);
	KUNIT_ASSERT_EQ(test, wheel->ready.count, model->count);
	list_for_each_entry(node, &wheel->ready.nodes, entry) {
		KUNIT_ASSERT_PTR_EQ(test, node, model->node[i]);
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
		i++;
	}
}

/* A node is ready at once whatever its deadline says, as the clock may be set back. */
static const s64 deadlines[] = { 0, 1, 1008, U32_MAX, 1LL << 60, KTIME_MAX };

static void describe_deadline(const s64 *deadline, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "deadline %lld", *deadline);
}

KUNIT_ARRAY_PARAM(deadline, deadlines, describe_deadline);

static void ready_at_once_leaves_the_rest_alone(struct kunit *test)
{
	s64 deadline = *(const s64 *)test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2);
	unsigned int periodic;

	for (periodic = 0; periodic < 2; periodic++) {
		struct tw_node *node = fixture_alloc(test, wheel);
		u32 gen = node->gen;

		node->deadline = deadline;
		node->slack_shift = 53;
		node->user_data = U64_MAX;
		node->flags = TW_NODE_INSPECT | (periodic ? TW_NODE_PERIODIC : 0);
		tw_wheel_add_ready(wheel, node);
		KUNIT_EXPECT_TRUE(test, tw_is_ready(wheel, node));
		KUNIT_EXPECT_FALSE(test, node->flags & TW_NODE_INSPECT);
		KUNIT_EXPECT_EQ(test, node->deadline, deadline);
		KUNIT_EXPECT_EQ(test, (u32)node->slack_shift, 53);
		KUNIT_EXPECT_EQ(test, node->user_data, U64_MAX);
		KUNIT_EXPECT_EQ(test, node->gen, gen);
		KUNIT_EXPECT_EQ(test, !!(node->flags & TW_NODE_PERIODIC), periodic);
	}
	KUNIT_EXPECT_EQ(test, wheel->pending, 0);
	fixture_check_list(test, &wheel->ready);
}

static void first_in_first_out(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2 * MOST);
	struct model model = {};
	unsigned int way;

	/* There are two ways to take the first one out. */
	for (way = 0; way < 2; way++) {
		while (model.count < MOST) {
			model_add(&model, fixture_arm_ready(test, wheel, 0));
			check(test, wheel, &model);
		}
		while (model.count) {
			if (way)
				tw_wheel_pop_ready(wheel, model.node[0]);
			else
				tw_wheel_del(wheel, model.node[0]);
			model_remove(&model, 0);
			check(test, wheel, &model);
		}
		KUNIT_EXPECT_NULL(test, tw_first_ready(wheel));
		KUNIT_EXPECT_TRUE(test, list_empty(&wheel->ready.nodes));
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

/* By how much slots are late, in ns */
static const s64 slot_lates[] = { 0, 500, 1000000, 1LL << 49 };

/* Arm and expire the nodes of the three slots, each @late. */
static void expire_slots(struct kunit *test, struct tw_wheel *wheel,
			 const struct sizes *sizes, s64 late,
			 struct model *model)
{
	s64 start = wheel->clk;
	unsigned int slot, i;

	*model = (struct model){};
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++)
		for (i = 0; i < sizes->nodes[slot]; i++)
			model_add(model, fixture_arm(test, wheel, start + slot));
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++) {
		struct tw_step step = { .now = start + slot };

		step.stamp = fixture_ns(wheel, start + slot) + late;
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

	while ((node = tw_first_ready(wheel))) {
		tw_wheel_pop_ready(wheel, node);
		fixture_free(wheel, node);
	}
	KUNIT_ASSERT_EQ(test, wheel->ready.count, 0);
	KUNIT_ASSERT_EQ(test, wheel->pending, 0);
}

static void slots_come_in_order(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	struct model model;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slot_lates); i++) {
		expire_slots(test, wheel, test->param_value, slot_lates[i],
			     &model);
		KUNIT_EXPECT_EQ(test, wheel->pending, 0);
		empty(test, wheel);
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
			tw_wheel_del(wheel, model.node[at]);
			fixture_free(wheel, model.node[at]);
			model_remove(&model, at);
			check(test, wheel, &model);
		}
		empty(test, wheel);
	}
}

static void others_stay_ready(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slot_lates); i++)
		take_out(test, wheel, test->param_value, slot_lates[i]);
}

static void rearm_ready(struct kunit *test, const struct sizes *sizes,
			unsigned int at, s64 late)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	struct tw_node *node;
	struct model model;

	expire_slots(test, wheel, sizes, late, &model);
	node = model.node[at];
	fixture_mod(wheel, node, 200);
	model_remove(&model, at);
	check(test, wheel, &model);
	KUNIT_ASSERT_EQ(test, wheel->pending, 1);

	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 199), 0);
	KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 200), 1);
	model_add(&model, node);
	check(test, wheel, &model);
}

static void rearmed_node_is_withdrawn(struct kunit *test)
{
	const struct sizes *sizes = test->param_value;
	unsigned int at, nodes, i;

	for (i = 0, nodes = 0; i < ARRAY_SIZE(sizes->nodes); i++)
		nodes += sizes->nodes[i];
	for (at = 0; at < nodes; at++)
		for (i = 0; i < ARRAY_SIZE(slot_lates); i++)
			rearm_ready(test, sizes, at, slot_lates[i]);
}

static void node_may_be_ready_at_once(struct kunit *test)
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
	model_add(&model, soon);
	model_add(&model, now);
	model_add(&model, later);
	check(test, wheel, &model);
}

static void ready_at_once_between_two_slots(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, 5);
	struct model model = {};
	unsigned int i;

	for (i = 0; i < 2; i++)
		model_add(&model, fixture_arm(test, wheel, 101));
	fixture_run(test, wheel, 101);
	model_add(&model, fixture_arm_ready(test, wheel, 1));
	for (i = 0; i < 2; i++)
		model_add(&model, fixture_arm(test, wheel, 102));
	fixture_run(test, wheel, 102);
	check(test, wheel, &model);
	/* From behind, so that each is taken from the end once. */
	while (model.count) {
		tw_wheel_del(wheel, model.node[model.count - 1]);
		model.count--;
		check(test, wheel, &model);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(ready_at_once_leaves_the_rest_alone, deadline_gen_params),
	KUNIT_CASE(first_in_first_out),
	KUNIT_CASE_PARAM(slots_come_in_order, sizes_gen_params),
	KUNIT_CASE_PARAM(others_stay_ready, sizes_gen_params),
	KUNIT_CASE_PARAM(rearmed_node_is_withdrawn, sizes_gen_params),
	KUNIT_CASE(node_may_be_ready_at_once),
	KUNIT_CASE(ready_at_once_between_two_slots),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_ready",
	.test_cases = cases,
};

kunit_test_suite(suite);
