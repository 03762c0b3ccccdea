// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table against a model: ids, made-up ids, chunks that come and go
 * and wear out, a directory that grows.
 */
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "table.h"

#define MOST_CHUNKS 32
#define MOST_NODES (MOST_CHUNKS << TW_CHUNK_SHIFT)
#define OLD_IDS 1024U
#define EPISODES 200
#define OPERATIONS 20000

enum node_state {
	NODE_FREE,
	NODE_USED,
	NODE_HIDDEN,
};

/**
 * struct model_chunk - what the model knows of a chunk
 * @memory: its memory, or NULL
 * @cap: nodes that it holds
 * @used: nodes in use
 * @gen: the last generation that was seen from it
 */
struct model_chunk {
	struct tw_node *memory;
	unsigned int cap;
	unsigned int used;
	u32 gen;
};

static struct tw_table table;
static struct model_chunk chunks[MOST_CHUNKS];
static enum node_state nodes[MOST_NODES];
static u64 ids[MOST_NODES];
static u32 used[MOST_NODES], nr_used;
static u64 old_ids[OLD_IDS], nr_old;

static bool worn_out(const struct model_chunk *chunk)
{
	return chunk->gen == U32_MAX;
}

static u32 model_free(void)
{
	u32 n = 0;
	unsigned int i;

	for (i = 0; i < MOST_CHUNKS; i++)
		if (chunks[i].memory && !worn_out(&chunks[i]))
			n += chunks[i].cap - chunks[i].used;
	return n;
}

static u32 model_find(u64 id)
{
	u32 index = id;

	if (index < MOST_NODES && nodes[index] == NODE_USED &&
	    ids[index] == id)
		return index;
	return TW_NIL;
}

static void check_find(u64 id)
{
	REQUIRE_EQ(tw_table_find(&table, id), model_find(id));
}

static void grow(void)
{
	u32 more = table.max_chunks + 1 + host_below(4);
	struct tw_chunk *directory = malloc(more * sizeof(*directory));
	struct tw_chunk *was = table.chunks;

	/* Whatever was in the memory before */
	memset(directory, 0xa5, more * sizeof(*directory));
	REQUIRE(tw_table_grow(&table, directory, more) == was);
	free(was);
}

static void add_chunk(unsigned int cap)
{
	struct tw_node *memory = malloc(cap * sizeof(*memory));
	unsigned int i;

	while (tw_table_full(&table))
		grow();
	memset(memory, 0xa5, cap * sizeof(*memory));
	tw_chunk_format(memory, cap);
	tw_table_add(&table, memory, cap);
	for (i = 0; i < table.nr_chunks; i++)
		if (table.chunks[i].nodes == memory)
			break;
	REQUIRE(i < table.nr_chunks);
	REQUIRE(!chunks[i].memory);
	REQUIRE(!worn_out(&chunks[i]));
	chunks[i].memory = memory;
	chunks[i].cap = cap;
	chunks[i].used = 0;
}

static bool may_add_chunk(void)
{
	return table.unused != TW_NIL || table.nr_chunks < MOST_CHUNKS;
}

static u32 alloc(bool hidden)
{
	u32 index = hidden ? tw_table_alloc_hidden(&table) :
			     tw_table_alloc(&table);
	u32 nr = index >> TW_CHUNK_SHIFT;
	struct model_chunk *chunk;
	u64 id;

	if (index == TW_NIL) {
		REQUIRE_EQ(model_free(), 0);
		return index;
	}
	REQUIRE(nr < MOST_CHUNKS);
	chunk = &chunks[nr];
	REQUIRE(chunk->memory);
	REQUIRE(!worn_out(chunk));
	REQUIRE((index & TW_CHUNK_MASK) < chunk->cap);
	REQUIRE(tw_node(&table, index) ==
		&chunk->memory[index & TW_CHUNK_MASK]);
	REQUIRE(nodes[index] == NODE_FREE);

	id = tw_id(tw_node(&table, index), index);
	if (hidden) {
		REQUIRE_EQ(id >> 32, 0);
	} else {
		/* Ever newer: so no id is given out twice. */
		REQUIRE(id >> 32 > chunk->gen);
		chunk->gen = id >> 32;
	}
	nodes[index] = hidden ? NODE_HIDDEN : NODE_USED;
	ids[index] = id;
	used[nr_used++] = index;
	chunk->used++;
	check_find(id);
	return index;
}

/* Takes the memory that the table gives back, which has to be that of @chunk. */
static void take_spare(struct model_chunk *chunk, bool expected)
{
	struct tw_spare *spare = tw_table_take_spare(&table);

	REQUIRE_EQ(!!spare, expected);
	REQUIRE(!tw_table_take_spare(&table));
	if (!spare)
		return;
	REQUIRE((struct tw_node *)spare == chunk->memory);
	REQUIRE_EQ(spare->cap, chunk->cap);
	REQUIRE(!spare->next);
	free(spare);
	chunk->memory = NULL;
}

static void free_at(u32 place)
{
	u32 index = used[place];
	struct model_chunk *chunk = &chunks[index >> TW_CHUNK_SHIFT];
	bool give_back;

	used[place] = used[--nr_used];
	nodes[index] = NODE_FREE;
	chunk->used--;
	old_ids[nr_old++ % OLD_IDS] = ids[index];
	give_back = !chunk->used &&
		    (worn_out(chunk) ||
		     model_free() - chunk->cap >= TW_TABLE_KEEP);
	tw_table_free(&table, index);
	take_spare(chunk, give_back);
	check_find(ids[index]);
}

