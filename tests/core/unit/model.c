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

#ifndef OPERATIONS
#define OPERATIONS 2000000
#endif

#define LEVEL_TICKS(level) (1LL << (level) * TW_LVL_CLK_SHIFT)

/*
 * Spans have so many bits at most: beyond the reach of the levels, but not so
 * far that it takes the wheel for ever to get there.
 */
#define SPAN_BITS (TW_REACH_BITS < 54 ? TW_REACH_BITS + 6 : 61)

/* The kernel lets no clock be set to the last 30 years before KTIME_MAX. */
#define LAST_NOW (KTIME_MAX - (1LL << 59))

enum op {
	ADD,
	ADD_READY,
	MOD_LATER,
	MOD_EARLIER,
	MOD_ANYHOW,
	EXPIRE,
	CANCEL,
	READ,
	DRAIN,
	UNDRAIN,
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

/* How often an operation is done, beside the others, in the order of enum op */
static const unsigned int kinds[][OPS] = {
	/* As a program does */
	{ 30, 1, 10, 5, 5, 1, 10, 20, 0, 0, 5, 20, 10, 10, 1 },
	/* A server's timeouts, which are pushed ahead all the time */
	{ 10, 1, 80, 2, 2, 1, 10, 10, 0, 0, 5, 20, 5, 5, 1 },
	/* Busy, with too little budget */
	{ 30, 2, 10, 5, 10, 1, 5, 10, 0, 1, 20, 5, 60, 0, 1 },
	/* Few that read, so that much is ready, and is cancelled or changed */
	{ 30, 10, 5, 5, 30, 5, 30, 2, 0, 1, 10, 10, 10, 10, 1 },
	/* A clock that is set all the time */
	{ 30, 2, 10, 5, 10, 1, 5, 10, 1, 1, 20, 20, 30, 10, 30 },
	/* Shutdown */
	{ 20, 1, 5, 5, 5, 1, 5, 5, 10, 2, 2, 20, 5, 5, 1 },
};

static struct pair pair;
static unsigned int weights[OPS], total_weight;
static unsigned int distances[DISTANCES], total_distance;
static u32 most, check_every;
static s64 clusters[4];
static s64 longest_advance;
/* Once in this many times: 0 is never */
static unsigned int slack_in, periodic_in;
/* The last deadline that there is */
static s64 latest;

/* Timers that are in use, to take one at random */
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
	s64 width = LEVEL_TICKS(host_below(min(TW_LVL_DEPTH, 60 / TW_LVL_CLK_SHIFT)));
	s64 ahead = host_below(2 * TW_LVL_SIZE);

	return (pair_tick(&pair) / width + ahead) * width +
	       (s64)host_below(5) - 2;
}

static s64 any_tick(void)
{
	s64 now = pair_tick(&pair);
	s64 *cluster;

	switch (choose(distances, total_distance)) {
	case NEAR:
		return now + 1 + host_below(4);
	case DENSE:
		return now + 1 + host_below(3 * TW_LVL_CLK_DIV);
	case EDGE:
		return near_edge();
	case FAR:
		return now + 1 + any_span(SPAN_BITS);
	case CLUSTER:
		cluster = &clusters[host_below(ARRAY_SIZE(clusters))];
		if (*cluster <= now)
			*cluster = now + 1 + any_span(5 * TW_LVL_CLK_SHIFT);
		return *cluster + host_below(host_chance(2) ? 1 : TW_LVL_CLK_DIV);
	default:
		return now - host_below(3);
	}
}

/* A deadline that is due at @tick of the wheel, or as near as can be */
static s64 deadline_at(s64 tick, s64 earliest)
{
	s64 ns = pair_ns(&pair, tick);

	if (host_chance(2))
		ns -= host_below(pair.tick);
	/* There is always something after the wheel's time. */
	return max(min(ns, latest), earliest);
}

/* The wheel can't be asked for anything that lies before. */
static s64 first_deadline(void)
{
	return pair_done(&pair) + 1;
}

/* Where it may be asked for what lies before, and does it as soon as it can */
static s64 first_deadline_added(void)
{
	return pair.settable ? first_deadline() : 1;
}

static unsigned int any_slack(void)
{
	if (!slack_in || !host_chance(slack_in))
		return 0;
	return host_below(host_chance(4) ? SPAN_BITS : 2 * TW_LVL_CLK_SHIFT + 1);
}

