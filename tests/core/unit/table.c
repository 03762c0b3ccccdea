// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table against a model: ids, made-up ids, chunks that come and go,
 * generations that are used up, a directory that grows.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "host.h"
#include "table.h"

/* Where all is small, numbers are soon used up, and there is soon nothing left to do. */
#ifdef TW_SMALL_WORLD
#define MOST_CHUNKS 256
#define EPISODES 100
#define OPERATIONS 2000
#else
#define MOST_CHUNKS 16
#define EPISODES 200
#define OPERATIONS 20000
#endif

#define MOST_NODES (MOST_CHUNKS << TW_CHUNK_SHIFT)
#define OLD_IDS 1024U

enum node_state {
	NODE_FREE,
	NODE_USED,
	NODE_PLAIN,
	NODE_RETIRED,
};

/**
 * struct model_chunk - what the model knows of a chunk
 * @chunk: the chunk, or NULL
 * @used: nodes in use
 * @retired: nodes that have no generation left
 */
struct model_chunk {
	struct tw_chunk *chunk;
	unsigned int used;
	unsigned int retired;
};

static struct tw_table table;
static struct model_chunk chunks[MOST_CHUNKS];
static enum node_state nodes[MOST_NODES];
/* The last generation that each index was seen with, whatever chunk was there */
static u32 gens[MOST_NODES];
static u32 used[MOST_NODES], nr_used;
static u64 old_ids[OLD_IDS], nr_old;
/* Does it begin with a short chunk? */
static bool begins_short;

static u32 model_free(void)
{
	unsigned int i;
	u32 n = 0;

	for (i = 0; i < MOST_CHUNKS; i++)
		if (chunks[i].chunk)
			n += chunks[i].chunk->bytes / sizeof(struct tw_node) -
			     chunks[i].used - chunks[i].retired;
	return n;
}

static u64 id_of(u32 index)
{
	return (u64)gens[index] << 32 | index;
}

static bool is_live(u64 id)
{
	u32 index = id;

	return index < MOST_NODES && nodes[index] == NODE_USED && id_of(index) == id;
}

static void check_invariants(void)
{
	static u32 saved;

	if (tw_check_due(&saved, table.nr_chunks * TW_CHUNK_NODES))
		tw_check_table(&table, true);
}

static void check_find(u64 id)
{
	struct tw_node *found;
	u32 index;

	ASSERT_EQ(tw_table_find(&table, id, &found, &index), is_live(id));
	if (!is_live(id))
		return;
	ASSERT_EQ(index, (u32)id);
	ASSERT_TRUE(found == tw_node_at(&table, index));
	ASSERT_EQ(tw_id(found, index), id);
}

static void grow(void)
{
	u32 more = table.max_chunks + 1 + host_below(4);
	void *directory = malloc(TW_DIR_BYTES(more));
	void *was = table.dir;

	/* Whatever was in the memory before */
	memset(directory, 0xa5, TW_DIR_BYTES(more));
	/* The first one is nobody's to be freed. */
	if (table.max_chunks == TW_FIRST_CHUNK)
		was = NULL;
	ASSERT_TRUE(tw_table_grow(&table, directory, more) == was);
	ASSERT_EQ(table.max_chunks, more);
	free(was);
}

static void lengthen(void)
{
	struct tw_chunk *chunk = chunks[TW_FIRST_CHUNK].chunk;
	struct tw_node *memory = calloc(1, TW_CHUNK_BYTES), *was = chunk->nodes;
	u32 in_all = table.free + chunks[TW_FIRST_CHUNK].used + chunks[TW_FIRST_CHUNK].retired;

	ASSERT_EQ(in_all, TW_FEW_NODES);
	ASSERT_TRUE(tw_table_lengthen(&table, memory) == was);
	free(was);
	ASSERT_TRUE(!tw_table_short(&table));
	ASSERT_TRUE(tw_table_nodes(&table, TW_FIRST_CHUNK) == memory);
	ASSERT_EQ(table.free, model_free());
	check_invariants();
}

static void add_chunk(void)
{
	struct tw_chunk *chunk = malloc(sizeof(*chunk));
	u32 bytes = tw_table_next_bytes(&table, TW_FEW_NODES + !begins_short);
	struct tw_node *memory = calloc(1, bytes);

	memset(chunk, 0xa5, sizeof(*chunk));
	while (tw_table_full(&table))
		grow();
	tw_table_add(&table, chunk, memory, bytes);
	ASSERT_EQ(tw_table_short(&table), bytes == TW_FEW_BYTES);
	ASSERT_TRUE(chunk->nr < MOST_CHUNKS);
	ASSERT_TRUE(tw_table_nodes(&table, chunk->nr) == memory);
	ASSERT_TRUE(!chunks[chunk->nr].chunk);
	chunks[chunk->nr] = (struct model_chunk){ .chunk = chunk };
	ASSERT_EQ(table.free, model_free());
	check_invariants();
}

