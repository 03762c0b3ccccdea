// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit suite of shared timers: while the kernel looks at them a program does something, at each
 * place where that may matter, and a model says what has to come of it. The time is what the
 * test says.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <uapi/linux/twheel.h>

#include "fixture.h"
#include "shared_copy.h"

#define NR 300
#define TICK 1000
#define LEAD (NR * 32 / TICK)

/* A timer of a test that needs only one */
#define ONE 9

/* Some in a row, and where words of bits, and groups, begin and end */
static const u32 timers[] = {
	0, 8, 9, 10, 11, 12, 13, 14, 15, 31, 32, 63, 64, 255, 256, NR - 1,
};

/**
 * struct program - a program that keeps to the protocol, and its oracle
 * @tw: its wheel
 * @rnd: random numbers
 * @now: the time, in ns
 * @act: what it does in @acts_in accesses of the kernel
 * @acts_in: how many; 0: it does nothing
 * @again_in: how many after that it acts once more; 0: it does not
 * @always: what it does at each of them, or NULL
 * @one: the timer with which it does that, if it is only one
 * @ring: the doorbell is to be rung
 * @wrong: what was found to be wrong first
 * @armed: the timers that have yet to expire, or that expired and are not taken
 * @deadline: and when, as their words have it
 */
static struct program {
	struct twheel *tw;
	struct rnd_state rnd;
	s64 now;
	void (*act)(void);
	unsigned int acts_in;
	unsigned int again_in;
	void (*always)(void);
	u32 one;
	bool ring;
	const char *wrong;
	bool armed[NR];
	s64 deadline[NR];
} program;

static u32 random(u32 below)
{
	return prandom_u32_state(&program.rnd) % below;
}

static void must(bool good, const char *what)
{
	if (!good && !program.wrong)
		program.wrong = what;
}

/* ---- the program ---- */

static void tell(u32 nr)
{
	struct tw_shared *shared = program.tw->shared;

	atomic64_or(BIT_ULL(nr % 64), &shared->dirty[nr / 64]);
	atomic64_or(BIT_ULL(nr / TW_GROUP), &shared->groups[0]);
}

static void arm(u32 nr, s64 deadline)
{
	struct tw_shared *shared = program.tw->shared;
	u64 word = min_t(u64, deadline, TWHEEL_WORD_NEVER) | TWHEEL_WORD_ARMED;
	u64 old = atomic64_xchg(&shared->words[nr], word);

	must(program.armed[nr] == (old & TWHEEL_WORD_FIRED ||
				   (old & TWHEEL_WORD_ARMED && !(old & TWHEEL_WORD_IDLE))),
	     "armed: it was, or was not");
	program.armed[nr] = true;
	program.deadline[nr] = word;
	if (old <= word)
		return;
	tell(nr);
	if (word < READ_ONCE(shared->area->next_wake))
		program.ring = true;
}

static bool unset(u32 nr, u64 bit)
{
	return atomic64_fetch_andnot(bit, &program.tw->shared->words[nr]) & bit;
}

static void cancel(u32 nr)
{
	must(program.armed[nr] == (unset(nr, TWHEEL_WORD_ARMED) ||
				   unset(nr, TWHEEL_WORD_FIRED)),
	     "cancelled: it was, or was not");
	program.armed[nr] = false;
}

static void take(void)
{
	struct tw_shared *shared = program.tw->shared;
	u32 head = shared->area->head, nr;

	if (head == shared->area->tail)
		return;
	nr = shared->ring[head & shared->ring_mask];
	shared->area->head = head + 1;
	if (!unset(nr, TWHEEL_WORD_FIRED))
		return;
	must(program.armed[nr], "expired: it was armed");
	must((program.deadline[nr] & ~1LL) <= program.now, "not early");
	program.armed[nr] = false;
}

