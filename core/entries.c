// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel of shared timers: how it finds the next slot, and keeps blocks of numbers. See
 * entries.h.
 */
#include <linux/bitops.h>
#include <linux/prefetch.h>
#include <linux/string.h>

#include "entries.h"

#define TW_WHEEL tw_entries
#define TW_SHIFT TW_ENTRY_LVL_CLK_SHIFT
#include "levels.h"

/* Ticks that are so far apart have the same slot on each level. A power of 2 */
#define TW_ENTRY_SPAN \
	((s64)TW_ENTRY_LVL_SIZE << (TW_ENTRY_LVL_DEPTH - 1) * TW_ENTRY_LVL_CLK_SHIFT)

static inline struct tw_entry_slot TW_MEM *tw_slot_of(const struct tw_entries TW_MEM *wheel,
					       unsigned int level, s64 position)
{
	return &wheel->slots[tw_slot_nr(level, position)];
}

static inline u32 tw_block_of(u32 place)
{
	return place >> TW_ENTRY_BLOCK_BITS;
}

static inline u32 TW_MEM *tw_block_head(const struct tw_entries TW_MEM *wheel, u32 block)
{
	return &wheel->cells[block << TW_ENTRY_BLOCK_BITS];
}

/**
 * tw_entries_blocks() - how many blocks does a wheel take?
 * @nr: timers
 *
 * All that are full, one that is not for each slot with entries, and the one that
 * is none.
 *
 * Return: the number.
 */
u32 tw_entries_blocks(u32 nr)
{
	return nr / TW_BLOCK_ENTRIES + min(nr, TW_ENTRY_ALL_SLOTS) + 1;
}

/* The wheel's time is @clk, to which there is nothing to do. */
static void tw_entries_set_clk(struct tw_entries TW_MEM *wheel, s64 clk)
{
	unsigned int level;

	wheel->clk = clk;
	for (level = TW_FIRST; level < TW_ENTRY_LVL_DEPTH && TW_GO_ON; level++) {
		s64 reach = tw_reach(level, clk);

		/* Higher levels turn only when lower ones do. */
		if (wheel->reach[level] == reach)
			break;
		wheel->reach[level] = reach;
	}
}

/**
 * tw_entries_init() - make an empty wheel
 * @wheel: the wheel, with its slots, with room for its cells, and with entries that
 *	are in no slot
 * @phase: any number, best one that wheels of the same machine don't share: see wheel.h
 *
 * It is the tick 0. Whatever it really is, it is soon there while it is empty.
 */
void tw_entries_init(struct tw_entries TW_MEM *wheel, u32 phase)
{
	unsigned int i;

	for (i = TW_FIRST; i < TW_ENTRY_ALL_SLOTS && TW_GO_ON; i++)
		wheel->slots[i] = (struct tw_entry_slot){
			.first = S64_MAX,
			.top = TW_ENTRY_EMPTY,
		};
	memset(wheel->occupied, 0, sizeof(wheel->occupied));
	memset(wheel->reach, 0, sizeof(wheel->reach));
	wheel->tick_offset = 0;
	wheel->least = 0;
	wheel->next = S64_MAX;
	wheel->pending = 0;
	wheel->levels = 0;
	wheel->free = 0;
	wheel->fresh = 1;
	wheel->phase = phase;
	tw_entries_set_clk(wheel, 1);
}

/* All slots are those of other ticks, @spans later: whole spans, or whole ones less than 0. */
static void tw_entries_shift(struct tw_entries TW_MEM *wheel, s64 spans)
{
	unsigned int i;

	wheel->clk += spans;
	if (wheel->next != S64_MAX)
		wheel->next += spans;
	for (i = TW_FIRST; i < TW_ENTRY_LVL_DEPTH && TW_GO_ON; i++)
		wheel->reach[i] += spans;
	for (i = TW_FIRST; i < TW_ENTRY_ALL_SLOTS && TW_GO_ON; i++)
		if (wheel->slots[i].count)
			wheel->slots[i].first += spans;
}

/*
 * The clock was set back: it is @now, which lies before the wheel's time, @least, and that
 * goes on. So the wheel's ticks grow with each time, but not without end: what is a whole
 * span of all levels is taken off again.
 */
static void tw_entries_set_back(struct tw_entries TW_MEM *wheel, s64 now, s64 least)
{
	s64 shift = least - now;
	/* @least may be far ahead of @clk, which is not to be less than 0. */
	s64 spans = min(shift, wheel->clk) & ~(TW_ENTRY_SPAN - 1);

	wheel->tick_offset = shift - spans;
	wheel->least -= spans;
	tw_entries_shift(wheel, -spans);
}

