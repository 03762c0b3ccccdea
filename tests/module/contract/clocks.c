// SPDX-License-Identifier: GPL-2.0
/*
 * The wall clock, or the offset of TAI, is set while somebody sleeps in read, while what is
 * ready is read in parts, and while shared timers wait. (What comes of any steps, for
 * timers of all kinds on all clocks, is in steps.c.)
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

	/* A wheel that was never large has one list of what is ready */
	arm_numbered(fd, TWHEEL_ABS, first + HOUR, M, 600);
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
	RUN(test_forwards_wakes, "set forwards: a sleeping reader wakes");
	RUN(test_read_in_parts, "set backwards: what is ready is read in parts");
	RUN(test_tai_offset, "the offset of TAI is set");
	RUN(test_shared, "shared timers");
	RUN(test_shared_late, "shared timers, past the latest deadline");
	return tap_end();
}
