// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the timer table: nodes, chunks, and the ids made of them.
 */
#include <linux/prandom.h>
#include <linux/sort.h>

#include "fixture.h"

/* Most nodes of a chunk. */
#define CHUNK (TW_CHUNK_MASK + 1)

static struct tw_table *new_table(struct kunit *test)
{
	struct tw_table *table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, table);
	tw_table_init(table);
	return table;
}

static u64 alloc_id(struct kunit *test, struct tw_table *table)
{
	u32 index = tw_table_alloc(table);

	KUNIT_ASSERT_NE(test, index, TW_NIL);
	return tw_id(tw_node(table, index), index);
}

static void empty_table_gives_nothing(struct kunit *test)
{
	static const u64 ids[] = { 0, 1, 1ULL << 32, U64_MAX };
	struct tw_table *table = new_table(test);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, tw_table_alloc(table), TW_NIL);
	KUNIT_EXPECT_EQ(test, tw_table_alloc_hidden(table), TW_NIL);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		KUNIT_EXPECT_EQ(test, tw_table_find(table, ids[i]), TW_NIL);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	KUNIT_EXPECT_TRUE(test, tw_table_full(table));
}

static const unsigned int caps[] = { 1, 2, 63, 64, 65, CHUNK - 1, CHUNK };

static void describe_cap(const unsigned int *cap, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u nodes", *cap);
}

KUNIT_ARRAY_PARAM(cap, caps, describe_cap);

static void chunk_gives_each_node_once(struct kunit *test)
{
	unsigned int cap = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	unsigned int i;
	u64 *ids;

	ids = kunit_kmalloc_array(test, cap, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ids);
	/* So that the chunk is not the first. */
	fixture_chunk(test, table, 1);
	alloc_id(test, table);

	fixture_chunk(test, table, cap);
	KUNIT_ASSERT_EQ(test, table->free, cap);
	for (i = 0; i < cap; i++) {
		ids[i] = alloc_id(test, table);
		KUNIT_ASSERT_NE(test, ids[i] >> 32, 0);
		KUNIT_ASSERT_EQ(test, (u32)ids[i] >> TW_CHUNK_SHIFT, 1);
		KUNIT_ASSERT_LT(test, (u32)ids[i] & TW_CHUNK_MASK, cap);
		KUNIT_ASSERT_EQ(test, table->free, cap - i - 1);
		KUNIT_ASSERT_EQ(test, table->used, i + 2);
	}
	KUNIT_EXPECT_EQ(test, tw_table_alloc(table), TW_NIL);
	for (i = 0; i < cap; i++)
		KUNIT_ASSERT_EQ(test, tw_table_find(table, ids[i]), (u32)ids[i]);

	for (i = 0; i < cap; i++)
		tw_table_free(table, ids[i]);
	KUNIT_EXPECT_EQ(test, table->free, cap);
	KUNIT_EXPECT_EQ(test, table->used, 1);
	for (i = 0; i < cap; i++) {
		KUNIT_ASSERT_EQ(test, tw_table_find(table, ids[i]), TW_NIL);
		alloc_id(test, table);
	}
	KUNIT_EXPECT_EQ(test, tw_table_alloc(table), TW_NIL);
	for (i = 0; i < cap; i++)
		KUNIT_ASSERT_EQ(test, tw_table_find(table, ids[i]), TW_NIL);
}

static void id_is_never_given_twice(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 first, id, last = 0;
	int i;

	fixture_chunk(test, table, 1);
	first = alloc_id(test, table);
	tw_table_free(table, first);
	for (i = 0; i < 10000; i++) {
		id = alloc_id(test, table);
		KUNIT_ASSERT_EQ(test, tw_table_find(table, id), (u32)id);
		KUNIT_ASSERT_EQ(test, tw_table_find(table, last), TW_NIL);
		KUNIT_ASSERT_EQ(test, tw_table_find(table, first), TW_NIL);
		/* The same node, and so it is the generation that grows. */
		KUNIT_ASSERT_GT(test, id, max(first, last));
		tw_table_free(table, id);
		KUNIT_ASSERT_EQ(test, tw_table_find(table, id), TW_NIL);
		last = id;
	}
}