static bool may_add_chunk(void)
{
	return table.first_unused || table.nr_chunks < MOST_CHUNKS;
}

/* Takes a node, of which there has to be one. */
static u32 alloc(bool plain)
{
	struct tw_node *node;
	u32 index, gen;

	ASSERT_TRUE(table.free);
	if (plain) {
		index = tw_table_alloc(&table);
		node = tw_node_at(&table, index);
	} else {
		node = tw_node_begin(&table, &index);
		ASSERT_TRUE(node == tw_node_at(&table, index));
	}
	ASSERT_TRUE(index < MOST_NODES && index >= TW_CHUNK_NODES);
	ASSERT_TRUE(chunks[index >> TW_CHUNK_SHIFT].chunk);
	ASSERT_TRUE(node == &chunks[index >> TW_CHUNK_SHIFT].chunk->nodes[index & TW_CHUNK_MASK]);
	ASSERT_TRUE(nodes[index] == NODE_FREE);
	gen = node->gen;
	if (!plain) {
		/* So no id is given out twice. */
		ASSERT_TRUE(gen > gens[index]);
		ASSERT_TRUE(gen & 1);
		ASSERT_TRUE(gen <= TW_LAST_GEN);
		gens[index] = gen;
	}
	/* All of it is the caller's but the generation. */
	memset(node, 0x5a, sizeof(*node));
	node->gen = gen;
	nodes[index] = plain ? NODE_PLAIN : NODE_USED;
	used[nr_used++] = index;
	chunks[index >> TW_CHUNK_SHIFT].used++;
	ASSERT_EQ(table.free, model_free());
	check_invariants();
	check_find(id_of(index));
	return index;
}

static void alloc_all(void)
{
	while (table.free)
		alloc(false);
}

/* The batch is over: what is empty and not needed is given back, and nothing else. */
static void give_back(void)
{
	struct tw_chunk *spare = tw_table_detach_spare(&table), *next;
	u32 i, empty = 0;

	/* Some stay, for who comes next. */
	ASSERT_TRUE(!spare || table.free >= TW_TABLE_KEEP);
	for (; spare; spare = next) {
		struct model_chunk *chunk = &chunks[spare->nr];

		next = spare->next;
		ASSERT_TRUE(chunk->chunk == spare);
		ASSERT_TRUE(!chunk->used && !chunk->retired);
		ASSERT_TRUE(tw_table_nodes(&table, spare->nr) == tw_zero_nodes);
		chunk->chunk = NULL;
		free(spare->nodes);
		free(spare);
	}
	ASSERT_EQ(table.free, model_free());
	for (i = 0; i < MOST_CHUNKS; i++)
		empty += chunks[i].chunk && !chunks[i].used && !chunks[i].retired;
	ASSERT_TRUE(!empty || table.free < TW_CHUNK_NODES + TW_TABLE_KEEP);
	check_invariants();
}

static void free_at(u32 place)
{
	u32 index = used[place];
	struct model_chunk *chunk = &chunks[index >> TW_CHUNK_SHIFT];
	struct tw_node *node = tw_node_at(&table, index);
	u32 free = table.free;

	used[place] = used[--nr_used];
	chunk->used--;
	if (nodes[index] == NODE_PLAIN) {
		tw_table_free(&table, index);
		nodes[index] = NODE_FREE;
	} else {
		bool last = gens[index] == TW_LAST_GEN;

		old_ids[nr_old++ % OLD_IDS] = id_of(index);
		tw_node_end(&table, node, index);
		nodes[index] = last ? NODE_RETIRED : NODE_FREE;
		chunk->retired += last;
	}
	ASSERT_EQ(table.free, model_free());
	/* Whatever is freed, no node is lost to who counts on it. */
	ASSERT_TRUE(table.free >= free);
	check_invariants();
	check_find(id_of(index));
}

static u64 made_up_id(void)
{
	u64 id = nr_used ? id_of(used[host_below(nr_used)]) : 0;
	u32 index = id;

	switch (host_below(9)) {
	case 0:
		return host_random();
	case 1:
		return id ^ 1ULL << host_below(64);
	case 2:
		return id + (1ULL << 32);
	case 3:
		return id - (1ULL << 32);
	case 4:
		return index;
	case 5:
		return id + host_below(5) - 2;
	case 6:
		return (id & ~(u64)U32_MAX) |
		       host_below((table.nr_chunks + 2) << TW_CHUNK_SHIFT);
	case 7:
		return host_chance(2) ? U64_MAX : 0;
	default:
		return nr_old ? old_ids[host_below(min_t(u64, nr_old, OLD_IDS))] : 0;
	}
}

