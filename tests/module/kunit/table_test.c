// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of the timer table: nodes, chunks, and the ids made of them.
 */
#include <linux/prandom.h>
#include <linux/sort.h>

#include "fixture.h"

/* Nodes of a chunk, and how far the indices of two chunks are apart */
#define CHUNK TW_CHUNK_NODES

static struct tw_table *new_table(struct kunit *test)
{
	struct tw_table *table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, table);
	memset(table, FIXTURE_DIRT, sizeof(*table));
	tw_table_init(table);
	return table;
}

/* What an id finds, or NULL */
static struct tw_node *find(const struct tw_table *table, u64 id)
{
	struct tw_node *node;
	u32 index;

	return tw_table_find(table, id, &node, &index) ? node : NULL;
}

static u64 alloc_id(struct kunit *test, struct tw_table *table)
{
	struct tw_node *node, *found;
	u32 index, at;
	u64 id;

	KUNIT_ASSERT_NE(test, table->free, 0);
	node = tw_node_begin(table, &index);
	id = tw_id(node, index);
	KUNIT_ASSERT_PTR_EQ(test, tw_node_at(table, index), node);
	KUNIT_ASSERT_TRUE(test, tw_table_find(table, id, &found, &at));
	KUNIT_ASSERT_PTR_EQ(test, found, node);
	KUNIT_ASSERT_EQ(test, at, index);
	return id;
}

static void alloc_all(struct kunit *test, struct tw_table *table)
{
	while (table->free)
		alloc_id(test, table);
}

static void free_id(struct kunit *test, struct tw_table *table, u64 id)
{
	struct tw_node *node = find(table, id);

	KUNIT_ASSERT_NOT_NULL(test, node);
	tw_node_end(table, node, id);
	KUNIT_ASSERT_NULL(test, find(table, id));
}

/* End the timer of each node of a chunk. */
static void free_chunk(struct kunit *test, struct tw_table *table,
		       const struct tw_chunk *chunk)
{
	unsigned int place;

	for (place = 0; place < CHUNK; place++)
		free_id(test, table, tw_id(&chunk->nodes[place],
					   chunk->nr * CHUNK + place));
}

/* Live timers */
static unsigned int used(const struct tw_table *table)
{
	unsigned int nr, place, sum = 0;

	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++)
		for (place = 0; place < CHUNK; place++)
			sum += tw_table_nodes(table, nr)[place].gen & 1;
	return sum;
}

/* The bits of what is free, those that are handed out now included, say how much it is. */
static void check_free(struct kunit *test, const struct tw_table *table)
{
	unsigned int nr, i, sum = hweight64(table->word);

	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++) {
		const struct tw_chunk *chunk = table->chunks[nr];

		for (i = 0; chunk && i < TW_WORDS; i++)
			sum += hweight64(chunk->free[i]);
	}
	KUNIT_ASSERT_EQ(test, table->free, sum);
}

static void empty_table_finds_nothing(struct kunit *test)
{
	static const u64 ids[] = { 0, 1, 1ULL << 32, CHUNK | 1ULL << 32, U64_MAX };
	struct tw_table *table = new_table(test);
	unsigned int i;

	KUNIT_EXPECT_EQ(test, table->free, 0);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		KUNIT_EXPECT_NULL(test, find(table, ids[i]));
	KUNIT_EXPECT_NULL(test, tw_table_detach_spare(table));
	KUNIT_EXPECT_TRUE(test, tw_table_full(table));
	KUNIT_EXPECT_NULL(test, tw_table_take_chunk(table));
	KUNIT_EXPECT_NULL(test, tw_table_end(table));
}

/* So many nodes of a chunk, around where a word of its bits ends */
static const unsigned int parts[] = { 1, 2, 63, 64, 65, CHUNK - 1, CHUNK };

static void describe_part(const unsigned int *nodes, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u nodes", *nodes);
}

KUNIT_ARRAY_PARAM(part, parts, describe_part);

