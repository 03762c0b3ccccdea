// SPDX-License-Identifier: GPL-2.0
/*
 * What the wheel promises about wake-ups and about work, with up to a million
 * timers, driven as kmod/expire.c drives it.
 *
 * Work is counted in basic blocks of the wheel's code, see work.h: so it counts
 * whatever is done, not what the wheel says it does.
 */
#include <stdlib.h>
#include <string.h>
#include <uapi/linux/twheel.h>

#include "host.h"
#include "table.h"
#include "wheel.h"
#include "work.h"

#define MILLION 1000000U

/* As kmod/expire.c has it */
#define BUDGET 512

/* As short as can be: so all ticks that the wheel can reach have a time. */
#define TICK_NS 2

/*
 * Most blocks for each unit of the budget, and for what a call does besides,
 * which is to look at all levels. About twice what is needed.
 */
#define UNIT_BLOCKS 40
#define CALL_BLOCKS 1000

/* Most blocks of an operation on one timer */
#define OP_BLOCKS 100

static struct tw_wheel wheel;
static struct tw_slot slots[TW_SLOTS_BYTES / sizeof(struct tw_slot)];

/* Nodes are used in the order of their indices, and not given back. */
#define FIRST_INDEX TW_CHUNK_NODES
#define CHUNKS (MILLION / TW_CHUNK_NODES + 3)

static struct tw_table table;
static struct tw_node *nodes;
static unsigned long dir[CHUNKS];
/* At which tick a node expires, in the order in which they were added */
static s64 due[(CHUNKS - 1) * TW_CHUNK_NODES];
static s64 now;
static u64 expired, moved, wakeups;
static u32 nr_due;
/* For the wheel that is begun next */
static u32 phase;

#define BLOCKS(call)							\
({									\
	u64 before = work_done();					\
									\
	call;								\
	work_done() - before;						\
})

static void begin(s64 start)
{
	struct tw_clock clock;
	u32 i;

	now = start;
	nr_due = 0;
	expired = 0;
	moved = 0;
	wakeups = 0;
	tw_clock_init(&clock);
	tw_clock_set(&clock, TWHEEL_CLOCK_MONOTONIC, TICK_NS);
	memset(slots, 0, sizeof(slots));
	/* A table that is no more than nodes by index */
	if (!nodes)
		nodes = calloc(CHUNKS, TW_CHUNK_BYTES);
	for (i = 0; i < CHUNKS; i++)
		dir[i] = (unsigned long)nodes;
	tw_table_init(&table);
	table.dir = dir;
	tw_wheel_init(&wheel, &table, &clock, now, phase);
	tw_wheel_set_slots(&wheel, slots, false);
}

static struct tw_node *node_of(u32 number)
{
	return tw_node_at(&table, FIRST_INDEX + number);
}

/* What is to expire at a tick: at its start, or later than the one before it */
static s64 deadline_of(s64 tick, u32 index)
{
	return (tick - wheel.clock.tick_offset) * TICK_NS - index % TICK_NS;
}

static u32 add(s64 expires)
{
	u32 index = nr_due++;
	struct tw_node *node;

	ASSERT_TRUE(index < ARRAY_SIZE(due));
	node = node_of(index);
	due[index] = expires;
	node->deadline = deadline_of(expires, index);
	node->flags = 0;
	tw_wheel_forward(&wheel, now);
	if (wheel.set_back)
		tw_wheel_settle(&wheel);
	ASSERT_TRUE(BLOCKS(tw_wheel_add(&wheel, node, FIRST_INDEX + index)) < OP_BLOCKS);
	return index;
}

static void mod(u32 index, s64 expires)
{
	s64 deadline = deadline_of(expires, index);

	due[index] = expires;
	tw_wheel_forward(&wheel, now);
	ASSERT_TRUE(BLOCKS(tw_wheel_mod(&wheel, node_of(index), FIRST_INDEX + index,
					deadline, 0)) < OP_BLOCKS);
}

