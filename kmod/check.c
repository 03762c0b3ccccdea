// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of table and wheel. See check.h.
 *
 * Each function returns true if all is as it must be, and what comes later relies on
 * what came before: it does not follow a link that was found to be wrong.
 */
#include <linux/bug.h>

#include "check.h"

/* What a look at all chunks of a table finds */
struct tw_found {
	u32 partial;
	u32 unused;
	u32 free;
};

static u32 tw_cap(const struct tw_chunk *chunk)
{
	return chunk->end - 1;
}

/*
 * What is on the list is free, and each of them once: as many as are not used, or less
 * if it is worn out. They are added to @free.
 */
static bool tw_check_free(const struct tw_chunk *chunk, u32 *free)
{
	u32 left = tw_cap(chunk) - tw_chunk_used(chunk);
	u32 offset, place;

	for (offset = chunk->free; offset; offset = chunk->nodes[place].free) {
		place = tw_place(offset);
		if (!tw_so(place * sizeof(struct tw_node) == offset) ||
		    !tw_so(place && place < chunk->end) ||
		    !tw_so(!chunk->nodes[place].gen) || !tw_so(left))
			return false;
		left--;
		++*free;
	}
	return tw_so(!left || tw_chunk_worn_out(chunk));
}

/* Generations are of the chunk, and no more nodes have one than are used. */
static bool tw_check_gens(const struct tw_chunk *chunk)
{
	u32 place, live = 0;

	for (place = 1; place < chunk->end; place++) {
		if (!tw_so(chunk->nodes[place].gen <= chunk->gen))
			return false;
		live += !!chunk->nodes[place].gen;
	}
	return tw_so(live <= tw_chunk_used(chunk));
}

/* Used nodes are counted so that those that have to be seen to are. */
static bool tw_check_used(const struct tw_chunk *chunk, u32 nr)
{
	if (!tw_so(chunk->used <= tw_cap(chunk)) ||
	    !tw_so(chunk->kept <= tw_cap(chunk) - chunk->used))
		return false;
	if (chunk->free && !tw_chunk_worn_out(chunk))
		return tw_so(!chunk->kept);
	if (tw_chunk_used(chunk))
		return tw_so(chunk->used == 1);
	/* Else it would have been given back. */
	return tw_so(chunk->free || nr == TW_FIRST_CHUNK);
}

static bool tw_check_chunk(const struct tw_chunk *chunk, u32 nr, u32 *free)
{
	return tw_so(chunk->base == nr << TW_CHUNK_SHIFT) &&
	       tw_so(chunk->end > 1) &&
	       tw_so(chunk->end * sizeof(struct tw_node) <= TW_CHUNK_SIZE) &&
	       tw_so(!chunk->no_gen) &&
	       tw_check_used(chunk, nr) && tw_check_free(chunk, free) &&
	       tw_check_gens(chunk);
}

static bool tw_check_dir(const struct tw_table *table, struct tw_found *found)
{
	u32 nr;

	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++) {
		const struct tw_chunk *chunk = table->dir[nr].chunk;
		u32 free = 0;

		if (chunk == &tw_no_chunk) {
			found->unused += table->dir[nr].gen < TW_WORN_GEN;
			continue;
		}
		if (!tw_check_chunk(chunk, nr, &free) ||
		    /* There is a generation for each that is free. */
		    !tw_so(chunk->gen <= TW_LAST_GEN - free))
			return false;
		found->partial += !!free;
		found->free += free;
	}
	return true;
}

/* All chunks with free nodes are on the list, and no others. */
static bool tw_check_partial(const struct tw_table *table, u32 left)
{
	const struct tw_chunk *chunk = table->partial, *prev = NULL;

	for (; chunk && left; left--) {
		if (!tw_so(table->dir[chunk->base >> TW_CHUNK_SHIFT].chunk == chunk) ||
		    !tw_so(chunk->free) || !tw_so(chunk->prev == prev))
			return false;
		prev = chunk;
		chunk = chunk->next;
	}
	return tw_so(!left) && tw_so(!chunk);
}

/* All numbers without chunk that are not used up are on the list, and no others. */
static bool tw_check_unused(const struct tw_table *table, u32 left)
{
	u32 nr = table->unused;

	for (; nr != TW_NO_CHUNK && left; left--) {
		if (!tw_so(nr > TW_FIRST_CHUNK && nr < table->nr_chunks) ||
		    !tw_so(table->dir[nr].chunk == &tw_no_chunk) ||
		    !tw_so(table->dir[nr].gen < TW_WORN_GEN))
			return false;
		nr = table->dir[nr].next;
	}
	return tw_so(!left) && tw_so(nr == TW_NO_CHUNK);
}

/* Chunks that are to be given back are not used any more. */
static bool tw_check_spare(const struct tw_table *table)
{
	const struct tw_chunk *chunk;

	for (chunk = table->spare; chunk; chunk = chunk->next)
		if (!tw_so(!tw_chunk_used(chunk)) ||
		    !tw_so(table->dir[chunk->base >> TW_CHUNK_SHIFT].chunk != chunk))
			return false;
	return true;
}

/**
 * tw_check_table() - is a table as it must be?
 * @table: the table
 *
 * Return: true if so.
 */
bool tw_check_table(const struct tw_table *table)
{
	struct tw_found found = {};

	return tw_so(tw_no_chunk.end == 1) && tw_so(!tw_no_chunk.no_gen) &&
	       tw_so(table->dir[0].chunk == &tw_no_chunk) &&
	       tw_so(table->nr_chunks >= TW_FIRST_CHUNK) &&
	       tw_so(table->nr_chunks <= table->max_chunks) &&
	       tw_check_dir(table, &found) &&
	       tw_so(table->free == found.free) &&
	       tw_check_partial(table, found.partial) &&
	       tw_check_unused(table, found.unused) && tw_check_spare(table);
}

