// SPDX-License-Identifier: GPL-2.0
/*
 * threads [THREADS]: each has 1,024 timers, and moves them again and again at random, one in a
 * call: in one wheel for all, in a wheel of its own, and with a timerfd for each. What a move takes
 * of the machine's time, in ns (which are instructions where one takes 1 ns).
 */
#include "bench.h"

#include <err.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define THREADS 64
#define TIMERS 1024
#define MOVES 20000

enum kind { ONE_WHEEL, OWN_WHEEL, TIMERFD };

struct thread {
	pthread_t thread;
	enum kind kind;
	int wheel;
	uint64_t seed;
};

static pthread_barrier_t begin, end;

static void submit(int wheel, struct twheel_op *op)
{
	struct twheel_submit submit = {
		.size = sizeof(submit), .ops = (uintptr_t)op,
		.nr = 1, .op_size = TWHEEL_OP_SIZE_ONCE,
	};

	if (ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit) != 1)
		err(1, "submit");
}

static void *moves(void *arg)
{
	struct thread *thread = arg;
	uint64_t id[TIMERS];
	int i;

	for (i = 0; i < TIMERS; i++) {
		struct twheel_op op = { .opcode = TWHEEL_OP_ARM, .deadline = 1000 * SECOND };

		if (thread->kind == TIMERFD) {
			id[i] = timerfd_create(CLOCK_MONOTONIC, 0);
			if ((int)id[i] < 0)
				err(1, "timerfd");
			continue;
		}
		submit(thread->wheel, &op);
		id[i] = op.id;
	}
	pthread_barrier_wait(&begin);
	for (i = 0; i < MOVES; i++) {
		uint64_t which, seconds;

		thread->seed = thread->seed * 6364136223846793005ULL + 1;
		which = id[thread->seed >> 54];
		seconds = 1000 + (thread->seed >> 20) % 1000;
		if (thread->kind == TIMERFD) {
			struct itimerspec spec = { .it_value.tv_sec = seconds };

			timerfd_settime(which, 0, &spec, NULL);
		} else {
			struct twheel_op op = {
				.opcode = TWHEEL_OP_MODIFY, .id = which,
				.deadline = seconds * SECOND,
			};

			submit(thread->wheel, &op);
		}
	}
	pthread_barrier_wait(&end);
	for (i = 0; thread->kind == TIMERFD && i < TIMERS; i++)
		close(id[i]);
	return NULL;
}

static double each(enum kind kind, int threads)
{
	int i, wheel = open("/dev/twheel", O_RDWR);
	struct thread thread[threads];
	uint64_t start;

	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	for (i = 0; i < threads; i++) {
		thread[i].kind = kind;
		thread[i].seed = i + 1;
		thread[i].wheel = kind == OWN_WHEEL ? open("/dev/twheel", O_RDWR) : wheel;
		if (thread[i].wheel < 0 ||
		    pthread_create(&thread[i].thread, NULL, moves, &thread[i]))
			err(1, "a thread with its wheel");
	}
	pthread_barrier_wait(&begin);
	start = now();
	pthread_barrier_wait(&end);
	start = now() - start;
	for (i = 0; i < threads; i++) {
		pthread_join(thread[i].thread, NULL);
		if (kind == OWN_WHEEL)
			close(thread[i].wheel);
	}
	close(wheel);
	return (double)start / threads / MOVES;
}

int main(int argc, char **argv)
{
	static const char * const names[] = { "one wheel", "a wheel each", "timerfds" };
	int threads = argc > 1 ? atoi(argv[1]) : THREADS, round;
	struct rlimit files = { 2 * THREADS * TIMERS, 2 * THREADS * TIMERS };
	enum kind kind;

	if (threads < 1 || threads > THREADS)
		errx(2, "usage: %s [THREADS], 1 to %d of them", argv[0], THREADS);
	setrlimit(RLIMIT_NOFILE, &files);
	for (round = 0; round < 3; round++)
		for (kind = ONE_WHEEL; kind <= TIMERFD; kind++)
			printf("%d threads, %s: %.0f\n", threads, names[kind], each(kind, threads));
	return 0;
}
