// SPDX-License-Identifier: GPL-2.0
/*
 * The wall clock is set forwards and backwards while timers wait: those on
 * REALTIME and TAI follow it, those on MONOTONIC and BOOTTIME don't, and none
 * is early.
 *
 * also in: both-clocks
 */
#include "shared.h"

#include <sys/timex.h>

#define N 100

static __s64 wall_offset;	/* of the wall clock, before it was touched */

static void wall_set(__u64 ns)
{
	struct timespec ts = { ns / SEC, ns % SEC };

	if (clock_settime(CLOCK_REALTIME, &ts))
		tap_bail("clock_settime(%llu): %s", ns, strerror(errno));
}

static void wall_shift(__s64 ns)
{
	wall_set(now(CLOCK_REALTIME) + ns);
}

#define YEAR_2001 (1000000000 * SEC)
#define YEAR_2027 (1800000000 * SEC)

/* A machine without a clock begins in 1970, from where there is no way back */
static void wall_save(void)
{
	if (now(CLOCK_REALTIME) < YEAR_2001)
		wall_set(YEAR_2027);
	wall_offset = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
}

static void wall_restore(void)
{
	wall_set(now(CLOCK_MONOTONIC) + wall_offset);
}

/* An event that was read, and by its clock it was no later than @time */
static void check_event(const struct twheel_event *ev, __u64 deadline, __u64 time)
{
	EXPECT_EQ(ev->deadline, deadline, "timer %llu", ev->user_data);
	EXPECT_TRUE(time >= ev->deadline, "timer %llu early by %llu", ev->user_data,
		    ev->deadline - time);
}

/* Each of the timers 0 to n - 1 once */
static void collect_all(int fd, size_t n, const __u64 *deadlines)
{
	struct twheel_event ev[N];
	unsigned char seen[N] = { 0 };
	size_t got = collect(fd, ev, n), i;
	__u64 time = wheel_now(wheel_info(fd).clock);

	for (i = 0; i < got; i++) {
		if (!EXPECT_TRUE(ev[i].user_data < n, "%llu", ev[i].user_data))
			continue;
		seen[ev[i].user_data]++;
		check_event(&ev[i], deadlines[ev[i].user_data], time);
	}
	EXPECT_EACH_ONCE(seen, n);
}

static void forwards(__u32 clock, __u64 tick)
{
	int fd = wheel_new(clock, tick);
	__u64 deadlines[N], id;
	struct twheel_op op;
	int i;

	for (i = 0; i < N; i++) {
		deadlines[i] = wheel_now(clock) + 1000 * SEC + i * 7 * SEC;
		arm(fd, TWHEEL_ABS, deadlines[i], i);
	}
	id = arm(fd, TWHEEL_ABS, wheel_now(clock) + 5000 * SEC, N);
	EXPECT_EQ(readable(fd, 20), 0);
	wall_shift(2000 * SEC);
	collect_all(fd, N, deadlines);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_PENDING, "this one is not due yet");
	EXPECT_EQ(wheel_info(fd).pending, 1);
	EXPECT_EQ(wheel_info(fd).ready, 0);
	close(fd);
	wall_restore();
}

static void test_forwards(void)
{
	forwards(TWHEEL_CLOCK_REALTIME, 0);
	forwards(TWHEEL_CLOCK_REALTIME, USEC);
	forwards(TWHEEL_CLOCK_REALTIME, SEC);
	forwards(TWHEEL_CLOCK_TAI, 0);
}

static int forward_fd;

static void forward_child(void)
{
	EXPECT_TRUE(WAIT_FOR(blocked_in(getppid(), SYS_read)));
	wall_shift(2 * HOUR);
}

