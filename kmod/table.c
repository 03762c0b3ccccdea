// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table: nodes by id, in chunks. See table.h.
 */
#include <linux/bug.h>
#include <linux/string.h>

#include "table.h"

void tw_table_init(struct tw_table *table)
{
	memset(table, 0, sizeof(*table));
	table->unused = TW_NO_CHUNK;
}

/**
 * tw_table_grow() - give the table a longer directory
 * @table: the table
 * @dir: memory for the new directory
 * @max_chunks: its length, more than before
 *
 * Return: the old directory's memory, which is the caller's again.
 */
struct tw_entry *tw_table_grow(struct tw_table *table, struct tw_entry *dir,
			       u32 max_chunks)
{
	struct tw_entry *old = table->dir;

	if (table->nr_chunks)
		memcpy(dir, old, table->nr_chunks * sizeof(*dir));
	table->dir = dir;
	table->max_chunks = max_chunks;
	return old;
}

/**
 * tw_chunk_format() - make memory ready for tw_table_add()
 * @chunk: the memory, aligned to TW_CHUNK_SIZE
 * @cap: nodes that it holds, 1 to TW_CHUNK_CAP(TW_CHUNK_SIZE)
 *
 * This is the long part of adding a chunk, and needs no lock.
 */
void tw_chunk_format(struct tw_chunk *chunk, unsigned int cap)
{
	unsigned int i;

	*chunk = (struct tw_chunk){
		.free = offsetof(struct tw_chunk, nodes),
		.cap = cap,
	};
	for (i = 0; i < cap; i++) {
		chunk->nodes[i].gen = 0;
		chunk->nodes[i].free = offsetof(struct tw_chunk, nodes) +
				       (i + 1) * sizeof(struct tw_node);
	}
	chunk->nodes[cap - 1].free = 0;
}

static void tw_partial_add(struct tw_table *table, struct tw_chunk *chunk)
{
	chunk->next = table->partial;
	chunk->prev = NULL;
	if (table->partial)
		table->partial->prev = chunk;
	table->partial = chunk;
}

static void tw_partial_del(struct tw_table *table, struct tw_chunk *chunk)
{
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		table->partial = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
}

/**
 * tw_table_add() - add a chunk of free nodes
 * @table: the table, not tw_table_full()
 * @chunk: the chunk, after tw_chunk_format()
 *
 * The chunk that is added first stays for as long as the table.
 */
void tw_table_add(struct tw_table *table, struct tw_chunk *chunk)
{
	u32 nr = table->unused;

	if (nr != TW_NO_CHUNK) {
		table->unused = table->dir[nr].next;
		chunk->gen = table->dir[nr].gen;
	} else {
		nr = table->nr_chunks++;
	}
	chunk->base = nr << TW_CHUNK_SHIFT;
	table->dir[nr].chunk = chunk;
	table->free += chunk->cap;
	tw_partial_add(table, chunk);
}

/* The chunk gives out no more nodes, as it has none or as it is worn out. */
void tw_chunk_exhausted(struct tw_table *table, struct tw_chunk *chunk)
{
	table->free -= chunk->cap - chunk->used;
	chunk->free = 0;
	tw_partial_del(table, chunk);
}

/* Nothing in the chunk is used: let it go, but keep its number. */
static void tw_chunk_empty(struct tw_table *table, struct tw_chunk *chunk)
{
	u32 nr = chunk->base >> TW_CHUNK_SHIFT;
	struct tw_entry *entry = &table->dir[nr];

	if (!nr)
		return;
	if (!tw_chunk_worn_out(chunk)) {
		if (table->free - chunk->cap < TW_TABLE_KEEP)
			return;
		table->free -= chunk->cap;
		tw_partial_del(table, chunk);
		entry->next = table->unused;
		table->unused = nr;
	}
	entry->chunk = NULL;
	entry->gen = chunk->gen;
	chunk->next = table->spare;
	table->spare = chunk;
}

/* A node was freed that was the last in use, or in a chunk that had none free. */
void tw_chunk_freed(struct tw_table *table, struct tw_chunk *chunk,
		    bool was_full)
{
	if (tw_chunk_worn_out(chunk)) {
		/* It goes on having none. */
		table->free--;
		chunk->free = 0;
	} else if (was_full) {
		tw_partial_add(table, chunk);
	}
	if (!chunk->used)
		tw_chunk_empty(table, chunk);
}

/**
 * tw_table_take_spare() - chunks that became empty
 * @table: the table
 *
 * Return: a list of them, for the caller to free, or NULL.
 */
struct tw_chunk *tw_table_take_spare(struct tw_table *table)
{
	struct tw_chunk *spare = table->spare;

	table->spare = NULL;
	return spare;
}
