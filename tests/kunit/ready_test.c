// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the ready list: the order of what expired, and when it did.
 */
#include "fixture.h"

#define MOST 9

/**
 * struct model - what the ready list shall be
 * @count: nodes
 * @error: by how much a stamp may be too early, in ns
 * @node: the nodes, in order
 * @stamp: when each was made ready
 */
struct model {
	unsigned int count;
	s64 error;
	struct tw_node *node[MOST];
	s64 stamp[MOST];
};

static void model_add(struct model *model, struct tw_node *node, s64 stamp)
{
	model->stamp[model->count] = stamp;
	model->node[model->count++] = node;
}

static void model_remove(struct model *model, unsigned int at)
{
	unsigned int i;

	model->count--;
	for (i = at; i < model->count; i++) {
		model->node[i] = model->node[i + 1];
		model->stamp[i] = model->stamp[i + 1];
	}
}

static void check_stamp(struct kunit *test, s64 stamp, s64 truth, s64 error)
{
	KUNIT_ASSERT_LE(test, stamp, truth);
	KUNIT_ASSERT_GE(test, stamp, truth - error);
}

/* Read the list as a reader of events does. */
static void check(struct kunit *test, const struct tw_wheel *wheel,
		  const struct model *model)
{
	const struct tw_node *node;
	s64 stamp = wheel->stamp;
	unsigned int i = 0;

	fixture_check_list(test, &wheel->ready);
	KUNIT_ASSERT_EQ(test, wheel->ready.count, model->count);
	list_for_each_entry(node, &wheel->ready.nodes, entry) {
		KUNIT_ASSERT_PTR_EQ(test, node, model->node[i]);
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
		if (node->flags & TW_NODE_STAMPED)
			stamp = tw_stamp(node);
		check_stamp(test, stamp, model->stamp[i], model->error);
		KUNIT_ASSERT_GE(test, stamp, node->deadline);
		i++;
	}
}

/* By how much the stamp of what is so late may be too early: 2^-14 of it */
static s64 rounding(s64 late)
{
	return late <= U16_MAX ? 0 : late / 16383;
}

/* How late a node may be: about the edges of what is exact, and at all sizes. */
static const s64 lates[] = {
	0, 1, 999, U16_MAX - 1, U16_MAX, U16_MAX + 1, U16_MAX + 4,
	4LL * U16_MAX, 4LL * U16_MAX + 1, 16LL * U16_MAX + 1, S32_MAX, U32_MAX,
	1LL << 40, (1LL << 50) + 12345, (1LL << 62) - 1,
	KTIME_MAX - 1, KTIME_MAX,
};

static void describe_late(const s64 *late, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%lld ns late", *late);
}

KUNIT_ARRAY_PARAM(late, lates, describe_late);

/* Deadlines, with a time after it that is @late */
static const s64 deadlines[] = { 0, 1, 1008, U32_MAX, 1LL << 60, KTIME_MAX };

static void stamp_is_no_more_than_the_truth(struct kunit *test)
{
	s64 late = *(const s64 *)test->param_value;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deadlines); i++) {
		s64 deadline = min(deadlines[i], KTIME_MAX - late);
		struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
		struct model model = { .error = rounding(late) };
		struct tw_node *node;

		node = fixture_arm_ready(test, wheel, deadline, deadline + late);
		model_add(&model, node, deadline + late);
		KUNIT_EXPECT_EQ(test, node->deadline, deadline);
		KUNIT_EXPECT_TRUE(test, node->flags & TW_NODE_STAMPED);
		KUNIT_EXPECT_FALSE(test, node->flags & TW_NODE_INSPECT);
		check(test, wheel, &model);
	}
}

