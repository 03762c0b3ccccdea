// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later
/*
 * Prefetching for a batch of operations. See ahead.h.
 */
#include "ahead.h"

/* How many operations of the step that begins with @n there are */
static unsigned int tw_ahead_left(const struct tw_ahead *ahead, unsigned int n)
{
	return min_t(unsigned int, ahead->nr - n, TW_AHEAD_STEP);
}

/* Look for the nodes of the next step. */
static void tw_ahead_find(struct tw_ahead *ahead)
{
	const struct tw_table *table = ahead->table;
	struct tw_ahead_op *op = &ahead->ops[ahead->found % TW_AHEAD];
	const struct tw_ahead_op *end = op + tw_ahead_left(ahead, ahead->found);
	const void *from = ahead->ids + ahead->found * ahead->stride;

	for (; op < end; op++) {
		u64 id = READ_ONCE(*(const u64 *)from);

		op->node = tw_table_peek(table, id, &op->index);
		op->gen = id >> 32;
		prefetchw(op->node);
		from += ahead->stride;
	}
	ahead->found += TW_AHEAD_STEP;
}

static inline void tw_ahead_fetch(const unsigned long *dir, const struct tw_node *node)
{
	prefetchw(tw_dir_at(dir, node->prev));
	prefetchw(tw_dir_at(dir, node->next));
}

/* Fetch the neighbours of the nodes of the next step, and what says that they are free. */
static void tw_ahead_link_del(struct tw_ahead *ahead)
{
	const struct tw_table *table = ahead->table;
	const unsigned long *dir = table->dir;
	const struct tw_ahead_op *op = &ahead->ops[ahead->linked % TW_AHEAD];
	const struct tw_ahead_op *end = op + tw_ahead_left(ahead, ahead->linked);

	for (; op < end; op++) {
		const struct tw_chunk *chunk = tw_chunk_of(table, op->index);

		tw_ahead_fetch(dir, op->node);
		if (chunk)
			prefetchw(&chunk->free[tw_word(op->index)]);
	}
	ahead->linked += TW_AHEAD_STEP;
}

/* The same, but only of those that will leave their list. */
static void tw_ahead_link_mod(struct tw_ahead *ahead)
{
	const unsigned long *dir = ahead->table->dir;
	const struct tw_ahead_op *op = &ahead->ops[ahead->linked % TW_AHEAD];
	const struct tw_ahead_op *end = op + tw_ahead_left(ahead, ahead->linked);
	const void *from = ahead->deadlines + ahead->linked * ahead->stride;

	for (; op < end; op++) {
		s64 deadline = READ_ONCE(*(const u64 *)from) + ahead->base;

		if (!tw_wheel_stays(op->node, deadline))
			tw_ahead_fetch(dir, op->node);
		from += ahead->stride;
	}
	ahead->linked += TW_AHEAD_STEP;
}

/* The rare part of tw_ahead(). At the start of a batch it also fetches all that is nearer. */
void tw_ahead_step(struct tw_ahead *ahead, unsigned int n)
{
	while (ahead->found < min(ahead->nr, n + TW_AHEAD))
		tw_ahead_find(ahead);
	while (ahead->linked < min(ahead->nr, n + TW_AHEAD_LINKS)) {
		if (ahead->deadlines)
			tw_ahead_link_mod(ahead);
		else
			tw_ahead_link_del(ahead);
	}
}
