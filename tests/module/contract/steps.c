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
 * Environment: TIMES=N for N times as many steps, SEED=N for others. Where waiting takes no
 * time, DAYS=N: so many days go by, with a step now and then (tests/module/soak).
 *
 * also in: both-clocks matrix
 */
#define MODEL_TIMERS 6000
#include "wheel_calls.h"

#include <sys/epoll.h>
#include <sys/timex.h>

#define N 200
#define STEPS 120
#define YEARS (3652 * 24 * HOUR)	/* ten of them */

/* Where work takes no time, what is due is done so soon, whatever credit its user has left. */
#define PROMPT (20 * MSEC)

/* Between these the wall clock is moved, so that it can be set there */
#define FIRST_TIME (700000000 * SEC)
#define LAST_TIME (5000000000 * SEC)

/* Wheels on the wall clock come first. */
#define WALLS 3
#define SETTABLE 4

struct wheel {
	clockid_t clock;
	__u64 tick;
	int fd;
	__u64 ahead;	/* of MONOTONIC, at most */
	struct model *model;
};

static struct wheel wheels[] = {
	{ .clock = CLOCK_REALTIME, .tick = 0 },
	{ .clock = CLOCK_REALTIME, .tick = USEC },
	{ .clock = CLOCK_REALTIME, .tick = SEC },
	{ .clock = CLOCK_TAI, .tick = 100 * USEC },
	{ .clock = CLOCK_MONOTONIC, .tick = 0 },
	{ .clock = CLOCK_BOOTTIME, .tick = 10 * USEC },
};

static struct model models[ARRAY_SIZE(wheels)];
static __u64 seed = 1;
static __s64 wall_offset;	/* of the wall clock, before it was touched */
static int tai_offset;
static unsigned int steps_done;
static unsigned long events, overruns;
static __u64 wakeups, reasons;
static __u64 days;
static int waiting = -1;	/* an epoll of all wheels */

static __u64 rnd(__u64 most)
{
	return random_next(&seed) % most;
}

/* Every magnitude alike */
static __u64 rnd_wide(unsigned int bits)
{
	return rnd(2ULL << rnd(bits));
}

/* ---- what is done to timers ---- */

static struct twheel_op draw(const struct wheel *w, __u16 opcode, __u64 id)
{
	struct twheel_op op = op_for(opcode, id);
	__u64 from = now(w->clock);

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

static void stir(struct wheel *w)
{
	struct model *m = w->model;
	__u32 i, n = m->nr;

	for (i = 0; i < n; i++) {
		struct timer *t = &m->timers[i];

		if (!t->ended && !rnd(10))
			model_single(m, w->fd, t, draw(w, TWHEEL_OP_MODIFY, t->id));
		else if (!t->ended && !rnd(20))
			model_cancel(m, w->fd, t);
		else if (!t->ended && !rnd(10))
			model_single(m, w->fd, t, op_for(TWHEEL_OP_QUERY, t->id));
	}
	while (m->live < N && !halted())
		model_single(m, w->fd, NULL, draw(w, TWHEEL_OP_ARM, 0));
}

static void take(struct wheel *w)
{
	struct making mk = {
		.model = w->model,
		.fd = w->fd,
		.seed = random_next(&seed) | 1,
		.shape = rnd(2) | 0x2c,		/* memory that is not there as yet */
		.nr = 1 + rnd(64),
	};

	make_read(&mk);
}

static void begin(struct wheel *w)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = w };

	w->fd = wheel_new(wheel_clock(w->clock), w->tick);
	w->model = &models[w - wheels];
	model_begin(w->model, w->fd, w - wheels, true);
	if (epoll_ctl(waiting, EPOLL_CTL_ADD, w->fd, &event))
		tap_bail("epoll_ctl: %s", strerror(errno));
}

/* What wakes a wheel up: something to do there, or that was there before */
static void end(struct wheel *w)
{
	struct twheel_stats s = wheel_stats(w->fd);

	wakeups += s.wakeups;
	reasons += s.armed + s.modified + s.expired + steps_done;
	events += s.delivered;
	overruns += s.overruns;
	close(w->fd);
}