/* Somebody sleeps in read: the set clock wakes, no timer and no call does */
static void test_forwards_wakes(void)
{
	__u64 deadline = now(CLOCK_REALTIME) + HOUR;
	struct twheel_event ev;
	pid_t pid;

	forward_fd = wheel_new(TWHEEL_CLOCK_REALTIME, 0);
	set_blocking(forward_fd, true);
	arm(forward_fd, TWHEEL_ABS, deadline, 0);
	pid = tap_fork(forward_child);
	EXPECT_EQ(read_events(forward_fd, &ev, 1), 1);
	check_event(&ev, deadline, now(CLOCK_REALTIME));
	tap_join(pid);
	close(forward_fd);
	wall_restore();
}

/*
 * A wheel whose timers are due so much later, by a clock that is then set back
 * by a thousand seconds. That is done again when it was not done in time.
 */
static int wheel_set_back(__u32 clock, __u64 tick, __u64 *deadlines,
			  __u64 *lead)
{
	struct twheel_event ev;
	__u64 first;
	int fd, i;

	for (;;) {
		fd = wheel_new(clock, tick);
		/* it shall have run, so that it is ahead of what comes */
		first = wheel_now(clock) + 10 * MSEC;
		arm(fd, TWHEEL_ABS, first, 0);
		EXPECT_EQ(collect(fd, &ev, 1), 1);
		check_event(&ev, first, wheel_now(clock));
		for (i = 0; i < N; i++) {
			deadlines[i] = wheel_now(clock) + *lead + i * 3 * MSEC;
			arm(fd, TWHEEL_ABS, deadlines[i], i);
		}
		wall_shift(-1000 * (__s64)SEC);
		if (!wheel_info(fd).ready)
			return fd;
		close(fd);
		wall_restore();
		*lead *= 2;
	}
}

static void backwards(__u32 clock, __u64 tick)
{
	__u64 deadlines[N], lead = SEC, soon, middle, id;
	int fd = wheel_set_back(clock, tick, deadlines, &lead);
	struct twheel_event ev;
	struct twheel_op op;

	middle = wheel_now(clock) + 500 * SEC;
	id = arm(fd, TWHEEL_ABS, middle, 1000);
	/* new ones go by the new time, also one that is further ahead than the old ones were */
	soon = wheel_now(clock) + lead + 200 * MSEC;
	arm(fd, TWHEEL_ABS, soon, 2000);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 2000);
	check_event(&ev, soon, wheel_now(clock));
	soon = wheel_now(clock) + 200 * MSEC;
	arm(fd, 0, 200 * MSEC, 3000);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 3000);
	EXPECT_TRUE(ev.deadline >= soon, "deadline %llu of %llu", ev.deadline, soon);
	check_event(&ev, ev.deadline, wheel_now(clock));
	/* by the old time the old ones are due by then */
	sleep_ns(lead);
	EXPECT_EQ(readable(fd, 0), 0, "the others wait for the wall clock");
	EXPECT_EQ(wheel_info(fd).pending, N + 1);
	EXPECT_EQ(wheel_info(fd).ready, 0);
	EXPECT_TRUE(wheel_info(fd).next_expiry <= middle + wheel_info(fd).tick,
		    "%llu, a timer at %llu", wheel_info(fd).next_expiry, middle);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.deadline, middle);
	EXPECT_EQ(cancel(fd, id), 0);
	wall_restore();
	collect_all(fd, N, deadlines);
	close(fd);
}

static void test_backwards(void)
{
	backwards(TWHEEL_CLOCK_REALTIME, 0);
	backwards(TWHEEL_CLOCK_REALTIME, 100 * USEC);
	backwards(TWHEEL_CLOCK_TAI, MSEC);
}

/* Ready is ready, also when its time lies ahead again */
static void test_ready_stays(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_REALTIME, 0);
	__u64 deadline = now(CLOCK_REALTIME) + 10 * MSEC;
	struct twheel_event ev;
	__u64 id, time;

	arm(fd, TWHEEL_ABS, deadline, 0);
	id = arm(fd, TWHEEL_ABS, deadline, 1);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 2));
	time = now(CLOCK_REALTIME);
	wall_shift(-1000 * (__s64)SEC);
	EXPECT_EQ(wheel_info(fd).ready, 2);
	EXPECT_EQ(cancel(fd, id), 0);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	check_event(&ev, deadline, time);
	close(fd);
	wall_restore();
}

