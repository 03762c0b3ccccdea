/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wheel of shared timers: it keeps timers that are nothing but a number here.
 *
 * Its levels are those of wheel.h: TW_ENTRY_LVL_DEPTH levels of TW_ENTRY_LVL_SIZE slots,
 * two turns each, so that a slot can cascade while the slot before it still runs. A slot
 * with many entries cascades ahead of time and in pieces, and each wheel begins with that
 * at a tick of its own, as those of wheel.h do.
 *
 * A slot is a stack of numbers, in blocks of a cache line each. All blocks of a slot but
 * the topmost are full. So a fixed number of blocks is enough, see tw_entries_blocks(),
 * and nothing is allocated later. An entry that is deleted from the middle is replaced by
 * the topmost one.
 *
 * The wheel does not know when its entries expire: that is in the words of the shared
 * area. tw_entries_turn() finds a slot that is due. The caller detaches its numbers, a
 * block at a time, prefetches and inspects their words, and adds those again that are
 * still pending.
 *
 * Callers count in ticks of the host. The wheel's own ticks go on when the clock is set
 * back. Then entries come too early, and are added again.
 *
 * Pure: no locks, no time sources, no allocation. The caller serialises all calls on a
 * wheel.
 */
#ifndef TW_ENTRIES_H
#define TW_ENTRIES_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "dialect.h"
#include "sizes.h"

#define TW_ENTRY_LVL_SIZE (2U << TW_ENTRY_LVL_CLK_SHIFT)
#define TW_ENTRY_LVL_MASK (TW_ENTRY_LVL_SIZE - 1)
#define TW_ENTRY_ALL_SLOTS (TW_ENTRY_LVL_DEPTH * TW_ENTRY_LVL_SIZE)
#define TW_ENTRY_LVL_WORDS ((TW_ENTRY_LVL_SIZE + 63) / 64)
#define TW_ENTRY_REACH (1LL << (TW_ENTRY_LVL_DEPTH * TW_ENTRY_LVL_CLK_SHIFT))

/* Where in its block a cell is. The first is the block's head, all others are entries. */
#define TW_BLOCK_MASK ((1U << TW_ENTRY_BLOCK_BITS) - 1)
#define TW_BLOCK_ENTRIES TW_BLOCK_MASK

/*
 * A slot of at most this many entries is small: it is cascaded together with its first
 * expiry and causes no wake-up of its own.
 */
#define TW_ENTRY_SMALL (2 * TW_BLOCK_ENTRIES)

/* The top of an empty slot: as if that was in a full block with the number 0 */
#define TW_ENTRY_EMPTY TW_BLOCK_MASK

/**
 * struct tw_timer - a timer
 * @place: of its number among the cells, or 0 if it is in no slot
 * @last_expiry: for the caller: its position in the ring
 */
struct tw_timer {
	u32 place;
	u32 last_expiry;
};

/**
 * struct tw_entry_slot - stack of numbers
 * @first: no entry expires before that: a tick of the wheel, or S64_MAX
 * @top: place of the topmost one
 * @count: how many
 */
struct tw_entry_slot {
	s64 first;
	u32 top;
	u32 count;
};

/**
 * struct tw_entries - a wheel
 * @timers: the timers, by their numbers
 * @cells: blocks of cells
 * @slots: TW_ENTRY_ALL_SLOTS slots
 * @tick_offset: tick of the wheel less tick of the host
 * @clk: the tick that comes next. All before it are done
 * @least: the time does not go back before this tick: see tw_entries_skip()
 * @next: there is nothing to do before this tick
 * @reach: of each level, the first tick that it can't hold
 * @pending: entries in slots
 * @levels: bit n is set when level n has an occupied slot
 * @free: first of a list of free blocks, or 0
 * @fresh: this block and all after it were never used
 * @phase: where in a slot's width this wheel begins to preload the next
 * @occupied: a bit for each slot
 */
struct tw_entries {
	struct tw_timer TW_MEM *timers;
	u32 TW_MEM *cells;
	struct tw_entry_slot TW_MEM *slots;
	s64 tick_offset;
	s64 clk;
	s64 least;
	s64 next;
	s64 reach[TW_ENTRY_LVL_DEPTH];
	u32 pending;
	u32 levels;
	u32 free;
	u32 fresh;
	u32 phase;
	u64 occupied[TW_ENTRY_LVL_DEPTH][TW_ENTRY_LVL_WORDS];
};

/**
 * struct tw_turn - what there is to do
 * @slot: the slot of which entries are to be detached
 * @tick: what expires until then expires now; or 0 if the slot is cascaded
 * @ahead: in how many ticks that is due; 0 if it is due by now
 */
struct tw_turn {
	struct tw_entry_slot TW_MEM *slot;
	s64 tick;
	s64 ahead;
};

u32 tw_entries_blocks(u32 nr);
void tw_entries_init(struct tw_entries TW_MEM *wheel, u32 phase);
void tw_entries_forward(struct tw_entries TW_MEM *wheel, s64 now);
bool tw_entries_turn(struct tw_entries TW_MEM *wheel, s64 now, struct tw_turn *turn);
unsigned int tw_entries_detach(struct tw_entries TW_MEM *wheel, struct tw_entry_slot TW_MEM *slot,
			       u32 TW_MEM *numbers, unsigned int max_nr);
void tw_entries_del(struct tw_entries TW_MEM *wheel, u32 nr);
u32 tw_entries_any(const struct tw_entries TW_MEM *wheel);

/* The rare part of what follows. */
u32 tw_entries_grow(struct tw_entries TW_MEM *wheel, struct tw_entry_slot TW_MEM *slot, s64 tick);

/**
 * tw_entries_next() - when is there something to do again?
 * @wheel: the wheel
 *
 * Return: a tick of the host before which there is nothing to do, or S64_MAX.
 */
static inline s64 tw_entries_next(const struct tw_entries TW_MEM *wheel)
{
	return wheel->next == S64_MAX ? S64_MAX : wheel->next - wheel->tick_offset;
}

/* Is a timer in the wheel? */
static inline bool tw_entries_has(const struct tw_entries TW_MEM *wheel, u32 nr)
{
	return wheel->timers[nr].place;
}

/**
 * tw_entries_add() - put a timer into the wheel
 * @wheel: the wheel
 * @nr: the timer's number; it is in no slot
 * @tick: when it expires, from 0 on: as soon as can be if that is over
 */
static __always_inline void tw_entries_add(struct tw_entries TW_MEM *wheel, u32 nr, s64 tick)
{
	struct tw_entry_slot TW_MEM *slot;
	unsigned int level = 0;
	u32 top;

	tick += wheel->tick_offset;
	if (unlikely((u64)(tick - wheel->clk) >= TW_ENTRY_REACH))
		tick = tick < wheel->clk ? wheel->clk : wheel->clk + TW_ENTRY_REACH - 1;
	while (tick >= wheel->reach[level] && TW_GO_ON)
		level++;
	slot = &wheel->slots[level * TW_ENTRY_LVL_SIZE +
			     (tick >> level * TW_ENTRY_LVL_CLK_SHIFT & TW_ENTRY_LVL_MASK)];
	top = slot->top;
	if (unlikely((top & TW_BLOCK_MASK) == TW_BLOCK_MASK))
		top = tw_entries_grow(wheel, slot, tick);
	slot->top = ++top;
	slot->count++;
	if (tick < slot->first)
		slot->first = tick;
	if (tick < wheel->next)
		wheel->next = tick;
	wheel->cells[top] = nr;
	wheel->timers[nr].place = top;
	wheel->pending++;
}

#endif /* TW_ENTRIES_H */