/* What must have expired by now is all read, and the wheel has the rest. */
static void settle_wheel(struct wheel *w)
{
	__u64 end_time = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;
	struct model *m = w->model;

	snprintf(model_doing, sizeof(model_doing), "clock %d, tick %llu, step %u", (int)w->clock,
		 m->tick, steps_done);
	model_mark_due(m);
	while (m->nr_awaited && !halted() && now(CLOCK_MONOTONIC) < end_time &&
	       readable(w->fd, PATIENCE_MS))
		take(w);
	if (m->nr_awaited)
		broken("%u timers are due at %llu, and no event comes; next expiry %llu",
		       m->nr_awaited, now(w->clock), wheel_info(w->fd).next_expiry);
	take(w);
	model_check(m, w->fd);
	if (days && w >= wheels + SETTABLE)
		EXPECT_TRUE(wheel_stats(w->fd).max_lateness < PROMPT, "%s: %llu ns late",
			    model_doing, wheel_stats(w->fd).max_lateness);
	if (m->nr < MODEL_TIMERS - 2 * N)
		return;
	end(w);
	begin(w);
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
	struct wheel *w = &wheels[rnd(WALLS)];
	const struct timer *t = &w->model->timers[rnd(w->model->nr)];
	__u64 to = tick_of(w->model, t->earliest) - before;

	if (!t->ended && to > FIRST_TIME && to < LAST_TIME)
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
	for (w = wheels; w < wheels + ARRAY_SIZE(wheels); w++)
		model_clock_set(w->model, after + w->ahead);
	steps_done++;
}

/* A while goes by, of any length. Who waits for the wheels has what is due done, and reads some. */
static void pass_time(void)
{
	__u64 time, end = now(CLOCK_MONOTONIC) + rnd_wide(51);
	struct epoll_event event;
	unsigned int reads = 20, i;

	while ((time = now(CLOCK_MONOTONIC)) < end) {
		struct wheel *w;

		if (epoll_wait(waiting, &event, 1, (end - time) / MSEC % INT_MAX + 1) != 1)
			continue;
		w = event.data.ptr;
		for (i = 0; i < 16; i++)
			wheel_info(w->fd);
		if (reads && rnd(2)) {
			reads--;
			take(w);
		}
	}
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

static void test_steps(void)
{
	__u64 steps = STEPS * number_of("TIMES", 1) / (brief() ? 2 : 1), first = seed;
	struct wheel *w, *last = wheels + ARRAY_SIZE(wheels);
	__u64 cascaded = module_counter("cascaded"), last_time;

	if (small_world()) {
		tap_skip("levels reach 16 s there, and ten years are as many turns as take hours");
		return;
	}
	waiting = epoll_create1(EPOLL_CLOEXEC);
	wall_save();
	for (w = wheels; w < last; w++)
		begin(w);
	last_time = now(CLOCK_MONOTONIC) + days * 24 * HOUR;
	while ((days ? now(CLOCK_MONOTONIC) < last_time : steps_done < steps) && !halted()) {
		for (w = wheels; w < last; w++)
			stir(w);
		if (days)
			pass_time();
		if (!days || !rnd(4))
			step_clock();
		for (w = wheels; w < last; w++)
			settle_wheel(w);
	}
	for (w = wheels; w < last; w++)
		end(w);
	wall_restore();
	reasons += module_counter("cascaded") - cascaded;
	EXPECT_TRUE(wakeups <= reasons, "%llu wake-ups, and %llu reasons for them", wakeups,
		    reasons);
	tap_diag("seed %llu: %u steps, %lu events, %lu overruns", first, steps_done, events,
		 overruns);
	EXPECT_TRUE(events > steps && overruns, "next to nothing expired");
}

int main(void)
{
	seed = number_of("SEED", 1);
	days = number_of("DAYS", 0);
	tap_start(days ? 0 : 300 * number_of("TIMES", 1));
	memory_init();
	RUN(test_steps, "the wall clock is stepped at random");
	return tap_end();
}
