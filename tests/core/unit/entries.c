// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel of shared timers against a model, which knows of each timer when it has to
 * expire. It is driven as kmod/shared.c drives it: who is moved to later, or cancelled,
 * stays where he is until the wheel comes there.
 *
 * SEED=N: begin with that episode.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "entries.h"
#include "host.h"

#define MOST 3000U
#define EPISODES 300
#define OPERATIONS 3000
#define MILLION 1000000U

/* A tick of a timer that has none */
#define NONE S64_MAX

/* What is far is somewhat beyond the reach of the levels. */
#define FAR_BITS (TW_ENTRY_LVL_DEPTH * TW_ENTRY_LVL_CLK_SHIFT + 2)

static struct tw_entries wheel;
static struct tw_timer timers[MILLION];
static u32 *cells;
static struct tw_entry_slot slots[TW_ENTRY_ALL_SLOTS];

/* When each expires, be it in the wheel or not, or NONE */
static s64 due[MILLION];
static u32 nr;
static u32 phase;
static s64 now, crowded;
static u64 wakeups, taken;
/* Most entries that were taken from one slot while it was due to be cascaded */
static u32 late;

static void begin(u32 count)
{
	u32 i;

	nr = count;
	free(cells);
	/* Not a cell more, so that the sanitizer sees it. */
	cells = malloc(sizeof(u32) * tw_entries_blocks(nr) << TW_ENTRY_BLOCK_BITS);
	ASSERT_TRUE(cells);
	memset(timers, 0, nr * sizeof(*timers));
	for (i = 0; i < nr; i++)
		due[i] = NONE;
	wheel = (struct tw_entries){
		.timers = timers,
		.cells = cells,
		.slots = slots,
	};
	tw_entries_init(&wheel, phase);
	wakeups = 0;
	taken = 0;
	late = 0;
	crowded = 0;
}

static void check(void)
{
	ASSERT_TRUE(tw_check_entries(&wheel, nr));
}

/* What kmod/shared.c does with a timer that is dirty */
static void arm(u32 timer, s64 tick)
{
	tw_entries_forward(&wheel, now);
	if (tw_entries_has(&wheel, timer))
		tw_entries_del(&wheel, timer);
	due[timer] = NONE;
	if (tick <= now)
		return;
	due[timer] = tick;
	tw_entries_add(&wheel, timer, tick);
}

/* Puts back what was taken and is not due. */
static void settle(const u32 *numbers, unsigned int n, s64 tick)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		u32 timer = numbers[i];

		ASSERT_TRUE(timer < nr);
		ASSERT_TRUE(!tw_entries_has(&wheel, timer));
		if (due[timer] == NONE)
			continue;
		if (due[timer] > tick)
			tw_entries_add(&wheel, timer, due[timer]);
		else
			due[timer] = NONE;
	}
}

/* Returns true if there may be more to do. */
static bool run(unsigned int budget)
{
	u32 numbers[TW_BLOCK_ENTRIES];
	struct tw_turn turn;
	unsigned int n;

	while (budget) {
		if (!tw_entries_turn(&wheel, now, &turn))
			return false;
		ASSERT_TRUE(turn.slot->count);
		ASSERT_TRUE(turn.tick <= now);
		ASSERT_TRUE(turn.ahead >= 0);
		if (!turn.tick && !turn.ahead)
			late = max(late, turn.slot->count);
		do {
			n = tw_entries_detach(&wheel, turn.slot, numbers, budget);
			ASSERT_TRUE(n && n <= budget);
			settle(numbers, n, turn.tick);
			budget -= n;
			taken += n;
		} while (budget && turn.slot->count);
	}
	return true;
}

/* All that is due has expired, and the wheel will look at all else in time. */
static void check_done(void)
{
	s64 next = tw_entries_next(&wheel), first = NONE;
	u32 i, pending = 0;

	for (i = 0; i < nr; i++) {
		first = min(first, due[i]);
		if (due[i] == NONE)
			continue;
		ASSERT_TRUE(tw_entries_has(&wheel, i));
		pending++;
	}
	ASSERT_TRUE(first > now);
	ASSERT_TRUE(next > now);
	ASSERT_TRUE(next <= first);
	ASSERT_TRUE(wheel.pending >= pending);
	ASSERT_TRUE(wheel.pending || next == S64_MAX);
}

