// SPDX-License-Identifier: GPL-2.0
/*
 * What the wheel promises about wake-ups and about work, with up to a million
 * timers, driven as kmod/expire.c drives it.
 *
 * Work is counted in basic blocks of the wheel's code, see work.h: so it counts
 * whatever is done, not what the wheel says it does.
 */
#include <stdlib.h>

#include "host.h"
#include "table.h"
#include "wheel.h"
#include "work.h"

#define MILLION 1000000U

/* As kmod/expire.c has it */
#define BUDGET 512

/*
 * Most blocks for each unit of the budget, and for what a call does besides,
 * which is to look at all levels. About twice what is needed.
 */
#define UNIT_BLOCKS 40
#define CALL_BLOCKS 1000

/* Most blocks of an operation on one timer */
#define OP_BLOCKS 100

static struct tw_wheel wheel;
static struct tw_table table;
static struct tw_list slots[TW_SLOTS];
static s64 due[MILLION + (1 << TW_CHUNK_SHIFT)];
static s64 now;
static u64 expired, moved, wakeups;
static u32 nr_due;

#define BLOCKS(call)							\
({									\
	u64 before = work_done();					\
									\
	call;								\
	work_done() - before;						\
})

static void begin(s64 start)
{
	now = start;
	nr_due = 0;
	expired = 0;
	moved = 0;
	wakeups = 0;
	tw_table_init(&table);
	tw_wheel_init(&wheel, &table, now);
	tw_wheel_set_slots(&wheel, slots);
}

static void end(void)
{
	u32 i;

	for (i = 0; i < table.nr_chunks; i++)
		free(table.chunks[i].nodes);
	free(table.chunks);
}

static u32 alloc(void)
{
	const unsigned int cap = 1 << TW_CHUNK_SHIFT;
	u32 more = 2 * table.max_chunks + 1;
	struct tw_node *nodes;

	if (!table.free) {
		nodes = malloc(cap * sizeof(*nodes));
		tw_chunk_format(nodes, cap);
		if (tw_table_full(&table))
			free(tw_table_grow(&table, malloc(more *
						sizeof(struct tw_chunk)), more));
		tw_table_add(&table, nodes, cap);
	}
	return tw_table_alloc(&table);
}

static u32 add(s64 expires)
{
	u32 index = alloc();

	REQUIRE(index < ARRAY_SIZE(due));
	due[index] = expires;
	nr_due++;
	tw_wheel_forward(&wheel, now);
	REQUIRE(BLOCKS(tw_wheel_add(&wheel, index, expires)) < OP_BLOCKS);
	return index;
}

static void mod(u32 index, s64 expires)
{
	due[index] = expires;
	tw_wheel_forward(&wheel, now);
	REQUIRE(BLOCKS(tw_wheel_mod(&wheel, index, expires)) < OP_BLOCKS);
}

/* Those after @last were made ready: is it the right tick? */
static void check_expired(const struct tw_step *step, u32 last)
{
	u32 index = last == TW_NIL ? wheel.ready.first :
				     tw_node(&table, last)->next;
	u32 n;

	for (n = 0; n < step->expired; n++) {
		REQUIRE_EQ(due[index], step->tick);
		index = tw_node(&table, index)->next;
	}
	expired += n;
}

/* A run of the timer or of the worker: tw_run() of kmod/expire.c. */
static bool run(void)
{
	struct tw_step step = { .now = now, .stamp = now, .budget = BUDGET };
	bool more;

	do {
		u32 last = wheel.ready.last;
		u32 budget = step.budget;
		u64 had_moved = step.moved;
		u64 work = BLOCKS(more = tw_wheel_step(&wheel, &step));

		/* With room for a slot and a node, something gets done. */
		REQUIRE(!more || budget < 2 || step.expired ||
			step.moved > had_moved);
		REQUIRE(step.budget <= budget);
		REQUIRE(work < (budget - step.budget) * UNIT_BLOCKS +
			       CALL_BLOCKS);
		check_expired(&step, last);
	} while (more && step.budget);
	moved += step.moved;
	return more;
}

/* A wake-up at the tick for which the hrtimer is set, with all that follows */
static void wake_up(void)
{
	u32 runs = 0;

	now = max(wheel.next, now + 1);
	/* Far more than there ever are: it runs in circles. */
	REQUIRE(++wakeups <= 20 * (u64)nr_due);
	while (run())
		REQUIRE(++runs < 20 * MILLION / BUDGET);
	REQUIRE_EQ(wheel.clk, now + 1);
}

static void run_until_empty(void)
{
	while (wheel.pending)
		wake_up();
	REQUIRE_EQ(expired, nr_due);
	REQUIRE_EQ(wheel.next, TW_NEVER);
}

static s64 any_span(unsigned int bits)
{
	return host_random() >> (64 - bits) >> host_below(bits);
}

