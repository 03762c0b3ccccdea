/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is done with every kind of timer, in the same order. Included by each
 * peer, so that the compiler sees the peer's calls as it would in a program that
 * uses it, with nothing in between.
 *
 * The peer defines TIMER, the fields that it needs for a timer, before this, and
 * after it the functions that are declared here. It calls expired() for each
 * timer that expires.
 */
#ifndef PEER_H
#define PEER_H

#include <err.h>

#include "bench.h"

/* A jiffy of Debian's kernels, and how many timers expire in each. */
#define TICK (4 * MS)
#define DENSITY 256

/* How far ahead timers are armed that are to expire. */
#define LEAD SECOND

/* A connection: what its timeout is, how often and how often again it is pushed. */
#define TIMEOUT (60 * SECOND)
#define PUSHES 20
#define PUSH_EVERY (5 * SECOND)
#define EXPIRES_ONE_IN 20

/* Connections that are looked after in one turn of the loop. */
#define BATCH 256

/* Time between two turns when there is nothing but expiry. */
#define SLICE (64 * TICK)

/* Where a program has its timers: in what they are the timers of. */
struct timer {
	TIMER;
	uint64_t deadline;
	bool waited_for;
} __attribute__((aligned(64)));

/* What comes first for a timer, and what its next deadline needs in advance. */
static void create(struct timer *t);
static void prepare(struct timer *t);

/* Prepared, and with a deadline. */
static void arm(struct timer *t);
static void modify(struct timer *t);
static void cancel(struct timer *t);

/* To TIMEOUT from now, for the first time and again. */
static void arm_connection(struct timer *t);
static void push(struct timer *t);

/*
 * A turn of the loop: everything expires that is to by now, and, if not NULL,
 * a function is called, from where programs arm their timers: a callback.
 */
static void turn(void (*callback)(void));

static struct timer *timers;
static size_t count, left;
/* What is next of order[]. */
static size_t from, to;

static inline void expired(struct timer *t, uint64_t when)
{
	if (__builtin_expect(t->deadline > when || !t->waited_for, 0))
		errx(1, "%s: an expiry that is early, unasked or a second one", peer.name);
	t->waited_for = false;
	left--;
}

static void create_timers(size_t n)
{
	size_t i;

	count = n;
	timers = array(count, sizeof(*timers));
	for (i = 0; i < count; i++)
		create(&timers[i]);
}

/* New deadlines, uniform over @range from @start on. */
static void prepare_all(uint64_t start, uint64_t range)
{
	size_t i;

	for (i = 0; i < count; i++) {
		timers[i].deadline = start + rnd(range);
		prepare(&timers[i]);
	}
}

/* The compiler shall not leave out the loop around it. */
static inline void nothing(struct timer *t)
{
	asm volatile("" : : "r"(t) : "memory");
}

static void nothing_for_all(enum operation op)
{
	size_t i;

	if (!counting)
		return;
	begin();
	for (i = 0; i < count; i++)
		nothing(&timers[order[i]]);
	take_off(op);
}

static void arm_all(void)
{
	size_t i;

	begin();
	for (i = 0; i < count; i++)
		arm(&timers[i]);
	end(ARM);
	if (!counting)
		return;
	begin();
	for (i = 0; i < count; i++)
		nothing(&timers[i]);
	take_off(ARM);
}

static void modify_all(enum operation op)
{
	size_t i;

	begin();
	for (i = 0; i < count; i++)
		modify(&timers[order[i]]);
	end(op);
	nothing_for_all(op);
}

static void modify_all_later(void)
{
	modify_all(MODIFY_LATER);
}

static void modify_all_earlier(void)
{
	modify_all(MODIFY_EARLIER);
}

static void cancel_all(void)
{
	size_t i;

	begin();
	for (i = 0; i < count; i++)
		cancel(&timers[order[i]]);
	end(CANCEL);
	nothing_for_all(CANCEL);
}

static void arm_all_unmeasured(void)
{
	size_t i;

	for (i = 0; i < count; i++) {
		arm(&timers[i]);
		timers[i].waited_for = true;
	}
	left = count;
}

static void all_expired(void)
{
	if (left)
		errx(1, "%s: %zu timers did not expire", peer.name, left);
}

/* Time jumps from before the first deadline to after the last. */
static void expire_all(void)
{
	uint64_t start = now + LEAD;
	uint64_t range = count * TICK / DENSITY;

	prepare_all(start, range);
	turn(arm_all_unmeasured);
	now = start + range + TICK;
	begin();
	turn(NULL);
	end(EXPIRE_READ);
	all_expired();
}

__attribute__((unused))
static void uniform(void)
{
	prepare_all(now + 100 * SECOND, 100 * SECOND);
	turn(arm_all);
	prepare_all(now + 200 * SECOND, 100 * SECOND);
	shuffle();
	turn(modify_all_later);
	prepare_all(now + 50 * SECOND, 100 * SECOND);
	shuffle();
	turn(modify_all_earlier);
	shuffle();
	turn(cancel_all);
	expire_all();
}

static void arm_connections(void)
{
	for (; from < to; from++) {
		struct timer *t = &timers[order[from]];

		t->deadline = now + TIMEOUT;
		arm_connection(t);
	}
}

static void push_connections(void)
{
	for (; from < to; from++) {
		struct timer *t = &timers[order[from]];

		t->deadline = now + TIMEOUT;
		push(t);
	}
}

/* (As many instructions, but the deadline stays.) */
static void push_nothing(void)
{
	for (; from < to; from++) {
		struct timer *t = &timers[order[from]];

		__atomic_store_n(&t->deadline, __atomic_load_n(&t->deadline, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
		nothing(t);
	}
}

static void cancel_connections(void)
{
	for (; from < to; from++)
		cancel(&timers[order[from]]);
}

/* One operation for each connection, spread over the time until the next one. */
static void each_connection(size_t n, void (*batch)(void))
{
	uint64_t start = now;

	begin();
	for (from = 0; from < n; ) {
		to = from + BATCH < n ? from + BATCH : n;
		now = start + PUSH_EVERY * from / n / MS * MS;
		turn(batch);
	}
	end(CONNECTION);
	if (counting) {
		begin();
		for (from = 0; from < n; ) {
			to = from + BATCH < n ? from + BATCH : n;
			push_nothing();
		}
		take_off(CONNECTION);
	}
	now = start + PUSH_EVERY;
}

/* Move timers that are cancelled to the front; returns how many. */
static size_t choose_cancelled(void)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		uint32_t timer = order[i];

		if (timer % EXPIRES_ONE_IN) {
			order[i] = order[n];
			order[n++] = timer;
		} else {
			timers[timer].waited_for = true;
			left++;
		}
	}
	return n;
}

/* Every connection lives once. */
static void connections(void)
{
	uint64_t deadline;
	size_t i;

	each_connection(count, arm_connections);
	for (i = 0; i < PUSHES; i++) {
		shuffle();
		each_connection(count, push_connections);
	}
	deadline = now + TIMEOUT + TICK;
	each_connection(choose_cancelled(), cancel_connections);
	begin();
	for (; now < deadline + SLICE; now += SLICE)
		turn(NULL);
	end(CONNECTION);
	all_expired();
}

#endif /* PEER_H */
