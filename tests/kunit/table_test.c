// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the timer table: nodes, chunks, and the ids made of them.
 */
#include <linux/prandom.h>
#include <linux/sort.h>

#include "fixture.h"

/* Most nodes of a chunk, and how far the indices of two chunks are apart */
#define CHUNK TW_CHUNK_CAP
#define NUMBERS (TW_CHUNK_MASK + 1)

static struct tw_table *new_table(struct kunit *test)
{
	struct tw_table *table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, table);
	tw_table_init(table);
	return table;
}

/* What an id finds, or NULL */
static struct tw_node *find(const struct tw_table *table, u64 id)
{
	struct tw_node *node;

	return tw_table_find(table, id, &node) ? node : NULL;
}

static u64 alloc_id(struct kunit *test, struct tw_table *table)
{
	struct tw_node *node;
	u64 id;

	KUNIT_ASSERT_NE(test, table->free, 0);
	node = tw_table_alloc(table, &id);
	KUNIT_ASSERT_EQ(test, tw_id(node), id);
	KUNIT_ASSERT_PTR_EQ(test, find(table, id), node);
	return id;
}

static void free_id(struct kunit *test, struct tw_table *table, u64 id)
{
	struct tw_node *node = find(table, id);

	KUNIT_ASSERT_NOT_NULL(test, node);
	tw_table_free(table, node);
	KUNIT_ASSERT_NULL(test, find(table, id));
}

static unsigned int used(const struct tw_table *table)
{
	unsigned int nr, sum = 0;

	for (nr = 0; nr < table->nr_chunks; nr++)
		sum += tw_chunk_used(table->dir[nr].chunk);
	return sum;
}

static void empty_table_gives_nothing(struct kunit *test)
{
	static const u64 ids[] = { 0, 1, 1ULL << 32, U64_MAX };
	struct tw_table *table = new_table(test);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, table->free, 0);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		KUNIT_EXPECT_NULL(test, find(table, ids[i]));
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	KUNIT_EXPECT_TRUE(test, tw_table_full(table));
}

static const unsigned int caps[] = { 1, 2, 63, 64, 65, CHUNK - 1,
				     CHUNK };

static void describe_cap(const unsigned int *cap, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u nodes", *cap);
}

KUNIT_ARRAY_PARAM(cap, caps, describe_cap);

static void chunk_gives_each_node_once(struct kunit *test)
{
	unsigned int cap = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk;
	unsigned int i;
	u64 *ids;

	ids = kunit_kmalloc_array(test, cap, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ids);
	/* So that the chunk is not the first. */
	fixture_chunk(test, table, 1);
	alloc_id(test, table);

	chunk = fixture_chunk(test, table, cap);
	KUNIT_ASSERT_EQ(test, table->free, cap);
	for (i = 0; i < cap; i++) {
		ids[i] = alloc_id(test, table);
		KUNIT_ASSERT_NE(test, ids[i] >> 32, 0);
		KUNIT_ASSERT_EQ(test, (u32)ids[i] >> TW_CHUNK_SHIFT,
				TW_FIRST_CHUNK + 1);
		KUNIT_ASSERT_GE(test, (u32)ids[i] & TW_CHUNK_MASK, 1);
		KUNIT_ASSERT_LE(test, (u32)ids[i] & TW_CHUNK_MASK, cap);
		KUNIT_ASSERT_EQ(test, table->free, cap - i - 1);
		KUNIT_ASSERT_EQ(test, tw_chunk_used(chunk), i + 1);
	}
	for (i = 0; i < cap; i++)
		KUNIT_ASSERT_PTR_EQ(test, find(table, ids[i]),
				    &chunk->nodes[ids[i] & TW_CHUNK_MASK]);

	for (i = 0; i < cap; i++)
		free_id(test, table, ids[i]);
	KUNIT_EXPECT_EQ(test, table->free, cap);
	KUNIT_EXPECT_EQ(test, tw_chunk_used(chunk), 0);
	for (i = 0; i < cap; i++) {
		KUNIT_ASSERT_NULL(test, find(table, ids[i]));
		alloc_id(test, table);
	}
	KUNIT_EXPECT_EQ(test, table->free, 0);
	for (i = 0; i < cap; i++)
		KUNIT_ASSERT_NULL(test, find(table, ids[i]));
}

