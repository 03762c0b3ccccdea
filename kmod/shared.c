// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's side of shared timers: it scans for dirty timers, inspects timers that are
 * due, and puts those that expired into the ring. See shared.h.
 *
 * Nothing in the shared area is trusted, so a program that breaks the protocol and one
 * that keeps to it take the same path here. Each word is read once. Each loop under
 * the lock that a program could keep going by writing to the area has an end, and a signal
 * ends its own DRAIN. No timer is lost but by the program's own doing: in doubt, a timer is
 * inspected again in the next tick.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/sched/signal.h>

#include "context.h"
#include "copy.h"
#include "shared.h"
#include "trace.h"

/* How often to inspect a word that changes whenever it is inspected */
#define TW_TRIES 4

/* How often to scan for dirty timers in one tick */
#define TW_PASSES 4

/* When to try again after the ring was full, in ns */
#define TW_FULL_NS NSEC_PER_SEC

/* While a slot expires, readers are notified each time that this many have. */
#define TW_NOTIFY 4096

#define TW_WORD_STATES (TWHEEL_WORD_IDLE | TWHEEL_WORD_FIRED)

/* The host's time at which a word that is armed expires: not early. */
static noinline s64 tw_word_deadline(const struct tw_clock *clock, u64 word)
{
	u64 ns = word | TWHEEL_WORD_ARMED;

	if (ns >= TWHEEL_WORD_NEVER)
		return KTIME_MAX;
	return max_t(s64, tw_clock_to_host(clock, ns), 1);
}

static bool tw_word_pending(u64 word)
{
	return (word & (TW_WORD_STATES | TWHEEL_WORD_ARMED)) == TWHEEL_WORD_ARMED;
}

/* Change a word, unless the program was faster. A full barrier if it is done. */
static bool tw_word_set(atomic64_t *at, s64 old, s64 new)
{
	return atomic64_try_cmpxchg(at, &old, new);
}

/* A cancelled timer is not tracked any more: its next arming has to make it dirty. */
static bool tw_word_untrack(atomic64_t *at, u64 word)
{
	return tw_word_set(at, word, word | TWHEEL_WORD_IDLE);
}

static bool tw_word_fire(atomic64_t *at, u64 word)
{
	return tw_word_set(at, word,
			   (word & ~TWHEEL_WORD_ARMED) | TW_WORD_STATES);
}

/*
 * The number of entries in the ring, or 0 if the program has spoilt its head. The head must
 * not be before @seen, which is where it was last. So each entry is taken once, and a
 * loop that takes them comes to an end.
 */
static u32 tw_ring_used(const struct tw_shared *shared, u32 seen, u32 head)
{
	/* tw_shared_ready() looks at it without the lock. */
	u32 tail = READ_ONCE(shared->tail);
	u32 used = tail - head;

	return used > tail - seen || used > shared->ring_mask + 1 ? 0 : used;
}

/* Follow the head: often enough that its 32 bits do not wrap around in between. */
static void tw_ring_update_seen(struct tw_shared *shared)
{
	u32 head = READ_ONCE(shared->area->head);

	if (shared->tail - head > shared->tail - shared->seen)
		return;
	/* Pairs with tw_shared_ready(), which must not see a head before this. */
	smp_store_release(&shared->seen, head);
}

/**
 * struct tw_inspect - an inspection of timers: what it needs, and what came of it
 * @shared: the timers
 * @words: their words
 * @clock: the clock of their deadlines
 * @due: words until then expire, in ns of the program's time. A word has no room for the
 *	lowest bit of a deadline, so it is for the even one: else what is due right at a
 *	tick would expire a tick late. (Who sees it sees it more than a ns later.)
 * @now: the tick of the host that it is now
 * @head: of the ring, as it was once
 * @tail: of the ring, with what expires
 * @fired: timers that expired
 * @armed: timers that were not tracked, and are armed
 * @cancelled: timers that were tracked, and are cancelled
 */
struct tw_inspect {
	struct tw_shared *shared;
	atomic64_t *words;
	const struct tw_clock *clock;
	s64 due;
	s64 now;
	u32 head;
	u32 tail;
	u32 fired;
	u32 armed;
	u32 cancelled;
};