/* What a program might make of a live id, as differences from it. */
static const struct made_up {
	const char *name;
	u32 gen;
	u32 index;
} made_up[] = {
	{ "the generation before", -1, 0 },
	{ "the generation after", 1, 0 },
	{ "the last generation", U32_MAX - 1, 0 },
	{ "another timer's index", 0, 1 },
	{ "a free node's index", 0, 2 },
	{ "an index just past its chunk", 0, 5 },
	{ "the last index of its chunk's numbers", 0, CHUNK - 1 },
	{ "an index in a chunk without memory", 0, CHUNK },
	{ "an index past all chunks", 0, 2 * CHUNK },
	{ "the last index", 0, U32_MAX - CHUNK },
};

static void describe_made_up(const struct made_up *param, char *desc)
{
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(made_up, made_up, describe_made_up);

static void made_up_id_finds_nothing(struct kunit *test)
{
	const struct made_up *param = test->param_value;
	struct tw_table *table = new_table(test);
	u64 live, gone, id;

	fixture_chunk(test, table, TW_TABLE_KEEP);
	fixture_chunk(test, table, 5);
	live = alloc_id(test, table);
	KUNIT_ASSERT_EQ(test, live, 1ULL << 32 | CHUNK);
	alloc_id(test, table);
	fixture_chunk(test, table, 1);
	gone = alloc_id(test, table);
	KUNIT_ASSERT_EQ(test, gone, live + CHUNK);
	tw_table_free(table, gone);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw_table_take_spare(table));

	id = (u64)((u32)(live >> 32) + param->gen) << 32 |
	     ((u32)live + param->index);
	KUNIT_EXPECT_EQ(test, tw_table_find(table, id), TW_NIL);
	KUNIT_EXPECT_EQ(test, tw_table_find(table, live), (u32)live);
}

static void index_alone_finds_nothing(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u32 index;

	/* A live node, a hidden one and two that are free. */
	fixture_chunk(test, table, 4);
	alloc_id(test, table);
	KUNIT_ASSERT_NE(test, tw_table_alloc_hidden(table), TW_NIL);
	for (index = 0; index < 4; index++)
		KUNIT_EXPECT_EQ(test, tw_table_find(table, index), TW_NIL);
}

static void hidden_node_has_no_id(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u32 hidden, gen;
	u64 id;

	fixture_chunk(test, table, 2);
	id = alloc_id(test, table);
	hidden = tw_table_alloc_hidden(table);
	KUNIT_ASSERT_NE(test, hidden, TW_NIL);
	KUNIT_EXPECT_NE(test, hidden, (u32)id);
	KUNIT_EXPECT_EQ(test, tw_table_alloc_hidden(table), TW_NIL);
	for (gen = 0; gen <= (id >> 32) + 1; gen++)
		KUNIT_EXPECT_EQ(test, tw_table_find(table, (u64)gen << 32 | hidden),
				TW_NIL);
	tw_table_free(table, hidden);
	KUNIT_EXPECT_EQ(test, table->used, 1);
	KUNIT_EXPECT_EQ(test, tw_table_find(table, id), (u32)id);
}

/* Fill a chunk of @cap nodes and free them; were they given back? */
static struct tw_spare *fill_and_free(struct kunit *test,
				      struct tw_table *table, unsigned int cap)
{
	struct tw_node *nodes = fixture_chunk(test, table, cap);
	struct tw_spare *spare;
	unsigned int i;
	u32 first = 0;

	for (i = 0; i < cap; i++) {
		u32 index = tw_table_alloc(table);

		KUNIT_ASSERT_NE(test, index, TW_NIL);
		if (!i)
			first = index & ~TW_CHUNK_MASK;
	}
	for (i = 0; i < cap; i++) {
		KUNIT_ASSERT_NULL(test, tw_table_take_spare(table));
		tw_table_free(table, first + i);
	}
	spare = tw_table_take_spare(table);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	if (!spare)
		return NULL;
	KUNIT_EXPECT_PTR_EQ(test, spare, (struct tw_spare *)nodes);
	KUNIT_EXPECT_EQ(test, spare->cap, cap);
	KUNIT_EXPECT_NULL(test, spare->next);
	return spare;
}

