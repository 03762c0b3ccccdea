// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of the table and the wheel. See check.h.
 *
 * Each function returns true if all it checks holds. Later checks rely on earlier ones: a
 * link that was found broken is not followed.
 */
#include <linux/bug.h>

#include "check.h"

/* Counts over all chunks of a table */
struct tw_found {
	u32 partial;
	u32 empty;
	u32 unused;
	u32 free;
};

static bool tw_is_all(u64 free)
{
	return free == TW_WORD_ALL;
}

static bool tw_is_empty(const struct tw_chunk *chunk)
{
	return chunk->all == TW_WORDS_ALL;
}

/* Bits say which words have free nodes, and which have nothing else. */
static bool tw_check_words(const struct tw_chunk *chunk)
{
	unsigned int i;

	for (i = 0; i < TW_WORDS; i++)
		if (!tw_so(!(chunk->free[i] & ~TW_WORD_ALL)) ||
		    !tw_so((chunk->some >> i & 1) == !!chunk->free[i]) ||
		    !tw_so((chunk->all >> i & 1) == tw_is_all(chunk->free[i])))
			return false;
	return tw_so(!(chunk->some & ~TW_WORDS_ALL));
}

static bool tw_is_free(const struct tw_table *table, const struct tw_chunk *chunk,
		       u32 place)
{
	u64 free = chunk->free[tw_word(place)];
	u32 word = chunk->nr << TW_CHUNK_SHIFT | (place & ~(TW_WORD_NODES - 1));

	if (table->first == word)
		free |= table->word;
	return free >> place % TW_WORD_NODES & 1;
}

/* What is free has no timer, and generations are as far as they can have come. */
static bool tw_check_gens(const struct tw_table *table, const struct tw_chunk *chunk,
			  bool ids)
{
	u32 place;

	for (place = 0; ids && place < chunk->bytes / sizeof(struct tw_node); place++) {
		u32 gen = chunk->nodes[place].gen;

		if (!tw_so(!(gen & 1) || !tw_is_free(table, chunk, place)) ||
		    !tw_so(gen <= chunk->bound || chunk->bound == TW_LAST_GEN - 1))
			return false;
	}
	return tw_so(chunk->gen <= chunk->bound) && tw_so(!(chunk->bound & 1));
}

static bool tw_check_chunk(const struct tw_table *table, const struct tw_chunk *chunk,
			   u32 nr, bool ids)
{
	bool last = nr == table->nr_chunks - 1;
	u32 end = chunk->bytes / sizeof(struct tw_node);

	return tw_so(end == TW_CHUNK_NODES || (nr == TW_FIRST_CHUNK && last)) &&
	       tw_so(chunk->nr == nr) && tw_so(tw_table_nodes(table, nr) == chunk->nodes) &&
	       tw_check_words(chunk) && tw_check_gens(table, chunk, ids);
}

static bool tw_check_dir(const struct tw_table *table, bool ids,
			 struct tw_found *found)
{
	unsigned int i;
	u32 nr;

	for (nr = TW_FIRST_CHUNK; nr < table->nr_chunks; nr++) {
		const struct tw_chunk *chunk = table->chunks[nr];

		if (!chunk) {
			if (!tw_so(tw_table_nodes(table, nr) == tw_zero_nodes))
				return false;
			found->unused += table->unused[nr].gen < TW_LAST_GEN - 1;
			continue;
		}
		if (!tw_check_chunk(table, chunk, nr, ids))
			return false;
		if (tw_is_empty(chunk))
			found->empty++;
		else if (chunk->some)
			found->partial++;
		for (i = 0; i < TW_WORDS; i++)
			found->free += hweight64(chunk->free[i]);
	}
	return true;
}

/* The nodes that are handed out now are of a word, and free, and only here. */
static bool tw_check_word(const struct tw_table *table)
{
	const struct tw_chunk *chunk;

	if (!table->word)
		return true;
	if (!tw_so(table->first >> TW_CHUNK_SHIFT < table->nr_chunks))
		return false;
	chunk = tw_chunk_of(table, table->first);
	return tw_so(chunk) && tw_so(!(table->first % TW_WORD_NODES)) &&
	       tw_so(table->nodes == tw_node_at(table, table->first)) &&
	       tw_so(table->gen == chunk->gen) &&
	       tw_so(!(table->word & ~TW_WORD_ALL)) &&
	       tw_so(!(table->word & chunk->free[tw_word(table->first)]));
}