/* Before the first timer is inspected. What expires is what is due at @due. */
static void tw_inspect_begin(struct twheel *tw, struct tw_inspect *inspect, s64 tick, s64 due)
{
	struct tw_shared *shared = tw->shared;
	u64 until = tw_clock_to_user(&tw->wheel.clock, due);

	lockdep_assert_held(&tw->lock);
	*inspect = (struct tw_inspect){
		.shared = shared,
		.words = shared->words,
		.clock = &tw->wheel.clock,
		/* The latest deadline never comes, not even in a time namespace far ahead. */
		.due = min(until + 1, TWHEEL_WORD_NEVER - 1),
		.now = tick - tw->wheel.clock.tick_offset,
		/* Pairs with the program's, after it read the entry that is overwritten. */
		.head = smp_load_acquire(&shared->area->head),
		.tail = shared->tail,
	};
}

/* After the last: programs see what expired. Returns how much that is. */
static u32 tw_inspect_end(struct twheel *tw, struct tw_inspect *inspect)
{
	struct tw_shared *shared = inspect->shared;

	tw->stats.armed += inspect->armed;
	tw->stats.cancelled += inspect->cancelled;
	shared->unnotified += inspect->fired;
	if (inspect->tail != shared->tail) {
		/* tw_shared_ready() looks at it without the lock. */
		WRITE_ONCE(shared->tail, inspect->tail);
		/* The entries are seen before they are counted. */
		smp_store_release(&shared->area->tail, inspect->tail);
	}
	return inspect->fired;
}

static __always_inline bool tw_inspect_ring_full(struct tw_inspect *inspect)
{
	if (likely(inspect->tail - inspect->head <= inspect->shared->ring_mask))
		return false;
	/* Pairs with the program's store, after it read the entry. */
	inspect->head = smp_load_acquire(&inspect->shared->area->head);
	return inspect->tail - inspect->head > inspect->shared->ring_mask;
}

/*
 * Is the entry that was put at @position for this timer still to be taken?
 *
 * A reader of the ring first moves the head past an entry and then changes the word. So
 * after the word was changed here, either the reader will find it fired, or its change
 * came before, and then the new head is visible here.
 */
static noinline bool tw_inspect_in_ring(struct tw_inspect *inspect, u32 nr, u32 position)
{
	const struct tw_shared *shared = inspect->shared;

	/* Pairs with the program's store, after it read the entry. */
	inspect->head = smp_load_acquire(&shared->area->head);
	return position - inspect->head < inspect->tail - inspect->head &&
	       READ_ONCE(shared->ring[position & shared->ring_mask]) == nr;
}

/* tw_inspect_put() at less cost: what is before an old head is before a new one. */
static __always_inline bool tw_inspect_is_put(struct tw_inspect *inspect, u32 nr)
{
	u32 position = inspect->shared->wheel.timers[nr].last_expiry;

	return unlikely(position - inspect->head < inspect->tail - inspect->head) &&
	       tw_inspect_in_ring(inspect, nr, position);
}

/*
 * Put a timer that has expired into the ring, unless it is still there from an earlier
 * expiry that was withdrawn. So no timer is there twice, and the ring can't overflow.
 */
static __always_inline void tw_inspect_put(struct tw_inspect *inspect, u32 nr)
{
	struct tw_shared *shared = inspect->shared;
	u32 tail = inspect->tail;

	if (tw_inspect_is_put(inspect, nr))
		return;
	shared->wheel.timers[nr].last_expiry = tail;
	WRITE_ONCE(shared->ring[tail & shared->ring_mask], nr);
	inspect->tail = tail + 1;
}

/* Is a timer pending, and not due? An idle word is negative, and so is not later. */
static bool tw_word_later(s64 word, s64 due)
{
	return word & TWHEEL_WORD_ARMED && word > due;
}

/* The tick of the host at which a word expires that tw_word_later() is true for */
static __always_inline s64 tw_word_tick(const struct tw_clock *clock, s64 word)
{
	if (unlikely(word >= (s64)TWHEEL_WORD_NEVER || clock->offset))
		word = max_t(s64, tw_word_deadline(clock, word), 2);
	return tw_clock_divide(clock, word - 2) + 1;
}