static void chunk_gives_each_node_once(struct kunit *test)
{
	unsigned int nodes = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk;
	unsigned int i;
	u64 *ids;

	ids = kunit_kmalloc_array(test, nodes, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ids);
	/* So that the chunk is not the first. */
	fixture_chunk(test, table);
	alloc_all(test, table);

	chunk = fixture_chunk(test, table);
	KUNIT_ASSERT_EQ(test, table->free, CHUNK);
	for (i = 0; i < nodes; i++) {
		ids[i] = alloc_id(test, table);
		KUNIT_ASSERT_NE(test, ids[i] >> 32, 0);
		KUNIT_ASSERT_EQ(test, (u32)ids[i] >> TW_CHUNK_SHIFT,
				TW_FIRST_CHUNK + 1);
		KUNIT_ASSERT_EQ(test, table->free, CHUNK - i - 1);
		KUNIT_ASSERT_EQ(test, used(table), CHUNK + i + 1);
	}
	for (i = 0; i < nodes; i++)
		KUNIT_ASSERT_PTR_EQ(test, find(table, ids[i]),
				    &chunk->nodes[ids[i] & TW_CHUNK_MASK]);
	check_free(test, table);

	for (i = 0; i < nodes; i++)
		free_id(test, table, ids[i]);
	KUNIT_EXPECT_EQ(test, table->free, CHUNK);
	KUNIT_EXPECT_EQ(test, used(table), CHUNK);
	check_free(test, table);
	for (i = 0; i < nodes; i++) {
		KUNIT_ASSERT_NULL(test, find(table, ids[i]));
		alloc_id(test, table);
	}
	KUNIT_EXPECT_EQ(test, table->free, CHUNK - nodes);
	for (i = 0; i < nodes; i++)
		KUNIT_ASSERT_NULL(test, find(table, ids[i]));
}

/* Nothing outside of a chunk's nodes is touched: there may be something. */
static void chunk_keeps_to_its_nodes(struct kunit *test)
{
	unsigned int nodes = *(const unsigned int *)test->param_value, i;
	struct tw_table *table = new_table(test);
	struct tw_chunk chunk;
	struct tw_node *memory;
	u32 *indices;

	memory = kunit_kzalloc(test, 3 * TW_CHUNK_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, memory);
	indices = kunit_kmalloc_array(test, nodes, sizeof(*indices), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, indices);
	memset(memory, FIXTURE_DIRT, TW_CHUNK_BYTES);
	memset(memory + 2 * CHUNK, FIXTURE_DIRT, TW_CHUNK_BYTES);
	fixture_room(test, table);
	tw_table_add(table, &chunk, memory + CHUNK);
	for (i = 0; i < nodes; i++) {
		struct tw_node *node = tw_node_begin(table, &indices[i]);

		KUNIT_ASSERT_TRUE(test, node >= memory + CHUNK);
		KUNIT_ASSERT_TRUE(test, node < memory + 2 * CHUNK);
	}
	for (i = 0; i < nodes; i++)
		tw_node_end(table, tw_node_at(table, indices[i]), indices[i]);
	KUNIT_EXPECT_NULL(test, memchr_inv(memory, FIXTURE_DIRT, TW_CHUNK_BYTES));
	KUNIT_EXPECT_NULL(test, memchr_inv(memory + 2 * CHUNK, FIXTURE_DIRT,
					   TW_CHUNK_BYTES));
	KUNIT_EXPECT_EQ(test, table->free, CHUNK);
}

/* A node is not touched before it is used, and then only its generation is. */
static void free_nodes_untouched(struct kunit *test)
{
	unsigned int nodes = *(const unsigned int *)test->param_value, i;
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk = fixture_chunk(test, table);
	unsigned int place, touched = 0;
	u32 index;

	for (i = 0; i < nodes; i++)
		tw_node_begin(table, &index);
	for (place = 0; place < CHUNK; place++) {
		struct tw_node *node = &chunk->nodes[place];

		touched += !!node->gen;
		node->gen = 0;
		KUNIT_ASSERT_NULL(test, memchr_inv(node, 0, sizeof(*node)));
	}
	KUNIT_EXPECT_EQ(test, touched, nodes);
}