/* All chunks that are empty, or of which nodes are free, are on their list. */
static bool tw_check_chunks(const struct tw_table *table,
			    const struct tw_chunk *chunk, bool empty, u32 left)
{
	const struct tw_chunk *prev = NULL;

	for (; chunk && left; left--) {
		if (!tw_so(chunk->nr < table->nr_chunks) ||
		    !tw_so(table->chunks[chunk->nr] == chunk) ||
		    !tw_so(chunk->some) || !tw_so(chunk->prev == prev) ||
		    !tw_so(tw_is_empty(chunk) == empty))
			return false;
		prev = chunk;
		chunk = chunk->next;
	}
	return tw_so(!left) && tw_so(!chunk);
}

/* All numbers without chunk that are not used up are on the list, and no others. */
static bool tw_check_unused(const struct tw_table *table, u32 left)
{
	u32 nr = table->first_unused;

	for (; nr && left; left--) {
		if (!tw_so(nr < table->nr_chunks) ||
		    !tw_so(!table->chunks[nr]) ||
		    !tw_so(table->unused[nr].gen < TW_LAST_GEN - 1))
			return false;
		nr = table->unused[nr].next;
	}
	return tw_so(!left) && tw_so(!nr);
}

/* All indices below it can be read, and no others. */
static bool tw_check_end(const struct tw_table *table)
{
	const struct tw_chunk *last = table->chunks[table->nr_chunks - 1];
	u32 bytes = last ? last->bytes : TW_CHUNK_BYTES;

	return tw_so(table->end == (table->nr_chunks - 1UL) * TW_CHUNK_NODES +
				   bytes / sizeof(struct tw_node));
}

/**
 * tw_check_table() - is a table as it must be?
 * @table: the table
 * @ids: are its nodes timers, which have ids?
 *
 * Return: true if so.
 */
bool tw_check_table(const struct tw_table *table, bool ids)
{
	struct tw_found found = { .free = hweight64(table->word) };

	return tw_so(tw_table_nodes(table, 0) == tw_zero_nodes) &&
	       tw_so(table->nr_chunks >= TW_FIRST_CHUNK) &&
	       tw_so(table->nr_chunks <= table->max_chunks) &&
	       tw_check_end(table) && tw_check_word(table) && tw_check_dir(table, ids, &found) &&
	       tw_so(table->free == found.free) &&
	       tw_check_chunks(table, table->partial, false, found.partial) &&
	       tw_check_chunks(table, table->empty, true, found.empty) &&
	       tw_check_unused(table, found.unused);
}

/**
 * tw_check_things() - how large is a full check?
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

	for (i = 0; i < TW_LVL_WORDS; i++)
		if (wheel->occupied[level][i])
			return true;
	return false;
}

/**
 * tw_check_levels() - do the invariants hold that are quickly checked?
 * @wheel: the wheel
 *
 * Return: true if so.
 */
bool tw_check_levels(const struct tw_wheel *wheel)
{
	unsigned int level;
	s64 done_ns;

	for (level = 0; level < wheel->depth; level++) {
		const struct tw_level *l = &wheel->level[level];
		unsigned int turn = l->shift + TW_LVL_CLK_SHIFT;

		if (!tw_so(l->reach == ((wheel->clk >> turn) + 2) << turn) ||
		    !tw_so((wheel->levels >> level & 1) == tw_occupied(wheel, level)))
			return false;
	}
	done_ns = (wheel->clk - 1 - wheel->clock.tick_offset) * wheel->clock.tick;
	return tw_so(wheel->done_ns == done_ns || (wheel->set_back && wheel->done_ns > done_ns)) &&
	       tw_so(wheel->base == wheel->clock.tick_offset + 1) &&
	       tw_so(!wheel->pending == !wheel->levels) &&
	       tw_so(wheel->pending || wheel->next == TW_NEVER) &&
	       tw_so(!wheel->depth == !wheel->slots) && tw_so(!(wheel->levels >> wheel->depth));
}

/* A node is found in time where it is: in the slot of the ticks @start to @end. */
static bool tw_check_pending(const struct tw_wheel *wheel, unsigned int slot,
			     const struct tw_node *node, s64 start, s64 end)
{
	s64 tick = tw_clock_expires(&wheel->clock, node->deadline,
				    node->flags & TW_NODE_SLACK);
	/* What was late already came as early as could be. */
	s64 due = max(tick, wheel->clk);

	return tw_so(node->slot == slot) && tw_so(!tw_is_ready(wheel, node)) &&
	       tw_so(start <= due) && tw_so(wheel->next <= min(due, end)) &&
	       /* A slot may expire whole only if all its nodes are due and have no flag. */
	       tw_so(start < end || wheel->slots[slot].inspect ||
		     start < wheel->inspect ||
		     (due <= end && !(node->flags & TW_NODE_INSPECT)));
}

