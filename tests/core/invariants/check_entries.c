// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of the wheel of shared timers. See check.h.
 */
#include <linux/bug.h>

#include "check.h"

#define TW_SLOT_MASK ((1U << TW_ENTRY_SLOT_BITS) - 1)

/* Counts over all slots */
struct tw_found_entries {
	u32 entries;
	u32 blocks;
	u32 levels;
};

static u32 tw_head(const struct tw_entries *wheel, u32 block)
{
	return wheel->cells[block << TW_ENTRY_BLOCK_BITS];
}

/* A number knows its place. */
static bool tw_check_place(const struct tw_entries *wheel, u32 nr, u32 place)
{
	return tw_so(wheel->cells[place] < nr) &&
	       tw_so(wheel->timers[wheel->cells[place]].place == place);
}

/* Its blocks know it, all but the topmost are full, and it has as many as are counted. */
static bool tw_check_stack(const struct tw_entries *wheel, unsigned int slot, u32 nr,
			   struct tw_found_entries *found)
{
	u32 left, place = wheel->slots[slot].top;

	for (left = wheel->slots[slot].count; left; left--) {
		u32 block = place >> TW_ENTRY_BLOCK_BITS;

		if (!tw_so(block && block < wheel->fresh) ||
		    !tw_so((tw_head(wheel, block) & TW_SLOT_MASK) == slot) ||
		    !tw_check_place(wheel, nr, place))
			return false;
		found->entries++;
		if (--place & TW_BLOCK_MASK)
			continue;
		found->blocks++;
		place = tw_head(wheel, block) >> TW_ENTRY_SLOT_BITS
			<< TW_ENTRY_BLOCK_BITS | TW_BLOCK_MASK;
	}
	return tw_so(place == TW_ENTRY_EMPTY);
}

/* The slot can be reached from now on, and the wheel looks at it in time. */
static bool tw_check_when(const struct tw_entries *wheel, unsigned int level,
			  unsigned int nr)
{
	const struct tw_entry_slot *slot = &wheel->slots[level * TW_ENTRY_LVL_SIZE + nr];
	unsigned int shift = level * TW_ENTRY_LVL_CLK_SHIFT;
	s64 position = wheel->clk >> shift;
	s64 start, end, preload;

	/* Slots that are behind the wheel's time are of its next turn. */
	position += (nr - position) & TW_ENTRY_LVL_MASK;
	start = position << shift;
	end = ((position + 1) << shift) - 1;
	preload = start - (1LL << shift) + wheel->phase % max(1LL << shift >> 2, 1LL);
	return tw_so(start < wheel->reach[level]) &&
	       tw_so(slot->first >= start && slot->first <= end) &&
	       tw_so(wheel->next <= slot->first) &&
	       tw_so(!level || slot->count <= TW_ENTRY_SMALL ||
		     wheel->next <= preload);
}

static bool tw_check_entry_slot(const struct tw_entries *wheel, unsigned int level,
				unsigned int nr)
{
	const struct tw_entry_slot *slot = &wheel->slots[level * TW_ENTRY_LVL_SIZE + nr];
	bool occupied = wheel->occupied[level][nr / 64] >> (nr % 64) & 1;

	if (!tw_so(occupied == !!slot->count))
		return false;
	if (occupied)
		return tw_check_when(wheel, level, nr);
	return tw_so(slot->first == S64_MAX);
}

static bool tw_check_reach(const struct tw_entries *wheel, unsigned int level)
{
	unsigned int turn = (level + 1) * TW_ENTRY_LVL_CLK_SHIFT;

	return tw_so(wheel->reach[level] == ((wheel->clk >> turn) + 2) << turn);
}

/* Blocks that are in no slot are on the list, and no others. */
static bool tw_check_free_blocks(const struct tw_entries *wheel, u32 left)
{
	u32 block = wheel->free;

	for (; block && left; left--) {
		if (!tw_so(block < wheel->fresh))
			return false;
		block = tw_head(wheel, block);
	}
	return tw_so(!left) && tw_so(!block);
}

/* The timers that have a place are as many as the entries. */
static bool tw_check_places(const struct tw_entries *wheel, u32 nr)
{
	u32 i, places = 0;

	for (i = 0; i < nr; i++)
		places += tw_entries_has(wheel, i);
	return tw_so(places == wheel->pending);
}

/**
 * tw_check_entries() - is a wheel of shared timers as it must be?
 * @wheel: the wheel
 * @nr: its timers
 *
 * Return: true if so.
 */
bool tw_check_entries(const struct tw_entries *wheel, u32 nr)
{
	struct tw_found_entries found = {};
	unsigned int level, i;

	for (level = 0; level < TW_ENTRY_LVL_DEPTH; level++) {
		if (!tw_check_reach(wheel, level))
			return false;
		for (i = 0; i < TW_ENTRY_LVL_SIZE; i++) {
			unsigned int slot = level * TW_ENTRY_LVL_SIZE + i;

			if (!tw_check_entry_slot(wheel, level, i) ||
			    !tw_check_stack(wheel, slot, nr, &found))
				return false;
			found.levels |= wheel->slots[slot].count ? 1U << level : 0;
		}
	}
	return tw_so(wheel->levels == found.levels) &&
	       tw_so(wheel->pending == found.entries) &&
	       tw_so(wheel->pending || wheel->next == S64_MAX) &&
	       tw_so(wheel->fresh <= tw_entries_blocks(nr)) &&
	       tw_check_free_blocks(wheel, wheel->fresh - 1 - found.blocks) &&
	       tw_check_places(wheel, nr);
}