static s64 deadline(void)
{
	switch (random(10)) {
	case 0:
		return KTIME_MAX;
	case 1:
		return program.now - random(3 * TICK);
	case 2:
		/* The last that needs no doorbell */
		return min_t(u64, program.tw->shared->area->next_wake, KTIME_MAX);
	default:
		return program.now + (U32_MAX >> random(30)) / (1 + random(3));
	}
}

/* Anything that a program may do */
static void act_anyhow(void)
{
	u32 nr = timers[random(ARRAY_SIZE(timers))];

	switch (random(5)) {
	case 0:
		return cancel(nr);
	case 1:
	case 2:
		return take();
	default:
		return arm(nr, deadline());
	}
}

/* Only arm, so that most timers are pending. */
static void arm_any(void)
{
	arm(timers[random(ARRAY_SIZE(timers))], program.now + random(1 << 24));
}

static void arm_one(void)
{
	arm(program.one, program.now + 6 * TICK);
}

/* First to another time in the same tick, then to later */
static void move_one(void)
{
	if (program.again_in)
		arm(program.one, program.deadline[program.one] + 10);
	else
		arm_one();
}

/* An ns later than it was: nobody is notified. */
static void creep_one(void)
{
	s64 word = program.deadline[program.one];

	if (atomic64_cmpxchg(&program.tw->shared->words[program.one], word, word + 1) == word)
		program.deadline[program.one]++;
}

static void tell_of_first(void)
{
	tell(0);
}

/* The kernel is about to look at something, or to change it. */
static void program_acts(void)
{
	if (program.always)
		program.always();
	if (program.acts_in && !--program.acts_in) {
		program.act();
		swap(program.acts_in, program.again_in);
	}
}

/* Let the kernel do something, at one access of which the program acts. Did it? */
static bool acts_at(unsigned int access, unsigned int again, void (*act)(void),
		    void (*kernel)(struct kunit *test), struct kunit *test)
{
	bool acted;

	program.act = act;
	program.acts_in = access;
	program.again_in = again;
	kernel(test);
	acted = !program.acts_in;
	program.act = act_anyhow;
	program.acts_in = 0;
	program.again_in = 0;
	return acted;
}

/* ---- the kernel, and the time ---- */

/* A run begins, with that budget. */
static struct tw_step step_of(u32 budget)
{
	return (struct tw_step){
		.now = tw_clock_floor(&program.tw->wheel.clock, program.now),
		.stamp = program.now,
		.budget = budget,
	};
}

/* As tw_run() does it, again and again */
static void run(struct kunit *test)
{
	struct twheel *tw = program.tw;
	bool more, dirty;
	unsigned int runs = 0;

	spin_lock_bh(&tw->lock);
	tw->timer_tick = TW_NEVER;
	do {
		struct tw_step step = step_of(64);

		dirty = copy_scan_dirty(tw, &step);
		more = true;
		while (more && step.budget)
			more = copy_turn(tw, &step);
		/* Where there is nothing, but the time goes on. */
		KUNIT_ASSERT_FALSE(test, tw_wheel_step(&tw->wheel, &step));
		if (!more && !dirty)
			dirty = !copy_sleep(tw, step.now);
	} while ((more || dirty) && ++runs < 1000);
	spin_unlock_bh(&tw->lock);
	KUNIT_ASSERT_LT(test, runs, 1000);
}

/* Entries of the ring for a timer */
static u32 in_ring(u32 nr)
{
	struct tw_shared *shared = program.tw->shared;
	u32 at, found = 0;

	for (at = shared->area->head; at != shared->area->tail; at++)
		found += shared->ring[at & shared->ring_mask] == nr;
	return found;
}

static bool known(u32 nr)
{
	return tw_entries_has(&program.tw->shared->wheel, nr);
}

