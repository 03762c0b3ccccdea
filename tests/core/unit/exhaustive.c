// SPDX-License-Identifier: GPL-2.0
/*
 * Every sequence of up to LENGTH operations on a wheel and on the reference
 * model, over a small universe of ticks at the edges of the levels. After each
 * sequence all that is left has to expire as it should.
 *
 * LENGTH=N of the environment: each more takes some 15 times as long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "pair.h"

#define LENGTH 4
#define MOST_LENGTH 6

#define MOST_TICKS 10

/* Length of a tick in ns: there is a first, a last and one between. */
#define TICK_NS 3

/**
 * struct universe - what sequences are made of
 * @name: to tell it from the others
 * @start: tick of the host at which the wheel begins
 * @settable: can the clock be set back?
 * @slack_shift: that timers may have, besides none
 * @shift: tick of the wheel less tick of the host
 * @ticks: those of the wheel that timers are set to and that it becomes, then 0
 */
struct universe {
	const char *name;
	s64 start;
	bool settable;
	unsigned int slack_shift;
	s64 shift;
	s64 ticks[MOST_TICKS];
};

static const struct universe universes[] = {
#if TW_LVL_CLK_SHIFT == 1
	{ "from 0", 0, false, 0, 0, { 1, 2, 3, 4, 7, 8, 15, 16, 70 } },
	{ "from an edge", 6, false, 0, 0, { 7, 8, 9, 10, 14, 16, 24 } },
	{ "with a clock that can be set", 0, true, 0, 0, { 1, 2, 3, 4, 8, 16 } },
	{ "with slack", 0, false, 2, 0, { 1, 2, 4, 7, 15 } },
	{ "with slack and a clock that can be set", 1, true, 1, 0, { 2, 3, 6 } },
	{ "with a clock that comes to a span", 2, true, 0, TW_SPAN - 1,
	  { 4, 8, 66, 67, 72, 80 } },
#elif TW_LVL_CLK_SHIFT == 2
	{ "from 0", 0, false, 0, 0, { 1, 3, 4, 8, 15, 16, 17, 64 } },
	{ "from an edge", 62, false, 0, 0, { 63, 64, 65, 71, 72, 80, 700 } },
	{ "with a clock that can be set", 0, true, 0, 0, { 1, 4, 8, 16, 64 } },
	{ "with a clock that comes to a span", 3, true, 0, TW_SPAN - 1,
	  { 4, 8, 64, TW_SPAN + 3, TW_SPAN + 8, TW_SPAN + 64 } },
	{ "with slack", 2, false, 3, 0, { 3, 4, 7, 15, 31 } },
#else
	{ "at the edge of level 1", 0, false, 0, 0, { 1, 0x3f, 0x40, 0x41, 0x80 } },
	{ "at the edge of level 2", 0, false, 0, 0,
	  { 1, 0xfff, 0x1000, 0x1001, 0x2000 } },
	{ "at the edge of level 3", 0, false, 0, 0,
	  { 1, 0x3ffff, 0x40000, 0x40001, 0x80000 } },
	{ "at the edge of level 4", 0, false, 0, 0,
	  { 1, 0xffffff, 0x1000000, 0x1000001, 0x2000000 } },
	{ "at the edge of level 5", 0, false, 0, 0,
	  { 1, 0x3fffffff, 0x40000000, 0x40000001, 0x80000000 } },
	{ "at the edge of level 6", 0, false, 0, 0,
	  { 1, 0xfffffffff, 0x1000000000, 0x1000000001, 0x2000000000 } },
	{ "at the edge of level 7", 0, false, 0, 0,
	  { 1, 0x3ffffffffff, 0x40000000000, 0x40000000001, 0x80000000000 } },
	{ "at the edge of level 8", 0, false, 0, 0,
	  { 1, 0xffffffffffff, 0x1000000000000, 0x1000000000001, 0x2000000000000 } },
	{ "with a clock that can be set", 0, true, 0, 0, { 63, 64, 128, 4096 } },
	{ "with a clock that comes to a span", 1, true, 0, TW_SPAN - 1,
	  { 63, 64, 4096, TW_SPAN + 63, TW_SPAN + 64, TW_SPAN + 4096 } },
	{ "with slack", 0, false, 7, 0, { 1, 0x41, 0x80, 0x1001 } },
#endif
};

/* All that an operation can change */
struct snapshot {
	struct pair pair;
	struct tw_chunk chunk;
	struct tw_node nodes[PAIR_MOST];
};

static struct pair pair;
static struct snapshot snapshots[MOST_LENGTH + 1];
static unsigned int length = LENGTH;
static const struct universe *universe;
static u64 sequences;

static void save(struct snapshot *s)
{
	s->pair = pair;
	s->chunk = *pair.table.chunks[TW_FIRST_CHUNK];
	memcpy(s->nodes, s->chunk.nodes, sizeof(s->nodes));
}