/* The latest time that the clock may have shown, when it was @time at @at */
static void latest_until(__u64 *latest, __u64 at, __u64 time)
{
	time += now(CLOCK_MONOTONIC) - at;
	if (time > *latest)
		*latest = time;
}

static void wall_jump(__u64 *latest, __s64 ns)
{
	__u64 at = now(CLOCK_MONOTONIC), time = now(CLOCK_REALTIME);

	wall_set(time + ns);
	latest_until(latest, at, time);
}

/* The clock goes to and fro all the time, and none is early, lost or doubled */
static void test_to_and_fro(void)
{
	enum { M = 4000 };
	static struct twheel_op ops[M];
	static struct twheel_event ev[M];
	static unsigned char seen[M];
	int fd = wheel_new(TWHEEL_CLOCK_REALTIME, 100 * USEC);
	__u64 seed = 99, from = now(CLOCK_REALTIME), latest = 0;
	size_t i, n = 0, k;
	int step;

	for (i = 0; i < M; i++)
		ops[i] = op_arm(TWHEEL_ABS, from + random_next(&seed) %
				(3 * SEC), i);
	submit_all(fd, ops, M);
	for (step = 0; step < 60; step++) {
		long got = read_events(fd, ev + n, M - n);

		/* an event of now, or of a time at which the clock was before */
		latest_until(&latest, now(CLOCK_MONOTONIC), now(CLOCK_REALTIME));
		for (k = n, n += got > 0 ? got : 0; k < n; k++)
			check_event(&ev[k], ops[ev[k].user_data % M].deadline,
				    latest);
		wall_jump(&latest, (__s64)(random_next(&seed) % (600 * MSEC)) -
				   300 * (__s64)MSEC);
		sleep_ns(10 * MSEC);
	}
	wall_set(from + 10 * SEC);
	k = n;
	n += collect(fd, ev + n, M - n);
	for (; k < n; k++)
		check_event(&ev[k], ops[ev[k].user_data % M].deadline,
			    now(CLOCK_REALTIME));
	for (i = 0; i < n; i++)
		seen[ev[i].user_data % M]++;
	EXPECT_EACH_ONCE(seen, M);
	close(fd);
	wall_restore();
}

/* These clocks don't follow the wall clock, neither way */
static void unaffected(__u32 clock)
{
	int fd = wheel_new(clock, 0);
	__u64 deadlines[20], id;
	struct twheel_op op;
	int i;

	id = arm(fd, 0, HOUR, 1000);
	for (i = 0; i < 20; i++) {
		deadlines[i] = wheel_now(clock) + 200 * MSEC + i * MSEC;
		arm(fd, TWHEEL_ABS, deadlines[i], i);
	}
	wall_shift(2 * HOUR);
	EXPECT_TRUE(wheel_info(fd).ready == 0 || wheel_now(clock) >= deadlines[0],
		    "the set clock made timers ready");
	wall_shift(-4 * (__s64)HOUR);
	collect_all(fd, 20, deadlines);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_PENDING);
	close(fd);
	wall_restore();
}

static void test_unaffected(void)
{
	unaffected(TWHEEL_CLOCK_MONOTONIC);
	unaffected(TWHEEL_CLOCK_BOOTTIME);
}

/* Periods that went by while the clock was set are overruns */
static void test_periodic(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_REALTIME, 0);
	__u64 first = now(CLOCK_REALTIME), id;
	struct twheel_event ev;
	struct twheel_op op;

	id = arm_periodic(fd, first, 100 * SEC, 0);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.deadline, first);
	EXPECT_EQ(ev.overrun, 0);
	wall_shift(1050 * SEC);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.deadline, first + 100 * SEC);
	EXPECT_EQ(ev.overrun, 9);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.deadline, first + 1100 * SEC);
	wall_shift(-5000 * (__s64)SEC);
	EXPECT_EQ(readable(fd, 200), 0);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.deadline, first + 1100 * SEC);
	wall_restore();
	EXPECT_EQ(readable(fd, 20), 0);
	wall_shift(1100 * SEC);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.deadline, first + 1100 * SEC);
	EXPECT_EQ(ev.overrun, 0);
	close(fd);
	wall_restore();
}

