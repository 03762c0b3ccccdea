// SPDX-License-Identifier: GPL-2.0
/*
 * Periodic timers, jitter and slack.
 *
 * also in: both kunit matrix sanitize small
 */
#include "device.h"

static int fd;

static void fresh(__u64 tick)
{
	wheel_replace_new(&fd, TWHEEL_CLOCK_MONOTONIC, tick);
}

/* While its event is not read it neither queues again nor costs anything */
static void test_queues_once(void)
{
	struct twheel_info info;
	struct twheel_event ev;
	__u64 wakeups;

	fresh(USEC);
	arm_periodic(fd, now(CLOCK_MONOTONIC), USEC, 0);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 1));
	wakeups = wheel_stats(fd).wakeups;
	sleep_ns(100 * MSEC);
	EXPECT_EQ(wheel_stats(fd).wakeups, wakeups, "it went on by itself");
	EXPECT_EQ(wheel_info(fd).ready, 1);
	EXPECT_EQ(wheel_info(fd).pending, 0);
	EXPECT_EQ(wheel_stats(fd).expired, 1);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_TRUE(ev.overrun >= 100000 - 1000, "overrun %u", ev.overrun);
	/* in one look, as it may be ready meanwhile */
	info = wheel_info(fd);
	EXPECT_EQ(info.pending + info.ready, 1);
	EXPECT_EQ(wheel_stats(fd).overruns, ev.overrun);
}

/* More periods than an event can count */
static void test_most_overruns(void)
{
	struct twheel_event ev;
	__u64 before;

	wheel_replace_new(&fd, TWHEEL_CLOCK_REALTIME, 0);
	before = now(CLOCK_REALTIME);
	arm_periodic(fd, 1, 1, 0);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(ev.overrun, ~0U);
	EXPECT_TRUE(wheel_stats(fd).overruns >= before - 1, "%llu counted in %llu ns",
		    wheel_stats(fd).overruns, before);
}

/* ---- jitter ---- */

/* By so much an expiry was put off: in range, and not always the same */
struct spread {
	__u64 least, most;
	int n;
};

static void spread_add(struct spread *s, __u64 by, __u64 range)
{
	EXPECT_TRUE(by <= range, "put off by %llu of %llu", by, range);
	if (!s->n++ || by < s->least)
		s->least = by;
	if (by > s->most)
		s->most = by;
}

/* That a half of the range is never hit in 64 tries is less likely than 2^-63 */
static void spread_check(const struct spread *s, __u64 range)
{
	EXPECT_TRUE(s->n >= 64, "%d", s->n);
	EXPECT_TRUE(s->least < range / 2 && s->most > range / 2,
		    "%d expiries put off by %llu to %llu of %llu", s->n, s->least,
		    s->most, range);
}

static void test_jitter(void)
{
	static struct twheel_event ev[200];
	struct spread s = { 0 };
	__u64 deadline;
	int i;

	fresh(USEC);
	deadline = now(CLOCK_MONOTONIC) + 10 * MSEC;
	for (i = 0; i < 200; i++) {
		struct twheel_op op = op_arm(TWHEEL_ABS, deadline, i);

		op.jitter = 100 * MSEC;
		arm_op(fd, op);
	}
	EXPECT_EQ(collect(fd, ev, 200), 200);
	for (i = 0; i < 200; i++) {
		spread_add(&s, ev[i].deadline - deadline, 100 * MSEC);
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= ev[i].deadline, "early");
	}
	spread_check(&s, 100 * MSEC);
}

/*
 * Jitter as long as the period: often the next period has begun when a timer is ready. That
 * is no overrun, and the next expiry is another one.
 */
