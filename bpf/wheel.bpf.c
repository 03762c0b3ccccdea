// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's side of shared timers as a BPF program: what kmod/shared.c is in the module. The
 * wheel is core/entries.c; a program speaks the protocol of twheel(7) by <twheel_shared.h>, as it
 * does to the module.
 *
 * Memory. A program maps the area, and can write anything there at any time: each word of it is
 * read once, each index is masked, and no more is believed. All else is out of its reach: the
 * wheel is in an arena that nobody maps, the timer in a map that its descriptor is not good to
 * write to, and the accounts of users in a map of which it has no descriptor.
 *
 * Time. The verifier sees to memory only. That each callback ends soon is due to its budget here,
 * and that there are not too many of them to the accounts: a callback is paid for before its timer
 * is set, and where there is no credit, the timer is set for when there will be.
 *
 * The verifier. A function that is global, and so not static, is looked at once, and not on each
 * way to it; it takes numbers only. Each loop has TW_GO_ON in it, and counts from TW_FIRST, which
 * is 0: with one that the verifier knows, it would follow the loop turn by turn.
 *
 * Only the callback touches the wheel, and the kernel never runs it twice at a time. What it
 * shares with the doorbell, and with who waits, is in tests/module/protocols/bell.pml. Orders of
 * memory are those of x86: elsewhere, a load that has to come before others would need a
 * barrier.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/errno.h>
#include <bpf/bpf_helpers.h>
#include <linux/twheel.h>

/* (Other compilers have words of their own: see tests/bpf/here.) */
#ifdef __BPF__
#define TW_MEM __attribute__((address_space(1)))
#define TW_FIRST READ_ONCE(the_wheel()->zero)
/* The instruction may_goto, which assemblers don't know yet */
#define TW_GO_ON							\
({									\
	__label__ end, more;						\
	bool go_on = true;						\
									\
	asm volatile goto("1: .byte 0xe5; .byte 0; "			\
			  ".long ((%l[end] - 1b - 8) / 8) & 0xffff; .short 0" : : : : end); \
	goto more;							\
end:	go_on = false;							\
more:	;								\
	go_on;								\
})
#endif

#ifndef TW_USES
#define TW_USES(map) asm volatile("" : : "r"(map))
#endif

#include "../core/entries.h"
#include "layout.h"

/* Newer than the headers of some distributions */
#define TW_MAP_TYPE_ARENA 33
#define TW_TIMER_ABS 1

#define CLOCK_MONOTONIC 1
#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL

/* What one callback may do, in timers that are inspected */
#define TW_BPF_BUDGET 272

/* What a slot costs besides, and a group, in which there may be no timer */
#define TW_BPF_SLOT 4
#define TW_BPF_EMPTY 2

/* A user may have one ns in TW_BPF_PART of a processor, and all users together twice that. */
#define TW_BPF_PART 16ULL

/* While all owe, a ns costs its user one more for each so many ns that they owe. */
#define TW_BPF_DEARER NSEC_PER_MSEC

/* What is not used is kept for that long. */
#define TW_BPF_KEPT (160 * NSEC_PER_MSEC)

/* What scanning a dirty timer may take, in ns: generous */
#define TW_BPF_SCAN 128ULL

/* What an interrupt costs besides its callback */
#define TW_BPF_INTERRUPT (2 * NSEC_PER_USEC)

#define TW_WORD_STATES (TWHEEL_WORD_IDLE | TWHEEL_WORD_FIRED)

const char tw_licence[] SEC("license") = "GPL";

const volatile struct tw_bpf_config config SEC(".rodata.config");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 5);
	__uint(key_size, sizeof(u32));
	__uint(value_size, TW_BPF_PAGE);
} area SEC(".maps");

struct {
	__uint(type, TW_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* the loader makes it */
	__uint(map_extra, TW_BPF_ARENA);
} arena SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct tw_bpf_account));
} accounts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TW_BPF_PAGE);
} wake SEC(".maps");