/* Nothing outside of a chunk's nodes is touched: there may be something. */
static void chunk_keeps_to_its_nodes(struct kunit *test)
{
	unsigned int cap = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk = fixture_chunk(test, table, cap);
	void *end = &chunk->nodes[cap + 1];
	unsigned int i;

	KUNIT_EXPECT_LE(test, end - (void *)chunk, TW_CHUNK_SIZE);
	while (table->free) {
		struct tw_node *node = tw_table_alloc_hidden(table);

		KUNIT_ASSERT_GE(test, node, &chunk->nodes[1]);
		KUNIT_ASSERT_LE(test, node, &chunk->nodes[cap]);
		memset(node, 0, sizeof(*node));
	}
	for (i = 1; i <= cap; i++)
		tw_table_free(table, &chunk->nodes[i]);
	KUNIT_EXPECT_NULL(test, memchr_inv(end, FIXTURE_DIRT, (void *)chunk +
					   TW_CHUNK_SIZE - end));
	KUNIT_EXPECT_EQ(test, chunk->end, cap + 1);
	KUNIT_EXPECT_EQ(test, chunk->base, TW_FIRST_CHUNK * NUMBERS);
	KUNIT_EXPECT_EQ(test, table->free, cap);
}

/* In any chunk, a node's address says all about it but its generation. */
static void node_knows_its_chunk_and_its_id(struct kunit *test)
{
	unsigned int cap = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	unsigned int nr, place;

	for (nr = TW_FIRST_CHUNK; nr < TW_FIRST_CHUNK + 3; nr++) {
		struct tw_chunk *chunk = fixture_chunk(test, table, cap);

		KUNIT_ASSERT_EQ(test, chunk->base, nr * NUMBERS);
		for (place = 1; place <= cap; place++) {
			struct tw_node *node = &chunk->nodes[place];

			KUNIT_ASSERT_PTR_EQ(test, tw_chunk_of(node), chunk);
			KUNIT_ASSERT_EQ(test, tw_id(node),
					nr * NUMBERS + place);
			node->gen = U32_MAX - place;
			KUNIT_ASSERT_EQ(test, tw_id(node),
					(u64)(U32_MAX - place) << 32 |
					(nr * NUMBERS + place));
			KUNIT_ASSERT_PTR_EQ(test, find(table, tw_id(node)), node);
		}
	}
}

