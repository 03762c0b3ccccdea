// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's side of shared timers: it takes up what is dirty, settles what has
 * come to its tick, and puts what expired into the ring. See shared.h.
 *
 * A program that keeps to the protocol and one that does not are the same here but
 * for what they get. So each word is read once, each loop that could go on because
 * the program writes has an end, and nothing is ever lost but by the program: when in
 * doubt, a timer is looked at again in the next tick.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>

#include "context.h"
#include "shared.h"
#include "take.h"
#include "trace.h"

/* How often to look at a word that changes whenever it is looked at */
#define TW_TRIES 4

/* How often to look for dirty timers before the wheel sleeps for a tick */
#define TW_PASSES 4

/* When to try again after the ring was full, in ns */
#define TW_FULL_NS NSEC_PER_SEC

/*
 * Words in a row that are looked at together, as most of the time they are alike: all
 * pending, or all cancelled.
 */
#define TW_ROW 8
#define TW_ROW_BITS ((1U << TW_ROW) - 1)

/* No group of timers */
#define TW_NO_GROUP U32_MAX

#define TW_WORD_STATES (TWHEEL_WORD_IDLE | TWHEEL_WORD_FIRED)

/* The host's time at which a word that is armed expires: not early. */
static s64 tw_word_deadline(const struct twheel *tw, u64 word)
{
	u64 ns = word | TWHEEL_WORD_ARMED;

	if (ns >= TWHEEL_WORD_NEVER)
		return KTIME_MAX;
	return max_t(s64, tw_clock_to_host(&tw->wheel.clock, ns), 1);
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

/* A cancelled timer is not known any more: its next arming is to be told. */
static bool tw_word_leave(atomic64_t *at, u64 word)
{
	return tw_word_set(at, word, word | TWHEEL_WORD_IDLE);
}

static bool tw_word_fire(atomic64_t *at, u64 word)
{
	return tw_word_set(at, word,
			   (word & ~TWHEEL_WORD_ARMED) | TW_WORD_STATES);
}

/*
 * How many entries of the ring are to be taken: none, if the program has spoilt it. So
 * that each is taken once, and who takes them comes to an end, the head is not before
 * what was @seen of it.
 */
static u32 tw_ring_used(const struct tw_shared *shared, u32 seen, u32 head)
{
	/* tw_shared_ready() looks at it without the lock. */
	u32 tail = READ_ONCE(shared->tail);
	u32 used = tail - head;

	return used > tail - seen || used > shared->ring_mask + 1 ? 0 : used;
}

/* Often enough that not all numbers of entries come by between. */
static void tw_ring_look(struct tw_shared *shared)
{
	u32 head = READ_ONCE(shared->area->head);

	if (shared->tail - head > shared->tail - shared->seen)
		return;
	/* Pairs with tw_shared_ready(), which must not see a head before this. */
	smp_store_release(&shared->seen, head);
}

/* Is the entry that was put at @position for this timer still to be taken? */
static bool tw_in_ring(const struct tw_shared *shared, u32 position, u32 nr)
{
	u32 head = READ_ONCE(shared->area->head);

	return position - head < shared->tail - head &&
	       READ_ONCE(shared->ring[position & shared->ring_mask]) == nr;
}

static bool tw_ring_full(const struct tw_shared *shared)
{
	/* Pairs with the program's, after it read the entry that is overwritten. */
	return shared->tail - smp_load_acquire(&shared->area->head) >
	       shared->ring_mask;
}

/*
 * Put a timer that has expired into the ring, unless it is there from an earlier
 * expiry that was withdrawn. (So no number is there twice, and the ring has room.)
 */
static void tw_ring_put(struct tw_shared *shared, u32 nr)
{
	/*
	 * Who takes entries moves the head past them, and then changes their words. As
	 * the word was changed here before, either it has fired for him, or his change
	 * came before, and then the entry is seen to be taken.
	 */
	if (tw_in_ring(shared, shared->positions[nr], nr))
		return;
	shared->positions[nr] = shared->tail;
	WRITE_ONCE(shared->ring[shared->tail & shared->ring_mask], nr);
	/* tw_shared_ready() looks at it without the lock. */
	WRITE_ONCE(shared->tail, shared->tail + 1);
	/* The entry is seen before it is counted. */
	smp_store_release(&shared->area->tail, shared->tail);
}

/**
 * struct tw_look - what came of a look at timers of a block
 * @due: deadlines until then expire, in ns of the program's time
 * @stamp: the time that it is now, in ns of the host's
 * @next: when to look again, in ns of the host's time, or TW_NEVER
 * @known: timers that were known before
 * @lost: timers that are not known any more
 * @armed: timers that expire, and were not known before
 * @fired: timers that expire
 * @cancelled: timers that were known and are cancelled
 */
struct tw_look {
	s64 due;
	s64 stamp;
	s64 next;
	u32 known;
	u32 lost;
	u32 armed;
	u32 fired;
	u32 cancelled;
};

/* Is a timer pending, and not due? (A word that is idle is negative.) */
static bool tw_word_later(s64 word, s64 due)
{
	return word & TWHEEL_WORD_ARMED && word > due;
}

static bool tw_word_cancelled(u64 word)
{
	return !(word & (TW_WORD_STATES | TWHEEL_WORD_ARMED));
}

/* A timer is due. Returns false if its word has changed. */
static bool tw_look_fire(struct twheel *tw, struct tw_look *look, u32 nr, u64 word)
{
	struct tw_shared *shared = tw->shared;
	u32 bit = BIT(nr % TW_BLOCK);

	if (unlikely(tw_ring_full(shared)) &&
	    !tw_in_ring(shared, shared->positions[nr], nr)) {
		/* Only for a program that broke the rules. */
		look->next = min_t(s64, look->next, look->stamp + TW_FULL_NS);
		return true;
	}
	if (!tw_word_fire(&shared->words[nr], word))
		return false;
	tw_ring_put(shared, nr);
	look->armed += !(look->known & bit);
	look->fired++;
	look->lost |= bit;
	return true;
}

/* A timer is not known any more, if its word says so. Returns false if that has changed. */
static bool tw_look_leave(struct twheel *tw, struct tw_look *look, u32 nr, u64 word)
{
	u32 bit = BIT(nr % TW_BLOCK);

	if (!(word & TW_WORD_STATES)) {
		if (!tw_word_leave(&tw->shared->words[nr], word))
			return false;
		look->cancelled += !!(look->known & bit);
	}
	look->lost |= bit;
	return true;
}

/* Look at a timer of which there is more to say than that it is pending. */
static noinline void tw_look_closer(struct twheel *tw, struct tw_look *look, u32 nr)
{
	unsigned int tries;
	bool done;

	for (tries = 0; tries < TW_TRIES; tries++) {
		u64 word = atomic64_read(&tw->shared->words[nr]);

		if (tw_word_later(word, look->due)) {
			look->next = min(look->next, tw_word_deadline(tw, word));
			return;
		}
		if (tw_word_pending(word))
			done = tw_look_fire(tw, look, nr, word);
		else
			done = tw_look_leave(tw, look, nr, word);
		if (done)
			return;
	}
	look->next = min(look->next, look->stamp + 1);
}

/*
 * Are all of a row pending, and none of them due? Then @first is the first deadline, if
 * it was not before.
 */
static bool tw_row_later(const atomic64_t *words, s64 due, s64 *first)
{
	s64 armed = TWHEEL_WORD_ARMED, row = *first;
	unsigned int i;

	if (!tw_word_later(atomic64_read(&words[0]), due))
		return false;
	for (i = 0; i < TW_ROW; i += 4) {
		s64 a = atomic64_read(&words[i]), b = atomic64_read(&words[i + 1]);
		s64 c = atomic64_read(&words[i + 2]), d = atomic64_read(&words[i + 3]);

		armed &= a & b & c & d;
		row = min(row, min(min(a, b), min(c, d)));
	}
	if (!armed || row <= due)
		return false;
	*first = row;
	return true;
}

/* Leave those that are cancelled, from the beginning of a row on. Returns how many. */
static unsigned int tw_row_leave(atomic64_t *words)
{
	unsigned int i;

	for (i = 0; i < TW_ROW; i++) {
		u64 word = atomic64_read(&words[i]);

		if (!tw_word_cancelled(word) || !tw_word_leave(&words[i], word))
			break;
	}
	return i;
}

/*
 * Look at the rows of a block of which all timers are to be looked at. Returns those
 * that are left to be looked at one by one.
 */
static u32 tw_look_rows(atomic64_t *words, u32 bits, s64 due, s64 *first, u32 *cancelled)
{
	u32 row, done, left = bits;

	for (row = 0; row < TW_BLOCK; row += TW_ROW, bits >>= TW_ROW) {
		if ((bits & TW_ROW_BITS) != TW_ROW_BITS)
			continue;
		if (tw_row_later(&words[row], due, first)) {
			done = TW_ROW_BITS;
		} else {
			done = BIT(tw_row_leave(&words[row])) - 1;
			*cancelled |= done << row;
		}
		left &= ~(done << row);
	}
	return left;
}

/*
 * What a look at timers of a block takes of the budget, of which a unit is 60 to 150
 * instructions: 2, however few they are; 1 for so many looks at one of them; and 2 for
 * each that expires. One that is not known any more counts as 2 looks more.
 */
#define TW_LOOKS 8

static u32 tw_look_cost(const struct tw_look *look, u32 bits)
{
	return 2 + 2 * look->fired +
	       (hweight32(bits) + 2 * hweight32(look->lost)) / TW_LOOKS;
}

/*
 * Look at timers of a block, one bit for each. Those that are found to be pending
 * are known from then on.
 *
 * Returns the first deadline of those that are, in ns of the host's time, or TW_NEVER.
 */
static s64 tw_block_look(struct twheel *tw, struct tw_block *block, u32 bits,
			 struct tw_step *step, s64 due)
{
	u32 base = (block - tw->shared->blocks) * TW_BLOCK;
	atomic64_t *words = &tw->shared->words[base];
	s64 first = TW_NEVER, due_word = tw_clock_to_user(&tw->wheel.clock, due);
	struct tw_look look = {
		.due = due_word,
		.stamp = step->stamp,
		.next = TW_NEVER,
		.known = block->known,
	};
	u32 cancelled = 0;
	unsigned long left;

	lockdep_assert_held(&tw->lock);
	/* Else the compiler adds @base again for each. */
	OPTIMIZER_HIDE_VAR(words);
	left = tw_look_rows(words, bits, due_word, &first, &cancelled);
	for (; left; left &= left - 1) {
		unsigned long at = __ffs(left);
		s64 word = atomic64_read(&words[at]);

		if (likely(tw_word_later(word, due_word)))
			first = min(first, word);
		else if (tw_word_cancelled(word) && tw_word_leave(&words[at], word))
			cancelled |= BIT(at);
		else
			tw_look_closer(tw, &look, base + at);
	}
	look.lost |= cancelled;
	look.cancelled += hweight32(cancelled & look.known);
	if (first != TW_NEVER)
		look.next = min(look.next, tw_word_deadline(tw, first));

	block->known = (look.known | bits) & ~look.lost;
	tw->shared->pending += hweight32(block->known) - hweight32(look.known);
	tw->stats.armed += look.armed + hweight32(block->known & ~look.known);
	tw->stats.cancelled += look.cancelled;

	step->expired += look.fired;
	step->budget -= min(step->budget, tw_look_cost(&look, bits));
	return look.next;
}

/**
 * tw_shared_ask() - what became of a block of shared timers?
 * @wheel: the wheel
 * @node: the block's node, which is on no list
 * @step: the step that the wheel takes
 * @due: what is due by then expires
 *
 * See &tw_wheel.ask.
 *
 * Context: holds the lock of the wheel.
 * Return: true, or false if none of them is pending.
 */
bool tw_shared_ask(struct tw_wheel *wheel, struct tw_node *node,
		   struct tw_step *step, s64 due)
{
	struct twheel *tw = container_of(wheel, struct twheel, wheel);
	struct tw_block *block = container_of(node, struct tw_block, node);

	node->deadline = tw_block_look(tw, block, block->known, step, due);
	if (block->known)
		return true;
	tw->shared_nodes--;
	return false;
}

/* Timers of a block, which has a node in the wheel if it was known, are dirty. */
static void tw_block_take_up(struct twheel *tw, struct tw_block *block, u32 bits,
			     struct tw_step *step)
{
	struct tw_node *node = &block->node;
	bool placed = block->known;
	s64 first = tw_block_look(tw, block, bits, step, step->stamp);

	if (placed && (!block->known || first < node->deadline)) {
		tw_wheel_del(&tw->wheel, node);
		tw->shared_nodes--;
		placed = false;
	}
	if (placed || !block->known)
		return;
	node->deadline = first;
	node->remote = 1;
	tw_wheel_add(&tw->wheel, node);
	tw->shared_nodes++;
}

static u64 tw_take_bits(atomic64_t *from)
{
	/* Most are 0, which is for less to be had. */
	return atomic64_read(from) ? atomic64_xchg(from, 0) : 0;
}

static u32 tw_group_words(const struct tw_shared *shared)
{
	return DIV_ROUND_UP(shared->nr_groups, 64);
}

static bool tw_any_dirty(const struct tw_shared *shared)
{
	u32 i;

	for (i = 0; i < tw_group_words(shared); i++)
		if (atomic64_read(&shared->groups[i]))
			return true;
	return false;
}

static bool tw_scan_over(const struct tw_shared *shared)
{
	return !shared->scan.groups &&
	       shared->scan.next == tw_group_words(shared);
}

/*
 * The next group in which a program says that there are dirty timers. It sets the bit
 * of a timer, and then that of its group, but only where that is not set. They are
 * cleared the other way round: so where it finds one set, the timers have yet to be
 * looked at.
 */
static u32 tw_next_group(struct tw_shared *shared)
{
	struct tw_scan *scan = &shared->scan;
	u32 at;

	for (;;) {
		while (scan->groups) {
			at = (scan->next - 1) * 64 + __ffs64(scan->groups);
			scan->groups &= scan->groups - 1;
			if (at < shared->nr_groups)
				return array_index_nospec(at, shared->nr_groups);
		}
		if (scan->next == tw_group_words(shared))
			return TW_NO_GROUP;
		scan->groups = tw_take_bits(&shared->groups[scan->next++]);
	}
}

static void tw_take_up_word(struct twheel *tw, u32 word, struct tw_step *step)
{
	struct tw_shared *shared = tw->shared;
	struct tw_block *block = &shared->blocks[word * (64 / TW_BLOCK)];
	u64 dirty = tw_take_bits(&shared->dirty[word]);
	u32 left = shared->nr - word * 64;

	if (left < 64)
		dirty &= BIT_ULL(left) - 1;
	for (; dirty; dirty >>= TW_BLOCK, block++)
		if (dirty & TW_BLOCK_BITS)
			tw_block_take_up(tw, block, dirty & TW_BLOCK_BITS, step);
}

static void tw_take_up_group(struct twheel *tw, u32 group, struct tw_step *step)
{
	u32 word = group * (TW_GROUP / 64);
	u32 end = min(word + TW_GROUP / 64, DIV_ROUND_UP(tw->shared->nr, 64));

	for (; word < end; word++)
		tw_take_up_word(tw, word, step);
	step->budget -= min(step->budget, 1U);
}

/**
 * tw_shared_take_up() - take up timers that are dirty
 * @tw: the wheel, with shared timers
 * @step: the time, the budget, and what was made ready at once
 *
 * Context: holds @tw->lock.
 * Return: true when more are left, as the budget is used up.
 */
bool tw_shared_take_up(struct twheel *tw, struct tw_step *step)
{
	struct tw_shared *shared = tw->shared;
	u32 group;

	lockdep_assert_held(&tw->lock);
	tw_ring_look(shared);
	if (tw_scan_over(shared)) {
		if (shared->passes >= TW_PASSES || !tw_any_dirty(shared))
			return false;
		shared->passes++;
		shared->scan.next = 0;
	}
	tw_wheel_forward(&tw->wheel, step->now);
	while (step->budget) {
		group = tw_next_group(shared);
		if (group == TW_NO_GROUP)
			break;
		tw_take_up_group(tw, group, step);
	}
	return !tw_scan_over(shared);
}

/**
 * tw_shared_sleep() - set the timer, and tell programs when it will be
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
	s64 next = max(tw->wheel.next, tick + 1);
	u64 before, wake = U64_MAX;

	lockdep_assert_held(&tw->lock);
	/* A program that does not let it sleep is looked at once in a tick. */
	if (shared->passes >= TW_PASSES)
		next = tick + 1;
	/* What expires at that tick is looked at in time, so the one before counts. */
	if (next != TW_NEVER) {
		before = tw_clock_tick_ns(&tw->wheel.clock, next - 1);
		wake = tw_clock_to_user(&tw->wheel.clock, tw_time_add(before, 1));
	}
	WRITE_ONCE(shared->area->next_wake, wake);
	/*
	 * Pairs with the program's barrier between the bits that it sets and its
	 * look at @next_wake: it sees the new one, or its bits are seen here.
	 */
	smp_mb();
	if (shared->passes < TW_PASSES && tw_any_dirty(shared))
		return false;
	shared->passes = 0;
	/* So that what is dirty by then is in the wheel in time. */
	if (next != TW_NEVER && next - tick > 2 * shared->lead)
		next -= shared->lead;
	tw_program(tw, next);
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
	/* Pairs with those who move it: a head that is loaded later is not before it. */
	u32 seen = smp_load_acquire(&shared->seen);

	return tw_ring_used(shared, seen, READ_ONCE(shared->area->head));
}