/**
 * tw_check_things() - how much is there to be looked at?
 * @table: the table of a wheel
 * @wheel: the wheel
 *
 * Return: the number of chunks, nodes and slots, more or less.
 */
u32 tw_check_things(const struct tw_table *table, const struct tw_wheel *wheel)
{
	return table->nr_chunks + table->free + 2 * wheel->ready.count +
	       TW_SLOTS + 2 * wheel->pending;
}

static bool tw_occupied(const struct tw_wheel *wheel, unsigned int level)
{
	unsigned int i;

	for (i = 0; i < TW_LEVEL_WORDS; i++)
		if (wheel->occupied[level][i])
			return true;
	return false;
}

/**
 * tw_check_levels() - is that of a wheel as it must be which is soon looked at?
 * @wheel: the wheel
 *
 * Return: true if so.
 */
bool tw_check_levels(const struct tw_wheel *wheel)
{
	unsigned int level;
	s64 done;

	for (level = 0; level < TW_LEVELS; level++) {
		const struct tw_level *l = &wheel->level[level];
		unsigned int turn = l->shift + TW_TURN_BITS;

		if (!tw_so(l->reach == ((wheel->clk >> turn) + 2) << turn) ||
		    !tw_so((wheel->levels >> level & 1) == tw_occupied(wheel, level)))
			return false;
	}
	done = (wheel->clk - 1 - wheel->clock.shift) * wheel->clock.tick;
	return tw_so(wheel->done == done || (wheel->set_back && wheel->done > done)) &&
	       tw_so(wheel->base == wheel->clock.shift + 1) &&
	       tw_so(!wheel->pending == !wheel->levels) &&
	       tw_so(wheel->pending || wheel->next == TW_NEVER) &&
	       tw_so(wheel->slots || !wheel->pending);
}

/* A list is linked, and has so many nodes as are counted. */
static bool tw_check_list(const struct tw_slot *slot)
{
	const struct list_head *at = &slot->nodes;
	u32 left;

	for (left = slot->count; left; left--) {
		if (!tw_so(at->next != &slot->nodes) ||
		    !tw_so(at->next->prev == at))
			return false;
		at = at->next;
	}
	return tw_so(at->next == &slot->nodes) && tw_so(slot->nodes.prev == at);
}

/* A node is found in time where it is: in the slot of the ticks @start to @end. */
static bool tw_check_pending(const struct tw_wheel *wheel, const struct tw_slot *slot,
			     const struct tw_node *node, s64 start, s64 end)
{
	s64 tick = tw_clock_expires(&wheel->clock, node->deadline,
				    node->slack_shift);
	/* What was late already came as early as could be. */
	s64 due = max(tick, wheel->clk);

	return tw_so(tw_slot_at(wheel, node->slot) == slot) &&
	       tw_so(!tw_is_ready(wheel, node)) &&
	       tw_so(start <= due) && tw_so(wheel->next <= min(due, end)) &&
	       /* Only what is due and can be told to be ready is expired unseen. */
	       tw_so(start < end || slot->inspect || start < wheel->inspect ||
		     (due <= end && !(node->flags & TW_NODE_INSPECT)));
}

static bool tw_check_slot(const struct tw_wheel *wheel, unsigned int level,
			  unsigned int nr)
{
	const struct tw_slot *slot = &wheel->slots[level * TW_LEVEL_SLOTS + nr];
	bool occupied = wheel->occupied[level][nr / 64] >> (nr % 64) & 1;
	unsigned int shift = wheel->level[level].shift;
	s64 position = wheel->clk >> shift;
	s64 start, end;
	const struct tw_node *node;

	/* Those that are behind the wheel's time are of its next turn. */
	position += (nr - position) & TW_LEVEL_MASK;
	start = position << shift;
	end = ((position + 1) << shift) - 1;
	if (!tw_so(occupied == !!slot->count) || !tw_check_list(slot))
		return false;
	if (!occupied)
		return tw_so(!slot->inspect);
	if (!tw_so(start < wheel->level[level].reach) ||
	    !tw_so(!level || slot->count <= TW_SMALL_SLOT ||
		   wheel->next <= (position - 1) << shift))
		return false;
	list_for_each_entry(node, &slot->nodes, entry)
		if (!tw_check_pending(wheel, slot, node, start, end))
			return false;
	return true;
}

static bool tw_check_ready(const struct tw_wheel *wheel)
{
	const struct tw_node *node;

	if (!tw_check_list(&wheel->ready))
		return false;
	list_for_each_entry(node, &wheel->ready.nodes, entry)
		if (!tw_so(tw_is_ready(wheel, node)))
			return false;
	return true;
}

/**
 * tw_check_wheel() - is a wheel as it must be?
 * @wheel: the wheel
 *
 * Return: true if so.
 */
bool tw_check_wheel(const struct tw_wheel *wheel)
{
	unsigned int level, nr;
	u32 pending = 0;

	if (!tw_check_levels(wheel) || !tw_check_ready(wheel))
		return false;
	for (level = 0; wheel->slots && level < TW_LEVELS; level++) {
		for (nr = 0; nr < TW_LEVEL_SLOTS; nr++) {
			if (!tw_check_slot(wheel, level, nr))
				return false;
			pending += wheel->slots[level * TW_LEVEL_SLOTS + nr].count;
		}
	}
	return tw_so(wheel->pending == pending);
}