/* A timer is due. Returns false if its word has changed. */
static __always_inline bool tw_inspect_fire(struct tw_inspect *inspect, u32 nr, u64 word)
{
	/* Only for a program that broke the rules. */
	if (unlikely(tw_inspect_ring_full(inspect)) && !tw_inspect_is_put(inspect, nr)) {
		tw_entries_add(&inspect->shared->wheel, nr, inspect->now + 1 +
			       div_u64(TW_FULL_NS, inspect->clock->tick));
		return true;
	}
	if (!tw_word_fire(&inspect->words[nr], word))
		return false;
	tw_inspect_put(inspect, nr);
	inspect->fired++;
	return true;
}

/*
 * Inspect a timer that is not in the wheel, and put it there if it is pending. Where its
 * word changes whenever it is inspected, it is inspected again in the next tick.
 *
 * Returns true if it is pending or expires now. Else it was cancelled, or is idle or fired
 * already, and is not tracked any more.
 */
static __always_inline bool tw_inspect(struct tw_inspect *inspect, u32 nr)
{
	atomic64_t *at = &inspect->words[nr];
	unsigned int tries;

	for (tries = 0; tries < TW_TRIES; tries++) {
		s64 word = atomic64_read(at);

		if (tw_word_later(word, inspect->due)) {
			tw_entries_add(&inspect->shared->wheel, nr,
				       tw_word_tick(inspect->clock, word));
			return true;
		}
		if (word & TW_WORD_STATES)
			return false;
		if (word & TWHEEL_WORD_ARMED) {
			if (tw_inspect_fire(inspect, nr, word))
				return true;
		} else if (tw_word_untrack(at, word)) {
			return false;
		}
	}
	tw_entries_add(&inspect->shared->wheel, nr, inspect->now + 1);
	return true;
}

/* Inspect timers that were just detached from the wheel */
static void tw_inspect_all(struct tw_inspect *inspect, const u32 *numbers, unsigned int nr)
{
	const u32 *at, *end = numbers + nr;

	for (at = numbers; at < end; at++)
		prefetchw(&inspect->words[*at]);
	for (at = numbers; at < end; at++)
		if (!tw_inspect(inspect, *at))
			inspect->cancelled++;
}

/*
 * All that was detached was cancelled. Then timers that come later may be, too, and each would
 * cause a wake-up: those that are go as well, up to the first that is not.
 */
static void tw_inspect_later(struct tw_inspect *inspect, struct tw_step *step)
{
	struct tw_entries *wheel = &inspect->shared->wheel;
	u32 inspected = 0, most = step->budget * TW_INSPECT_PER_NODE;

	while (wheel->pending) {
		u32 nr = tw_entries_any(wheel);

		tw_entries_del(wheel, nr);
		if (inspected++ == most) {
			/* The next run goes on with this one, not the wake-up for its slot. */
			tw_entries_add(wheel, nr, inspect->now);
			break;
		}
		if (tw_inspect(inspect, nr))
			break;
		inspect->cancelled++;
	}
	step->budget -= DIV_ROUND_UP(min(inspected, most), TW_INSPECT_PER_NODE);
}

/* Inspect a timer that is dirty. Most are armed, and were not tracked. */
static __always_inline void tw_inspect_dirty(struct tw_inspect *inspect, u32 nr)
{
	bool tracked = tw_entries_has(&inspect->shared->wheel, nr);

	if (unlikely(tracked))
		tw_entries_del(&inspect->shared->wheel, nr);
	if (tw_inspect(inspect, nr))
		inspect->armed += !tracked;
	else
		inspect->cancelled += tracked;
}

/* Fetch a word of dirty bits. Those beyond the last timer are ignored, and may stay. */
static u64 tw_fetch_dirty(struct tw_shared *shared, u32 word)
{
	u32 timers = shared->nr - min(word * 64, shared->nr);
	u64 mask = timers < 64 ? BIT_ULL(timers) - 1 : U64_MAX;
	atomic64_t *dirty = &shared->dirty[word];

	/* Most are 0, and a load costs less than an exchange. */
	return atomic64_read(dirty) & mask ? atomic64_xchg(dirty, 0) & mask : 0;
}