static void id_is_never_given_twice(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 first, id, last = 0;
	int i;

	fixture_chunk(test, table, 1);
	first = alloc_id(test, table);
	free_id(test, table, first);
	for (i = 0; i < 10000; i++) {
		id = alloc_id(test, table);
		KUNIT_ASSERT_NULL(test, find(table, last));
		KUNIT_ASSERT_NULL(test, find(table, first));
		/* The same node, and so it is the generation that grows. */
		KUNIT_ASSERT_GT(test, id, max(first, last));
		free_id(test, table, id);
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
	{ "an index past its chunk's memory", 0, CHUNK },
	{ "the last index of its chunk's numbers", 0, NUMBERS - 2 },
	{ "where its chunk has its head", 0, -1 },
	{ "an index in a chunk without memory", 0, NUMBERS },
	{ "an index past all chunks", 0, 2 * NUMBERS },
	{ "the last index", 0, U32_MAX - 2 * NUMBERS - 1 },
	{ "an index of no chunk", 0, -2 * NUMBERS },
	{ "the index 0", 0, -2 * NUMBERS - 1 },
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
	KUNIT_ASSERT_EQ(test, live, 1ULL << 32 | (2 * NUMBERS + 1));
	alloc_id(test, table);
	fixture_chunk(test, table, 1);
	gone = alloc_id(test, table);
	KUNIT_ASSERT_EQ(test, gone, live + NUMBERS);
	free_id(test, table, gone);
	KUNIT_ASSERT_NOT_NULL(test, tw_table_take_spare(table));

	id = (u64)((u32)(live >> 32) + param->gen) << 32 |
	     ((u32)live + param->index);
	KUNIT_EXPECT_NULL(test, find(table, id));
	KUNIT_EXPECT_NOT_NULL(test, find(table, live));
}

static void index_alone_finds_nothing(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u32 index;

	/* A live node, a hidden one and two that are free. */
	fixture_chunk(test, table, 4);
	alloc_id(test, table);
	tw_table_alloc_hidden(table);
	for (index = 0; index < 5; index++)
		KUNIT_EXPECT_NULL(test, find(table, NUMBERS + index));
}

static void hidden_node_has_no_id(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_node *hidden;
	u64 id, gen;

	fixture_chunk(test, table, 2);
	id = alloc_id(test, table);
	hidden = tw_table_alloc_hidden(table);
	KUNIT_EXPECT_EQ(test, table->free, 0);
	KUNIT_EXPECT_EQ(test, hidden->gen, 0);
	KUNIT_EXPECT_NE(test, (u32)tw_id(hidden), (u32)id);
	for (gen = 0; gen <= (id >> 32) + 1; gen++)
		KUNIT_EXPECT_NULL(test, find(table, gen << 32 | tw_id(hidden)));
	tw_table_free(table, hidden);
	KUNIT_EXPECT_EQ(test, used(table), 1);
	KUNIT_EXPECT_NOT_NULL(test, find(table, id));
}

/* A hidden node holds &struct tw_period, and is a node again when it is freed. */
static void hidden_node_may_hold_a_period(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_period *period;
	u64 id;

	BUILD_BUG_ON(sizeof(struct tw_period) != sizeof(struct tw_node));
	BUILD_BUG_ON(offsetof(struct tw_period, gen) !=
		     offsetof(struct tw_node, gen));
	fixture_chunk(test, table, 2);
	id = alloc_id(test, table);
	period = (struct tw_period *)tw_table_alloc_hidden(table);
	KUNIT_EXPECT_EQ(test, period->gen, 0);
	period->nominal = U64_MAX;
	period->interval = U64_MAX;
	period->jitter = U64_MAX;
	period->user_data = U64_MAX;
	KUNIT_EXPECT_NULL(test, find(table, tw_id((struct tw_node *)period)));
	tw_table_free(table, (struct tw_node *)period);
	free_id(test, table, id);
	KUNIT_EXPECT_EQ(test, table->free, 2);
	alloc_id(test, table);
	alloc_id(test, table);
}

/* Fill a chunk of @cap nodes and free them; was it given back? */
static struct tw_chunk *fill_and_free(struct kunit *test,
				      struct tw_table *table, unsigned int cap)
{
	struct tw_chunk *chunk = fixture_chunk(test, table, cap);
	struct tw_chunk *spare;
	unsigned int i;

	for (i = 0; i < cap; i++)
		alloc_id(test, table);
	for (i = 0; i < cap; i++) {
		KUNIT_ASSERT_NULL(test, tw_table_take_spare(table));
		tw_table_free(table, &chunk->nodes[i + 1]);
	}
	spare = tw_table_take_spare(table);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	if (!spare)
		return NULL;
	KUNIT_EXPECT_PTR_EQ(test, spare, chunk);
	KUNIT_EXPECT_NULL(test, spare->next);
	return spare;
}

static void first_chunk_stays(struct kunit *test)
{
	unsigned int cap = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	struct tw_chunk *first, *second, *spare;
	struct tw_node *node;
	unsigned int i;

	/* Whatever else is free, and whichever is empty first. */
	first = fixture_chunk(test, table, cap);
	for (i = 0; i < cap; i++)
		alloc_id(test, table);
	second = fixture_chunk(test, table, 2 * TW_TABLE_KEEP);
	node = tw_table_alloc_hidden(table);
	for (i = 0; i < cap; i++)
		tw_table_free(table, &first->nodes[i + 1]);
	KUNIT_EXPECT_EQ(test, tw_chunk_used(first), 0);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	KUNIT_EXPECT_EQ(test, table->free, cap + 2 * TW_TABLE_KEEP - 1);
	KUNIT_EXPECT_PTR_EQ(test, table->dir[TW_FIRST_CHUNK].chunk, first);

	tw_table_free(table, node);
	spare = tw_table_take_spare(table);
	KUNIT_EXPECT_PTR_EQ(test, spare, cap < TW_TABLE_KEEP ? NULL : second);
	if (spare)
		KUNIT_EXPECT_EQ(test, table->free, cap);
	alloc_id(test, table);
}

static void last_free_nodes_are_kept(struct kunit *test)
{
	struct tw_table *table = new_table(test);

	/* The first chunk stays. */
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
	KUNIT_EXPECT_EQ(test, used(table), 2 * TW_TABLE_KEEP - 1);
}

/* Several at once are a list. */
static void empty_chunks_are_given_back(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunks[5], *spare;
	struct tw_node *nodes[5];
	unsigned int i, n;

	fixture_chunk(test, table, TW_TABLE_KEEP);
	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		chunks[i] = fixture_chunk(test, table, 10 + i);
		nodes[i] = tw_table_alloc_hidden(table);
	}
	for (i = 0; i < ARRAY_SIZE(chunks); i++)
		tw_table_free(table, nodes[i]);
	KUNIT_EXPECT_EQ(test, table->free, TW_TABLE_KEEP);
	for (n = 0, spare = tw_table_take_spare(table); spare;
	     spare = spare->next, n++) {
		for (i = 0; i < ARRAY_SIZE(chunks); i++) {
			if (chunks[i] != spare)
				continue;
			chunks[i] = NULL;
			break;
		}
		KUNIT_ASSERT_LT(test, i, ARRAY_SIZE(chunks));
	}
	KUNIT_EXPECT_EQ(test, n, ARRAY_SIZE(chunks));

	/* Their numbers are used again before new ones. */
	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		KUNIT_ASSERT_FALSE(test, tw_table_full(table));
		KUNIT_ASSERT_LE(test, fixture_chunk(test, table, 1)->base,
				(TW_FIRST_CHUNK + ARRAY_SIZE(chunks)) * NUMBERS);
		alloc_id(test, table);
	}
	KUNIT_EXPECT_TRUE(test, tw_table_full(table));
	KUNIT_EXPECT_EQ(test, table->nr_chunks,
			TW_FIRST_CHUNK + 1 + ARRAY_SIZE(chunks));
	while (table->free)
		alloc_id(test, table);
	KUNIT_EXPECT_EQ(test, used(table), TW_TABLE_KEEP + ARRAY_SIZE(chunks));
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
	struct tw_chunk *spare;
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
		free_id(test, table, other[i]);

	free_id(test, table, last);
	spare = tw_table_take_spare(table);
	if (others >= TW_TABLE_KEEP) {
		KUNIT_EXPECT_NOT_NULL(test, spare);
		KUNIT_EXPECT_EQ(test, table->free, others);
	} else {
		KUNIT_EXPECT_NULL(test, spare);
		KUNIT_EXPECT_EQ(test, table->free, others + 1);
	}
	KUNIT_EXPECT_NULL(test, find(table, last));
	for (i = others; i < ARRAY_SIZE(other); i++)
		KUNIT_EXPECT_NOT_NULL(test, find(table, other[i]));
}

