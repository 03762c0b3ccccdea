// SPDX-License-Identifier: GPL-2.0
/*
 * Users whose wheels want more of a processor than they may have, so that the wheels wait
 * for their turns. One has them, on two processors, closed, read, polled, armed anew and
 * emptied meanwhile: of those that are left each has its turn. Others close all at once, with
 * shared timers and without, so that their account goes while its timers are set and their
 * wheels' workers run.
 *
 * Environment: TIMES=N for N times as long.
 *
 * long: a thousand wheels, again and again
 * also in: matrix sanitize small
 */
#include "shared.h"
#include "users.h"

#define TIMERS 50	/* of a wheel, each in a tick of its own */

static int open_wheel(__u64 due)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), k;
	struct twheel_op ops[TIMERS];

	for (k = 0; k < TIMERS; k++)
		ops[k] = op_arm(TWHEEL_ABS, due + k * USEC, k);
	submit_all(fd, ops, TIMERS);
	return fd;
}

/* What is due then is armed by now; or it takes a longer @lead, the next time. */
static void spin_until(__u64 due, __u64 *lead)
{
	if (now(CLOCK_MONOTONIC) > due && *lead < SEC)
		*lead *= 2;
	while (now(CLOCK_MONOTONIC) < due)
		;
}

/*
 * Have them wait, and see that some had to. Where a busy machine is too late to arm all before
 * they are due, it has four times as long the next time.
 */
static void expect_deferred(void (*play_all)(unsigned int slower))
{
	__u64 before = module_counter("deferred"), deferred = 0;
	unsigned int i;

	for (i = 0; i < 3 && !deferred; i++) {
		play_all(1 << (2 * i));
		deferred = module_counter("deferred") - before;
	}
	EXPECT_TRUE(deferred, "none was deferred");
	tap_diag("%llu times deferred", deferred);
}

/* It shall not take longer on a kernel that is slow, where arming does. */
static unsigned int rounds(unsigned int most)
{
	return (number_of("PATIENCE", 1) > 1 ? most / 2 : most) * number_of("TIMES", 1);
}

/* ---- what becomes of a wheel before its turn ---- */

#define THREADS 4
#define WHEELS 240

/* Of each of these as many */
enum fate { IS_LEFT, IS_CLOSED, IS_READ, IS_POLLED, IS_EMPTIED, IS_ARMED, FATES };

static __u64 fates_lead;	/* so long it takes to arm all, about, at first */

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
	case IS_CLOSED:
		close(fd);
		break;
	case IS_POLLED:
		readable(fd, 0);
		fallthrough;
	case IS_READ:
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

static void fates_round(__u64 *lead)
{
	__u64 due = now(CLOCK_MONOTONIC) + *lead;
	int fds[WHEELS], i;

	for (i = 0; i < WHEELS; i++)
		fds[i] = open_wheel(due);
	spin_until(due, lead);
	/* Those that come last in the queue first */
	for (i = WHEELS - 1; i >= 0; i--)
		meet_fate(fds[i], i % FATES);
	for (i = IS_LEFT; i < WHEELS; i += FATES)
		EXPECT_TRUE(WAIT_FOR(wheel_info(fds[i]).ready == TIMERS), "it has no turn");
	for (i = 0; i < WHEELS; i++)
		if (i % FATES != IS_CLOSED)
			close(fds[i]);
}

static void *play_fates(void *cpu)
{
	unsigned int left = rounds(4);
	__u64 lead = fates_lead;

	pin_to((long)cpu);
	while (left--)
		fates_round(&lead);
	return NULL;
}

static void play_all_fates(unsigned int slower)
{
	pthread_t threads[THREADS];
	long i;

	fates_lead = 50 * MSEC * slower;
	for (i = 0; i < THREADS; i++)
		thread_start(&threads[i], play_fates, (void *)(i % 2));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- users who close all while it waits ---- */

#define PROCESSES 4
#define PLAIN 60
#define SHARED 12
#define SHARED_TIMERS 600

static unsigned int user;
static __u64 users_lead;

static void shared_wheel(struct client *c, __u64 due)
{
	__u32 k;

	client_open(c, TWHEEL_CLOCK_MONOTONIC, USEC, SHARED_TIMERS);
	for (k = 0; k < SHARED_TIMERS; k++)
		shared_arm(c, k, due + k * USEC);
}

/* Some call, or none */
static void some_call(int fd, __u64 r)
{
	struct twheel_event ev[64];
	struct twheel_op ops[64];

	switch (r % 6) {
	case 0:
		doorbell_ring(fd);
		break;
	case 1:
		readable(fd, 0);
		break;
	case 2:
		read_events(fd, ev, 64);
		break;
	case 3:
		drain(fd, ops, 64);
		break;
	default:
		break;
	}
}

static void closing_round(__u64 *seed)
{
	__u64 due = now(CLOCK_MONOTONIC) + users_lead;
	struct client c[SHARED];
	int fds[PLAIN], i;

	for (i = 0; i < PLAIN; i++)
		fds[i] = open_wheel(due);
	for (i = 0; i < SHARED; i++)
		shared_wheel(&c[i], due);
	spin_until(due + random_next(seed) % (2 * MSEC), &users_lead);
	for (i = 0; i < SHARED; i++)
		some_call(c[i].fd, random_next(seed));
	for (i = 0; i < SHARED; i++)
		client_close(&c[i]);
	for (i = 0; i < PLAIN; i++)
		close(fds[i]);
}

static void closing_child(void)
{
	unsigned int left = rounds(5);
	__u64 seed = user + 1;

	become(3000 + user);
	users_lead *= number_of("PATIENCE", 1);
	while (left--)
		closing_round(&seed);
}

static void play_all_users(unsigned int slower)
{
	pid_t pids[PROCESSES];

	users_lead = 5 * MSEC * slower;
	for (user = 0; user < PROCESSES; user++)
		pids[user] = tap_fork(closing_child);
	for (user = 0; user < PROCESSES; user++)
		tap_join(pids[user]);
}

int main(void)
{
	mode_t mode = open_to_all();

	tap_start(200 * number_of("TIMES", 1));
	RUN_CALL(expect_deferred(play_all_fates),
		 "who waits for its turn may be closed, read, polled, emptied, armed");
	RUN_CALL(expect_deferred(play_all_users), "a user who closes all while they wait");
	chmod(DEVICE, mode);
	return tap_end();
}
