// SPDX-License-Identifier: GPL-2.0
/*
 * A user who has more uids than one, by a user namespace with subordinate uids, has
 * no more of anything: timers are counted for who owns the outermost namespace that root
 * has not made, and time in soft interrupts for all together. Where root made it (a container),
 * each of its uids is a user.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=200000 max_unprivileged_timers=20000000
 * Environment: TIMES=N for N times as long.
 */
#include "cgroup.h"

#define MALLORY 1000
#define SUBORDINATE 100000	/* the first of his, in the initial namespace */
#define UIDS 16
#define LIMIT (200000 * 40)	/* bytes, with the memory of the wheels; see above */
#define NODE 32
#define TICKS 10000
#define STEP 1000

/* The part of the throughput that others keep beside one uid that many uids may leave */
#define KEPT 90

/* Looks at each, one after the other: a single one is off by 6 % or so. */
#define PAIRS 8

/**
 * struct shared - what processes know of each other
 * @ready: those that hold what they could get
 * @go: they may begin
 * @over: they are to end
 * @held: timers that each has
 */
struct shared {
	int ready;
	bool go;
	bool over;
	__u64 held[2 * UIDS];
};

static struct shared *shared;
static struct twheel_op ops[TICKS];
static int number;	/* of this process among those of a test */

static __u64 duration(void)
{
	return number_of("TIMES", 1) * 400 * MSEC;
}

/* ---- namespaces ---- */

static void write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	err = write_text(path, text);
	if (err)
		tap_bail("%s: %s", path, strerror(-err));
}

/*
 * A process that is root of a namespace of its own, with uids that it maps, and goes on as
 * @child. A user makes it alone; its uids are given by root, as newuidmap(1) does.
 */
static pid_t in_namespace(uid_t owner, void (*child)(void))
{
	int go[2], made[2];
	char byte, map[64];
	pid_t pid;

	if (pipe(go) || pipe(made))
		tap_bail("pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		tap_bad = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (owner)
			become(owner);
		if (unshare(CLONE_NEWUSER) || write(made[1], "", 1) != 1 ||
		    read(go[0], &byte, 1) != 1)
			tap_bail("unshare: %s", strerror(errno));
		if (setresgid(0, 0, 0) || setresuid(0, 0, 0))
			tap_bail("root of it: %s", strerror(errno));
		child();
		fflush(stdout);
		_exit(tap_bad ? 1 : 0);
	}
	if (pid < 0 || read(made[0], &byte, 1) != 1)
		tap_bail("no namespace: %s", strerror(errno));
	snprintf(map, sizeof(map), "0 %d 1\n1 %d %d\n", owner, SUBORDINATE, UIDS);
	write_map(pid, "uid_map", map);
	write_map(pid, "gid_map", map);
	if (write(go[1], "", 1) != 1)
		tap_bail("write: %s", strerror(errno));
	close(go[0]);
	close(go[1]);
	close(made[0]);
	close(made[1]);
	return pid;
}

/* ---- timers ---- */

static void hold(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), i;
	__u64 held = 0;
	long n = fd < 0 ? -errno : 0;

	/* That may be too much already. */
	EXPECT_TRUE(!n || n == -ENOSPC, "open gave %ld", n);
	while (!n) {
		for (i = 0; i < STEP; i++)
			ops[i] = op_arm(0, HOUR, i);
		n = submit(fd, ops, STEP);
		for (i = 0; i < n; i++)
			held += !ops[i].result;
		n = ops[STEP - 1].result;
		EXPECT_TRUE(!n || n == -ENOSPC, "ARM gave %ld", n);
	}
	shared->held[number] = held;
	count_up(&shared->ready);
	while (!is_set(&shared->over))
		sleep_ns(MSEC);
}

static void hold_child(void)
{
	hold();
}

static void hold_as_child(void)
{
	become(number % UIDS + 1);
	hold();
}

static void all_hold_child(void)
{
	pid_t pids[UIDS];

	for (number = 0; number < UIDS; number++)
		pids[number] = tap_fork(hold_as_child);
	while (number--)
		tap_join(pids[number]);
}

/* A namespace in the namespace, by one of its uids */
static void nested_child(void)
{
	become(3);
	if (unshare(CLONE_NEWUSER))
		tap_bail("unshare: %s", strerror(errno));
	hold();
}

/* Has somebody the limit, but for what is less than a piece of memory for each wheel? */
static bool is_limit(__u64 held)
{
	return held * NODE <= LIMIT && held * NODE > LIMIT / 100 * 90;
}

static __u64 sum_held(int nr)
{
	__u64 sum = 0;

	while (nr--)
		sum += shared->held[nr];
	return sum;
}

static void begin(void)
{
	memset(shared, 0, sizeof(*shared));
	number = 0;
}

