/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * The timer table: allocates nodes, and finds the node of an id.
 *
 * A node is a timer. Nodes are in chunks of TW_CHUNK_NODES. The caller allocates chunks
 * and adds them to the table, and the table hands empty chunks back. An index names a
 * node: the number of its chunk, and its place in the chunk. An id, which a program
 * holds, is an index with a generation, so that any number that a program makes up can be
 * checked.
 *
 * The first chunk of a table is short, with TW_FEW_NODES, as long as these are enough: most
 * tables of a program with many wheels are small.
 *
 * A chunk holds nothing but nodes. What the table keeps about a chunk stands apart, in
 * &struct tw_chunk, with a bitmap of its free nodes. So a node is not touched before it
 * is used.
 *
 * Each node counts its generations: an odd number while it is a live timer, an even one
 * while it is free. A node that has used up its generations is not allocated again. When
 * a chunk is handed back, the table keeps a generation for the chunk's number that is not
 * below that of any of its nodes. The next chunk with this number goes on from there. So
 * an id is never given out twice.
 *
 * Allocation takes a whole word of a bitmap at a time: all nodes that are free in it are
 * reserved for the allocations that follow, until the word is used up.
 *
 * Pure: no locks, no allocation. The caller serialises all calls on a table.
 */
#ifndef TW_TABLE_H
#define TW_TABLE_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/types.h>

#include "sizes.h"

#define TW_CHUNK_NODES (1U << TW_CHUNK_SHIFT)
#define TW_CHUNK_MASK (TW_CHUNK_NODES - 1)

/* Chunks that a table can number. The number 0 is of no chunk, so 0 is no index. */
#define TW_TABLE_MAX_CHUNKS (1U << (32 - TW_CHUNK_SHIFT))

/* The number of the chunk that is added first */
#define TW_FIRST_CHUNK 1

/* A node is 2^this bytes long, and a chunk 2^the other. */
#define TW_NODE_SHIFT 5
#define TW_DIR_SHIFT (TW_CHUNK_SHIFT + TW_NODE_SHIFT)

#define TW_WORDS (TW_CHUNK_NODES / TW_WORD_NODES)
#define TW_WORD_ALL (~0ULL >> (64 - TW_WORD_NODES))
#define TW_WORDS_ALL ((1U << TW_WORDS) - 1)

/* tw_node.flags */
#define TW_NODE_PERIODIC 0x8000	/* goes on, and has a unit of another table */
#define TW_NODE_INSPECT 0x4000	/* its slot is not expired whole, see wheel.h */
#define TW_NODE_READY 0x2000	/* is ready, whatever its deadline says */
#define TW_NODE_AT_ONCE 0x1000	/* was ready when it came, and waits for no other */
#define TW_NODE_SLACK 0x003f	/* may expire at the next multiple of 2^this ticks */

/* What decides where a node is */
#define TW_NODE_SPECIAL (TW_NODE_INSPECT | TW_NODE_READY | TW_NODE_AT_ONCE | TW_NODE_SLACK)

/**
 * struct tw_node - one timer
 * @prev: index of the one before it in its list, or 0
 * @next: index of the one after it in its list, or 0
 * @deadline: time of the clock at which it is to expire, in ns
 * @user_data: handed back with its event
 * @period: of a periodic timer, index of what it has besides, @user_data included
 * @gen: generation, the upper half of the id: odd while there is such a timer
 * @slot: number of the slot that it is in
 * @flags: TW_NODE_*, of which the caller sets TW_NODE_PERIODIC and TW_NODE_SLACK
 */
struct tw_node {
	u32 prev;
	u32 next;
	s64 deadline;
	union {
		u64 user_data;
		u32 period;
	};
	u32 gen;
	u16 slot;
	u16 flags;
};

/**
 * struct tw_period - what a periodic timer has besides, in a table of its own
 * @nominal: deadline of the present period without jitter, in ns
 * @interval: length of a period, in ns
 * @jitter: most by which a period is put off, in ns
 * @user_data: handed back with each event
 *
 * It is as long as a &struct tw_node and has no generation: so no id finds it.
 */
struct tw_period {
	u64 nominal;
	u64 interval;
	u64 jitter;
	u64 user_data;
};

/* Memory of a chunk, and of a short one */
#define TW_CHUNK_BYTES (TW_CHUNK_NODES * sizeof(struct tw_node))
#define TW_FEW_BYTES (TW_FEW_NODES * sizeof(struct tw_node))

/**
 * struct tw_chunk - what the table keeps about a chunk
 * @free: a bit for each free node
 * @some: a bit for each word of @free that has any
 * @all: a bit for each word of @free that has all
 * @gen: an even number: a node with a lower generation goes on from here
 * @bound: an even number: no node has a higher generation
 * @nr: its number
 * @bytes: memory of its nodes
 * @next: next chunk with free nodes, next empty one, or next one to be given back
 * @prev: previous chunk with free nodes, or previous empty one
 * @nodes: its nodes
 */
