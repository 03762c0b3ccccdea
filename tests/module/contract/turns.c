// SPDX-License-Identifier: GPL-2.0
/*
 * More wheels of one user than he may have turned: while they wait for their turns, on
 * two processors, they are closed, read, polled, armed anew and emptied by others. Of
 * those that are left each has its turn.
 *
 * Environment: TIMES=N for N times as long.
 *
 * also in: matrix small-a
 */
#include "turns.h"

#include <poll.h>
#include <pthread.h>

#define THREADS 4
#define WHEELS 240

/* What becomes of a wheel before its turn: of each of these as many */
enum fate { IS_LEFT, IS_CLOSED, IS_READ, IS_POLLED, IS_EMPTIED, IS_ARMED, FATES };

/**
 * struct job - what one thread does
 * @nr: which it is
 * @rounds: how often
 * @lead: so long it takes to arm all, about
 */
struct job {
	pthread_t thread;
	unsigned int nr;
	unsigned int rounds;
	__u64 lead;
};

static void read_all(int fd, __u64 want)
{
	struct twheel_event ev[TIMERS + 1];

	if (want)
		EXPECT_EQ(collect(fd, ev, want), want);
	EXPECT_EQ(read_events(fd, ev, 1), -EAGAIN);
}

static void meet_fate(int fd, enum fate fate)
{
	struct twheel_op ops[TIMERS];
	long ret;

	switch (fate) {
	case IS_READ:
		read_all(fd, TIMERS);
		break;
	case IS_POLLED:
		readable(fd, 0);
		read_all(fd, TIMERS);
		break;
	case IS_EMPTIED:
		ret = drain(fd, ops, TIMERS);
		if (EXPECT_TRUE(ret >= 0 && ret <= TIMERS, "drain gave %ld", ret))
			read_all(fd, TIMERS - ret);
		arm(fd, 0, USEC, TIMERS);
		read_all(fd, 1);
		break;
	case IS_ARMED:
		arm(fd, 0, 1, TIMERS);
		read_all(fd, TIMERS + 1);
		break;
	default:
		break;
	}
}

static void play_round(struct job *job)
{
	__u64 due = now(CLOCK_MONOTONIC) + job->lead;
	int fds[WHEELS], i;

	for (i = 0; i < WHEELS; i++)
		fds[i] = open_wheel(due);
	spin_until(due, &job->lead);
	/* Those that come last in the queue first */
	for (i = WHEELS - 1; i >= 0; i--) {
		meet_fate(fds[i], i % FATES);
		if (i % FATES == IS_CLOSED)
			close(fds[i]);
	}
	for (i = 0; i < WHEELS; i += FATES)
		EXPECT_TRUE(WAIT_FOR(wheel_info(fds[i]).ready == TIMERS), "it has no turn");
	for (i = 0; i < WHEELS; i++)
		if (i % FATES != IS_CLOSED)
			close(fds[i]);
}

static void *play(void *arg)
{
	struct job *job = arg;
	unsigned int i;

	pin_to(job->nr % 2);
	for (i = 0; i < job->rounds; i++)
		play_round(job);
	return NULL;
}

static void play_all(unsigned int slower)
{
	struct job jobs[THREADS] = {};
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		jobs[i].nr = i;
		jobs[i].lead = 50 * MSEC * slower;
		jobs[i].rounds = 6 * number_of("TIMES", 1);
		pthread_create(&jobs[i].thread, NULL, play, &jobs[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(jobs[i].thread, NULL);
	tap_diag("%u wheels", THREADS * jobs[0].rounds * WHEELS);
}

static void turns(void)
{
	expect_deferred(play_all);
}

int main(void)
{
	tap_start(100 * number_of("TIMES", 1));
	RUN(turns, "who waits for its turn may be closed, read, polled, emptied, armed");
	return tap_end();
}
