// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile user takes as much of the kernel's memory, which can't be swapped, as his
 * limit allows, in all ways: that is a small part of the machine's, and no program of
 * another user is killed for it.
 *
 * For a guest with 512 MB (see run).
 */
#include "cgroup.h"
#include "shared.h"

#define MALLORY 1000

/* Most that all his wheels may take by default, in % of memory */
#define DEFAULT 6

/* For what each way takes beyond the limit, the limit is set: units, bytes of each */
#define LIMIT 200000
#define UNIT 40

/* Most that he may take where the limit is set, in % of so much memory */
#define OVER 130
#define SLACK (2 << 20)

/* Timers of which one keeps a chunk of memory */
#define CHUNK 1024

/* How many processes he has, and descriptors each has */
#define PROCESSES 10
#define DESCRIPTORS 2000

/* What another program has, and what it wants beside him */
#define RESIDENT (48UL << 20)
#define MORE (48UL << 20)

#define BATCH 1000

/**
 * struct shared - what processes know of each other
 * @ready: those that took what they could
 * @go: the other program is to take more
 * @done: it has
 * @wheels: that hostile ones have open
 * @timers: that they hold
 */
struct shared {
	int ready;
	bool go;
	bool done;
	__u64 wheels;
	__u64 timers;
};

static struct shared *shared;
static struct twheel_op ops[BATCH];

static __u64 memory_of(const char *what)
{
	return number_after("/proc/meminfo", what) << 10;
}

static void score(const char *text)
{
	int err = write_text("/proc/self/oom_score_adj", text);

	if (err)
		tap_bail("oom_score_adj: %s", strerror(-err));
}

/* ---- another program ---- */

static void touch(size_t bytes)
{
	char *memory = map_pages(bytes / PAGE, PROT_READ | PROT_WRITE);
	size_t at;

	for (at = 0; at < bytes; at += PAGE)
		memory[at] = 1;
}

static void other_child(void)
{
	score("0");
	touch(RESIDENT);
	count_up(&shared->ready);
	while (!is_set(&shared->go))
		sleep_ns(MSEC);
	touch(MORE);
	set(&shared->done);
	for (;;)
		pause();
}

/* ---- the hostile ones ---- */

/* Arm as many as can be. Gives how many; with @ids, where they are kept */
static __u64 arm_most(int fd, __u64 interval, __u64 most, __u64 *ids)
{
	__u64 held = 0;
	long n = 0;
	int i;

	while (held < most) {
		for (i = 0; i < BATCH; i++) {
			ops[i] = op_arm(0, HOUR, i);
			ops[i].interval = interval;
		}
		n = submit(fd, ops, most - held < BATCH ? most - held : BATCH);
		for (i = 0; i < n && !ops[i].result; i++) {
			if (ids)
				ids[held] = ops[i].id;
			held++;
		}
		if (i < n || n <= 0)
			break;
	}
	return held;
}

static void took(__u64 wheels, __u64 timers)
{
	__atomic_add_fetch(&shared->wheels, wheels, __ATOMIC_RELAXED);
	__atomic_add_fetch(&shared->timers, timers, __ATOMIC_RELAXED);
}

static int open_null(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int open_empty(void)
{
	return open(DEVICE, O_RDWR | O_CLOEXEC);
}

/* One wheel after the other, each with as many timers as it gets */
static void fill(__u64 interval)
{
	__u64 held = 1;
	int fd;

	while (held) {
		fd = open_empty();
		if (fd < 0)
			break;
		held = arm_most(fd, interval, ~0ULL, NULL);
		took(1, held);
	}
}

static void plain_deed(void)
{
	fill(0);
}

static void periodic_deed(void)
{
	fill(HOUR);
}

static void cancel_but_some(int fd, const __u64 *ids, __u64 nr)
{
	__u64 at, end = 0;
	int n = 0;

	for (at = 0; at <= nr; at++) {
		if (at == nr || n == BATCH) {
			submit(fd, ops, n);
			n = 0;
		}
		if (at < nr && at != end)
			ops[n++] = op_for(TWHEEL_OP_CANCEL, ids[at]);
		if (at == end)
			end += CHUNK;
	}
}

/* One timer of each chunk of memory is left */
static void fragments_deed(void)
{
	__u64 *ids = calloc(LIMIT, sizeof(*ids)), held = 1;
	int rounds, fd;

	for (rounds = 0; rounds < 20 && held; rounds++) {
		fd = open_empty();
		if (fd < 0)
			break;
		held = arm_most(fd, 0, LIMIT, ids);
		cancel_but_some(fd, ids, held);
		took(1, wheel_info(fd).pending);
	}
}

static void shared_deed(void)
{
	const int nr = LIMIT / 8;
	int fd = open_empty();

	while (fd >= 0 && !shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, nr)) {
		took(1, nr);
		fd = open_empty();
	}
}

/* With one timer; closed if that is refused */
static int keep(int fd, long err)
{
	if (!err) {
		took(0, 1);
		return fd;
	}
	close(fd);
	return -1;
}