/**
 * struct tw_bpf_alarm - the timer, and what doorbell and callback share
 * @timer: its callback is tw_run()
 * @stats: for twheel_bpf_stats()
 * @price: what the last callback took, in ns, and so what the next is to cost
 * @rung: the program rang the doorbell, and a callback that has yet to begin will look
 */
struct tw_bpf_alarm {
	struct bpf_timer timer;
	struct twheel_bpf_stats stats;
	u64 price;
	u32 rung;
};

/* Its descriptor can't be written by: to update the element would end the timer. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tw_bpf_alarm);
} alarms SEC(".maps");

/**
 * struct tw_bpf_wheel - what is at the start of the arena
 * @entries: the timers that are tracked
 * @zero: 0
 * @budget: what is left of it in this callback
 * @cursor: word of groups at which the next scan begins
 * @head: of the ring, as it was once
 * @tail: of the ring, with what expires
 * @told: of the ring, as the program sees it
 * @due: words until then expire
 * @now: the tick that it is now
 * @slot: that is due
 * @numbers: detached from it
 */
struct tw_bpf_wheel {
	struct tw_entries entries;
	u32 zero;
	s32 budget;
	u32 cursor;
	u32 head;
	u32 tail;
	u32 told;
	s64 due;
	s64 now;
	struct tw_entry_slot TW_MEM *slot;
	u32 numbers[TW_BLOCK_ENTRIES];
	struct tw_entry_slot slots[TW_ENTRY_ALL_SLOTS];
};

/* Where it is, once in each function: of what it knows, the compiler makes it anew at each use. */
static __always_inline struct tw_bpf_wheel TW_MEM *the_wheel(void)
{
	struct tw_bpf_wheel TW_MEM *wheel = (struct tw_bpf_wheel TW_MEM *)TW_BPF_ARENA;

	asm("" : "+r"(wheel));
	return wheel;
}

#pragma GCC visibility push(hidden)
#include "../core/entries.c"
#pragma GCC visibility pop

void TW_MEM *bpf_arena_alloc_pages(void *map, void TW_MEM *address, u32 pages, int node,
				   u64 flags) __ksym;

/* A page of the area. It is always there. */
static __always_inline void *page_of(u32 page)
{
	return bpf_map_lookup_elem(&area, &page);
}

static __always_inline struct twheel_shared *head_of(void)
{
	return page_of(0);
}

/* A 64-bit word of the area, by where its kind begins */
static __always_inline u64 *word_of(u32 first, u32 nr)
{
	u64 *page = page_of(first + nr / (TW_BPF_PAGE / 8));

	return page ? &page[nr % (TW_BPF_PAGE / 8)] : NULL;
}

static __always_inline u32 *ring_at(u32 position)
{
	u32 nr = position & config.mask;
	u32 *page = page_of(config.ring + nr / (TW_BPF_PAGE / 4));

	return page ? &page[nr % (TW_BPF_PAGE / 4)] : NULL;
}

/* What the wheel does that is large, as global functions */
__noinline int tw_add(u32 nr, s64 tick)
{
	tw_entries_add(&the_wheel()->entries, nr, tick);
	return 0;
}

__noinline int tw_del(u32 nr)
{
	tw_entries_del(&the_wheel()->entries, nr);
	return 0;
}

__noinline int tw_forward(s64 now)
{
	tw_entries_forward(&the_wheel()->entries, now);
	return 0;
}

/* Is the entry that was put at @position for this timer still to be taken? */
static __always_inline bool in_ring(u32 nr, u32 position)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	struct twheel_shared *head = head_of();
	u32 *entry = ring_at(position);

	if (!head || !entry)
		return false;
	wheel->head = READ_ONCE(head->head);
	return position - wheel->head < wheel->tail - wheel->head && READ_ONCE(*entry) == nr;
}

/* Put a timer that has expired into the ring, as tw_inspect_put() of the module. */
static __always_inline void put(u32 nr)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	u32 position = wheel->entries.timers[nr].last_expiry;
	u32 tail = wheel->tail;
	u32 *entry;

	if (unlikely(position - wheel->head < tail - wheel->head) && in_ring(nr, position))
		return;
	entry = ring_at(tail);
	if (!entry)
		return;
	WRITE_ONCE(*entry, nr);
	wheel->entries.timers[nr].last_expiry = tail;
	wheel->tail = tail + 1;
}