/* What the program armed has expired by now, or else the kernel will look in time. */
static void check(struct kunit *test)
{
	struct twheel *tw = program.tw;
	const struct tw_clock *clock = &tw->wheel.clock;
	u32 i, nr;

	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		u64 word = atomic64_read(&tw->shared->words[nr = timers[i]]);
		s64 expires = tw_clock_expires(clock, program.deadline[nr] & ~1LL, 0);

		must(in_ring(nr) <= 1, "once in the ring");
		must(!(word & TWHEEL_WORD_IDLE) || !known(nr), "idle: not known");
		if (!program.armed[nr])
			must(!(word & TWHEEL_WORD_FIRED), "expired: it was armed");
		else if (word & TWHEEL_WORD_FIRED)
			must(in_ring(nr), "in the ring");
		else if (program.deadline[nr] != (TWHEEL_WORD_NEVER | TWHEEL_WORD_ARMED))
			must(expires > tw_clock_floor(clock, program.now) &&
			     expires >= tw->timer_tick, "not late");
	}
	KUNIT_ASSERT_STREQ(test, program.wrong ?: "all is well", "all is well");
}

/* The kernel runs, and while it does the program may act, and so on. */
static void run_and_check(struct kunit *test)
{
	do {
		program.ring = false;
		run(test);
	} while (program.ring);
	program.acts_in = 0;
	check(test);
}

static void pass_time(struct kunit *test)
{
	struct twheel *tw = program.tw;
	s64 wake = tw_clock_tick_ns(&tw->wheel.clock, tw->timer_tick);
	s64 then = program.now + (U32_MAX >> random(30)) / 2;

	if (wake > then) {
		program.now = then;
		return;
	}
	program.now = max_t(s64, program.now, wake) + random(TICK);
	program.acts_in = random(80);
	run_and_check(test);
}

static void make_room(struct iov_iter *to, struct kvec *room, void *at, size_t size)
{
	*room = (struct kvec){ at, size };
	iov_iter_kvec(to, ITER_DEST, room, 1, size);
}

/* After the access by which the kernel takes it, the program can't act any more. */
static void read_one(void)
{
	struct twheel_event event = {};
	struct iov_iter to;
	struct kvec room;
	u32 nr;

	make_room(&to, &room, &event, sizeof(event));
	if (copy_read_events(program.tw, &to, sizeof(event), 1) < 0)
		return;
	nr = event.user_data;
	must(nr < NR && program.armed[nr], "read: it was armed");
	must(event.deadline <= program.now, "read: not early");
	program.armed[nr] = false;
}

static void drain_one(void)
{
	struct twheel *tw = program.tw;
	struct twheel_op op = {};
	struct iov_iter to;
	struct kvec room;
	u32 nr;

	if (!tw->shared->wheel.pending)
		return;
	make_room(&to, &room, &op, sizeof(op));
	spin_lock_bh(&tw->lock);
	if (copy_drain(tw, &to, sizeof(op)) == 1) {
		nr = op.user_data;
		must(nr < NR && program.armed[nr] && op.deadline == program.deadline[nr],
		     "drained: it was armed for then");
		program.armed[nr] = false;
	}
	spin_unlock_bh(&tw->lock);
}

static int begin(struct kunit *test)
{
	/* What is set for a time after the test never comes. */
	program = (struct program){
		.now = ktime_get_ns() + 10 * 3600 * NSEC_PER_SEC,
		.tw = fixture_open(test, TICK, NR),
		.act = act_anyhow,
		.one = ONE,
	};
	prandom_seed_state(&program.rnd, 1);
	return 0;
}

/* ---- the cases ---- */

static void word_changed_at_any_access_settled(struct kunit *test)
{
	unsigned int i, acts;

	for (i = 0; i < 100000; i++) {
		program.act = i / 1000 % 2 ? arm_any : act_anyhow;
		for (acts = random(4); acts; acts--) {
			program.act();
			if (program.ring) {
				program.acts_in = random(80);
				run_and_check(test);
			}
		}
		pass_time(test);
		program.acts_in = random(12);
		if (random(2))
			read_one();
		else
			drain_one();
		program.acts_in = 0;
		if (program.ring)
			run_and_check(test);
	}
}

