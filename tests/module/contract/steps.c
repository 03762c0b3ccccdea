// SPDX-License-Identifier: GPL-2.0
/*
 * The wall clock is stepped at random, by a second, an hour, ten years, forwards
 * and backwards, or right to where a timer is due, and a model says after each
 * step which timers must have expired by now and which may not.
 *
 * The wheels are on every clock, with short ticks and long ones; their timers are
 * of every kind and on every level, and are moved, cancelled and armed anew
 * meanwhile. MONOTONIC and BOOTTIME are under the same model: they don't jump.
 *
 * Environment: TIMES=N for N times as many steps, SEED=N for others.
 *
 * also in: both-clocks matrix
 */
#include "device.h"

#include <sys/timex.h>

#define N 200
#define STEPS 120
#define YEARS (3652 * 24 * HOUR)	/* ten of them */

/* Between these the wall clock is moved, so that it can be set there */
#define FIRST_TIME (700000000 * SEC)
#define LAST_TIME (5000000000 * SEC)

/* What the model knows of a timer. Times are of its wheel's clock */
struct timer {
	__u64 id;	/* 0 when there is none */
	__u64 nominal;	/* its deadline without jitter */
	__u64 interval;
	__u64 slack;
	__u64 jitter;
	bool may;	/* its time came once, whatever the clock shows now */
	bool must;	/* its event is waited for */
};

struct wheel {
	clockid_t clock;
	__u64 tick;
	int fd;
	__u64 ahead;	/* of MONOTONIC, at most */
	__u64 overruns;	/* in all, before what is read now */
	__u64 most;	/* that its clock has shown, before it was set */
	unsigned int musts;
	struct timer timers[N];
};

static struct wheel wheels[] = {
	{ .clock = CLOCK_REALTIME, .tick = 0 },
	{ .clock = CLOCK_REALTIME, .tick = USEC },
	{ .clock = CLOCK_REALTIME, .tick = SEC },
	{ .clock = CLOCK_TAI, .tick = 100 * USEC },
	{ .clock = CLOCK_MONOTONIC, .tick = 0 },
	{ .clock = CLOCK_BOOTTIME, .tick = 10 * USEC },
};

static __u64 seed = 1;
static __s64 wall_offset;	/* of the wall clock, before it was touched */
static int tai_offset;
static unsigned int steps_done;
static unsigned long events, overruns, set_back, saturated;

static __u64 rnd(__u64 below)
{
	return random_next(&seed) % below;
}

/* Of every magnitude alike */
static __u64 rnd_wide(unsigned int bits)
{
	return rnd(2ULL << rnd(bits));
}

/* The first tick that a timer may expire at */
static __u64 earliest(const struct wheel *w, const struct timer *t)
{
	return (t->nominal + w->tick - 1) / w->tick * w->tick;
}

/* The tick by which it has expired */
static __u64 latest(const struct wheel *w, const struct timer *t)
{
	return (t->nominal + t->jitter + w->tick - 1) / w->tick * w->tick +
	       t->slack;
}

/* ---- what is done to timers ---- */

static struct twheel_op draw(const struct wheel *w, __u16 opcode, struct timer *t)
{
	struct twheel_op op = op_arm(0, 0, t - w->timers);
	__u64 from = now(w->clock);

	op.opcode = opcode;
	op.id = opcode == TWHEEL_OP_ARM ? 0 : t->id;
	op.deadline = rnd_wide(61);
	if (rnd(3)) {
		op.flags = TWHEEL_ABS;
		if (rnd(4))
			op.deadline += from;
		else
			op.deadline = from - op.deadline % from;
	}
	if (!rnd(3))
		op.interval = 1 + rnd_wide(59);
	if (!rnd(4))
		op.slack = rnd_wide(56);
	if (!rnd(4))
		op.jitter = rnd_wide(56);
	if (op.interval && op.jitter > op.interval)
		op.jitter = op.interval;
	return op;
}

/*
 * The timer is as @op says. That of a one-shot has its jitter in it already, and
 * what a relative one comes to is asked for; it must lie between the two times.
 */
