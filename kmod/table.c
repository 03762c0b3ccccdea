// SPDX-License-Identifier: GPL-2.0
/*
 * The timer table: nodes by id, in chunks. See table.h.
 */
#include <linux/bug.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "table.h"

struct tw_chunk tw_no_chunk = { .end = 1 };

/* The directory of a table without chunks */
static struct tw_entry tw_no_dir[] = {{ .chunk = &tw_no_chunk }};

void tw_table_init(struct tw_table *table)
{
	*table = (struct tw_table){
		.dir = tw_no_dir,
		.nr_chunks = TW_FIRST_CHUNK,
		.max_chunks = TW_FIRST_CHUNK,
		.unused = TW_NO_CHUNK,
	};
}

/* A directory that is not used any more, if somebody has to free it */
static struct tw_entry *tw_old_dir(struct tw_entry *dir)
{
	return dir == tw_no_dir ? NULL : dir;
}

/**
 * tw_table_grow() - give the table a longer directory
 * @table: the table
 * @dir: memory for the new directory
 * @max_chunks: its length, more than before
 *
 * Return: the old directory's memory, which is the caller's again, or NULL.
 */
struct tw_entry *tw_table_grow(struct tw_table *table, struct tw_entry *dir,
			       u32 max_chunks)
{
	struct tw_entry *old = table->dir;

	memcpy(dir, old, table->nr_chunks * sizeof(*dir));
	table->dir = dir;
	table->max_chunks = max_chunks;
	return tw_old_dir(old);
}

/**
 * tw_chunk_format() - make memory ready for tw_table_add()
 * @chunk: the memory, aligned to TW_CHUNK_SIZE
 * @cap: nodes that it holds, 1 to TW_CHUNK_CAP
 *
 * This is the long part of adding a chunk, and needs no lock.
 */
void tw_chunk_format(struct tw_chunk *chunk, unsigned int cap)
{
	unsigned int place;

	*chunk = (struct tw_chunk){
		.free = sizeof(struct tw_node),
		.end = cap + 1,
	};
	for (place = 1; place <= cap; place++) {
		struct tw_node *node = &chunk->nodes[place];

		node->gen = 0;
		node->free = (place + 1) * sizeof(*node);
	}
	chunk->nodes[cap].free = 0;
}

static unsigned int tw_chunk_cap(const struct tw_chunk *chunk)
{
	return chunk->end - 1;
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
	table->free += tw_chunk_cap(chunk);
	tw_partial_add(table, chunk);
}

/* The next node of the chunk that is freed makes tw_table_put() say so. */
static void tw_chunk_watch(struct tw_chunk *chunk)
{
	chunk->kept = tw_chunk_used(chunk) - 1;
	chunk->used = 1;
}

/* A node was taken that was the last free one, or from a chunk that is worn out. */
void tw_chunk_taken(struct tw_table *table, struct tw_chunk *chunk)
{
	if (!chunk->free)
		tw_partial_del(table, chunk);
	tw_chunk_watch(chunk);
}

/* Nothing in the chunk is used: let it go, but keep its number. */
static void tw_chunk_empty(struct tw_table *table, struct tw_chunk *chunk)
{
	u32 nr = chunk->base >> TW_CHUNK_SHIFT;
	struct tw_entry *entry = &table->dir[nr];

	if (nr == TW_FIRST_CHUNK)
		return;
	if (!tw_chunk_worn_out(chunk)) {
		u32 keep = max_t(u32, TW_TABLE_KEEP, table->reserved);

		if (table->free - tw_chunk_cap(chunk) < keep)
			return;
		table->free -= tw_chunk_cap(chunk);
		tw_partial_del(table, chunk);
		entry->next = table->unused;
		table->unused = nr;
	} else if (chunk->free) {
		/* These are yet to be had. */
		return;
	}
	entry->chunk = &tw_no_chunk;
	entry->gen = chunk->gen;
	chunk->next = table->spare;
	table->spare = chunk;
}

/* A node was freed that was the last in use, or in a chunk that is being watched. */
void tw_chunk_freed(struct tw_table *table, struct tw_node *node)
{
	struct tw_chunk *chunk = tw_chunk_of(node);

	chunk->used = chunk->kept;
	chunk->kept = 0;
	if (tw_chunk_worn_out(chunk)) {
		/* It is not given out again. */
		table->free--;
		chunk->free = node->free;
	} else if (!node->free) {
		tw_partial_add(table, chunk);
	}
	if (!chunk->used)
		tw_chunk_empty(table, chunk);
	else if (tw_chunk_worn_out(chunk))
		tw_chunk_watch(chunk);
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

/**
 * tw_table_clear() - end a table and everything in it
 * @table: the table
 *
 * All chunks are spare then, see tw_table_take_spare().
 *
 * Return: the directory's memory, for the caller to free, or NULL.
 */
struct tw_entry *tw_table_clear(struct tw_table *table)
{
	struct tw_entry *dir = table->dir;
	struct tw_chunk *spare = table->spare;
	u32 nr;

	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++) {
		if (dir[nr].chunk == &tw_no_chunk)
			continue;
		dir[nr].chunk->next = spare;
		spare = dir[nr].chunk;
	}
	tw_table_init(table);
	table->spare = spare;
	return tw_old_dir(dir);
}
