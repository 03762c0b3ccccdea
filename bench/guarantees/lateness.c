// SPDX-License-Identifier: GPL-2.0
/*
 * How late a million timers are that sit in one upper slot until it cascades,
 * or in a single tick, and shared timers besides: such ones, and the timeouts of a
 * million connections. The processor does a thousand million instructions a second
 * here, about as a real one does.
 *
 * A timer is late twice: when it is made ready, by the module's own histogram, and when
 * the program has it, by a look at the clock. (Shared timers have only the latter.)
 */
#include "guarantees.h"

#include <twheel.h>
#include <twheel_shared.h>

/*
 * A power of two, as near to a jiffy as there is one: so the histogram, whose elements
 * end at these, tells those that were ready in their own tick from those that were not.
 */
#define TICK_BITS 22
#undef TICK
#define TICK (1ULL << TICK_BITS)

#define TIMERS 1000000UL

/* A connection: what its timeout is, how often and how often again it is pushed. */
#define TIMEOUT (60 * SEC)
#define PUSHES 20
#define PUSH_EVERY (5 * SEC)
#define EXPIRES_ONE_IN 20	/* the others are cancelled */

enum reader {
	READS,		/* waits in read(2), which turns the wheel */
	TAKES,		/* in memory, when poll(2) says so */
};

enum wheel_kind {
	PLAIN,
	PUSHED,		/* one timer was moved out of the tick */
	WALL_CLOCK,	/* its clock can be set, so each timer is looked at */
	SHARED,
	CONNECTIONS,	/* shared timers of connections */
};

/*
 * The ranges begin at a multiple of their length, which is that of a slot: of no
 * level the first. @lead, in ranges, is so long that arming is over well before the
 * slot is touched.
 */
static const struct scene {
	const char *name;
	__u64 ticks;
	__u64 lead;
	enum reader reader;
	enum wheel_kind kind;
	bool goal;
} scenes[] = {
	{ "slot_of_64_ticks", 64, 12, READS, PLAIN, true },
	{ "slot_of_4096_ticks", 4096, 4, READS, PLAIN, true },
	{ "slot_of_262144_ticks", 262144, 4, READS, PLAIN, true },
	{ "one_tick", 1, 750, READS, PLAIN, true },
	{ "one_tick_one_pushed", 1, 750, READS, PUSHED, false },
	{ "one_tick_wall_clock", 1, 750, READS, WALL_CLOCK, false },
	{ "shared_connections_taken", 0, 0, TAKES, CONNECTIONS, true },
	{ "shared_connections_read", 0, 0, READS, CONNECTIONS, true },
	{ "shared_slot_of_4096_ticks_taken", 4096, 4, TAKES, SHARED, true },
	{ "shared_slot_of_4096_ticks_read", 4096, 4, READS, SHARED, true },
	{ "shared_slot_of_64_ticks_taken", 64, 12, TAKES, SHARED, false },
	{ "shared_slot_of_64_ticks_read", 64, 12, READS, SHARED, false },
	{ "shared_one_tick_taken", 1, 750, TAKES, SHARED, false },
	{ "shared_one_tick_read", 1, 750, READS, SHARED, false },
};

/* What came of one scene, and how late the program had the timers. */
struct tally {
	bool shared;
	__u64 expected;
	__u64 had;		/* read or taken */
	__u64 early;
	__u64 before_tick;	/* and yet not early */
	__u64 wrong;		/* not armed, or had twice */
	__u64 worst;		/* in ticks */
	__u64 lateness[TWHEEL_LATENESS_BUCKETS];
};

static __u64 *deadlines, *ids;
static struct twheel *shared_wheel;
static struct twheel_area area;

static void draw_deadlines(const struct scene *scene, __u64 first_tick)
{
	size_t i;

	/* Anywhere in the ns that are rounded up to the tick; odd in shared timers. */
	for (i = 0; i < TIMERS; i++) {
		deadlines[i] = (first_tick + rnd(scene->ticks) - 1) * TICK + 1 +
			       rnd(TICK);
		if (scene->kind == SHARED)
			deadlines[i] = (deadlines[i] - 1) | TWHEEL_WORD_ARMED;
	}
}