/*
 * Take the next expiry out of the ring, as a program would. Returns its timer, and the
 * word that it had. @tries ends it for a program that writes all the time.
 */
static bool tw_ring_take(struct tw_shared *shared, u32 *position, u32 *timer,
			 u64 *word, unsigned int *tries)
{
	for (; *tries; (*tries)--) {
		u32 head = READ_ONCE(shared->area->head);
		u32 nr;

		if (!tw_ring_used(shared, shared->seen, head))
			return false;
		nr = READ_ONCE(shared->ring[head & shared->ring_mask]);
		*position = head;
		if (!try_cmpxchg(&shared->area->head, &head, head + 1))
			continue;
		/* Pairs with tw_shared_ready(), which must not see a head before this. */
		smp_store_release(&shared->seen, *position + 1);
		if (nr >= shared->nr)
			continue;
		nr = array_index_nospec(nr, shared->nr);
		*timer = nr;
		*word = atomic64_fetch_andnot(TWHEEL_WORD_FIRED,
					      &shared->words[nr]);
		/* Else it was withdrawn. */
		if (*word & TWHEEL_WORD_FIRED)
			return true;
	}
	return false;
}

/* It could not be told: it has not been taken, unless it was armed meanwhile. */
static bool tw_word_untake(atomic64_t *at)
{
	u64 word = atomic64_read(at);

	return word & TWHEEL_WORD_IDLE &&
	       tw_word_set(at, word, word | TWHEEL_WORD_FIRED);
}