static void finish(void)
{
	unsigned int steps = 0;

	while (run(1 + host_below(100)))
		ASSERT_TRUE(++steps < 1000000);
	check();
	check_done();
}

/* The time goes on to where the wheel wants to be woken. */
static bool wake(void)
{
	s64 next = tw_entries_next(&wheel);

	if (next == S64_MAX)
		return false;
	now = max(now, next);
	wakeups++;
	while (run(256))
		;
	return true;
}

/* (What is very far takes the wheel for ever where it reaches not far.) */
static s64 any_size(unsigned int bits)
{
	bits = min(bits, FAR_BITS + 4U);
	return host_random() >> (64 - bits) >> host_below(bits);
}

static s64 any_tick(void)
{
	switch (host_below(8)) {
	case 0:
		return max(now - any_size(10), 0LL);
	case 1:
		crowded = now + any_size(16);
		return crowded;
	case 2:
	case 3:
		return max(crowded + (s64)host_below(3), 0LL);
	case 4:
		return now + any_size(FAR_BITS);
	default:
		return now + any_size(TW_ENTRY_LVL_CLK_SHIFT * 3 + 2);
	}
}

static void drain(unsigned int room)
{
	while (wheel.pending && room--) {
		u32 timer = tw_entries_any(&wheel);

		ASSERT_TRUE(timer < nr);
		ASSERT_TRUE(tw_entries_has(&wheel, timer));
		tw_entries_del(&wheel, timer);
		due[timer] = NONE;
	}
}

static void operation(unsigned int crowd)
{
	u32 timer = host_below(nr);
	unsigned int i;
	s64 tick;

	switch (host_below(16)) {
	case 0:
		tick = any_tick();
		for (i = 0; i < crowd; i++)
			arm(host_below(nr), tick + (i & 1));
		break;
	case 1:
	case 2:
		/* To later, or not at all: the wheel does not hear of it. */
		if (due[timer] != NONE)
			due[timer] += any_size(30);
		break;
	case 3:
		due[timer] = NONE;
		break;
	case 4:
		now += any_size(TW_ENTRY_LVL_CLK_SHIFT * 2);
		finish();
		break;
	case 5:
		now += any_size(20);
		run(1 + host_below(50));
		break;
	case 6:
		if (host_chance(4)) {
			now -= min(now, any_size(30));
			finish();
		}
		break;
	case 7:
		if (host_chance(4))
			now += any_size(FAR_BITS);
		finish();
		break;
	case 8:
		if (host_chance(8))
			drain(1 + host_below(2 * TW_BLOCK_ENTRIES));
		break;
	case 9:
		run(1);
		break;
	case 10:
		wake();
		check_done();
		break;
	default:
		arm(timer, any_tick());
	}
}

static void episode(void)
{
	unsigned int i, crowd, every;

	phase = host_random();
	begin(1 + host_below(host_chance(4) ? 5 : MOST));
	crowd = host_below(host_chance(4) ? MOST : 100);
	every = 1 + host_below(20);
	now = host_chance(2) ? host_below(1LL << 50) : 0;
	for (i = 0; i < OPERATIONS; i++) {
		operation(crowd);
		if (!(i % every))
			check();
	}
	finish();
	drain(MOST);
	check();
}

static void as_the_model(void)
{
	u64 i, seed = host_first_seed(), episodes = host_part(EPISODES);

	host_note("seed %llu", seed);
	for (i = 0; i < episodes; i++) {
		host_seed(seed + i);
		episode();
	}
}

/* The clock is set back so often that the wheel's ticks begin again. */
static void set_back_for_ever(void)
{
	unsigned int i;

	begin(100);
	for (i = 0; i < 200; i++) {
		now = (1LL << FAR_BITS) + host_below(1000);
		arm(host_below(nr), now + any_size(20));
		finish();
		now = host_below(1000);
		arm(host_below(nr), now + any_size(20));
		finish();
		ASSERT_TRUE(wheel.tick_offset < 1LL << (FAR_BITS + 1));
	}
}

/*
 * Far more than once around the wheel: that is not to be noticed. And while what was in the
 * wheel is still inspected, the clock is set back.
 */