static void test_timers(void)
{
	pid_t pid;

	begin();
	pid = in_namespace(MALLORY, all_hold_child);
	EXPECT_TRUE(all_ready(&shared->ready, UIDS));
	tap_diag("%s: %d uids hold %llu timers, the limit is %d", tap_name, UIDS,
		 sum_held(UIDS), LIMIT / NODE);
	EXPECT_TRUE(is_limit(sum_held(UIDS)));
	set(&shared->over);
	tap_join(pid);
}

/* What he has outside counts, too */
static void outside_child(void)
{
	become(MALLORY);
	hold();
}

/* Inside of the namespace all are refused, as he has all outside. */
static void test_outside(void (*child)(void), int nr)
{
	pid_t outside, inside;

	begin();
	number = UIDS;
	outside = tap_fork(outside_child);
	EXPECT_TRUE(all_ready(&shared->ready, 1));
	number = 0;
	inside = in_namespace(MALLORY, child);
	EXPECT_TRUE(all_ready(&shared->ready, nr + 1));
	EXPECT_TRUE(is_limit(shared->held[UIDS]));
	EXPECT_EQ(sum_held(UIDS), 0);
	set(&shared->over);
	tap_join(inside);
	tap_join(outside);
}

/* Other users have theirs */
static void test_others(void)
{
	pid_t one, other;

	begin();
	one = in_namespace(MALLORY, hold_child);
	number = 1;
	other = in_namespace(MALLORY + 1, hold_child);
	EXPECT_TRUE(all_ready(&shared->ready, 2));
	EXPECT_TRUE(is_limit(shared->held[0]), "%llu", shared->held[0]);
	EXPECT_TRUE(is_limit(shared->held[1]), "%llu", shared->held[1]);
	set(&shared->over);
	tap_join(one);
	tap_join(other);
}

/* A container that root made for several users */
static void test_container(void)
{
	pid_t pid;
	int i;

	begin();
	pid = in_namespace(0, all_hold_child);
	EXPECT_TRUE(all_ready(&shared->ready, UIDS));
	for (i = 0; i < UIDS; i++)
		EXPECT_TRUE(is_limit(shared->held[i]), "uid %d: %llu", i, shared->held[i]);
	set(&shared->over);
	tap_join(pid);
}

/* ---- time in soft interrupts ---- */

static struct twheel_event events[TICKS];

/* A timer in each microsecond, of one wheel or another */
static void tick_child(void)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC), i;

	count_up(&shared->ready);
	while (!is_set(&shared->go))
		sleep_ns(MSEC);
	while (!is_set(&shared->over)) {
		__u64 from = now(CLOCK_MONOTONIC) + MSEC;

		for (i = 0; i < TICKS / 10; i++)
			ops[i] = op_arm(TWHEEL_ABS, from + i * 10 * USEC + number * USEC,
					i);
		submit(fd, ops, TICKS / 10);
		sleep_ns(11 * MSEC);
		while (read_events(fd, events, TICKS) > 0)
			;
	}
}

static void tick_as_child(void)
{
	become(number + 1);
	tick_child();
}

static bool one_uid;

static void all_tick_child(void)
{
	pid_t pids[UIDS];

	for (number = 0; number < UIDS; number++)
		pids[number] = tap_fork(one_uid ? tick_child : tick_as_child);
	while (number--)
		tap_join(pids[number]);
}

/* What another program counts in an ns meanwhile */
static double counted_beside(void (*hostile)(void))
{
	struct measured m;
	pid_t pid = 0;

	begin();
	if (hostile) {
		pid = in_namespace(MALLORY, hostile);
		EXPECT_TRUE(all_ready(&shared->ready, UIDS));
	}
	set(&shared->go);
	m = measure(1, NULL, 50 * MSEC, duration());
	set(&shared->over);
	if (hostile)
		tap_join(pid);
	return m.count;
}

/*
 * What is left to others depends on who happens to come first: here the same on each run,
 * but another with each change of the code. So the mean of several times counts.
 */
static void test_share(void)
{
	double alone = counted_beside(NULL), one = 0, many = 0;
	int i;

	for (i = 0; i < PAIRS; i++) {
		one_uid = true;
		one += counted_beside(all_tick_child) / alone / PAIRS;
		one_uid = false;
		many += counted_beside(all_tick_child) / alone / PAIRS;
	}
	tap_diag("%s: another program keeps %.1f %% beside one uid with %d wheels", tap_name,
		 100 * one, UIDS);
	tap_diag("%s: and %.1f %% beside as many uids with one each", tap_name, 100 * many);
	EXPECT_TRUE(100 * many >= KEPT * one);
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	shared = map_shared(sizeof(*shared));
	counter_init();
	RUN(test_timers, "subordinate uids share the limit of their owner");
	RUN_CALL(test_outside(all_hold_child, UIDS),
		 "with what he has outside of the namespace");
	RUN_CALL(test_outside(nested_child, 1), "and with a namespace within");
	RUN(test_others, "another user's have another");
	RUN(test_container, "in a namespace that root has made each uid is a user");
	RUN(test_share, "subordinate uids share the time in soft interrupts");
	return tap_end();
}