static void restore(const struct snapshot *s)
{
	pair = s->pair;
	*pair.table.chunks[TW_FIRST_CHUNK] = s->chunk;
	memcpy(s->chunk.nodes, s->nodes, sizeof(s->nodes));
}

/* Let time pass as in the module, and read all. */
static void finish(void)
{
	unsigned int wakeups = 0;

	for (;;) {
		while (pair_step(&pair, 2))
			;
		if (pair.wheel.next == TW_NEVER)
			break;
		/* More than it can take. */
		ASSERT_TRUE(++wakeups < 1000);
		pair_advance(&pair, pair_ns(&pair, pair.wheel.next));
	}
	while (pair.nr_ready)
		pair_read(&pair);
	ASSERT_EQ(pair.nr_pending, 0);
}

static void explore(unsigned int left);

static void then(unsigned int left)
{
	explore(left - 1);
	restore(&snapshots[left]);
}

/*
 * Which ns of a tick it is makes a difference only to what is computed from it:
 * all of them come, but not in all combinations.
 */
static s64 any_ns(s64 tick)
{
	return pair_ns(&pair, tick) + (tick + pair.nr_traced) % TICK_NS;
}

static void with_want(unsigned int left, const struct pair_want *want)
{
	u32 index;

	pair_add(&pair, want);
	then(left);

	for (index = 0; index < PAIR_MOST; index++) {
		if (pair.timers[index].state == PAIR_FREE)
			continue;
		pair_mod(&pair, index, want);
		then(left);
	}
}

static void with_tick(unsigned int left, s64 tick)
{
	struct pair_want want = { .deadline = any_ns(tick) - TICK_NS + 1 };

	if (tick <= pair_tick(&pair))
		return;
	/* Only narrow levels are asked for what lies beyond their reach. */
	if (TW_REACH_BITS >= 54 && tick >= pair_tick(&pair) + TW_REACH)
		return;
	with_want(left, &want);
	if (universe->slack_shift) {
		want.slack_shift = universe->slack_shift;
		with_want(left, &want);
	}

	pair_advance(&pair, any_ns(tick));
	then(left);

	pair_advance(&pair, any_ns(tick));
	while (pair_step(&pair, 100))
		;
	then(left);
}

static void set_back(unsigned int left, s64 ticks)
{
	s64 ns = ticks * TICK_NS - 1;

	if (!universe->settable || ns > pair.now)
		return;
	pair_set_back(&pair, pair.now - ns);
	then(left);
}

static void without_tick(unsigned int left)
{
	struct pair_want want = { .deadline = pair.now };
	u32 index;

	pair_add_ready(&pair, &want);
	then(left);

	for (index = 0; index < PAIR_MOST; index++) {
		if (pair.timers[index].state == PAIR_FREE)
			continue;
		pair_cancel(&pair, index);
		then(left);
	}

	if (pair.nr_ready) {
		pair_read(&pair);
		then(left);
	}

	pair_step(&pair, 2);
	then(left);

	pair_forward(&pair);
	then(left);

	if (tw_wheel_is_small(&pair.wheel)) {
		pair_grow(&pair);
		then(left);
	}

	set_back(left, 1);
	set_back(left, 3 * TW_LVL_CLK_DIV);
}

static void explore(unsigned int left)
{
	unsigned int i;

	sequences++;
	/* A wheel with many slots is looked through now and then only. */
	if (TW_LVL_CLK_SHIFT < 6 || sequences % 64 == 0)
		pair_check(&pair);
	if (sequences % 4 == 0)
		pair_check_invariants(&pair);
	save(&snapshots[left]);
	finish();
	restore(&snapshots[left]);
	if (!left)
		return;
	for (i = 0; universe->ticks[i]; i++)
		with_tick(left, universe->ticks[i]);
	without_tick(left);
}

static void every_sequence(void)
{
	pair_init(&pair, TICK_NS, universe->start * TICK_NS + 1,
		  universe->settable, universe->shift, TW_LVL_CLK_SHIFT < 6);
	while (!pair.table.free || tw_table_short(&pair.table))
		pair_add_chunk(&pair);
	explore(length);
	pair_end(&pair);
	host_note("%llu sequences of up to %u operations", sequences, length);
}

int main(void)
{
	const char *said = getenv("LENGTH");
	unsigned int i;
	char name[64];

	if (said)
		length = atoi(said);
	if (length < 1 || length > MOST_LENGTH) {
		fprintf(stderr, "exhaustive: LENGTH is from 1 to %d\n", MOST_LENGTH);
		return 2;
	}
	host_plan(ARRAY_SIZE(universes));
	for (i = 0; i < ARRAY_SIZE(universes); i++) {
		universe = &universes[i];
		snprintf(name, sizeof(name), "every sequence %s",
			 universe->name);
		host_test(name, every_sequence);
	}
	return host_end();
}
