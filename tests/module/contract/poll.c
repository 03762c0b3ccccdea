// SPDX-License-Identifier: GPL-2.0
/*
 * A wheel in poll and epoll, and an eventfd that it signals.
 *
 * also in: both both-threads matrix small-a
 */
#include "device.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

/* What the C library makes of epoll_wait() where the kernel has no such call */
#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#endif

static int fd;

static void fresh(void)
{
	wheel_replace(&fd, O_NONBLOCK);
}

static int read_all(void)
{
	struct twheel_event ev[16];
	int n = 0;
	long ret;

	while ((ret = read_events(fd, ev, ARRAY_SIZE(ev))) > 0)
		n += ret;
	EXPECT_EQ(ret, -EAGAIN);
	return n;
}

static __u64 efd_take(int efd)
{
	__u64 n = 0;

	return read(efd, &n, 8) == 8 ? n : 0;
}

static int poll_for(int events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (poll(&p, 1, 0) < 0)
		tap_bail("poll: %s", strerror(errno));
	return p.revents;
}

static void test_poll(void)
{
	const int all = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLPRI |
			POLLRDHUP;
	struct twheel_event ev;

	fresh();
	EXPECT_EQ(poll_for(all), 0, "nothing armed");
	arm(fd, 0, HOUR, 0);
	EXPECT_EQ(poll_for(all), 0, "nothing ready");
	arm_past(fd, 1);
	arm_past(fd, 2);
	EXPECT_EQ(poll_for(all), POLLIN | POLLRDNORM);
	EXPECT_EQ(poll_for(POLLOUT), 0);
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(poll_for(POLLIN), POLLIN, "one of two was read");
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(poll_for(all), 0, "all were read");
	EXPECT_EQ(cancel(fd, arm_past(fd, 3)), 0);
	EXPECT_EQ(poll_for(all), 0, "cancelled when ready");
}

/* A re-arm to later may leave the timer where it was: that is no expiry */
static void put_off(__u64 tick)
{
	struct twheel_op op;
	int efd = eventfd(0, EFD_NONBLOCK);
	int i;

	wheel_replace_new(&fd, TWHEEL_CLOCK_MONOTONIC, tick);
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	for (i = 0; i < 50; i++) {
		op = op_modify(arm(fd, 0, 300 * MSEC, i), 0, HOUR, i);
		EXPECT_EQ(op_single(fd, &op), 0);
	}
	/* a machine that stood still may have been too late for some */
	efd_take(efd);
	EXPECT_EQ(readable(fd, 400), 0, "readable for timers that moved");
	EXPECT_EQ(readable(efd, 0), 0, "eventfd for timers that moved");
	EXPECT_EQ(wheel_info(fd).ready, 0);
	EXPECT_EQ(wheel_info(fd).pending, 50);
	close(efd);
}

/* Near enough for the lowest level, and far up */
static void test_moved(void)
{
	put_off(20 * MSEC);
	put_off(USEC);
}

static int epoll_new(__u32 events)
{
	struct epoll_event e = { .events = events, .data.u64 = 77 };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e))
		tap_bail("epoll: %s", strerror(errno));
	return ep;
}

static int epoll_one(int ep, int ms)
{
	struct epoll_event e = { 0 };
	int n = epoll_wait(ep, &e, 1, ms);

	if (n < 0)
		tap_bail("epoll_wait: %s", strerror(errno));
	if (n)
		EXPECT_EQ(e.data.u64, 77);
	return e.events;
}

static void test_epoll_level(void)
{
	struct twheel_event ev;
	int ep;

	fresh();
	ep = epoll_new(EPOLLIN | EPOLLOUT);
	EXPECT_EQ(epoll_one(ep, 0), 0);
	arm(fd, 0, 20 * MSEC, 0);
	arm(fd, 0, 20 * MSEC, 1);
	EXPECT_EQ(epoll_one(ep, PATIENCE_MS), EPOLLIN);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 2));
	EXPECT_EQ(epoll_one(ep, 0), EPOLLIN, "again");
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(epoll_one(ep, 0), EPOLLIN, "one is left");
	EXPECT_EQ(read_events(fd, &ev, 1), 1);
	EXPECT_EQ(epoll_one(ep, 0), 0);
	close(ep);
}

/*
 * Each timer is an edge, when it is read and also when what was before is left unread. So
 * is, once, what is ready already when the wheel is added.
 */
static void edges(bool reads)
{
	int ep, i;

	fresh();
	arm_past(fd, 0);
	ep = epoll_new(EPOLLIN | EPOLLET);
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(epoll_one(ep, PATIENCE_MS), EPOLLIN, "edge %d", i);
		EXPECT_EQ(epoll_one(ep, 0), 0, "no second edge %d", i);
		if (reads)
			EXPECT_EQ(read_all(), 1, "edge %d", i);
		EXPECT_EQ(epoll_one(ep, 0), 0, "a read is no edge, %d", i);
		arm(fd, 0, i & 1 ? 5 * MSEC : 0, i);
	}
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == (reads ? 1 : 21)));
	close(ep);
}