static void del(u32 index)
{
	ASSERT_TRUE(BLOCKS(tw_wheel_del(&wheel, node_of(index), FIRST_INDEX + index)) <
		    OP_BLOCKS);
}

/* Timers after @last were made ready: is it the right tick? */
static void check_expired(const struct tw_step *step, const struct tw_list *last)
{
	unsigned int i;
	u32 n = 0, index;

	for (i = 0; i < TW_READY_LISTS; i++) {
		index = last[i].last ? tw_node_at(&table, last[i].last)->next :
				       wheel.ready.list[i].first;
		for (; index; index = tw_node_at(&table, index)->next, n++)
			ASSERT_EQ(due[index - FIRST_INDEX], step->tick);
	}
	ASSERT_EQ(n, step->expired);
	expired += n;
}

/* A run: tw_run() of kmod/expire.c. */
static bool run(void)
{
	struct tw_step step = {
		.now = now,
		.budget = BUDGET,
	};
	bool more;

	do {
		struct tw_list last[TW_READY_LISTS];
		u32 budget = step.budget;
		u64 had_moved = step.moved;
		u64 work;

		memcpy(last, wheel.ready.list, sizeof(last));
		work = BLOCKS(more = tw_wheel_step(&wheel, &step));

		/* With room for a slot and a node, something gets done. */
		ASSERT_TRUE(!more || budget < 2 || step.expired ||
			    step.moved > had_moved);
		ASSERT_TRUE(step.budget <= budget);
		ASSERT_TRUE(work < (budget - step.budget) * UNIT_BLOCKS +
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
	ASSERT_TRUE(++wakeups <= 20 * (u64)nr_due);
	while (run())
		ASSERT_TRUE(++runs < 20 * MILLION / BUDGET);
	ASSERT_EQ(wheel.clk, now + 1);
}

static void run_until_empty(void)
{
	while (wheel.pending)
		wake_up();
	ASSERT_EQ(expired, nr_due);
	ASSERT_EQ(wheel.next, TW_NEVER);
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
	ASSERT_EQ(now, expires);
	ASSERT_TRUE(wakeups <= 2);
	ASSERT_TRUE(moved < TW_LVL_DEPTH);
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

static void pushed_ahead(s64 start, s64 first, s64 ahead)
{
	u32 index;

	begin(start);
	index = add(start + first);
	/* The program is busy, at times that the wheel does not see. */
	for (now = start; now < start + first - 100; now += first / 100)
		mod(index, now + ahead);
	run_until_empty();
	ASSERT_EQ(now, due[index]);
	ASSERT_TRUE(wakeups <= 2);
}

static void lone_timer_pushed_ahead(void)
{
	s64 start;

	for (start = 0; start < 10000; start++) {
		pushed_ahead(start, 900000, 900000);
		/* As far as an hour in ticks of 1 us */
		pushed_ahead(start, 10000, 3600000000);
	}
}

static void empty_wheel(void)
{
	u32 index;

	begin(12345);
	ASSERT_EQ(wheel.next, TW_NEVER);
	ASSERT_EQ(tw_wheel_next(&wheel), TW_NEVER);
	index = add(20000);
	del(index);
	ASSERT_EQ(wheel.next, TW_NEVER);
	index = add(20000);
	mod(index, 30000);
	del(index);
	ASSERT_EQ(wheel.next, TW_NEVER);
	index = add(20000);
	wake_up();
	ASSERT_EQ(now, 20000);
	ASSERT_EQ(wheel.next, TW_NEVER);
	/* What is ready does not keep it awake. */
	mod(index, 1LL << 50);
	del(index);
	ASSERT_EQ(wheel.next, TW_NEVER);
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
		ASSERT_TRUE(wakeups <= occupied_ticks());
		}
}

/* Each further wake-up cascades a large slot, or what is left of it. */
static void many_timers(void)
{
	u32 timers, ticks;
	unsigned int i;

	host_seed(host_first_seed());
	for (i = 0; i < 40; i++) {
		unsigned int bits = 8 + host_below(30);
		u64 preloads = 0;

		phase = host_random();
		begin(any_span(53));
		timers = any_span(17);
		while (nr_due < timers)
			add(now + 1 + (host_random() >> (64 - bits)));
		while (wheel.pending) {
			u64 was = expired, had_moved = moved;

			wake_up();
			if (expired != was)
				continue;
			ASSERT_TRUE(moved - had_moved > TW_SMALL_SLOT);
			preloads++;
		}
		ASSERT_EQ(expired, nr_due);
		/* A timer goes down a level at a time at most. */
		ASSERT_TRUE(moved <= (u64)TW_LVL_DEPTH * nr_due);
		ticks = occupied_ticks();
		ASSERT_TRUE(wakeups <= ticks + preloads);
		ASSERT_TRUE(preloads <= moved / TW_SMALL_SLOT);
		}
}

/* Each wheel begins to preload at a tick of its own, early while the slot before runs. */
static void not_in_step(void)
{
	static bool taken[TW_LVL_CLK_DIV * TW_LVL_CLK_DIV / 4];
	const s64 slot = 5 * TW_LVL_CLK_DIV * TW_LVL_CLK_DIV;
	unsigned int i;
	s64 late;

	for (phase = 1000; phase < 1000 + ARRAY_SIZE(taken); phase++) {
		begin(slot - 2 * TW_LVL_CLK_DIV * TW_LVL_CLK_DIV - 10);
		for (i = 0; i <= TW_SMALL_SLOT; i++)
			add(slot + i);
		wake_up();
		late = now - (slot - TW_LVL_CLK_DIV * TW_LVL_CLK_DIV);
		ASSERT_TRUE(late >= 0 && late < ARRAY_SIZE(taken));
		ASSERT_TRUE(!taken[late]);
		taken[late] = true;
		ASSERT_TRUE(moved > 0 && !expired);
	}
	phase = 0;
}

static void a_million_in_one_tick(void)
{
	const struct tw_list none[TW_READY_LISTS] = {};
	struct tw_step step = { .budget = BUDGET };
	u64 work;
	u32 i;

	begin(1000);
	for (i = 0; i < MILLION; i++)
		add(1010);
	ASSERT_EQ(wheel.next, 1010);
	step.now = 1010;
	work = BLOCKS(tw_wheel_step(&wheel, &step));
	ASSERT_EQ(step.expired, MILLION);
	ASSERT_EQ(step.budget, BUDGET - 1);
	ASSERT_TRUE(work < CALL_BLOCKS);
	check_expired(&step, none);
	ASSERT_TRUE(!tw_wheel_step(&wheel, &step));
}

/* How many of a million timers, one in each of @ticks, are due by @now? */
static u32 due_by_now(s64 from, u32 ticks)
{
	s64 passed = max(0, min(ticks, now - from + 1));

	return passed * (MILLION / ticks) + min(passed, MILLION % ticks);
}

/*
 * A million timers in one slot of @level, and as little time as can be: so many runs
 * a tick. Preloading begins so early that it is enough, also in
 * the wheel that begins last.
 */
static void a_million_in_one_slot(unsigned int level, unsigned int runs)
{
	u32 i, ticks = 1U << level * TW_LVL_CLK_SHIFT;
	s64 from = 1000LL * ticks;
	bool more = false;

	/* The latest */
	phase = U32_MAX;
	begin(5);
	phase = 0;
	for (i = 0; i < MILLION; i++)
		add(from + i % ticks);
	now = wheel.next - 1;
	while (wheel.pending) {
		now++;
		/* Nothing runs without a wake-up or something left. */
		for (i = 0; i < runs && (more || wheel.next <= now); i++)
			more = run();
		ASSERT_EQ(expired, due_by_now(from, ticks));
	}
	ASSERT_EQ(expired, MILLION);
	ASSERT_TRUE(moved <= (u64)TW_LVL_DEPTH * MILLION);
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

/* Timers that are pushed ahead don't keep the others from expiring at once. */
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
	ASSERT_EQ(expired, MILLION / 2);
	ASSERT_TRUE(runs <= 2);
	run_until_empty();
}

/*
 * What level 0 has when a clock is set back is looked at one by one. What is added
 * then can be added the short way at once, and what is added when level 0 has turned
 * is expired whole again.
 */
static void a_million_on_a_clock_set_back(void)
{
	u64 runs = 0;
	u32 i;

	begin(1000);
	for (i = 0; i < MILLION / 4; i++)
		add(1010);
	ASSERT_EQ(tw_wheel_set_back(&wheel, now - 5), 5);
	for (i = 0; i < nr_due; i++)
		due[i] += 5;
	ASSERT_TRUE(tw_wheel_settle(&wheel));
	for (i = 0; i < MILLION / 4; i++)
		add(1015);
	now = 1014;
	while (run())
		runs++;
	ASSERT_EQ(expired, 0);
	ASSERT_TRUE(runs >= MILLION / 4 / BUDGET);
	now = 1015;
	while (run())
		runs++;
	ASSERT_EQ(expired, MILLION / 2);
	ASSERT_TRUE(runs >= MILLION / 2 / BUDGET);

	runs = 0;
	now += TW_LVL_SIZE;
	for (i = 0; i < MILLION / 2; i++)
		add(now + 1);
	now++;
	while (run())
		runs++;
	ASSERT_EQ(expired, MILLION);
	ASSERT_TRUE(runs <= 2);
}

/* As much as can be to look at for a call that does nothing */
static void slots_full_of_few(void)
{
	unsigned int level, i;
	s64 width;
	u64 work;

	begin(0);
	for (level = 0; level < TW_LVL_DEPTH; level++) {
		width = 1LL << level * TW_LVL_CLK_SHIFT;
		for (i = 0; i < TW_LVL_CLK_DIV * TW_SMALL_SLOT; i++)
			add((2 + i / TW_SMALL_SLOT) * width + i);
	}
	work = BLOCKS(tw_wheel_next(&wheel));
	ASSERT_TRUE(work < CALL_BLOCKS);
	run_until_empty();
}

/* With a million others, at times near and far, as with none */
static void constant_operations(void)
{
	u32 i;

	host_seed(host_first_seed());
	begin(1000);
	for (i = 0; i < MILLION; i++)
		add(now + 1 + any_span(40));
	for (i = 0; i < MILLION; i++)
		mod(i, now + 1 + any_span(40));
	for (i = 0; i < MILLION; i++)
		del(i);
	ASSERT_EQ(wheel.next, TW_NEVER);
}

/* Read the event of one timer, as a program does that has room for one. */
static u32 read_one(void)
{
	struct tw_reader reader;
	u32 index;

	tw_reader_init(&wheel, &reader);
	ASSERT_TRUE(tw_reader_next(&wheel, &reader, &index));
	tw_reader_cut(&wheel, &reader);
	return index - FIRST_INDEX;
}

/* A program that arms a timer for now whenever such a one was read, and reads one at a time */
static void armed_for_now(void)
{
	const u32 nr = 1000;
	u32 left = nr, reads = 0;

	begin(0);
	while (nr_due < nr)
		add(1 + nr_due % 10);
	run_until_empty();
	tw_wheel_add_ready(&wheel, node_of(nr), FIRST_INDEX + nr);
	while (left) {
		u32 number = read_one();

		ASSERT_TRUE(++reads <= 2 * nr + 30);
		left -= number < nr;
		if (number == nr)
			tw_wheel_add_ready(&wheel, node_of(nr), FIRST_INDEX + nr);
	}
}

static void step_to(s64 tick)
{
	struct tw_step step = { .now = tick };

	now = tick;
	do
		step.budget = BUDGET;
	while (tw_wheel_step(&wheel, &step));
}

/* Its deadline is the start of a tick. */
static void add_at(u32 number, s64 tick)
{
	struct tw_node *node = node_of(number);

	node->flags = 0;
	node->deadline = deadline_of(tick, 0);
	tw_wheel_add(&wheel, node, FIRST_INDEX + number);
}

/*
 * What was ready when the clock was set back has deadlines that lie ahead, and behind
 * each of it in its stripe there is one that expired after that. In another stripe one
 * comes again and again, and a program reads one at a time.
 */
static void ready_when_set_back(void)
{
	u32 i, left = 2 * (TW_STRIPES - 1), reads = 0;

	begin(10000);
	for (i = 1; i < TW_STRIPES; i++)
		add_at(i, 10010);
	step_to(10010);
	now = 9000 + tw_wheel_set_back(&wheel, 9000);
	add_at(0, now + 1);
	for (i = 1; i < TW_STRIPES; i++)
		add_at(TW_STRIPES + i, now + 1);
	step_to(now + 1);
	while (left) {
		u32 number = read_one();

		ASSERT_TRUE(++reads <= 3 * TW_STRIPES);
		left -= !!number;
		if (!number)
			add_at(number, now + 1);
		step_to(now + 1);
	}
}

/*
 * What was ready when the clock was set back is still not read when the clock gets there
 * again. What expires from then on comes in the order of its ticks, although the stripes
 * have it the other way round.
 */
static void ready_when_caught_up(void)
{
	u32 i;

	begin(10000);
	add_at(0, 10010);
	step_to(10010);
	step_to(10010 + tw_wheel_set_back(&wheel, 9000));
	ASSERT_TRUE(tw_wheel_settle(&wheel));
	for (i = 1; i <= TW_STRIPES; i++)
		add_at(i, now + 1 + TW_STRIPES - i);
	step_to(now + TW_STRIPES);
	ASSERT_EQ(read_one(), 0);
	for (i = TW_STRIPES; i; i--)
		ASSERT_EQ(read_one(), i);
}

/* What was ready, or had slack, and is armed without it expires whole with the others. */
static void armed_again_without_slack(void)
{
	const u32 nr = 1000;
	struct tw_step step = { .now = 20, .budget = 1 };
	u32 i;

	begin(0);
	for (i = 0; i < nr; i++) {
		struct tw_node *node = node_of(i);

		node->deadline = deadline_of(i % 2 ? 20 : 10, 0);
		node->flags = i % 2 ? 4 : 0;
		tw_wheel_add(&wheel, node, FIRST_INDEX + i);
	}
	step_to(19);
	ASSERT_EQ(wheel.ready.count, nr / 2);
	for (i = 0; i < nr; i++)
		tw_wheel_mod(&wheel, node_of(i), FIRST_INDEX + i, deadline_of(20, 0), 0);
	tw_wheel_step(&wheel, &step);
	ASSERT_EQ(step.expired, nr);
	ASSERT_EQ(step.moved, 0);
}

int main(void)
{
	host_plan(18);
	host_test("a lone timer any time away: two wake-ups at most",
		  any_time_away);
	host_test("a lone timer that is pushed ahead: two wake-ups at most",
		  lone_timer_pushed_ahead);
	host_test("an empty wheel never wakes up", empty_wheel);
	host_test("few timers: no wake-up without an expiry", few_timers);
	host_test("many timers: no more wake-ups than ticks and large slots",
		  many_timers);
	host_test("large slots: each wheel preloads at a time of its own", not_in_step);
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
	host_test("timers that were ready or had slack: one step in constant time",
		  armed_again_without_slack);
	host_test("a million timers in one tick of a clock that was set back",
		  a_million_on_a_clock_set_back);
	host_test("as many slots as can be, each as full as is still small",
		  slots_full_of_few);
	host_test("add, mod and del take constant time",
		  constant_operations);
	host_test("what is armed for now keeps nobody waiting", armed_for_now);
	host_test("what was ready when the clock was set back waits for no other",
		  ready_when_set_back);
	host_test("ticks are read in their order once the clock has caught up",
		  ready_when_caught_up);
	return host_end();
}