static unsigned int bits(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

/*
 * A program has a timer. One that is shared may be dirty until its deadline is over. Then
 * it is ready at once, as all are that are armed for the past: and so, perhaps, before the
 * tick that its deadline is rounded up to.
 */
static void had(struct tally *tally, __u64 timer, __u64 by)
{
	__u64 deadline, due, late;

	tally->had++;
	if (timer >= TIMERS || !deadlines[timer]) {
		tally->wrong++;
		return;
	}
	deadline = deadlines[timer] & ~(tally->shared ? TWHEEL_WORD_ARMED : 0);
	deadlines[timer] = 0;
	due = (deadline + TICK - 1) / TICK * TICK;
	if (by < (tally->shared ? deadline : due)) {
		tally->early++;
		return;
	}
	tally->before_tick += by < due;
	late = by > due ? by - due : 0;
	tally->lateness[bits(late)]++;
	if (late / TICK > tally->worst)
		tally->worst = late / TICK;
}

static void check_event(struct tally *tally, const struct twheel_event *event, __u64 by)
{
	if (event->user_data < TIMERS && deadlines[event->user_data] != event->deadline)
		tally->wrong++;
	had(tally, event->user_data, by);
}

static bool read_some(int wheel, struct tally *tally)
{
	static struct twheel_event events[BATCH];
	long n = read_events(wheel, events, BATCH), i;
	__u64 by = now(clock_id);

	for (i = 0; i < n; i++)
		check_event(tally, &events[i], by);
	return n > 0;
}

/* Wait for events until @end, with read(2) itself. */
static void read_until(int wheel, struct tally *tally, __u64 end)
{
	set_blocking(wheel, true);
	while (tally->had < tally->expected && now(clock_id) < end)
		read_some(wheel, tally);
	set_blocking(wheel, false);
}

static size_t take_some(struct tally *tally)
{
	static unsigned int timers[BATCH];
	size_t n = twheel_shared_take(&area, timers, BATCH);
	__u64 by = now(clock_id);
	size_t i;

	for (i = 0; i < n; i++)
		had(tally, timers[i], by);
	return n;
}

static void take_until(int wheel, struct tally *tally, __u64 end)
{
	struct pollfd fd = { .fd = wheel, .events = POLLIN };

	while (tally->had < tally->expected && now(clock_id) < end) {
		if (poll(&fd, 1, SEC / MSEC) < 0)
			tap_bail("poll: %s", strerror(errno));
		while (take_some(tally))
			;
	}
}

/* In percent, by a histogram as the module has one. */
static double in_own_tick(const struct tally *tally, const __u64 *lateness)
{
	__u64 own = 0;
	unsigned int i;

	for (i = 0; i <= TICK_BITS; i++)
		own += lateness[i];
	return 100.0 * own / tally->expected;
}

static void report_lateness(const struct scene *scene, const char *who, double own,
			    __u64 worst, bool goal)
{
	char metric[64];

	snprintf(metric, sizeof(metric), "%sin_own_tick_percent", who);
	result(scene->name, TIMERS, metric, own);
	if (goal && own < 99.9)
		say("GOAL MISSED: %s: %.3f %% in their own tick, the goal is 99.9",
		    scene->name, own);
	snprintf(metric, sizeof(metric), "%sworst_ticks", who);
	if (goal)
		result_goal(scene->name, TIMERS, metric, worst, 1);
	else
		result(scene->name, TIMERS, metric, worst);
}

/*
 * When they were ready, and when the program had them. Of shared timers the module can't
 * say: those whose deadline was over when a scan found them count as in time.
 */
static void report_times(const struct scene *scene, const struct tally *tally,
			 const struct twheel_stats *stats)
{
	if (!tally->shared)
		report_lateness(scene, "", in_own_tick(tally, stats->lateness),
				stats->max_lateness / TICK, scene->goal);
	report_lateness(scene, "program_", in_own_tick(tally, tally->lateness), tally->worst,
			scene->goal && tally->shared);
	if (tally->shared)
		result(scene->name, TIMERS, "program_before_tick_percent",
		       100.0 * tally->before_tick / tally->expected);
}

/* Nobody has a timer before it is ready, by the histograms of both. */
static void check_stats(const struct scene *scene, const struct tally *tally,
			const struct twheel_stats *stats)
{
	__s64 more = 0;
	unsigned int i;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++) {
		more += stats->lateness[i] - tally->lateness[i];
		if (more < 0) {
			broken("%s: lateness[%u] is %llu, but the program's is %llu",
			       scene->name, i, stats->lateness[i],
			       tally->lateness[i]);
			return;
		}
	}
	if (more || stats->expired != tally->expected)
		broken("%s: the module counts %llu expiries", scene->name, stats->expired);
}

static void report(const struct scene *scene, const struct tally *tally,
		   const struct twheel_stats *stats)
{
	result(scene->name, TIMERS, "longest_run_instructions",
	       module_counter("longest_run"));
	report_times(scene, tally, stats);
	if (tally->early || tally->wrong || tally->had != tally->expected)
		broken("%s: of %llu timers %llu expired, %llu early, %llu twice",
		       scene->name, tally->expected, tally->had, tally->early,
		       tally->wrong);
	else
		check_stats(scene, tally, stats);
}

/* Move one timer to later, so that its tick can't be handed over whole. */
static void push_one(int wheel, __u64 first_tick)
{
	struct twheel_op op;

	/* By then its tick has a slot of its own. */
	sleep_until((first_tick - 60) * TICK);
	deadlines[0] += TICK;
	op = op_modify(ids[0], TWHEEL_ABS, deadlines[0], 0);
	submit_all(wheel, &op, 1);
}

