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
#include <linux/stddef.h>
#include <linux/types.h>

#include "sizes.h"

/*
 * An index is the number of a chunk and the place of the node in it. The number 0
 * is of no chunk, and the place 0 of no node.
 */
#define TW_CHUNK_SHIFT 10
#define TW_CHUNK_MASK ((1U << TW_CHUNK_SHIFT) - 1)

/*
 * From this generation on a chunk is worn out: a node of it that is freed is not given
 * out again. Those that are free by then can be, as generations are left for all.
 */
#define TW_WORN_GEN (TW_LAST_GEN - TW_CHUNK_NODES)

/* Chunks that a table can number. */
#define TW_TABLE_MAX_CHUNKS (1U << (32 - TW_CHUNK_SHIFT))

/* tw_node.flags */
#define TW_NODE_PERIODIC 0x80	/* goes on in the node @period */
#define TW_NODE_INSPECT 0x40	/* is never expired unseen, see wheel.h */
#define TW_NODE_READY 0x20	/* is ready, whatever its deadline */

/**
 * struct tw_node - one timer
 * @entry: place in the list that it is on
 * @free: in a free node, offset of the next free node in the chunk, or 0
 * @deadline: time of the clock at which it is to expire, in ns
 * @user_data: handed back with its event
 * @period: of a periodic timer, what it has besides, @user_data included
 * @gen: generation, the upper half of the id; 0 while there is no such timer
 * @slot: where the wheel put it
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
 * @used: nodes in use, but for @kept: when it becomes 0 the chunk may have to change
 *	its place
 * @free: offset of its first free node, or 0
 * @end: the first place that it does not have
 * @no_gen: 0, where a node at place 0 would have its generation
 * @kept: in a chunk without free nodes or that is worn out, nodes in use but for one
 * @nodes: the nodes, from place 1 on
 */
struct tw_chunk {
	union {
		struct {
			struct tw_chunk *next;
			struct tw_chunk *prev;
			u32 base;
			u32 gen;
			u32 used;
			u16 free;
			u16 end;
			u32 no_gen;
			u32 kept;
		};
		DECLARE_FLEX_ARRAY(struct tw_node, nodes);
	};
};

/* Nodes that a chunk holds besides its head, if all of its memory is theirs */
#define TW_CHUNK_CAP							\
	(TW_CHUNK_SIZE / sizeof(struct tw_node) - 1 < TW_CHUNK_NODES ?	\
	 TW_CHUNK_SIZE / sizeof(struct tw_node) - 1 : TW_CHUNK_NODES)

/**
 * struct tw_entry - directory entry of a chunk
 * @chunk: the chunk, or &tw_no_chunk for a number that has none
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

/* A chunk without nodes, so that looking up needs no case for what there is not */
extern struct tw_chunk tw_no_chunk;

/* The number of the chunk that is added first */
#define TW_FIRST_CHUNK 1

/* No number of a chunk */
#define TW_NO_CHUNK U32_MAX

/**
 * struct tw_table - all nodes of a wheel
 * @dir: directory, @nr_chunks in use of @max_chunks
 * @nr_chunks: chunk numbers given out so far, 0 included
 * @max_chunks: length of the directory
 * @partial: first of the chunks that have free nodes
 * @unused: first of the numbers that have no chunk
 * @free: free nodes in chunks on @partial. Each can be had: what is free stays so until
 *	it is taken, or given back with its chunk
 * @reserved: so many free nodes are not given back, see tw_table_reserve()
 * @spare: chunks that are to be given back
 */
struct tw_table {
	struct tw_entry *dir;
	u32 nr_chunks;
	u32 max_chunks;
	struct tw_chunk *partial;
	u32 unused;
	u32 free;
	u32 reserved;
	struct tw_chunk *spare;
};

void tw_table_init(struct tw_table *table);
struct tw_entry *tw_table_grow(struct tw_table *table, struct tw_entry *dir,
			       u32 max_chunks);
