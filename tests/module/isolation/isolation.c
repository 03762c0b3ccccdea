// SPDX-License-Identifier: GPL-2.0
/*
 * A well-behaved program beside hostile ones of other users, on the same processor, that do the
 * worst that their limits allow: its events are no later than beside programs that do the same
 * with timerfds, by 0.25 ms, and the machine answers.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i), or it would be
 * the computer's load that is measured. Programs that only spin are there to see
 * what comes of the contest for the processor alone.
 *
 * module parameters: max_user_timers=2000000
 * Environment: TIMES=N for N times as long.
 */
#include "cgroup.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define ALICE 2001
#define BOB 2002
#define TIMERS 2000
#define SPREAD (100 * MSEC)
#define BATCH 1000

/* How many processes hostile users have, the first of them, or all; and how many of these in all */
#define HOSTILES 8
#define FEW 2
#define WHEELS 1000
#define WATCHES 150000
#define LIMIT 200000	/* timers, some in wheels that take ten times their memory */

/* Nobody at the keyboard minds waiting so long */
#define ANSWER (100 * MSEC)

/* What a program has seen */
struct record {
	__u64 events, early, wrong;
	__u64 tick;
	__u64 late;	/* the 99.9th percentile, in ns */
	__u64 latest;
};

struct shared {
	bool over;
	__u64 deeds;		/* what hostile programs have done */
	__u64 answers;
	__u64 slowest;		/* to answer, in ns */
	struct record record;
};

static struct shared *shared;

/* By how much later than beside timerfds */
#define GRACE (250 * USEC)

static __u64 duration(void)
{
	return number_of("TIMES", 1) * 400 * MSEC;
}

static bool over(void)
{
	return __atomic_load_n(&shared->over, __ATOMIC_ACQUIRE);
}

static void did(__u64 nr)
{
	__atomic_add_fetch(&shared->deeds, nr, __ATOMIC_RELAXED);
}

/* ---- the well-behaved program ---- */

static __u64 deadlines[TIMERS];
static __u32 lateness[1 << 20];

static int compare(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return x < y ? -1 : x > y;
}

static void note(struct record *record, const struct twheel_event *ev, __u64 time)
{
	__u64 due = (ev->deadline + record->tick - 1) / record->tick * record->tick;

	record->early += time < ev->deadline;
	record->wrong += ev->user_data >= TIMERS ||
			deadlines[ev->user_data] != ev->deadline;
	/* What was armed too late for its tick is ready at once. */
	lateness[record->events++ % ARRAY_SIZE(lateness)] =
		time > due ? time - due : 0;
}

static struct twheel_op draw(__u64 i)
{
	static __u64 seed = 5;

	deadlines[i] = now(CLOCK_MONOTONIC) + random_next(&seed) % SPREAD;
	return op_arm(TWHEEL_ABS, deadlines[i], i);
}

/* Each event is a timeout of a connection, which gets another at once */
static void serve(int fd, struct record *record)
{
	__u64 end = now(CLOCK_MONOTONIC) + duration(), time;
	static struct twheel_event ev[TIMERS];
	static struct twheel_op again[TIMERS];
	long n, i;

	for (i = 0; i < TIMERS; i++)
		again[i] = draw(i);
	submit_all(fd, again, TIMERS);
	do {
		n = read_events(fd, ev, TIMERS);
		time = now(CLOCK_MONOTONIC);
		if (!EXPECT_TRUE(n > 0, "read gave %ld", n))
			return;
		for (i = 0; i < n; i++) {
			note(record, &ev[i], time);
			again[i] = draw(ev[i].user_data % TIMERS);
		}
		submit_all(fd, again, n);
	} while (time < end);
}

static void served_child(void)
{
	struct record *record = &shared->record;
	struct sched_param param = { .sched_priority = 1 };
	struct twheel_info info;
	int fd;

	/* Or it would be what the scheduler leaves to its next tick that is measured. */
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		tap_bail("sched_setscheduler: %s", strerror(errno));
	become(ALICE);
	fd = wheel_open(0);
	record->tick = wheel_info(fd).tick;
	serve(fd, record);
	info = wheel_info(fd);
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	EXPECT_EQ(info.pending + info.ready, TIMERS);
	EXPECT_TRUE(record->events < ARRAY_SIZE(lateness), "too many to note");
	qsort(lateness, record->events, sizeof(lateness[0]), compare);
	record->late = lateness[record->events - 1 - record->events / 1000];
	record->latest = lateness[record->events - 1];
}

/* Somebody at the keyboard: each of their commands is a new process */
static void answering_child(void)
{
	while (!over()) {
		__u64 from = now(CLOCK_MONOTONIC), took;
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		EXPECT_TRUE(pid > 0 && waitpid(pid, &status, 0) == pid);
		took = now(CLOCK_MONOTONIC) - from;
		if (took > shared->slowest)
			shared->slowest = took;
		shared->answers++;
		sleep_ns(10 * MSEC);
	}
}

/* ---- hostile ones ---- */

