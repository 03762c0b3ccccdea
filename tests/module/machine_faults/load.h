/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wheels full of timers of every kind, beside the model of each, when something happens to the
 * machine: nothing is early, lost, or comes twice, overruns are right, and there is no storm of
 * interrupts.
 */
#ifndef LOAD_H
#define LOAD_H

#define TIMERS 6000
#define MODEL_TIMERS (TIMERS + 1)	/* and one in the end, see model_finish() */

#include "model_wheel.h"

#define PERIODIC 24
/* More than a run may touch */
#define TOGETHER 600
/* Wake-ups that need no reason: preloading, a callback that is late, ... */
#define FEW 40

struct load {
	const char *name;
	clockid_t clock;
	__u64 tick;
	__u32 nr;
	int fd;
	struct model *model;
	__u64 seed;
	__u64 periods;		/* events of periodic timers that were read */
	__u64 armed_at;
};

#define LOAD(_name, _clock, _tick, _nr) \
	{ .name = _name, .clock = _clock, .tick = _tick, .nr = _nr, .fd = -1 }

/*
 * The clocks of a machine to which something happens, each with a wheel full of
 * timers, and one with a lone timer.
 */
static struct load loads[] = {
	LOAD("monotonic", CLOCK_MONOTONIC, 4 * MSEC, TIMERS),
	LOAD("boottime", CLOCK_BOOTTIME, MSEC, TIMERS),
	LOAD("realtime", CLOCK_REALTIME, MSEC, TIMERS),
	LOAD("tai", CLOCK_TAI, 10 * MSEC, TIMERS),
	LOAD("a lone monotonic", CLOCK_MONOTONIC, 4 * MSEC, 1),
	LOAD("a lone boottime", CLOCK_BOOTTIME, 4 * MSEC, 1),
	LOAD("a lone realtime", CLOCK_REALTIME, 4 * MSEC, 1),
};

/* Before, in and after the time @span; together; so late that it never comes */
static inline struct twheel_op load_plan(struct load *l, __u32 i, __u64 base, __u64 span)
{
	static const __u64 intervals[] = {
		1, 7 * MSEC, 100 * MSEC, SEC, 61 * SEC, 600 * SEC,
	};
	__u64 r = random_next(&l->seed) >> 8;
	struct twheel_op op = op_arm(TWHEEL_ABS, base + r % (span + span / 4 + 2 * SEC), 0);

	if (l->nr == 1)
		op.deadline = base + span / 2;
	else if (i < PERIODIC)
		op.interval = intervals[i % ARRAY_SIZE(intervals)] +
			      i / ARRAY_SIZE(intervals);
	else if (i < PERIODIC + TOGETHER)
		op.deadline = base + span / 2;
	else if (i < PERIODIC + 2 * TOGETHER)
		op.deadline = base + span / 4 * 3 + r % (64 * l->tick);
	else if (i < PERIODIC + 3 * TOGETHER)
		op.deadline = base + 30 * 24 * HOUR + r % HOUR;
	else if (i % 64 == 0)
		op.slack = r % (span / 8);
	return op;
}

static inline void load_arm(struct load *l, __u64 span)
{
	static struct attempt tries[TIMERS];
	static struct twheel_op ops[TIMERS];
	__u32 i;

	l->fd = wheel_new(wheel_clock(l->clock), l->tick);
	if (!l->model)
		l->model = calloc(1, sizeof(*l->model));
	if (!l->model)
		tap_bail("no memory");
	snprintf(model_doing, sizeof(model_doing), "%s", l->name);
	model_begin(l->model, l->fd, l - loads, true);
	l->seed = 0x9e3779b97f4a7c15ULL + l->clock;
	l->periods = 0;
	l->armed_at = now(l->clock);
	for (i = 0; i < l->nr; i++) {
		ops[i] = load_plan(l, i, l->armed_at + 200 * MSEC, span);
		model_try(l->model, NULL, sizeof(ops[i]), &tries[i], &ops[i]);
	}
	submit_all(l->fd, ops, l->nr);
	for (i = 0; i < l->nr; i++)
		model_result(l->model, &tries[i], &ops[i]);
}