struct tw_chunk {
	u64 free[TW_WORDS];
	u32 some;
	u32 all;
	u32 gen;
	u32 bound;
	u32 nr;
	u32 bytes;
	struct tw_chunk *next;
	struct tw_chunk *prev;
	struct tw_node *nodes;
};

/**
 * struct tw_unused - a number of a chunk that was handed back
 * @gen: the generation from which the next chunk with this number goes on
 * @next: the next such number, or 0
 */
struct tw_unused {
	u32 gen;
	u32 next;
};

/* Memory of a directory for @max chunks, 0 included: three arrays */
#define TW_DIR_BYTES(max) \
	((max) * (sizeof(unsigned long) + sizeof(struct tw_chunk *) + \
		  sizeof(struct tw_unused)))

/* Nodes of chunks that are not there: a look-up reads them, and finds no live timer. */
extern const struct tw_node tw_zero_nodes[TW_CHUNK_NODES];

/**
 * struct tw_table - all nodes of a wheel
 * @dir: for each chunk number, the address of its nodes, or of tw_zero_nodes, from which
 *	the offset of the first node's index is subtracted: so tw_dir_at() adds the
 *	whole index
 * @chunks: by the number, the chunk, or NULL
 * @unused: by the number, what is kept of those that have no chunk
 * @end: above all indices for which there is memory, that of tw_zero_nodes included
 * @nr_chunks: chunk numbers given out so far, 0 included
 * @max_chunks: length of the directory
 * @partial: chunks of which some nodes are free
 * @empty: chunks of which all nodes are free
 * @first_unused: first of the numbers that have no chunk, or 0
 * @word: the word that nodes are allocated from: a bit for each node that is left
 * @first: index of the node of bit 0
 * @gen: &tw_chunk.gen of its chunk
 * @nodes: the node of bit 0
 * @free: free nodes, each of which can be had. Besides allocation, only
 *	tw_table_detach_spare() makes them fewer
 */
struct tw_table {
	unsigned long *dir;
	struct tw_chunk **chunks;
	struct tw_unused *unused;
	unsigned long end;
	u32 nr_chunks;
	u32 max_chunks;
	struct tw_chunk *partial;
	struct tw_chunk *empty;
	u64 word;
	u32 first;
	u32 gen;
	struct tw_node *nodes;
	u32 first_unused;
	u32 free;
};

void tw_table_init(struct tw_table *table);
void *tw_table_grow(struct tw_table *table, void *dir, u32 max_chunks);
void tw_table_add(struct tw_table *table, struct tw_chunk *chunk,
		  struct tw_node *nodes, u32 bytes);
struct tw_node *tw_table_lengthen(struct tw_table *table, struct tw_node *nodes);
struct tw_chunk *tw_table_take_chunk(struct tw_table *table);
void *tw_table_end(struct tw_table *table);

/* The rare parts of tw_table_alloc(), tw_table_free() and tw_table_detach_spare() */
void tw_table_refill(struct tw_table *table);
void tw_word_put(struct tw_table *table, struct tw_chunk *chunk, unsigned int word);
struct tw_chunk *tw_table_drop_empty(struct tw_table *table);

static __always_inline struct tw_node *tw_dir_at(const unsigned long *dir, u32 index)
{
	return (struct tw_node *)(dir[index >> TW_CHUNK_SHIFT] +
				  ((unsigned long)index << TW_NODE_SHIFT));
}

/**
 * tw_node_at() - the node of an index
 * @table: the table
 * @index: an index that came from the table, also long ago, or 0
 *
 * Return: the node; for 0, or if its chunk is gone, one that may be fetched but not used.
 */
static __always_inline struct tw_node *tw_node_at(const struct tw_table *table,
						  u32 index)
{
	return tw_dir_at(table->dir, index);
}

/* Nodes of the chunk of a number, or tw_zero_nodes */
static inline struct tw_node *tw_table_nodes(const struct tw_table *table, u32 nr)
{
	return tw_node_at(table, nr << TW_CHUNK_SHIFT);
}

/**
 * tw_period_at() - what the periodic timer of an index has besides
 * @table: the table of such
 * @index: an index that came from tw_table_alloc()
 *
 * Return: that.
 */
static inline struct tw_period *tw_period_at(const struct tw_table *table,
					     u32 index)
{
	return (struct tw_period *)tw_node_at(table, index);
}

/**
 * tw_id() - the id of a timer
 * @node: the timer
 * @index: its index
 *
 * Return: its id.
 */
static inline u64 tw_id(const struct tw_node *node, u32 index)
{
	return (u64)node->gen << 32 | index;
}

static inline struct tw_chunk *tw_chunk_of(const struct tw_table *table, u32 index)
{
	return table->chunks[index >> TW_CHUNK_SHIFT];
}