/* In any chunk, an index says which node it is, and with its generation it is its id. */
static void index_leads_to_its_node(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	unsigned int nr, place;

	for (nr = TW_FIRST_CHUNK; nr < TW_FIRST_CHUNK + 3; nr++) {
		struct tw_chunk *chunk = fixture_chunk(test, table);

		KUNIT_ASSERT_EQ(test, chunk->nr, nr);
		for (place = 0; place < CHUNK; place++) {
			struct tw_node *node = &chunk->nodes[place];
			u32 index = nr * CHUNK + place;

			KUNIT_ASSERT_PTR_EQ(test, tw_node_at(table, index), node);
			KUNIT_ASSERT_EQ(test, tw_id(node, index), index);
			node->gen = TW_LAST_GEN - 2 * place;
			KUNIT_ASSERT_EQ(test, tw_id(node, index),
					(u64)node->gen << 32 | index);
			KUNIT_ASSERT_PTR_EQ(test, find(table, tw_id(node, index)), node);
		}
	}
	/* There is none of 0, but what there is there can be fetched. */
	KUNIT_EXPECT_TRUE(test, tw_node_at(table, 0) == tw_zero_nodes);
}

static void id_reused_never(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 first, id, last = 0;
	int i;

	fixture_chunk(test, table);
	while (table->free > 1)
		alloc_id(test, table);
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

/*
 * What a program might make of a live id, as differences from it. It is that of the
 * second timer of its node, and of its chunk.
 */
static const struct made_up {
	const char *name;
	u32 gen;
	u32 index;
} made_up[] = {
	{ "the generation before", -1, 0 },
	{ "the timer before", -2, 0 },
	{ "no generation", -3, 0 },
	{ "the generation after", 1, 0 },
	{ "the timer after", 2, 0 },
	{ "the last generation", TW_LAST_GEN - 3, 0 },
	{ "another node's timer before", -2, 1 },
	{ "another node's generation", -1, 1 },
	{ "another node's timer after", 0, 1 },
	{ "the last index of its chunk", 0, CHUNK - 1 },
	{ "a timer of a chunk that was given back", -2, CHUNK },
	{ "a timer after that", 0, CHUNK },
	{ "the last index of a chunk that was given back", -2, 2 * CHUNK - 1 },
	{ "an index past all chunks", -2, 2 * CHUNK },
	{ "an index far past all chunks", -2, 100 * CHUNK },
	{ "the last index", -2, U32_MAX - 2 * CHUNK },
	{ "the last index of no chunk", -2, -CHUNK - 1 },
	{ "the index 0", -2, -2 * CHUNK },
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
	struct tw_chunk *chunks[3];
	unsigned int i;
	u64 live, id;

	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		chunks[i] = fixture_chunk(test, table);
		alloc_all(test, table);
	}
	free_chunk(test, table, chunks[1]);
	free_chunk(test, table, chunks[2]);
	KUNIT_ASSERT_EQ(test, fixture_free_chunks(test, tw_table_detach_spare(table)), 1);
	live = alloc_id(test, table);
	KUNIT_ASSERT_EQ(test, live, 3ULL << 32 | 2 * CHUNK);

	id = (u64)((u32)(live >> 32) + param->gen) << 32 |
	     (u32)((u32)live + param->index);
	KUNIT_EXPECT_NULL(test, find(table, id));
	KUNIT_EXPECT_NOT_NULL(test, find(table, live));
}

/* Nodes with a timer, mere memory, nodes whose timer ended, and some never used */
static void index_without_generation_finds_nothing(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	unsigned int i;
	u32 gen, index;

	fixture_chunk(test, table);
	for (i = 0; i < 10; i++)
		alloc_id(test, table);
	for (i = 0; i < 10; i++)
		tw_table_alloc(table);
	for (i = 0; i < 10; i++)
		free_id(test, table, alloc_id(test, table));
	for (gen = 0; gen <= 4; gen += 2)
		for (index = 0; index < 3 * CHUNK; index++)
			KUNIT_ASSERT_NULL(test, find(table, (u64)gen << 32 | index));
}

