// SPDX-License-Identifier: GPL-2.0
/*
 * A user whose wheels, with shared timers and without, wait for their turns, closes all
 * of them at once, so that his account goes while its timers are set and his wheels'
 * workers run: from several processes, each again and again.
 *
 * Environment: TIMES=N for N times as long.
 *
 * also in: sanitize small
 */
#include "shared.h"
#include "turns.h"
#include "users.h"

#define PROCESSES 4
#define PLAIN 60
#define SHARED 12
#define SHARED_TIMERS 600

static unsigned int child_nr;
static __u64 lead;	/* so long it takes to arm all, about */

static void shared_wheel(struct client *c, __u64 due)
{
	__u32 k;

	client_open(c, TWHEEL_CLOCK_MONOTONIC, USEC, SHARED_TIMERS);
	for (k = 0; k < SHARED_TIMERS; k++)
		shared_arm(c, k, due + k * USEC);
}

static void play_round(__u64 *seed)
{
	__u64 due = now(CLOCK_MONOTONIC) + lead;
	struct client c[SHARED];
	int fds[PLAIN], i;

	for (i = 0; i < PLAIN; i++)
		fds[i] = open_wheel(due);
	for (i = 0; i < SHARED; i++)
		shared_wheel(&c[i], due);
	spin_until(due + random_next(seed) % (2 * MSEC), &lead);
	for (i = 0; i < SHARED; i++) {
		struct twheel_event ev[64];
		struct twheel_op ops[64];

		switch (random_next(seed) % 6) {
		case 0:
			doorbell_ring(c[i].fd);
			break;
		case 1:
			readable(c[i].fd, 0);
			break;
		case 2:
			read_events(c[i].fd, ev, 64);
			break;
		case 3:
			drain(c[i].fd, ops, 64);
			break;
		default:
			break;
		}
	}
	for (i = 0; i < SHARED; i++)
		client_close(&c[i]);
	for (i = 0; i < PLAIN; i++)
		close(fds[i]);
}

static void play(void)
{
	/* It shall not take longer on a kernel that is slow, where arming does. */
	unsigned int i, patience = number_of("PATIENCE", 1);
	unsigned int rounds = (patience > 1 ? 3 : 5) * number_of("TIMES", 1);
	__u64 seed = child_nr + 1;

	become(3000 + child_nr);
	lead *= patience;
	for (i = 0; i < rounds; i++)
		play_round(&seed);
}

static void play_all(unsigned int slower)
{
	pid_t pids[PROCESSES];

	lead = 5 * MSEC * slower;
	for (child_nr = 0; child_nr < PROCESSES; child_nr++)
		pids[child_nr] = tap_fork(play);
	for (child_nr = 0; child_nr < PROCESSES; child_nr++)
		tap_join(pids[child_nr]);
}

static void turns(void)
{
	expect_deferred(play_all);
}

int main(void)
{
	mode_t mode;

	tap_start(100 * number_of("TIMES", 1));
	mode = open_to_all();
	RUN(turns, "a user who closes all while they wait");
	chmod(DEVICE, mode);
	return tap_end();
}
