// SPDX-License-Identifier: GPL-2.0
/*
 * How often a wheel interrupts: the callbacks of its hrtimer, counted by the
 * kernel's own tracepoint.
 */
#include "guarantees.h"

#define MOST_TIMERS 1000000UL

/* A slot of no more timers than this is to cost no interrupt of its own. */
#define FEW 32

static __u64 *deadlines, *ids, *ticks;
static size_t nr_ticks;

/* Deadlines that shall be kept, and at which ticks that may mean work. */
static void set_deadline(size_t i, __u64 deadline)
{
	deadlines[i] = deadline;
	ticks[nr_ticks++] = due_tick(deadline, TICK);
}

static void draw_uniform(size_t n, __u64 start, __u64 range)
{
	size_t i;

	for (i = 0; i < n; i++)
		set_deadline(i, start + rnd(range));
}

/* As many from 16 to 32 s as from 32 to 64 s, and so on until @range. */
static void draw_doubling(size_t n, __u64 start, __u64 range)
{
	unsigned int octaves = 0;
	size_t i;

	while ((32 * SECOND) << octaves <= range)
		octaves++;
	for (i = 0; i < n; i++) {
		__u64 octave = (16 * SECOND) << rnd(octaves);

		set_deadline(i, start + octave + rnd(octave));
	}
}

/* Hundreds together, as of clients that were started together. */
static void draw_bursts(size_t n, __u64 start, __u64 range)
{
	__u64 burst = start;
	size_t i;

	for (i = 0; i < n; i++) {
		if (i % 500 == 0)
			burst = start + rnd(range);
		set_deadline(i, burst + rnd(3 * TICK));
	}
}

static const struct scene {
	const char *name;
	size_t timers;
	__u64 range;
	void (*draw)(size_t n, __u64 start, __u64 range);
	unsigned int pushed;	/* of 100, moved to later */
	unsigned int cancelled;	/* of 100 */
} scenes[] = {
	{ "hour", 10, HOUR, draw_uniform, 0, 0 },
	{ "hour", 1000, HOUR, draw_uniform, 0, 0 },
	{ "hour", 100000, HOUR, draw_uniform, 0, 0 },
	{ "ten_seconds", 1000000, 10 * SECOND, draw_uniform, 0, 0 },
	{ "bursts_in_an_hour", 1000000, HOUR, draw_bursts, 0, 0 },
	{ "doubling", 10000, 5 * HOUR, draw_doubling, 0, 0 },
	{ "hour_half_pushed", 10000, HOUR, draw_uniform, 50, 0 },
	{ "hour_half_cancelled", 10000, HOUR, draw_uniform, 0, 50 },
};

static int compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

static __u64 count_ticks(void)
{
	__u64 distinct = 0;
	size_t i;

	qsort(ticks, nr_ticks, sizeof(*ticks), compare);
	for (i = 0; i < nr_ticks; i++)
		distinct += !i || ticks[i] != ticks[i - 1];
	return distinct;
}

static void one(int wheel, struct twheel_op op)
{
	submit_good(wheel, &op, 1);
}

/* Returns how many timers are left. */
static size_t disturb(int wheel, const struct scene *scene)
{
	size_t left = scene->timers;
	size_t i;

	for (i = 0; i < scene->timers; i++) {
		unsigned int dice = rnd(100);

		if (dice < scene->cancelled) {
			one(wheel, op_cancel(ids[i]));
			left--;
		} else if (dice < scene->pushed) {
			set_deadline(i, deadlines[i] + SECOND + rnd(HOUR));
			one(wheel, op_modify(ids[i], deadlines[i], i));
		}
	}
	return left;
}

static __u64 last_deadline(size_t n)
{
	__u64 last = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (deadlines[i] > last)
			last = deadlines[i];
	return last;
}

/* The module's own count of what the kernel was asked for. */
static void check_count(const char *name, const struct twheel_stats *stats)
{
	if (callbacks() != stats->wakeups)
		broken("%s: the kernel counts %llu callbacks, the module %llu",
		       name, callbacks(), stats->wakeups);
}

static void report(const struct scene *scene, const struct twheel_stats *stats,
		   __u64 cascaded, size_t left)
{
	__u64 occupied = count_ticks();
	__u64 preloads = cascaded / FEW;

	result(scene->name, scene->timers, "occupied_ticks", occupied);
	result(scene->name, scene->timers, "most_preloads", preloads);
	result(scene->name, scene->timers, "interrupts", callbacks());
	if (callbacks() > occupied + preloads)
		broken("%s, %zu timers: %llu interrupts, %llu ticks, %llu preloads",
		       scene->name, scene->timers, callbacks(), occupied,
		       preloads);
	if (stats->expired != left || !callbacks())
		broken("%s: %llu of %zu timers expired in %llu interrupts",
		       scene->name, stats->expired, left, callbacks());
	check_count(scene->name, stats);
}

static void play(const struct scene *scene)
{
	__u64 cascaded = counter("cascaded");
	int wheel = wheel_open(TICK);
	struct twheel_stats stats;
	size_t left;

	say("%s, %zu timers", scene->name, scene->timers);
	nr_ticks = 0;
	scene->draw(scene->timers, now() + 10 * SECOND, scene->range);
	callbacks_start();
	arm_all(wheel, deadlines, ids, scene->timers);
	left = disturb(wheel, scene);
	sleep_until(last_deadline(scene->timers) + SECOND);
	stats = wheel_stats(wheel);
	report(scene, &stats, counter("cascaded") - cascaded, left);
	close(wheel);
}

/* A day with wheels that have nothing to do, each for another reason. */
static void play_empty(void)
{
	int unused = wheel_open(TICK), emptied = wheel_open(TICK);
	int unread = wheel_open(TICK);
	struct twheel_op op = op_arm(now() + HOUR, 0);

	say("a day of empty wheels");
	callbacks_start();
	one(unread, op_arm(1, 0));
	submit_good(emptied, &op, 1);
	one(emptied, op_cancel(op.id));
	sleep_until(now() + 24 * HOUR);
	result_goal("empty_day", 0, "interrupts", callbacks(), 0);
	close(unused);
	close(emptied);
	close(unread);
}

static void play_lone(const char *name, __u64 delay)
{
	int wheel = wheel_open(TICK);
	struct twheel_event event;
	struct twheel_stats stats;

	say("a lone timer, %s", name);
	callbacks_start();
	one(wheel, op_arm(now() + delay, 0));
	sleep_until(now() + delay + SECOND);
	result_goal(name, 1, "interrupts", callbacks(), 2);
	stats = wheel_stats(wheel);
	check_count(name, &stats);
	if (read_events(wheel, &event, 1) != 1 || !callbacks())
		broken("%s: the timer did not expire by its interrupt", name);
	close(wheel);
}

int main(void)
{
	size_t i;

	deadlines = allocate(MOST_TIMERS * sizeof(*deadlines));
	ids = allocate(MOST_TIMERS * sizeof(*ids));
	/* Timers that were pushed ahead have two wake-ups. */
	ticks = allocate(2 * MOST_TIMERS * sizeof(*ticks));

	play_empty();
	play_lone("lone_second", SECOND);
	play_lone("lone_hour", HOUR);
	for (i = 0; i < ARRAY_SIZE(scenes); i++)
		play(&scenes[i]);
	return promise_broken;
}