/* A periodic timer that is ready when the clock is set back */
static void test_periodic_back(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_REALTIME, 0);
	__u64 first = now(CLOCK_REALTIME) + 10 * MSEC, id;
	struct twheel_event ev;
	struct twheel_op op;

	id = arm_periodic(fd, first, SEC, 0);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready));
	wall_shift(-1000 * (__s64)SEC);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.deadline, first);
	EXPECT_EQ(ev.overrun, 0);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.deadline, first + SEC);
	EXPECT_EQ(readable(fd, 100), 0);
	close(fd);
	wall_restore();
}

/*
 * Some ticks are ready, a periodic timer among them, when the clock is set back. Then they
 * are read, to where memory is not there yet: as many as fit are read, and the rest comes next.
 */
static void test_read_in_parts(void)
{
	enum { M = 32, FIT = 3 };
	char *edge = map_pages(2, PROT_READ | PROT_WRITE), *to;
	struct twheel_event *ev;
	int fd = wheel_new(TWHEEL_CLOCK_REALTIME, MSEC);
	__u64 first = now(CLOCK_REALTIME) + 50 * MSEC;
	unsigned char seen[M] = {};
	long got, n = 0, i;

	/* ids in a row have ticks that are not, so ticks and lists are in different orders */
	arm_periodic(fd, first, HOUR, 0);
	for (i = 1; i < M; i++)
		arm(fd, TWHEEL_ABS, first + i % 8 * 2 * MSEC, i);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == M));
	wall_shift(-1000 * (__s64)SEC);
	to = edge + PAGE - FIT * sizeof(*ev);
	memset(to, 0, FIT * sizeof(*ev));
	ev = (struct twheel_event *)to;
	do {
		got = read_events(fd, ev, M);
		for (i = 0; i < got; i++)
			if (EXPECT_TRUE(ev[i].user_data < M, "%llu", ev[i].user_data))
				seen[ev[i].user_data]++;
		n += got > 0 ? got : 0;
	} while (got > 0);
	EXPECT_EQ(got, -EAGAIN);
	EXPECT_EQ(n, M);
	EXPECT_EACH_ONCE(seen, M);
	munmap(edge, 2 * PAGE);
	close(fd);
	wall_restore();
}

static void tai_set(int offset)
{
	struct timex tx = { .modes = ADJ_TAI, .constant = offset };

	if (adjtimex(&tx) < 0)
		tap_bail("adjtimex: %s", strerror(errno));
}

/* TAI jumps alone when its distance from the wall clock is set */
static void test_tai_offset(void)
{
	struct timex tx = { 0 };
	__u64 deadline, lead = 200 * MSEC;
	struct twheel_event ev;
	int fd, other;

	if (adjtimex(&tx) < 0)
		tap_bail("adjtimex: %s", strerror(errno));
	fd = wheel_new(TWHEEL_CLOCK_TAI, 0);
	other = wheel_new(TWHEEL_CLOCK_REALTIME, 0);
	deadline = now(CLOCK_TAI) + 300 * SEC;
	arm(fd, TWHEEL_ABS, deadline, 0);
	arm(other, TWHEEL_ABS, now(CLOCK_REALTIME) + 300 * SEC, 0);
	tai_set(tx.tai + 370);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	check_event(&ev, deadline, now(CLOCK_TAI));
	EXPECT_EQ(readable(other, 20), 0);
	/* one that waits when TAI goes back again */
	for (;;) {
		arm(fd, 0, lead, 0);
		tai_set(tx.tai);
		if (!wheel_info(fd).ready)
			break;
		tai_set(tx.tai + 370);
		EXPECT_EQ(collect(fd, &ev, 1), 1);
		lead *= 2;
	}
	EXPECT_EQ(readable(fd, lead / MSEC + 100), 0, "TAI went back");
	close(fd);
	close(other);
}