/* What is due right at a tick expires then, and not a tick later. */
static void due_at_tick_expires_then(struct kunit *test)
{
	const s64 ticks[] = { 1, 2, 300, 70000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		s64 time = (div_s64(program.now, TICK) + ticks[i]) * TICK;

		arm(8, time);
		arm(9, time + 2);
		run_and_check(test);
		program.now = time - 1;
		run_and_check(test);
		KUNIT_EXPECT_EQ(test, in_ring(8), 0);
		program.now = time;
		run_and_check(test);
		KUNIT_EXPECT_EQ(test, in_ring(8), 1);
		KUNIT_EXPECT_EQ(test, in_ring(9), 0);
		program.now = time + TICK;
		run_and_check(test);
		KUNIT_EXPECT_EQ(test, in_ring(9), 1);
		take();
		take();
	}
}

/*
 * A timer is cancelled, and armed again at one access of the kernel that inspects it: as one
 * of the wheel that is due, or as one that is dirty. Returns whether there was such an access.
 */
static bool rearm_at_access(struct kunit *test, unsigned int access, bool in_wheel)
{
	bool acted;

	arm(ONE, program.now + 10 * TICK);
	if (in_wheel)
		run_and_check(test);
	cancel(ONE);
	program.ring = false;
	program.now += 11 * TICK;
	acted = acts_at(access, 0, arm_one, run, test);
	if (program.ring)
		run(test);
	check(test);
	program.now += 10 * TICK;
	run_and_check(test);
	take();
	KUNIT_EXPECT_FALSE(test, program.armed[ONE]);
	return acted;
}

static void rearm_during_inspection_expires(struct kunit *test)
{
	unsigned int access, in_wheel;

	for (in_wheel = 0; in_wheel < 2; in_wheel++) {
		access = 1;
		while (rearm_at_access(test, access, in_wheel))
			access++;
		KUNIT_EXPECT_GT(test, access, 5);
	}
}

/*
 * A timer that is due is moved twice while the kernel inspects it, first to another time in
 * the same tick, then to later: which needs no doorbell. Returns whether there were so many
 * accesses.
 */
static bool move_at_accesses(struct kunit *test, unsigned int first, unsigned int between)
{
	s64 tick = tw_clock_floor(&program.tw->wheel.clock, program.now);
	bool acted;

	arm(ONE, (tick + 10) * TICK - TICK / 2);
	run_and_check(test);
	program.now += 12 * TICK;
	acted = acts_at(first, between, move_one, run, test);
	run_and_check(test);
	program.now += 10 * TICK;
	run_and_check(test);
	while (program.tw->shared->area->head != program.tw->shared->area->tail)
		take();
	KUNIT_EXPECT_FALSE(test, program.armed[ONE]);
	return acted;
}

static void moved_twice_during_inspection_expires(struct kunit *test)
{
	unsigned int first, between, most = 0;

	for (between = 1; between < 10; between++) {
		first = 1;
		while (move_at_accesses(test, first, between))
			first++;
		most = max(most, first);
	}
	KUNIT_EXPECT_GT(test, most, 5);
}

/* Withdrawn ones included: a reader that may take few does not walk the ring. */
static void read_takes_so_many_entries(struct kunit *test)
{
	struct tw_shared *shared = program.tw->shared;
	struct twheel_event events[4];
	struct iov_iter to;
	struct kvec room;
	unsigned int i;

	for (i = 0; i < 8; i++)
		arm(timers[i], program.now - 1);
	run_and_check(test);
	for (i = 0; i < 5; i++)
		cancel(timers[i]);
	make_room(&to, &room, events, sizeof(events));
	KUNIT_EXPECT_EQ(test, copy_read_events(program.tw, &to, sizeof(*events), 4), -EAGAIN);
	KUNIT_EXPECT_EQ(test, shared->area->head, 4);
	KUNIT_EXPECT_EQ(test, copy_read_events(program.tw, &to, sizeof(*events), 3),
			2 * sizeof(*events));
	KUNIT_EXPECT_EQ(test, shared->area->head, 7);
	KUNIT_EXPECT_EQ(test, copy_read_events(program.tw, &to, sizeof(*events), U32_MAX),
			sizeof(*events));
	KUNIT_EXPECT_EQ(test, shared->area->head, 8);
}

