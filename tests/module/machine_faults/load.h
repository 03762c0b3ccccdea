/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wheels full of timers of every kind, and the model of what must come of them
 * when something happens to the machine: nothing early, nothing lost, nothing
 * twice, the right overruns, and no storm of interrupts.
 */
#ifndef LOAD_H
#define LOAD_H

#include "device.h"

#define TIMERS 6000
#define PERIODIC 24
/* More than a run may touch */
#define TOGETHER 600
/* Wake-ups that need no reason: preloading, a callback that is late, ... */
#define FEW 40

/* What is known of a timer */
struct plan {
	__u64 id;
	__u64 deadline;		/* of a periodic one, the next */
	__u64 interval;
	__u64 slack;
	bool done;		/* read, or drained */
};

struct load {
	const char *name;
	clockid_t clock;
	__u64 tick;
	__u32 nr;
	int fd;
	struct plan *plan;
	__u64 seed;
	__u64 last_tick;	/* of the event that was read last */
	__u64 periods;		/* events of periodic timers that were read */
	__u64 armed_at;
	__u64 armed_until;
};

static inline __u64 load_tick(const struct load *l, __u64 ns)
{
	return (ns + l->tick - 1) / l->tick;
}

/* Must its event be there by that time? */
static inline bool load_due(const struct load *l, const struct plan *p, __u64 t)
{
	return !p->done && (load_tick(l, p->deadline) + 1) * l->tick + p->slack <= t;
}

/* Before, in and after the time @span; together; so late that it never comes */
static inline void load_plan(struct load *l, __u32 i, __u64 base, __u64 span)
{
	static const __u64 intervals[] = {
		1, 7 * MSEC, 100 * MSEC, SEC, 61 * SEC, 600 * SEC,
	};
	struct plan *p = &l->plan[i];
	__u64 r = random_next(&l->seed) >> 8;

	p->deadline = base + r % (span + span / 4 + 2 * SEC);
	if (l->nr == 1)
		p->deadline = base + span / 2;
	else if (i < PERIODIC)
		p->interval = intervals[i % ARRAY_SIZE(intervals)] +
			      i / ARRAY_SIZE(intervals);
	else if (i < PERIODIC + TOGETHER)
		p->deadline = base + span / 2;
	else if (i < PERIODIC + 2 * TOGETHER)
		p->deadline = base + span / 4 * 3 + r % (64 * l->tick);
	else if (i < PERIODIC + 3 * TOGETHER)
		p->deadline = base + 30 * 24 * HOUR + r % HOUR;
	else if (i % 64 == 0)
		p->slack = r % (span / 8);
}

static inline void load_arm(struct load *l, __u64 span)
{
	struct twheel_op *ops = calloc(l->nr, sizeof(*ops));
	__u32 i;

	l->fd = wheel_new(wheel_clock(l->clock), l->tick);
	l->plan = calloc(l->nr, sizeof(*l->plan));
	if (!ops || !l->plan)
		tap_bail("no memory");
	l->seed = 0x9e3779b97f4a7c15ULL + l->clock;
	l->last_tick = 0;
	l->periods = 0;
	l->armed_at = now(l->clock);
	for (i = 0; i < l->nr; i++) {
		load_plan(l, i, l->armed_at + 200 * MSEC, span);
		ops[i] = op_arm(TWHEEL_ABS, l->plan[i].deadline, i);
		ops[i].interval = l->plan[i].interval;
		ops[i].slack = l->plan[i].slack;
	}
	submit_all(l->fd, ops, l->nr);
	l->armed_until = now(l->clock);
	for (i = 0; i < l->nr; i++)
		l->plan[i].id = ops[i].id;
	free(ops);
}

/* More than can be told, the next deadline tells. */
static inline __u64 load_overrun(struct load *l, const struct plan *p,
				 const struct twheel_event *ev)
{
	struct twheel_op op;

	if (ev->overrun != ~0U)
		return ev->overrun;
	EXPECT_EQ(query(l->fd, p->id, &op), 0);
	EXPECT_EQ((op.deadline - p->deadline) % p->interval, 0);
	return (op.deadline - p->deadline) / p->interval - 1;
}

static inline void load_period(struct load *l, struct plan *p,
			       const struct twheel_event *ev, __u64 before,
			       __u64 after)
{
	__u64 least = before > p->deadline ?
		      (before - p->deadline) / p->interval : 0;
	__u64 overrun = load_overrun(l, p, ev);

	EXPECT_TRUE(overrun >= least && overrun <= (after - p->deadline) / p->interval,
		    "%s: overrun %llu of period %llu, due %llu, read at %llu to %llu",
		    l->name, overrun, p->interval, p->deadline, before, after);
	p->deadline += (overrun + 1) * p->interval;
	l->periods++;
}

