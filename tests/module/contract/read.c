// SPDX-License-Identifier: GPL-2.0
/*
 * read(2) of a wheel: too little room, waiting, and count mode. (What is in an event, in which
 * order they come, and buffers of any size, of several parts or that end too soon are in
 * disturb.c.)
 *
 * also in: both both-threads matrix small 32-bits
 */
#include "device.h"

#include <sys/uio.h>

/* Bytes of an event, as this wheel gives it; the tests run with each length */
static size_t ev_size = sizeof(struct twheel_event);
static int fd;

static void set_up(__u32 clock)
{
	long ret = setup_with(fd, .clock = clock, .event_size = ev_size);

	if (ret)
		tap_bail("setup with events of %zu", ev_size);
}

static void fresh_on(__u32 clock)
{
	wheel_replace(&fd, O_NONBLOCK);
	set_up(clock);
}

/* One that is not set up as well, where that gives the same events */
static void fresh(void)
{
	if (ev_size != sizeof(struct twheel_event))
		return fresh_on(TWHEEL_CLOCK_MONOTONIC);
	wheel_replace(&fd, O_NONBLOCK);
}

/* By a clock with a past that is longer than a new machine's */
static void fresh_count(void)
{
	long ret;

	wheel_replace(&fd, O_NONBLOCK);
	ret = setup_with(fd, .clock = TWHEEL_CLOCK_REALTIME, .flags = TWHEEL_SETUP_COUNT);
	if (ret)
		tap_bail("setup of count mode");
}

/* Like read_events(); what an event of this size does not have is 0 */
static long take_events(struct twheel_event *ev, size_t max)
{
	long ret = read_raw(fd, ev, max * ev_size), i;

	if (ret < 0)
		return ret;
	EXPECT_EQ(ret % ev_size, 0, "read gave %ld bytes", ret);
	ret /= ev_size;
	for (i = ret - 1; i >= 0; i--) {
		struct twheel_event one = { 0 };

		memcpy(&one, (char *)ev + i * ev_size, ev_size);
		ev[i] = one;
	}
	return ret;
}

/* The rest is there, in order, from this one on */
static void expect_rest(int from, int to)
{
	struct twheel_event ev[64];
	long n = take_events(ev, ARRAY_SIZE(ev));
	int i;

	EXPECT_EQ(n, from == to ? -EAGAIN : to - from, "events left");
	for (i = 0; i < n; i++)
		EXPECT_EQ(ev[i].user_data, from + i, "event %d", i);
}

/* Whether something is ready or not, and whether it is to wait or not */
static void test_too_small(void)
{
	char buf[sizeof(struct twheel_event)];
	size_t size;
	int how;

	fresh();
	for (how = 0; how < 4; how++) {
		set_blocking(fd, how & 1);
		if (how == 2)
			arm_numbered(fd, TWHEEL_ABS, 1, 0, 2);
		for (size = 0; size < ev_size; size++)
			EXPECT_EQ(read_raw(fd, buf, size), -EINVAL, "%d, size %zu", how, size);
	}
	set_blocking(fd, false);
	expect_rest(0, 2);
	EXPECT_EQ(read_raw(fd, buf, ev_size), -EAGAIN);
}

static void test_not_to_wait(void)
{
	struct twheel_event ev[2];
	struct iovec iov = { ev, sizeof(ev) };

	fresh();
	arm(fd, 0, HOUR, 0);
	EXPECT_EQ(read_events(fd, ev, 1), -EAGAIN, "O_NONBLOCK");
	set_blocking(fd, true);
	EXPECT_EQ(preadv2(fd, &iov, 1, -1, RWF_NOWAIT) < 0 ? errno : 0, EAGAIN,
		  "RWF_NOWAIT");
	arm_numbered(fd, TWHEEL_ABS, 1, 0, 1);
	EXPECT_EQ(preadv2(fd, &iov, 1, -1, RWF_NOWAIT), ev_size, "RWF_NOWAIT");
	EXPECT_EQ(preadv2(fd, &iov, 1, -1, RWF_NOWAIT) < 0 ? errno : 0, EAGAIN,
		  "RWF_NOWAIT again");
}

/* ---- waiting ---- */

struct reader {
	struct sleeper sleeper;
	struct twheel_event ev[4];
	size_t size;
	long ret;
};

static void reader_call(struct sleeper *sleeper)
{
	struct reader *r = (struct reader *)sleeper;

	r->ret = read_raw(fd, r->ev, r->size);
}

static void reader_start(struct reader *r)
{
	r->sleeper.call = reader_call;
	sleeper_start(&r->sleeper, SYS_read);
}

/* The child was woken, and read one event of that timer, or a count */
static void reader_has(struct reader *r, size_t size, __u64 user_data)
{
	pthread_join(r->sleeper.thread, NULL);
	EXPECT_EQ(r->ret, size);
	EXPECT_EQ(r->ev[0].user_data, user_data);
}