static __always_inline bool set_word(u64 *at, u64 old, u64 new)
{
	return __sync_val_compare_and_swap(at, old, new) == old;
}

/*
 * Inspect a timer that is not in the wheel, and put it there if it is pending. A word that changes
 * just now is inspected again in the next tick. (A program that breaks the rules can have its ring
 * overrun, and loses expiries.)
 */
static __always_inline void inspect(u64 *at, u32 nr)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	s64 word = READ_ONCE(*at);

	if (word & TWHEEL_WORD_ARMED && word > wheel->due) {
		tw_add(nr, (u64)(word - 2) / config.tick + 1);
		return;
	}
	if (word & TW_WORD_STATES)
		return;
	if (word & TWHEEL_WORD_ARMED) {
		if (likely(set_word(at, word, (word & ~TWHEEL_WORD_ARMED) | TW_WORD_STATES))) {
			put(nr);
			return;
		}
	} else if (set_word(at, word, word | TWHEEL_WORD_IDLE)) {
		return;
	}
	tw_add(nr, wheel->now + 1);
}

static __always_inline void begin(s64 now, s64 tick)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	struct twheel_shared *head = head_of();

	wheel->due = tick * config.tick + 1;
	wheel->now = now;
	if (head)
		wheel->head = READ_ONCE(head->head);
}

/* The program sees what expired. A full barrier, and so entries are seen before the tail. */
static __always_inline void publish(void)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	struct twheel_shared *head = head_of();

	if (!head || wheel->tail == wheel->told)
		return;
	__sync_lock_test_and_set(&head->tail, wheel->tail);
	wheel->told = wheel->tail;
}

/* The dirty timers of a word. Returns 1 if they are left, for want of a budget. */
__noinline int tw_scan_word(u32 nr)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	u64 *at = word_of(config.dirty, nr & config.mask / 64);
	u64 *words, left;

	if (!at || !READ_ONCE(*at))
		return 0;
	if (wheel->budget <= 0)
		return 1;
	/* Of all 64 at once: they are in the same page. */
	words = word_of(config.words, (nr * 64) & config.mask);
	if (!words)
		return 0;
	left = __sync_lock_test_and_set(at, 0);
	while (left && TW_GO_ON) {
		u32 bit = __ffs64(left), timer = (nr * 64 + bit) & config.mask;

		left &= left - 1;
		if (tw_entries_has(&wheel->entries, timer))
			tw_del(timer);
		inspect(&words[bit], timer);
		wheel->budget--;
	}
	return 0;
}

/* All that is dirty, as far as the budget goes. 1 if some is left */
__noinline int tw_scan(s64 now)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	u32 last = config.mask / TW_BPF_GROUP / 64, i;

	begin(now, now);
	tw_forward(now);
	for (i = TW_FIRST; i <= last && TW_GO_ON; i++) {
		u64 *at = word_of(config.groups, wheel->cursor & last);

		while (at && READ_ONCE(*at) && TW_GO_ON) {
			u32 bit = __ffs64(READ_ONCE(*at));
			u32 nr = ((wheel->cursor & last) * 64 + bit) * (TW_BPF_GROUP / 64);

			if (wheel->budget <= 0)
				return 1;
			wheel->budget -= TW_BPF_EMPTY;
			/* Before the timers' bits, as the program sets them the other way round */
			__sync_fetch_and_and(at, ~(1ULL << bit));
			if (tw_scan_word(nr) || tw_scan_word(nr + 1) || tw_scan_word(nr + 2) ||
			    tw_scan_word(nr + 3)) {
				__sync_fetch_and_or(at, 1ULL << bit);
				return 1;
			}
		}
		wheel->cursor++;
	}
	return 0;
}

