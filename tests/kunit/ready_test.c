// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the ready list: the order of what expired, and when it did.
 */
#include "fixture.h"

#define MOST 9

/**
 * struct model - what the ready list shall be
 * @count: nodes
 * @index: the nodes, in order
 * @stamp: when each was made ready
 */
struct model {
	unsigned int count;
	u32 index[MOST];
	s64 stamp[MOST];
};

static void model_remove(struct model *model, unsigned int at)
{
	unsigned int i;

	model->count--;
	for (i = at; i < model->count; i++) {
		model->index[i] = model->index[i + 1];
		model->stamp[i] = model->stamp[i + 1];
	}
}

/* Read the list as a reader of events does. */
static void check(struct kunit *test, const struct tw_wheel *wheel,
		  const struct model *model)
{
	s64 stamp = wheel->stamp;
	u32 index = wheel->ready.first;
	unsigned int i;

	fixture_check_list(test, wheel, &wheel->ready);
	KUNIT_ASSERT_EQ(test, wheel->ready.count, model->count);
	for (i = 0; i < model->count; i++) {
		const struct tw_node *node = tw_node(wheel->table, index);

		KUNIT_ASSERT_EQ(test, index, model->index[i]);
		KUNIT_ASSERT_TRUE(test, tw_is_ready(wheel, node));
		if (tw_is_stamp(node->expires))
			stamp = tw_stamp_ns(node->expires);
		KUNIT_ASSERT_EQ(test, stamp, model->stamp[i]);
		index = node->next;
	}
}

static const s64 stamps[] = { 0, 1, 999, S32_MAX, U32_MAX, KTIME_MAX - 1,
			      KTIME_MAX };

static void describe_stamp(const s64 *stamp, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%lld ns", *stamp);
}

KUNIT_ARRAY_PARAM(stamp, stamps, describe_stamp);

static void stamp_is_no_tick(struct kunit *test)
{
	s64 stamp = *(const s64 *)test->param_value;
	struct tw_wheel *wheel = fixture_wheel(test, 0, 1);
	u32 index = fixture_arm_ready(test, wheel, stamp);
	struct model model = { 1, { index }, { stamp } };

	KUNIT_EXPECT_TRUE(test, tw_is_stamp(tw_stamp(stamp)));
	KUNIT_EXPECT_EQ(test, tw_stamp_ns(tw_stamp(stamp)), stamp);
	KUNIT_EXPECT_FALSE(test, tw_is_stamp(stamp));
	check(test, wheel, &model);
}

static void first_in_first_out(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 0, MOST);
	struct model model = {};

	while (model.count < MOST) {
		model.stamp[model.count] = 10 * model.count;
		model.index[model.count] =
			fixture_arm_ready(test, wheel, 10 * model.count);
		model.count++;
		check(test, wheel, &model);
	}
	while (model.count) {
		tw_wheel_del(wheel, wheel->ready.first);
		model_remove(&model, 0);
		check(test, wheel, &model);
	}
	KUNIT_EXPECT_EQ(test, wheel->ready.first, TW_NIL);
	KUNIT_EXPECT_EQ(test, wheel->ready.last, TW_NIL);
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

static struct tw_wheel *expire_slots(struct kunit *test,
				     const struct sizes *sizes,
				     struct model *model)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, MOST);
	unsigned int slot, i;

	*model = (struct model){};
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++)
		for (i = 0; i < sizes->nodes[slot]; i++) {
			model->stamp[model->count] = 1001 + slot;
			model->index[model->count++] =
				fixture_arm(test, wheel, 101 + slot);
		}
	for (slot = 0; slot < ARRAY_SIZE(sizes->nodes); slot++) {
		struct tw_step step = { .now = 101 + slot,
					.stamp = 1001 + slot };

		do
			step.budget = 16;
		while (tw_wheel_step(wheel, &step));
	}
	return wheel;
}

static void slots_come_in_order(struct kunit *test)
{
	struct tw_wheel *wheel;
	struct model model;

	wheel = expire_slots(test, test->param_value, &model);
	check(test, wheel, &model);
	KUNIT_EXPECT_EQ(test, wheel->pending, 0);
}

/*
 * A node that is taken out from anywhere leaves to the others the time at which
 * they were made ready. Which are taken, and in which order, is gone through
 * by counting in a number system with as many digits as there are nodes.
 */
static void others_keep_their_stamps(struct kunit *test)
{
	const struct sizes *sizes = test->param_value;
	unsigned int way, nodes, ways = 1;
	unsigned int i;

	for (i = 0, nodes = 0; i < ARRAY_SIZE(sizes->nodes); i++)
		nodes += sizes->nodes[i];
	for (i = 0; i < min(nodes, 3U); i++)
		ways *= nodes - i;
	for (way = 0; way < ways; way++) {
		unsigned int digits = way;
		struct tw_wheel *wheel;
		struct model model;

		wheel = expire_slots(test, sizes, &model);
		for (i = 0; i < min(nodes, 3U); i++) {
			unsigned int at = digits % model.count;

			digits /= model.count;
			tw_wheel_del(wheel, model.index[at]);
			model_remove(&model, at);
			check(test, wheel, &model);
		}
	}
}

static void rearmed_node_is_withdrawn(struct kunit *test)
{
	const struct sizes *sizes = test->param_value;
	unsigned int at, nodes;
	struct model model;

	expire_slots(test, sizes, &model);
	nodes = model.count;
	for (at = 0; at < nodes; at++) {
		struct tw_wheel *wheel = expire_slots(test, sizes, &model);
		u32 index = model.index[at];

		tw_wheel_mod(wheel, index, 200);
		model_remove(&model, at);
		check(test, wheel, &model);
		KUNIT_ASSERT_EQ(test, wheel->pending, 1);

		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 199), 0);
		KUNIT_ASSERT_EQ(test, fixture_run(test, wheel, 200), 1);
		model.stamp[model.count] = 200;
		model.index[model.count++] = index;
		check(test, wheel, &model);
	}
}

static void node_may_be_ready_at_once(struct kunit *test)
{
	struct tw_wheel *wheel = fixture_wheel(test, 100, 3);
	struct model model = { 3 };

	/* Behind what has expired, before what has yet to. */
	model.index[0] = fixture_arm(test, wheel, 101);
	model.index[2] = fixture_arm(test, wheel, 102);
	model.stamp[0] = 101;
	model.stamp[1] = 150;
	model.stamp[2] = 102;
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 101), 1);
	model.index[1] = fixture_arm_ready(test, wheel, 150);
	KUNIT_EXPECT_EQ(test, wheel->pending, 1);
	KUNIT_EXPECT_EQ(test, fixture_run(test, wheel, 102), 1);
	check(test, wheel, &model);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(stamp_is_no_tick, stamp_gen_params),
	KUNIT_CASE(first_in_first_out),
	KUNIT_CASE_PARAM(slots_come_in_order, sizes_gen_params),
	KUNIT_CASE_PARAM(others_keep_their_stamps, sizes_gen_params),
	KUNIT_CASE_PARAM(rearmed_node_is_withdrawn, sizes_gen_params),
	KUNIT_CASE(node_may_be_ready_at_once),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_ready",
	.test_cases = cases,
};

kunit_test_suite(suite);