/* A timer that was moved to earlier wakes as well. */
static void test_wait_for_expiry(void)
{
	struct reader r = { .size = sizeof(r.ev) };
	struct twheel_op op;

	fresh();
	set_blocking(fd, true);
	reader_start(&r);
	arm(fd, 0, 10 * MSEC, 5);
	reader_has(&r, ev_size, 5);

	reader_start(&r);
	arm_past(fd, 6);
	reader_has(&r, ev_size, 6);

	op = op_modify(arm(fd, 0, HOUR, 7), 0, 10 * MSEC, 8);
	reader_start(&r);
	EXPECT_EQ(op_single(fd, &op), 0);
	reader_has(&r, ev_size, 8);
}

/* One event wakes one reader, and the other one waits on */
static void test_two_waiting(void)
{
	struct reader a = { .size = ev_size }, b = { .size = ev_size };

	fresh();
	set_blocking(fd, true);
	reader_start(&a);
	reader_start(&b);
	arm_past(fd, 1);
	EXPECT_TRUE(WAIT_FOR(!blocked_in(a.sleeper.tid, SYS_read) ||
			     !blocked_in(b.sleeper.tid, SYS_read)));
	arm_past(fd, 2);
	pthread_join(a.sleeper.thread, NULL);
	reader_has(&b, ev_size, 3 - a.ev[0].user_data);
	EXPECT_EQ(a.ret, ev_size);
}

/* ---- count mode ---- */

static long read_count(__u64 *count)
{
	*count = 0xeeee;
	return read_raw(fd, count, sizeof(*count));
}

static void test_count(void)
{
	struct twheel_op op;
	__u64 count, buf[4], id;
	size_t size;

	fresh_count();
	EXPECT_EQ(wheel_info(fd).flags, TWHEEL_SETUP_COUNT);
	for (size = 0; size < 8; size++)
		EXPECT_EQ(read_raw(fd, buf, size), -EINVAL, "size %zu", size);
	EXPECT_EQ(read_count(&count), -EAGAIN);
	id = arm_past(fd, 0);
	arm_numbered(fd, TWHEEL_ABS, 1, 0, 6);
	arm(fd, 0, HOUR, 0);
	for (size = 0; size < 8; size++)
		EXPECT_EQ(read_raw(fd, buf, size), -EINVAL, "size %zu", size);
	EXPECT_EQ(readable(fd, 0), 1);
	EXPECT_EQ(wheel_info(fd).ready, 7);
	EXPECT_EQ(read_count(&count), 8);
	EXPECT_EQ(count, 7);
	EXPECT_EQ(query(fd, id, &op), -ENOENT, "used up");
	EXPECT_EQ(wheel_info(fd).ready, 0);
	EXPECT_EQ(wheel_info(fd).pending, 1);
	EXPECT_EQ(wheel_stats(fd).delivered, 7);
	EXPECT_EQ(readable(fd, 0), 0);
	EXPECT_EQ(read_count(&count), -EAGAIN);

	arm_numbered(fd, TWHEEL_ABS, 1, 0, 2);
	memset(buf, 0xee, sizeof(buf));
	EXPECT_EQ(read_raw(fd, buf, sizeof(buf)), 8, "room for more");
	EXPECT_EQ(buf[0], 2);
	EXPECT_EQ(buf[1], 0xeeeeeeeeeeeeeeee);
}

static void test_count_cancel(void)
{
	struct twheel_op op;
	__u64 count, id;

	fresh_count();
	id = arm_past(fd, 0);
	arm_numbered(fd, TWHEEL_ABS, 1, 0, 3);
	EXPECT_EQ(cancel(fd, id), 0);
	EXPECT_EQ(read_count(&count), 8);
	EXPECT_EQ(count, 3);
	id = arm_past(fd, 0);
	op = op_modify(id, 0, HOUR, 0);
	EXPECT_EQ(op_single(fd, &op), 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_READY);
	EXPECT_EQ(read_count(&count), -EAGAIN, "all withdrawn");
}

static void test_count_periodic(void)
{
	__u64 count, count2, id, first;
	struct twheel_op op;

	fresh_count();
	first = now(CLOCK_REALTIME) - 95 * SEC;
	id = arm_periodic(fd, first, 10 * SEC, 0);
	EXPECT_EQ(read_count(&count), 8);
	EXPECT_TRUE(count == 10 || count == 11, "count %llu", count);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_PENDING);
	EXPECT_EQ(op.deadline, first + count * 10 * SEC);
	EXPECT_EQ(cancel(fd, id), 0);

	first = now(CLOCK_REALTIME);
	arm_periodic(fd, first, 10 * MSEC, 0);
	set_blocking(fd, true);
	for (count2 = 0; count2 < 20; count2 += count)
		if (!EXPECT_EQ(read_count(&count), 8))
			break;
	EXPECT_TRUE(now(CLOCK_REALTIME) >= first + (count2 - 1) * 10 * MSEC,
		    "%llu expiries are too many by now", count2);
}

