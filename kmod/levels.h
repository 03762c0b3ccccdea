/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Which slots of a level are occupied: what both wheels know of theirs, a bit for each.
 *
 * A level's slots are a ring. Their number is a power of two.
 */
#ifndef TW_LEVELS_H
#define TW_LEVELS_H

#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/types.h>

/* Words of bits that so many slots have */
#define TW_BITS_WORDS(slots) (((slots) + 63) / 64)

static inline void tw_bit_set(u64 *bits, unsigned int nr)
{
	bits[nr / 64] |= 1ULL << (nr % 64);
}

static inline void tw_bit_clear(u64 *bits, unsigned int nr)
{
	bits[nr / 64] &= ~(1ULL << (nr % 64));
}

static __always_inline bool tw_bits_empty(const u64 *bits, unsigned int slots)
{
	u64 all = 0;
	unsigned int i;

	for (i = 0; i < TW_BITS_WORDS(slots); i++)
		all |= bits[i];
	return !all;
}

/**
 * tw_bits_find() - the first occupied slot of a level from a position on
 * @bits: a bit for each slot
 * @slots: how many, a constant
 * @from: the oldest position that can be occupied, counted in slots from tick 0
 *
 * Return: the position. One has to be occupied.
 */
static __always_inline s64 tw_bits_find(const u64 *bits, unsigned int slots, s64 from)
{
	unsigned int start = from & (slots - 1);
	unsigned int word = start / 64;
	u64 found = bits[word] & (~0ULL << (start % 64));
	unsigned int i, nr;

	for (i = 0; !found && i < TW_BITS_WORDS(slots); i++) {
		word = (word + 1) % TW_BITS_WORDS(slots);
		found = bits[word];
	}
	nr = word * 64 + __ffs64(found);
	return from + ((nr - start) & (slots - 1));
}

#endif /* TW_LEVELS_H */