static int open_one(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	int fd = open_empty();

	return fd < 0 ? fd : keep(fd, op_single(fd, &op));
}

static int open_one_shared(void)
{
	int fd = open_empty();

	return fd < 0 ? fd : keep(fd, shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 1));
}

static int (*open_some)(void);

static void descriptors_deed(void)
{
	int i;

	for (i = 0; i < DESCRIPTORS; i++) {
		if (open_some() < 0)
			break;
		took(1, 0);
	}
}

static void (*deed)(void);

static void hostile_child(void)
{
	score("0");
	allow_descriptors(DESCRIPTORS);
	become(MALLORY);
	deed();
	count_up(&shared->ready);
	for (;;)
		pause();
}

/* ---- together ---- */

static bool ended(pid_t pid)
{
	siginfo_t info = {};

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

static bool all_here(pid_t *pids, int nr)
{
	int i, gone = 0;

	for (i = 0; i < nr; i++)
		gone += ended(pids[i]);
	return __atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) + gone >= nr;
}

/* Gives how much of the memory that can be had the hostile ones took */
static __u64 take(void (*does)(void), int processes)
{
	__u64 before, after, slab, vmalloc;
	pid_t other, pids[PROCESSES + 1];
	int i;

	memset(shared, 0, sizeof(*shared));
	deed = does;
	other = tap_fork(other_child);
	pids[0] = other;
	EXPECT_TRUE(WAIT_FOR(all_here(pids, 1)));
	before = memory_of("MemAvailable:");
	slab = memory_of("SUnreclaim:");
	vmalloc = memory_of("VmallocUsed:");
	for (i = 0; i < processes; i++)
		pids[i + 1] = tap_fork(hostile_child);
	EXPECT_TRUE(WAIT_FOR(all_here(pids, processes + 1)));
	after = memory_of("MemAvailable:");
	slab = memory_of("SUnreclaim:") - slab;
	vmalloc = memory_of("VmallocUsed:") - vmalloc;
	set(&shared->go);
	EXPECT_TRUE(WAIT_FOR(ended(other) || is_set(&shared->done)));
	EXPECT_TRUE(!ended(other), "another program was killed");
	tap_diag("%s: %llu wheels, %llu timers: %lld of %llu KB (slab %lld, vmalloc %lld)%s",
		 tap_name, shared->wheels, shared->timers,
		 (long long)(before - after) >> 10, memory_of("MemTotal:") >> 10,
		 (long long)slab >> 10, (long long)vmalloc >> 10,
		 ended(other) ? "; the other program was killed" : "");
	for (i = 0; i <= processes; i++)
		end(pids[i]);
	return before > after ? before - after : 0;
}

static void check_default(__u64 taken)
{
	__u64 most = memory_of("MemTotal:") / 100 * DEFAULT;

	EXPECT_TRUE(taken <= most, "%llu KB, and the most is %llu KB", taken >> 10, most >> 10);
}

/* What as many files, and the processes that have them, take is nothing of ours */
static void many(int (*opens)(void))
{
	__u64 files, taken;

	open_some = open_null;
	files = take(descriptors_deed, PROCESSES);
	open_some = opens;
	taken = take(descriptors_deed, PROCESSES);
	check_default(taken > files ? taken - files : 0);
}

/* With the limit set */
static void check_limited(void (*does)(void))
{
	__u64 taken, most = LIMIT * UNIT / 100ULL * OVER + SLACK;
	char old[16], new[16];

	read_text(PARAMETERS "max_user_timers", old, sizeof(old));
	snprintf(new, sizeof(new), "%d", LIMIT);
	if (write_text(PARAMETERS "max_user_timers", new))
		tap_bail("the limit can't be set");
	taken = take(does, 1);
	EXPECT_TRUE(taken <= most, "%llu KB, and the most is %llu KB", taken >> 10, most >> 10);
	if (write_text(PARAMETERS "max_user_timers", old))
		tap_bail("the limit can't be set back");
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	score("-1000");
	shared = map_shared(sizeof(*shared));
	tap_diag("the default limit of a user: %llu timers, %llu KB of %llu KB",
		 (unsigned long long)wheel_info(wheel_open(0)).user_limit,
		 wheel_info(wheel_open(0)).user_limit * UNIT >> 10,
		 memory_of("MemTotal:") >> 10);
	RUN_CALL(check_limited(periodic_deed), "periodic timers up to a limit");
	RUN_CALL(check_limited(fragments_deed), "a timer of each chunk, over and over");
	RUN_CALL(check_limited(shared_deed), "shared timers up to a limit");
	RUN_CALL(many(open_empty), "wheels without a timer");
	RUN_CALL(many(open_one), "wheels with a timer each");
	RUN_CALL(many(open_one_shared), "wheels with a shared timer each");
	RUN_CALL(check_default(take(plain_deed, 1)), "all timers that there can be");
	return tap_end();
}