static void lone_timer(s64 start, s64 expires)
{
	begin(start);
	add(expires);
	run_until_empty();
	REQUIRE_EQ(now, expires);
	REQUIRE(wakeups <= 2);
	REQUIRE(moved < TW_LEVELS);
	end();
}

static void an_hour_away(void)
{
	s64 start;

	for (start = 0; start < 10000; start++)
		lone_timer(start, start + 900000);
	for (start = 0; start < 1000; start++)
		lone_timer(start * 4096 - !!start, start * 4096 + 900000);
}

static void any_time_away(void)
{
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < 100000; i++) {
		s64 start = any_span(53);

		lone_timer(start, start + 1 + any_span(53));
	}
}

static void lone_timer_pushed_ahead(void)
{
	s64 start;
	u32 index;

	for (start = 0; start < 10000; start++) {
		begin(start);
		index = add(start + 900000);
		/* The program is busy, at times that the wheel does not see. */
		for (now = start; now < start + 800000; now += 7919)
			mod(index, now + 900000);
		run_until_empty();
		REQUIRE_EQ(now, due[index]);
		REQUIRE(wakeups <= 2);
		end();
	}
}

static void empty_wheel(void)
{
	u32 index;

	begin(12345);
	REQUIRE_EQ(wheel.next, TW_NEVER);
	REQUIRE_EQ(tw_wheel_next(&wheel), TW_NEVER);
	index = add(20000);
	tw_wheel_del(&wheel, index);
	REQUIRE_EQ(wheel.next, TW_NEVER);
	index = add(20000);
	mod(index, 30000);
	tw_wheel_del(&wheel, index);
	REQUIRE_EQ(wheel.next, TW_NEVER);
	index = add(20000);
	wake_up();
	REQUIRE_EQ(now, 20000);
	REQUIRE_EQ(wheel.next, TW_NEVER);
	/* What is ready does not keep it awake. */
	mod(index, 1LL << 50);
	tw_wheel_del(&wheel, index);
	REQUIRE_EQ(wheel.next, TW_NEVER);
	end();
}

static int compare(const void *a, const void *b)
{
	const s64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static u32 occupied_ticks(void)
{
	u32 i, n = 0;

	qsort(due, nr_due, sizeof(due[0]), compare);
	for (i = 0; i < nr_due; i++)
		n += !i || due[i] != due[i - 1];
	return n;
}

/* So few that no slot is large: they wake up for nothing but themselves. */
static void few_timers(void)
{
	unsigned int i, n;

	host_seed(host_first_seed());
	for (i = 0; i < 20000; i++) {
		unsigned int bits = 1 + host_below(53);

		begin(any_span(53));
		for (n = host_below(TW_SMALL_SLOT + 1); n; n--)
			add(now + 1 + any_span(bits));
		run_until_empty();
		REQUIRE(wakeups <= occupied_ticks());
		end();
	}
}

/* Each further wake-up brings down a large slot, or what is left of it. */
static void many_timers(void)
{
	u32 timers, ticks;
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < 40; i++) {
		unsigned int bits = 8 + host_below(30);
		u64 preloads = 0;

		begin(any_span(53));
		timers = any_span(17);
		while (nr_due < timers)
			add(now + 1 + (host_random() >> (64 - bits)));
		while (wheel.pending) {
			u64 was = expired, had_moved = moved;

			wake_up();
			if (expired != was)
				continue;
			REQUIRE(moved - had_moved > TW_SMALL_SLOT);
			preloads++;
		}
		REQUIRE_EQ(expired, nr_due);
		/* A timer goes down a level at a time at most. */
		REQUIRE(moved <= (u64)TW_LEVELS * nr_due);
		ticks = occupied_ticks();
		REQUIRE(wakeups <= ticks + preloads);
		REQUIRE(preloads <= moved / TW_SMALL_SLOT);
		end();
	}
}

static void a_million_in_one_tick(void)
{
	struct tw_step step = { .budget = BUDGET };
	u64 work;
	u32 i;

	begin(1000);
	for (i = 0; i < MILLION; i++)
		add(1010);
	REQUIRE_EQ(wheel.next, 1010);
	step.now = 1010;
	work = BLOCKS(tw_wheel_step(&wheel, &step));
	REQUIRE_EQ(step.expired, MILLION);
	REQUIRE_EQ(step.budget, BUDGET - 1);
	REQUIRE(work < CALL_BLOCKS);
	check_expired(&step, TW_NIL);
	REQUIRE(!tw_wheel_step(&wheel, &step));
	end();
}

/* Of a million timers one in each of @ticks, how many are due by @now? */
static u32 due_by_now(s64 from, u32 ticks)
{
	s64 passed = max(0, min(ticks, now - from + 1));

	return passed * (MILLION / ticks) + min(passed, MILLION % ticks);
}

