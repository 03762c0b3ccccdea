/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Levels of slots: which slots are occupied, and when each of them comes.
 *
 * Both wheels have such levels, see wheel.h and entries.h, but of other sizes. For these to
 * be constants, this is a template: wheel.c and entries.c include it, and say before what
 * struct it is for (TW_WHEEL), and that a level is 2^TW_SHIFT times as coarse as the one
 * below. It has twice 2^TW_SHIFT slots.
 *
 * A level's slots are a ring, and time goes around it. So a slot comes again and again. A
 * position is one of these times: it is counted from tick 0 on, in slots of its level.
 */
#include "dialect.h"

#define TW_SIZE (2U << TW_SHIFT)
#define TW_SIZE_WORDS ((TW_SIZE + 63) / 64)

/* The position that holds @tick */
static inline s64 tw_position(unsigned int level, s64 tick)
{
	return tick >> level * TW_SHIFT;
}

static inline s64 tw_position_start(unsigned int level, s64 position)
{
	return position << level * TW_SHIFT;
}

/* The first tick that is beyond the two turns of @level, when it is @clk */
static inline s64 tw_reach(unsigned int level, s64 clk)
{
	return tw_position_start(level + 1, tw_position(level + 1, clk) + 2);
}

/* The number of the slot of @position */
static inline unsigned int tw_slot_nr(unsigned int level, s64 position)
{
	return level * TW_SIZE + (position & (TW_SIZE - 1));
}

/* The tick at which the slot of @position begins to be preloaded, if it is large */
static s64 tw_preload_start(const struct TW_WHEEL TW_MEM *wheel, unsigned int level, s64 position)
{
	u64 quarter = ((1ULL << level * TW_SHIFT) - 1) / 4;

	return tw_position_start(level, position - 1) + (wheel->phase & quarter);
}

/* A slot has its first timer. */
static inline void tw_slot_begin(struct TW_WHEEL TW_MEM *wheel, unsigned int slot)
{
	unsigned int level = slot / TW_SIZE, nr = slot % TW_SIZE;

	wheel->occupied[level][nr / 64] |= 1ULL << (nr % 64);
	wheel->levels |= 1U << level;
}

/* The last timer of a slot is gone. */
static inline void tw_slot_end(struct TW_WHEEL TW_MEM *wheel, unsigned int slot)
{
	unsigned int i, level = slot / TW_SIZE, nr = slot % TW_SIZE;
	u64 all = 0;

	wheel->occupied[level][nr / 64] &= ~(1ULL << (nr % 64));
	for (i = TW_FIRST; i < TW_SIZE_WORDS && TW_GO_ON; i++)
		all |= wheel->occupied[level][i];
	if (all)
		return;
	wheel->levels &= ~(1U << level);
	if (!wheel->levels)
		wheel->next = S64_MAX;
}

/* The first position of @level of which the slot is occupied. There has to be one. */
static s64 tw_find(const struct TW_WHEEL TW_MEM *wheel, unsigned int level)
{
	const u64 TW_MEM *bits = wheel->occupied[level];
	s64 from = tw_position(level, wheel->clk);
	unsigned int start = from & (TW_SIZE - 1);
	unsigned int word = start / 64;
	u64 found = bits[word] & (~0ULL << (start % 64));
	unsigned int i, nr;

	for (i = TW_FIRST; !found && i < TW_SIZE_WORDS && TW_GO_ON; i++) {
		word = (word + 1) % TW_SIZE_WORDS;
		found = bits[word];
	}
	nr = word * 64 + __ffs64(found);
	return from + ((nr - start) & (TW_SIZE - 1));
}

/* The first tick in any slot, and of those that share it the highest level. */
static s64 tw_first_due(const struct TW_WHEEL TW_MEM *wheel, unsigned int *level)
{
	u32 levels = wheel->levels;
	s64 first = S64_MAX;

	while (levels && TW_GO_ON) {
		unsigned int l = fls(levels) - 1;
		s64 start = tw_position_start(l, tw_find(wheel, l));

		if (start < first) {
			first = start;
			*level = l;
		}
		levels &= ~(1U << l);
	}
	return first;
}

/* An occupied slot, of which there has to be one: the earliest of its level. */
static inline unsigned int tw_any_slot(const struct TW_WHEEL TW_MEM *wheel)
{
	unsigned int level = fls(wheel->levels) - 1;

	return tw_slot_nr(level, tw_find(wheel, level));
}