static void empty_chunk_is_given_back(struct kunit *test)
{
	struct tw_table *table = new_table(test);

	/* The only memory that there is stays. */
	KUNIT_EXPECT_NULL(test, fill_and_free(test, table, TW_TABLE_KEEP));
	KUNIT_EXPECT_EQ(test, table->free, TW_TABLE_KEEP);
	while (table->free)
		alloc_id(test, table);

	/* With one free node less than are to be kept, so does the second. */
	fixture_chunk(test, table, TW_TABLE_KEEP - 1);
	while (table->free)
		alloc_id(test, table);
	KUNIT_EXPECT_NULL(test, fill_and_free(test, table, CHUNK));
	KUNIT_EXPECT_EQ(test, table->free, CHUNK);
	KUNIT_EXPECT_EQ(test, table->used, 2 * TW_TABLE_KEEP - 1);
}

static const unsigned int others_free[] = {
	0, TW_TABLE_KEEP - 1, TW_TABLE_KEEP, TW_TABLE_KEEP + 1
};

static void describe_others_free(const unsigned int *others, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u free elsewhere", *others);
}

KUNIT_ARRAY_PARAM(others_free, others_free, describe_others_free);

static void some_free_nodes_are_kept(struct kunit *test)
{
	unsigned int others = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	u64 other[TW_TABLE_KEEP + 1];
	struct tw_spare *spare;
	unsigned int i;
	u64 last;

	fixture_chunk(test, table, CHUNK);
	for (i = 0; i < ARRAY_SIZE(other); i++)
		other[i] = alloc_id(test, table);
	while (table->free)
		alloc_id(test, table);
	fixture_chunk(test, table, 1);
	last = alloc_id(test, table);
	for (i = 0; i < others; i++)
		tw_table_free(table, other[i]);

	tw_table_free(table, last);
	spare = tw_table_take_spare(table);
	if (others >= TW_TABLE_KEEP) {
		KUNIT_EXPECT_NOT_ERR_OR_NULL(test, spare);
		KUNIT_EXPECT_EQ(test, table->free, others);
	} else {
		KUNIT_EXPECT_NULL(test, spare);
		KUNIT_EXPECT_EQ(test, table->free, others + 1);
	}
	KUNIT_EXPECT_EQ(test, tw_table_find(table, last), TW_NIL);
	for (i = others; i < ARRAY_SIZE(other); i++)
		KUNIT_EXPECT_EQ(test, tw_table_find(table, other[i]),
				(u32)other[i]);
}

static void generation_outlives_the_memory(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 old[3], id;
	int round, i;

	/* Enough free nodes for each further chunk to be given back. */
	fixture_chunk(test, table, TW_TABLE_KEEP);
	id = 0;
	for (round = 0; round < 100; round++) {
		for (i = 0; i < TW_TABLE_KEEP; i++)
			alloc_id(test, table);
		fixture_chunk(test, table, ARRAY_SIZE(old));
		KUNIT_ASSERT_EQ(test, table->nr_chunks, 2);
		for (i = 0; i < ARRAY_SIZE(old); i++) {
			if (round)
				KUNIT_ASSERT_EQ(test, tw_table_find(table, old[i]),
						TW_NIL);
			old[i] = alloc_id(test, table);
			KUNIT_ASSERT_GT(test, old[i] >> 32, id >> 32);
			id = old[i];
		}
		for (i = 0; i < TW_TABLE_KEEP; i++)
			tw_table_free(table, i);
		KUNIT_ASSERT_NULL(test, tw_table_take_spare(table));
		for (i = 0; i < ARRAY_SIZE(old); i++)
			tw_table_free(table, old[i]);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tw_table_take_spare(table));
		for (i = 0; i < ARRAY_SIZE(old); i++)
			KUNIT_ASSERT_EQ(test, tw_table_find(table, old[i]),
					TW_NIL);
	}
}

