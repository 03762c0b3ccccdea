// SPDX-License-Identifier: GPL-2.0
/*
 * A well-behaved program beside hostile ones of another user, on the same
 * processor, that do the worst that their limits allow: its events stay within a
 * tick of what they were alone, by its own clock and by its wheel's statistics, and
 * the machine answers.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i), or it would be
 * the computer's load that is measured. Programs that only spin are there to see
 * what comes of the contest for the processor alone.
 *
 * module parameters: max_user_timers=2000000
 * Environment: TIMES=N for N times as long.
 */
#include "users.h"

#define ALICE 2001
#define BOB 2002
#define TIMERS 2000
#define SPREAD (100 * MSEC)
#define BATCH 1000

/* The hostile user has so many processes, and in all of them so many of these */
#define HOSTILES 2
#define WHEELS 1000
#define LIMIT 200000	/* timers, some in wheels that take ten times their memory */

/* Nobody at the keyboard minds waiting so long */
#define ANSWER (100 * MSEC)

/* What a program has seen */
struct record {
	__u64 events, early, wrong;
	__u64 tick;
	__u64 late;	/* the 99.9th percentile, in ns */
	__u64 ready;	/* the same by the wheel's statistics: an upper bound */
};

struct shared {
	bool over;
	__u64 deeds;		/* what hostile programs have done */
	__u64 answers;
	__u64 slowest;		/* to answer, in ns */
	struct record record;
};

static struct shared *shared;
static struct record alone;

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

/* The longest time of those that the statistics count together with this one */
static __u64 class_end(__u64 ns)
{
	return ns ? ~0ULL >> __builtin_clzll(ns) : 0;
}

/* The end of the first class of lateness that, with those below, has 99.9 % */
static __u64 wheel_percentile(const struct twheel_stats *stats)
{
	__u64 all = 0, below = 0;
	int i;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++)
		all += stats->lateness[i];
	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++) {
		below += stats->lateness[i];
		if (below * 1000 >= all * 999)
			break;
	}
	return i ? (1ULL << i) - 1 : 0;
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
	struct twheel_stats stats;
	struct twheel_info info;
	int fd;

	become(ALICE);
	fd = wheel_open(0);
	record->tick = wheel_info(fd).tick;
	serve(fd, record);
	stats = wheel_stats(fd);
	info = wheel_info(fd);
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	EXPECT_EQ(info.pending + info.ready, TIMERS);
	EXPECT_TRUE(record->events < ARRAY_SIZE(lateness), "too many to note");
	qsort(lateness, record->events, sizeof(lateness[0]), compare);
	record->late = lateness[record->events - 1 - record->events / 1000];
	record->ready = wheel_percentile(&stats);
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
static int wheels[WHEELS];

static void open_wheels(int nr, __u64 tick)
{
	int i;

	for (i = 0; i < nr; i++)
		wheels[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, tick);
}

/* As many wheels as there are descriptors, each with periods as short as can be */
static void periods_child(void)
{
	int i, k, nr = WHEELS / HOSTILES;

	become(BOB);
	open_wheels(nr, USEC);
	for (i = 0; i < nr; i++) {
		for (k = 0; k < 50; k++) {
			ops[k] = op_arm(0, 1, k);
			ops[k].interval = 1;
		}
		submit_all(wheels[i], ops, 50);
	}
	for (i = 0; !over(); i = (i + 1) % nr) {
		long n = read_events(wheels[i], events, BATCH);

		did(n > 0 ? n : 0);
	}
}

/* In each tick of 1 us some timer is due, of one wheel or another */
static void ticks_child(void)
{
	int i, k, nr = WHEELS / HOSTILES;

	become(BOB);
	open_wheels(nr, USEC);
	while (!over()) {
		__u64 from = now(CLOCK_MONOTONIC) + 10 * MSEC;

		for (i = 0; i < nr; i++) {
			const int n = 80;

			for (k = 0; k < n; k++)
				ops[k] = op_arm(TWHEEL_ABS, from +
						(i + k * nr) * 1 * USEC, k);
			did(submit(wheels[i], ops, n));
			read_events(wheels[i], events, BATCH);
		}
	}
}

