// SPDX-License-Identifier: GPL-2.0
/*
 * A million timers in two hundred wheels, and all who use them are killed at once:
 * one that is at work on them, one that waits in a read, one that has them only
 * open. Soon nothing is left: no wheel, no memory, no charge to the user.
 *
 * Nor does a processor get stuck with it, or the kernel's log would say so.
 *
 * Environment: TIMES=N for so many rounds.
 *
 * module parameters: max_user_timers=1500000
 * most seconds: 300
 */
#include "users.h"

#define ALICE 2001
#define WHEELS 200
#define TIMERS 1000000
#define BATCH 1000
#define COUNTERS "/sys/kernel/debug/twheel/counters"
#define LIMIT PARAMETERS "max_user_timers"

/* Memory that the kernel may keep of what it had to use besides, in kB */
#define KEPT 4096

enum { OWNER, READER, WORKER, USERS };

struct shared {
	pid_t pids[USERS];
	bool working;
	bool checked;
};

static struct shared *shared;
static int wheels[WHEELS];
static struct twheel_op ops[BATCH];
static __u64 seed = 3;

static void set_limit(const char *limit)
{
	if (write_text(LIMIT, limit))
		tap_bail(LIMIT);
}

/* The number that follows @name in a file */
static long long number(const char *path, const char *name)
{
	char text[4096];
	const char *at;

	read_text(path, text, sizeof(text));
	at = strstr(text, name);
	if (!at)
		tap_bail("%s: no %s", path, name);
	return atoll(at + strlen(name));
}

/* Free pages that a processor keeps at hand, which MemFree does not count */
static long kept_at_hand(void)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	char line[256];
	long pages = 0, n;

	if (!f)
		tap_bail("/proc/zoneinfo: %s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &n) == 1)
			pages += n;
	fclose(f);
	return pages;
}

/* In kB */
static long long free_memory(void)
{
	return number("/proc/meminfo", "MemFree:") + kept_at_hand() * PAGE / 1024;
}

static bool there(const bool *what)
{
	return __atomic_load_n(what, __ATOMIC_ACQUIRE);
}

static void set(bool *what)
{
	__atomic_store_n(what, true, __ATOMIC_RELEASE);
}

/* ---- those who are killed ---- */

/*
 * Half of them in the first wheel. One in eight is periodic and one in eight is
 * ready; the others are anywhere in the wheel.
 */
static void arm_batch(int fd)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		ops[i] = op_arm(0, HOUR + random_next(&seed) %
				(2 * HOUR << random_next(&seed) % 20), i);
		if (i % 8 == 1)
			ops[i].interval = HOUR;
		if (i % 8 == 2 && fd != wheels[0])
			ops[i].deadline = 0;
	}
	submit_all(fd, ops, BATCH);
}

static void arm_all(void)
{
	int i;

	for (i = 0; i < WHEELS; i++)
		wheels[i] = wheel_open(0);
	for (i = 0; i < TIMERS / BATCH; i++)
		arm_batch(wheels[i % 2 ? 0 : i / 2 % WHEELS]);
}

static void reader_child(void)
{
	struct twheel_event ev;

	read_events(wheels[0], &ev, 1);
	EXPECT_TRUE(false, "it was to wait for ever");
}

/* Takes them out and puts them back, so that the end finds it inside a call */
static void worker_child(void)
{
	for (;;) {
		int fd = wheels[random_next(&seed) % WHEELS];
		long n = drain(fd, ops, BATCH);

		if (n > 0)
			submit(fd, ops, n);
		set(&shared->working);
	}
}

static void owner_child(void)
{
	become(ALICE);
	arm_all();
	shared->pids[READER] = tap_fork(reader_child);
	shared->pids[WORKER] = tap_fork(worker_child);
	for (;;)
		pause();
}

/* ---- and another program of the same user ---- */

/* Its wheel keeps the user's account, so that what is charged there is seen */
static void holder_child(void)
{
	struct twheel_op op;
	long ret = 0;
	int fd, i;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	while (!there(&shared->checked))
		sleep_ns(MSEC);
	for (i = 0; i < BATCH; i++)
		ops[i] = op_arm(0, HOUR, i);
	submit_all(fd, ops, BATCH);
	/* Memory is charged in pieces of 1,024 timers. */
	op = op_arm(0, HOUR, 0);
	for (i = 0; i < 2 * BATCH && !ret; i++)
		ret = op_single(fd, &op);
	EXPECT_EQ(ret, -ENOSPC);
}

static void kill_all(void)
{
	__u64 from = now(CLOCK_MONOTONIC);
	int i, status;

	for (i = 0; i < USERS; i++)
		if (kill(shared->pids[i], SIGKILL))
			tap_bail("kill %d: %s", i, strerror(errno));
	for (i = 0; i < USERS; i++) {
		if (waitpid(shared->pids[i], &status, 0) != shared->pids[i])
			tap_bail("waitpid: %s", strerror(errno));
		EXPECT_TRUE(WIFSIGNALED(status), "status %#x", status);
	}
	/* The holder's is left. */
	EXPECT_TRUE(WAIT_FOR(number(COUNTERS, "open ") == 1));
	tap_diag("gone after %llu ms", (now(CLOCK_MONOTONIC) - from) / MSEC);
}

static void round_killed(void)
{
	long long before, with;
	pid_t holder;

	memset(shared, 0, sizeof(*shared));
	set_limit("1500000");
	holder = tap_fork(holder_child);
	EXPECT_TRUE(WAIT_FOR(number(COUNTERS, "open ") == 1));
	before = free_memory();
	shared->pids[OWNER] = tap_fork(owner_child);
	/* (For as long as it takes: a kernel that checks all it does is slow.) */
	while (!there(&shared->working))
		sleep_ns(MSEC);
	EXPECT_TRUE(WAIT_FOR(blocked_in(shared->pids[READER], SYS_read)));
	with = free_memory();
	EXPECT_EQ(number(COUNTERS, "open "), WHEELS + 1);
	EXPECT_TRUE(before - with > TIMERS * 32L / 1024, "they take %lld kB",
		    before - with);

	kill_all();
	EXPECT_EQ(number(COUNTERS, "pending "), 0);
	EXPECT_EQ(number(COUNTERS, "ready "), 0);
	EXPECT_TRUE(WAIT_FOR(before - free_memory() < KEPT),
		    "of %lld kB, %lld are not back", before - with,
		    before - free_memory());
	set_limit("3000");
	set(&shared->checked);
	tap_join(holder);
}

static void test_killed(void)
{
	unsigned int i;

	for (i = 0; i < number_of("TIMES", 1) && !tap_bad; i++)
		round_killed();
}

int main(void)
{
	mode_t mode;

	tap_start(280 * number_of("TIMES", 1));
	shared = map_shared(sizeof(*shared));
	/* those whose parent was killed are this one's */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		tap_bail("prctl: %s", strerror(errno));
	mode = open_to_all();
	RUN(test_killed, "a million timers and their users are killed");
	chmod(DEVICE, mode);
	return tap_end();
}