static struct twheel_op ops[LIMIT];
static struct twheel_event events[BATCH];
static int fds[WHEELS];
static bool timerfds;
static int processes;

static void timerfd_set(int fd, int flags, __u64 at, __u64 interval)
{
	struct itimerspec spec = { { interval / SEC, interval % SEC }, { at / SEC, at % SEC } };

	timerfd_settime(fd, flags, &spec, NULL);
}

static int open_one(__u64 tick)
{
	int fd;

	if (!timerfds)
		return wheel_new(TWHEEL_CLOCK_MONOTONIC, tick);
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd < 0)
		tap_bail("timerfd_create: %s", strerror(errno));
	return fd;
}

static int open_all(int nr, __u64 tick)
{
	int i;

	nr /= processes;
	for (i = 0; i < nr; i++)
		fds[i] = open_one(tick);
	return nr;
}

/* A timerfd has one timer: the first. */
static void arm_some(int fd, int nr, __u64 at, __u64 step)
{
	int i;

	if (timerfds) {
		timerfd_set(fd, TFD_TIMER_ABSTIME, at, 0);
		did(1);
		return;
	}
	for (i = 0; i < nr; i++)
		ops[i] = op_arm(TWHEEL_ABS, at + i * step, i);
	did(submit(fd, ops, nr));
}

static void read_some(int fd)
{
	if (read(fd, events, sizeof(events)) > 0)
		did(1);
}

/* As many as there are descriptors, each with periods as short as can be */
static void periods_deed(void)
{
	int i, nr = open_all(WHEELS, USEC);

	for (i = 0; i < nr; i++) {
		struct twheel_op op = op_arm(0, 1, 0);

		op.interval = 1;
		if (timerfds)
			timerfd_set(fds[i], 0, 1, 1);
		else
			op_single(fds[i], &op);
	}
	for (i = 0; !over(); i = (i + 1) % nr)
		read_some(fds[i]);
}

/* In each tick of 1 us some timer is due, of one or another */
static void ticks_deed(void)
{
	int i, nr = open_all(WHEELS, USEC);

	while (!over()) {
		__u64 from = now(CLOCK_MONOTONIC) + 10 * MSEC;

		for (i = 0; i < nr; i++) {
			arm_some(fds[i], 80, from + i * USEC, nr * USEC);
			read_some(fds[i]);
		}
	}
}

/* Open such wheels, and wait for all of them */
static void waiting_deed(void)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), i, n, nr = open_all(WHEELS, USEC);
	struct epoll_event found[64];

	for (i = 0; i < nr; i++) {
		struct epoll_event event = { EPOLLIN, { .u32 = i } };

		if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &event))
			tap_bail("epoll_ctl: %s", strerror(errno));
	}
	while (!over()) {
		__u64 from = now(CLOCK_MONOTONIC) + 2 * MSEC;

		for (i = 0; i < nr; i++)
			arm_some(fds[i], 20, from + i * USEC, nr * USEC);
		do {
			n = epoll_wait(ep, found, 64, 2);
			for (i = 0; i < n; i++)
				read_some(fds[found[i].data.u32]);
		} while (n > 0 && now(CLOCK_MONOTONIC) < from + 20 * MSEC);
	}
}

/* All that the limit allows in a single tick of each */
static void bursts_deed(void)
{
	const int n = LIMIT / 50 / processes;
	int i, nr = open_all(50, 0);

	while (!over()) {
		__u64 at = now(CLOCK_MONOTONIC) + 30 * MSEC;

		for (i = 0; i < nr; i++) {
			read_some(fds[i]);
			arm_some(fds[i], n, at, 0);
		}
	}
}

/* A slot of an upper level in each, which is cascaded */
static void cascades_deed(void)
{
	int i, nr = open_all(WHEELS, USEC);

	while (!over()) {
		__u64 from = now(CLOCK_MONOTONIC) + 20 * MSEC;

		for (i = 0; i < nr; i++) {
			read_some(fds[i]);
			arm_some(fds[i], LIMIT / WHEELS, from, USEC);
		}
	}
}

/* Arrays as long as the limit, armed, moved and drained without end */
static void batches_deed(void)
{
	const int n = timerfds ? 1 : LIMIT / processes;
	int fd, i;

	fd = open_one(0);
	while (!over()) {
		arm_some(fd, n, now(CLOCK_MONOTONIC) + HOUR, MSEC);
		if (timerfds)
			continue;
		for (i = 0; i < n; i++) {
			ops[i].opcode = TWHEEL_OP_MODIFY;
			ops[i].flags = 0;
			ops[i].deadline = MSEC * i;
		}
		did(submit(fd, ops, n));
		did(drain(fd, ops, n));
		while (read_events(fd, events, BATCH) > 0)
			;
	}
}

/* Open and close what has something in it */
static void opens_deed(void)
{
	while (!over()) {
		int i, nr = open_all(100, USEC);

		for (i = 0; i < nr; i++)
			arm_some(fds[i], 1, now(CLOCK_MONOTONIC) + i * USEC, 0);
		for (i = 0; i < nr; i++)
			close(fds[i]);
	}
}