__noinline int tw_next_turn(s64 now)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	struct tw_turn turn = {};

	if (!tw_entries_turn(&wheel->entries, now, &turn))
		return 0;
	begin(now, turn.tick);
	wheel->slot = turn.slot;
	return 1;
}

/* Up to a block of the slot that is due. Returns how many are left of it. */
__noinline int tw_block(void)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	u32 n, i;

	n = tw_entries_detach(&wheel->entries, wheel->slot, wheel->numbers, TW_BLOCK_ENTRIES);
	for (i = TW_FIRST; i < n && TW_GO_ON; i++) {
		u32 timer = wheel->numbers[i];
		u64 *at = word_of(config.words, timer);

		if (at)
			inspect(at, timer);
	}
	wheel->budget -= n;
	return wheel->slot->count;
}

/* What is due, or to be cascaded, as far as the budget goes. 1 if some is left */
__noinline int tw_turns(s64 now)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();

	while (wheel->budget > 0 && TW_GO_ON) {
		if (!tw_next_turn(now))
			return 0;
		wheel->budget -= TW_BPF_SLOT;
		while (tw_block() && wheel->budget > 0 && TW_GO_ON)
			;
	}
	return 1;
}

/* Is there anything dirty, on which a callback has to look? */
__noinline int tw_dirty(void)
{
	u32 last = config.mask / TW_BPF_GROUP / 64, i;

	for (i = TW_FIRST; i <= last && TW_GO_ON; i++) {
		u64 *at = word_of(config.groups, i);

		if (at && READ_ONCE(*at))
			return 1;
	}
	return 0;
}

/* Pay for @ns of a processor. Returns from when on there is credit for it. */
static __always_inline u64 pay_from(u32 nr, u64 part, u64 now, u64 ns)
{
	struct tw_bpf_account *account = bpf_map_lookup_elem(&accounts, &nr);
	u64 until, from;

	if (!account)
		return now + TW_BPF_KEPT;
	until = READ_ONCE(account->until);
	from = max(until, now - TW_BPF_KEPT);
	/* Where another wheel was faster, nothing was kept. */
	if (__sync_val_compare_and_swap(&account->until, until, from + part * ns) != until)
		from = __sync_fetch_and_add(&account->until, part * ns);
	return from;
}

/*
 * Where all take too much, a user's time becomes dearer until they don't, and so nobody waits but
 * who takes much himself.
 */
static __always_inline u64 pay(u64 now, u64 ns)
{
	u64 all = pay_from(0, TW_BPF_PART / 2, now, ns);
	u64 dearer = all > now ? (all - now) / TW_BPF_DEARER : 0;

	return pay_from(config.account, TW_BPF_PART + dearer, now, ns);
}

static __always_inline int set_timer(struct tw_bpf_alarm *alarm, u64 when)
{
	return bpf_timer_start(&alarm->timer, when, TW_TIMER_ABS);
}

/*
 * Has the program to be woken? It clears the ring buffer, has a full barrier, and looks for the
 * ring's tail; here the tail was published, by a full barrier, and then this looks whether it was
 * cleared. So one of them sees what the other did.
 */
static __always_inline void notify(struct tw_bpf_alarm *alarm, u64 now)
{
	if (bpf_ringbuf_query(&wake, BPF_RB_AVAIL_DATA))
		return;
	bpf_ringbuf_output(&wake, &now, sizeof(now), BPF_RB_FORCE_WAKEUP);
	alarm->stats.wakes++;
}

/* Set the timer for what comes next, and publish when that is. */
static __always_inline void set_next(struct tw_bpf_alarm *alarm, s64 tick, u64 credit)
{
	struct twheel_shared *head = head_of();
	s64 next = tw_entries_next(&the_wheel()->entries);
	s64 lead = (config.mask + 1) * TW_BPF_SCAN / config.tick + 1;

	if (!head)
		return;
	if (next == S64_MAX) {
		WRITE_ONCE(head->next_wake, U64_MAX);
		return;
	}
	next = max(next, tick + 1);
	WRITE_ONCE(head->next_wake, (next - 1) * config.tick + 2);
	/* So that what is dirty by then is in the wheel in time. */
	if (next - tick > 2 * lead)
		next -= lead;
	set_timer(alarm, max(next * config.tick, credit));
}