/* A list is linked, and of its stripe. What is in it is taken off @left. */
static bool tw_check_list(const struct tw_wheel *wheel, const struct tw_list *list,
			  unsigned int stripe, unsigned int mask, u32 *left)
{
	u32 index = list->first, prev = 0;

	for (; index && *left; --*left) {
		const struct tw_node *node;

		if (!tw_so(index >> TW_CHUNK_SHIFT < wheel->table->nr_chunks))
			return false;
		node = tw_node_at(wheel->table, index);
		if (!tw_so((index & mask) == stripe) || !tw_so(node->prev == prev))
			return false;
		prev = index;
		index = node->next;
	}
	return tw_so(!index) && tw_so(list->last == prev);
}

/* Lists are linked, and have as many nodes in all as are counted. */
static bool tw_check_lists(const struct tw_wheel *wheel, const struct tw_list *lists,
			   unsigned int mask, u32 count, u32 stripes)
{
	unsigned int i;

	for (i = 0; i <= mask; i++)
		if (!tw_so(!lists[i].first || stripes >> i & 1) ||
		    !tw_check_list(wheel, &lists[i], i, mask, &count))
			return false;
	return tw_so(!count);
}

static bool tw_check_slot(const struct tw_wheel *wheel, unsigned int level,
			  unsigned int nr)
{
	unsigned int i, mask, at = level * TW_LVL_SIZE + nr;
	const struct tw_slot *slot = &wheel->slots[at];
	const struct tw_list *lists = tw_slot_lists(wheel, at, &mask);
	bool occupied = wheel->occupied[level][nr / 64] >> (nr % 64) & 1;
	unsigned int shift = wheel->level[level].shift;
	s64 position = wheel->clk >> shift;
	s64 start, end, preload;
	u32 index;

	/* Slots that are behind the wheel's time are of its next turn. */
	position += (nr - position) & TW_LVL_MASK;
	start = position << shift;
	end = ((position + 1) << shift) - 1;
	preload = start - (1LL << shift) + wheel->phase % max(1LL << shift >> 2, 1LL);
	if (!tw_so(occupied == !!slot->count) ||
	    !tw_check_lists(wheel, lists, mask, slot->count, slot->stripes))
		return false;
	if (!occupied)
		return tw_so(!slot->inspect);
	if (!tw_so(start < wheel->level[level].reach) ||
	    !tw_so(!level || slot->count <= TW_SMALL_SLOT ||
		   wheel->next <= preload))
		return false;
	for (i = 0; i <= mask; i++) {
		const struct tw_node *node;

		for (index = lists[i].first; index; index = node->next) {
			node = tw_node_at(wheel->table, index);
			if (!tw_check_pending(wheel, at, node, start, end))
				return false;
		}
	}
	return true;
}

static bool tw_check_ready(const struct tw_wheel *wheel)
{
	const struct tw_ready *ready = &wheel->ready;
	u32 index, left = ready->count;
	const struct tw_node *node;
	unsigned int i;

	if (!tw_so(ready->count || !ready->until) || !tw_so(!(ready->round >> TW_READY_LISTS)))
		return false;
	for (i = 0; i < TW_READY_LISTS; i++) {
		bool at_once = i == TW_AT_ONCE;

		if (!tw_so(!ready->list[i].first || ready->lists >> i & 1) ||
		    !tw_check_list(wheel, &ready->list[i], at_once ? 0 : i - 1,
				   at_once ? 0 : wheel->level[0].stripe_mask, &left))
			return false;
		for (index = ready->list[i].first; index; index = node->next) {
			node = tw_node_at(wheel->table, index);
			if (!tw_so(tw_is_ready(wheel, node)) ||
			    !tw_so(!(node->flags & TW_NODE_AT_ONCE) == !at_once))
				return false;
		}
	}
	return tw_so(!left);
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
	for (level = 0; level < wheel->depth; level++) {
		for (nr = 0; nr < TW_LVL_SIZE; nr++) {
			if (!tw_check_slot(wheel, level, nr))
				return false;
			pending += wheel->slots[level * TW_LVL_SIZE + nr].count;
		}
	}
	return tw_so(wheel->pending == pending);
}