/* All latenesses of some range, so that no way to round is left out. */
static void stamps_are_rounded_down_by_little(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
	struct tw_node *node = fixture_alloc(test, wheel);
	s64 late, last = 0;

	node->deadline = 12345;
	for (late = 0; late < 1LL << 50; late += 1 + late / 5000) {
		node->flags = 0;
		tw_wheel_add_ready(wheel, node, node->deadline + late);
		check_stamp(test, tw_stamp(node), node->deadline + late,
			    rounding(late));
		KUNIT_ASSERT_GE(test, tw_stamp(node), node->deadline);
		KUNIT_ASSERT_GE(test, tw_stamp(node), last);
		last = tw_stamp(node);
		tw_wheel_del(wheel, node);
		KUNIT_ASSERT_EQ(test, wheel->stamp, last);
	}
}

/* The clock was set back in that moment, or the caller's time is an old one. */
static void stamp_is_no_less_than_the_deadline(struct kunit *test)
{
	s64 early = *(const s64 *)test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
	struct tw_node *node;

	node = fixture_arm_ready(test, wheel, KTIME_MAX, KTIME_MAX - early);
	KUNIT_EXPECT_EQ(test, tw_stamp(node), KTIME_MAX);
}

static void stamp_leaves_the_rest_alone(struct kunit *test)
{
	s64 late = *(const s64 *)test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2);
	unsigned int periodic;

	for (periodic = 0; periodic < 2; periodic++) {
		struct tw_node *node = fixture_alloc(test, wheel);
		u32 gen = node->gen;

		node->deadline = 1;
		node->slack_shift = 53;
		node->user_data = U64_MAX;
		node->flags = TW_NODE_INSPECT | TW_NODE_LATE_MASK |
			      (periodic ? TW_NODE_PERIODIC : 0);
		tw_wheel_add_ready(wheel, node, 1 + late / 2);
		KUNIT_EXPECT_EQ(test, node->deadline, 1);
		KUNIT_EXPECT_EQ(test, (u32)node->slack_shift, 53);
		KUNIT_EXPECT_EQ(test, node->user_data, U64_MAX);
		KUNIT_EXPECT_EQ(test, node->gen, gen);
		KUNIT_EXPECT_EQ(test, !!(node->flags & TW_NODE_PERIODIC), periodic);
		check_stamp(test, tw_stamp(node), 1 + late / 2,
			    rounding(late / 2));
	}
}

