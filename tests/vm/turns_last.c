// SPDX-License-Identifier: GPL-2.0
/*
 * A user whose wheels, with shared timers and without, wait for their turns, closes all
 * of them at once, so that his account goes while its timers are set and his wheels'
 * workers run: from several processes, each again and again.
 *
 * Environment: TIMES=N for N times as long.
 */
#include "shared.h"

#include <grp.h>

#define PROCESSES 4
#define PLAIN 60
#define SHARED 12
#define TIMERS 40	/* of a wheel, each in a tick of its own */
#define LEAD (5 * MSEC)

static unsigned int rounds;
static unsigned int child_nr;

static int plain_wheel(__u64 due)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), k;
	struct twheel_op ops[TIMERS];

	for (k = 0; k < TIMERS; k++)
		ops[k] = op_arm(TWHEEL_ABS, due + k * USEC, k);
	submit_all(fd, ops, TIMERS);
	return fd;
}

static void shared_wheel(struct client *c, __u64 due)
{
	__u32 k;

	client_open(c, TWHEEL_CLOCK_MONOTONIC, USEC, 600);
	for (k = 0; k < 600; k++)
		shared_arm(c, k, due + k * USEC);
}

static void play_round(__u64 *seed)
{
	__u64 due = now(CLOCK_MONOTONIC) + LEAD, r;
	struct client c[SHARED];
	int fds[PLAIN], i;

	for (i = 0; i < PLAIN; i++)
		fds[i] = plain_wheel(due);
	for (i = 0; i < SHARED; i++)
		shared_wheel(&c[i], due);
	r = random_next(seed);
	due += r % (2 * MSEC);
	while (now(CLOCK_MONOTONIC) < due)
		;
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
	__u64 seed = child_nr + 1;
	unsigned int i;

	if (setgroups(0, NULL) || setresgid(3000 + child_nr, 3000 + child_nr, 3000 + child_nr) ||
	    setresuid(3000 + child_nr, 3000 + child_nr, 3000 + child_nr))
		tap_bail("setuid: %s", strerror(errno));
	for (i = 0; i < rounds; i++)
		play_round(&seed);
}

static void turns(void)
{
	const char *text = getenv("TIMES");
	__u64 deferred = module_counter("deferred");
	pid_t pids[PROCESSES];

	rounds = 40 * (text ? atoi(text) : 1);
	for (child_nr = 0; child_nr < PROCESSES; child_nr++)
		pids[child_nr] = tap_fork(play);
	for (child_nr = 0; child_nr < PROCESSES; child_nr++)
		tap_join(pids[child_nr]);
	deferred = module_counter("deferred") - deferred;
	CHECK(deferred, "none was deferred");
	tap_diag("%llu times deferred", deferred);
}

int main(void)
{
	struct stat st;

	tap_start(100);
	/* the root of an initramfs may be closed to others */
	if (stat(DEVICE, &st) || chmod(DEVICE, 0666) || chmod("/", 0755))
		tap_bail("%s: %s", DEVICE, strerror(errno));
	RUN(turns, "a user who closes all while they wait");
	chmod(DEVICE, st.st_mode & 0777);
	return tap_end();
}