/* The first from @group on in which a program says that there are dirty timers, or the end */
static u32 tw_next_group(const struct tw_shared *shared, u32 group)
{
	u64 mask = U64_MAX << group % 64;
	u32 word;

	for (word = group / 64; word * 64 < shared->nr_groups; word++) {
		u64 bits = atomic64_read(&shared->groups[word]) & mask;

		if (bits)
			return min_t(u32, word * 64 + __ffs64(bits), shared->nr_groups);
		mask = U64_MAX;
	}
	return shared->nr_groups;
}

/*
 * Go to the next dirty group, and tell whether there is one. A pass goes through the groups
 * once, and only forwards: what a program sets behind it is for the next pass. It can have
 * TW_PASSES of them in a tick, as it could set bits for ever. They begin anew in each tick:
 * while there is other work, the wheel may not sleep for seconds, and what a program arms
 * meanwhile has to be found.
 */
static bool tw_scan_more(struct tw_shared *shared)
{
	u32 group;

	if (shared->left || shared->next_word % TW_GROUP_WORDS)
		return true;
	group = tw_next_group(shared, shared->next_word / TW_GROUP_WORDS);
	if (group == shared->nr_groups && shared->passes < TW_PASSES) {
		group = tw_next_group(shared, 0);
		shared->passes += group < shared->nr_groups;
		shared->pass++;
	}
	shared->next_word = array_index_nospec(group, shared->nr_groups + 1) * TW_GROUP_WORDS;
	return group < shared->nr_groups;
}

/*
 * Go to the next dirty timers of a group. A program sets the bit of a timer, and then that
 * of its group, but only where that is not set. They are cleared the other way round: so
 * where it finds one set, the timers have yet to be looked at.
 */
static void tw_scan_next(struct tw_shared *shared, struct tw_step *step)
{
	u32 group = shared->next_word / TW_GROUP_WORDS;

	if (!(shared->next_word % TW_GROUP_WORDS)) {
		atomic64_andnot(BIT_ULL(group % 64), &shared->groups[group / 64]);
		/* Pairs with the program's, between the bits that it sets. */
		smp_mb__after_atomic();
		step->budget--;
	}
	do {
		shared->left = tw_fetch_dirty(shared, shared->next_word++);
	} while (!shared->left && shared->next_word % TW_GROUP_WORDS);
}

/* Inspect dirty timers of a word, as far as the budget goes. */
static void tw_scan_word(struct tw_inspect *inspect, struct tw_step *step)
{
	struct tw_shared *shared = inspect->shared;
	u32 first = (shared->next_word - 1) * 64;
	u32 inspected = 0, most = step->budget * TW_INSPECT_PER_NODE;
	u64 left = shared->left;

	for (; left && inspected < most; left &= left - 1, inspected++)
		tw_inspect_dirty(inspect, first + __ffs64(left));
	shared->left = left;
	step->budget -= DIV_ROUND_UP(inspected, TW_INSPECT_PER_NODE);
}

/**
 * tw_shared_scan_dirty() - scan for timers that are dirty
 * @tw: the wheel, with shared timers
 * @step: the time, the budget, and what was made ready at once
 *
 * Context: holds @tw->lock.
 * Return: true when more are left, as the budget is used up.
 */
bool tw_shared_scan_dirty(struct twheel *tw, struct tw_step *step)
{
	struct tw_shared *shared = tw->shared;
	struct tw_inspect inspect __uninitialized;
	bool more;

	lockdep_assert_held(&tw->lock);
	tw_ring_update_seen(shared);
	if (shared->tick != step->now) {
		shared->tick = step->now;
		shared->passes = 0;
	}
	more = tw_scan_more(shared);
	if (!more)
		return false;
	tw_inspect_begin(tw, &inspect, step->now, step->stamp);
	tw_entries_forward(&shared->wheel, inspect.now);
	while (more && step->budget) {
		if (!shared->left)
			tw_scan_next(shared, step);
		tw_scan_word(&inspect, step);
		more = tw_scan_more(shared);
	}
	step->expired = tw_inspect_end(tw, &inspect);
	return more;
}

/**
 * tw_shared_scan_anew() - what is dirty by now is to be found
 * @shared: the timers
 *
 * Also where the program has had all scans that it can have in this tick.
 *
 * Context: holds the lock of the wheel.
 * Return: the pass that finds the last of it, for tw_shared_done().
 */