static void first_in_first_out(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, 2 * MOST);
	struct model model = {};
	unsigned int way;

	/* There are two ways to take the first one out. */
	for (way = 0; way < 2; way++) {
		while (model.count < MOST) {
			s64 stamp = 10 * model.count;

			model_add(&model, fixture_arm_ready(test, wheel, 0, stamp),
				  stamp);
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

/* By how much slots are late: exactly told, just so, not so */
static const s64 slot_lates[] = { 0, 500, U16_MAX - FIXTURE_TICK, 1000000,
				  3 * NSEC_PER_SEC, 1LL << 49 };

/* Arm and expire the nodes of the three slots, each @late. */
static void expire_slots(struct kunit *test, struct tw_wheel *wheel,
			 const struct sizes *sizes, s64 late,
			 struct model *model)
{
	s64 start = wheel->clk;
	unsigned int slot, i;

	*model = (struct model){ .error = rounding(late + FIXTURE_TICK) };
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++)
		for (i = 0; i < sizes->nodes[slot]; i++)
			model_add(model, fixture_arm(test, wheel, start + slot),
				  fixture_ns(wheel, start + slot) + late);
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
 * A node that is taken out from anywhere leaves to the others the time at which
 * they were made ready. Which are taken, and in which order, is gone through
 * by counting in a number system with as many digits as there are nodes.
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

static void others_keep_their_stamps(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(slot_lates); i++)
		take_out(test, wheel, test->param_value, slot_lates[i]);
}

/* Through a whole slot, and what was rounded is not rounded again and again. */
static void stamp_is_handed_on_and_on(struct kunit *test)
{
	s64 late = min(*(const s64 *)test->param_value, 1LL << 61);
	s64 error = rounding(late + FIXTURE_TICK);
	struct tw_wheel *wheel = fixture_wheel(test, 100, 101);
	struct tw_node *node[100], *before;
	s64 stamp = fixture_ns(wheel, 105) + late;
	struct tw_step step = { .now = 105, .stamp = stamp, .budget = 16 };
	unsigned int i;

	/* What is at the head of the list leaves its stamp to the wheel. */
	before = fixture_arm_ready(test, wheel, 1, 2);
	for (i = 0; i < ARRAY_SIZE(node); i++)
		node[i] = fixture_arm(test, wheel, 105);
	tw_wheel_step(wheel, &step);
	KUNIT_ASSERT_EQ(test, step.expired, ARRAY_SIZE(node));
	for (i = 0; i < ARRAY_SIZE(node) - 1; i++) {
		KUNIT_ASSERT_TRUE(test, node[i]->flags & TW_NODE_STAMPED);
		KUNIT_ASSERT_FALSE(test, node[i + 1]->flags & TW_NODE_STAMPED);
		check_stamp(test, tw_stamp(node[i]), stamp, error);
		tw_wheel_del(wheel, node[i]);
	}
	check_stamp(test, tw_stamp(node[i]), stamp, error);
	/* Not to what comes with a stamp of its own, nor to what comes first. */
	KUNIT_EXPECT_EQ(test, tw_stamp(before), 2);
	tw_wheel_del(wheel, before);
	KUNIT_EXPECT_EQ(test, wheel->stamp, 2);
	stamp = tw_stamp(node[i]);
	tw_wheel_del(wheel, node[i]);
	KUNIT_EXPECT_EQ(test, wheel->stamp, stamp);
	KUNIT_EXPECT_EQ(test, wheel->ready.count, 0);
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
	model_add(&model, node, fixture_stamp(wheel, 200));
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
	now = fixture_arm_ready(test, wheel, fixture_ns(wheel, 101) + 1,
				fixture_ns(wheel, 101) + 600);
	KUNIT_EXPECT_EQ(test, wheel->pending, 1);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 102), 1);
	model_add(&model, soon, fixture_stamp(wheel, 101));
	model_add(&model, now, fixture_ns(wheel, 101) + 600);
	model_add(&model, later, fixture_stamp(wheel, 102));
	check(test, wheel, &model);
}

/* A slot behind a node that was ready at once does not take its stamp. */
static void each_slot_has_its_own_stamp(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, 5);
	struct model model = {};
	unsigned int i;

	for (i = 0; i < 2; i++)
		model_add(&model, fixture_arm(test, wheel, 101),
			  fixture_stamp(wheel, 101));
	fixture_run(test, wheel, 101);
	model_add(&model, fixture_arm_ready(test, wheel, 1, 2), 2);
	for (i = 0; i < 2; i++)
		model_add(&model, fixture_arm(test, wheel, 102),
			  fixture_stamp(wheel, 102));
	fixture_run(test, wheel, 102);
	check(test, wheel, &model);
	/* From behind, so that each stamp stays where it is. */
	while (model.count) {
		tw_wheel_del(wheel, model.node[model.count - 1]);
		model.count--;
		check(test, wheel, &model);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(stamp_is_no_more_than_the_truth, late_gen_params),
	KUNIT_CASE(stamps_are_rounded_down_by_little),
	KUNIT_CASE_PARAM(stamp_is_no_less_than_the_deadline, late_gen_params),
	KUNIT_CASE_PARAM(stamp_leaves_the_rest_alone, late_gen_params),
	KUNIT_CASE(first_in_first_out),
	KUNIT_CASE_PARAM(slots_come_in_order, sizes_gen_params),
	KUNIT_CASE_PARAM(others_keep_their_stamps, sizes_gen_params),
	KUNIT_CASE_PARAM(stamp_is_handed_on_and_on, late_gen_params),
	KUNIT_CASE_PARAM(rearmed_node_is_withdrawn, sizes_gen_params),
	KUNIT_CASE(node_may_be_ready_at_once),
	KUNIT_CASE(each_slot_has_its_own_stamp),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_ready",
	.test_cases = cases,
};

kunit_test_suite(suite);