static void learn(struct wheel *w, struct timer *t, const struct twheel_op *op,
		  __u64 before, __u64 after)
{
	__u64 least = op->deadline, most;
	struct twheel_op told;

	*t = (struct timer){
		.id = op->id,
		.interval = op->interval,
		.slack = op->slack,
		.jitter = op->interval ? op->jitter : 0,
	};
	if (!EXPECT_EQ(query(w->fd, t->id, &told), 0))
		return;
	t->nominal = told.deadline;
	most = least + op->jitter - t->jitter;
	if (!(op->flags & TWHEEL_ABS)) {
		least += before;
		most += after;
	}
	EXPECT_TRUE(t->nominal >= least && t->nominal <= most,
		    "deadline %llu, not from %llu to %llu", t->nominal, least, most);
	/* One in the past does not wait for a tick. */
	t->may = t->nominal <= after;
}

static void set_timer(struct wheel *w, struct timer *t, __u16 opcode)
{
	struct twheel_op op = draw(w, opcode, t);
	__u64 before = now(w->clock);
	long ret = op_single(w->fd, &op);

	if (EXPECT_EQ(ret, 0, "operation %u", opcode))
		learn(w, t, &op, before, now(w->clock));
}

static void cancel_timer(struct wheel *w, struct timer *t)
{
	EXPECT_EQ(cancel(w->fd, t->id), 0);
	t->id = 0;
}

static void query_timer(struct wheel *w, struct timer *t)
{
	struct twheel_op op;

	EXPECT_EQ(query(w->fd, t->id, &op), 0);
	EXPECT_EQ(op.deadline, t->nominal, "timer %zd", t - w->timers);
	EXPECT_EQ(op.interval, t->interval);
	if (op.state == TWHEEL_STATE_READY)
		EXPECT_TRUE(t->may || earliest(w, t) <= now(w->clock),
			    "ready by %llu before its tick",
			    earliest(w, t) - now(w->clock));
}

static void stir(struct wheel *w)
{
	unsigned int i;

	for (i = 0; i < N; i++) {
		struct timer *t = &w->timers[i];

		if (!t->id)
			set_timer(w, t, TWHEEL_OP_ARM);
		else if (!rnd(10))
			set_timer(w, t, TWHEEL_OP_MODIFY);
		else if (!rnd(20))
			cancel_timer(w, t);
		else if (!rnd(10))
			query_timer(w, t);
	}
}

/* ---- what is read ---- */

static void next_period(struct timer *t, __u64 overrun)
{
	t->nominal += (overrun + 1) * t->interval;
	if (t->nominal > KTIME_MAX)
		t->nominal = KTIME_MAX;
	t->may = false;
	overruns += overrun;
}

static __u64 periods(const struct timer *t, __u64 deadline, __u64 time)
{
	return time < deadline ? 0 : (time - deadline) / t->interval;
}

/* So many overruns or more are told as that; the wheel's sum has them all */
#define MANY 0xffffffffU

/* Then events are to be read one by one */
static bool may_be_many(const struct wheel *w)
{
	__u64 time = now(w->clock);
	unsigned int i;

	for (i = 0; i < N; i++) {
		const struct timer *t = &w->timers[i];

		if (t->id && t->interval && periods(t, t->nominal, time) >= MANY / 2)
			return true;
	}
	return false;
}

/* An event that was read between the two times of the clock */
static void check_event(struct wheel *w, const struct twheel_event *ev,
			__u64 before, __u64 after)
{
	struct timer *t = &w->timers[ev->user_data % N];
	__u64 overrun, least, most;

	if (!EXPECT_TRUE(ev->user_data < N && ev->id == t->id && t->id,
			 "an event of no timer: %llu", ev->user_data))
		return;
	events++;
	set_back += t->may && earliest(w, t) > after;
	EXPECT_TRUE(t->may || earliest(w, t) <= after,
		    "clock %d tick %llu timer %llu: early by %llu", (int)w->clock,
		    w->tick, ev->user_data, earliest(w, t) - after);
	EXPECT_TRUE(ev->deadline >= t->nominal &&
		    ev->deadline <= t->nominal + t->jitter,
		    "deadline %llu, of %llu", ev->deadline, t->nominal);
	EXPECT_TRUE(after >= ev->deadline || w->most >= ev->deadline, "early by %llu",
		    ev->deadline - after);
	EXPECT_EQ(ev->flags, t->interval ? TWHEEL_EVENT_PERIODIC : 0);
	w->musts -= t->must;
	t->must = false;
	if (!t->interval) {
		EXPECT_EQ(ev->overrun, 0);
		t->id = 0;
		return;
	}
	overrun = ev->overrun;
	if (ev->overrun == MANY) {
		overrun = wheel_stats(w->fd).overruns - w->overruns;
		saturated++;
	}
	least = periods(t, ev->deadline, before);
	most = periods(t, ev->deadline, after);
	EXPECT_TRUE(overrun >= least && overrun <= most,
		    "clock %d: overrun %llu, not from %llu to %llu", (int)w->clock,
		    overrun, least, most);
	next_period(t, overrun);
}