u32 tw_shared_scan_anew(struct tw_shared *shared)
{
	shared->passes = 0;
	/* One may be under way, and what is behind it is for the next. */
	return shared->pass + 1;
}

/**
 * tw_shared_done() - is all done that there was to do for shared timers at some time?
 * @tw: the wheel, with shared timers
 * @tick: that time, a tick of @tw
 * @pass: what tw_shared_scan_anew() said then
 *
 * Context: holds @tw->lock.
 */
bool tw_shared_done(const struct twheel *tw, s64 tick, u32 pass)
{
	const struct tw_shared *shared = tw->shared;
	s64 clk = shared->wheel.clk - shared->wheel.tick_offset + tw->wheel.clock.tick_offset;

	return clk > tick && (s32)(shared->pass - pass) > 0;
}

/**
 * tw_shared_turn() - do the next piece of what there is to do by now
 * @tw: the wheel, with shared timers
 * @step: what it may do and did, as for tw_wheel_step()
 *
 * Context: holds @tw->lock.
 * Return: true when there may be more to do.
 */
bool tw_shared_turn(struct twheel *tw, struct tw_step *step)
{
	struct tw_entries *wheel = &tw->shared->wheel;
	s64 tick_offset = tw->wheel.clock.tick_offset;
	u32 numbers[TW_BLOCK_ENTRIES] __uninitialized;
	struct tw_inspect inspect __uninitialized;
	struct tw_turn turn __uninitialized;
	unsigned int n, detached = 0;

	step->expired = 0;
	step->left = 0;
	tw->shared->expiring = false;
	if (!tw_entries_turn(wheel, step->now - tick_offset, &turn))
		return false;
	/* A timer in a slot that is cascaded may have been moved to a time that was over. */
	step->tick = turn.tick ? turn.tick + tick_offset : step->now;
	tw_inspect_begin(tw, &inspect, step->now,
			 turn.tick ? tw_clock_tick_ns(&tw->wheel.clock, step->tick) : 0);
	do {
		n = min_t(u32, step->budget, TW_BLOCK_ENTRIES) * TW_INSPECT_PER_NODE;
		n = tw_entries_detach(wheel, turn.slot, numbers, n);
		tw_inspect_all(&inspect, numbers, n);
		detached += n;
		step->budget -= DIV_ROUND_UP(n, TW_INSPECT_PER_NODE);
		step->moved += turn.tick ? 0 : n;
	} while (turn.slot->count && step->budget);
	/* A slot costs one as well, unless nothing is left of the budget. */
	step->budget -= min(step->budget, 1U);
	if (inspect.cancelled == detached)
		tw_inspect_later(&inspect, step);
	step->expired = tw_inspect_end(tw, &inspect);
	step->left = turn.slot->count;
	tw->shared->expiring = turn.tick && step->left;
	return true;
}

/**
 * tw_shared_must_notify() - are readers to be notified of what expired?
 * @shared: the timers
 *
 * A reader that is woken reads all there is and sleeps again. So it is woken once for a
 * slot, or a few times for a very large one.
 *
 * Context: holds the lock of the wheel.
 * Return: true if so, which is to be done then.
 */
bool tw_shared_must_notify(struct tw_shared *shared)
{
	if (!shared->unnotified ||
	    (shared->expiring && shared->unnotified < TW_NOTIFY))
		return false;
	shared->unnotified = 0;
	return true;
}

/**
 * tw_shared_next() - when is there something to do for shared timers again?
 * @tw: the wheel, with shared timers
 *
 * Context: holds @tw->lock.
 * Return: a tick before which there is nothing to do, or TW_NEVER.
 */
s64 tw_shared_next(const struct twheel *tw)
{
	s64 next = tw_entries_next(&tw->shared->wheel);

	return next == TW_NEVER ? TW_NEVER : next + tw->wheel.clock.tick_offset;
}

/**
 * tw_shared_sleep() - set the timer, and publish when it will be
 * @tw: the wheel, with shared timers, and with nothing left to do by now
 * @tick: the tick that it is now
 *
 * A program that armed a timer to expire before that has to ring the doorbell.
 *
 * Context: holds @tw->lock.
 * Return: false when there is something left to do nevertheless.
 */