static void take_in_time(struct client *c, __u32 from, const __u64 *deadlines)
{
	__u32 got, i;

	for (got = from; got < N && readable(c->fd, PATIENCE_MS); got++)
		if (EXPECT_TRUE(shared_take(c, &i)))
			EXPECT_TRUE(now(CLOCK_REALTIME) >= deadlines[i], "timer %u", i);
	EXPECT_EQ(got, N);
}

/* Shared timers: the words stay as they are, and mean another moment */
static void test_shared(void)
{
	static struct client c;
	__u64 deadlines[N];
	__u32 i;

	client_open(&c, TWHEEL_CLOCK_REALTIME, MSEC, N);
	for (i = 0; i < N; i++) {
		deadlines[i] = now(CLOCK_REALTIME) + HOUR + i * SEC;
		shared_arm(&c, i, deadlines[i]);
	}
	EXPECT_EQ(readable(c.fd, 50), 0);
	wall_shift(2 * HOUR);
	take_in_time(&c, 0, deadlines);

	/* set back: what was near is far, and what was past is to come */
	for (i = 1; i < N; i++) {
		deadlines[i] = now(CLOCK_REALTIME) + 30 * SEC;
		shared_arm(&c, i, deadlines[i]);
	}
	wall_shift(-(__s64)HOUR);
	EXPECT_EQ(readable(c.fd, 100), 0);
	deadlines[0] = now(CLOCK_REALTIME) + 20 * MSEC;
	shared_arm(&c, 0, deadlines[0]);
	EXPECT_TRUE(readable(c.fd, PATIENCE_MS));
	EXPECT_TRUE(shared_take(&c, &i));
	EXPECT_EQ(i, 0);
	EXPECT_TRUE(now(CLOCK_REALTIME) >= deadlines[0]);
	wall_shift(HOUR + 60 * SEC);
	take_in_time(&c, 1, deadlines);
	wall_restore();
	client_close(&c);
}

/* Past the latest deadline that a word can have, which never expires, what is over does */
static void test_shared_late(void)
{
	static struct client c;
	struct expiry e;
	__u32 i;

	wall_set(TWHEEL_WORD_NEVER + 1000 * SEC);
	client_open(&c, TWHEEL_CLOCK_REALTIME, MSEC, 3);
	shared_arm(&c, 0, now(CLOCK_REALTIME) + HOUR);
	shared_arm(&c, 1, NEVER - ARMED);
	shared_arm(&c, 2, NEVER - SEC);
	for (i = 0; i < 2; i++)
		shared_push(&c, i);
	doorbell(&c);
	EXPECT_EQ(shared_take_some(&c, &e, 1), 1);
	EXPECT_EQ(e.timer, 2);
	EXPECT_EQ(shared_take_some(&c, &e, 1), 0);
	EXPECT_EQ(readable(c.fd, 50), 0);
	EXPECT_EQ(shared_cancel(&c, 0), WAS_ARMED);
	EXPECT_EQ(shared_cancel(&c, 1), WAS_ARMED);
	wall_restore();
	client_close(&c);
}

int main(void)
{
	tap_start(90);
	wall_save();
	RUN(test_forwards, "set forwards: due at once");
	RUN(test_forwards_wakes, "set forwards: a sleeping reader wakes");
	RUN(test_backwards, "set backwards: they wait for the wall clock");
	RUN(test_ready_stays, "set backwards: what is ready stays ready");
	RUN(test_to_and_fro, "set to and fro all the time");
	RUN(test_unaffected, "MONOTONIC and BOOTTIME don't care");
	RUN(test_periodic, "periodic timers follow");
	RUN(test_periodic_back, "periodic timers that were ready");
	RUN(test_read_in_parts, "set backwards: what is ready is read in parts");
	RUN(test_tai_offset, "the offset of TAI is set");
	RUN(test_shared, "shared timers");
	RUN(test_shared_late, "shared timers, past the latest deadline");
	return tap_end();
}