void tw_chunk_format(struct tw_chunk *chunk, unsigned int cap);
void tw_table_add(struct tw_table *table, struct tw_chunk *chunk);
struct tw_chunk *tw_table_take_spare(struct tw_table *table);
struct tw_entry *tw_table_clear(struct tw_table *table);

/* The rare parts of tw_table_take() and tw_table_put() */
void tw_chunk_taken(struct tw_table *table, struct tw_chunk *chunk);
void tw_chunk_freed(struct tw_table *table, struct tw_node *node);

static inline struct tw_chunk *tw_chunk_of(const struct tw_node *node)
{
	return (struct tw_chunk *)((uintptr_t)node & ~(TW_CHUNK_SIZE - 1UL));
}

/* The quotient by the length of a node: exact for each offset, and short. */
static inline u32 tw_place(u32 offset)
{
	return offset * 52429U >> 21;
}

/**
 * tw_id() - the id of a timer
 * @node: the timer
 *
 * Return: its id.
 */
static inline u64 tw_id(const struct tw_node *node)
{
	u32 offset = (uintptr_t)node & (TW_CHUNK_SIZE - 1);

	return (u64)node->gen << 32 | tw_chunk_of(node)->base | tw_place(offset);
}

static inline u32 tw_chunk_used(const struct tw_chunk *chunk)
{
	return chunk->used + chunk->kept;
}

static inline bool tw_chunk_worn_out(const struct tw_chunk *chunk)
{
	return chunk->gen >= TW_WORN_GEN;
}

/*
 * Take a free node, of the next generation or of none. The caller takes it off
 * &tw_table.free.
 */
static inline struct tw_node *tw_table_take(struct tw_table *table, u32 step,
					    u64 *id)
{
	struct tw_chunk *chunk = table->partial;
	u32 offset = chunk->free;
	struct tw_node *node = (void *)chunk + offset;
	u32 next = node->free;
	u32 gen = chunk->gen + step;

	chunk->free = next;
	chunk->used++;
	chunk->gen = gen;
	*id = (u64)gen << 32 | chunk->base | tw_place(offset);
	node->gen = step ? gen : 0;
	if (unlikely(!next || gen >= TW_WORN_GEN))
		tw_chunk_taken(table, chunk);
	return node;
}

/**
 * tw_table_reserve() - set free nodes aside
 * @table: the table
 * @nodes: how many, not more than are free; 0 to end it
 *
 * As long as not more than @nodes are taken, none of them can be missing, whatever is
 * freed meanwhile and whichever chunks become empty.
 */
static inline void tw_table_reserve(struct tw_table *table, u32 nodes)
{
	table->reserved = nodes;
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
	table->free--;
	return tw_table_take(table, 1, id);
}

/**
 * tw_table_alloc_hidden() - take a free node that no id finds
 * @table: the table, with a free node
 *
 * Return: the node.
 */
static inline struct tw_node *tw_table_alloc_hidden(struct tw_table *table)
{
	u64 id;

	table->free--;
	return tw_table_take(table, 0, &id);
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

	table->free++;
	node->gen = 0;
	node->free = chunk->free;
	chunk->free = (uintptr_t)node & (TW_CHUNK_SIZE - 1);
	if (unlikely(!--chunk->used))
		tw_chunk_freed(table, node);
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
	struct tw_chunk *chunk;
	unsigned long nr = (u32)id >> TW_CHUNK_SHIFT;
	unsigned long place = id & TW_CHUNK_MASK;
	u32 gen = id >> 32;

	if (unlikely(!gen))
		return false;
	/* What is beyond the end becomes 0, which no timer has. */
	nr = array_index_nospec(nr, table->nr_chunks);
	chunk = table->dir[nr].chunk;
	place = array_index_nospec(place, chunk->end);
	*node = &chunk->nodes[place];
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
