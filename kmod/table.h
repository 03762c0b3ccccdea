/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The timer table: nodes by id, in chunks.
 *
 * An id that a program holds is a generation and an index, so that whatever a
 * program makes up can be checked against the table. Nodes come from chunks of
 * memory that the caller adds and gets back when they are empty. A chunk is
 * aligned to its size, so a node finds the head of its chunk by its address.
 *
 * Pure: no locks, no allocation. The caller serialises all calls on a table.
 */
#ifndef TW_TABLE_H
#define TW_TABLE_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/nospec.h>
#include <linux/types.h>

/* Length and alignment of a chunk: little is lost, and it can be had always. */
#define TW_CHUNK_SIZE 32768

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
#define TW_NODE_PERIODIC 0x80	/* goes on in the node @period */
#define TW_NODE_INSPECT 0x40	/* is never expired unseen, see wheel.h */
#define TW_NODE_STAMPED 0x20	/* is ready, and holds since when */
#define TW_NODE_LATE_MASK 0x1f	/* the stamp's exponent, see wheel.h */

/**
 * struct tw_node - one timer
 * @entry: place in the list that it is on
 * @free: in a free node, offset of the next free node in the chunk, or 0
 * @deadline: time of the clock at which it is to expire, in ns
 * @user_data: handed back with its event
 * @period: of a periodic timer, what it has besides, @user_data included
 * @gen: generation, the upper half of the id; 0 while there is no such timer
 * @slot: where the wheel put it; in a stamped node, a part of the stamp
 * @slack_shift: may expire as late as the next multiple of 2^this ticks
 * @flags: TW_NODE_*
 * @special: both, 0 in most nodes
 */