static void worn_out_chunk_is_left(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 last[2];

	fixture_chunk(test, table, 8);
	table->chunks[0].gen = U32_MAX - ARRAY_SIZE(last);
	last[0] = alloc_id(test, table);
	last[1] = alloc_id(test, table);
	KUNIT_EXPECT_EQ(test, last[0] >> 32, U32_MAX - 1);
	KUNIT_EXPECT_EQ(test, last[1] >> 32, U32_MAX);
	KUNIT_EXPECT_EQ(test, table->free, 0);
	KUNIT_EXPECT_EQ(test, tw_table_alloc(table), TW_NIL);
	KUNIT_EXPECT_EQ(test, tw_table_alloc_hidden(table), TW_NIL);
	KUNIT_EXPECT_EQ(test, tw_table_find(table, last[0]), (u32)last[0]);
	KUNIT_EXPECT_EQ(test, tw_table_find(table, last[1]), (u32)last[1]);

	tw_table_free(table, last[0]);
	KUNIT_EXPECT_EQ(test, tw_table_alloc(table), TW_NIL);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	tw_table_free(table, last[1]);
	KUNIT_EXPECT_NOT_ERR_OR_NULL(test, tw_table_take_spare(table));
	KUNIT_EXPECT_EQ(test, tw_table_find(table, last[0]), TW_NIL);
	KUNIT_EXPECT_EQ(test, tw_table_find(table, last[1]), TW_NIL);
	KUNIT_EXPECT_EQ(test, table->used, 0);
	KUNIT_EXPECT_EQ(test, table->free, 0);

	/* Its number is not used again: generations would start anew. */
	fixture_chunk(test, table, 8);
	KUNIT_EXPECT_EQ(test, (u32)alloc_id(test, table) >> TW_CHUNK_SHIFT, 1);
}

static void directory_grows_around_live_nodes(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 ids[20];
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		KUNIT_ASSERT_TRUE(test, tw_table_full(table));
		fixture_chunk(test, table, 1);
		KUNIT_ASSERT_EQ(test, table->nr_chunks, i + 1);
		ids[i] = alloc_id(test, table);
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		KUNIT_EXPECT_EQ(test, tw_table_find(table, ids[i]), (u32)ids[i]);
}

static int compare_ids(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static const u64 seeds[] = { 1, 2, 3, 4 };

static void describe_seed(const u64 *seed, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "seed %llu", *seed);
}

KUNIT_ARRAY_PARAM(seed, seeds, describe_seed);

static void random_use(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	unsigned int n = 0, dead_n = 0, i, round;
	struct rnd_state rnd;
	u64 *live, *dead;

	live = kunit_kmalloc_array(test, 600, sizeof(*live), GFP_KERNEL);
	dead = kunit_kmalloc_array(test, 20000, sizeof(*dead), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, live);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dead);
	prandom_seed_state(&rnd, *(const u64 *)test->param_value);

	for (round = 0; round < 20000; round++) {
		/* In turns more and fewer, so that chunks come and go. */
		bool more = prandom_u32_state(&rnd) % 100 <
			    (round / 1000 % 2 ? 30 : 70);

		if (n && (!more || n == 600)) {
			i = prandom_u32_state(&rnd) % n;
			KUNIT_ASSERT_EQ(test, tw_table_find(table, live[i]),
					(u32)live[i]);
			tw_table_free(table, live[i]);
			dead[dead_n++] = live[i];
			live[i] = live[--n];
		} else {
			if (!table->free)
				fixture_chunk(test, table, 100);
			live[n++] = alloc_id(test, table);
		}
		tw_table_take_spare(table);
		KUNIT_ASSERT_EQ(test, table->used, n);
		if (!dead_n)
			continue;
		i = prandom_u32_state(&rnd) % dead_n;
		KUNIT_ASSERT_EQ(test, tw_table_find(table, dead[i]), TW_NIL);
	}
	KUNIT_EXPECT_LT(test, table->nr_chunks, 10);
	sort(dead, dead_n, sizeof(*dead), compare_ids, NULL);
	for (i = 1; i < dead_n; i++)
		KUNIT_ASSERT_NE(test, dead[i - 1], dead[i]);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(empty_table_gives_nothing),
	KUNIT_CASE_PARAM(chunk_gives_each_node_once, cap_gen_params),
	KUNIT_CASE(id_is_never_given_twice),
	KUNIT_CASE_PARAM(made_up_id_finds_nothing, made_up_gen_params),
	KUNIT_CASE(index_alone_finds_nothing),
	KUNIT_CASE(hidden_node_has_no_id),
	KUNIT_CASE(empty_chunk_is_given_back),
	KUNIT_CASE_PARAM(some_free_nodes_are_kept, others_free_gen_params),
	KUNIT_CASE(generation_outlives_the_memory),
	KUNIT_CASE(worn_out_chunk_is_left),
	KUNIT_CASE(directory_grows_around_live_nodes),
	KUNIT_CASE_PARAM(random_use, seed_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_table",
	.test_cases = cases,
};

kunit_test_suite(suite);
