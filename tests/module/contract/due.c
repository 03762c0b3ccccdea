// SPDX-License-Identifier: GPL-2.0
/*
 * Wheels that are due, and that nobody has turned: closed, read, polled, armed anew and emptied,
 * on two processors. And users who close all at once, with shared timers and without, while their
 * timers come. And programs that were busy, or stopped: all is there at their next call.
 *
 * Environment: TIMES=N for N times as long.
 *
 * long: a thousand wheels, again and again
 * also in: matrix sanitize
 */
#include "shared.h"
#include "users.h"

#include <linux/aio_abi.h>
#include <sys/epoll.h>

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

#define MOST_LEAD (30 * SEC)

/*
 * Gives true if what is due then was armed in time. If not, it was done as it was armed, so that
 * the round shows nothing: it is to be done again with a longer @lead, unless that is endless.
 */
static bool spin_until(__u64 due, __u64 *lead)
{
	bool late = now(CLOCK_MONOTONIC) >= due;

	if (late && *lead < MOST_LEAD) {
		*lead *= 2;
		return false;
	}
	while (now(CLOCK_MONOTONIC) < due)
		;
	return EXPECT_TRUE(!late, "nothing can be armed in time") || late;
}

/* The test shall not take longer on a kernel that is slow, where arming does. */
static int fewer(int most)
{
	return number_of("PATIENCE", 1) > 1 ? most / 3 : most;
}

/* ---- what becomes of a wheel that is due ---- */

#define THREADS 4
#define WHEELS 240

/* As many of each of these */
enum fate { IS_LEFT, IS_CLOSED, IS_READ, IS_POLLED, IS_EMPTIED, IS_ARMED, FATES };

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

static bool fates_round(__u64 *lead)
{
	__u64 due = now(CLOCK_MONOTONIC) + *lead;
	int fds[WHEELS], i;
	bool in_time;

	for (i = 0; i < WHEELS; i++)
		fds[i] = open_wheel(due);
	in_time = spin_until(due, lead);
	for (i = WHEELS - 1; i >= 0; i--)
		meet_fate(fds[i], i % FATES);
	for (i = IS_LEFT; i < WHEELS; i += FATES)
		EXPECT_TRUE(WAIT_FOR(wheel_info(fds[i]).ready == TIMERS), "it is not turned");
	for (i = 0; i < WHEELS; i++)
		if (i % FATES != IS_CLOSED)
			close(fds[i]);
	return in_time;
}

static void *play_fates(void *cpu)
{
	int left = fewer(6) * number_of("TIMES", 1);
	__u64 lead = 50 * MSEC;	/* so long it takes to arm all, about, at first */

	pin_to((long)cpu);
	while (left)
		left -= fates_round(&lead);
	return NULL;
}

static void test_fates(void)
{
	pthread_t threads[THREADS];
	long i;

	for (i = 0; i < THREADS; i++)
		thread_start(&threads[i], play_fates, (void *)(i % 2));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- users who close all ---- */

#define PROCESSES 4
#define PLAIN 60
#define SHARED 12
#define SHARED_TIMERS 600

static unsigned int user;
static __u64 users_lead = 5 * MSEC;

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

static bool closing_round(__u64 *seed)
{
	__u64 due = now(CLOCK_MONOTONIC) + users_lead;
	struct client c[SHARED];
	int fds[PLAIN], plain = 0, shared = 0, i;
	bool in_time;

	/* What is armed too late takes long, as each shared timer would ring the doorbell. */
	while (plain < fewer(PLAIN) && now(CLOCK_MONOTONIC) < due)
		fds[plain++] = open_wheel(due);
	while (shared < fewer(SHARED) && now(CLOCK_MONOTONIC) < due) {
		/* Where it is armed, it gets into the queue. */
		pin_to(random_next(seed) % 2);
		shared_wheel(&c[shared++], due);
	}
	in_time = spin_until(due + random_next(seed) % (2 * MSEC), &users_lead);
	for (i = 0; i < shared; i++)
		some_call(c[i].fd, random_next(seed));
	pin_to(random_next(seed) % 2);
	for (i = 0; i < shared; i++)
		client_close(&c[i]);
	for (i = 0; i < plain; i++)
		close(fds[i]);
	return in_time;
}

static void closing_child(void)
{
	int left = fewer(6) * number_of("TIMES", 1);
	__u64 seed = user + 1;

	become(3000 + user);
	users_lead *= number_of("PATIENCE", 1);
	while (left)
		left -= closing_round(&seed);
}

static void test_users(void)
{
	pid_t pids[PROCESSES];

	for (user = 0; user < PROCESSES; user++)
		pids[user] = tap_fork(closing_child);
	for (user = 0; user < PROCESSES; user++)
		tap_join(pids[user]);
}

/* ---- programs that do not look ---- */

#define BUSY_TIMERS 3000
#define BUSY_SPREAD (200 * MSEC)

/* The host may keep the processor whose hrtimer makes the wheel due from running for this long. */
#define BUSY_LATE (50 * MSEC)

static __u64 busy_from;	/* none is due before */
static __u64 busy_deadlines[BUSY_TIMERS];

/* In some upper slots, and in ticks of their own; some are moved to later, or cancelled. */
static int arm_busy(__u64 tick, __u64 lead)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, tick);
	static struct twheel_op ops[BUSY_TIMERS];
	__u64 seed = 11;
	unsigned int i;

	busy_from = now(CLOCK_MONOTONIC) + lead;
	for (i = 0; i < BUSY_TIMERS; i++) {
		busy_deadlines[i] = busy_from + random_next(&seed) % BUSY_SPREAD;
		ops[i] = op_arm(TWHEEL_ABS, busy_deadlines[i], i);
	}
	submit_all(fd, ops, BUSY_TIMERS);
	for (i = 0; i < BUSY_TIMERS; i += 7) {
		ops[i].opcode = TWHEEL_OP_CANCEL;
		ops[i].flags = 0;
		ops[i].deadline = 0;
		ops[i].user_data = 0;
		if (!op_single(fd, &ops[i]))
			busy_deadlines[i] = 0;
	}
	return fd;
}