/* All are due at once, just before a tick of the other's, and the kernel tells of each by itself */
static void together_deed(void)
{
	int efd = eventfd(0, EFD_CLOEXEC), i, nr = open_all(WHEELS, USEC);

	for (i = 0; !timerfds && i < nr; i++)
		wheel_eventfd(fds[i], efd);
	while (!over()) {
		__u64 at = (now(CLOCK_MONOTONIC) / (4 * MSEC) + 8) * 4 * MSEC - USEC;

		for (i = 0; i < nr; i++)
			arm_some(fds[i], 1, at, 0);
		/* What the kernel tells by itself takes 10 ms. */
		while (!over() && now(CLOCK_MONOTONIC) < at + 20 * MSEC)
			sleep_ns(4 * MSEC);
	}
}

/* One with very many watches, that expires each millisecond */
static void watches_deed(void)
{
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u32 = 0 } };
	int ep = epoll_create1(EPOLL_CLOEXEC), fd = open_one(USEC), i;

	for (i = 0; i < WATCHES / processes; i++) {
		int other = dup(fd);

		if (other < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, other, &event))
			tap_bail("descriptor %d: %s", i, strerror(errno));
	}
	while (!over()) {
		arm_some(fd, 1, now(CLOCK_MONOTONIC) + MSEC, 0);
		sleep_ns(2 * MSEC);
		read_some(fd);
	}
}

/* ---- together ---- */

static void (*deed)(void);
static int nth;

static void hostile_child(void)
{
	become(BOB + nth);
	deed();
}

static struct record beside(int nr)
{
	pid_t pids[HOSTILES], served, answering;
	const struct record *record = &shared->record;

	memset(shared, 0, sizeof(*shared));
	processes = nr;
	for (nth = 0; nth < nr; nth++)
		pids[nth] = tap_fork(hostile_child);
	while (nr && !__atomic_load_n(&shared->deeds, __ATOMIC_RELAXED))
		sleep_ns(MSEC);
	served = tap_fork(served_child);
	answering = tap_fork(answering_child);
	tap_join(served);
	tap_join(answering);
	while (nth--)
		tap_join(pids[nth]);
	tap_diag("%s: %s: 99.9 %% of %llu events within %llu us, all in %llu; answers in %llu",
		 tap_name, timerfds ? "timerfds" : "wheels", record->events, record->late / USEC,
		 record->latest / USEC, shared->slowest / USEC);
	EXPECT_EQ(record->early, 0);
	EXPECT_EQ(record->wrong, 0);
	EXPECT_TRUE(record->events > 100, "%llu events", record->events);
	return *record;
}

/*
 * Waking this many takes ms, and not always as many: there, it may be half more. (Where much memory
 * is freed, Linux 6.1 now and then gives all free pages of a processor back at once, with
 * interrupts off: 0.2 ms.)
 */
static void compare_with_timerfds(int nr, void (*does)(void))
{
	struct record with, without;
	__u64 answer;

	deed = does;
	timerfds = true;
	without = beside(nr);
	answer = shared->slowest;
	timerfds = false;
	with = beside(nr);
	EXPECT_TRUE(with.late <= without.late + without.late / 2 + GRACE,
		    "%llu us, and beside timerfds %llu us", with.late / USEC, without.late / USEC);
	EXPECT_TRUE(with.latest <= without.latest + without.latest / 2 + GRACE,
		    "%llu us, and beside timerfds %llu us", with.latest / USEC,
		    without.latest / USEC);
	EXPECT_TRUE(shared->answers && shared->slowest < answer + ANSWER, "%llu us",
		    shared->slowest / USEC);
}

int main(void)
{
	tap_start(1000);
	shared = map_shared(sizeof(*shared));
	open_to_all();
	allow_descriptors(WATCHES);
	write_text("/proc/sys/fs/epoll/max_user_watches", "2000000");
	RUN_CALL(compare_with_timerfds(FEW, periods_deed),
		 "a thousand with the shortest periods");
	RUN_CALL(compare_with_timerfds(HOSTILES, ticks_deed),
		 "timers in every microsecond, of eight users");
	RUN_CALL(compare_with_timerfds(FEW, waiting_deed), "the same, and their programs wait");
	RUN_CALL(compare_with_timerfds(FEW, bursts_deed), "all timers of a user in one tick");
	RUN_CALL(compare_with_timerfds(HOSTILES, cascades_deed),
		 "a thousand that cascade, of eight users");
	RUN_CALL(compare_with_timerfds(FEW, batches_deed), "batches of all timers of a user");
	RUN_CALL(compare_with_timerfds(FEW, opens_deed), "opened and closed all the time");
	RUN_CALL(compare_with_timerfds(FEW, together_deed),
		 "a thousand that are due together, with an eventfd");
	RUN_CALL(compare_with_timerfds(1, watches_deed), "150,000 watches of one");
	return tap_end();
}
