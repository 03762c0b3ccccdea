// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table: nodes by index, in chunks. See table.h.
 */
#include <linux/bug.h>
#include <linux/string.h>

#include "table.h"

/* The generation after which a chunk gives out no more. */
#define TW_LAST_GEN U32_MAX

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

static bool tw_chunk_worn_out(const struct tw_chunk *chunk)
{
	return chunk->gen == TW_LAST_GEN;
}

static u32 tw_table_take(struct tw_table *table, u32 step)
{
	u32 nr = table->partial;
	struct tw_chunk *chunk;
	struct tw_node *node;
	u32 index;

	if (nr == TW_NIL)
		return TW_NIL;
	chunk = &table->chunks[nr];
	index = nr << TW_CHUNK_SHIFT | chunk->free;
	node = &chunk->nodes[chunk->free];

	chunk->free = node->next;
	chunk->used++;
	table->used++;
	table->free--;
	chunk->gen += step;
	node->gen = step ? chunk->gen : 0;
	if (unlikely(chunk->free == chunk->cap || tw_chunk_worn_out(chunk))) {
		table->free -= chunk->cap - chunk->used;
		tw_partial_del(table, nr);
	}
	return index;
}

/**
 * tw_table_alloc() - take a free node and give it a new id
 * @table: the table
 *
 * Return: its index, or TW_NIL when no node is free.
 */
u32 tw_table_alloc(struct tw_table *table)
{
	return tw_table_take(table, 1);
}

/**
 * tw_table_alloc_hidden() - take a free node that no id finds
 * @table: the table
 *
 * Return: its index, or TW_NIL when no node is free.
 */
u32 tw_table_alloc_hidden(struct tw_table *table)
{
	return tw_table_take(table, 0);
}

/* Nothing in the chunk is used: let its memory go, but keep its number. */
static void tw_chunk_empty(struct tw_table *table, u32 nr)
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
 * tw_table_free() - end a node and its id
 * @table: the table
 * @index: a node in use
 *
 * May leave memory for tw_table_take_spare().
 */
void tw_table_free(struct tw_table *table, u32 index)
{
	u32 nr = index >> TW_CHUNK_SHIFT;
	struct tw_chunk *chunk = &table->chunks[nr];
	u32 place = index & TW_CHUNK_MASK;
	bool was_full = chunk->free == chunk->cap;

	chunk->nodes[place].gen = 0;
	chunk->nodes[place].next = chunk->free;
	chunk->free = place;
	chunk->used--;
	table->used--;
	if (likely(!tw_chunk_worn_out(chunk))) {
		table->free++;
		if (was_full)
			tw_partial_add(table, nr);
	}
	if (unlikely(!chunk->used))
		tw_chunk_empty(table, nr);
}

/**
 * tw_table_find() - look up an id that came from a program
 * @table: the table
 * @id: any number
 *
 * Return: index of the live timer that has this id, or TW_NIL.
 */
u32 tw_table_find(const struct tw_table *table, u64 id)
{
	u32 index = id;
	u32 gen = id >> 32;
	u32 nr = index >> TW_CHUNK_SHIFT;
	u32 place = index & TW_CHUNK_MASK;
	const struct tw_chunk *chunk;

	if (!gen || nr >= table->nr_chunks)
		return TW_NIL;
	chunk = &table->chunks[array_index_nospec(nr, table->nr_chunks)];
	if (place >= chunk->cap)
		return TW_NIL;
	place = array_index_nospec(place, chunk->cap);
	if (chunk->nodes[place].gen != gen)
		return TW_NIL;
	return index;
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
