// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts beside each other: who may be any user, as the root of a container may, takes no
 * more than all without CAP_SYS_RESOURCE may have together. What is refused to one program is
 * there for another of the same user.
 *
 * For a guest with 512 MB (see run).
 */
#include "cgroup.h"
#include "shared.h"

#include <sched.h>
#include <sys/mman.h>

#define CONTAINER "container"
#define POOR "poor"

#define FIRST_UID 2000
#define UIDS 30
#define USER 1000
/* More wheels than all of them may have, with one of each uid */
#define MANY_UIDS 100000

/* What all of them may have, in % of the memory; and what a wheel takes that is not charged */
#define TOGETHER 12
#define BESIDE (4 << 20)

#define BATCH 1000
#define ROUNDS 300

/* More than its group may have, and less than a user */
#define POOR_BYTES "8M"
#define MUCH 600000
#define TOO_MUCH (4 * MUCH)

static struct {
	int ready;
	bool go;
	bool end;
	__u64 refused;
	__u64 tries;
} *shared;

static __u64 available(void)
{
	char text[4096], *at;

	read_text("/proc/meminfo", text, sizeof(text));
	at = strstr(text, "MemAvailable:");
	if (!at)
		tap_bail("/proc/meminfo has no MemAvailable");
	return strtoull(at + strlen("MemAvailable:"), NULL, 10) << 10;
}

/* Where memory runs out, those are killed who took it. */
static void killable(const char *score)
{
	int err = write_text("/proc/self/oom_score_adj", score);

	if (err)
		tap_bail("oom_score_adj: %s", strerror(-err));
}

/* With all memory that it will need: that is no part of what the group may have. */
static void in_group(const char *group)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		tap_bail("mlockall: %s", strerror(errno));
	cgroup_move(group, getpid());
}

static void wait_ready(int nr)
{
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) == nr), "%d",
		    shared->ready);
}

/* All have what they need before one of them begins. */
static void go(void)
{
	__atomic_store_n(&shared->go, true, __ATOMIC_RELEASE);
}

static void ready_and_wait(void)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/* Wheels with as many timers as there can be. Gives how many timers. */
static __u64 fill(void)
{
	static struct twheel_op ops[BATCH];
	__u64 held = 0, before;
	long n = 1;
	int i, fd;

	do {
		before = held;
		fd = open(DEVICE, O_RDWR | O_CLOEXEC);
		for (; fd >= 0; held += n) {
			for (i = 0; i < BATCH; i++)
				ops[i] = op_arm(0, HOUR, i);
			submit(fd, ops, BATCH);
			for (n = 0; n < BATCH && !ops[n].result; n++)
				;
			if (!n)
				break;
		}
	} while (held != before);
	return held;
}

static uid_t uid;

static void begin_together(void)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		sleep_ns(MSEC);
}

static void filling_child(void)
{
	killable("0");
	become(uid);
	begin_together();
	__atomic_add_fetch(&shared->tries, fill(), __ATOMIC_RELAXED);
	ready_and_wait();
}

static void grouped_child(void)
{
	in_group(CONTAINER);
	filling_child();
}

static void kill_all(pid_t *pids, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < nr; i++)
		waitpid(pids[i], NULL, 0);
}

static void test_many_uids(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	__u64 before, taken, most;
	pid_t pids[UIDS];
	int i;

	memset(shared, 0, sizeof(*shared));
	most = wheel_info(wheel_open(0)).user_limit * 40 / 4 * TOGETHER;
	for (i = 0; i < UIDS; i++) {
		uid = FIRST_UID + i;
		pids[i] = tap_fork(grouped_child);
	}
	wait_ready(UIDS);
	before = available();
	go();
	wait_ready(2 * UIDS);
	taken = before - available();
	tap_diag("%d uids hold %llu timers: %llu KB of %llu KB", UIDS, shared->tries,
		 taken >> 10, most >> 10);
	EXPECT_TRUE(shared->tries * 40 > most / 2, "they have what they may");
	EXPECT_TRUE(taken <= most + BESIDE, "%llu KB, and the most is %llu KB", taken >> 10,
		    most >> 10);
	EXPECT_EQ(op_single(wheel_open(0), &op), 0, "root is not held up");
	kill_all(pids, UIDS);
	/* All is given back: another one has as much. */
	memset(shared, 0, sizeof(*shared));
	pids[0] = tap_fork(filling_child);
	go();
	wait_ready(2);
	EXPECT_TRUE(shared->tries * 40 > most / 4);
	kill_all(pids, 1);
}

