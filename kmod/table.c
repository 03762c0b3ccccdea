// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table: nodes by index, in chunks. See table.h.
 */
#include <linux/bug.h>
#include <linux/string.h>

#include "table.h"

void tw_table_init(struct tw_table *table)
{
	memset(table, 0, sizeof(*table));
	table->partial = TW_NIL;
	table->unused = TW_NIL;
}

/**
 * tw_table_grow() - give the table a longer directory
 * @table: the table
 * @chunks: memory for the new directory
 * @max_chunks: its length, more than before
 *
 * Return: the old directory's memory, which is the caller's again.
 */
struct tw_chunk *tw_table_grow(struct tw_table *table, struct tw_chunk *chunks,
			       u32 max_chunks)
{
	struct tw_chunk *old = table->chunks;

	if (table->nr_chunks)
		memcpy(chunks, old, table->nr_chunks * sizeof(*chunks));
	table->chunks = chunks;
	table->max_chunks = max_chunks;
	return old;
}

/**
 * tw_chunk_format() - make memory ready for tw_table_add()
 * @nodes: the memory
 * @cap: nodes that it holds, 1 to 2^TW_CHUNK_SHIFT
 *
 * This is the long part of adding a chunk, and needs no lock.
 */
void tw_chunk_format(struct tw_node *nodes, unsigned int cap)
{
	unsigned int i;

	for (i = 0; i < cap; i++) {
		nodes[i].gen = 0;
		nodes[i].next = i + 1;
	}
}

static void tw_partial_add(struct tw_table *table, u32 nr)
{
	struct tw_chunk *chunk = &table->chunks[nr];

	chunk->next = table->partial;
	chunk->prev = TW_NIL;
	if (table->partial != TW_NIL)
		table->chunks[table->partial].prev = nr;
	table->partial = nr;
}

static void tw_partial_del(struct tw_table *table, u32 nr)
{
	struct tw_chunk *chunk = &table->chunks[nr];

	if (chunk->prev != TW_NIL)
		table->chunks[chunk->prev].next = chunk->next;
	else
		table->partial = chunk->next;
	if (chunk->next != TW_NIL)
		table->chunks[chunk->next].prev = chunk->prev;
}

/**
 * tw_table_add() - add a chunk of free nodes
 * @table: the table, not tw_table_full()
 * @nodes: its memory, after tw_chunk_format()
 * @cap: nodes that it holds, as given there
 */
void tw_table_add(struct tw_table *table, struct tw_node *nodes,
		  unsigned int cap)
{
	struct tw_chunk *chunk;
	u32 nr = table->unused;

	if (nr != TW_NIL) {
		chunk = &table->chunks[nr];
		table->unused = chunk->next;
	} else {
		nr = table->nr_chunks++;
		chunk = &table->chunks[nr];
		chunk->gen = 0;
	}
	chunk->nodes = nodes;
	chunk->free = 0;
	chunk->used = 0;
	chunk->cap = cap;
	table->free += cap;
	tw_partial_add(table, nr);
}

/* The chunk gives out no more nodes, as it has none or as it is worn out. */
void tw_chunk_exhausted(struct tw_table *table, u32 nr)
{
	struct tw_chunk *chunk = &table->chunks[nr];

	table->free -= chunk->cap - chunk->used;
	tw_partial_del(table, nr);
}

/* The chunk has free nodes again. */
void tw_chunk_usable(struct tw_table *table, u32 nr)
{
	tw_partial_add(table, nr);
}

/* Nothing in the chunk is used: let its memory go, but keep its number. */
void tw_chunk_empty(struct tw_table *table, u32 nr)
{
	struct tw_chunk *chunk = &table->chunks[nr];
	struct tw_spare *spare = (struct tw_spare *)chunk->nodes;
	bool worn_out = tw_chunk_worn_out(chunk);

	if (!worn_out) {
		if (table->free - chunk->cap < TW_TABLE_KEEP)
			return;
		table->free -= chunk->cap;
		tw_partial_del(table, nr);
		chunk->next = table->unused;
		table->unused = nr;
	}
	spare->cap = chunk->cap;
	spare->next = table->spare;
	table->spare = spare;
	chunk->nodes = NULL;
	chunk->cap = 0;
}

/**
 * tw_table_take_spare() - memory of chunks that became empty
 * @table: the table
 *
 * Return: a list of it, for the caller to free, or NULL.
 */
struct tw_spare *tw_table_take_spare(struct tw_table *table)
{
	struct tw_spare *spare = table->spare;

	table->spare = NULL;
	return spare;
}