static struct pair_want any_want(s64 deadline)
{
	return (struct pair_want){
		.deadline = deadline,
		.slack_shift = any_slack(),
		.periodic = periodic_in && host_chance(periodic_in),
	};
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
	if (nr_used >= most)
		return false;
	while (!pair.table.free) {
		if (!pair_has_room(&pair))
			return false;
		pair_add_chunk(&pair);
	}
	return true;
}

static void add(void)
{
	struct pair_want want = any_want(deadline_at(any_tick(),
						     first_deadline_added()));

	if (room())
		used[nr_used++] = pair_add(&pair, &want);
}

/* A deadline that has passed, a moment ago or long since */
static s64 any_past(void)
{
	return pair.now - min_t(s64, pair.now, any_size(host_chance(2) ? 20 : 63));
}

static void add_ready(void)
{
	struct pair_want want = any_want(any_past());

	if (room())
		used[nr_used++] = pair_add_ready(&pair, &want);
}

/* Most that a program changes is nothing but the time. */
static void mod(u32 index, s64 deadline)
{
	struct pair_want want = pair.timers[index].want;

	if (host_chance(4))
		want = any_want(deadline);
	want.deadline = deadline;
	pair_mod(&pair, index, &want);
}

static s64 any_distance(void)
{
	u64 ticks = any_span(3 * TW_LVL_CLK_SHIFT);

	return host_chance(4) ? host_below(pair.tick) :
				ticks * pair.tick + host_below(pair.tick);
}

static void mod_later(u32 index)
{
	s64 from = max(pair.timers[index].want.deadline, pair_done(&pair) + 1);

	mod(index, from + min(any_distance(), latest - from));
}

static void mod_earlier(u32 index)
{
	s64 from = pair.timers[index].want.deadline;

	mod(index, max(from - min(any_distance(), from), first_deadline()));
}

static void advance(void)
{
	s64 now = pair_tick(&pair);
	s64 first = pair_first(&pair);
	s64 to;

	switch (host_below(6)) {
	case 0:
		to = now + host_below(4);
		break;
	case 1:
		to = now + host_below(2 * TW_LVL_CLK_DIV);
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
	if (to >= TW_TICK_MAX || pair_ns(&pair, to + 1) >= min(latest, LAST_NOW))
		return;
	/* Often right after the tick, as it is with a timer that is on time */
	to = pair_ns(&pair, to) + (host_below(pair.tick) >> host_below(32));
	if (to >= pair.now)
		pair_advance(&pair, to);
}

static void set_back(void)
{
	s64 ticks = any_span(host_chance(2) ? 6 : SPAN_BITS - 5);
	s64 ns = min((__int128)pair.now, (__int128)ticks * pair.tick +
					 host_below(pair.tick));

	if (pair.settable)
		pair_set_back(&pair, pair.now - ns);
}

static u32 any_budget(void)
{
	return host_chance(2) ? 1 + host_below(4) : 1 + host_below(600);
}

static void finish(void)
{
	u32 budget = any_budget() + 1;

	/* As callers do: else the last of few slots would come up time and again for years. */
	if (pair.wheel.far)
		pair_grow(&pair);
	while (pair_step(&pair, budget))
		;
}

static void read_some(void)
{
	u32 read[40], n;

	if (pair.nr_ready && host_chance(4)) {
		pair_read_periodic(&pair, deadline_at(any_tick(),
						      first_deadline_added()));
		return;
	}
	n = pair_read_several(&pair, host_chance(2) ? 1 : host_below(ARRAY_SIZE(read)), read);
	while (n)
		forget(read[--n]);
}

static void drain_one(void)
{
	forget(pair_first_pending(&pair));
	pair_drain(&pair);
}

static void do_to_one(enum op op, u32 index)
{
	switch (op) {
	case MOD_LATER:
		mod_later(index);
		break;
	case MOD_EARLIER:
		mod_earlier(index);
		break;
	case MOD_ANYHOW:
		mod(index, deadline_at(any_tick(), first_deadline()));
		break;
	case EXPIRE:
		pair_expire(&pair, index, any_past());
		break;
	default:
		forget(index);
		pair_cancel(&pair, index);
		break;
	}
}

static void do_op(enum op op)
{
	switch (op) {
	case ADD:
		add();
		break;
	case ADD_READY:
		add_ready();
		break;
	case READ:
		read_some();
		break;
	case DRAIN:
		if (pair.nr_pending)
			drain_one();
		break;
	case UNDRAIN:
		if (pair.nr_pending)
			pair_undrain(&pair);
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
	case SET_BACK:
		set_back();
		break;
	default:
		if (nr_used)
			do_to_one(op, any_used());
		break;
	}
}

/* Does a tick of the wheel come at all? */
static bool comes(s64 tick)
{
	return tick < TW_TICK_MAX && pair_ns(&pair, tick) < LAST_NOW;
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
		ASSERT_TRUE(pair.wheel.next != last);
		last = pair.wheel.next;
		if (comes(last))
			pair_advance(&pair, pair_ns(&pair, last));
		else
			while (pair.nr_pending)
				pair_drain(&pair);
	}
	ASSERT_TRUE(!pair_step(&pair, 2));
	ASSERT_EQ(pair.wheel.next, TW_NEVER);
	pair_check(&pair);
	nr_used = 0;
}