/*
 * A million timers in one slot of @level, and the worker gets as little time as
 * can be: so many runs a tick. Preloading begins so early that it is enough.
 */
static void a_million_in_one_slot(unsigned int level, unsigned int runs)
{
	u32 i, ticks = 1U << level * TW_TURN_BITS;
	s64 from = 1000LL * ticks;
	bool more = false;

	begin(5);
	for (i = 0; i < MILLION; i++)
		add(from + i % ticks);
	now = wheel.next - 1;
	while (wheel.pending) {
		now++;
		/* Nothing runs without a wake-up or something left. */
		for (i = 0; i < runs && (more || wheel.next <= now); i++)
			more = run();
		REQUIRE_EQ(expired, due_by_now(from, ticks));
	}
	REQUIRE_EQ(expired, MILLION);
	REQUIRE(moved <= (u64)TW_LEVELS * MILLION);
	end();
}

static void slot_of_level_1(void)
{
	/* There is a tick for every 15,625 timers. */
	a_million_in_one_slot(1, 40);
}

static void slot_of_level_2(void)
{
	a_million_in_one_slot(2, 1);
}

static void slot_of_level_3(void)
{
	a_million_in_one_slot(3, 1);
}

/* Nodes that are not to expire yet have to be looked at, but in pieces. */
static void a_million_pushed_ahead(void)
{
	u64 runs = 0;
	u32 i;

	begin(1000);
	for (i = 0; i < MILLION; i++)
		add(1010);
	for (i = 0; i < nr_due; i += 2)
		mod(i, 1010 + 100 + i);
	now = 1010;
	while (run())
		runs++;
	REQUIRE_EQ(expired, MILLION / 2);
	REQUIRE(runs >= MILLION / BUDGET);
	run_until_empty();
	end();
}

static s64 same(const struct tw_wheel *of, const struct tw_node *node)
{
	(void)of;
	return node->expires;
}

/* Nothing is expired unseen where a clock can be set. */
static void a_million_on_a_settable_clock(void)
{
	u64 runs = 0;
	u32 i;

	begin(1000);
	wheel.refresh = same;
	for (i = 0; i < MILLION; i++)
		add(1010);
	now = 1010;
	while (run())
		runs++;
	REQUIRE_EQ(expired, MILLION);
	REQUIRE(runs >= MILLION / BUDGET);
	end();
}

/* As much as can be to look at for a call that does nothing */
static void slots_full_of_few(void)
{
	unsigned int level, i;
	s64 width;
	u64 work;

	begin(0);
	for (level = 0; level < TW_LEVELS; level++) {
		width = 1LL << level * TW_TURN_BITS;
		for (i = 0; i < TW_TURN * TW_SMALL_SLOT; i++)
			add((2 + i / TW_SMALL_SLOT) * width + i);
	}
	work = BLOCKS(tw_wheel_next(&wheel));
	REQUIRE(work < CALL_BLOCKS);
	run_until_empty();
	end();
}

/* With a million others, at times near and far, as with none */
static void constant_operations(void)
{
	u64 work;
	u32 i;

	host_seed(host_first_seed());
	begin(1000);
	for (i = 0; i < MILLION; i++)
		add(now + 1 + any_span(40));
	for (i = 0; i < MILLION; i++)
		mod(i, now + 1 + any_span(40));
	for (i = 0; i < MILLION; i++) {
		work = BLOCKS(tw_wheel_del(&wheel, i));
		REQUIRE(work < OP_BLOCKS);
	}
	REQUIRE_EQ(wheel.next, TW_NEVER);
	end();
}

int main(void)
{
	host_plan(14);
	host_test("a lone timer an hour away: two wake-ups at most",
		  an_hour_away);
	host_test("a lone timer any time away: two wake-ups at most",
		  any_time_away);
	host_test("a lone timer that is pushed ahead: two wake-ups at most",
		  lone_timer_pushed_ahead);
	host_test("an empty wheel never wakes up", empty_wheel);
	host_test("few timers: no wake-up without an expiry", few_timers);
	host_test("many timers: no more wake-ups than ticks and large slots",
		  many_timers);
	host_test("a million timers in one tick: one step in constant time",
		  a_million_in_one_tick);
	host_test("a million timers in a slot of level 1: in budget, in time",
		  slot_of_level_1);
	host_test("a million timers in a slot of level 2: in budget, in time",
		  slot_of_level_2);
	host_test("a million timers in a slot of level 3: in budget, in time",
		  slot_of_level_3);
	host_test("a million timers in one tick, half of them pushed ahead",
		  a_million_pushed_ahead);
	host_test("a million timers in one tick of a clock that can be set",
		  a_million_on_a_settable_clock);
	host_test("as many slots as can be, each as full as is still small",
		  slots_full_of_few);
	host_test("add, mod and del take constant time",
		  constant_operations);
	return host_end();
}