/* Have the generations of a chunk up to @gen count as given out. */
static void wear_to(u32 nr, u32 gen)
{
	struct tw_chunk *chunk = table.chunks[nr];

	gen &= ~1U;
	if (chunk && chunk->gen < gen) {
		chunk->gen = gen;
		chunk->bound = max(chunk->bound, gen);
		if (table.word && tw_chunk_of(&table, table.first) == chunk) {
			table.gen = gen;
			chunk->bound = max(chunk->bound, min(gen + 2, TW_LAST_GEN - 1));
		}
	} else if (!chunk && table.unused[nr].gen < gen) {
		table.unused[nr].gen = gen;
	}
}

static void wear(void)
{
	u32 nr = TW_FIRST_CHUNK + host_below(table.nr_chunks);

	if (nr < table.nr_chunks)
		wear_to(nr, TW_LAST_GEN - 3 - host_below(min_t(u32, 8, TW_LAST_GEN - 3)));
}

static void check_all(void)
{
	u32 i;

	ASSERT_EQ(table.free, model_free());
	for (i = 0; i < nr_used; i++)
		check_find(id_of(used[i]));
	tw_check_table(&table, true);
}

static void begin(void)
{
	tw_table_init(&table);
	memset(chunks, 0, sizeof(chunks));
	memset(nodes, 0, sizeof(nodes));
	memset(gens, 0, sizeof(gens));
	nr_used = 0;
	nr_old = 0;
}

static void end(void)
{
	struct tw_chunk *chunk;
	int expected = 0;
	u32 i;

	while (nr_used)
		free_at(host_below(nr_used));
	check_all();
	give_back();
	for (i = 0; i < MOST_CHUNKS; i++)
		expected += !!chunks[i].chunk;
	while ((chunk = tw_table_take_chunk(&table))) {
		ASSERT_TRUE(chunks[chunk->nr].chunk == chunk);
		ASSERT_TRUE(!chunk->next);
		free(chunk->nodes);
		free(chunk);
		expected--;
	}
	free(tw_table_end(&table));
	ASSERT_EQ(expected, 0);
	ASSERT_EQ(table.free, 0);
}

static void episode(void)
{
	unsigned int fill = 1 + host_below(9);
	unsigned int wear_in = host_chance(2) ? 100 : 100000;
	unsigned int give_back_in = 1 + host_below(100);
	unsigned int i;

	begin();
	begins_short = host_chance(2);
	for (i = 0; i < OPERATIONS; i++) {
		if (host_chance(1000))
			fill = 1 + host_below(9);
		if (host_chance(3))
			check_find(made_up_id());
		if (host_chance(wear_in))
			wear();
		if (host_chance(give_back_in))
			give_back();
		if (host_chance(2000))
			check_all();
		if (host_below(10) >= fill) {
			if (nr_used)
				free_at(host_below(nr_used));
		} else if (table.free) {
			alloc(host_chance(5));
		} else if (tw_table_short(&table)) {
			lengthen();
		} else if (may_add_chunk()) {
			add_chunk();
		}
	}
	end();
	begins_short = false;
}

static void random_operations(void)
{
	u64 seed = host_first_seed();
	u64 i, episodes = host_part(EPISODES);

	for (i = 0; i < episodes; i++) {
		host_seed(seed + i);
		episode();
	}
	host_note("%llu operations from SEED=%llu on", episodes * OPERATIONS, seed);
}

/* Each generation that was or will be, with each index that is near */
static void every_made_up_id(void)
{
	u32 index, gen;

	host_seed(0);
	begin();
	add_chunk();
	add_chunk();
	for (index = 0; index < 400; index++) {
		if (nr_used > 50)
			free_at(host_below(nr_used));
		if (table.free)
			alloc(host_chance(4));
	}
	for (gen = 0; gen < 500; gen++)
		for (index = 0; index < 5 << TW_CHUNK_SHIFT; index++)
			check_find((u64)gen << 32 | index);
	end();
}

/* The place in @used of a node that is used */
static u32 place_of(u32 index)
{
	u32 place = 0;

	while (used[place] != index)
		place++;
	return place;
}

