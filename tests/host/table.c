// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table against a model: ids, made-up ids, chunks that come and go
 * and wear out, a directory that grows.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "host.h"
#include "table.h"

/* Where all is small, chunks are soon worn out, and there is soon nothing left to do. */
#ifdef TW_SMALL_WORLD
#define MOST_CHUNKS 256
#define EPISODES 100
#define OPERATIONS 2000
#else
#define MOST_CHUNKS 32
#define EPISODES 200
#define OPERATIONS 20000
#endif

#define MOST_NODES (MOST_CHUNKS << TW_CHUNK_SHIFT)
#define MOST_CAP TW_CHUNK_CAP
#define OLD_IDS 1024U

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
 * @retired: nodes that were freed when it was worn out
 * @gen: the last generation that was seen from it
 */
struct model_chunk {
	struct tw_chunk *memory;
	unsigned int cap;
	unsigned int used;
	unsigned int retired;
	u32 gen;
};

static struct tw_table table;
static struct model_chunk chunks[MOST_CHUNKS];
static enum node_state nodes[MOST_NODES];
static u64 ids[MOST_NODES];
static u32 used[MOST_NODES], nr_used;
static u64 old_ids[OLD_IDS], nr_old;
/* Nodes that were reserved, and of these the ones that were not taken yet */
static u32 reserved, reserved_left;

static bool worn_out(const struct model_chunk *chunk)
{
	return chunk->gen >= TW_WORN_GEN;
}

static u32 model_free(void)
{
	u32 n = 0;
	unsigned int i;

	for (i = 0; i < MOST_CHUNKS; i++)
		if (chunks[i].memory)
			n += chunks[i].cap - chunks[i].used - chunks[i].retired;
	return n;
}

/* Where the node of an index is, which there has to be */
static struct tw_node *node_at(u32 index)
{
	return &chunks[index >> TW_CHUNK_SHIFT].memory->nodes[index & TW_CHUNK_MASK];
}

static const struct tw_node *model_find(u64 id)
{
	u32 index = id;

	if (index < MOST_NODES && nodes[index] == NODE_USED &&
	    ids[index] == id)
		return node_at(index);
	return NULL;
}

static void check_invariants(void)
{
	static u32 saved;

	if (tw_check_due(&saved, table.nr_chunks + table.free + nr_used))
		tw_check_table(&table);
}

static void check_find(u64 id)
{
	const struct tw_node *expected = model_find(id);
	struct tw_node *found;

	REQUIRE_EQ(tw_table_find(&table, id, &found), !!expected);
	REQUIRE(!expected || found == expected);
}

static void grow(void)
{
	u32 more = table.max_chunks + 1 + host_below(4);
	struct tw_entry *directory = malloc(more * sizeof(*directory));
	struct tw_entry *was = table.dir;

	/* Whatever was in the memory before */
	memset(directory, 0xa5, more * sizeof(*directory));
	/* The first one is nobody's to be freed. */
	if (table.max_chunks == TW_FIRST_CHUNK)
		was = NULL;
	REQUIRE(tw_table_grow(&table, directory, more) == was);
	REQUIRE_EQ(table.max_chunks, more);
	free(was);
}

static void add_chunk(unsigned int cap)
{
	size_t bytes;
	unsigned int i;
	void *memory;

	cap = min_t(unsigned int, cap, MOST_CAP);
	bytes = (cap + 1) * sizeof(struct tw_node);
	while (tw_table_full(&table))
		grow();
	REQUIRE(!posix_memalign(&memory, TW_CHUNK_SIZE, bytes));
	memset(memory, 0xa5, bytes);
	tw_chunk_format(memory, cap);
	tw_table_add(&table, memory);
	for (i = 0; i < table.nr_chunks; i++)
		if (table.dir[i].chunk == memory)
			break;
	REQUIRE(i < table.nr_chunks);
	REQUIRE(!chunks[i].memory);
	REQUIRE(!worn_out(&chunks[i]));
	chunks[i].memory = memory;
	chunks[i].cap = cap;
	chunks[i].used = 0;
	chunks[i].retired = 0;
	REQUIRE_EQ(table.free, model_free());
	check_invariants();
}

static void reserve(u32 n)
{
	reserved = n;
	reserved_left = n;
	tw_table_reserve(&table, n);
}

static bool may_add_chunk(void)
{
	return table.unused != TW_NO_CHUNK || table.nr_chunks < MOST_CHUNKS;
}