bool tw_shared_sleep(struct twheel *tw, s64 tick)
{
	struct tw_shared *shared = tw->shared;
	s64 next = max(tw_next(tw), tick + 1);
	u64 before, wake = U64_MAX;

	lockdep_assert_held(&tw->lock);
	/* A program that does not let it sleep is scanned for once in a tick. */
	if (shared->passes >= TW_PASSES)
		next = tick + 1;
	/* What expires at that tick is inspected in time, so the one before counts. */
	if (next != TW_NEVER) {
		before = tw_clock_tick_ns(&tw->wheel.clock, next - 1);
		wake = tw_clock_to_user(&tw->wheel.clock, tw_time_add(before, 2));
	}
	WRITE_ONCE(shared->area->next_wake, wake);
	/*
	 * Pairs with the program's barrier between the bits that it sets and its
	 * look at @next_wake: it sees the new one, or its bits are seen here.
	 */
	smp_mb();
	if (tw_scan_more(shared))
		return false;
	shared->passes = 0;
	/* So that what is dirty by then is in the wheel in time. */
	if (next != TW_NEVER && next - tick > 2 * shared->lead)
		next -= shared->lead;
	tw_reprogram_timer(tw, next);
	return true;
}

/**
 * tw_shared_ready() - how many have expired that nobody took?
 * @shared: the timers
 *
 * Those that were withdrawn are among them, until somebody comes across them.
 *
 * Context: any.
 * Return: the number, or 0 if the program has spoilt the ring.
 */
u32 tw_shared_ready(const struct tw_shared *shared)
{
	/* Pairs with the stores of @seen: a head that is loaded after it is not before it. */
	u32 seen = smp_load_acquire(&shared->seen);

	return tw_ring_used(shared, seen, READ_ONCE(shared->area->head));
}

static void tw_shared_fill(const struct twheel *tw, u32 nr, u64 word,
			   struct twheel_event *event, u32 unit)
{
	const struct tw_clock *clock = &tw->wheel.clock;

	event->user_data = nr;
	event->id = 0;
	if (unit == TWHEEL_EVENT_SIZE_ID)
		return;
	event->deadline = tw_clock_to_user(clock, tw_word_deadline(clock, word & ~TW_WORD_STATES));
	event->overrun = 0;
	event->flags = TWHEEL_EVENT_SHARED;
}

/*
 * Fill the events of what is at the head of the ring, up to what was withdrawn, and keep the
 * words. Nothing is taken yet. Returns how many events.
 */
static unsigned int tw_ring_fill(const struct twheel *tw, u32 head, u32 max_nr, u64 *words,
				 void *events, u32 unit)
{
	const struct tw_shared *shared = tw->shared;
	u32 numbers[TW_TAKEN] __uninitialized;
	unsigned int nr, n;

	for (nr = 0; nr < max_nr; nr++) {
		u32 number = READ_ONCE(shared->ring[(head + nr) & shared->ring_mask]);

		if (number >= shared->nr)
			break;
		numbers[nr] = array_index_nospec(number, shared->nr);
		prefetchw(&shared->words[numbers[nr]]);
	}
	for (n = 0; n < nr; n++) {
		words[n] = atomic64_read(&shared->words[numbers[n]]);
		if (!(words[n] & TWHEEL_WORD_FIRED))
			break;
		tw_shared_fill(tw, numbers[n], words[n], events, unit);
		events += unit;
	}
	return n;
}

/* Move the head past an entry, as a program would. Others may be faster. */
static bool tw_ring_pass(struct tw_shared *shared, u32 head)
{
	u32 old = head;

	if (!try_cmpxchg(&shared->area->head, &old, head + 1))
		return false;
	/* Pairs with tw_shared_ready(), which must not see a head before this. */
	smp_store_release(&shared->seen, head + 1);
	return true;
}

/*
 * Take what is at the head of the ring, each expiry once its event is written: for a program
 * that arms the timer at that moment, what was taken out counts as taken. Only the program
 * can change a word meanwhile, and then the expiry was withdrawn: what follows it is taken
 * the next time.
 *
 * Returns how many events were given, 0 if the first was withdrawn or others were faster; or
 * -EAGAIN or -EFAULT.
 */
