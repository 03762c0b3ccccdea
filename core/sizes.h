/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1-or-later */
/*
 * Sizes that could as well be larger or smaller: only speed and memory depend on them.
 *
 * With TW_SMALL_WORLD they are tiny. Then what happens only at the end of one of them
 * happens all the time, so random tests come there.
 */
#ifndef TW_SIZES_H
#define TW_SIZES_H

#include <linux/limits.h>

#ifndef TW_SMALL_WORLD

/* A chunk has 2^this nodes: as much memory as can be had always */
#define TW_CHUNK_SHIFT 9

/* The first chunk has so many, until that is too few: a multiple of TW_WORD_NODES */
#define TW_FEW_NODES 64

/* Free nodes are looked for in this many at a time, 64 at most. */
#define TW_WORD_NODES 64

/* The last generation of a node, 2^n - 1: then it is not given out again. */
#define TW_LAST_GEN U32_MAX

/* Empty chunks are given back only while this many nodes are left free. */
#define TW_TABLE_KEEP 256

/* Length of a table's directory when it is needed first */
#define TW_FIRST_DIR 16

/* Operations, or expiries that are counted, under one hold of the lock */
#define TW_BATCH 256

/* Operations under one hold of the lock if other processors wait for it */
#define TW_CONTENDED 32U

/* Operations that are copied: of more, the page that they are in is held. */
#define TW_COPIED 8

/* Bytes of events that are copied at a time */
#define TW_EVENT_BYTES 1024

/* Timers that are written and taken out one by one, under one hold of the lock */
#define TW_TAKEN 32

/* Nodes and slots that one run touches: unless set otherwise, and at least */
#define TW_BUDGET 256
#define TW_BUDGET_MIN 16

/* A level is 2^this times as coarse as the one below. Unit tests set it, too. */
#ifndef TW_LVL_CLK_SHIFT
#define TW_LVL_CLK_SHIFT 6
#endif

/*
 * The levels reach to KTIME_MAX in ticks of 1 us; what lies beyond, see
 * TW_TICK_MAX, is looked at when the end of their reach comes.
 */
#ifndef TW_REACH_BITS
#define TW_REACH_BITS 54
#endif

/*
 * A wheel that has one chunk of nodes has this many levels, as long as none of its timers is
 * further away: a day, if a tick is 4 ms
 */
#define TW_FEW_LEVELS 4

/*
 * The lowest levels have 2^this lists a slot, so that as many nodes can be on their way
 * from memory at a time. (More don't make it faster; for higher levels, they cost more
 * memory than they save time.)
 */
#define TW_STRIPE_BITS 3
#define TW_STRIPED_LEVELS 3

/*
 * A node is prefetched TW_AHEAD operations before its turn, and its neighbours
 * TW_AHEAD_LINKS before it, which is less.
 */
#define TW_AHEAD 64U
#define TW_AHEAD_LINKS 16U

/* Prefetching pays from this many operations on, and in a table of this many chunks. */
#define TW_AHEAD_LEAST 4
#define TW_AHEAD_CHUNKS 256

/*
 * A slot of this many nodes at most, a power of two, is small: it is cascaded
 * together with its first expiry and causes no wake-up of its own.
 */
#ifndef TW_SMALL_SLOT
#define TW_SMALL_SLOT 32
#endif

/*
 * The wheel of shared timers, see entries.h: a level has twice 2^this slots, and there are
 * this many levels. What lies beyond them is looked at when their end comes: in more than an
 * hour, if a tick is 1 us.
 */
#ifndef TW_ENTRY_LVL_CLK_SHIFT
#define TW_ENTRY_LVL_CLK_SHIFT 8
#endif
#ifndef TW_ENTRY_LVL_DEPTH
#define TW_ENTRY_LVL_DEPTH 4
#endif

/*
 * The entries of a slot are in blocks of 2^this words of 32 bits: a cache line. The first
 * word has the number of the next block, and in this many bits that of the slot.
 */
#define TW_ENTRY_BLOCK_BITS 4
#define TW_ENTRY_SLOT_BITS 11

/* Inspecting this many shared timers is as much work as a node */
#define TW_INSPECT_PER_NODE 2

/* Shared timers that have a bit together where dirty ones are scanned for: 64 at least */
#define TW_GROUP 256

#else /* TW_SMALL_WORLD */

/* No less than a batch can want */
#define TW_CHUNK_SHIFT 3
#define TW_FEW_NODES 4
#define TW_WORD_NODES 4
#ifndef TW_LAST_GEN
#define TW_LAST_GEN 15
#endif
#define TW_TABLE_KEEP 0
#define TW_FIRST_DIR 2
#define TW_BATCH 4
#define TW_CONTENDED 1U
#define TW_COPIED 2
#define TW_EVENT_BYTES 64
#define TW_TAKEN 2
#define TW_BUDGET 8
#define TW_BUDGET_MIN 4
#ifndef TW_LVL_CLK_SHIFT
#define TW_LVL_CLK_SHIFT 1
#endif
#ifndef TW_REACH_BITS
#define TW_REACH_BITS 24
#endif
#define TW_FEW_LEVELS 2
#define TW_STRIPE_BITS 1
#define TW_STRIPED_LEVELS 2
#define TW_AHEAD 4U
#define TW_AHEAD_LINKS 2U
#define TW_AHEAD_LEAST 2
#define TW_AHEAD_CHUNKS 3
#ifndef TW_SMALL_SLOT
#define TW_SMALL_SLOT 2
#endif
#define TW_GROUP 64
#ifndef TW_ENTRY_LVL_CLK_SHIFT
#define TW_ENTRY_LVL_CLK_SHIFT 1
#endif
#ifndef TW_ENTRY_LVL_DEPTH
#define TW_ENTRY_LVL_DEPTH 24
#endif
#define TW_ENTRY_BLOCK_BITS 2
#define TW_ENTRY_SLOT_BITS 7
#define TW_INSPECT_PER_NODE 1

#endif /* TW_SMALL_WORLD */

#endif /* TW_SIZES_H */