/* Have its pages mapped, as those of a program that has run for a while are. */
static void touch_area(void)
{
	char *p = (char *)area.shared;
	__u64 i;

	for (i = 0; i < area.size; i += getpagesize())
		__atomic_fetch_or(&p[i], 0, __ATOMIC_RELAXED);
}

static int open_scene(const struct scene *scene)
{
	int wheel, ret;

	if (scene->kind < SHARED)
		return wheel_with(TICK, 0);
	wheel = wheel_with(TICK, TIMERS);
	ret = twheel_from_fd(wheel, &shared_wheel);
	if (!ret)
		ret = twheel_shared_map(shared_wheel, &area);
	if (ret)
		tap_bail("shared timers: %s", strerror(-ret));
	touch_area();
	return wheel;
}

static void close_scene(const struct scene *scene, int wheel)
{
	if (scene->kind < SHARED) {
		close(wheel);
		return;
	}
	twheel_shared_unmap(&area);
	twheel_close(shared_wheel);
}

static void arm_shared(__u32 timer)
{
	if (twheel_shared_arm(&area, timer, deadlines[timer]) < 0)
		tap_bail("can't arm a shared timer");
}

/* All in the same slot or tick. Returns when they have expired. */
static __u64 arm_scene(const struct scene *scene, int wheel)
{
	__u64 first = (now(clock_id) / TICK / scene->ticks + scene->lead + 1) * scene->ticks;
	__u32 i;

	draw_deadlines(scene, first);
	if (scene->kind == SHARED)
		for (i = 0; i < TIMERS; i++)
			arm_shared(i);
	else
		arm_all(wheel, deadlines, ids, TIMERS);
	if (module_counter("cascaded") || wheel_stats(wheel).expired)
		tap_bail("%s: arming took too long", scene->name);
	if (scene->kind == PUSHED)
		push_one(wheel, first);
	return (first + scene->ticks) * TICK + 2 * SEC;
}

/*
 * Something happens in each connection, at a time of its own in PUSH_EVERY; what
 * happens at the same time is seen in the same tick.
 */
static void act_on_all(const __u32 *order, bool close)
{
	__u64 start = now(clock_id), by;
	__u32 i = 0;

	while (i < TIMERS) {
		sleep_until((start / TICK + 1) * TICK + PUSH_EVERY * i / TIMERS);
		for (by = now(clock_id); i < TIMERS && start + PUSH_EVERY * i / TIMERS <= by; i++) {
			__u32 timer = order[i];

			if (close && timer % EXPIRES_ONE_IN) {
				deadlines[timer] = 0;
				if (twheel_shared_cancel(&area, timer) !=
				    TWHEEL_STATE_PENDING)
					tap_bail("a connection had expired");
			} else if (!close) {
				deadlines[timer] = (by + TIMEOUT) | TWHEEL_WORD_ARMED;
				arm_shared(timer);
			}
		}
	}
}

/* Lives of connections, as in the suite guest. Returns when the last has expired. */
static __u64 play_connections(void)
{
	__u32 *order, i;

	order = allocate(TIMERS * sizeof(*order));
	for (i = 0; i < TIMERS; i++)
		order[i] = i;
	shuffle(order, TIMERS);
	for (i = 0; i <= PUSHES; i++)
		act_on_all(order, false);
	act_on_all(order, true);
	munmap(order, TIMERS * sizeof(*order));
	return now(clock_id) + TIMEOUT + 2 * SEC;
}

static void play(const struct scene *scene)
{
	bool connections = scene->kind == CONNECTIONS;
	struct tally tally = {
		.shared = scene->kind >= SHARED,
		.expected = connections ? TIMERS / EXPIRES_ONE_IN : TIMERS,
	};
	struct twheel_stats stats;
	__u64 end;
	int wheel;

	say("%s", scene->name);
	reload_module();
	clock_id = scene->kind == WALL_CLOCK ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	wheel = open_scene(scene);
	end = connections ? play_connections() : arm_scene(scene, wheel);

	if (scene->reader == READS)
		read_until(wheel, &tally, end);
	else
		take_until(wheel, &tally, end);
	stats = wheel_stats(wheel);
	while (read_some(wheel, &tally))
		;
	if (scene->kind < SHARED && module_counter("cascaded") < TIMERS)
		tap_bail("%s: nothing was to cascade", scene->name);
	report(scene, &tally, &stats);
	close_scene(scene, wheel);
}

int main(void)
{
	size_t i;

	deadlines = allocate(TIMERS * sizeof(*deadlines));
	ids = allocate(TIMERS * sizeof(*ids));
	for (i = 0; i < ARRAY_SIZE(scenes); i++)
		play(&scenes[i]);
	return promise_broken;
}