/* All that the limit allows in a single tick of every wheel */
static void bursts_child(void)
{
	const int nr = 50, n = LIMIT / HOSTILES / nr;
	int i, k;

	become(BOB);
	open_wheels(nr, 0);
	while (!over()) {
		__u64 at = now(CLOCK_MONOTONIC) + 30 * MSEC;

		for (i = 0; i < nr; i++) {
			while (read_events(wheels[i], events, BATCH) > 0)
				;
			for (k = 0; k < n; k++)
				ops[k] = op_arm(TWHEEL_ABS, at, k);
			did(submit(wheels[i], ops, n));
		}
	}
}

/* Arrays as long as the limit, armed, moved and drained without end */
static void batches_child(void)
{
	const int n = LIMIT / HOSTILES;
	int fd, i;

	become(BOB);
	fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, 0);
	while (!over()) {
		for (i = 0; i < n; i++)
			ops[i] = op_arm(0, HOUR + i * MSEC, i);
		did(submit(fd, ops, n));
		for (i = 0; i < n; i++) {
			ops[i].opcode = TWHEEL_OP_MODIFY;
			ops[i].deadline = MSEC * i;
		}
		did(submit(fd, ops, n));
		did(drain(fd, ops, n));
		while (read_events(fd, events, BATCH) > 0)
			;
	}
}

/* Opens and closes wheels that have something in them */
static void opens_child(void)
{
	become(BOB);
	while (!over()) {
		int i;

		open_wheels(100, USEC);
		for (i = 0; i < 100; i++)
			arm(wheels[i], 0, i * USEC, i);
		for (i = 0; i < 100; i++)
			close(wheels[i]);
		did(100);
	}
}

/* No timer at all */
static void spinning_child(void)
{
	become(BOB);
	while (!over())
		did(1);
}

/* ---- together ---- */

static void tell(void)
{
	const struct record *record = &shared->record;

	tap_diag("%s: of %llu events 99.9 %% ready within %llu us, read within %llu us",
		 tap_name, record->events, record->ready / USEC,
		 record->late / USEC);
	tap_diag("%s: the slowest of %llu answers took %llu us", tap_name,
		 shared->answers, shared->slowest / USEC);
}

/*
 * In a short time one wake-up that the scheduler leaves to its next tick is more
 * than 0.1 %.
 */
static void check(const struct record *record)
{
	__u64 grace = record->tick;

	EXPECT_EQ(record->early, 0);
	EXPECT_EQ(record->wrong, 0);
	EXPECT_TRUE(record->events > 100, "%llu events", record->events);
	EXPECT_TRUE(record->ready <= class_end(alone.ready + grace),
		    "%llu us, and alone %llu", record->ready / USEC,
		    alone.ready / USEC);
	if (duration() < 1000 * record->tick)
		grace *= 2;
	EXPECT_TRUE(record->late <= alone.late + grace, "%llu us, and alone %llu",
		    record->late / USEC, alone.late / USEC);
	EXPECT_TRUE(shared->answers && shared->slowest < ANSWER, "%llu us",
		    shared->slowest / USEC);
}

static void beside(void (*hostile)(void))
{
	pid_t pids[HOSTILES], served, answering;
	int i;

	memset(shared, 0, sizeof(*shared));
	for (i = 0; hostile && i < HOSTILES; i++)
		pids[i] = tap_fork(hostile);
	while (hostile && !__atomic_load_n(&shared->deeds, __ATOMIC_RELAXED))
		sleep_ns(MSEC);
	served = tap_fork(served_child);
	answering = tap_fork(answering_child);
	tap_join(served);
	tap_join(answering);
	for (i = 0; hostile && i < HOSTILES; i++)
		tap_join(pids[i]);
	tell();
	if (!hostile)
		alone = shared->record;
	check(&shared->record);
}

int main(void)
{
	tap_start(1000);
	shared = map_shared(sizeof(*shared));
	open_to_all();
	RUN_CALL(beside(NULL), "nobody");
	RUN_CALL(beside(spinning_child), "programs that spin");
	RUN_CALL(beside(periods_child), "a thousand wheels with the shortest periods");
	RUN_CALL(beside(ticks_child), "timers in every microsecond");
	RUN_CALL(beside(bursts_child), "all timers of a user in one tick");
	RUN_CALL(beside(batches_child), "batches of all timers of a user");
	RUN_CALL(beside(opens_child), "wheels opened and closed all the time");
	return tap_end();
}