/*
 * A program sets bits, has a full barrier, and looks for the time of the next callback; or rings,
 * and sets the timer. Both may come just before the timer was set here, for later: so look again.
 */
static __always_inline bool looks_again(struct tw_bpf_alarm *alarm)
{
	/* A full barrier */
	__sync_fetch_and_add(&alarm->stats.runs, 1);
	return READ_ONCE(alarm->rung) || tw_dirty();
}

static int tw_run(void *map, u32 *key, struct tw_bpf_alarm *alarm)
{
	u64 now = bpf_ktime_get_ns(), took, credit;
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	s64 tick = now / config.tick;
	u32 told = wheel->told;
	bool more;

	/* A full barrier: who rings from here on sets the timer anew. */
	__sync_lock_test_and_set(&alarm->rung, 0);
	wheel->budget = TW_BPF_BUDGET;
	more = tw_scan(tick);
	more = tw_turns(tick) || more;
	publish();
	if (wheel->told != told)
		notify(alarm, now);

	/* What it took more than was paid for it, and what the next one is to cost */
	took = bpf_ktime_get_ns() - now + TW_BPF_INTERRUPT;
	credit = pay(now, took + (took > alarm->price ? took - alarm->price : 0));
	alarm->price = took;
	alarm->stats.expired += wheel->told - told;
	alarm->stats.longest = max(alarm->stats.longest, took - TW_BPF_INTERRUPT);
	alarm->stats.took += took;

	if (more)
		set_timer(alarm, max(now, credit));
	else
		set_next(alarm, tick, credit);
	if (looks_again(alarm))
		set_timer(alarm, max(now, credit));
	return 0;
}

/* The wheel begins. For the loader, once. */
SEC("syscall")
int tw_start(void *context)
{
	struct tw_bpf_wheel TW_MEM *wheel = the_wheel();
	u32 nr = 0, timers = config.mask + 1, blocks = tw_entries_blocks(timers);
	u32 size = sizeof(*wheel) + (blocks << TW_ENTRY_BLOCK_BITS) * sizeof(u32) +
		   timers * sizeof(struct tw_timer);
	struct tw_bpf_alarm *alarm = bpf_map_lookup_elem(&alarms, &nr);
	int ret;

	/* All of the arena: to write where no page is would do nothing. They are zeroed. */
	if (!alarm || !bpf_arena_alloc_pages(&arena, (void TW_MEM *)TW_BPF_ARENA,
					     (size + TW_BPF_PAGE - 1) / TW_BPF_PAGE, -1, 0))
		return -ENOMEM;
	wheel->entries.slots = wheel->slots;
	wheel->entries.cells = (u32 TW_MEM *)(wheel + 1);
	wheel->entries.timers = (struct tw_timer TW_MEM *)
		&wheel->entries.cells[blocks << TW_ENTRY_BLOCK_BITS];
	tw_entries_init(&wheel->entries, config.phase);
	ret = bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	if (!ret)
		ret = bpf_timer_set_callback(&alarm->timer, tw_run);
	return ret ? ret : set_timer(alarm, 0);
}

/* The doorbell: have a callback look soon, as far as there is credit. */
SEC("syscall")
int tw_doorbell(void *context)
{
	u64 now = bpf_ktime_get_ns();
	u32 nr = 0;
	struct tw_bpf_alarm *alarm = bpf_map_lookup_elem(&alarms, &nr);
	int ret;

	/* So that a wheel is counted as long as there is this program: see twheel_bpf_held(). */
	TW_USES(&wake);
	/* One that was rung for, and has yet to begin, will look. */
	if (!alarm || __sync_lock_test_and_set(&alarm->rung, 1))
		return 0;
	/* (It may have been set for sooner. But to know that here would take a lock.) */
	ret = set_timer(alarm, max(now, pay(now, alarm->price)));
	if (ret)
		WRITE_ONCE(alarm->rung, 0);
	return ret;
}