/* Where memory ends that is there, so that the kernel copies what is read in two parts */
static struct twheel_event *room_in_parts(unsigned int first)
{
	static char *page;

	if (!page)
		page = map_pages(2, PROT_READ | PROT_WRITE) + PAGE;
	if (madvise(page, PAGE, MADV_DONTNEED))
		tap_bail("madvise: %s", strerror(errno));
	return (struct twheel_event *)page - first;
}

static void take(struct wheel *w)
{
	size_t most = may_be_many(w) ? 1 : 1 + rnd(64);
	struct twheel_event *ev = room_in_parts(rnd(64));
	__u64 before = now(w->clock), after;
	long n, i;

	w->overruns = wheel_stats(w->fd).overruns;
	n = read_events(w->fd, ev, most);
	after = now(w->clock);
	EXPECT_TRUE(n > 0 || n == -EAGAIN, "read gave %ld", n);
	for (i = 0; i < n; i++)
		check_event(w, &ev[i], before, after);
}

/* What the wheel says about timers that it should have expired by then */
static void tell(const struct wheel *w, __u64 then)
{
	struct twheel_info info = wheel_info(w->fd);
	struct twheel_op op;
	unsigned int i;

	tap_diag("clock %d tick %llu, step %u, at %llu: now %llu, next expiry %llu",
		 (int)w->clock, w->tick, steps_done, then, now(w->clock),
		 info.next_expiry);
	for (i = 0; i < N; i++) {
		const struct timer *t = &w->timers[i];

		if (t->id && t->must && !query(w->fd, t->id, &op))
			tap_diag("timer %u: %u, %llu, every %llu, %llu, %llu",
				 i, op.state, t->nominal, t->interval, t->slack,
				 t->jitter);
	}
}

/* What must have expired by now is all read, and the wheel has the rest */
static void settle(struct wheel *w)
{
	__u64 end = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;
	__u64 from = now(w->clock);
	struct twheel_info info;
	unsigned int i, live = 0;

	w->musts = 0;
	for (i = 0; i < N; i++) {
		struct timer *t = &w->timers[i];

		t->must = t->id && latest(w, t) <= from;
		w->musts += t->must;
	}
	while (w->musts && now(CLOCK_MONOTONIC) < end &&
	       readable(w->fd, PATIENCE_MS))
		take(w);
	if (!EXPECT_EQ(w->musts, 0, "due, and no event comes"))
		tell(w, from);
	take(w);
	for (i = 0; i < N; i++)
		live += !!w->timers[i].id;
	info = wheel_info(w->fd);
	EXPECT_EQ(info.pending + info.ready, live);
}

/* ---- the clock ---- */

static void wall_set(__u64 ns)
{
	struct timespec ts = { ns / SEC, ns % SEC };

	if (clock_settime(CLOCK_REALTIME, &ts))
		tap_bail("clock_settime(%llu): %s", ns, strerror(errno));
}

static void wall_shift(__s64 ns)
{
	__u64 from = now(CLOCK_REALTIME);

	if (from + ns < FIRST_TIME || from + ns > LAST_TIME)
		ns = -ns;
	wall_set(from + ns);
}

static void tai_set(int offset)
{
	struct timex tx = { .modes = ADJ_TAI, .constant = offset };

	if (adjtimex(&tx) < 0)
		tap_bail("adjtimex: %s", strerror(errno));
}

