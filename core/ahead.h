/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Prefetching for a batch of operations.
 *
 * With a million timers in random order, an operation mostly waits for memory: first for
 * its node, and then for the neighbours that the node names. A batch knows all its ids
 * from the start. So the node of an operation is prefetched TW_AHEAD operations before
 * its turn, and the neighbours TW_AHEAD_LINKS operations before it:
 *
 *	tw_ahead_begin(&ahead, &table, ops, nr, size, now);
 *	for (op = ops; op < ops + nr * size; op += size) {
 *		tw_ahead(&ahead, op, size);
 *		if (tw_table_find(&table, op->id, &node, &index))
 *			...
 *	}
 *
 * All of it is a guess. A program may change its operations meanwhile, and an earlier
 * operation may end the timer of a later one. So each operation looks its id up by itself,
 * and only what it finds then counts. A wrong guess is harmless: whatever the id is,
 * tw_table_peek() finds memory of a node, in use or not. That node's neighbours may be of
 * long ago, or 0 if there never was a timer; but an index stays one, as the directory
 * never gets shorter.
 */
#ifndef TW_AHEAD_H
#define TW_AHEAD_H

#include <uapi/linux/twheel.h>

#include "wheel.h"

/**
 * struct tw_ahead - a batch of operations
 * @table: the table
 * @end: where its operations end; NULL if nothing is to be prefetched
 * @modify: timers get new deadlines, so that some stay on their lists
 * @base: is added to these deadlines
 */
struct tw_ahead {
	const struct tw_table *table;
	const void *end;
	bool modify;
	s64 base;
};

static __always_inline struct tw_node *tw_ahead_node(const struct tw_ahead *ahead,
						     const struct twheel_op *op)
{
	u32 index;

	return tw_table_peek(ahead->table, READ_ONCE(op->id), &index);
}

/* The neighbours of a timer, if it will leave its list */
static __always_inline void tw_ahead_links(const struct tw_ahead *ahead,
					   const struct twheel_op *op)
{
	const struct tw_node *node = tw_ahead_node(ahead, op);

	if (ahead->modify && tw_wheel_stays(node, READ_ONCE(op->deadline) + ahead->base))
		return;
	prefetchw(tw_node_at(ahead->table, node->prev));
	prefetchw(tw_node_at(ahead->table, node->next));
}

/**
 * tw_ahead_begin() - begin with a batch
 * @ahead: filled in
 * @table: the table
 * @ops: the operations, which may be a program's memory
 * @nr: how many
 * @size: length of each
 * @now: the time that delays begin at, in ns
 *
 * It does nothing where that does not pay, or where the first operation makes a new
 * timer, which is no reason to wait for memory.
 */
static __always_inline void tw_ahead_begin(struct tw_ahead *ahead,
					   const struct tw_table *table, const void *ops,
					   unsigned int nr, u32 size, s64 now)
{
	const struct twheel_op *first = ops;
	unsigned int opcode, n;

	*ahead = (struct tw_ahead){ .table = table };
	if (nr < TW_AHEAD_LEAST || table->nr_chunks < TW_AHEAD_CHUNKS)
		return;
	opcode = READ_ONCE(first->opcode);
	ahead->modify = opcode == TWHEEL_OP_MODIFY && size >= TWHEEL_OP_SIZE_ONCE;
	if (opcode != TWHEEL_OP_CANCEL && !ahead->modify)
		return;
	ahead->end = ops + (size_t)nr * size;
	ahead->base = READ_ONCE(first->flags) & TWHEEL_ABS ? 0 : now;
	for (n = 0; n < min(nr, TW_AHEAD); n++)
		prefetchw(tw_ahead_node(ahead, ops + n * size));
	for (n = 0; n < min(nr, TW_AHEAD_LINKS); n++)
		tw_ahead_links(ahead, ops + n * size);
}

/**
 * tw_ahead() - prefetch what operations to come will need
 * @ahead: the batch
 * @op: the operation that is done next, each in turn
 * @size: length of each
 */
static __always_inline void tw_ahead(const struct tw_ahead *ahead, const void *op, u32 size)
{
	long left;

	/* A batch that is prefetched waits for memory anyway: the others come first. */
	if (likely(!ahead->end))
		return;
	left = ahead->end - op;
	if (left > TW_AHEAD * size)
		prefetchw(tw_ahead_node(ahead, op + TW_AHEAD * size));
	if (left > TW_AHEAD_LINKS * size)
		tw_ahead_links(ahead, op + TW_AHEAD_LINKS * size);
}

#endif /* TW_AHEAD_H */