static void generation_outlives_the_memory(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 old[3], first[TW_TABLE_KEEP], id;
	int round, i;

	/* Enough free nodes for each further chunk to be given back. */
	fixture_chunk(test, table, TW_TABLE_KEEP);
	id = 0;
	for (round = 0; round < 100; round++) {
		struct tw_chunk *spare;

		for (i = 0; i < TW_TABLE_KEEP; i++)
			first[i] = alloc_id(test, table);
		fixture_chunk(test, table, ARRAY_SIZE(old));
		KUNIT_ASSERT_EQ(test, table->nr_chunks, TW_FIRST_CHUNK + 2);
		for (i = 0; i < ARRAY_SIZE(old); i++) {
			if (round)
				KUNIT_ASSERT_NULL(test, find(table, old[i]));
			old[i] = alloc_id(test, table);
			KUNIT_ASSERT_GT(test, old[i] >> 32, id >> 32);
			id = old[i];
		}
		for (i = 0; i < TW_TABLE_KEEP; i++)
			free_id(test, table, first[i]);
		KUNIT_ASSERT_NULL(test, tw_table_take_spare(table));
		for (i = 0; i < ARRAY_SIZE(old); i++)
			free_id(test, table, old[i]);
		spare = tw_table_take_spare(table);
		KUNIT_ASSERT_NOT_NULL(test, spare);
		for (i = 0; i < ARRAY_SIZE(old); i++)
			KUNIT_ASSERT_NULL(test, find(table, old[i]));
		kunit_kfree(test, spare);
	}
}