/* The lead grows until none is due before all are armed. */
static int arm_busy_in_time(__u64 tick)
{
	static __u64 lead = 50 * MSEC;
	int fd = arm_busy(tick, lead);

	while (now(CLOCK_MONOTONIC) >= busy_from) {
		close(fd);
		lead *= 2;
		if (lead > 20 * SEC)
			tap_bail("nothing can be armed in time");
		fd = arm_busy(tick, lead);
	}
	return fd;
}

/*
 * How often the hrtimer may come while nobody looks, and during a read: many times on a slow
 * kernel, but not for each timer
 */
#define WAKEUPS (BUSY_TIMERS / 20)

/*
 * All that is due is there, in the order of its ticks, and nothing else. (Where a run does very
 * little, a read may give a part of it first.) And the hrtimer has not come for it again and again,
 * which it had @before.
 */
static void expect_busy(int fd, __u64 tick, __u64 before)
{
	static struct twheel_event ev[2 * BUSY_TIMERS];
	__u64 time = now(CLOCK_MONOTONIC), last = 0, wakeups;
	unsigned int k, missing = 0;
	long n, more, i;

	more = read_events(fd, ev, BUSY_TIMERS);
	n = more > 0 ? more : 0;
	wakeups = wheel_stats(fd).wakeups - before;
	EXPECT_TRUE(wakeups <= WAKEUPS, "%llu wake-ups while nobody looked", wakeups);
	while ((more = read_events(fd, &ev[n], BUSY_TIMERS)) > 0)
		n += more;
	EXPECT_EQ(more, -EAGAIN);
	for (i = 0; i < n; i++) {
		__u64 at = (ev[i].deadline + tick - 1) / tick * tick;

		EXPECT_TRUE(ev[i].deadline && ev[i].deadline == busy_deadlines[ev[i].user_data],
			    "timer %llu", ev[i].user_data);
		EXPECT_TRUE(ev[i].deadline <= now(CLOCK_MONOTONIC), "early");
		EXPECT_TRUE(at >= last, "order");
		last = at;
		busy_deadlines[ev[i].user_data] = 0;
	}
	for (k = 0; k < BUSY_TIMERS; k++)
		missing += busy_deadlines[k] && busy_deadlines[k] + tick + BUSY_LATE <= time;
	EXPECT_EQ(missing, 0);
}

#define LOOKS 3

static void busy_or_stopped(bool stopped, __u64 tick)
{
	int fd = arm_busy_in_time(tick), look;
	struct twheel_stats stats;

	for (look = 1; look <= LOOKS; look++) {
		__u64 until = busy_from + tick + BUSY_LATE + look * BUSY_SPREAD / LOOKS;
		__u64 before = wheel_stats(fd).wakeups;

		if (stopped)
			raise(SIGSTOP);
		while (now(CLOCK_MONOTONIC) < until)
			;
		expect_busy(fd, tick, before);
	}
	stats = wheel_stats(fd);
	EXPECT_EQ(stats.delivered + stats.cancelled, BUSY_TIMERS);
	close(fd);
}

static void test_busy(void)
{
	busy_or_stopped(false, USEC);
	busy_or_stopped(false, MSEC);
	busy_or_stopped(false, 4 * MSEC);
}

static void stopped_child(void)
{
	busy_or_stopped(true, 100 * USEC);
}