/* There is room for two: how many were given, and which */
static struct {
	unsigned int nr;
	u64 timers[2];
} given;

static void read_two(struct kunit *test)
{
	struct twheel_event events[2];
	struct iov_iter to;
	struct kvec room;

	make_room(&to, &room, events, sizeof(events));
	given.nr = copy_read_events(program.tw, &to, sizeof(*events), U32_MAX) / sizeof(*events);
	given.timers[0] = events[0].user_data;
	given.timers[1] = events[1].user_data;
}

static void drain_two(struct kunit *test)
{
	struct twheel *tw = program.tw;
	struct twheel_op ops[2];
	struct iov_iter to;
	struct kvec room;

	make_room(&to, &room, ops, sizeof(ops));
	spin_lock_bh(&tw->lock);
	for (given.nr = 0; tw->shared->wheel.pending && iov_iter_count(&to);)
		given.nr += copy_drain(tw, &to, sizeof(*ops));
	spin_unlock_bh(&tw->lock);
	given.timers[0] = ops[0].user_data;
	given.timers[1] = ops[1].user_data;
}

/* Two timers are read or drained, and the program moves one of them at some access. */
static bool move_while_written(struct kunit *test, unsigned int access,
			       void (*kernel)(struct kunit *test))
{
	struct twheel *tw = program.tw;
	s64 deadline = program.now + (kernel == drain_two ? 100 * TICK : -1);
	bool acted;

	arm(8, deadline);
	arm(9, deadline);
	run_and_check(test);
	program.one = kernel == drain_two ? tw_entries_any(&tw->shared->wheel) : 8;
	acted = acts_at(access, 0, arm_one, kernel, test);
	/* The model does not know when it was taken: before it was moved, or not at all. */
	program.wrong = NULL;
	program.armed[8] = acted && atomic64_read(&tw->shared->words[8]) & TWHEEL_WORD_ARMED;
	program.armed[9] = acted && atomic64_read(&tw->shared->words[9]) & TWHEEL_WORD_ARMED;
	program.now += 10 * TICK;
	run_and_check(test);
	take();
	check(test);
	KUNIT_EXPECT_FALSE(test, program.armed[8] || program.armed[9]);
	return acted;
}

static void withdrawn_while_written_leaves_no_gap(struct kunit *test)
{
	unsigned int access = 0, alone = 0;

	while (move_while_written(test, ++access, read_two)) {
		KUNIT_EXPECT_TRUE(test, given.nr == 1 || given.nr == 2);
		KUNIT_EXPECT_EQ(test, given.timers[0], given.nr == 2 ? 8 : 9);
		KUNIT_EXPECT_EQ(test, given.timers[given.nr - 1], 9);
		alone += given.nr == 1;
	}
	KUNIT_EXPECT_GE(test, alone, 3);
	KUNIT_EXPECT_LT(test, alone, access - 1);
}

static void moved_while_drained_leaves_no_gap(struct kunit *test)
{
	unsigned int access = 0;

	while (move_while_written(test, ++access, drain_two)) {
		KUNIT_EXPECT_EQ(test, given.nr, 2);
		KUNIT_EXPECT_EQ(test, given.timers[0] + given.timers[1], 8 + 9);
	}
	KUNIT_EXPECT_GT(test, access, 3);
}