static u32 any_tick_length(void)
{
	static const u32 lengths[] = {
		2, 3, 7, 1000, 1001, 3333333, 4000000, 999999999, 1000000000,
	};

	return lengths[host_below(ARRAY_SIZE(lengths))];
}

/* The host's tick at which an episode begins, of @end that there are */
static s64 any_start(s64 end)
{
	switch (host_below(4)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return host_below(end);
	default:
		return end - 1 - any_size(60) % end;
	}
}

/* A clock that was set back has ticks that are far from the host's. */
static s64 any_shift(void)
{
	switch (host_below(4)) {
	case 0:
		return 0;
	case 1:
		return TW_SPAN - 1 - any_span(SPAN_BITS) % TW_SPAN;
	default:
		return host_below(TW_SPAN);
	}
}

static void begin_episode(void)
{
	static const u32 mosts[] = { 1, 3, 8, 40, 200, 2000 };
	unsigned int kind = host_below(ARRAY_SIZE(kinds));
	unsigned int i;
	u32 tick = any_tick_length();
	bool settable;
	s64 start;

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
	slack_in = host_below(4);
	periodic_in = 3 * host_below(3);
	settable = host_chance(3);
	/* The levels reach to KTIME_MAX only with the ticks that there are. */
	latest = min_t(__int128, KTIME_MAX, (__int128)tick << 53);
	start = any_start(min(latest, LAST_NOW) / tick - 1);
	pair_init(&pair, tick, start * tick + host_below(tick), settable,
		  settable ? any_shift() : 0, host_chance(2));
	for (i = 0; i < ARRAY_SIZE(clusters); i++)
		clusters[i] = 0;
}

/* Returns how many operations there were. */
static u64 episode(void)
{
	u64 ops, i;

	begin_episode();
	/* Long ones find what short ones don't, but are no joy to read. */
	ops = 10 + any_size(host_chance(10) ? 18 : 12);
	for (i = 0; i < ops; i++) {
		do_op(choose(weights, total_weight));
		/* What is far away can stay where it is. */
		if (tw_wheel_is_small(&pair.wheel) && host_chance(pair.wheel.far ? 10 : 1000))
			pair_grow(&pair);
		pair_check_invariants(&pair);
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
	u64 wanted = operations ? strtoull(operations, NULL, 0) : host_part(OPERATIONS);
	u64 seed = host_first_seed();
	u64 ops = 0, n;

	for (n = 0; ops < wanted; n++) {
		host_seed(seed + n);
		ops += episode();
	}
	host_note("%llu operations in %llu episodes from SEED=%llu on", ops, n,
		  seed);
}

/* Up to the last tick that begins before time ends; what expires after it never does. */
static void last_ticks(void)
{
	const u32 length = 1009;
	const s64 last = KTIME_MAX / length;
	/* Narrow levels would be on the way for ever. */
	const s64 start = TW_REACH_BITS < 54 ? last - 100 : 0;
	struct pair_want never = { .deadline = KTIME_MAX };
	s64 tick;

	pair_init(&pair, length, start * length, false, 0, false);
	pair_add_chunk(&pair);
	pair_add(&pair, &never);
	for (tick = last - 2; tick <= last; tick++) {
		struct pair_want want = { .deadline = tick * length };

		pair_add(&pair, &want);
	}
	for (tick = last - 3; tick <= last; tick++) {
		pair_advance(&pair, pair_ns(&pair, tick));
		while (pair_step(&pair, 100))
			;
		ASSERT_EQ(pair.nr_ready, tick - (last - 3));
	}
	pair_check(&pair);
	ASSERT_EQ(pair.nr_pending, 1);
	pair_end(&pair);
}

int main(void)
{
	host_plan(2);
	host_test("the last ticks of all time", last_ticks);
	host_test("random operations: the wheel and the model agree",
		  random_operations);
	return host_end();
}