/*
 * Put those back that were taken from the ring, the first at @position, the last
 * before @end. (Who finds the head before what was seen of it looks again when he is
 * woken.)
 */
static void tw_ring_untake(struct tw_shared *shared, const u32 *timers,
			   unsigned int nr, u32 position, u32 end)
{
	u32 i, head = end, back = 0;

	for (i = 0; i < nr; i++)
		if (tw_word_untake(&shared->words[timers[i]]))
			back |= BIT(i);
	/* In order, unless somebody takes from it at this moment. */
	WRITE_ONCE(shared->seen, position);
	if (try_cmpxchg(&shared->area->head, &head, position))
		return;
	WRITE_ONCE(shared->seen, end);
	for (i = 0; i < nr; i++)
		if (back & BIT(i) && !tw_ring_full(shared))
			tw_ring_put(shared, timers[i]);
}

static void tw_shared_fill(struct twheel *tw, u32 nr, u64 word,
			   struct twheel_event *event)
{
	s64 deadline = tw_word_deadline(tw, word & ~TW_WORD_STATES);

	*event = (struct twheel_event){
		.user_data = nr,
		.deadline = tw_clock_to_user(&tw->wheel.clock, deadline),
		.flags = TWHEEL_EVENT_SHARED,
	};
}

/**
 * tw_shared_read() - take out events of shared timers as long as there are any
 * @tw: the wheel, with shared timers
 * @to: where to copy them
 * @unit: length of an event
 *
 * Context: may sleep.
 * Return: bytes copied, -EAGAIN when there are none, -EFAULT or -ERESTARTSYS.
 */