/* What a periodic timer has besides is of a table that knows no ids: all of it is used. */
static void memory_node_allocated_once(struct kunit *test)
{
	unsigned int nodes = *(const unsigned int *)test->param_value, i;
	struct tw_table *table = new_table(test);
	struct tw_period *period;
	u32 *indices;

	indices = kunit_kmalloc_array(test, nodes, sizeof(*indices), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, indices);
	fixture_chunk(test, table);
	for (i = 0; i < nodes; i++) {
		indices[i] = tw_table_alloc(table);
		KUNIT_ASSERT_EQ(test, indices[i] >> TW_CHUNK_SHIFT, TW_FIRST_CHUNK);
		period = tw_period_at(table, indices[i]);
		memset(period, FIXTURE_DIRT, sizeof(*period));
		period->user_data = i;
	}
	KUNIT_EXPECT_EQ(test, table->free, CHUNK - nodes);
	for (i = 0; i < nodes; i++) {
		period = tw_period_at(table, indices[i]);
		KUNIT_ASSERT_EQ(test, period->user_data, i);
		tw_table_free(table, indices[i]);
	}
	check_free(test, table);
	KUNIT_EXPECT_EQ(test, table->free, CHUNK);

	/* And it can be had again, or given back. */
	for (i = 0; i < CHUNK; i++)
		tw_table_alloc(table);
	KUNIT_EXPECT_EQ(test, table->free, 0);
	for (i = 0; i < CHUNK; i++)
		tw_table_free(table, TW_FIRST_CHUNK * CHUNK + i);
	fixture_chunk(test, table);
	KUNIT_EXPECT_EQ(test, fixture_free_chunks(test, tw_table_detach_spare(table)), 1);
}

/* Whatever was in it, the last chunk stays: who comes next has it at once. */
static void last_chunk_kept(struct kunit *test)
{
	unsigned int nodes = *(const unsigned int *)test->param_value, i;
	struct tw_table *table = new_table(test);
	u32 indices[2];

	fixture_chunk(test, table);
	for (i = 0; i < nodes; i++)
		alloc_id(test, table);
	for (i = 0; i < nodes; i++)
		free_id(test, table, 1ULL << 32 | (TW_FIRST_CHUNK * CHUNK + i));
	KUNIT_EXPECT_NULL(test, tw_table_detach_spare(table));
	KUNIT_EXPECT_EQ(test, table->free, CHUNK);
	for (i = 0; i < ARRAY_SIZE(indices); i++)
		tw_node_begin(table, &indices[i]);
	KUNIT_EXPECT_NE(test, indices[0], indices[1]);
}

/* Several at once are a list. */
static void empty_chunks_handed_back(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunks[6], *spare;
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		chunks[i] = fixture_chunk(test, table);
		alloc_all(test, table);
	}
	for (i = 0; i < ARRAY_SIZE(chunks); i++)
		free_chunk(test, table, chunks[i]);
	for (spare = tw_table_detach_spare(table); spare; spare = spare->next, n++) {
		for (i = 0; i < ARRAY_SIZE(chunks) && chunks[i] != spare; i++)
			;
		KUNIT_ASSERT_LT(test, i, ARRAY_SIZE(chunks));
		KUNIT_EXPECT_NULL(test, table->chunks[spare->nr]);
		KUNIT_EXPECT_TRUE(test, tw_table_nodes(table, spare->nr) == tw_zero_nodes);
		chunks[i] = NULL;
	}
	/* One is left, as some free nodes are. */
	KUNIT_EXPECT_EQ(test, n, ARRAY_SIZE(chunks) - 1);
	KUNIT_EXPECT_EQ(test, table->free, CHUNK);
	KUNIT_EXPECT_NULL(test, tw_table_detach_spare(table));

	/* Their numbers are used again before new ones. */
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_FALSE(test, tw_table_full(table));
		fixture_chunk(test, table);
	}
	KUNIT_EXPECT_TRUE(test, tw_table_full(table));
	KUNIT_EXPECT_EQ(test, table->nr_chunks, TW_FIRST_CHUNK + ARRAY_SIZE(chunks));
	alloc_all(test, table);
	KUNIT_EXPECT_EQ(test, used(table), ARRAY_SIZE(chunks) * CHUNK);
}