/* To where a timer on the wall clock is due, or a bit before that */
static void wall_meet(__u64 before)
{
	const struct wheel *w = &wheels[rnd(3)];
	const struct timer *t = &w->timers[rnd(N)];
	__u64 to = earliest(w, t) - before;

	if (t->id && to > FIRST_TIME && to < LAST_TIME)
		wall_set(to);
}

static void change_clock(void)
{
	__s64 sign = rnd(2) ? 1 : -1;

	switch (rnd(8)) {
	case 0:
		return wall_shift(sign * (__s64)SEC);
	case 1:
		return wall_shift(sign * (__s64)HOUR);
	case 2:
		return wall_shift(sign * (__s64)YEARS);
	case 3:
		return wall_shift(sign * (__s64)rnd_wide(40));
	case 4:
		return wall_meet(0);
	case 5:
		return wall_meet(2 * MSEC);
	case 6:
		return wall_meet(HOUR);
	default:
		return tai_set(tai_offset + rnd(5000));
	}
}

/*
 * Until the clock was set, it showed at most how far it is ahead of MONOTONIC at
 * the most, and what MONOTONIC showed afterwards: up to there a timer may have
 * expired.
 */
static void step_clock(void)
{
	struct wheel *w;
	__u64 after;

	for (w = wheels; w < wheels + ARRAY_SIZE(wheels); w++) {
		w->ahead = -now(CLOCK_MONOTONIC);
		w->ahead += now(w->clock);
	}
	change_clock();
	after = now(CLOCK_MONOTONIC);
	for (w = wheels; w < wheels + ARRAY_SIZE(wheels); w++) {
		struct timer *t;

		if (w->most < after + w->ahead)
			w->most = after + w->ahead;
		for (t = w->timers; t < w->timers + N; t++)
			t->may = t->may || earliest(w, t) <= after + w->ahead;
	}
	steps_done++;
}

/* A machine without a clock begins in 1970 */
static void wall_save(void)
{
	struct timex tx = { 0 };

	if (now(CLOCK_REALTIME) < FIRST_TIME)
		wall_set(FIRST_TIME + YEARS);
	wall_offset = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
	if (adjtimex(&tx) < 0)
		tap_bail("adjtimex: %s", strerror(errno));
	tai_offset = tx.tai;
}

static void wall_restore(void)
{
	wall_set(now(CLOCK_MONOTONIC) + wall_offset);
	tai_set(tai_offset);
}

/* They never run without something to do there, or that was there before */
static void check_wakeups(__u64 cascaded)
{
	__u64 wakeups = 0, reasons = module_counter("cascaded") - cascaded;
	const struct wheel *w;

	for (w = wheels; w < wheels + ARRAY_SIZE(wheels); w++) {
		struct twheel_stats s = wheel_stats(w->fd);

		wakeups += s.wakeups;
		reasons += s.armed + s.modified + s.expired + steps_done;
	}
	EXPECT_TRUE(wakeups <= reasons, "%llu wake-ups, and %llu reasons for them",
		    wakeups, reasons);
}

static void test_steps(void)
{
	__u64 steps = STEPS * number_of("TIMES", 1), first = seed;
	struct wheel *w, *end = wheels + ARRAY_SIZE(wheels);
	__u64 cascaded = module_counter("cascaded");

	wall_save();
	for (w = wheels; w < end; w++) {
		w->fd = wheel_new(wheel_clock(w->clock), w->tick);
		w->tick = wheel_info(w->fd).tick;
	}
	while (steps_done < steps && !tap_bad) {
		for (w = wheels; w < end; w++)
			stir(w);
		step_clock();
		for (w = wheels; w < end; w++)
			settle(w);
	}
	check_wakeups(cascaded);
	for (w = wheels; w < end; w++)
		close(w->fd);
	wall_restore();
	tap_diag("seed %llu: %u steps, %lu events, %lu of them set back", first,
		 steps_done, events, set_back);
	tap_diag("%lu overruns, %lu times too many to tell", overruns, saturated);
	EXPECT_TRUE(events > steps && overruns, "next to nothing expired");
}

int main(void)
{
	seed = number_of("SEED", 1);
	tap_start(110 * number_of("TIMES", 1));
	RUN(test_steps, "the wall clock is stepped at random");
	return tap_end();
}
