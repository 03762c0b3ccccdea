// SPDX-License-Identifier: GPL-2.0
/*
 * A program with millions of timers is killed, and somebody with a real-time
 * priority on the same processor is not kept waiting for longer than by the end of
 * a program with as much memory of its own: what a wheel holds is freed in pieces.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 */
#include "device.h"

#include <sched.h>

#define TIMERS 4000000
#define BATCH 1000
#define PAGES (TIMERS * 40UL / PAGE)
#define PERIOD (50 * USEC)

struct shared {
	bool armed;
	bool over;
	__u64 beats;
	__u64 latest;	/* by which one of them came late, in ns */
};

static struct shared *shared;
static int wheels;

/* With plain memory: the kernel frees pages many at a time */
static __u64 plain;

static void beating_child(void)
{
	struct sched_param param = { .sched_priority = 50 };
	__u64 at = now(CLOCK_MONOTONIC), late;

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		tap_bail("sched_setscheduler: %s", strerror(errno));
	while (!__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE)) {
		struct timespec ts;

		at += PERIOD;
		ts = (struct timespec){ at / SEC, at % SEC };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		late = now(CLOCK_MONOTONIC) - at;
		if (late > shared->latest)
			shared->latest = late;
		shared->beats++;
		at += late / PERIOD * PERIOD;
	}
}

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
	__atomic_store_n(&shared->armed, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void killed_with(int nr)
{
	pid_t owner, beating;
	__u64 from, took;
	int status;

	memset(shared, 0, sizeof(*shared));
	wheels = nr;
	owner = tap_fork(owner_child);
	while (!__atomic_load_n(&shared->armed, __ATOMIC_ACQUIRE))
		sleep_ns(MSEC);
	beating = tap_fork(beating_child);
	sleep_ns(10 * MSEC);
	from = now(CLOCK_MONOTONIC);
	kill(owner, SIGKILL);
	EXPECT_EQ(waitpid(owner, &status, 0), owner);
	took = now(CLOCK_MONOTONIC) - from;
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	tap_join(beating);
	tap_diag("%d wheels: gone after %llu us; the latest of %llu beats came after %llu us",
		 nr, took / USEC, shared->beats, shared->latest / USEC);
	EXPECT_TRUE(took < SEC, "it took %llu us", took / USEC);
	EXPECT_TRUE(shared->beats > 100, "%llu beats", shared->beats);
}

static void test_plain(void)
{
	killed_with(0);
	plain = shared->latest;
}

static void test_one(void)
{
	killed_with(1);
	EXPECT_TRUE(shared->latest <= plain, "%llu us", shared->latest / USEC);
}

static void test_many(void)
{
	killed_with(500);
	EXPECT_TRUE(shared->latest <= plain, "%llu us", shared->latest / USEC);
}

int main(void)
{
	tap_start(1000);
	shared = map_shared(sizeof(*shared));
	RUN(test_plain, "a program with plain memory");
	RUN(test_one, "a program with millions of timers in one wheel");
	RUN(test_many, "a program with millions of timers in 500 wheels");
	return tap_end();
}