/*
 * A wheel of each of very many uids, until no more are given, or a file of each of as many. What
 * files take is nothing of ours.
 */
static bool files;

/* As root, for whom it is the saved uid */
static void become_next(uid_t next)
{
	if (setresuid(-1, 0, -1) || setresuid(next, next, 0))
		tap_bail("user %u: %s", next, strerror(errno));
}

static void uid_each_child(void)
{
	__u64 nr;
	int fd = 0;

	killable("0");
	in_group(CONTAINER);
	allow_descriptors(FIRST_UID + MANY_UIDS);
	for (nr = 0; nr < MANY_UIDS && fd >= 0 && !(files && nr == shared->tries); nr++) {
		become_next(FIRST_UID + nr);
		fd = open(files ? "/dev/null" : DEVICE, O_RDWR | O_CLOEXEC);
	}
	if (!files)
		shared->refused = errno;
	shared->tries = nr;
	ready_and_wait();
}

static __u64 taken_by_each(bool are_files)
{
	__u64 before = available(), taken;
	pid_t pid;

	files = are_files;
	shared->ready = 0;
	pid = tap_fork(uid_each_child);
	wait_ready(1);
	taken = before - available();
	kill_all(&pid, 1);
	return taken;
}

static void test_uid_each(void)
{
	__u64 most = wheel_info(wheel_open(0)).user_limit * 40 / 4 * TOGETHER, taken;

	write_text("/proc/sys/fs/file-max", "1000000");
	memset(shared, 0, sizeof(*shared));
	/* What the kernel keeps of files and credentials that are gone is there before both. */
	taken_by_each(false);
	taken = taken_by_each(false);
	EXPECT_EQ(shared->refused, ENOSPC, "after %llu", shared->tries);
	taken -= taken_by_each(true);
	tap_diag("%s: %llu: %llu KB of %llu KB", tap_name, shared->tries, taken >> 10, most >> 10);
	EXPECT_TRUE(taken <= most + BESIDE, "%llu KB, and the most is %llu KB", taken >> 10,
		    most >> 10);
}

/* root without CAP_SYS_RESOURCE, as in a container, has not used up what root outside has. */
static void powerless_child(void)
{
	in_group(CONTAINER);
	killable("0");
	drop_resource();
	fill();
	ready_and_wait();
}

/*
 * A container has PID namespaces of its own, and its root takes a uid of the host: the user of
 * that uid outside has what he may have. Namespaces in that one, and those that anybody makes in a
 * user namespace, are no other container.
 */
static int depth;
static bool by_user;

/* Go on in a namespace of its own, as its first process: all end with that. */
static void enter_namespace(int flags)
{
	pid_t pid;

	if (unshare(flags))
		tap_bail("unshare: %s", strerror(errno));
	pid = fork();
	if (!pid)
		return;
	waitpid(pid, NULL, 0);
	_exit(1);
}

static void container_child(void)
{
	killable("0");
	if (by_user) {
		become(USER);
		enter_namespace(CLONE_NEWUSER | CLONE_NEWPID);
	} else {
		in_group(CONTAINER);
		while (depth--)
			enter_namespace(CLONE_NEWPID);
		become(USER);
	}
	__atomic_add_fetch(&shared->tries, fill(), __ATOMIC_RELAXED);
	count_up(&shared->ready);
	/* The process does not die with its parents, which are outside. */
	while (!__atomic_load_n(&shared->end, __ATOMIC_ACQUIRE))
		sleep_ns(MSEC);
	_exit(0);
}

/* How many timers he has outside, beside such a container */
static __u64 beside_container(int namespaces, bool users)
{
	pid_t pids[2];
	__u64 inside, outside;

	memset(shared, 0, sizeof(*shared));
	depth = namespaces;
	by_user = users;
	pids[0] = tap_fork(container_child);
	wait_ready(1);
	inside = shared->tries;
	shared->tries = 0;
	uid = USER;
	pids[1] = tap_fork(filling_child);
	go();
	wait_ready(3);
	outside = shared->tries;
	tap_diag("%d namespaces%s: inside %llu timers, outside %llu", namespaces,
		 users ? ", of a user" : "", inside, outside);
	EXPECT_TRUE(inside > 100000);
	__atomic_store_n(&shared->end, true, __ATOMIC_RELEASE);
	waitpid(pids[0], NULL, 0);
	kill_all(&pids[1], 1);
	return outside;
}