static void test_jitter_of_a_period(void)
{
	const __u64 interval = 4 * MSEC;
	__u64 begin, nominal, overruns = 0;
	struct spread s = { 0 };
	struct twheel_event ev;
	struct twheel_op op;
	int i;

	fresh(100 * USEC);
	begin = now(CLOCK_MONOTONIC);
	nominal = begin;
	op = op_arm(TWHEEL_ABS, begin, 0);
	op.interval = interval;
	op.jitter = interval;
	op.id = arm_op(fd, op);
	for (i = 0; i < 200; i++) {
		__u64 before, after;

		if (!EXPECT_TRUE(readable(fd, PATIENCE_MS), "expiry %d", i))
			return;
		before = now(CLOCK_MONOTONIC);
		if (!EXPECT_EQ(read_events(fd, &ev, 1), 1))
			return;
		after = now(CLOCK_MONOTONIC);
		EXPECT_TRUE(after >= ev.deadline, "early");
		EXPECT_TRUE(ev.overrun <= (after - ev.deadline) / interval &&
			    (before < ev.deadline ||
			     ev.overrun >= (before - ev.deadline) / interval),
			    "expiry %d: overrun %u", i, ev.overrun);
		spread_add(&s, ev.deadline - nominal, interval);
		overruns += ev.overrun;
		nominal += (ev.overrun + 1) * interval;
	}
	EXPECT_EQ(query(fd, op.id, &op), 0);
	EXPECT_EQ(op.deadline, nominal);
	EXPECT_EQ(op.interval, interval);
	EXPECT_EQ(op.jitter, interval);
	spread_check(&s, interval);
	EXPECT_EQ(wheel_stats(fd).overruns, overruns);
}

/* ---- slack ---- */

#define MOST_NEIGHBOURS 60
#define SLACK (400 * MSEC)
#define SHARED_TICK (256 * MSEC)	/* up to which that slack lets them wait */

/* Where slots of more than two are large, each is cascaded by wake-ups of its own. */
static int neighbours(void)
{
	return small_world() ? 2 : MOST_NEIGHBOURS;
}

/* Wake-ups for timers 10 ms apart, with so much slack each */
static __u64 wakeups(__u64 slack)
{
	static struct twheel_event ev[MOST_NEIGHBOURS];
	struct twheel_op op;
	int i, nr = neighbours();
	__u64 from;

	fresh(MSEC);
	from = (now(CLOCK_MONOTONIC) / SHARED_TICK + 1) * SHARED_TICK + 50 * MSEC;
	for (i = 0; i < nr; i++) {
		op = op_arm(TWHEEL_ABS, from + i * 10 * MSEC, i);
		op.slack = slack;
		op.id = arm_op(fd, op);
		EXPECT_EQ(query(fd, op.id, &op), 0);
		EXPECT_TRUE(op.slack <= slack, "%llu used of %llu", op.slack, slack);
		EXPECT_EQ(op.deadline, from + i * 10 * MSEC);
	}
	EXPECT_EQ(collect(fd, ev, nr), nr);
	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= ev[i].deadline, "early");
		EXPECT_EQ(ev[i].deadline,
			  from + ev[i].user_data * 10 * MSEC);
	}
	return wheel_stats(fd).wakeups;
}

static void test_slack(void)
{
	__u64 without, with, saved = small_world() ? 2 : 4;
	int tries = 0;

	/* a machine that stands still a while saves wake-ups by itself */
	do {
		without = wakeups(0);
		with = wakeups(SLACK);
	} while (with * saved > without && ++tries < 5);
	tap_diag("%d timers: %llu wake-ups without slack, %llu with", neighbours(),
		 without, with);
	EXPECT_TRUE(with * saved <= without, "%llu wake-ups with slack, %llu without",
		    with, without);
}

int main(void)
{
	tap_start(60);
	RUN(test_queues_once, "an unread timer does not queue twice");
	RUN(test_most_overruns, "overruns are told up to 2^32 - 1, and counted beyond");
	RUN(test_jitter, "jitter");
	RUN(test_jitter_of_a_period, "jitter as long as the period");
	RUN(test_slack, "slack saves wake-ups");
	return tap_end();
}