static int tw_ring_take(struct twheel *tw, struct iov_iter *to, u32 unit, u32 max_nr)
{
	u64 events[TW_TAKEN * sizeof(struct twheel_event) / sizeof(u64)] __uninitialized;
	struct tw_shared *shared = tw->shared;
	u32 head = READ_ONCE(shared->area->head);
	u32 used = tw_ring_used(shared, shared->seen, head);
	u64 words[TW_TAKEN] __uninitialized;
	unsigned int nr, n;

	if (!used)
		return -EAGAIN;
	nr = tw_ring_fill(tw, head, min(used, max_nr), words, events, unit);
	if (!nr) {
		tw_ring_pass(shared, head);
		return 0;
	}
	nr = tw_copy_nofault(events, nr * unit, unit, to) / unit;
	if (!nr)
		return -EFAULT;
	for (n = 0; n < nr; n++) {
		u64 number = events[n * unit / sizeof(u64)];

		if (!tw_ring_pass(shared, head + n) ||
		    !tw_word_set(&shared->words[number], words[n],
				 words[n] & ~TWHEEL_WORD_FIRED))
			break;
	}
	/* What was written is behind the events that are given. */
	iov_iter_revert(to, (nr - n) * unit);
	return n;
}

/**
 * tw_shared_read() - read events of shared timers as long as there are any
 * @tw: the wheel, with shared timers
 * @to: where to copy them
 * @unit: length of an event
 * @most: how many entries of the ring to take at most. Withdrawn ones are counted, too, but
 *	for those that were withdrawn after their events were written
 *
 * Where @to is the area itself, each event that is written may put the head back. So there are
 * no more turns than the ring has room for.
 *
 * Context: may sleep.
 * Return: bytes copied, -EAGAIN when there are none, -EFAULT or -ERESTARTSYS.
 */
ssize_t tw_shared_read(struct twheel *tw, struct iov_iter *to, u32 unit, u32 most)
{
	u32 left = min(most, tw->shared->ring_mask + 1);
	bool faulted = false;
	ssize_t total = 0;

	while (left && iov_iter_count(to) >= unit) {
		unsigned int tries = TW_TAKEN, n = 0;
		int ret = 0;

		spin_lock_bh(&tw->lock);
		while (tries && left && iov_iter_count(to) >= unit) {
			u32 room = iov_iter_count(to) / unit;

			ret = tw_ring_take(tw, to, unit, min3(tries, left, room));
			if (ret < 0)
				break;
			n += ret;
			tries -= max(ret, 1);
			left -= max(ret, 1);
		}
		tw->stats.delivered += n;
		trace_twheel_read(tw, n);
		spin_unlock_bh(&tw->lock);

		total += n * unit;
		if (ret == -EFAULT)
			ret = tw_fault_in(to, unit, &faulted);
		else if (ret >= 0)
			ret = signal_pending(current) ? -ERESTARTSYS : 0;
		if (ret)
			return total ?: ret;
		cond_resched();
	}
	return total ?: -EAGAIN;
}

/**
 * tw_shared_drain() - take a shared timer out of the wheel
 * @tw: the wheel, in which one is
 * @to: where to write the operation that would arm it, unless it was cancelled
 * @size: of that operation
 *
 * As an expiry, it is taken once it is written.
 *
 * Context: holds @tw->lock.
 * Return: 1; 0 if it was cancelled, or its word changes just now, or -EFAULT.
 */
int tw_shared_drain(struct twheel *tw, struct iov_iter *to, u32 size)
{
	struct tw_shared *shared = tw->shared;
	u32 nr = tw_entries_any(&shared->wheel);
	u64 word = atomic64_read(&shared->words[nr]);
	struct twheel_op op = {
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.state = TWHEEL_STATE_PENDING,
		.deadline = word,
		.user_data = nr,
	};

	lockdep_assert_held(&tw->lock);
	if (tw_word_pending(word) && !tw_copy_nofault(&op, size, size, to))
		return -EFAULT;
	if (word & TW_WORD_STATES ||
	    tw_word_set(&shared->words[nr], word,
			(word & ~TWHEEL_WORD_ARMED) | TWHEEL_WORD_IDLE)) {
		tw->stats.cancelled += !tw_word_pending(word);
		tw_entries_del(&shared->wheel, nr);
		return tw_word_pending(word);
	}
	if (tw_word_pending(word))
		iov_iter_revert(to, size);
	return 0;
}