static inline void load_read(struct load *l)
{
	static struct twheel_event ev[512];
	struct reading r;
	long i, n;

	snprintf(model_doing, sizeof(model_doing), "%s", l->name);
	do {
		r = reading_begin(l->model);
		n = read_events(l->fd, ev, ARRAY_SIZE(ev));
		if (!EXPECT_TRUE(n > 0 || n == -EAGAIN, "read gave %ld", n))
			return;
		model_read(l->model, &r, (char *)ev, n * (long)sizeof(*ev));
		for (i = 0; i < n; i++)
			l->periods += !!(ev[i].flags & TWHEEL_EVENT_PERIODIC);
	} while (n == (long)ARRAY_SIZE(ev));
}

/* Read until all that is due by now was there */
static inline void load_settle(struct load *l)
{
	model_mark_due(l->model);
	if (l->model->nr_awaited)
		EXPECT_TRUE(readable(l->fd, PATIENCE_MS), "%s: lost", l->name);
	EXPECT_TRUE(WAIT_FOR((load_read(l), !l->model->nr_awaited)), "%s: %u are lost", l->name,
		    l->model->nr_awaited);
}

/* Ticks with timers before @from and from @to on until @end */
static inline __u64 load_ticks(const struct load *l, __u64 from, __u64 to,
			       __u64 end)
{
	static __u64 ticks[TIMERS];
	__u32 i, n = 0, distinct = 0;

	for (i = 0; i < l->nr; i++) {
		__u64 at = l->model->timers[i].earliest;

		if (at <= from || (at + l->tick >= to && at <= end))
			ticks[n++] = tick_of(l->model, at);
	}
	qsort(ticks, n, sizeof(*ticks), by_number);
	for (i = 0; i < n; i++)
		distinct += !i || ticks[i] != ticks[i - 1];
	return distinct;
}

/*
 * Between @from and @to the clock went ahead by @gap at once. What was due then
 * must not have cost an interrupt for each of its ticks.
 */
static inline void load_no_storm(struct load *l, __u64 from, __u64 to, __u64 gap)
{
	struct twheel_stats stats = wheel_stats(l->fd);
	__u64 end = now(l->clock);
	__u64 elapsed = end - l->armed_at - gap;
	__u64 most = load_ticks(l, from, to, end) + elapsed / (64 * l->tick) +
		     (to - from - gap) / l->tick + l->periods + FEW;

	EXPECT_TRUE(stats.wakeups <= most, "%s: %llu interrupts, %llu are plenty",
		    l->name, stats.wakeups, most);
	/* (Of any wheel until now) */
	EXPECT_TRUE(module_counter("largest_run") <= 256, "%s: %llu timers in a run", l->name,
		    module_counter("largest_run"));
	tap_diag("%s: ahead by %llu ms: %llu interrupts (limit %llu), %llu overruns",
		 l->name, gap / MSEC, stats.wakeups, most, stats.overruns);
}

static inline void load_end(struct load *l)
{
	load_settle(l);
	model_finish(l->model, l->fd);
	close(l->fd);
}

/* When something began and ended, and by how much the clock went ahead in it */
struct fault {
	__u64 from[CLOCK_TAI + 1];
	__u64 to[CLOCK_TAI + 1];
	__u64 gap[CLOCK_TAI + 1];
};

static inline void fault_times(__u64 *times)
{
	static const clockid_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++)
		times[clocks[i]] = now(clocks[i]);
}

static inline void loads_begin(__u64 span)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(loads); i++)
		load_arm(&loads[i], span);
}

/* What was overdue is there; and then all goes on for a while */
static inline void loads_end(const struct fault *f)
{
	__u64 end;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(loads); i++) {
		struct load *l = &loads[i];

		load_settle(l);
		load_no_storm(l, f->from[l->clock], f->to[l->clock],
			      f->gap[l->clock]);
	}
	end = now(CLOCK_MONOTONIC) + SEC;
	while (now(CLOCK_MONOTONIC) < end) {
		for (i = 0; i < ARRAY_SIZE(loads); i++)
			load_read(&loads[i]);
		sleep_ns(5 * MSEC);
	}
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		load_end(&loads[i]);
}

/* Ask for something that is done to the machine from outside, see monitor */
#define machine(...) ({							\
	printf("@machine " __VA_ARGS__);				\
	printf("\n");							\
	fflush(stdout); })

static inline void machine_file(const char *path, const char *text)
{
	int err = write_text(path, text);

	if (err)
		tap_bail("%s: %s", path, strerror(-err));
}

#endif