static void worn_out_chunk_is_left(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk;
	u64 last[2];

	fixture_chunk(test, table, 1);
	alloc_id(test, table);
	chunk = fixture_chunk(test, table, ARRAY_SIZE(last));
	chunk->gen = TW_WORN_GEN - 1;
	last[0] = alloc_id(test, table);
	KUNIT_EXPECT_EQ(test, table->free, 1);
	last[1] = alloc_id(test, table);
	KUNIT_EXPECT_EQ(test, last[0] >> 32, TW_WORN_GEN);
	KUNIT_EXPECT_EQ(test, last[1] >> 32, TW_WORN_GEN + 1);
	KUNIT_EXPECT_EQ(test, table->free, 0);
	KUNIT_EXPECT_NULL(test, table->partial);
	KUNIT_EXPECT_NOT_NULL(test, find(table, last[0]));
	KUNIT_EXPECT_NOT_NULL(test, find(table, last[1]));

	free_id(test, table, last[0]);
	KUNIT_EXPECT_EQ(test, table->free, 0);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	free_id(test, table, last[1]);
	KUNIT_EXPECT_PTR_EQ(test, tw_table_take_spare(table), chunk);
	KUNIT_EXPECT_EQ(test, used(table), 1);
	KUNIT_EXPECT_EQ(test, table->free, 0);

	/* Its number is not used again: generations would start anew. */
	fixture_chunk(test, table, 8);
	KUNIT_EXPECT_EQ(test, (u32)alloc_id(test, table) >> TW_CHUNK_SHIFT,
			TW_FIRST_CHUNK + 2);
}

/* A chunk that has the last generations has one for each node that is free. */
static void worn_out_chunk_is_used_up(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	unsigned int i, cap = TW_CHUNK_NODES;
	struct tw_chunk *chunk;

	fixture_chunk(test, table, 1);
	alloc_id(test, table);
	cap = min_t(unsigned int, cap, CHUNK);
	chunk = fixture_chunk(test, table, cap);
	chunk->gen = TW_WORN_GEN - 1;
	for (i = cap; i--; ) {
		u64 id = alloc_id(test, table);

		KUNIT_EXPECT_LE(test, id >> 32, TW_LAST_GEN);
		free_id(test, table, id);
		KUNIT_EXPECT_EQ(test, table->free, i);
		KUNIT_EXPECT_PTR_EQ(test, tw_table_take_spare(table),
				    i ? NULL : chunk);
	}
}

/* Whichever chunk becomes empty, what is reserved can be had. */
static void reserved_nodes_are_not_given_back(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	unsigned int i, nodes;
	u64 id;

	fixture_chunk(test, table, 1);
	alloc_id(test, table);
	fixture_chunk(test, table, TW_TABLE_KEEP + 2);
	id = alloc_id(test, table);
	fixture_chunk(test, table, CHUNK);
	nodes = table->free;
	tw_table_reserve(table, nodes);
	free_id(test, table, id);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	for (i = 0; i < nodes; i++)
		alloc_id(test, table);
}