static u64 made_up_id(void)
{
	u64 id = nr_used ? ids[used[host_below(nr_used)]] : 0;
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

static void wear(void)
{
	u32 nr, gen = U32_MAX - 1 - host_below(4);

	if (!table.nr_chunks)
		return;
	nr = host_below(table.nr_chunks);
	if (table.chunks[nr].gen < gen) {
		table.chunks[nr].gen = gen;
		chunks[nr].gen = gen;
	}
}

static void check_all(void)
{
	u32 i;

	REQUIRE_EQ(table.used, nr_used);
	REQUIRE_EQ(table.free, model_free());
	for (i = 0; i < nr_used; i++)
		check_find(ids[used[i]]);
}

static void begin(void)
{
	tw_table_init(&table);
	memset(chunks, 0, sizeof(chunks));
	memset(nodes, 0, sizeof(nodes));
	nr_used = 0;
	nr_old = 0;
}

static void end(void)
{
	u32 i;

	while (nr_used)
		free_at(host_below(nr_used));
	check_all();
	for (i = 0; i < MOST_CHUNKS; i++) {
		REQUIRE(!chunks[i].memory || chunks[i].memory ==
					     table.chunks[i].nodes);
		free(chunks[i].memory);
	}
	free(table.chunks);
}

static void episode(void)
{
	unsigned int most_cap = 1 + (host_random() >> 54 >> host_below(10));
	unsigned int fill = 1 + host_below(9);
	unsigned int wear_in = host_chance(2) ? 100 : 100000;
	unsigned int i;

	begin();
	for (i = 0; i < OPERATIONS; i++) {
		if (host_chance(1000))
			fill = 1 + host_below(9);
		if (host_chance(3))
			check_find(made_up_id());
		if (host_chance(wear_in))
			wear();
		if (host_chance(2000))
			check_all();
		REQUIRE_EQ(table.used, nr_used);
		if (host_below(10) >= fill) {
			if (nr_used)
				free_at(host_below(nr_used));
		} else if (table.free) {
			REQUIRE(alloc(host_chance(5)) != TW_NIL);
		} else {
			REQUIRE_EQ(alloc(host_chance(5)), TW_NIL);
			if (may_add_chunk())
				add_chunk(1 + host_below(most_cap));
		}
	}
	end();
}

static void random_operations(void)
{
	u64 seed = host_first_seed();
	unsigned int i;

	for (i = 0; i < EPISODES; i++) {
		host_seed(seed + i);
		episode();
	}
	host_note("%u operations from SEED=%llu on", EPISODES * OPERATIONS,
		  seed);
}

/* Each generation that was or will be, with each index that is near */
static void every_made_up_id(void)
{
	u32 index, gen;

	host_seed(0);
	begin();
	add_chunk(3);
	add_chunk(102);
	add_chunk(1);
	for (index = 0; index < 400; index++) {
		if (nr_used > 50)
			free_at(host_below(nr_used));
		alloc(host_chance(4));
	}
	for (gen = 0; gen < 500; gen++)
		for (index = 0; index < 5 << TW_CHUNK_SHIFT; index++)
			check_find((u64)gen << 32 | index);
	end();
}

static void worn_out_chunk(void)
{
	u32 index;

	host_seed(0);
	begin();
	add_chunk(10);
	REQUIRE_EQ(alloc(false), 0);
	table.chunks[0].gen = U32_MAX - 3;
	chunks[0].gen = U32_MAX - 3;
	alloc(true);
	alloc(false);
	alloc(false);
	free_at(2);
	REQUIRE(alloc(false) != TW_NIL);
	REQUIRE(worn_out(&chunks[0]));
	/* Nodes are free, but there is no generation for them. */
	REQUIRE_EQ(alloc(false), TW_NIL);
	REQUIRE_EQ(alloc(true), TW_NIL);
	free_at(0);
	REQUIRE_EQ(alloc(false), TW_NIL);
	check_all();

	/* A new chunk does not disturb what is left of it, nor is it re-used. */
	add_chunk(10);
	index = alloc(false);
	REQUIRE_EQ(index >> TW_CHUNK_SHIFT, 1);
	check_all();
	while (chunks[0].memory)
		free_at(0);
	check_all();
	add_chunk(10);
	REQUIRE(!chunks[0].memory);
	end();
}

static void memory_is_given_back(void)
{
	unsigned int i, left = 0;

	host_seed(0);
	begin();
	for (i = 0; i < MOST_CHUNKS; i++) {
		add_chunk(100 + i);
		while (alloc(false) != TW_NIL)
			;
	}
	while (nr_used)
		free_at(host_below(nr_used));
	for (i = 0; i < MOST_CHUNKS; i++)
		left += !!chunks[i].memory;
	REQUIRE_EQ(left, 1);

	/* All numbers are used again before there is a new one. */
	for (i = 1; i < MOST_CHUNKS; i++)
		add_chunk(10);
	REQUIRE_EQ(table.nr_chunks, MOST_CHUNKS);
	while (alloc(false) != TW_NIL)
		;
	end();
}

int main(void)
{
	host_plan(4);
	host_test("random operations: the table and the model agree",
		  random_operations);
	host_test("every made-up id near those of a small table",
		  every_made_up_id);
	host_test("a chunk without generations left", worn_out_chunk);
	host_test("memory is given back, and numbers are used again",
		  memory_is_given_back);
	return host_end();
}
