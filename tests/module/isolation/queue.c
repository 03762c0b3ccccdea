// SPDX-License-Identifier: GPL-2.0
/*
 * Wheels that have no credit wait in a queue. However dear the callbacks of another user are, a
 * program with wheels like most is woken soon, beside that user and when he has gone. And a program
 * with wheels on both processors has the credit of both.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * most seconds: 300
 * processors: 2
 */
#include "cgroup.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>

#define ALICE 1500
#define MALLORY 2000
#define WHEELS 50
#define DEAR_WHEELS 20
#define WATCHES 20000
#define EACH 100
#define PERIOD (20 * MSEC)
#define LENGTH (3 * SEC)
/* The longest that she may wait, which is beside such a user; alone it is 1 ms */
#define LATE (250 * MSEC)

static struct {
	int ready;
	__u64 from;	/* the first timer is due; 0: not known yet */
	__u64 told, latest;
} *both;

static void wait_for_start(void)
{
	count_up(&both->ready);
	while (!__atomic_load_n(&both->from, __ATOMIC_ACQUIRE))
		sleep_ns(MSEC);
}

/* Each expiry wakes all that watch his eventfd, for what never comes. */
static void mallory(void)
{
	struct epoll_event event = { .events = EPOLLPRI | EPOLLET };
	struct twheel_op ops[LENGTH / (10 * MSEC)];
	int efd, i, k, n = ARRAY_SIZE(ops);

	become(MALLORY);
	efd = eventfd(0, EFD_CLOEXEC);
	for (i = 0; i < EACH; i++)
		dup(efd);
	for (i = 0; i < WATCHES; i += EACH) {
		int ep = epoll_create1(EPOLL_CLOEXEC);

		for (k = 1; k <= EACH; k++)
			if (epoll_ctl(ep, EPOLL_CTL_ADD, efd + k, &event))
				tap_bail("epoll_ctl: %s", strerror(errno));
	}
	wait_for_start();
	for (i = 0; i < DEAR_WHEELS; i++) {
		int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);

		pin_to(i % 2);
		wheel_eventfd(fd, efd);
		for (k = 0; k < n; k++)
			ops[k] = op_arm(TWHEEL_ABS, both->from + i * MSEC + k * 10 * MSEC, 0);
		submit_all(fd, ops, n);
	}
	for (;;)
		pause();
}

/* A timer of each wheel, again and again: how late is she woken? */
static void alice(void)
{
	struct epoll_event events[16], event = { .events = EPOLLIN };
	int fds[WHEELS], efds[WHEELS], ep = epoll_create1(EPOLL_CLOEXEC), i, k, n;
	__u64 deadline[WHEELS], end, late, count;
	struct twheel_event gone[4];

	become(ALICE);
	for (i = 0; i < WHEELS; i++) {
		event.data.u32 = i;
		fds[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);
		efds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		wheel_eventfd(fds[i], efds[i]);
		epoll_ctl(ep, EPOLL_CTL_ADD, efds[i], &event);
	}
	wait_for_start();
	end = both->from + LENGTH;
	for (i = 0; i < WHEELS; i++) {
		deadline[i] = both->from + i * PERIOD / WHEELS;
		arm(fds[i], TWHEEL_ABS, deadline[i], 0);
	}
	while (now(CLOCK_MONOTONIC) < end) {
		n = epoll_wait(ep, events, ARRAY_SIZE(events), 100);
		for (k = 0; k < n; k++) {
			i = events[k].data.u32;
			late = now(CLOCK_MONOTONIC) - deadline[i];
			if (read(efds[i], &count, sizeof(count)) != sizeof(count))
				continue;
			both->told++;
			if ((__s64)late > (__s64)both->latest)
				both->latest = late;
			read_events(fds[i], gone, ARRAY_SIZE(gone));
			deadline[i] = now(CLOCK_MONOTONIC) + PERIOD;
			arm(fds[i], TWHEEL_ABS, deadline[i], 0);
		}
	}
	/* Timers for which she was never woken */
	for (i = 0; i < WHEELS; i++)
		if (end > deadline[i] + both->latest)
			both->latest = end - deadline[i];
}

static void beside_dear(__u64 until)
{
	pid_t hostile, good;

	memset(both, 0, sizeof(*both));
	hostile = tap_fork(mallory);
	good = tap_fork(alice);
	EXPECT_TRUE(all_ready(&both->ready, 2));
	__atomic_store_n(&both->from, now(CLOCK_MONOTONIC) + 200 * MSEC, __ATOMIC_RELEASE);
	sleep_ns(200 * MSEC + until);
	if (until < LENGTH)
		end(hostile);
	tap_join(good);
	if (until >= LENGTH)
		end(hostile);
	tap_diag("told %llu times, the latest after %llu ms", both->told, both->latest / MSEC);
	EXPECT_TRUE(both->told > WHEELS * LENGTH / PERIOD / 2);
	EXPECT_TRUE(both->latest < LATE, "%llu ms", both->latest / MSEC);
}

/* ---- a program with wheels on both processors ---- */

/*
 * On each: it has credit for them, but not for twice as many. With PREEMPT_RT each interrupt
 * costs more, as a thread does the work.
 */
#define OWN_WHEELS 26
#define OWN_WHEELS_RT 10
#define TICK (4 * MSEC)
#define TICKS 100
/* They come one by one, 10 us each. */
#define OWN_LATE MSEC

static int own_wheels(void)
{
	struct utsname name;

	return !uname(&name) && strstr(name.version, "PREEMPT_RT") ? OWN_WHEELS_RT : OWN_WHEELS;
}

static void test_both_processors(void)
{
	int efd = eventfd(0, EFD_CLOEXEC), each = own_wheels(), i, k;
	int fds[2 * OWN_WHEELS];
	__u64 from = (now(CLOCK_MONOTONIC) / TICK + 25) * TICK, late, latest = 0;
	struct twheel_op ops[TICKS];

	for (k = 0; k < TICKS; k++)
		ops[k] = op_arm(TWHEEL_ABS, from + k * TICK, 0);
	for (i = 0; i < 2 * each; i++) {
		/* Where a timer is armed, it comes. */
		pin_to(i / each);
		fds[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, TICK);
		wheel_eventfd(fds[i], efd);
		submit_all(fds[i], ops, TICKS);
	}
	EXPECT_TRUE(now(CLOCK_MONOTONIC) < from, "it took too long");
	sleep_ns(from + TICKS * TICK - now(CLOCK_MONOTONIC));
	for (i = 0; i < 2 * each; i++) {
		EXPECT_TRUE(wheel_stats(fds[i]).expired >= TICKS - 1);
		late = wheel_stats(fds[i]).max_lateness;
		latest = late > latest ? late : latest;
		close(fds[i]);
	}
	close(efd);
	tap_diag("the latest after %llu us", latest / USEC);
	EXPECT_TRUE(latest < OWN_LATE, "%llu us", latest / USEC);
}

int main(void)
{
	tap_start(100);
	allow_descriptors(1000);
	open_to_all();
	both = map_shared(PAGE);
	RUN_CALL(beside_dear(LENGTH), "a user with dear callbacks");
	RUN_CALL(beside_dear(SEC), "the same, who goes");
	RUN(test_both_processors, "a program with wheels on both processors");
	return tap_end();
}