/* Takes a node, of which there has to be one. */
static u32 alloc(bool hidden)
{
	struct model_chunk *chunk;
	struct tw_node *node;
	u32 index, nr;
	u64 id;

	REQUIRE(table.free);
	if (hidden) {
		node = tw_table_alloc_hidden(&table);
		id = tw_id(node);
		REQUIRE_EQ(id >> 32, 0);
	} else {
		node = tw_table_alloc(&table, &id);
		REQUIRE_EQ(tw_id(node), id);
	}
	index = id;
	nr = index >> TW_CHUNK_SHIFT;
	REQUIRE(nr < MOST_CHUNKS);
	chunk = &chunks[nr];
	REQUIRE(chunk->memory);
	REQUIRE((index & TW_CHUNK_MASK) >= 1);
	REQUIRE((index & TW_CHUNK_MASK) <= chunk->cap);
	REQUIRE(node == node_at(index));
	REQUIRE(nodes[index] == NODE_FREE);

	if (!hidden) {
		/* The next one: so no id is given out twice, and none is left out. */
		REQUIRE_EQ(id >> 32, chunk->gen + 1);
		REQUIRE(id >> 32 <= TW_LAST_GEN);
		chunk->gen = id >> 32;
	}
	/* All of it is the caller's but the generation. */
	memset(node, 0x5a, offsetof(struct tw_node, gen));
	nodes[index] = hidden ? NODE_HIDDEN : NODE_USED;
	ids[index] = id;
	used[nr_used++] = index;
	chunk->used++;
	reserved_left -= !!reserved_left;
	REQUIRE_EQ(table.free, model_free());
	check_invariants();
	check_find(id);
	return index;
}

static void alloc_all(void)
{
	while (table.free)
		alloc(false);
}

/* Takes the memory that the table gives back, which has to be that of @chunk. */
static void take_spare(struct model_chunk *chunk, bool expected)
{
	struct tw_chunk *spare = tw_table_take_spare(&table);

	REQUIRE_EQ(!!spare, expected);
	REQUIRE(!tw_table_take_spare(&table));
	if (!spare)
		return;
	REQUIRE(spare == chunk->memory);
	REQUIRE(!spare->next);
	free(spare);
	chunk->memory = NULL;
}