ssize_t tw_shared_read(struct twheel *tw, struct iov_iter *to, u32 unit)
{
	char events[TW_SHARED_EVENTS * sizeof(struct twheel_event)] __uninitialized;
	u32 first[TW_SHARED_EVENTS] __uninitialized;
	u32 timers[TW_SHARED_EVENTS] __uninitialized;
	bool faulted = false;
	ssize_t total = 0;

	while (iov_iter_count(to) >= unit) {
		unsigned int room = min_t(size_t, iov_iter_count(to) / unit,
					  TW_SHARED_EVENTS);
		unsigned int n, taken, tries = TW_BATCH;
		struct twheel_event event;
		size_t copied;
		u32 last = 0;
		u64 word;
		int ret;

		spin_lock_bh(&tw->lock);
		for (n = 0; n < room; n++) {
			if (!tw_ring_take(tw->shared, &first[n], &timers[n], &word,
					  &tries))
				break;
			last = first[n] + 1;
			tw_shared_fill(tw, timers[n], word, &event);
			memcpy(events + n * unit, &event, unit);
		}
		copied = tw_copy_nofault(events, n * unit, unit, to);
		taken = copied / unit;
		tw->stats.delivered += taken;
		if (taken < n)
			tw_ring_untake(tw->shared, timers + taken, n - taken,
				       first[taken], last);
		trace_twheel_read(tw, taken);
		spin_unlock_bh(&tw->lock);
		/* Others may have found nothing meanwhile. */
		if (taken < n)
			tw_wake(tw);

		total += copied;
		if (!n && tries)
			return total ?: -EAGAIN;
		if ((total || !n) && signal_pending(current))
			return total ?: -ERESTARTSYS;
		if (taken < n) {
			ret = tw_fault_in(to, unit, &faulted);
			if (ret)
				return total ?: ret;
		}
		cond_resched();
	}
	return total;
}

