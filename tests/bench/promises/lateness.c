// SPDX-License-Identifier: GPL-2.0
/*
 * How late a million timers are that sit in one upper slot until it is brought down,
 * or in a single tick. The processor does a thousand million instructions a second
 * here, about as a real one does.
 */
#include "promises.h"

#define TIMERS 1000000UL

enum reader {
	READS_LATER,	/* when all have expired */
	READS_AT_ONCE,	/* competes with the wheel for the processor */
};

enum wheel_kind {
	PLAIN,
	PUSHED,		/* one timer was moved out of the tick */
	WALL_CLOCK,	/* its clock can be set, so each timer is looked at */
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
	{ "slot_of_64_ticks", 64, 12, READS_LATER, PLAIN, true },
	{ "slot_of_64_ticks_read", 64, 12, READS_AT_ONCE, PLAIN, true },
	{ "slot_of_4096_ticks", 4096, 4, READS_LATER, PLAIN, true },
	{ "slot_of_4096_ticks_read", 4096, 4, READS_AT_ONCE, PLAIN, true },
	{ "slot_of_262144_ticks", 262144, 4, READS_LATER, PLAIN, true },
	{ "one_tick", 1, 750, READS_LATER, PLAIN, true },
	{ "one_tick_read", 1, 750, READS_AT_ONCE, PLAIN, true },
	{ "one_tick_one_pushed", 1, 750, READS_LATER, PUSHED, false },
	{ "one_tick_wall_clock", 1, 750, READS_LATER, WALL_CLOCK, false },
};

/* What came of one scene. */
struct tally {
	__u64 read;
	__u64 early;
	__u64 wrong;		/* not armed, or read twice */
	__u64 late;		/* not in its own tick */
	__u64 worst;		/* in ticks */
	__u64 lateness[TWHEEL_LATENESS_BUCKETS];
};

static __u64 *deadlines, *ids;

static void draw_deadlines(const struct scene *scene, __u64 first_tick)
{
	size_t i;

	/* Anywhere in the ns that are rounded up to the tick. */
	for (i = 0; i < TIMERS; i++)
		deadlines[i] = (first_tick + rnd(scene->ticks) - 1) * TICK + 1 +
			       rnd(TICK);
}

static unsigned int bits(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

static void check_event(struct tally *tally, const struct twheel_event *event)
{
	__u64 *deadline = &deadlines[event->user_data];
	__u64 due, late;

	tally->read++;
	if (event->user_data >= TIMERS || *deadline != event->deadline) {
		tally->wrong++;
		return;
	}
	due = due_tick(*deadline, TICK) * TICK;
	*deadline = 0;
	if (event->expired < due) {
		tally->early++;
		return;
	}
	late = (event->expired - due) / TICK;
	tally->late += late > 0;
	if (late > tally->worst)
		tally->worst = late;
	tally->lateness[bits(event->expired - due)]++;
}

static void read_all(int wheel, struct tally *tally)
{
	static struct twheel_event events[BATCH];
	size_t n, i;

	while ((n = read_events(wheel, events, BATCH)))
		for (i = 0; i < n; i++)
			check_event(tally, &events[i]);
}

/* Wait for events until @end, with read(2) itself. */
static void read_until(int wheel, struct tally *tally, __u64 end)
{
	static struct twheel_event events[BATCH];
	size_t n, i;

	fcntl(wheel, F_SETFL, O_RDWR);
	while (tally->read < TIMERS && now() < end) {
		n = read_events(wheel, events, BATCH);
		for (i = 0; i < n; i++)
			check_event(tally, &events[i]);
	}
	fcntl(wheel, F_SETFL, O_RDWR | O_NONBLOCK);
}

static void report(const struct scene *scene, const struct tally *tally,
		   const struct twheel_stats *stats)
{
	double own = 100.0 * (tally->read - tally->late) / TIMERS;
	unsigned int i;

	result(scene->name, TIMERS, "longest_run_instructions", stats->longest_run);
	result(scene->name, TIMERS, "in_own_tick_percent", own);
	if (scene->goal)
		result_goal(scene->name, TIMERS, "worst_ticks", tally->worst, 1);
	else
		result(scene->name, TIMERS, "worst_ticks", tally->worst);
	if (scene->goal && own < 99.9)
		say("GOAL MISSED: %s: %.3f %% in their own tick, the goal is 99.9",
		    scene->name, own);
	if (tally->early || tally->wrong || tally->read != TIMERS)
		broken("%s: of %lu timers %llu were read, %llu early, %llu twice",
		       scene->name, TIMERS, tally->read, tally->early,
		       tally->wrong);
	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++)
		if (tally->lateness[i] != stats->lateness[i])
			broken("%s: lateness[%u] is %llu, but events say %llu",
			       scene->name, i, stats->lateness[i],
			       tally->lateness[i]);
}

/* Move one timer to later, so that its tick can't be handed over unseen. */
static void push_one(int wheel, __u64 first_tick)
{
	struct twheel_op op;

	/* By then its tick has a slot of its own. */
	sleep_until((first_tick - 60) * TICK);
	deadlines[0] += TICK;
	op = op_modify(ids[0], deadlines[0], 0);
	submit_good(wheel, &op, 1);
}

static void play(const struct scene *scene)
{
	struct tally tally = {};
	struct twheel_stats stats;
	__u64 first, end;
	int wheel;

	say("%s", scene->name);
	clock_id = scene->kind == WALL_CLOCK ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	wheel = wheel_open(TICK);
	first = (now() / TICK / scene->ticks + scene->lead + 1) * scene->ticks;
	end = (first + scene->ticks) * TICK + 2 * SECOND;
	draw_deadlines(scene, first);
	arm_all(wheel, deadlines, ids, TIMERS);
	stats = wheel_stats(wheel);
	if (stats.brought_down || stats.expired)
		die("%s: arming took too long", scene->name);

	if (scene->kind == PUSHED)
		push_one(wheel, first);
	if (scene->reader == READS_AT_ONCE)
		read_until(wheel, &tally, end);
	else
		sleep_until(end);
	stats = wheel_stats(wheel);
	read_all(wheel, &tally);
	if (stats.brought_down < TIMERS)
		die("%s: nothing was to be brought down", scene->name);
	report(scene, &tally, &stats);
	close(wheel);
}

int main(void)
{
	size_t i;

	suite = "lateness";
	deadlines = allocate(TIMERS * sizeof(*deadlines));
	ids = allocate(TIMERS * sizeof(*ids));
	for (i = 0; i < ARRAY_SIZE(scenes); i++)
		play(&scenes[i]);
	return promise_broken;
}
