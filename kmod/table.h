/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The timer table: nodes by index, in chunks.
 *
 * A node is named by a 32-bit index and not by a pointer: links are half as
 * long, an id that a program holds is a generation and an index, and whatever a
 * program makes up can be checked against the table. Nodes come from chunks of
 * memory that the caller adds and gets back when they are empty.
 *
 * Pure: no locks, no allocation. The caller serialises all calls on a table.
 */
#ifndef TW_TABLE_H
#define TW_TABLE_H

#include <linux/nospec.h>
#include <linux/types.h>

/* No node, and no chunk. */
#define TW_NIL U32_MAX

/* An index is the number of a chunk and the place of the node in it. */
#define TW_CHUNK_SHIFT 10
#define TW_CHUNK_MASK ((1U << TW_CHUNK_SHIFT) - 1)

/* Empty chunks are given back only while this many nodes are left free. */
#define TW_TABLE_KEEP 64

/* The generation after which a chunk gives out no more. */
#define TW_LAST_GEN U32_MAX

/* Chunks that a table can number. */
#define TW_TABLE_MAX_CHUNKS (1U << (32 - TW_CHUNK_SHIFT))

/* tw_node.flags */
#define TW_NODE_PERIODIC 0x01

/**
 * struct tw_node - one timer, or what a periodic timer has besides
 * @next: index of the next node of its list; in a free node, place of the next
 *	free node of the chunk
 * @prev: index of the previous node of its list
 * @expires: see &struct tw_wheel
 * @deadline: time of the clock at which it is to expire, in ns
 * @user_data: handed back with its event; of a periodic timer, in its period
 * @period: index of the node that is the &struct tw_period of a periodic timer
 * @gen: generation, the upper half of the id; 0 while there is no such timer
 * @slot: where the wheel put it
 * @flags: TW_NODE_*
 * @slack_shift: may expire as late as the next multiple of 2^this ticks
 */
struct tw_node {
	u32 next;
	u32 prev;
	s64 expires;
	u64 deadline;
	union {
		u64 user_data;
		u32 period;
	};
	u32 gen;
	u16 slot;
	u8 flags;
	u8 slack_shift;
};

/**
 * struct tw_period - the second node of a periodic timer
 * @nominal: deadline of the present period without jitter, in ns
 * @interval: length of a period, in ns
 * @jitter: most by which a period is put off, in ns
 * @user_data: handed back with each event
 * @gen: 0, so that no id finds it
 * @unused: makes it as long as &struct tw_node
 */
struct tw_period {
	u64 nominal;
	u64 interval;
	u64 jitter;
	u64 user_data;
	u32 gen;
	u32 unused;
};

/**
 * struct tw_chunk - directory entry of a chunk
 * @nodes: its memory, NULL while it has none
 * @gen: last generation given out in this chunk. It outlives the memory, so
 *	that an id is never given out twice; when it is used up, so is the chunk
 * @next: next chunk with free nodes, or next unused number
 * @prev: previous chunk with free nodes
 * @free: place of its first free node, or @cap
 * @used: nodes in use
 * @cap: nodes in all, 0 without memory
 */
struct tw_chunk {
	struct tw_node *nodes;
	u32 gen;
	u32 next;
	u32 prev;
	u16 free;
	u16 used;
	u16 cap;
};

/**
 * struct tw_spare - head of a chunk's memory that is to be given back
 * @next: next one, or NULL
 * @cap: nodes that it has room for
 */
struct tw_spare {
	struct tw_spare *next;
	unsigned int cap;
};

/**
 * struct tw_table - all nodes of a wheel
 * @chunks: directory, @nr_chunks in use of @max_chunks
 * @nr_chunks: chunk numbers given out so far
 * @max_chunks: length of the directory
 * @partial: first of the chunks that have free nodes
 * @unused: first of the chunk numbers that have no memory
 * @free: free nodes in chunks on @partial
 * @used: nodes in use
 * @spare: memory that is to be given back
 */
struct tw_table {
	struct tw_chunk *chunks;
	u32 nr_chunks;
	u32 max_chunks;
	u32 partial;
	u32 unused;
	u32 free;
	u32 used;
	struct tw_spare *spare;
};

/**
 * tw_node() - node of an index that is known to be good
 * @table: the table
 * @index: index of a node that the table gave out
 *
 * Return: the node.
 */
static inline struct tw_node *tw_node(const struct tw_table *table, u32 index)
{
	return &table->chunks[index >> TW_CHUNK_SHIFT].nodes[index & TW_CHUNK_MASK];
}

static inline struct tw_period *tw_period(const struct tw_table *table,
					  const struct tw_node *node)
{
	return (struct tw_period *)tw_node(table, node->period);
}

static inline u64 tw_id(const struct tw_node *node, u32 index)
{
	return (u64)node->gen << 32 | index;
}

void tw_table_init(struct tw_table *table);
struct tw_chunk *tw_table_grow(struct tw_table *table, struct tw_chunk *chunks,
			       u32 max_chunks);
void tw_chunk_format(struct tw_node *nodes, unsigned int cap);
void tw_table_add(struct tw_table *table, struct tw_node *nodes,
		  unsigned int cap);
struct tw_spare *tw_table_take_spare(struct tw_table *table);

/* The rare parts of tw_table_take() and tw_table_free(). */
void tw_chunk_exhausted(struct tw_table *table, u32 nr);
void tw_chunk_usable(struct tw_table *table, u32 nr);
void tw_chunk_empty(struct tw_table *table, u32 nr);

static inline bool tw_chunk_worn_out(const struct tw_chunk *chunk)
{
	return chunk->gen == TW_LAST_GEN;
}

static inline u32 tw_table_take(struct tw_table *table, u32 step)
{
	u32 nr = table->partial;
	struct tw_chunk *chunk;
	struct tw_node *node;
	u32 index;

	if (unlikely(nr == TW_NIL))
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
	if (unlikely(chunk->free == chunk->cap || tw_chunk_worn_out(chunk)))
		tw_chunk_exhausted(table, nr);
	return index;
}

/**
 * tw_table_alloc() - take a free node and give it a new id
 * @table: the table
 *
 * Return: its index, or TW_NIL when no node is free.
 */
static inline u32 tw_table_alloc(struct tw_table *table)
{
	return tw_table_take(table, 1);
}

/**
 * tw_table_alloc_hidden() - take a free node that no id finds
 * @table: the table
 *
 * Return: its index, or TW_NIL when no node is free.
 */
static inline u32 tw_table_alloc_hidden(struct tw_table *table)
{
	return tw_table_take(table, 0);
}

/**
 * tw_table_free() - end a node and its id
 * @table: the table
 * @index: a node in use
 *
 * May leave memory for tw_table_take_spare().
 */
static inline void tw_table_free(struct tw_table *table, u32 index)
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
		if (unlikely(was_full))
			tw_chunk_usable(table, nr);
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
static inline u32 tw_table_find(const struct tw_table *table, u64 id)
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
 * tw_table_full() - does adding a chunk need a longer directory?
 * @table: the table
 *
 * Return: true if tw_table_grow() has to come before tw_table_add().
 */
static inline bool tw_table_full(const struct tw_table *table)
{
	return table->unused == TW_NIL && table->nr_chunks == table->max_chunks;
}

#endif /* TW_TABLE_H */