/**
 * tw_shared_drain() - take shared timers out
 * @tw: the wheel
 * @node: the node of their block, which is in the wheel
 * @ops: out: the operations that would arm them
 * @room: for how many
 *
 * The node is gone when no timer is left. Else it goes behind all others of its slot,
 * as its program may not leave them alone.
 *
 * Context: holds @tw->lock.
 * Return: how many were taken out.
 */
unsigned int tw_shared_drain(struct twheel *tw, struct tw_node *node,
			     struct twheel_op *ops, unsigned int room)
{
	struct tw_block *block = container_of(node, struct tw_block, node);
	struct tw_shared *shared = tw->shared;
	u32 first = (block - shared->blocks) * TW_BLOCK;
	unsigned int n = 0;
	u32 left;

	lockdep_assert_held(&tw->lock);
	for (left = block->known; left && n < room; left &= left - 1) {
		u32 nr = first + __ffs(left);
		u64 word = atomic64_read(&shared->words[nr]);

		if (!(word & TW_WORD_STATES) &&
		    !tw_word_set(&shared->words[nr], word,
				 (word & ~TWHEEL_WORD_ARMED) | TWHEEL_WORD_IDLE))
			continue;
		block->known &= ~BIT(nr % TW_BLOCK);
		shared->pending--;
		if (!tw_word_pending(word))
			continue;
		ops[n++] = (struct twheel_op){
			.opcode = TWHEEL_OP_ARM,
			.flags = TWHEEL_ABS,
			.state = TWHEEL_STATE_PENDING,
			.deadline = word,
			.user_data = nr,
		};
	}
	tw_wheel_del(&tw->wheel, node);
	if (block->known)
		tw_wheel_add(&tw->wheel, node);
	else
		tw->shared_nodes--;
	return n;
}

/**
 * tw_shared_undrain() - a shared timer that was taken out could not be told
 * @tw: the wheel
 * @op: what tw_shared_drain() made of it
 *
 * Context: holds @tw->lock.
 */
void tw_shared_undrain(struct twheel *tw, const struct twheel_op *op)
{
	struct tw_step step = { .budget = TW_BATCH };
	struct tw_shared *shared = tw->shared;
	u32 nr = op->user_data;
	u64 word = atomic64_read(&shared->words[nr]);

	lockdep_assert_held(&tw->lock);
	/* Unless the program has armed it meanwhile, which it then has told. */
	if (!(word & TWHEEL_WORD_IDLE) ||
	    !tw_word_set(&shared->words[nr], word, op->deadline))
		return;
	/* (As long ago as can be, so that nothing expires here.) */
	tw_block_take_up(tw, &shared->blocks[nr / TW_BLOCK],
			 BIT(nr % TW_BLOCK), &step);
}