static void first_chunk_stays_when_worn_out(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk = fixture_chunk(test, table, 1);

	chunk->gen = TW_WORN_GEN - 1;
	free_id(test, table, alloc_id(test, table));
	KUNIT_EXPECT_EQ(test, table->free, 0);
	KUNIT_EXPECT_NULL(test, table->partial);
	KUNIT_EXPECT_NULL(test, tw_table_take_spare(table));
	KUNIT_EXPECT_PTR_EQ(test, table->dir[TW_FIRST_CHUNK].chunk, chunk);

	fixture_chunk(test, table, 8);
	KUNIT_EXPECT_EQ(test, (u32)alloc_id(test, table) >> TW_CHUNK_SHIFT,
			TW_FIRST_CHUNK + 1);
	KUNIT_EXPECT_EQ(test, table->free, 7);
}

static void directory_grows_around_live_nodes(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 ids[20];
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		KUNIT_ASSERT_TRUE(test, tw_table_full(table));
		fixture_chunk(test, table, 1);
		KUNIT_ASSERT_EQ(test, table->nr_chunks, TW_FIRST_CHUNK + i + 1);
		ids[i] = alloc_id(test, table);
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		KUNIT_EXPECT_NOT_NULL(test, find(table, ids[i]));
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
	struct tw_chunk *spare, *next;
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
			free_id(test, table, live[i]);
			dead[dead_n++] = live[i];
			live[i] = live[--n];
		} else {
			if (!table->free)
				fixture_chunk(test, table, 100);
			live[n++] = alloc_id(test, table);
		}
		for (spare = tw_table_take_spare(table); spare; spare = next) {
			next = spare->next;
			kunit_kfree(test, spare);
		}
		KUNIT_ASSERT_EQ(test, used(table), n);
		if (!dead_n)
			continue;
		i = prandom_u32_state(&rnd) % dead_n;
		KUNIT_ASSERT_NULL(test, find(table, dead[i]));
	}
	KUNIT_EXPECT_LT(test, table->nr_chunks, 10);
	sort(dead, dead_n, sizeof(*dead), compare_ids, NULL);
	for (i = 1; i < dead_n; i++)
		KUNIT_ASSERT_NE(test, dead[i - 1], dead[i]);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(empty_table_gives_nothing),
	KUNIT_CASE_PARAM(chunk_gives_each_node_once, cap_gen_params),
	KUNIT_CASE_PARAM(chunk_keeps_to_its_nodes, cap_gen_params),
	KUNIT_CASE_PARAM(node_knows_its_chunk_and_its_id, cap_gen_params),
	KUNIT_CASE(id_is_never_given_twice),
	KUNIT_CASE_PARAM(made_up_id_finds_nothing, made_up_gen_params),
	KUNIT_CASE(index_alone_finds_nothing),
	KUNIT_CASE(hidden_node_has_no_id),
	KUNIT_CASE(hidden_node_may_hold_a_period),
	KUNIT_CASE_PARAM(first_chunk_stays, cap_gen_params),
	KUNIT_CASE(last_free_nodes_are_kept),
	KUNIT_CASE(empty_chunks_are_given_back),
	KUNIT_CASE_PARAM(some_free_nodes_are_kept, others_free_gen_params),
	KUNIT_CASE(generation_outlives_the_memory),
	KUNIT_CASE(worn_out_chunk_is_left),
	KUNIT_CASE(worn_out_chunk_is_used_up),
	KUNIT_CASE(reserved_nodes_are_not_given_back),
	KUNIT_CASE(first_chunk_stays_when_worn_out),
	KUNIT_CASE(directory_grows_around_live_nodes),
	KUNIT_CASE_PARAM(random_use, seed_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_table",
	.test_cases = cases,
};

kunit_test_suite(suite);