/* The word that has the bit of a node */
static inline unsigned int tw_word(u32 index)
{
	return (index & TW_CHUNK_MASK) / TW_WORD_NODES;
}

/* The place of the next free node among those that are handed out now */
static __always_inline unsigned int tw_table_next(struct tw_table *table)
{
	u64 word;

	if (unlikely(!table->word))
		tw_table_refill(table);
	word = table->word;
	table->word = word & (word - 1);
	table->free--;
	return __ffs64(word);
}

/**
 * tw_table_alloc() - allocate a node, as mere memory
 * @table: the table, with a free node
 *
 * Return: its index.
 */
static inline u32 tw_table_alloc(struct tw_table *table)
{
	unsigned int place = tw_table_next(table);

	return table->first + place;
}

/**
 * tw_node_begin() - allocate a node, and begin the life of a timer
 * @table: the table, with a free node
 * @index: out: the timer's index
 *
 * Return: its node. All fields but the generation are as the last timer left them.
 */
static __always_inline struct tw_node *tw_node_begin(struct tw_table *table,
						     u32 *index)
{
	unsigned int place = tw_table_next(table);
	struct tw_node *node = table->nodes + place;

	*index = table->first + place;
	node->gen = max(node->gen, table->gen) + 1;
	return node;
}

/**
 * tw_table_free() - free a node that is mere memory
 * @table: the table
 * @index: an index that came from tw_table_alloc()
 *
 * Its chunk stays until tw_table_detach_spare().
 */
static inline void tw_table_free(struct tw_table *table, u32 index)
{
	struct tw_chunk *chunk = tw_chunk_of(table, index);
	unsigned int word = tw_word(index);
	u64 was = chunk->free[word];
	u64 free = was | 1ULL << index % TW_WORD_NODES;

	chunk->free[word] = free;
	table->free++;
	if (unlikely(!was || free == TW_WORD_ALL))
		tw_word_put(table, chunk, word);
}

/**
 * tw_table_detach_spare() - detach empty chunks that are not needed
 * @table: the table
 *
 * Return: a list of them, for the caller to free with their nodes, or NULL.
 */
static inline struct tw_chunk *tw_table_detach_spare(struct tw_table *table)
{
	return likely(table->free < TW_CHUNK_NODES + TW_TABLE_KEEP) ?
	       NULL : tw_table_drop_empty(table);
}

/**
 * tw_node_end() - end the life of a timer, and free its node
 * @table: the table
 * @node: a node in use
 * @index: its index
 */
static inline void tw_node_end(struct tw_table *table, struct tw_node *node,
			       u32 index)
{
	/* An odd one, of which the last has all bits set. */
	node->gen = (node->gen + 1) & TW_LAST_GEN;
	/* If it is used up, its bit stays clear. */
	if (likely(node->gen))
		tw_table_free(table, index);
}

/**
 * tw_table_peek() - where a timer with this id would be
 * @table: the table
 * @id: any number, from a program
 * @index: out: the timer's index; 0 if there is no such index, whatever the processor
 *	guesses
 *
 * Return: a node that can be read, whether or not there is one of this id.
 */
static __always_inline struct tw_node *
tw_table_peek(const struct tw_table *table, u64 id, u32 *index)
{
	u32 at = id;

	at &= array_index_mask_nospec(at, table->end);
	*index = at;
	return tw_node_at(table, at);
}

/* Is it live, and of this generation, which a program said? */
static __always_inline bool tw_node_is(const struct tw_node *node, u32 gen)
{
	return likely(node->gen == gen && (gen & 1));
}

/**
 * tw_table_find() - look up an id that came from a program
 * @table: the table
 * @id: any number
 * @node: out: the live timer that has this id
 * @index: out: its index
 *
 * Return: false if there is none.
 */
static __always_inline bool tw_table_find(const struct tw_table *table, u64 id,
					  struct tw_node **node, u32 *index)
{
	*node = tw_table_peek(table, id, index);
	return tw_node_is(*node, id >> 32);
}

/* Is its chunk a short one? Then there is only that. */
static inline bool tw_table_short(const struct tw_table *table)
{
	return table->end & TW_CHUNK_MASK;
}

/* Bytes of the chunk that it gets next, so that it has @nodes free nodes in the end */
static inline u32 tw_table_next_bytes(const struct tw_table *table, unsigned int nodes)
{
	return table->nr_chunks == TW_FIRST_CHUNK && nodes <= TW_FEW_NODES ?
	       TW_FEW_BYTES : TW_CHUNK_BYTES;
}

/**
 * tw_table_full() - does adding a chunk need a longer directory?
 * @table: the table
 *
 * Return: true if tw_table_grow() has to come before tw_table_add().
 */
static inline bool tw_table_full(const struct tw_table *table)
{
	return !table->first_unused && table->nr_chunks == table->max_chunks;
}

#endif /* TW_TABLE_H */