/*
 * The clock was set so far forwards, to @now, that the wheel would go around many times to get
 * there, and all that is further away than it reaches would be inspected and put back each
 * time: 400,000 times from 1970 to the present, in ticks of 1 us. All slots are over by then,
 * so they may as well be those of a span that ended just now. Until they were all inspected,
 * the time must not go back before @now.
 */
static void tw_entries_skip(struct tw_entries TW_MEM *wheel, s64 now)
{
	s64 ahead = now - wheel->clk;

	tw_entries_shift(wheel, (ahead & ~(TW_ENTRY_SPAN - 1)) - TW_ENTRY_SPAN);
	wheel->least = now;
}

/* The tick of the wheel that it is now */
static s64 tw_entries_now(struct tw_entries TW_MEM *wheel, s64 now)
{
	s64 least = max(wheel->clk - 1, wheel->least);

	if (unlikely(now + wheel->tick_offset < least))
		tw_entries_set_back(wheel, now, least);
	else if (unlikely(now + wheel->tick_offset - wheel->clk >= 2 * TW_ENTRY_SPAN))
		tw_entries_skip(wheel, now + wheel->tick_offset);
	return now + wheel->tick_offset;
}

/**
 * tw_entries_forward() - let time pass in which there is nothing to do
 * @wheel: the wheel
 * @now: the tick that it is now
 *
 * Does nothing when there is something to do: that is for tw_entries_turn().
 * The nearer the wheel's time, the lower is the level at which an entry starts.
 */
void tw_entries_forward(struct tw_entries TW_MEM *wheel, s64 now)
{
	now = tw_entries_now(wheel, now);
	if (now >= wheel->clk && now < wheel->next)
		tw_entries_set_clk(wheel, now + 1);
}

/**
 * tw_entries_grow() - put an empty block on top of a slot
 * @wheel: the wheel
 * @slot: the slot, of which all blocks are full
 * @tick: of the wheel, at which the entry expires that comes next
 *
 * Return: the top of the slot: the block's head.
 */
u32 tw_entries_grow(struct tw_entries TW_MEM *wheel, struct tw_entry_slot TW_MEM *slot, s64 tick)
{
	unsigned int nr = slot - wheel->slots;
	unsigned int level = nr / TW_ENTRY_LVL_SIZE;
	u32 block = wheel->free;

	if (block)
		wheel->free = *tw_block_head(wheel, block);
	else
		block = wheel->fresh++;
	*tw_block_head(wheel, block) = tw_block_of(slot->top) << TW_ENTRY_SLOT_BITS | nr;
	if (!slot->count)
		tw_slot_begin(wheel, nr);
	else if (slot->count == TW_ENTRY_SMALL && level)
		wheel->next = min(wheel->next,
				  tw_preload_start(wheel, level, tw_position(level, tick)));
	return block << TW_ENTRY_BLOCK_BITS;
}

/* The topmost block of a slot is empty. */
static void tw_entries_shrink(struct tw_entries TW_MEM *wheel, struct tw_entry_slot TW_MEM *slot)
{
	u32 block = tw_block_of(slot->top);
	u32 TW_MEM *head = tw_block_head(wheel, block);

	slot->top = *head >> TW_ENTRY_SLOT_BITS << TW_ENTRY_BLOCK_BITS | TW_BLOCK_MASK;
	*head = wheel->free;
	wheel->free = block;
	if (!slot->count) {
		slot->first = S64_MAX;
		tw_slot_end(wheel, slot - wheel->slots);
	}
}

/**
 * tw_entries_detach() - detach entries from a slot
 * @wheel: the wheel
 * @slot: the slot, with entries
 * @numbers: out: their numbers
 * @max_nr: how many at most; never more than TW_BLOCK_ENTRIES are detached
 *
 * Return: how many.
 */
unsigned int tw_entries_detach(struct tw_entries TW_MEM *wheel, struct tw_entry_slot TW_MEM *slot,
			       u32 TW_MEM *numbers, unsigned int max_nr)
{
	unsigned int i, n = min(max_nr, slot->top & TW_BLOCK_MASK);
	const u32 TW_MEM *cells = &wheel->cells[slot->top - n + 1];

	for (i = TW_FIRST; i < n && TW_GO_ON; i++) {
		numbers[i] = cells[i];
		wheel->timers[cells[i]].place = 0;
	}
	slot->top -= n;
	slot->count -= n;
	wheel->pending -= n;
	if (!(slot->top & TW_BLOCK_MASK)) {
		tw_entries_shrink(wheel, slot);
		prefetch(tw_block_head(wheel, tw_block_of(slot->top)));
	}
	return n;
}