static void test_containers(void)
{
	EXPECT_TRUE(beside_container(1, false) > 100000);
	EXPECT_TRUE(beside_container(3, false) > 100000);
	EXPECT_TRUE(beside_container(0, false) < 10000, "without a container it is his account");
	EXPECT_TRUE(beside_container(0, true) < 10000, "what he makes is no container");
}

static int roots_wheel;

/* Who has the descriptor may be anybody: what counts is who opened it. */
static void user_of_roots_wheel(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);

	become(USER);
	EXPECT_EQ(op_single(roots_wheel, &op), 0);
}

static void test_roots(void)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = tap_fork(powerless_child);
	wait_ready(1);
	roots_wheel = wheel_open(0);
	tap_join(tap_fork(user_of_roots_wheel));
	kill_all(&pid, 1);
}

/*
 * SETUP that is refused: the wheel has timers; its group has too little memory; or it is more than
 * the user may have
 */
static const char *group;
static int want;

static void refused_child(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	__u32 nr = want == -ENOSPC ? TOO_MUCH : MUCH;
	int fd;

	in_group(group);
	become(USER);
	fd = wheel_open(0);
	begin_together();
	if (want == -EBUSY)
		EXPECT_EQ(op_single(fd, &op), 0);
	while (!__atomic_load_n(&shared->end, __ATOMIC_ACQUIRE)) {
		int ret = shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, nr);

		/* What the other one has just then is missing to this one. */
		if (!EXPECT_TRUE(ret == want || (want == -ENOMEM && ret == -ENOSPC), "%d", ret))
			break;
	}
}

/*
 * Another program of that user and group: its calls are not refused for the other's. (That has
 * wheels already: an open that finds no memory in the group has a task of the group killed.)
 */
static void beside_child(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	int i, fds[ROUNDS];

	in_group(group);
	become(USER);
	for (i = 0; i < ROUNDS; i++)
		fds[i] = wheel_open(0);
	begin_together();
	for (i = 0; i < ROUNDS; i++) {
		shared->refused += op_single(fds[i], &op) == -ENOSPC;
		shared->tries++;
		sleep_ns(MSEC / 10);
	}
	__atomic_store_n(&shared->end, true, __ATOMIC_RELEASE);
}

static void beside_refused(int error, const char *in)
{
	pid_t pids[3];
	int i;

	memset(shared, 0, sizeof(*shared));
	group = in;
	want = error;
	for (i = 0; i < 3; i++)
		pids[i] = tap_fork(i ? refused_child : beside_child);
	wait_ready(3);
	go();
	for (i = 0; i < 3; i++)
		tap_join(pids[i]);
	EXPECT_EQ(shared->tries, ROUNDS);
	EXPECT_EQ(shared->refused, 0, "of %llu", shared->tries);
}

static void test_busy(void)
{
	beside_refused(-EBUSY, CONTAINER);
}

static void test_no_memory(void)
{
	beside_refused(-ENOMEM, POOR);
}

static void test_no_space(void)
{
	beside_refused(-ENOSPC, CONTAINER);
}

int main(void)
{
	tap_start(400);
	open_to_all();
	killable("-1000");
	shared = map_shared(sizeof(*shared));
	cgroup_write(".", "cgroup.subtree_control", "+memory");
	cgroup_make(CONTAINER);
	cgroup_make(POOR);
	cgroup_write(POOR, "memory.max", POOR_BYTES);
	RUN(test_many_uids, "uids that a container's root takes have a limit together");
	RUN(test_uid_each, "a wheel of each of very many uids");
	RUN(test_roots, "root of a container does not fill the account of root outside");
	RUN(test_containers, "a user of a container does not fill the account of that uid outside");
	RUN(test_busy, "beside SETUP that ends in EBUSY, again and again");
	RUN(test_no_memory, "beside SETUP that ends in ENOMEM, again and again");
	RUN(test_no_space, "beside SETUP that ends in ENOSPC, again and again");
	return tap_end();
}