/* The ring is full only for a program that moved its head where it was before. */
static void full_ring_expiry_retried(struct kunit *test)
{
	struct tw_shared *shared = program.tw->shared;

	shared->area->head = -(shared->ring_mask + 1);
	arm(7, program.now - 1);
	run(test);
	KUNIT_EXPECT_EQ(test, shared->tail, 0);
	shared->area->head = 0;
	program.now += NSEC_PER_SEC + TICK;
	KUNIT_EXPECT_LE(test, program.tw->timer_tick,
			tw_clock_floor(&program.tw->wheel.clock, program.now));
	run_and_check(test);
	KUNIT_EXPECT_EQ(test, shared->tail, 1);
}

/* What the kernel has seen of the head does not grow so old that it looks new. */
static void ring_numbers_wrap_nothing_lost(struct kunit *test)
{
	struct tw_shared *shared = program.tw->shared;
	u32 i, at;

	for (i = 0, at = 0; i < 3; i++, at += 0x55555555) {
		shared->tail = at;
		shared->area->tail = at;
		shared->area->head = at;
		run(test);
		KUNIT_EXPECT_EQ(test, copy_ready(shared), 0);
	}
	shared->tail = -1;
	shared->area->tail = -1;
	shared->area->head = -1;
	for (i = 0; i < 3; i++)
		arm(i, program.now - 1);
	run(test);
	KUNIT_EXPECT_EQ(test, shared->tail, 2);
	KUNIT_EXPECT_EQ(test, copy_ready(shared), 3);
	shared->area->head = 0;
	KUNIT_EXPECT_EQ(test, copy_ready(shared), 2);
	run(test);
	shared->area->head = -1;
	KUNIT_EXPECT_EQ(test, copy_ready(shared), 0);
	while (shared->area->head != shared->tail)
		take();
	run_and_check(test);
	/* A head that was moved on, and back by more than there are entries */
	shared->tail += shared->ring_mask + 2;
	shared->area->head = shared->tail - (shared->ring_mask + 1);
	KUNIT_EXPECT_EQ(test, copy_ready(shared), shared->ring_mask + 1);
	shared->area->head--;
	KUNIT_EXPECT_EQ(test, copy_ready(shared), 0);
	shared->area->head = shared->tail;
}

/* What a program tells of is scanned piece by piece. */
static void scan_stops_at_budget(struct kunit *test)
{
	struct twheel *tw = program.tw;
	struct tw_step step = step_of(1);

	/* Groups without any: only a program that means harm tells of such. */
	atomic64_or(BIT_ULL(0) | BIT_ULL(1), &tw->shared->groups[0]);
	spin_lock_bh(&tw->lock);
	KUNIT_EXPECT_TRUE(test, copy_scan_dirty(tw, &step));
	KUNIT_EXPECT_EQ(test, step.budget, 0);
	step.budget = 1;
	KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
	KUNIT_EXPECT_EQ(test, step.budget, 0);
	spin_unlock_bh(&tw->lock);
}

/* What a program tells of again and again does not keep what comes after it from a scan. */
static void scan_goes_forwards(struct kunit *test)
{
	struct twheel *tw = program.tw;
	struct tw_step step = step_of(0);
	unsigned int scans;
	u32 nr;

	arm(31, program.now + 10 * TICK);
	arm(255, program.now + 10 * TICK);
	arm(NR - 1, program.now + 10 * TICK);
	spin_lock_bh(&tw->lock);
	for (scans = 0; !known(NR - 1) && scans < 100; scans++) {
		KUNIT_EXPECT_TRUE(test, scans < 10 || known(31));
		KUNIT_EXPECT_TRUE(test, scans < 15 || known(255));
		for (nr = 0; nr < 4 * TW_INSPECT_PER_NODE; nr++)
			tell(nr);
		step.budget = 1;
		KUNIT_EXPECT_TRUE(test, copy_scan_dirty(tw, &step));
	}
	spin_unlock_bh(&tw->lock);
	KUNIT_EXPECT_LT(test, scans, 20);
	run_and_check(test);
}