static void set_forwards(void)
{
	unsigned int i, j;
	s64 jump;

	begin(100);
	now = 1;
	for (i = 0; i < 200; i++) {
		/* Half of them are further away than the clock is set. */
		for (j = 0; j < nr; j++)
			arm(j, now + (j % 2 ? any_size(60) : 1LL << (FAR_BITS + 15)));
		finish();
		taken = 0;
		jump = host_random() >> (64 - FAR_BITS - 14);
		now += jump;
		run(host_below(200));
		if (i % 2)
			now -= min_t(s64, jump, any_size(60));
		finish();
		ASSERT_TRUE(taken <= 5 * TW_ENTRY_LVL_DEPTH * nr);
		now = host_below(1000);
		finish();
	}
}

static void silence(void)
{
	unsigned int bits;

	begin(1);
	now = 12345;
	finish();
	ASSERT_EQ(tw_entries_next(&wheel), S64_MAX);
	for (bits = 0; bits < TW_ENTRY_LVL_DEPTH * TW_ENTRY_LVL_CLK_SHIFT; bits++) {
		wakeups = 0;
		arm(0, now + (1LL << bits));
		finish();
		while (wake())
			;
		ASSERT_EQ(due[0], NONE);
		ASSERT_EQ(wakeups, 1);
	}
	arm(0, now + 1000);
	due[0] = NONE;
	wakeups = 0;
	while (wake())
		;
	ASSERT_EQ(wakeups, 1);
}

/* Nobody waits until a large slot was cascaded: that was done before. */
static void in_time(void)
{
	s64 span = 1LL << min(3 * TW_ENTRY_LVL_CLK_SHIFT + 1,
			      TW_ENTRY_LVL_DEPTH * TW_ENTRY_LVL_CLK_SHIFT - 1);
	u32 i;

	begin(MILLION / 50);
	now = 1000;
	for (i = 0; i < nr; i++)
		arm(i, now + 1 + host_below(span));
	while (run(256))
		;
	while (wake())
		if (!(wakeups % 64))
			check_done();
	for (i = 0; i < nr; i++)
		ASSERT_EQ(due[i], NONE);
	ASSERT_TRUE(late <= TW_ENTRY_SMALL);
	ASSERT_TRUE(taken <= nr * (u64)TW_ENTRY_LVL_DEPTH);
}

/* Each wheel begins to preload at a tick of its own, early while the slot before runs. */
static void not_in_step(void)
{
	const s64 width = 1LL << min(8, (TW_ENTRY_LVL_DEPTH - 1) * TW_ENTRY_LVL_CLK_SHIFT);
	bool used[64] = {};
	s64 begins;
	u32 i;

	for (phase = 1000; phase < 1000 + width / 4; phase++) {
		begin(TW_ENTRY_SMALL + 1);
		now = 5 * width + 10;
		for (i = 0; i < nr; i++)
			arm(i, 7 * width);
		ASSERT_TRUE(wake());
		begins = now - 6 * width;
		ASSERT_TRUE(begins >= 0 && begins < width / 4);
		ASSERT_TRUE(!used[begins]);
		used[begins] = true;
		ASSERT_TRUE(taken && wheel.pending == nr);
	}
}

/* All in one tick far ahead, and a budget: it is a million times the work of one. */
static void million_at_once(void)
{
	s64 tick = 1000 + min(TW_ENTRY_REACH / 2, 3000000LL);
	unsigned int runs = 0;
	u32 i;

	begin(MILLION);
	now = 1000;
	for (i = 0; i < nr; i++)
		arm(i, tick);
	check();
	now = tick;
	while (run(256))
		runs++;
	check();
	ASSERT_EQ(wheel.pending, 0);
	ASSERT_TRUE(runs <= (TW_ENTRY_LVL_DEPTH + 1) * (MILLION / 240));
}

/* ---- that each of the invariants is looked at ---- */

#define WRONG 60U

/* In more than one block of a slot of level 1, in one of level 0, and free blocks */
static void make_some(void)
{
	u32 i;

	begin(WRONG);
	now = 0;
	for (i = 0; i < WRONG - 1; i++)
		arm(i, i < WRONG - 3 ? 2 * TW_ENTRY_LVL_SIZE : 1);
	for (i = WRONG - 4; i > WRONG - 17; i--)
		tw_entries_del(&wheel, i);
}