static const unsigned int others_free[] = {
	0, TW_TABLE_KEEP - 1, TW_TABLE_KEEP, TW_TABLE_KEEP + 1
};

static void describe_others_free(const unsigned int *others, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u free elsewhere", *others);
}

KUNIT_ARRAY_PARAM(others_free, others_free, describe_others_free);

static void spare_nodes_kept(struct kunit *test)
{
	unsigned int others = *(const unsigned int *)test->param_value;
	struct tw_table *table = new_table(test);
	struct tw_chunk *first, *second;
	unsigned int i;
	u64 last;

	first = fixture_chunk(test, table);
	alloc_all(test, table);
	second = fixture_chunk(test, table);
	last = alloc_id(test, table);
	for (i = 0; i < others; i++)
		free_id(test, table, tw_id(&first->nodes[i], first->nr * CHUNK + i));
	/* As long as one of its nodes is used, it stays anyway. */
	KUNIT_EXPECT_NULL(test, tw_table_detach_spare(table));

	free_id(test, table, last);
	if (others >= TW_TABLE_KEEP) {
		KUNIT_EXPECT_PTR_EQ(test, tw_table_detach_spare(table), second);
		KUNIT_EXPECT_EQ(test, table->free, others);
	} else {
		KUNIT_EXPECT_NULL(test, tw_table_detach_spare(table));
		KUNIT_EXPECT_EQ(test, table->free, others + CHUNK);
	}
	check_free(test, table);
	KUNIT_EXPECT_NULL(test, find(table, last));
	KUNIT_EXPECT_EQ(test, used(table), CHUNK - others);
}

/* Nodes are taken from chunks that are in use, so that there are empty ones. */
static void empty_chunks_used_last(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 id;

	fixture_chunk(test, table);
	id = alloc_id(test, table);
	alloc_all(test, table);
	fixture_chunk(test, table);
	free_id(test, table, id);
	KUNIT_EXPECT_EQ(test, (u32)alloc_id(test, table), (u32)id);
	KUNIT_EXPECT_EQ(test, (u32)alloc_id(test, table) >> TW_CHUNK_SHIFT,
			TW_FIRST_CHUNK + 1);
}

static void chunk_freed_generation_kept(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *first = fixture_chunk(test, table);
	u64 old[3] = {};
	int round, i;

	alloc_all(test, table);
	for (round = 0; round < 100; round++) {
		fixture_chunk(test, table);
		KUNIT_ASSERT_EQ(test, table->nr_chunks, TW_FIRST_CHUNK + 2);
		for (i = 0; i < ARRAY_SIZE(old); i++) {
			u64 id = alloc_id(test, table);

			KUNIT_ASSERT_NULL(test, find(table, old[i]));
			KUNIT_ASSERT_GT(test, id >> 32, old[i] >> 32);
			old[i] = id;
		}
		/* Enough free nodes for the second chunk to be given back */
		for (i = 0; i < TW_TABLE_KEEP; i++)
			free_id(test, table, tw_id(&first->nodes[i], CHUNK + i));
		KUNIT_ASSERT_NULL(test, tw_table_detach_spare(table));
		for (i = 0; i < ARRAY_SIZE(old); i++)
			free_id(test, table, old[i]);
		KUNIT_ASSERT_EQ(test, fixture_free_chunks(test, tw_table_detach_spare(table)),
				1);
		for (i = 0; i < ARRAY_SIZE(old); i++)
			KUNIT_ASSERT_NULL(test, find(table, old[i]));
		alloc_all(test, table);
	}
}

/* Let a chunk, of which nothing was used yet, have come to a generation. */
static void wear(struct tw_chunk *chunk, u32 gen)
{
	chunk->gen = gen;
	chunk->bound = gen;
}