/**
 * tw_entries_del() - take a timer out
 * @wheel: the wheel
 * @nr: the timer's number; it is in a slot
 */
void tw_entries_del(struct tw_entries TW_MEM *wheel, u32 nr)
{
	u32 place = wheel->timers[nr].place;
	u32 head = *tw_block_head(wheel, tw_block_of(place));
	struct tw_entry_slot TW_MEM *slot =
		&wheel->slots[head & ((1U << TW_ENTRY_SLOT_BITS) - 1)];
	u32 last = wheel->cells[slot->top];

	wheel->cells[place] = last;
	wheel->timers[last].place = place;
	wheel->timers[nr].place = 0;
	slot->top--;
	slot->count--;
	wheel->pending--;
	if (!(slot->top & TW_BLOCK_MASK))
		tw_entries_shrink(wheel, slot);
}

/* Is a large slot to be cascaded ahead of time: the one after the present one? */
static bool tw_entries_preload(const struct tw_entries TW_MEM *wheel, s64 now,
			       struct tw_turn *turn)
{
	u32 levels = wheel->levels & ~1U;

	while (levels && TW_GO_ON) {
		unsigned int l = fls(levels) - 1;
		s64 position = tw_position(l, wheel->clk);

		/* The slot begins just now if it is the present one. */
		turn->slot = tw_slot_of(wheel, l, position);
		if (turn->slot->count <= TW_ENTRY_SMALL &&
		    now >= tw_preload_start(wheel, l, position + 1))
			turn->slot = tw_slot_of(wheel, l, ++position);
		if (turn->slot->count > TW_ENTRY_SMALL) {
			turn->ahead = tw_position_start(l, position) - now;
			return true;
		}
		levels &= ~(1U << l);
	}
	return false;
}

/* When the wheel has to look at @level for the first time. */
static s64 tw_level_wakes(const struct tw_entries TW_MEM *wheel, unsigned int level)
{
	s64 position = tw_find(wheel, level);
	const struct tw_entry_slot TW_MEM *slot = tw_slot_of(wheel, level, position);
	s64 next;

	if (!level)
		return position;
	if (slot->count > TW_ENTRY_SMALL)
		return tw_preload_start(wheel, level, position);
	next = slot->first;
	/* The slot after it may want to be preloaded meanwhile. */
	slot = tw_slot_of(wheel, level, position + 1);
	if (slot->count > TW_ENTRY_SMALL)
		next = min(next, tw_preload_start(wheel, level, position + 1));
	return next;
}

static s64 tw_entries_wakes(const struct tw_entries TW_MEM *wheel)
{
	s64 next = S64_MAX;
	u32 levels;

	for (levels = wheel->levels; levels && TW_GO_ON; levels &= levels - 1)
		next = min(next, tw_level_wakes(wheel, __ffs(levels)));
	return next;
}

/**
 * tw_entries_turn() - what is there to do by now?
 * @wheel: the wheel
 * @now: the tick that it is now
 * @turn: out: a slot with entries, all of which are to be detached, and put back if they do
 *	not expire, before this is asked again
 *
 * What is due comes before what is only preloaded. (A part of a slot may be left for
 * the next time.)
 *
 * Return: true, or false when there is nothing to do. Then the wheel's time is the
 * tick after @now.
 */
bool tw_entries_turn(struct tw_entries TW_MEM *wheel, s64 now, struct tw_turn *turn)
{
	unsigned int level = 0;
	s64 due;

	now = tw_entries_now(wheel, now);
	if (now < wheel->next) {
		if (now >= wheel->clk)
			tw_entries_set_clk(wheel, now + 1);
		return false;
	}
	due = tw_first_due(wheel, &level);
	turn->tick = 0;
	if (due <= now) {
		if (due > wheel->clk)
			tw_entries_set_clk(wheel, due);
		if (!level)
			turn->tick = due - wheel->tick_offset;
		turn->ahead = 0;
		turn->slot = tw_slot_of(wheel, level, tw_position(level, due));
		return true;
	}
	if (now >= wheel->clk)
		tw_entries_set_clk(wheel, now + 1);
	if (tw_entries_preload(wheel, now, turn))
		return true;
	wheel->next = tw_entries_wakes(wheel);
	return false;
}

/**
 * tw_entries_any() - a timer of the wheel
 * @wheel: the wheel, in which there is one
 *
 * Return: its number: it is in the earliest slot of its level.
 */
u32 tw_entries_any(const struct tw_entries TW_MEM *wheel)
{
	return wheel->cells[wheel->slots[tw_any_slot(wheel)].top];
}