/* So is each that was armed before, as of a timerfd, where nobody makes any other call. */
static void test_edges_ahead(void)
{
	const int timers = 20;
	int ep, i;

	fresh();
	for (i = 1; i <= timers; i++)
		arm(fd, 0, 50 * MSEC + i * 5 * MSEC, i);
	ep = epoll_new(EPOLLIN | EPOLLET);
	while (wheel_stats(fd).expired < (__u64)timers)
		if (!EXPECT_EQ(epoll_one(ep, PATIENCE_MS), EPOLLIN))
			break;
	EXPECT_EQ(read_all(), timers);
	close(ep);
}

struct waiter {
	struct sleeper sleeper;
	int ep, events;
};

static void waiter_call(struct sleeper *sleeper)
{
	struct waiter *w = (struct waiter *)sleeper;

	w->events = epoll_one(w->ep, PATIENCE_MS);
}

/* Already asleep when the timer comes, or is made ready by another thread */
static void epoll_woken(bool past)
{
	struct waiter w = { .sleeper.call = waiter_call };

	fresh();
	w.ep = epoll_new(EPOLLIN | EPOLLET);
	sleeper_start(&w.sleeper, SYS_epoll_wait);
	arm(fd, 0, past ? 0 : 10 * MSEC, 0);
	pthread_join(w.sleeper.thread, NULL);
	EXPECT_EQ(w.events, EPOLLIN);
	close(w.ep);
}

static void test_epoll_woken(void)
{
	epoll_woken(false);
	epoll_woken(true);
}

/* ---- eventfd ---- */

static void test_eventfd(void)
{
	int efd = eventfd(0, EFD_NONBLOCK);
	int i;

	fresh();
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	EXPECT_EQ(efd_take(efd), 0, "nothing ready");
	for (i = 0; i < 10; i++) {
		arm(fd, 0, i & 1 ? 5 * MSEC : 0, i);
		EXPECT_EQ(readable(efd, PATIENCE_MS), 1, "timer %d", i);
		EXPECT_EQ(efd_take(efd), 1, "timer %d", i);
		EXPECT_EQ(wheel_info(fd).ready, i + 1, "it is ready by then");
	}
	EXPECT_EQ(read_all(), 10);
	EXPECT_EQ(efd_take(efd), 0, "a read signals nothing");
	close(efd);
}

static void test_eventfd_end(void)
{
	int efd = eventfd(0, EFD_NONBLOCK), other = eventfd(0, EFD_NONBLOCK);

	fresh();
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	EXPECT_EQ(wheel_eventfd(fd, -1), 0);
	arm_past(fd, 0);
	EXPECT_EQ(efd_take(efd), 0, "ended");
	EXPECT_EQ(read_all(), 1);
	EXPECT_EQ(wheel_eventfd(fd, other), 0);
	arm_past(fd, 1);
	EXPECT_EQ(efd_take(efd), 0);
	EXPECT_EQ(efd_take(other), 1);
	close(efd);
	close(other);
}

/* The wheel holds the eventfd, not its number */
static void test_eventfd_closed(void)
{
	int efd = eventfd(0, EFD_NONBLOCK), copy = dup(efd);

	fresh();
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	close(efd);
	arm_past(fd, 0);
	EXPECT_EQ(efd_take(copy), 1);
	close(copy);
	arm(fd, 0, 10 * MSEC, 1);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 2));
	close(fd);
	fd = 0;
}

/* A full eventfd stops nobody */
static void test_eventfd_full(void)
{
	int efd = eventfd(0, EFD_NONBLOCK);
	__u64 full = 0xfffffffffffffffe;

	fresh();
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	EXPECT_EQ(write(efd, &full, 8), 8);
	arm(fd, 0, 5 * MSEC, 0);
	arm_past(fd, 1);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 2));
	EXPECT_EQ(read_all(), 2);
	close(efd);
}

int main(void)
{
	tap_start(60);
	RUN(test_poll, "poll");
	RUN(test_moved, "a timer that had only moved makes nothing readable");
	RUN(test_epoll_level, "epoll, level-triggered");
	RUN_CALL(edges(true), "epoll, edge-triggered");
	RUN_CALL(edges(false), "epoll, edge-triggered, nothing read");
	RUN(test_edges_ahead, "epoll, edge-triggered, all armed before, nothing read");
	RUN(test_epoll_woken, "epoll, asleep when it happens");
	RUN(test_eventfd, "eventfd");
	RUN(test_eventfd_end, "eventfd ended and replaced");
	RUN(test_eventfd_closed, "eventfd closed");
	RUN(test_eventfd_full, "eventfd full");
	return tap_end();
}