static void test_count_fault(void)
{
	char *edge = map_edge(1);
	__u64 count, id;
	int room;

	fresh_count();
	arm_numbered(fd, TWHEEL_ABS, 1, 0, 5);
	id = arm_past(fd, 0);
	for (room = 0; room < 8; room++)
		EXPECT_EQ(read_raw(fd, edge - room, 8), -EFAULT, "room %d", room);
	EXPECT_EQ(wheel_info(fd).ready, 6);
	EXPECT_EQ(cancel(fd, id), 0, "nothing of it is read");
	arm_numbered(fd, TWHEEL_ABS, 1, 0, 2);
	EXPECT_EQ(read_count(&count), 8);
	EXPECT_EQ(count, 7, "nothing was lost by the faults");
	munmap(edge - PAGE, 2 * PAGE);
}

/* More than fit into the count: it stays the largest, and does not begin again at 0. */
static void test_count_full(void)
{
	/* Each of them since 1970 */
	__u64 each = now(CLOCK_REALTIME), nr = ~0ULL / each + 1, count, i;

	fresh_count();
	for (i = 0; i < nr; i++)
		arm_periodic(fd, 1, 1, i);
	EXPECT_EQ(read_count(&count), 8);
	EXPECT_EQ(count, ~0ULL);
	EXPECT_TRUE(WAIT_FOR(read_count(&count) == 8), "the next periods");
	EXPECT_TRUE(count < each, "%llu", count);
}

static bool counted_once, enough;

static void *arm_what_is_due(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		arm_numbered(fd, TWHEEL_ABS, 1, 0, 256);
	return arg;
}

static void *count_once(void *arg)
{
	__u64 count;

	EXPECT_EQ(read(fd, &count, sizeof(count)), sizeof(count));
	__atomic_store_n(&counted_once, true, __ATOMIC_RELAXED);
	return arg;
}

/* More is ready each time than a read takes under one hold of the lock. It ends all the same. */
static void test_count_against_others(void)
{
	pthread_t others[6], reader;
	unsigned int i;

	fresh_count();
	for (i = 0; i < 6; i++)
		thread_start(&others[i], arm_what_is_due, NULL);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready));
	thread_start(&reader, count_once, NULL);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&counted_once, __ATOMIC_RELAXED)));
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	for (i = 0; i < 6; i++)
		pthread_join(others[i], NULL);
	pthread_join(reader, NULL);
}

/* ---- short events ---- */

/* All that is not about what is in the rest of an event */
static void test_short(void)
{
	ev_size = TWHEEL_EVENT_SIZE_ID;
	fresh();
	EXPECT_EQ(wheel_info(fd).event_size, 16);
	test_too_small();
	test_not_to_wait();
	test_wait_for_expiry();
	test_two_waiting();
	ev_size = TWHEEL_EVENT_SIZE_FULL;
}

/* A reader that began before SETUP reads what the wheel has become. */
static void set_up_while_waiting(bool counts)
{
	int i;

	for (i = 0; i < 20 && !tap_bad; i++) {
		struct reader r = { .size = 48 };
		long ret;

		fresh();
		set_blocking(fd, true);
		memset(r.ev, 0xee, sizeof(r.ev));
		reader_start(&r);
		EXPECT_EQ(setup_with(fd, .clock = TWHEEL_CLOCK_REALTIME,
				     .flags = counts ? TWHEEL_SETUP_COUNT : 0,
				     .event_size = counts ? 0 : TWHEEL_EVENT_SIZE_ID), 0);
		arm_past(fd, 1);
		if (counts) {
			/* What this one leaves is a count, and nothing is ready. */
			set_blocking(fd, false);
			ret = read_raw(fd, (void *)8, 8);
			EXPECT_TRUE(ret == -EFAULT || ret == -EAGAIN, "%ld", ret);
			reader_has(&r, 8, 1);
		} else {
			reader_has(&r, 16, 1);
			EXPECT_EQ(r.ev[1].user_data, 0xeeeeeeeeeeeeeeee, "behind it");
		}
	}
}

int main(void)
{
	tap_start(90);
	RUN(test_too_small, "room for less than one event");
	RUN(test_not_to_wait, "O_NONBLOCK and RWF_NOWAIT");
	RUN(test_wait_for_expiry, "a waiting read is woken by an expiry, and by a MODIFY");
	RUN(test_two_waiting, "two waiting readers get one event each");
	RUN(test_short, "all that with events of 16 bytes");
	RUN_CALL(set_up_while_waiting(false),
		 "events of 16 bytes: set up while a reader waits");
	RUN(test_count, "count mode");
	RUN(test_count_cancel, "count mode: what is withdrawn does not count");
	RUN(test_count_periodic, "count mode: periods");
	RUN(test_count_fault, "count mode: a bad buffer");
	RUN_CALL(set_up_while_waiting(true),
		 "count mode: set up while a reader waits");
	RUN(test_count_against_others, "count mode: while others make more ready");
	RUN(test_count_full, "count mode: more than can be counted");
	return tap_end();
}