/* A node whose generations are used up is not given out again; its neighbours are. */
static void node_used_up_not_reused(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk = fixture_chunk(test, table);
	u32 gen;
	u64 id;

	wear(chunk, TW_LAST_GEN - 5);
	id = alloc_id(test, table);
	alloc_all(test, table);
	for (gen = TW_LAST_GEN - 4; gen < TW_LAST_GEN; gen += 2) {
		KUNIT_ASSERT_EQ(test, id >> 32, gen);
		free_id(test, table, id);
		KUNIT_ASSERT_EQ(test, (u32)alloc_id(test, table), (u32)id);
		id += 2ULL << 32;
	}
	KUNIT_ASSERT_EQ(test, id >> 32, TW_LAST_GEN);
	free_id(test, table, id);
	KUNIT_EXPECT_EQ(test, table->free, 0);
	for (gen = TW_LAST_GEN - 6; gen; gen++)
		KUNIT_EXPECT_NULL(test, find(table, (u64)gen << 32 | (u32)id));
	KUNIT_EXPECT_NULL(test, find(table, (u32)id));

	/* So its chunk is never empty, and is not given back. */
	for (gen = 1; gen < CHUNK; gen++)
		free_id(test, table, tw_id(&chunk->nodes[gen], CHUNK + gen));
	KUNIT_EXPECT_EQ(test, table->free, CHUNK - 1);
	check_free(test, table);
	fixture_chunk(test, table);
	KUNIT_EXPECT_EQ(test, fixture_free_chunks(test, tw_table_detach_spare(table)), 1);
	KUNIT_EXPECT_PTR_EQ(test, table->chunks[TW_FIRST_CHUNK], chunk);
	KUNIT_EXPECT_EQ(test, table->free, CHUNK - 1);
}

/* In a chunk that has the last generations, there is one for each node. */
static void chunk_used_up_not_reused(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunk = fixture_chunk(test, table);
	unsigned int i;

	wear(chunk, TW_LAST_GEN - 1);
	for (i = CHUNK; i--; ) {
		u64 id = alloc_id(test, table);

		KUNIT_ASSERT_EQ(test, id >> 32, TW_LAST_GEN);
		free_id(test, table, id);
		KUNIT_ASSERT_EQ(test, table->free, i);
		KUNIT_ASSERT_NULL(test, tw_table_detach_spare(table));
	}
	KUNIT_EXPECT_NULL(test, table->partial);
	KUNIT_EXPECT_NULL(test, table->empty);
	check_free(test, table);
	fixture_chunk(test, table);
	KUNIT_EXPECT_EQ(test, alloc_id(test, table),
			1ULL << 32 | (TW_FIRST_CHUNK + 1) * CHUNK);
}

/* If some of a chunk's nodes have come to the last generation, so has its number. */
static void number_used_up_not_reused(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunks[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(chunks); i++)
		chunks[i] = fixture_chunk(test, table);
	alloc_all(test, table);
	free_chunk(test, table, chunks[0]);
	/* Nothing of it may be used up, or else it stays. */
	for (i = 0; i < CHUNK; i++)
		chunks[1]->nodes[i].gen = TW_LAST_GEN - 2;
	wear(chunks[1], TW_LAST_GEN - 1);
	free_chunk(test, table, chunks[1]);
	KUNIT_EXPECT_PTR_EQ(test, tw_table_detach_spare(table), chunks[1]);
	fixture_chunk(test, table);
	KUNIT_EXPECT_EQ(test, table->nr_chunks, TW_FIRST_CHUNK + 4);
	KUNIT_EXPECT_NULL(test, table->chunks[TW_FIRST_CHUNK + 1]);
}

static void directory_grows_around_live_nodes(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	u64 ids[20];
	int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		KUNIT_ASSERT_TRUE(test, tw_table_full(table));
		fixture_chunk(test, table);
		KUNIT_ASSERT_EQ(test, table->nr_chunks, TW_FIRST_CHUNK + i + 1);
		ids[i] = alloc_id(test, table);
		alloc_all(test, table);
	}
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		KUNIT_EXPECT_NOT_NULL(test, find(table, ids[i]));
}