static struct tw_entry_slot *slot_of(u32 timer)
{
	u32 block = timers[timer].place >> TW_ENTRY_BLOCK_BITS;

	return &slots[cells[block << TW_ENTRY_BLOCK_BITS] &
		      ((1U << TW_ENTRY_SLOT_BITS) - 1)];
}

static u32 *head_of(u32 timer)
{
	return &cells[timers[timer].place & ~TW_BLOCK_MASK];
}

/* Make one thing wrong. Returns what has to be said. */
static const char *break_one(unsigned int thing)
{
	u32 upper = 0, lower = WRONG - 2;

	switch (thing) {
	case 0:
		wheel.reach[1]++;
		return "wheel->reach[level] == ((wheel->clk >> turn) + 2) << turn";
	case 1:
		slot_of(lower)->count = 0;
		return "occupied == !!slot->count";
	case 2:
		slots[7].first = 7;
		return "slot->first == S64_MAX";
	case 3:
		slot_of(upper)->first = 1;
		return "slot->first >= start && slot->first <= end";
	case 4:
		wheel.next = 2;
		return "wheel->next <= slot->first";
	case 5:
		tw_entries_del(&wheel, lower);
		tw_entries_del(&wheel, lower - 1);
		wheel.next = slot_of(upper)->first;
		return "!level || slot->count <= TW_ENTRY_SMALL || wheel->next <= preload";
	case 6:
		*head_of(lower) += 1 << TW_ENTRY_SLOT_BITS;
		return "place == TW_ENTRY_EMPTY";
	case 7:
		(*head_of(lower))++;
		return "(tw_head(wheel, block) & TW_SLOT_MASK) == slot";
	case 8:
		slot_of(lower)->count++;
		return "block && block < wheel->fresh";
	case 9:
		cells[timers[lower].place] = WRONG;
		return "wheel->cells[place] < nr";
	case 10:
		timers[lower].place--;
		return "wheel->timers[wheel->cells[place]].place == place";
	case 11:
		wheel.levels ^= 1U << (TW_ENTRY_LVL_DEPTH - 1);
		return "wheel->levels == found.levels";
	case 12:
		wheel.pending++;
		return "wheel->pending == found.entries";
	case 13:
		wheel.free = wheel.fresh;
		return "block < wheel->fresh";
	case 14:
		wheel.free = 0;
		return "!left";
	case 15:
		cells[wheel.free << TW_ENTRY_BLOCK_BITS] = wheel.free;
		return "!block";
	case 16:
		timers[WRONG - 1].place = 1;
		return "places == wheel->pending";
	case 17:
		begin(WRONG);
		wheel.next = 1;
		return "wheel->pending || wheel->next == S64_MAX";
	case 18:
		wheel.fresh = tw_entries_blocks(WRONG) + 1;
		return "wheel->fresh <= tw_entries_blocks(nr)";
	default:
		return NULL;
	}
}

static void look(void)
{
	tw_check_entries(&wheel, nr);
}

/* What is over when it is added expires at the wheel's next tick, before all else. */
static void over_when_added(void)
{
	begin(2);
	now = 1000;
	arm(0, 1002);
	tw_entries_add(&wheel, 1, 0);
	due[1] = now + 1;
	ASSERT_EQ(tw_entries_next(&wheel), now + 1);
	now++;
	finish();
	ASSERT_EQ(due[1], NONE);
	now++;
	finish();
	ASSERT_EQ(wheel.pending, 0);
}

static void each_is_looked_at(void)
{
	host_breaks(make_some, look, break_one);
}

int main(void)
{
	host_plan(9);
	host_test("timers expire as the model says", as_the_model);
	host_test("the clock is set back for ever", set_back_for_ever);
	host_test("the clock is set far forwards", set_forwards);
	host_test("a lone timer wakes once", silence);
	host_test("large slots are cascaded in time", in_time);
	host_test("large slots: each wheel preloads at a time of its own", not_in_step);
	host_test("a million at once", million_at_once);
	host_test("what is over when it is added expires at once", over_when_added);
	host_test("what is wrong is said", each_is_looked_at);
	return host_end();
}