struct tw_node {
	union {
		struct list_head entry;
		u32 free;
	};
	s64 deadline;
	union {
		u64 user_data;
		struct tw_period *period;
	};
	u32 gen;
	u16 slot;
	union {
		struct {
			u8 slack_shift;
			u8 flags;
		};
		u16 special;
	};
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
 * struct tw_chunk - a chunk of nodes
 * @next: next chunk with free nodes, or next one to be given back
 * @prev: previous chunk with free nodes
 * @base: its number, shifted to where an index has it
 * @gen: last generation given out in it
 * @used: nodes in use
 * @free: offset of its first free node, or 0
 * @cap: nodes in all
 * @nodes: the nodes
 */
struct tw_chunk {
	struct tw_chunk *next;
	struct tw_chunk *prev;
	u32 base;
	u32 gen;
	u32 used;
	u16 free;
	u16 cap;
	struct tw_node nodes[];
};

/* Nodes that fit into @size bytes of a chunk, its head included. */
#define TW_CHUNK_CAP(size) \
	(((size) - sizeof(struct tw_chunk)) / sizeof(struct tw_node))

/**
 * struct tw_entry - directory entry of a chunk
 * @chunk: the chunk, or NULL for a number that has none
 * @gen: of a number without chunk, the last generation given out. It outlives
 *	the chunk, so that an id is never given out twice; when it is used up, so
 *	is the number
 * @next: of a number without chunk, the next one
 */
struct tw_entry {
	struct tw_chunk *chunk;
	u32 gen;
	u32 next;
};

/* No number of a chunk */
#define TW_NO_CHUNK U32_MAX

/**
 * struct tw_table - all nodes of a wheel
 * @dir: directory, @nr_chunks in use of @max_chunks
 * @nr_chunks: chunk numbers given out so far
 * @max_chunks: length of the directory
 * @partial: first of the chunks that have free nodes
 * @unused: first of the numbers that have no chunk
 * @free: free nodes in chunks on @partial
 * @spare: chunks that are to be given back
 */
struct tw_table {
	struct tw_entry *dir;
	u32 nr_chunks;
	u32 max_chunks;
	struct tw_chunk *partial;
	u32 unused;
	u32 free;
	struct tw_chunk *spare;
};

void tw_table_init(struct tw_table *table);
struct tw_entry *tw_table_grow(struct tw_table *table, struct tw_entry *dir,
			       u32 max_chunks);
void tw_chunk_format(struct tw_chunk *chunk, unsigned int cap);
void tw_table_add(struct tw_table *table, struct tw_chunk *chunk);
struct tw_chunk *tw_table_take_spare(struct tw_table *table);

/* The rare parts of tw_table_take() and tw_table_free() */
void tw_chunk_exhausted(struct tw_table *table, struct tw_chunk *chunk);
void tw_chunk_freed(struct tw_table *table, struct tw_chunk *chunk,
		    bool was_full);

static inline struct tw_chunk *tw_chunk_of(const struct tw_node *node)
{
	return (struct tw_chunk *)((uintptr_t)node & ~(TW_CHUNK_SIZE - 1UL));
}

static inline u64 tw_id_in_chunk(const struct tw_chunk *chunk,
				 const struct tw_node *node)
{
	u32 offset = (void *)node - (void *)chunk->nodes;
	u32 place = offset / (u32)sizeof(*node);

	return (u64)node->gen << 32 | chunk->base | place;
}

/**
 * tw_id() - the id of a timer
 * @node: the timer
 *
 * Return: its id.
 */
static inline u64 tw_id(const struct tw_node *node)
{
	return tw_id_in_chunk(tw_chunk_of(node), node);
}

static inline bool tw_chunk_worn_out(const struct tw_chunk *chunk)
{
	return chunk->gen == TW_LAST_GEN;
}

static inline struct tw_node *tw_table_take(struct tw_table *table, u32 step)
{
	struct tw_chunk *chunk = table->partial;
	struct tw_node *node = (void *)chunk + chunk->free;

	chunk->free = node->free;
	chunk->used++;
	table->free--;
	chunk->gen += step;
	node->gen = step ? chunk->gen : 0;
	if (unlikely(!chunk->free || tw_chunk_worn_out(chunk)))
		tw_chunk_exhausted(table, chunk);
	return node;
}

/**
 * tw_table_alloc() - take a free node and give it a new id
 * @table: the table, with a free node
 * @id: out: the id
 *
 * Return: the node.
 */
static inline struct tw_node *tw_table_alloc(struct tw_table *table, u64 *id)
{
	struct tw_chunk *chunk = table->partial;
	struct tw_node *node = tw_table_take(table, 1);

	*id = tw_id_in_chunk(chunk, node);
	return node;
}

/**
 * tw_table_alloc_hidden() - take a free node that no id finds
 * @table: the table, with a free node
 *
 * Return: the node.
 */
static inline struct tw_node *tw_table_alloc_hidden(struct tw_table *table)
{
	return tw_table_take(table, 0);
}

/**
 * tw_table_free() - end a node and its id
 * @table: the table
 * @node: a node in use
 *
 * May leave memory for tw_table_take_spare().
 */
static inline void tw_table_free(struct tw_table *table, struct tw_node *node)
{
	struct tw_chunk *chunk = tw_chunk_of(node);
	u32 free = chunk->free;

	node->gen = 0;
	node->free = free;
	chunk->free = (uintptr_t)node & (TW_CHUNK_SIZE - 1);
	table->free++;
	/* (Two tests, as the compiler makes the least of these.) */
	if (unlikely(!--chunk->used))
		tw_chunk_freed(table, chunk, !free);
	else if (unlikely(!free))
		tw_chunk_freed(table, chunk, true);
}

/**
 * tw_table_find() - look up an id that came from a program
 * @table: the table
 * @id: any number
 * @node: out: the live timer that has this id
 *
 * Return: false if there is none.
 */
static inline bool tw_table_find(const struct tw_table *table, u64 id,
				 struct tw_node **node)
{
	u32 gen = id >> 32;
	u32 nr = (u32)id >> TW_CHUNK_SHIFT;
	u32 place = id & TW_CHUNK_MASK;
	struct tw_chunk *chunk;

	if (!gen || nr >= table->nr_chunks)
		return false;
	chunk = table->dir[array_index_nospec(nr, table->nr_chunks)].chunk;
	if (!chunk || place >= chunk->cap)
		return false;
	*node = &chunk->nodes[array_index_nospec(place, chunk->cap)];
	/* Else the compiler computes it again for each field. */
	OPTIMIZER_HIDE_VAR(*node);
	return (*node)->gen == gen;
}

/**
 * tw_table_full() - does adding a chunk need a longer directory?
 * @table: the table
 *
 * Return: true if tw_table_grow() has to come before tw_table_add().
 */
static inline bool tw_table_full(const struct tw_table *table)
{
	return table->unused == TW_NO_CHUNK &&
	       table->nr_chunks == table->max_chunks;
}

#endif /* TW_TABLE_H */