static void test_stopped(void)
{
	pid_t pid = tap_fork(stopped_child);
	int status, look;

	for (look = 0; look < LOOKS; look++) {
		EXPECT_TRUE(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		sleep_ns(120 * MSEC);
		kill(pid, SIGCONT);
	}
	tap_join(pid);
}

/* To ask for statistics changes nothing: an administrator does, of others' wheels. */
static void test_statistics(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);

	arm(fd, 0, MSEC, 0);
	sleep_ns(20 * MSEC);
	EXPECT_EQ(wheel_stats(fd).expired, 0);
	EXPECT_EQ(wheel_info(fd).ready, 1);
	EXPECT_EQ(wheel_stats(fd).expired, 1);
	EXPECT_TRUE(wheel_stats(fd).max_lateness >= 10 * MSEC);
	close(fd);
}

/* Each of several who wait is woken: those who look turn the wheel for all. */
static void test_watchers(void)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u32 = 0 } };
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), ep[4], i, times;
	struct twheel_event ev[2];

	for (i = 0; i < 4; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		event.events = i < 2 ? EPOLLIN | EPOLLET : EPOLLIN;
		EXPECT_EQ(epoll_ctl(ep[i], EPOLL_CTL_ADD, fd, &event), 0);
	}
	for (times = 0; times < 50; times++) {
		arm(fd, 0, MSEC, times);
		for (i = 0; i < 4; i++)
			EXPECT_EQ(epoll_wait(ep[i], &event, 1, PATIENCE_MS), 1, "watch %d", i);
		for (i = 0; i < 2; i++)
			EXPECT_EQ(epoll_wait(ep[i], &event, 1, 0), 0, "told twice: watch %d", i);
		EXPECT_EQ(collect(fd, ev, 1), 1);
		for (i = 0; i < 4; i++)
			EXPECT_EQ(epoll_wait(ep[i], &event, 1, 0), 0, "watch %d", i);
	}
	for (i = 0; i < 4; i++)
		close(ep[i]);
	close(fd);
}

/* A worker of the kernel polls for aio, and does not turn the wheel in nobody's time. */
static void test_aio(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), times;
	struct iocb cb = {
		.aio_fildes = fd,
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_buf = POLLIN,
	}, *cbs = &cb;
	struct timespec most = { PATIENCE_MS / 1000, 0 };
	aio_context_t ctx = 0;
	struct io_event event;
	struct twheel_event ev;

	EXPECT_EQ(syscall(SYS_io_setup, 1, &ctx), 0);
	for (times = 0; times < 20; times++) {
		arm(fd, 0, times % 2 ? MSEC : 20 * MSEC, times);
		EXPECT_EQ(syscall(SYS_io_submit, ctx, 1, &cbs), 1);
		/* Another task may turn it first. */
		if (times % 4 == 3)
			readable(fd, PATIENCE_MS);
		EXPECT_EQ(syscall(SYS_io_getevents, ctx, 1, 1, &event, &most), 1, "not told");
		EXPECT_TRUE(event.res & POLLIN, "%lld", event.res);
		EXPECT_EQ(read_events(fd, &ev, 1), 1);
	}
	syscall(SYS_io_destroy, ctx);
	close(fd);
}

/* ---- the doorbell ---- */

/* Shared timers that are due at one tick, of which the kernel does few by itself for long */
#define RUNG 200000

static void test_doorbell(void)
{
	unsigned int tries = 20, before;
	struct client c;
	__u64 lead = 200 * MSEC, due;
	__u32 i;

	do {
		client_open(&c, TWHEEL_CLOCK_MONOTONIC, 4 * MSEC, RUNG);
		due = now(CLOCK_MONOTONIC) + lead;
		for (i = 0; i < RUNG; i++) {
			c.words[i] = shared_word(due);
			shared_push(&c, i);
		}
		doorbell(&c);
		spin_until(due, &lead);
		while (now(CLOCK_MONOTONIC) < due + 4 * MSEC)
			;
		before = shared_waiting(&c);
		doorbell(&c);
		EXPECT_EQ(shared_waiting(&c), RUNG);
		client_close(&c);
	} while (before > RUNG / 2 && EXPECT_TRUE(--tries, "it has shown nothing"));
}

int main(void)
{
	mode_t mode = open_to_all();

	tap_start(200 * number_of("TIMES", 1));
	RUN(test_fates, "who is due may be closed, read, polled, emptied, armed");
	RUN(test_users, "users who close all while it is due");
	RUN(test_busy, "a program that is busy: all is there at its next call");
	RUN(test_stopped, "a program that is stopped: the same");
	RUN(test_statistics, "statistics of a wheel that is due");
	RUN(test_watchers, "all who wait are told, and once");
	RUN(test_aio, "aio that polls is told");
	RUN(test_doorbell, "the doorbell does all that is due");
	chmod(DEVICE, mode);
	return tap_end();
}
