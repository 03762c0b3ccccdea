/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared timers: their deadlines are words in memory that the program and the kernel
 * share. So to move or to cancel a timer is an atomic operation on its word, and no system
 * call. See &struct twheel_shared, and twheel(7) for the protocol.
 *
 * The kernel tracks a timer by an entry in a wheel of its own, see entries.h. The entry is
 * at the deadline that the kernel found in the word last, or before it. When the wheel
 * comes to the entry, the kernel inspects the word: the timer may be due, moved to later,
 * or cancelled.
 *
 * A program that arms a timer which is not tracked, or moves one to an earlier time, sets
 * a bit for it: the timer is dirty. The kernel scans these bits at each of its runs, and
 * when a program rings the doorbell.
 */
#ifndef TW_SHARED_H
#define TW_SHARED_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <uapi/linux/twheel.h>

#include "context.h"
#include "entries.h"

struct iov_iter;
struct vm_area_struct;

/* Words of dirty bits of a group */
#define TW_GROUP_WORDS (TW_GROUP / 64)

/**
 * struct tw_pages - zeroed pages that are mapped side by side
 * @pages: the pages
 * @nr: how many there are
 * @charged: bytes of them, charged to the user
 * @at: where they are mapped, or NULL
 */
struct tw_pages {
	struct page **pages;
	unsigned int nr;
	u64 charged;
	void *at;
};

/**
 * struct tw_shared - the shared timers of a wheel
 * @area: what is shared. Nothing in it is trusted: each word of it is read once,
 *	and what follows here is not read from it
 * @words: the timers' words, in the area
 * @ring: the ring of expired timers, in the area
 * @dirty: a bit for each timer, in the area
 * @groups: a bit for each group of timers, in the area
 * @size: bytes of the area, whole pages
 * @memory: pages of the area
 * @nr: timers
 * @ring_mask: length of the ring less one
 * @nr_groups: groups, of which the last may be smaller
 * @lead: by how many ticks to scan for dirty timers before what comes next, when
 *	that is far
 * @private: pages of the wheel
 * @wheel: the timers that the kernel tracks; an entry's @last_expiry is its position in
 *	the ring. A timer that is not in it is idle, or dirty
 * @tail: expiries put into the ring
 * @seen: the program's head, as it was when it was last looked at. It does not go back,
 *	so one that is before that is none
 * @unnotified: expiries of which readers were not notified yet
 * @expiring: a slot was left that has expired in part
 * @pass: counts the times that a scan went through all groups anew
 * @passes: how many of these found any, in @tick, since the wheel last slept or the program
 *	last asked for a scan
 * @tick: in which a scan was last asked for
 * @next_word: the word of dirty bits that is scanned next
 * @left: bits of the word before it that are left
 *
 * What comes before @wheel is set once, before the wheel has it. All else is guarded
 * by the lock of the wheel; but @tail and @seen are read without it.
 */
struct tw_shared {
	struct twheel_shared *area;
	atomic64_t *words;
	u32 *ring;
	atomic64_t *dirty;
	atomic64_t *groups;
	size_t size;
	struct tw_pages memory;
	u32 nr;
	u32 ring_mask;
	u32 nr_groups;
	s64 lead;
	struct tw_pages private;

	struct tw_entries wheel;
	u32 tail;
	u32 seen;
	u32 unnotified;
	bool expiring;
	u32 pass;
	u32 passes;
	s64 tick;
	u32 next_word;
	u64 left;
};

/* area.c: their memory */
bool tw_shared_possible(void);
struct tw_shared *tw_shared_create(struct twheel *tw, u32 nr, u32 tick);
void tw_shared_destroy(struct twheel *tw, struct tw_shared *shared);
int tw_shared_mmap(struct tw_shared *shared, struct vm_area_struct *vma);

/* shared.c: the kernel's side of the protocol */
bool tw_shared_scan_dirty(struct twheel *tw, struct tw_step *step);
u32 tw_shared_scan_anew(struct tw_shared *shared);
bool tw_shared_done(const struct twheel *tw, s64 tick, u32 pass);
bool tw_shared_turn(struct twheel *tw, struct tw_step *step);
bool tw_shared_must_notify(struct tw_shared *shared);
bool tw_shared_sleep(struct twheel *tw, s64 tick);
s64 tw_shared_next(const struct twheel *tw);
u32 tw_shared_ready(const struct tw_shared *shared);
ssize_t tw_shared_read(struct twheel *tw, struct iov_iter *to, u32 unit, u32 most);
int tw_shared_drain(struct twheel *tw, struct iov_iter *to, u32 size);

/*
 * Is there anything to read? Without the lock, as a reader that goes to sleep can't miss
 * the wake-up:
 *
 *	reader					expiry, see expire.c
 *	------					------
 *	add itself to @wait			ready.count++ or tail = ...
 *	smp_mb(), or set_current_state()	smp_mb(), in wq_has_sleeper()
 *	tw_readable(): nothing?			is anybody on @wait?
 *	sleep					wake them
 *
 * One of the two sees what the other did: the reader finds the timer, or the expiry finds
 * the reader. A reader that was woken takes the lock, and may still find that another one
 * was faster.
 */
static inline bool tw_readable(const struct twheel *tw)
{
	const struct tw_shared *shared = tw_shared_of(tw);

	/* An old value is as good as a new one: the table above holds for both. */
	if (data_race(READ_ONCE(tw->wheel.ready.count)))
		return true;
	/* Pairs with tw_count(), which adds to @counted before it empties the list. */
	smp_rmb();
	/* An old value does no harm here either. */
	if (data_race(READ_ONCE(tw->counted)))
		return true;
	return shared && tw_shared_ready(shared);
}

/* Timers that are pending, as far as the kernel knows, with shared ones */
static inline u32 tw_pending(const struct twheel *tw)
{
	return tw->wheel.pending + (tw->shared ? tw->shared->wheel.pending : 0);
}

/* The tick before which there is nothing to do, or TW_NEVER */
static inline s64 tw_next(const struct twheel *tw)
{
	return tw->shared ? min(tw->wheel.next, tw_shared_next(tw)) : tw->wheel.next;
}

#endif /* TW_SHARED_H */