/* Who ends a table is told of all that is to be freed. */
static void table_is_cleared(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	struct tw_chunk *chunks[5], *chunk;
	unsigned int i, taken = 0;
	u64 id;

	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		chunks[i] = fixture_chunk(test, table);
		if (i < 3)
			alloc_all(test, table);
	}
	free_chunk(test, table, chunks[1]);
	KUNIT_ASSERT_EQ(test, fixture_free_chunks(test, tw_table_detach_spare(table)), 2);
	id = alloc_id(test, table);
	for (; (chunk = tw_table_take_chunk(table)); taken++)
		KUNIT_ASSERT_EQ(test, fixture_free_chunks(test, chunk), 1);
	KUNIT_EXPECT_EQ(test, taken, 3);
	KUNIT_EXPECT_NOT_NULL(test, tw_table_end(table));
	KUNIT_EXPECT_NULL(test, find(table, id));
	KUNIT_EXPECT_EQ(test, table->free, 0);
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

/* Timers at a time, and what is done to them */
#define MOST 3000
#define ROUNDS 60000

/* In turns of so many rounds more and fewer, so that chunks come and go */
#define TURN 6000

static void random_use(struct kunit *test)
{
	struct tw_table *table = new_table(test);
	unsigned int n = 0, dead_n = 0, chunks = 0, i, round;
	struct rnd_state rnd;
	u64 *live, *dead;

	live = kunit_kmalloc_array(test, MOST, sizeof(*live), GFP_KERNEL);
	dead = kunit_kmalloc_array(test, ROUNDS, sizeof(*dead), GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, live);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dead);
	prandom_seed_state(&rnd, *(const u64 *)test->param_value);

	for (round = 0; round < ROUNDS; round++) {
		bool more = prandom_u32_state(&rnd) % 100 < (round / TURN % 2 ? 25 : 75);

		if (n && (!more || n == MOST)) {
			i = prandom_u32_state(&rnd) % n;
			free_id(test, table, live[i]);
			dead[dead_n++] = live[i];
			live[i] = live[--n];
		} else {
			if (!table->free) {
				fixture_chunk(test, table);
				chunks++;
			}
			live[n++] = alloc_id(test, table);
		}
		chunks -= fixture_free_chunks(test, tw_table_detach_spare(table));
		KUNIT_ASSERT_EQ(test, table->free, chunks * CHUNK - n);
		if (round % 100 == 0) {
			KUNIT_ASSERT_EQ(test, used(table), n);
			check_free(test, table);
		}
		if (!dead_n)
			continue;
		i = prandom_u32_state(&rnd) % dead_n;
		KUNIT_ASSERT_NULL(test, find(table, dead[i]));
	}
	KUNIT_EXPECT_LE(test, table->nr_chunks, TW_FIRST_CHUNK + 1 + MOST / CHUNK + 1);
	sort(dead, dead_n, sizeof(*dead), compare_ids, NULL);
	for (i = 1; i < dead_n; i++)
		KUNIT_ASSERT_NE(test, dead[i - 1], dead[i]);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(empty_table_finds_nothing),
	KUNIT_CASE_PARAM(chunk_gives_each_node_once, part_gen_params),
	KUNIT_CASE_PARAM(chunk_keeps_to_its_nodes, part_gen_params),
	KUNIT_CASE_PARAM(free_nodes_untouched, part_gen_params),
	KUNIT_CASE(index_leads_to_its_node),
	KUNIT_CASE(id_reused_never),
	KUNIT_CASE_PARAM(made_up_id_finds_nothing, made_up_gen_params),
	KUNIT_CASE(index_without_generation_finds_nothing),
	KUNIT_CASE_PARAM(memory_node_allocated_once, part_gen_params),
	KUNIT_CASE_PARAM(last_chunk_kept, part_gen_params),
	KUNIT_CASE(empty_chunks_handed_back),
	KUNIT_CASE_PARAM(spare_nodes_kept, others_free_gen_params),
	KUNIT_CASE(empty_chunks_used_last),
	KUNIT_CASE(chunk_freed_generation_kept),
	KUNIT_CASE(node_used_up_not_reused),
	KUNIT_CASE(chunk_used_up_not_reused),
	KUNIT_CASE(number_used_up_not_reused),
	KUNIT_CASE(directory_grows_around_live_nodes),
	KUNIT_CASE(table_is_cleared),
	KUNIT_CASE_PARAM(random_use, seed_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_table",
	.test_cases = cases,
};

kunit_test_suite(suite);
