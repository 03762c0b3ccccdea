// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations on a wheel and on the reference model.
 *
 * They come in episodes, each with a wheel of its own, a character of its own
 * and a seed of its own: SEED=N begins with that episode.
 * OPERATIONS=N: how many there shall be at least.
 */
#include <stdlib.h>

#include "host.h"
#include "pair.h"

#define LEVEL_TICKS(level) (1LL << (level) * TW_TURN_BITS)

/* Where a clock that can be set begins, at most: its ticks will grow. */
#define MIDDLE (1LL << 60)

/*
 * Spans have so many bits at most: beyond the reach of the levels, but not so
 * far that it takes the wheel for ever to get there.
 */
#define SPAN_BITS (TW_REACH_BITS < 54 ? TW_REACH_BITS + 6 : 61)

enum op {
	ADD,
	ADD_READY,
	MOD_LATER,
	MOD_EARLIER,
	MOD_ANYHOW,
	CANCEL,
	READ,
	DRAIN,
	ADVANCE,
	FORWARD,
	STEP,
	FINISH,
	SET_BACK,
	OPS,
};

enum distance {
	NEAR,
	DENSE,
	EDGE,
	FAR,
	CLUSTER,
	BEFORE,
	DISTANCES,
};

/* How often an operation is done, beside the others */
static const unsigned int kinds[][OPS] = {
	/* As a program does */
	{ 30, 1, 10, 5, 5, 10, 20, 0, 5, 20, 10, 10, 1 },
	/* A server's timeouts, which are pushed ahead all the time */
	{ 10, 1, 80, 2, 2, 10, 10, 0, 5, 20, 5, 5, 1 },
	/* Busy, with too little budget */
	{ 30, 2, 10, 5, 10, 5, 10, 0, 20, 5, 60, 0, 1 },
	/* Few that read, so that much is ready, and is cancelled or changed */
	{ 30, 10, 5, 5, 30, 30, 2, 0, 10, 10, 10, 10, 1 },
	/* A clock that is set all the time */
	{ 30, 2, 10, 5, 10, 5, 10, 1, 20, 20, 30, 10, 30 },
	/* Shutdown */
	{ 20, 1, 5, 5, 5, 5, 5, 10, 2, 20, 5, 5, 1 },
};

static struct pair pair;
static unsigned int weights[OPS], total_weight;
static unsigned int distances[DISTANCES], total_distance;
static u32 most, check_every;
static s64 clusters[4];
static s64 longest_advance, latest;

/* Those that are in use, to take one at random */
static u32 used[PAIR_MOST];
static u32 nr_used;

static unsigned int choose(const unsigned int *from, unsigned int total)
{
	u64 n = host_below(total);
	unsigned int i = 0;

	while (n >= from[i])
		n -= from[i++];
	return i;
}

/* A number of any size: small ones are as likely as large ones. */
static u64 any_size(unsigned int bits)
{
	return host_random() >> (64 - bits) >> host_below(bits);
}

static s64 any_span(unsigned int bits)
{
	return any_size(min_t(unsigned int, bits, SPAN_BITS));
}

/* Near a place where a slot of some level begins that is not far ahead */
static s64 near_edge(void)
{
	s64 width = LEVEL_TICKS(host_below(min(TW_LEVELS, 60 / TW_TURN_BITS)));
	s64 ahead = host_below(2 * TW_LEVEL_SLOTS);

	return (pair_now(&pair) / width + ahead) * width +
	       (s64)host_below(5) - 2;
}

static s64 any_tick(void)
{
	s64 now = pair_now(&pair);
	s64 *cluster;
	s64 tick;

	switch (choose(distances, total_distance)) {
	case NEAR:
		tick = now + 1 + host_below(4);
		break;
	case DENSE:
		tick = now + 1 + host_below(3 * TW_TURN);
		break;
	case EDGE:
		tick = near_edge();
		break;
	case FAR:
		tick = now + 1 + any_span(SPAN_BITS);
		break;
	case CLUSTER:
		cluster = &clusters[host_below(ARRAY_SIZE(clusters))];
		if (*cluster <= now)
			*cluster = now + 1 + any_span(5 * TW_TURN_BITS);
		tick = *cluster + host_below(host_chance(2) ? 1 : TW_TURN);
		break;
	default:
		tick = now - host_below(3);
		break;
	}
	return max(min(tick, latest), 0);
}

static u32 take_used(u32 place)
{
	u32 index = used[place];

	used[place] = used[--nr_used];
	return index;
}

/* What the pair ended by itself */
static void forget(u32 index)
{
	u32 i = 0;

	while (used[i] != index)
		i++;
	take_used(i);
}

static u32 any_used(void)
{
	return used[host_below(nr_used)];
}

static bool room(void)
{
	static const unsigned int caps[] = { 1, 7, 102, 819, 1024 };

	if (nr_used >= most)
		return false;
	while (!pair.table.free) {
		if (!pair_has_room(&pair))
			return false;
		pair_add_chunk(&pair, caps[host_below(ARRAY_SIZE(caps))]);
	}
	return true;
}

static s64 expires_of(u32 index)
{
	if (pair.timers[index].state == PAIR_READY)
		return pair_now(&pair);
	return pair.timers[index].due + pair.shift;
}