/* An event that was read between those two times */
static inline void load_event(struct load *l, const struct twheel_event *ev,
			      __u64 before, __u64 after)
{
	struct plan *p = &l->plan[ev->user_data];

	if (!EXPECT_TRUE(ev->user_data < l->nr && ev->id == p->id && !p->done,
			 "%s: event %llx of timer %llu", l->name, ev->id,
			 ev->user_data))
		return;
	EXPECT_EQ(ev->deadline, p->deadline, "%s: timer %llu", l->name,
		  ev->user_data);
	EXPECT_TRUE(after >= load_tick(l, p->deadline) * l->tick,
		    "%s: early: due %llu, now %llu", l->name, p->deadline, after);
	EXPECT_EQ(ev->flags, p->interval ? TWHEEL_EVENT_PERIODIC : 0);
	/* What was armed too late is ready in the order in which it was armed. */
	if (!p->slack && p->deadline > l->armed_until) {
		__u64 tick = load_tick(l, p->deadline);

		EXPECT_TRUE(tick >= l->last_tick, "%s: out of order: %llu after %llu",
			    l->name, tick, l->last_tick);
		l->last_tick = tick;
	}
	if (p->interval)
		return load_period(l, p, ev, before, after);
	EXPECT_EQ(ev->overrun, 0);
	p->done = true;
}

static inline void load_read(struct load *l)
{
	static struct twheel_event ev[512];
	long i, n;

	do {
		__u64 before = now(l->clock), after;

		n = read_events(l->fd, ev, ARRAY_SIZE(ev));
		after = now(l->clock);
		if (!EXPECT_TRUE(n > 0 || n == -EAGAIN, "read gave %ld", n))
			return;
		for (i = 0; i < n; i++)
			load_event(l, &ev[i], before, after);
	} while (n == (long)ARRAY_SIZE(ev));
}

static inline __u32 load_missing(const struct load *l, __u64 t)
{
	__u32 i, n = 0;

	for (i = 0; i < l->nr; i++)
		n += load_due(l, &l->plan[i], t);
	return n;
}

/* Read until all that is due by now was there */
static inline void load_settle(struct load *l)
{
	__u64 t = now(l->clock);

	if (l->nr == 1 && load_due(l, &l->plan[0], t))
		EXPECT_TRUE(readable(l->fd, PATIENCE_MS), "%s: lost", l->name);
	if (!WAIT_FOR((load_read(l), !load_missing(l, t))))
		EXPECT_EQ(load_missing(l, t), 0, "%s: lost", l->name);
}

static inline int load_compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* Ticks with timers before @from and from @to on until @end */
static inline __u64 load_ticks(const struct load *l, __u64 from, __u64 to,
			       __u64 end)
{
	__u64 *ticks = calloc(l->nr, sizeof(*ticks));
	__u32 i, n = 0, distinct = 0;

	if (!ticks)
		tap_bail("no memory");
	for (i = 0; i < l->nr; i++) {
		__u64 at = l->plan[i].deadline;

		if (at <= from || (at + l->tick >= to && at <= end))
			ticks[n++] = load_tick(l, at);
	}
	qsort(ticks, n, sizeof(*ticks), load_compare);
	for (i = 0; i < n; i++)
		distinct += !i || ticks[i] != ticks[i - 1];
	free(ticks);
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

/* What was neither read nor is ready must be pending, as it was armed */
static inline void load_drain(struct load *l)
{
	static struct twheel_op ops[512];
	long i, n;

	do {
		n = drain(l->fd, ops, ARRAY_SIZE(ops));
		if (!EXPECT_TRUE(n >= 0, "drain gave %ld", n))
			return;
		for (i = 0; i < n; i++) {
			struct plan *p = &l->plan[ops[i].user_data];

			EXPECT_TRUE(ops[i].user_data < l->nr && ops[i].id == p->id &&
				    !p->done, "%s: %llx drained", l->name, ops[i].id);
			EXPECT_EQ(ops[i].deadline, p->deadline, "%s", l->name);
			p->done = true;
		}
	} while (n);
}

static inline void load_end(struct load *l)
{
	__u32 i, lost = 0;

	load_settle(l);
	load_drain(l);
	load_read(l);
	for (i = 0; i < l->nr; i++)
		lost += !l->plan[i].done && !l->plan[i].interval;
	EXPECT_EQ(lost, 0, "%s", l->name);
	close(l->fd);
	free(l->plan);
}

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
