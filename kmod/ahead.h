/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Prefetching for a batch of operations.
 *
 * With a million timers in random order, an operation mostly waits for memory: first for
 * its node, and then for the neighbours that the node names. A batch knows all its ids
 * from the start. So the node of an operation is prefetched TW_AHEAD operations before
 * its turn, and the neighbours TW_AHEAD_LINKS operations before it:
 *
 *	tw_ahead_init(&ahead, table, &ops[0].id, NULL, 0, sizeof(ops[0]), nr);
 *	for (n = 0; n < nr; n++) {
 *		tw_ahead(&ahead, n);
 *		if (tw_ahead_get(&ahead, n, &node, &index))
 *			...
 *	}
 *
 * A program may change an id meanwhile. That does no harm, as each id is read once. The
 * generation of a node is compared with that of the id only when the operation's turn
 * comes, since an earlier operation of the batch may have ended the timer. No chunk may
 * be added or detached during a batch.
 */
#ifndef TW_AHEAD_H
#define TW_AHEAD_H

#include "wheel.h"

/**
 * struct tw_ahead_op - an operation to come
 * @node: where its timer would be
 * @index: the timer's index
 * @gen: the timer's generation, which was read once
 */
struct tw_ahead_op {
	struct tw_node *node;
	u32 index;
	u32 gen;
};

/**
 * struct tw_ahead - nodes of a batch of operations, fetched ahead
 * @table: the table
 * @ids: the id of the first operation
 * @deadlines: its new deadline, less @base; or NULL where timers are taken out
 * @base: see there
 * @stride: how far apart those of operations are, in bytes
 * @nr: operations in the batch
 * @found: operations whose nodes were looked for
 * @linked: of these, operations whose nodes' neighbours were fetched
 * @ops: a ring of operations to come
 *
 * Work is done for TW_AHEAD_STEP operations at a time, which divides the others.
 */
struct tw_ahead {
	const struct tw_table *table;
	const void *ids;
	const void *deadlines;
	s64 base;
	size_t stride;
	unsigned int nr;
	unsigned int found;
	unsigned int linked;
	struct tw_ahead_op ops[TW_AHEAD];
};

void tw_ahead_step(struct tw_ahead *ahead, unsigned int n);

/**
 * tw_ahead_init() - begin with a batch
 * @ahead: filled in
 * @table: the table
 * @ids: the id of the first operation, which may be a program's memory
 * @deadlines: its new deadline, likewise, which may be another by the time that it is
 *	done: then it takes longer. NULL where timers are taken out
 * @base: is added to the deadlines
 * @stride: how far apart those of operations are, in bytes
 * @nr: operations in the batch
 */
static inline void tw_ahead_init(struct tw_ahead *ahead, const struct tw_table *table,
				 const u64 *ids, const u64 *deadlines, s64 base,
				 size_t stride, unsigned int nr)
{
	ahead->table = table;
	ahead->ids = ids;
	ahead->deadlines = deadlines;
	ahead->base = base;
	ahead->stride = stride;
	ahead->nr = nr;
	ahead->found = 0;
	ahead->linked = 0;
}

/**
 * tw_ahead() - fetch what operations to come will need
 * @ahead: the batch
 * @n: number of the operation that is done next, each in turn
 */
static __always_inline void tw_ahead(struct tw_ahead *ahead, unsigned int n)
{
	if (unlikely(!(n % TW_AHEAD_STEP)))
		tw_ahead_step(ahead, n);
}

/**
 * tw_ahead_get() - the timer of an operation that is done now
 * @ahead: the batch
 * @n: number of the operation
 * @node: out: the live timer
 * @index: out: its index
 *
 * Return: false if there is none of its id.
 */
static __always_inline bool tw_ahead_get(const struct tw_ahead *ahead,
					 unsigned int n, struct tw_node **node,
					 u32 *index)
{
	const struct tw_ahead_op *op = &ahead->ops[n % TW_AHEAD];

	*node = op->node;
	*index = op->index;
	return tw_node_is(op->node, op->gen);
}

#endif /* TW_AHEAD_H */
