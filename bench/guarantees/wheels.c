// SPDX-License-Identifier: GPL-2.0
/*
 * Many wheels: two that don't get into each other's way, and ten thousand that do
 * nothing.
 *
 * usage: wheels idle      counting instructions
 *        wheels speed     on two processors, by the wall clock
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "guarantees.h"

#define WHEELS 10000
/* Many short rounds: in some of them nobody else wants the processors. */
#define ROUNDS 100
#define ROUND (40 * MS)
#define CPUS 2

/* What one thread does in a round, to a wheel of its own or without any. */
struct job {
	pthread_t thread;
	unsigned int cpu;
	int wheel;		/* -1: only what is needed around */
	__u64 deadline;
	double rate;		/* out: operations a second */
};

static pthread_barrier_t barrier;

/* As much work in user space and as many system calls, but no wheel */
static void beside(struct twheel_op *ops)
{
	static __thread struct twheel_op copy[BATCH];
	unsigned int i;

	for (i = 0; i < 40; i++) {
		memcpy(copy, ops, sizeof(copy));
		getppid();
	}
}

static void batch(struct job *job, struct twheel_op *ops)
{
	if (job->wheel < 0)
		beside(ops);
	else
		submit_good(job->wheel, ops, BATCH);
}

/* Arm, move to later and cancel. Returns the operations. */
static __u64 work_once(struct job *job)
{
	struct twheel_op ops[BATCH];
	unsigned int i;

	for (i = 0; i < BATCH; i++)
		ops[i] = op_arm(job->deadline + i * MS, i);
	batch(job, ops);
	for (i = 0; i < BATCH; i++)
		ops[i] = op_modify(ops[i].id, job->deadline + i * MS + SECOND, i);
	batch(job, ops);
	for (i = 0; i < BATCH; i++)
		ops[i] = op_cancel(ops[i].id);
	batch(job, ops);
	return 3 * BATCH;
}

static void *run_job(void *arg)
{
	struct job *job = arg;
	__u64 start, end, done = 0;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(job->cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("no processor %u: %s", job->cpu, strerror(errno));
	pthread_barrier_wait(&barrier);
	start = now();
	job->deadline = start + 60 * SECOND;
	do {
		done += work_once(job);
		end = now();
	} while (end < start + ROUND);
	job->rate = (double)done * SECOND / (end - start);
	return NULL;
}

/* Operations a second of @n threads together, each on a processor of its own. */
static double rate(unsigned int n, unsigned int first_cpu, const int *wheels)
{
	struct job jobs[CPUS] = {};
	double sum = 0;
	unsigned int i;

	pthread_barrier_init(&barrier, NULL, n);
	for (i = 0; i < n; i++) {
		jobs[i].cpu = first_cpu + i;
		jobs[i].wheel = wheels ? wheels[i] : -1;
		if (pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]))
			die("can't start a thread");
	}
	for (i = 0; i < n; i++) {
		pthread_join(jobs[i].thread, NULL);
		sum += jobs[i].rate;
	}
	pthread_barrier_destroy(&barrier);
	return sum;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct rounds {
	double one[2 * ROUNDS];
	double two[ROUNDS];
};

static double best_ratio(struct rounds *r)
{
	qsort(r->one, 2 * ROUNDS, sizeof(double), compare);
	qsort(r->two, ROUNDS, sizeof(double), compare);
	return r->two[ROUNDS - 1] / r->one[2 * ROUNDS - 1];
}

static double median_ratio(struct rounds *r)
{
	return r->two[ROUNDS / 2] / r->one[ROUNDS];
}

static void play_round(struct rounds *r, unsigned int i, const int *wheels)
{
	r->one[2 * i] = rate(1, 0, wheels);
	r->two[i] = rate(2, 0, wheels);
	r->one[2 * i + 1] = rate(1, 1, wheels);
}

/*
 * The machine itself may have less than two whole processors to give. What it has is
 * seen from the same rounds without a wheel.
 */
static void speed(void)
{
	int wheels[CPUS] = { wheel_open(TICK), wheel_open(TICK) };
	static struct rounds with, without;
	double best, share;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		play_round(&with, i, wheels);
		play_round(&without, i, NULL);
	}
	best = best_ratio(&with);
	result("two_wheels", 2, "speedup_best", best);
	result("no_wheel", 0, "speedup_best", best_ratio(&without));
	result("two_wheels", 2, "speedup_median", median_ratio(&with));
	result("no_wheel", 0, "speedup_median", median_ratio(&without));
	share = 100 * median_ratio(&with) / median_ratio(&without);
	result("two_wheels", 2, "share_of_possible_percent", share);
	if (best < 1.9)
		say("GOAL MISSED: two wheels do %.2f times the work of one, not 1.9", best);
	if (share < 90)
		broken("two wheels do %.0f %% of what two processors can", share);
}

static __u64 free_memory(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	__u64 kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemFree: %llu", &kb) == 1)
			break;
	if (!kb)
		die("the kernel does not tell its free memory");
	fclose(f);
	return kb * 1024;
}

/* With the room for the descriptors, which the process has for good. */
static void allow_descriptors(void)
{
	struct rlimit limit = { WHEELS + 100, WHEELS + 100 };
	int fd;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE: %s", strerror(errno));
	fd = fcntl(0, F_DUPFD, WHEELS + 50);
	if (fd < 0)
		die("no descriptor %u: %s", WHEELS + 50, strerror(errno));
	close(fd);
}

static int wheels[WHEELS];

static double open_all(void)
{
	__u64 before = free_memory();
	unsigned int i;

	for (i = 0; i < WHEELS; i++) {
		wheels[i] = open("/dev/twheel", O_RDWR | O_NONBLOCK);
		if (wheels[i] < 0)
			die("wheel %u: %s", i, strerror(errno));
	}
	return ((double)before - free_memory()) / WHEELS;
}

static void idle(void)
{
	struct twheel_op op;
	__u64 before;
	double each;
	unsigned int i;

	allow_descriptors();
	callbacks_start();
	each = open_all();
	sleep_until(now() + HOUR);
	result_goal("open", WHEELS, "bytes", each, 4096);
	result_goal("open", WHEELS, "interrupts", callbacks(), 0);

	before = free_memory();
	for (i = 0; i < WHEELS; i++) {
		op = op_arm(now() + 24 * HOUR, i);
		submit_good(wheels[i], &op, 1);
	}
	each += ((double)before - free_memory()) / WHEELS;
	result("one_timer_each", WHEELS, "bytes", each);
	sleep_until(now() + HOUR);
	result_goal("one_timer_each", WHEELS, "interrupts", callbacks(), 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "speed"))
		speed();
	else if (argc == 2 && !strcmp(argv[1], "idle"))
		idle();
	else
		die("idle or speed?");
	return promise_broken;
}
