// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later
/*
 * The timer table: its directory, and its lists of chunks. See table.h.
 */
#include <linux/string.h>

#include "table.h"

const struct tw_node tw_zero_nodes[TW_CHUNK_NODES];

/* The directory of a table without chunks. Nothing writes to it. */
static unsigned long tw_no_dir[] = { (unsigned long)tw_zero_nodes };
static struct tw_chunk *tw_no_chunks[1];
static struct tw_unused tw_no_unused[1];

/**
 * tw_table_init() - make an empty table
 * @table: the table
 */
void tw_table_init(struct tw_table *table)
{
	*table = (struct tw_table){
		.dir = tw_no_dir,
		.chunks = tw_no_chunks,
		.unused = tw_no_unused,
		.end = TW_CHUNK_NODES * TW_FIRST_CHUNK,
		.nr_chunks = TW_FIRST_CHUNK,
		.max_chunks = TW_FIRST_CHUNK,
	};
}

/* A directory that is not used any more, if somebody has to free it */
static void *tw_old_dir(unsigned long *dir)
{
	return dir == tw_no_dir ? NULL : dir;
}

/**
 * tw_table_grow() - give the table a longer directory
 * @table: the table
 * @dir: TW_DIR_BYTES() of memory for the new directory
 * @max_chunks: its length, more than before
 *
 * Return: the old directory's memory, which is the caller's again, or NULL.
 */
void *tw_table_grow(struct tw_table *table, void *dir, u32 max_chunks)
{
	u32 nr = table->nr_chunks;
	unsigned long *old = table->dir;
	struct tw_chunk **chunks = dir + max_chunks * sizeof(*old);
	struct tw_unused *unused = (void *)&chunks[max_chunks];

	memcpy(dir, old, nr * sizeof(*old));
	memcpy(chunks, table->chunks, nr * sizeof(*chunks));
	memcpy(unused, table->unused, nr * sizeof(*unused));
	table->dir = dir;
	table->chunks = chunks;
	table->unused = unused;
	table->max_chunks = max_chunks;
	return tw_old_dir(old);
}

/* From now on, indices of a chunk are those of these nodes. */
static void tw_dir_set(struct tw_table *table, u32 nr, const struct tw_node *nodes)
{
	table->dir[nr] = (unsigned long)nodes - ((unsigned long)nr << TW_DIR_SHIFT);
}

static void tw_list_chunk(struct tw_chunk **list, struct tw_chunk *chunk)
{
	chunk->next = *list;
	chunk->prev = NULL;
	if (*list)
		(*list)->prev = chunk;
	*list = chunk;
}

static void tw_unlist_chunk(struct tw_chunk **list, struct tw_chunk *chunk)
{
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		*list = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
}

/* Nodes of a chunk from number @first on, to the end of its memory, are free. */
static void tw_chunk_free_from(struct tw_table *table, struct tw_chunk *chunk, u32 first)
{
	u32 end = chunk->bytes / sizeof(struct tw_node), i;

	for (i = first / TW_WORD_NODES; i < end / TW_WORD_NODES; i++) {
		chunk->free[i] = TW_WORD_ALL;
		chunk->some |= 1U << i;
		chunk->all |= 1U << i;
	}
	table->free += end - first;
	table->end = ((unsigned long)table->nr_chunks - 1) * TW_CHUNK_NODES + end;
	tw_list_chunk(chunk->all == TW_WORDS_ALL ? &table->empty : &table->partial, chunk);
}

/**
 * tw_table_add() - add a chunk of free nodes
 * @table: the table, neither tw_table_full() nor tw_table_short()
 * @chunk: memory for what is known of it
 * @nodes: memory for its nodes, all 0
 * @bytes: of tw_table_next_bytes()
 */
void tw_table_add(struct tw_table *table, struct tw_chunk *chunk,
		  struct tw_node *nodes, u32 bytes)
{
	u32 nr = table->first_unused;

	*chunk = (struct tw_chunk){ .nodes = nodes, .bytes = bytes };
	if (nr) {
		table->first_unused = table->unused[nr].next;
		chunk->gen = table->unused[nr].gen;
		chunk->bound = chunk->gen;
	} else {
		nr = table->nr_chunks++;
	}
	chunk->nr = nr;
	tw_dir_set(table, nr, nodes);
	table->chunks[nr] = chunk;
	tw_chunk_free_from(table, chunk, 0);
}

/**
 * tw_table_lengthen() - a short chunk gets the length of all others
 * @table: the table, of which tw_table_short() is true
 * @nodes: TW_CHUNK_BYTES of memory for its nodes, all 0
 *
 * Return: the memory in which they were, for the caller to free.
 */
struct tw_node *tw_table_lengthen(struct tw_table *table, struct tw_node *nodes)
{
	struct tw_chunk *chunk = table->chunks[TW_FIRST_CHUNK];
	struct tw_node *old = chunk->nodes;

