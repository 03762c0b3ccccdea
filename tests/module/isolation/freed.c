// SPDX-License-Identifier: GPL-2.0
/*
 * A program with millions of timers is killed, and somebody with a real-time
 * priority on the same processor is not kept waiting for longer than by the end of
 * a program with as much memory of its own: what a wheel holds is freed in pieces.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 */
#include "cgroup.h"

#define TIMERS 4000000
#define BATCH 1000
#define PAGES (TIMERS * 40UL / PAGE)

static bool *armed;
static int wheels;

/* With plain memory: the kernel frees pages many at a time */
static __u64 plain;

static void arm_millions(void)
{
	static struct twheel_op ops[BATCH];
	__u64 seed = 9;
	int *fds = calloc(wheels, sizeof(*fds)), i, k;

	for (i = 0; i < wheels; i++)
		fds[i] = wheel_open(0);
	for (i = 0; i < TIMERS / BATCH; i++) {
		for (k = 0; k < BATCH; k++) {
			ops[k] = op_arm(0, HOUR << random_next(&seed) % 20, k);
			if (k % 4 == 1)
				ops[k].deadline = 0;
			if (k % 8 == 3)
				ops[k].interval = HOUR;
		}
		submit_all(fds[i % wheels], ops, BATCH);
	}
}

static void touch_memory(void)
{
	char *memory = map_pages(PAGES, PROT_READ | PROT_WRITE);
	unsigned long i;

	madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
}

static void owner_child(void)
{
	if (wheels)
		arm_millions();
	else
		touch_memory();
	set(armed);
	for (;;)
		pause();
}

static void killed_with(int nr)
{
	pid_t owner, beating;
	__u64 from, took;
	int status;

	*armed = false;
	wheels = nr;
	owner = tap_fork(owner_child);
	while (!is_set(armed))
		sleep_ns(MSEC);
	beating = beats_begin();
	sleep_ns(10 * MSEC);
	from = now(CLOCK_MONOTONIC);
	kill(owner, SIGKILL);
	EXPECT_EQ(waitpid(owner, &status, 0), owner);
	took = now(CLOCK_MONOTONIC) - from;
	beats_end(beating);
	tap_diag("%d wheels: gone after %llu us; the latest of %llu beats came after %llu us",
		 nr, took / USEC, beats->nr, beats->latest / USEC);
	EXPECT_TRUE(took < SEC, "it took %llu us", took / USEC);
	EXPECT_TRUE(WAIT_FOR(!module_counter("open")), "wheels are left");
	EXPECT_EQ(module_counter("pending") + module_counter("ready"), 0, "timers are left");
	EXPECT_TRUE(beats->nr > 100, "%llu beats", beats->nr);
}

static void test_plain(void)
{
	killed_with(0);
	plain = beats->latest;
}

static void test_wheels(int nr)
{
	killed_with(nr);
	EXPECT_TRUE(beats->latest <= plain, "%llu us", beats->latest / USEC);
}

int main(void)
{
	tap_start(1000);
	armed = map_shared(sizeof(*armed));
	RUN(test_plain, "a program with plain memory");
	RUN_CALL(test_wheels(1), "a program with millions of timers in one wheel");
	RUN_CALL(test_wheels(500), "a program with millions of timers in 500 wheels");
	return tap_end();
}
