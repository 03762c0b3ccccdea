/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the BPF program and its loader agree on. Nothing here is a program's to see: it maps the
 * area, whose head says where everything is.
 */
#ifndef TW_BPF_LAYOUT_H
#define TW_BPF_LAYOUT_H

#include "twheel_bpf.h"

/*
 * The area is an array of pages that a program maps as one: page 0 is the head, then come the
 * groups, the dirty bits, the ring and the words, each from a page of its own on.
 */
#define TW_BPF_PAGE 4096U

/* As TW_GROUP of the module: timers that have a bit in the groups together */
#define TW_BPF_GROUP 256U

/* Where the arena lies for the BPF program. Nobody maps it. */
#define TW_BPF_ARENA 0x10000000

/**
 * struct tw_bpf_config - what the loader says of a wheel, before the verifier looks at it
 * @mask: timers, a power of two, less one
 * @groups: first page of the groups
 * @dirty: first page of the dirty bits
 * @ring: first page of the ring
 * @words: first page of the words
 * @account: of the user, in the map of accounts; that of all is 0
 * @phase: see tw_entries_init()
 * @__unused: 0
 * @tick: in ns
 */
struct tw_bpf_config {
	__u32 mask;
	__u32 groups;
	__u32 dirty;
	__u32 ring;
	__u32 words;
	__u32 account;
	__u32 phase;
	__u32 __unused;
	__u64 tick;
};

/**
 * struct tw_bpf_account - what a user, or all together, may still take
 * @until: the time, in ns, until which all that was paid for is paid off: what begins after it
 *	has credit
 * @__unused: a cache line each
 */
struct tw_bpf_account {
	__u64 until;
	__u64 __unused[7];
};

/*
 * Of which user's wheels a map is, its name says: what it is, four letters, and the uid in
 * hexadecimal. These are the large ones; each wheel is held as long as one of them is.
 */
#define TW_BPF_NAME 16
#define TW_BPF_NAMES "tw_%.4s%08x"

/**
 * struct tw_bpf_held - a map that there is
 * @name: its name
 * @entries: how many it has; bytes of a ring buffer, pages of an arena
 * @value: bytes of each, or 0
 */
struct tw_bpf_held {
	char name[TW_BPF_NAME];
	__u32 entries;
	__u32 value;
};

/* Where everything is, in pages. Returns how many. */
static inline __u32 tw_bpf_lay_out(__u32 timers, struct tw_bpf_config *config)
{
	__u32 page = 1;

	config->mask = timers - 1;
	config->groups = page;
	page += (timers / TW_BPF_GROUP + 8 * TW_BPF_PAGE - 1) / (8 * TW_BPF_PAGE);
	config->dirty = page;
	page += (timers + 8 * TW_BPF_PAGE - 1) / (8 * TW_BPF_PAGE);
	config->ring = page;
	page += (timers * sizeof(__u32) + TW_BPF_PAGE - 1) / TW_BPF_PAGE;
	config->words = page;
	page += (timers * sizeof(__u64) + TW_BPF_PAGE - 1) / TW_BPF_PAGE;
	return page;
}

/*
 * Pages of the arena, see tw_start(): the wheel and its slots, blocks of 64 bytes for 15 numbers
 * each, of which each slot may have one that is not full, and 8 bytes for each timer.
 */
static inline __u32 tw_bpf_arena_pages(__u32 timers)
{
	__u64 blocks = timers / 15 + (timers < 2048 ? timers : 2048) + 1;

	return (40960 + blocks * 64 + timers * 8ULL + TW_BPF_PAGE - 1) / TW_BPF_PAGE;
}

#endif /* TW_BPF_LAYOUT_H */