static void free_at(u32 place)
{
	u32 index = used[place];
	u32 nr = index >> TW_CHUNK_SHIFT;
	struct model_chunk *chunk = &chunks[nr];
	bool worn = worn_out(chunk), give_back;

	used[place] = used[--nr_used];
	nodes[index] = NODE_FREE;
	chunk->used--;
	chunk->retired += worn;
	old_ids[nr_old++ % OLD_IDS] = ids[index];
	/* The first stays for as long as the table. */
	give_back = nr != TW_FIRST_CHUNK && !chunk->used &&
		    (worn ? chunk->retired == chunk->cap :
		     model_free() - chunk->cap >= max_t(u32, TW_TABLE_KEEP, reserved));
	tw_table_free(&table, node_at(index));
	check_invariants();
	take_spare(chunk, give_back);
	REQUIRE(table.free >= reserved_left);
	REQUIRE_EQ(table.free, model_free());
	check_invariants();
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

/* Let so many generations of a number be given out as if they had been. */
static void wear_to(u32 nr, u32 gen)
{
	struct tw_chunk *chunk = table.dir[nr].chunk;
	u32 *now = chunk != &tw_no_chunk ? &chunk->gen : &table.dir[nr].gen;

	if (*now < gen) {
		*now = gen;
		chunks[nr].gen = gen;
	}
}

static void wear(void)
{
	u32 nr = host_below(table.nr_chunks);

	if (nr)
		wear_to(nr, TW_WORN_GEN - 1 - host_below(min_t(u32, 4, TW_WORN_GEN)));
}

static void check_all(void)
{
	u32 i;

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
	reserve(0);
}

static void end(void)
{
	struct tw_chunk *spare, *next;
	int expected = 0;
	u32 i;

	reserve(0);
	while (nr_used)
		free_at(host_below(nr_used));
	check_all();
	for (i = 0; i < MOST_CHUNKS; i++) {
		REQUIRE(!chunks[i].memory ||
			chunks[i].memory == table.dir[i].chunk);
		expected += !!chunks[i].memory;
	}
	free(tw_table_clear(&table));
	for (spare = tw_table_take_spare(&table); spare; spare = next) {
		next = spare->next;
		free(spare);
		expected--;
	}
	REQUIRE_EQ(expected, 0);
	REQUIRE_EQ(table.free, 0);
}

static void episode(void)
{
	unsigned int most_cap = 1 + (host_below(MOST_CAP) >> host_below(10));
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
		if (host_chance(50))
			reserve(host_below(table.free + 1));
		if (host_chance(2000))
			check_all();
		if (host_below(10) >= fill) {
			if (nr_used)
				free_at(host_below(nr_used));
		} else if (table.free) {
			alloc(host_chance(5));
		} else if (may_add_chunk()) {
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
		if (table.free)
			alloc(host_chance(4));
	}
	for (gen = 0; gen < 500; gen++)
		for (index = 0; index < 5 << TW_CHUNK_SHIFT; index++)
			check_find((u64)gen << 32 | index);
	end();
}

/* The place in @used of a node of a chunk that is used */
static u32 used_in(u32 nr)
{
	u32 place = 0;

	while (used[place] >> TW_CHUNK_SHIFT != nr)
		place++;
	return place;
}

static void worn_out_chunk(void)
{
	const unsigned int cap = min_t(u32, 10, MOST_CAP);

	host_seed(0);
	begin();
	add_chunk(cap);
	alloc_all();
	add_chunk(cap);
	REQUIRE_EQ(alloc(true) >> TW_CHUNK_SHIFT, 2);
	wear_to(2, TW_WORN_GEN - 2);
	alloc(true);
	alloc(false);
	REQUIRE(!worn_out(&chunks[2]));
	free_at(nr_used - 1);
	REQUIRE_EQ(table.free, cap - 2);
	alloc(false);
	/* What is free can be had, but what is freed now can't. */
	REQUIRE(worn_out(&chunks[2]));
	REQUIRE_EQ(table.free, cap - 3);
	free_at(nr_used - 1);
	REQUIRE_EQ(table.free, cap - 3);
	alloc_all();
	free_at(nr_used - 1);
	REQUIRE_EQ(table.free, 0);
	check_all();

	/* A new chunk does not disturb what is left of it, nor is it re-used. */
	add_chunk(cap);
	REQUIRE_EQ(alloc(false) >> TW_CHUNK_SHIFT, 3);
	check_all();
	while (chunks[2].memory)
		free_at(used_in(2));
	check_all();
	alloc_all();
	add_chunk(cap);
	REQUIRE(!chunks[2].memory);
	REQUIRE(chunks[4].memory);
	end();
}

/* One that is empty and worn out stays as long as nodes of it can be had. */
static void worn_out_chunk_is_used_up(void)
{
	unsigned int i;

	host_seed(0);
	begin();
	add_chunk(1);
	alloc_all();
	add_chunk(4);
	wear_to(2, TW_WORN_GEN - 1);
	for (i = 4; i--; ) {
		REQUIRE(chunks[2].memory);
		alloc(false);
		free_at(nr_used - 1);
		REQUIRE_EQ(table.free, i);
	}
	REQUIRE(!chunks[2].memory);
	end();
}

/* What is reserved is there, whichever chunk becomes empty. */
static void reserved_nodes_stay(void)
{
	host_seed(0);
	begin();
	add_chunk(1);
	add_chunk(5);
	alloc_all();
	add_chunk(4);
	alloc(false);
	add_chunk(5);
	reserve(table.free);
	/* The last of the chunk, which would go else if little is kept. */
	free_at(nr_used - 1);
	REQUIRE(chunks[3].memory);
	while (reserved_left)
		alloc(false);
	end();
}

/* It stays, but there is nothing to be had from it. */
static void worn_out_first_chunk(void)
{
	host_seed(0);
	begin();
	add_chunk(3);
	wear_to(1, TW_WORN_GEN - 1);
	alloc_all();
	REQUIRE_EQ(table.free, 0);
	while (nr_used)
		free_at(0);
	REQUIRE(chunks[1].memory);
	REQUIRE_EQ(table.free, 0);
	add_chunk(3);
	REQUIRE_EQ(alloc(false) >> TW_CHUNK_SHIFT, 2);
	end();
}

static void memory_is_given_back(void)
{
	unsigned int i;

	host_seed(0);
	begin();
	for (i = 1; i < MOST_CHUNKS; i++) {
		/* So that none is worn out */
		add_chunk(min_t(u32, 100 + i, TW_WORN_GEN - 1));
		alloc_all();
	}
	while (nr_used)
		free_at(host_below(nr_used));
	REQUIRE(chunks[1].memory);
	for (i = 2; i < MOST_CHUNKS; i++)
		REQUIRE(!chunks[i].memory);

	/* All numbers are used again before there is a new one. */
	for (i = 2; i < MOST_CHUNKS; i++)
		add_chunk(min_t(u32, 10, MOST_CAP));
	REQUIRE_EQ(table.nr_chunks, MOST_CHUNKS);
	alloc_all();
	end();
}

/* A chunk as long as can be is no longer than its memory, nor its numbers. */
static void longest_chunk(void)
{
	unsigned int i;

	REQUIRE((MOST_CAP + 1) * sizeof(struct tw_node) <= TW_CHUNK_SIZE);
	REQUIRE_EQ(sizeof(struct tw_chunk), sizeof(struct tw_node));
	REQUIRE_EQ(MOST_CAP >> TW_CHUNK_SHIFT, 0);
	REQUIRE_EQ(sizeof(struct tw_period), sizeof(struct tw_node));
	REQUIRE_EQ(offsetof(struct tw_period, gen),
		   offsetof(struct tw_node, gen));
	host_seed(0);
	begin();
	for (i = 0; i < 3; i++) {
		add_chunk(MOST_CAP);
		alloc_all();
	}
	REQUIRE_EQ(nr_used, 3 * MOST_CAP);
	check_all();
	end();
}

int main(void)
{
	host_plan(8);
	host_test("random operations: the table and the model agree",
		  random_operations);
	host_test("every made-up id near those of a small table",
		  every_made_up_id);
	host_test("a chunk without generations left", worn_out_chunk);
	host_test("a chunk that is worn out and empty is used up",
		  worn_out_chunk_is_used_up);
	host_test("reserved nodes stay", reserved_nodes_stay);
	host_test("the first chunk without generations left",
		  worn_out_first_chunk);
	host_test("memory is given back, and numbers are used again",
		  memory_is_given_back);
	host_test("chunks as long as can be", longest_chunk);
	return host_end();
}