static void advance(void)
{
	s64 now = pair_now(&pair);
	s64 first = pair_first(&pair);
	s64 to;

	switch (host_below(6)) {
	case 0:
		to = now + host_below(4);
		break;
	case 1:
		to = now + host_below(2 * TW_TURN);
		break;
	case 2:
		to = pair.wheel.next;
		break;
	case 3:
		to = first == TW_NEVER ? now : first + (s64)host_below(5) - 2;
		break;
	case 4:
		to = near_edge();
		break;
	default:
		to = now + any_span(SPAN_BITS);
		break;
	}
	if (to == TW_NEVER || to > now + longest_advance)
		to = now + host_below(longest_advance) + 1;
	if (to >= now && to < latest)
		pair_advance(&pair, to);
}

static u32 any_budget(void)
{
	return host_chance(2) ? 1 + host_below(4) : 1 + host_below(600);
}

static void finish(void)
{
	u32 budget = any_budget() + 1;

	while (pair_step(&pair, budget))
		;
}

static void do_op(enum op op)
{
	u32 index = nr_used ? any_used() : TW_NIL;

	switch (op) {
	case ADD:
		if (room())
			used[nr_used++] = pair_add(&pair, any_tick());
		break;
	case ADD_READY:
		if (room())
			used[nr_used++] = pair_add_ready(&pair);
		break;
	case MOD_LATER:
		if (nr_used)
			pair_mod(&pair, index,
				 min(latest, expires_of(index) +
					     any_span(3 * TW_TURN_BITS)));
		break;
	case MOD_EARLIER:
		if (nr_used)
			pair_mod(&pair, index,
				 max(pair_now(&pair), expires_of(index) -
						      any_span(3 * TW_TURN_BITS)));
		break;
	case MOD_ANYHOW:
		if (nr_used)
			pair_mod(&pair, index, any_tick());
		break;
	case CANCEL:
		if (nr_used)
			pair_cancel(&pair, take_used(host_below(nr_used)));
		break;
	case READ:
		if (pair.nr_ready && host_chance(4)) {
			pair_read_periodic(&pair, any_tick());
		} else if (pair.nr_ready) {
			forget(pair.wheel.ready.first);
			pair_read(&pair);
		}
		break;
	case DRAIN:
		if (pair.nr_pending) {
			forget(tw_wheel_first(&pair.wheel));
			pair_drain(&pair);
		}
		break;
	case ADVANCE:
		advance();
		break;
	case FORWARD:
		pair_forward(&pair);
		break;
	case STEP:
		pair_step(&pair, any_budget());
		break;
	case FINISH:
		finish();
		break;
	default:
		if (pair.wheel.refresh && pair.shift < MIDDLE)
			pair_set_back(&pair, min(pair.host_now,
						 any_span(host_chance(2) ? 6 : SPAN_BITS - 5)));
		break;
	}
}

/* Read all that is left, and let the rest expire as the module would. */
static void end_episode(void)
{
	s64 last = TW_NEVER;

	while (pair.nr_pending || pair.nr_ready) {
		while (pair.nr_ready)
			pair_read(&pair);
		finish();
		if (pair.wheel.next == TW_NEVER)
			continue;
		REQUIRE(pair.wheel.next != last);
		last = pair.wheel.next;
		pair_advance(&pair, last);
	}
	REQUIRE(!pair_step(&pair, 2));
	REQUIRE_EQ(pair.wheel.next, TW_NEVER);
	pair_check(&pair);
	nr_used = 0;
}

static void begin_episode(void)
{
	static const u32 mosts[] = { 1, 3, 8, 40, 200, 2000 };
	unsigned int kind = host_below(ARRAY_SIZE(kinds));
	unsigned int i;
	bool refresh;
	s64 now;

	total_weight = 0;
	for (i = 0; i < OPS; i++) {
		weights[i] = kinds[kind][i];
		total_weight += weights[i];
	}
	total_distance = 0;
	for (i = 0; i < DISTANCES; i++) {
		distances[i] = host_chance(3) ? 0 : 1 + host_below(20);
		total_distance += distances[i];
	}
	distances[DENSE]++;
	total_distance++;

	most = mosts[host_below(ARRAY_SIZE(mosts))];
	check_every = most + host_below(TW_SLOTS / 16 + 1);
	longest_advance = any_span(host_chance(4) ? SPAN_BITS : 20) + 1;
	refresh = host_chance(3);
	latest = refresh ? 2 * MIDDLE : TW_TICK_MAX;
	if (host_chance(2))
		now = 0;
	else if (refresh || host_chance(2))
		now = host_below(MIDDLE);
	else
		now = latest - 1 - any_span(60);
	pair_init(&pair, now, refresh);
	for (i = 0; i < ARRAY_SIZE(clusters); i++)
		clusters[i] = 0;
}

/* Returns how many operations there were. */
static u64 episode(u64 seed)
{
	u64 ops, i;

	host_seed(seed);
	begin_episode();
	/* Long ones find what short ones don't, but are no joy to read. */
	ops = 10 + any_size(host_chance(10) ? 18 : 12);
	for (i = 0; i < ops; i++) {
		do_op(choose(weights, total_weight));
		if (host_chance(check_every))
			pair_check(&pair);
	}
	ops = pair.nr_traced;
	end_episode();
	pair_end(&pair);
	return ops;
}

static void random_operations(void)
{
	const char *operations = getenv("OPERATIONS");
	u64 wanted = operations ? strtoull(operations, NULL, 0) : OPERATIONS;
	u64 seed = host_first_seed();
	u64 ops = 0, n;

	for (n = 0; ops < wanted; n++)
		ops += episode(seed + n);
	host_note("%llu operations in %llu episodes from SEED=%llu on", ops, n,
		  seed);
}

int main(void)
{
	host_plan(1);
	host_test("random operations: the wheel and the model agree",
		  random_operations);
	return host_end();
}