/* A node without generations left is not given out again; its neighbours are. */
static void used_up_node(void)
{
	unsigned int lives = 1;
	u32 index;

	host_seed(0);
	begin();
	add_chunk();
	wear_to(TW_FIRST_CHUNK, TW_LAST_GEN - 5);
	index = alloc(false);
	alloc_all();
	for (;;) {
		free_at(place_of(index));
		if (!table.free)
			break;
		ASSERT_EQ(alloc(false), index);
		lives++;
	}
	ASSERT_EQ(lives, 3);
	ASSERT_EQ(gens[index], TW_LAST_GEN);
	ASSERT_EQ(nr_used, TW_CHUNK_NODES - 1);
	while (nr_used)
		free_at(0);
	ASSERT_EQ(table.free, TW_CHUNK_NODES - 1);
	check_all();

	/* The chunk is not given back, lest it look like a new one. */
	add_chunk();
	give_back();
	ASSERT_TRUE(chunks[TW_FIRST_CHUNK].chunk);
	while (chunks[TW_FIRST_CHUNK].retired < TW_CHUNK_NODES) {
		alloc(false);
		free_at(0);
	}
	check_all();
	end();
}

/* A chunk is given back with all generations given out: its number is not used again. */
static void used_up_number(void)
{
	const u32 nr = TW_FIRST_CHUNK + 1;

	host_seed(0);
	begin();
	add_chunk();
	alloc_all();
	add_chunk();
	ASSERT_EQ(alloc(false) >> TW_CHUNK_SHIFT, nr);
	wear_to(nr, TW_LAST_GEN - 1);
	free_at(nr_used - 1);
	/* There is enough without it, so it goes. */
	add_chunk();
	give_back();
	ASSERT_TRUE(!chunks[nr].chunk);
	add_chunk();
	ASSERT_TRUE(!chunks[nr].chunk);
	end();
}

static void memory_is_given_back(void)
{
	unsigned int i, left = 0;

	host_seed(0);
	begin();
	for (i = TW_FIRST_CHUNK; i < MOST_CHUNKS; i++) {
		add_chunk();
		alloc_all();
	}
	while (nr_used)
		free_at(host_below(nr_used));
	give_back();
	for (i = TW_FIRST_CHUNK; i < MOST_CHUNKS; i++)
		left += !!chunks[i].chunk;
	ASSERT_EQ(left, (TW_TABLE_KEEP + TW_CHUNK_NODES - 1) / TW_CHUNK_NODES);

	/* All numbers are used again before there is a new one. */
	for (i = TW_FIRST_CHUNK + left; i < MOST_CHUNKS; i++)
		add_chunk();
	ASSERT_EQ(table.nr_chunks, MOST_CHUNKS);
	alloc_all();
	end();
}

/* Chunks are filled up before empty ones are used, so that these can be given back. */
static void empty_chunks_come_last(void)
{
	host_seed(0);
	begin();
	add_chunk();
	alloc_all();
	free_at(0);
	add_chunk();
	ASSERT_EQ(alloc(false) >> TW_CHUNK_SHIFT, TW_FIRST_CHUNK);
	ASSERT_EQ(alloc(false) >> TW_CHUNK_SHIFT, TW_FIRST_CHUNK + 1);
	end();
}

/* Memory that nobody has used yet need not be there. */
static void free_nodes_untouched(void)
{
	static const struct tw_node untouched;
	u32 place;

	host_seed(0);
	begin();
	add_chunk();
	for (place = 0; place < TW_CHUNK_NODES / 2; place++)
		alloc(host_chance(2));
	for (place = 0; place < TW_CHUNK_NODES; place++) {
		u32 index = TW_FIRST_CHUNK << TW_CHUNK_SHIFT | place;

		if (nodes[index] == NODE_FREE)
			ASSERT_TRUE(!memcmp(tw_node_at(&table, index), &untouched,
					    sizeof(untouched)));
	}
	end();
}

static void sizes(void)
{
	ASSERT_EQ(sizeof(struct tw_node), 32);
	ASSERT_EQ(sizeof(struct tw_period), sizeof(struct tw_node));
	ASSERT_TRUE(TW_LAST_GEN & 1);
	ASSERT_EQ(TW_CHUNK_NODES % TW_WORD_NODES, 0);
	ASSERT_EQ(TW_FEW_NODES % TW_WORD_NODES, 0);
}

int main(void)
{
	host_plan(8);
	host_test("random operations: the table and the model agree",
		  random_operations);
	host_test("every made-up id near those of a small table",
		  every_made_up_id);
	host_test("a node without generations left", used_up_node);
	host_test("a number without generations left", used_up_number);
	host_test("memory is given back, and numbers are used again",
		  memory_is_given_back);
	host_test("empty chunks come last", empty_chunks_come_last);
	host_test("free nodes are not touched", free_nodes_untouched);
	host_test("sizes", sizes);
	return host_end();
}