/* And so are those that are due, however many share a tick. */
static void turn_stops_at_budget(struct kunit *test)
{
	const u32 most = 10 * TW_INSPECT_PER_NODE;
	struct twheel *tw = program.tw;
	unsigned int turns = 0;
	u32 nr, expired = 0;
	bool more;

	for (nr = 0; nr < NR; nr++)
		arm(nr, program.now + 5 * TICK);
	run(test);
	program.now += 6 * TICK;
	spin_lock_bh(&tw->lock);
	do {
		struct tw_step step = step_of(10);

		KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
		more = copy_turn(tw, &step);
		KUNIT_EXPECT_LE(test, step.expired, most);
		expired += step.expired;
		KUNIT_EXPECT_EQ(test, step.left, more ? NR - expired : 0);
		KUNIT_EXPECT_TRUE(test, !step.left || !step.budget);
	} while (more && ++turns < NR);
	spin_unlock_bh(&tw->lock);
	KUNIT_EXPECT_EQ(test, expired, NR);
	KUNIT_EXPECT_GE(test, turns, NR / most);
	check(test);
}

/* Each wakes a program, so there is none for nothing. */
static void readers_notified_of_what_expired(struct kunit *test)
{
	struct tw_shared *shared = program.tw->shared;

	shared->unnotified = 0;
	KUNIT_EXPECT_FALSE(test, copy_must_notify(shared));
	shared->expiring = true;
	shared->unnotified = TW_NOTIFY - 1;
	KUNIT_EXPECT_FALSE(test, copy_must_notify(shared));
	shared->unnotified = TW_NOTIFY;
	KUNIT_EXPECT_TRUE(test, copy_must_notify(shared));
	KUNIT_EXPECT_FALSE(test, copy_must_notify(shared));
	shared->unnotified = 1;
	shared->expiring = false;
	KUNIT_EXPECT_TRUE(test, copy_must_notify(shared));
}

static void restless_program_scanned_once_a_tick(struct kunit *test)
{
	struct twheel *tw = program.tw;

	program.always = tell_of_first;
	run(test);
	KUNIT_EXPECT_EQ(test, tw->timer_tick,
			tw_clock_floor(&tw->wheel.clock, program.now) + 1);
}

/* And while the wheel has other work, and does not sleep, in each tick. */
static void busy_wheel_scanned_each_tick(struct kunit *test)
{
	struct twheel *tw = program.tw;
	struct tw_step step = step_of(1000);
	u32 nr;

	spin_lock_bh(&tw->lock);
	for (nr = 0; nr < TW_PASSES; nr++) {
		arm(nr, program.now + 10 * TICK);
		KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
		KUNIT_EXPECT_TRUE(test, tw_entries_has(&tw->shared->wheel, nr));
	}
	arm(nr, program.now + 10 * TICK);
	KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
	KUNIT_EXPECT_FALSE(test, tw_entries_has(&tw->shared->wheel, nr));
	step.now++;
	KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
	KUNIT_EXPECT_TRUE(test, tw_entries_has(&tw->shared->wheel, nr));
	for (; tw->shared->passes < TW_PASSES; nr++) {
		arm(nr, program.now + 10 * TICK);
		KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
	}
	arm(nr, program.now + 10 * TICK);
	copy_scan_anew(tw->shared);
	KUNIT_EXPECT_FALSE(test, copy_scan_dirty(tw, &step));
	KUNIT_EXPECT_TRUE(test, tw_entries_has(&tw->shared->wheel, nr));
	spin_unlock_bh(&tw->lock);
}

