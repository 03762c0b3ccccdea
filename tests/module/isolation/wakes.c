// SPDX-License-Identifier: GPL-2.0
/*
 * A user who sleeps, and whose wheel has very many watches to wake, gets no more of a
 * processor than any other.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 */
#include "cgroup.h"

#include <sys/epoll.h>

#define MALLORY 1000
#define ALICE 1001
#define WATCHES 200000

static struct {
	bool ready, over;
	__u64 loops, woken;
} *shared;

/* How often can she look at the clock in a second? */
static void alice(void)
{
	__u64 from, n = 0;

	become(ALICE);
	while (!is_set(&shared->ready))
		sleep_ns(MSEC);
	sleep_ns(100 * MSEC);
	for (from = now(CLOCK_MONOTONIC); now(CLOCK_MONOTONIC) < from + SEC; n++)
		;
	shared->loops = n;
	set(&shared->over);
}

static void watch(int fd, unsigned int watches)
{
	struct epoll_event event = { EPOLLIN, { .u32 = 0 } };
	int poll = epoll_create1(0);
	unsigned int i;

	allow_descriptors(watches);
	for (i = 0; i < watches; i++) {
		int other = dup(fd);

		if (other < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, other, &event))
			tap_bail("descriptor %u: %s", i, strerror(errno));
	}
}

/* One wheel with a timer each millisecond, which nobody reads */
static void mallory(unsigned int watches)
{
	struct twheel_op ops[250];
	__u64 at;
	int fd, i, k;

	fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	watch(fd, watches);
	become(MALLORY);
	at = now(CLOCK_MONOTONIC) + 50 * MSEC;
	for (i = 0; i < 20; i++) {
		for (k = 0; k < 250; k++)
			ops[k] = op_arm(TWHEEL_ABS, at + (i * 250 + k) * MSEC, k);
		submit_all(fd, ops, 250);
	}
	set(&shared->ready);
	while (!is_set(&shared->over))
		sleep_ns(20 * MSEC);
	shared->woken = wheel_stats(fd).expired;
	_exit(0);
}

/* Her loops beside him */
static __u64 storm(unsigned int watches)
{
	pid_t other, one;

	memset(shared, 0, sizeof(*shared));
	one = tap_fork(alice);
	other = fork();
	if (!other)
		mallory(watches);
	tap_join(one);
	waitpid(other, NULL, 0);
	tap_diag("%u watches, %llu expiries: %llu loops", watches, shared->woken, shared->loops);
	EXPECT_TRUE(shared->woken >= 100, "%llu expiries", shared->woken);
	return shared->loops;
}

static void test_watches(void)
{
	__u64 few, many;

	write_text("/proc/sys/fs/epoll/max_user_watches", "2000000");
	few = storm(1);
	many = storm(WATCHES);
	EXPECT_TRUE(many > few * 8 / 10, "%llu of %llu", many, few);
}

int main(void)
{
	tap_start(60);
	open_to_all();
	shared = map_shared(sizeof(*shared));
	RUN(test_watches, "200,000 watches of one wheel");
	return tap_end();
}