	memcpy(nodes, old, TW_FEW_BYTES);
	if (chunk->some)
		tw_unlist_chunk(&table->partial, chunk);
	if (table->nodes)
		table->nodes = nodes + (table->nodes - old);
	chunk->nodes = nodes;
	chunk->bytes = TW_CHUNK_BYTES;
	tw_dir_set(table, TW_FIRST_CHUNK, nodes);
	tw_chunk_free_from(table, chunk, TW_FEW_NODES);
	return old;
}

/*
 * The word that nodes are allocated from is used up: take another one. Partly used chunks
 * come first, so that empty chunks stay empty and can be handed back.
 */
void tw_table_refill(struct tw_table *table)
{
	bool empty = !table->partial;
	struct tw_chunk **list = empty ? &table->empty : &table->partial;
	struct tw_chunk *chunk = *list;
	unsigned int word = __ffs(chunk->some);

	table->word = chunk->free[word];
	table->first = chunk->nr << TW_CHUNK_SHIFT | word * TW_WORD_NODES;
	table->nodes = &chunk->nodes[word * TW_WORD_NODES];
	table->gen = chunk->gen;
	/* A life takes two generations, and no node lives twice before the next refill. */
	chunk->bound += chunk->bound < TW_LAST_GEN - 1 ? 2 : 0;
	chunk->free[word] = 0;
	chunk->all &= ~(1U << word);
	chunk->some &= ~(1U << word);
	if (empty || !chunk->some)
		tw_unlist_chunk(list, chunk);
	if (empty && chunk->some)
		tw_list_chunk(&table->partial, chunk);
}

/* Put the rest of the word that nodes are allocated from back, if its chunk is empty then. */
static void tw_table_unfill(struct tw_table *table)
{
	struct tw_chunk *chunk = tw_chunk_of(table, table->first);
	unsigned int word = tw_word(table->first);

	if (!table->word || (chunk->all | 1U << word) != TW_WORDS_ALL ||
	    (chunk->free[word] | table->word) != TW_WORD_ALL)
		return;
	chunk->free[word] = TW_WORD_ALL;
	table->word = 0;
	tw_word_put(table, chunk, word);
}

/* Nodes of a word are free that were not. */
void tw_word_put(struct tw_table *table, struct tw_chunk *chunk, unsigned int word)
{
	if (!chunk->some)
		tw_list_chunk(&table->partial, chunk);
	chunk->some |= 1U << word;
	if (chunk->free[word] == TW_WORD_ALL)
		chunk->all |= 1U << word;
	if (chunk->all == TW_WORDS_ALL) {
		tw_unlist_chunk(&table->partial, chunk);
		tw_list_chunk(&table->empty, chunk);
	}
}

/* Let go an empty chunk, but keep its number, if that has generations left. */
static void tw_table_drop(struct tw_table *table, struct tw_chunk *chunk)
{
	struct tw_unused *unused = &table->unused[chunk->nr];

	tw_unlist_chunk(&table->empty, chunk);
	table->free -= TW_CHUNK_NODES;
	tw_dir_set(table, chunk->nr, tw_zero_nodes);
	table->chunks[chunk->nr] = NULL;
	unused->gen = chunk->bound;
	if (unused->gen >= TW_LAST_GEN - 1)
		return;
	unused->next = table->first_unused;
	table->first_unused = chunk->nr;
}

/* Take out empty chunks, as long as enough nodes are left. */
struct tw_chunk *tw_table_drop_empty(struct tw_table *table)
{
	struct tw_chunk *chunk, *spare = NULL;

	tw_table_unfill(table);
	while (table->empty && table->free - TW_CHUNK_NODES >= TW_TABLE_KEEP) {
		chunk = table->empty;
		tw_table_drop(table, chunk);
		chunk->next = spare;
		spare = chunk;
	}
	return spare;
}

/**
 * tw_table_take_chunk() - take a chunk out of a table that nobody uses any more
 * @table: the table
 *
 * One at a time, as there may be millions, and the kernel lets others go first.
 *
 * Return: the chunk, for the caller to free with its nodes, or NULL if none is left.
 */
struct tw_chunk *tw_table_take_chunk(struct tw_table *table)
{
	while (table->nr_chunks > TW_FIRST_CHUNK) {
		struct tw_chunk *chunk = table->chunks[--table->nr_chunks];

		if (chunk) {
			chunk->next = NULL;
			return chunk;
		}
	}
	return NULL;
}

/**
 * tw_table_end() - end a table that has no chunks any more
 * @table: the table
 *
 * Return: the directory's memory, for the caller to free, or NULL.
 */
void *tw_table_end(struct tw_table *table)
{
	void *dir = tw_old_dir(table->dir);

	tw_table_init(table);
	return dir;
}