/* A timer that is due and changes whenever it is inspected is let be, until the next tick. */
static void creeping_timer_inspected_next_tick(struct kunit *test)
{
	struct twheel *tw = program.tw;
	s64 tick;

	arm(ONE, program.now + 10 * TICK);
	run_and_check(test);
	program.now += 12 * TICK;
	tick = tw_clock_floor(&tw->wheel.clock, program.now);
	program.always = creep_one;
	run(test);
	program.always = NULL;
	KUNIT_EXPECT_EQ(test, in_ring(ONE), 0);
	KUNIT_EXPECT_EQ(test, tw->timer_tick, tick + 1);
	program.now += TICK;
	run_and_check(test);
	KUNIT_EXPECT_EQ(test, in_ring(ONE), 1);
}

/* Whether it was due already when the scan found it, or is found there again */
static void timer_counted_once(struct kunit *test)
{
	struct twheel_stats *stats = &program.tw->stats;
	u32 nr;

	for (nr = 0; nr < 5; nr++)
		arm(nr, program.now - 1 - nr);
	run(test);
	KUNIT_EXPECT_EQ(test, stats->armed, 5);
	KUNIT_EXPECT_EQ(test, stats->cancelled, 0);
	for (nr = 0; nr < 5; nr++)
		KUNIT_EXPECT_EQ(test, in_ring(nr), 1);
	for (; nr < 10; nr++)
		arm(nr, program.now + 10 * TICK);
	run(test);
	KUNIT_EXPECT_EQ(test, stats->armed, 10);
	for (nr = 5; nr < 10; nr++)
		arm(nr, program.now + 5 * TICK);
	run(test);
	KUNIT_EXPECT_EQ(test, stats->armed, 10);
}

/* The wheel wakes up before that by what it may take to scan for dirty timers, if that is far. */
static void far_expiry_scanned_ahead(struct kunit *test)
{
	struct twheel *tw = program.tw;
	s64 tick = tw_clock_floor(&tw->wheel.clock, program.now);

	KUNIT_EXPECT_EQ(test, tw->shared->lead, LEAD);
	arm(0, (tick + 1000) * TICK);
	run_and_check(test);
	KUNIT_EXPECT_EQ(test, tw->timer_tick, tick + 1000 - LEAD);
	KUNIT_EXPECT_EQ(test, tw->shared->area->next_wake, (tick + 999) * TICK + 2);
	arm(0, (tick + 2 * LEAD - 1) * TICK);
	run_and_check(test);
	KUNIT_EXPECT_EQ(test, tw->timer_tick, tick + 2 * LEAD - 1);
	KUNIT_EXPECT_EQ(test, tw->shared->area->next_wake,
			(tick + 2 * LEAD - 2) * TICK + 2);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(word_changed_at_any_access_settled),
	KUNIT_CASE(due_at_tick_expires_then),
	KUNIT_CASE(rearm_during_inspection_expires),
	KUNIT_CASE(moved_twice_during_inspection_expires),
	KUNIT_CASE(read_takes_so_many_entries),
	KUNIT_CASE(withdrawn_while_written_leaves_no_gap),
	KUNIT_CASE(moved_while_drained_leaves_no_gap),
	KUNIT_CASE(full_ring_expiry_retried),
	KUNIT_CASE(ring_numbers_wrap_nothing_lost),
	KUNIT_CASE(scan_stops_at_budget),
	KUNIT_CASE(scan_goes_forwards),
	KUNIT_CASE(turn_stops_at_budget),
	KUNIT_CASE(readers_notified_of_what_expired),
	KUNIT_CASE(restless_program_scanned_once_a_tick),
	KUNIT_CASE(busy_wheel_scanned_each_tick),
	KUNIT_CASE(creeping_timer_inspected_next_tick),
	KUNIT_CASE(timer_counted_once),
	KUNIT_CASE(far_expiry_scanned_ahead),
	{}
};

static struct kunit_suite suite = {
	.name = "twheel_shared",
	.init = begin,
	.exit = fixture_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
