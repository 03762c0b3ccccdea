// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: of a wheel, and of the memory of all wheels of a user in all of its processes.
 * CAP_SYS_RESOURCE goes over the module's limits, and nobody else.
 */
#include "shared.h"
#include "users.h"

#include <linux/sched.h>

#define ALICE 2001
#define BOB 2002

/* What processes tell each other */
struct shared {
	int step;
	long armed[4];
	long error[4];
};

static struct shared *shared;
static char wheel_param[32], user_param[32];

static void set_param(const char *name, const char *value)
{
	char path[128];
	long ret;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	ret = write_text(path, value);
	if (ret)
		tap_bail("%s: %s", path, strerror(-ret));
}

static void params(const char *wheel, const char *user)
{
	set_param("max_timers", wheel);
	set_param("max_user_timers", user);
}

static void params_restore(void)
{
	params(wheel_param, user_param);
}

/* Up to so many; gives how many it could, and why not more */
static long arm_up_to(int fd, long max, long *error)
{
	long n;

	*error = 0;
	for (n = 0; n < max && !*error; n++) {
		struct twheel_op op = op_arm(0, HOUR, n);

		*error = op_single(fd, &op);
	}
	return *error ? n - 1 : n;
}

static void expect_armed(int fd, long max, long want)
{
	long error, n = arm_up_to(fd, max, &error);

	CHECK_EQ(n, want);
	CHECK_EQ(error, n < max ? -ENOSPC : 0);
}

static void step(int n)
{
	__atomic_store_n(&shared->step, n, __ATOMIC_RELEASE);
}

static void wait_step(int n)
{
	if (!WAIT_FOR(__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) >= n))
		tap_bail("nobody got to step %d", n);
}

/* ---- one wheel ---- */

/* What a wheel was set up for holds for everybody, and counts ready ones */
static void test_setup_limit(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op ops[4];
	struct twheel_event ev[20];
	__u64 id;

	CHECK_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 0), 0);
	CHECK_EQ(wheel_info(fd).limit, 10);
	CHECK_EQ(wheel_stats(fd).refused, 0);
	expect_armed(fd, 100, 10);
	CHECK_EQ(wheel_stats(fd).refused, 1);
	CHECK_EQ(wheel_info(fd).pending, 10);
	CHECK_EQ(wheel_stats(fd).armed, 10);

	CHECK_EQ(drain(fd, ops, 4), 4);
	submit_all(fd, ops, 4);
	CHECK_EQ(drain(fd, ops, 1), 1);
	id = arm_past(fd, 1);
	expect_armed(fd, 5, 0);
	CHECK_EQ(wheel_info(fd).ready, 1);
	CHECK_EQ(read_events(fd, ev, 1), 1);
	CHECK_EQ(cancel(fd, id), -ENOENT);
	expect_armed(fd, 5, 1);

	/* in a batch: each over it says so, and what is freed is used */
	ops[0] = op_arm(0, HOUR, 0);
	ops[2] = ops[0];
	ops[3] = ops[0];
	CHECK_EQ(drain(fd, &ops[1], 1), 1);
	id = arm(fd, 0, HOUR, 0);
	ops[1] = op_for(TWHEEL_OP_CANCEL, id);
	CHECK_EQ(submit(fd, ops, 4), 4);
	CHECK_EQ(ops[0].result, -ENOSPC);
	CHECK_EQ(ops[1].result, 0);
	CHECK_EQ(ops[2].result, 0);
	CHECK_EQ(ops[3].result, -ENOSPC);
	CHECK_EQ(wheel_info(fd).pending, 10);
	close(fd);
}

/* Periodic timers count as others do, whatever they take of memory */
static void test_periodic_limit(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op ops[9];
	int i;

	CHECK_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 4, 0), 0);
	for (i = 0; i < 9; i++) {
		ops[i] = op_arm(0, HOUR, i);
		ops[i].interval = i % 2 ? 0 : HOUR;
	}
	CHECK_EQ(submit(fd, ops, 9), 9);
	for (i = 0; i < 9; i++)
		CHECK_EQ(ops[i].result, i < 4 ? 0 : -ENOSPC, "operation %d", i);
	CHECK_EQ(wheel_info(fd).pending, 4);
	close(fd);
}

/* Modifying needs no place of its own */
static void test_modify_at_limit(void)
{
	int fd = wheel_open(O_NONBLOCK);
	struct twheel_op op;
	__u64 id;

	CHECK_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 1, 0), 0);
	id = arm(fd, 0, HOUR, 0);
	op = op_arm(TWHEEL_ABS, 1, 5);
	op.opcode = TWHEEL_OP_MODIFY;
	op.id = id;
	CHECK_EQ(op_single(fd, &op), 0);
	expect_armed(fd, 1, 0);
	CHECK_EQ(op_single(fd, &op), 0);
	CHECK_EQ(wheel_info(fd).ready, 1);
	close(fd);
}

static void wheel_limit_child(void)
{
	int fd, small, more;
	long ret;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(wheel_info(fd).wheel_limit, 20);
	CHECK_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 100, 20);
	/* another wheel has a limit of its own */
	more = wheel_open(O_NONBLOCK);
	expect_armed(more, 100, 20);
	small = wheel_open(O_NONBLOCK);
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, 21, 0);
	CHECK_EQ(ret, -ENOSPC, "more than the module's limit");
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, KTIME_MAX, 0);
	CHECK_EQ(ret, -ENOSPC, "more than the module's limit");
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, -1, 0);
	CHECK_EQ(ret, -ENOSPC, "more than the module's limit");
	ret = wheel_setup(small, TWHEEL_CLOCK_MONOTONIC, 0, 20, 0);
	CHECK_EQ(ret, 0, "as much as the module's limit");
}

static void test_wheel_limit(void)
{
	int fd;

	params("20", "1000000");
	tap_join(tap_fork(wheel_limit_child));
	/* root's CAP_SYS_RESOURCE */
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 50, 0), 0);
	CHECK_EQ(wheel_info(fd).limit, 50);
	expect_armed(fd, 100, 50);
	close(fd);
	params_restore();
}

/* ---- one user ---- */

/*
 * The memory of a user's wheels is what counts, in pieces, and 2 KB for each wheel, of
 * which there are up to three here: together less than a piece.
 */
#define PIECE (small_world() ? 8192L : 32768L)
#define WHEELS (small_world() ? 6144L : 16384L)
#define TIMER 40L

/* How many timers the first piece of a wheel holds, and each further one */
static long first, more;

static void user_may_have(unsigned int pieces)
{
	char limit[32];

	snprintf(limit, sizeof(limit), "%ld", (pieces * PIECE + WHEELS) / TIMER);
	params("1000000", limit);
}

static void expect_full(int fd, long want)
{
	expect_armed(fd, want + 1, want);
}

static void measuring_child(void)
{
	long error;
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	shared->armed[0] = arm_up_to(fd, 1000000, &error);
	CHECK_EQ(error, -ENOSPC);
}

/* A timer takes 40 bytes where it is one of many. */
static void test_memory(void)
{
	user_may_have(1);
	tap_join(tap_fork(measuring_child));
	first = shared->armed[0];
	user_may_have(2);
	tap_join(tap_fork(measuring_child));
	more = shared->armed[0] - first;
	CHECK(first > 0);
	CHECK(more > 0);
	CHECK(more <= PIECE / TIMER);
	user_may_have(11);
	tap_join(tap_fork(measuring_child));
	CHECK_EQ(shared->armed[0], first + 10 * more);
	params_restore();
}

static void first_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(wheel_info(fd).user_limit, (4 * PIECE + WHEELS) / TIMER);
	/* (The last of a piece would bring the next one.) */
	expect_armed(fd, first + more - 1, first + more - 1);
	step(1);
	wait_step(2);
}

static void second_child(void)
{
	int fd, other;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	other = wheel_open(O_NONBLOCK);
	wait_step(1);
	expect_armed(other, 1, 1);
	expect_full(fd, first);
	CHECK(wheel_stats(fd).refused >= 1);
	/* what is given back is there to take, on whichever wheel */
	close(other);
	expect_full(fd, more);
	step(2);
	/* the first one is gone, and its two pieces with it */
	wait_step(3);
	expect_full(fd, 2 * more);
}

static void stranger_child(void)
{
	int fd;

	become(BOB);
	fd = wheel_open(O_NONBLOCK);
	wait_step(1);
	/* another user has as much */
	expect_full(fd, first + 3 * more);
}

static void test_user_limit(void)
{
	pid_t one, two, stranger;

	memset(shared, 0, sizeof(*shared));
	user_may_have(4);
	one = tap_fork(first_child);
	two = tap_fork(second_child);
	stranger = tap_fork(stranger_child);
	tap_join(one);
	step(3);
	tap_join(two);
	tap_join(stranger);
	params_restore();
}

static void many_wheels_child(void)
{
	int fd, n = 0;

	become(ALICE);
	while ((fd = open(DEVICE, O_RDONLY)) >= 0)
		n++;
	CHECK_EQ(errno, ENOSPC);
	shared->armed[0] = n;
}

/* An empty wheel takes memory, too: there is an end to them. */
static void test_many_wheels(void)
{
	int fd;

	user_may_have(1);
	tap_join(tap_fork(many_wheels_child));
	CHECK(shared->armed[0] >= 2);
	CHECK(shared->armed[0] <= (PIECE + WHEELS) / 512);
	/* CAP_SYS_RESOURCE goes over it */
	fd = wheel_open(O_NONBLOCK);
	close(fd);
	params_restore();
}

/* Cancel or read so many timers of a wheel, or drain them: all of them are gone. */
static void end_all(int fd, int how, struct twheel_op *ops, long nr)
{
	static struct twheel_event ev[4096];
	long i;

	switch (how) {
	case 0:
		for (i = 0; i < nr; i++)
			CHECK_EQ(cancel(fd, ops[i].id), 0);
		break;
	case 1:
		CHECK_EQ(read_events(fd, ev, nr), nr);
		break;
	default:
		CHECK_EQ(drain(fd, ops, nr), nr);
	}
}

/* Memory of timers that end in each way is given back, but for a wheel's first. */
static void giving_back_child(void)
{
	static struct twheel_op ops[4096];
	long i, nr = first + 3 * more;
	int fd, other, how;

	become(ALICE);
	CHECK(nr <= 4096);
	for (how = 0; how < 3; how++) {
		fd = wheel_open(O_NONBLOCK);
		other = wheel_open(O_NONBLOCK);
		for (i = 0; i < nr; i++)
			ops[i] = op_arm(TWHEEL_ABS, how == 1 ? 1 : KTIME_MAX, i);
		submit_all(fd, ops, nr);
		expect_armed(other, 1, 0);
		end_all(fd, how, ops, nr);
		/* a little is kept for what comes next */
		expect_armed(other, first, first);
		close(fd);
		expect_full(other, 3 * more);
		close(other);
	}
}

static void test_giving_back(void)
{
	user_may_have(4);
	tap_join(tap_fork(giving_back_child));
	params_restore();
}

static void weak_root_child(void)
{
	int fd;

	drop_resource();
	fd = wheel_open(O_NONBLOCK);
	expect_full(fd, first);
	CHECK_EQ(wheel_setup(wheel_open(0), TWHEEL_CLOCK_MONOTONIC, 0, 1000001,
			     0), -ENOSPC);
}

/* SETUP is still allowed after an ARM that was refused */
static void refused_child(void)
{
	__u64 deadline;
	int fd, other;
	struct twheel_event ev;
	struct twheel_op op = op_arm(0, HOUR, 0);
	long ret;

	become(ALICE);
	other = wheel_open(O_NONBLOCK);
	fd = wheel_open(O_NONBLOCK);
	expect_armed(other, 1, 1);
	CHECK_EQ(op_single(fd, &op), -ENOSPC);
	ret = wheel_setup(fd, TWHEEL_CLOCK_BOOTTIME, MSEC, 0, 0);
	CHECK_EQ(ret, 0);
	CHECK_EQ(wheel_info(fd).clock, TWHEEL_CLOCK_BOOTTIME);
	close(other);
	deadline = now(CLOCK_BOOTTIME) + 5 * MSEC;
	arm(fd, TWHEEL_ABS, deadline, 7);
	CHECK_EQ(readable(fd, PATIENCE_MS), 1);
	CHECK_EQ(read_events(fd, &ev, 1), 1);
	CHECK_EQ(ev.user_data, 7);
	CHECK(now(CLOCK_BOOTTIME) >= deadline, "early");
}

static void test_refused(void)
{
	user_may_have(1);
	tap_join(tap_fork(refused_child));
	params_restore();
}

/* Shared timers take their memory at their set-up, whatever is done with them. */
#define SHARED 700	/* about three pieces */

static void shared_child(void)
{
	struct client client;
	int fd, other, round;

	become(ALICE);
	for (round = 0; round < 5; round++) {
		fd = wheel_open(O_NONBLOCK);
		CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 10 * SHARED), -ENOSPC);
		CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), 0);
		other = wheel_open(O_NONBLOCK);
		CHECK_EQ(shared_setup(other, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), -ENOSPC);
		close(other);
		other = wheel_open(O_NONBLOCK);
		expect_full(other, first);
		close(other);
		/* they are there as long as they are mapped */
		client_map(&client, fd);
		shared_arm(&client, 0, HOUR);
		close(fd);
		fd = wheel_open(O_NONBLOCK);
		CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), -ENOSPC);
		munmap(client.area, client.size);
		CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, SHARED), 0);
		close(fd);
	}
}

static void shared_wheel_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 21), -ENOSPC);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 11), -ENOSPC);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 21, 1), -ENOSPC);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 6), 0);
	CHECK_EQ(wheel_info(fd).limit, 10);
	expect_armed(fd, 10, 4);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, 20), 0);
	CHECK_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 1, 0);
}

/* So much as the header says is enough. */
static void shared_bytes_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 0, shared->armed[0]), 0, "%ld",
		 shared->armed[0]);
	close(fd);
}

static void test_shared_bytes(void)
{
	static const __u32 nrs[] = { 1, 15, 255, 256, 257, 2047, 2048, 2049, 65535, 65536,
				     65537, 100000 };
	char limit[32];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nrs); i++) {
		shared->armed[0] = nrs[i];
		snprintf(limit, sizeof(limit), "%ld", (2048 + nrs[i] * 30 + 180 * 1024) / TIMER);
		params("1000000", limit);
		tap_join(tap_fork(shared_bytes_child));
	}
	params_restore();
}

static void test_shared(void)
{
	int fd;

	/* (Where pieces are small, a page more or less is too much.) */
	if (!small_world()) {
		user_may_have(4);
		tap_join(tap_fork(shared_child));
	}
	params("20", "1000000");
	tap_join(tap_fork(shared_wheel_child));
	/* root's CAP_SYS_RESOURCE */
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 60, 50), 0);
	expect_armed(fd, 20, 10);
	close(fd);
	params_restore();
}

/* Root of a namespace that anybody can make is nobody here */
static void namespace_root_child(void)
{
	become(ALICE);
	if (syscall(SYS_unshare, CLONE_NEWUSER))
		tap_bail("unshare: %s", strerror(errno));
	expect_full(wheel_open(O_NONBLOCK), first);
}

static void test_namespace_root(void)
{
	user_may_have(1);
	tap_join(tap_fork(namespace_root_child));
	params_restore();
}

/*
 * Alice has a namespace with users of her own, as newuidmap(1) gives them out: all of
 * them are Alice. In one that root made, each is somebody.
 */
static uid_t owner;
static int sub_user;
static bool sub_user_has_any;

static void sub_user_child(void)
{
	int fd;

	if (setresuid(sub_user, sub_user, sub_user))
		tap_bail("setresuid: %s", strerror(errno));
	fd = wheel_open(O_NONBLOCK);
	expect_full(fd, sub_user_has_any ? first : 0);
	if (sub_user == 1) {
		step(3);
		wait_step(4);
	}
}

static void owner_child(void)
{
	pid_t one;

	if (owner)
		become(owner);
	if (syscall(SYS_unshare, CLONE_NEWUSER))
		tap_bail("unshare: %s", strerror(errno));
	step(1);
	wait_step(2);
	sub_user = 1;
	sub_user_has_any = true;
	one = tap_fork(sub_user_child);
	wait_step(3);
	sub_user = 2;
	sub_user_has_any = !owner;
	tap_join(tap_fork(sub_user_child));
	step(4);
	tap_join(one);
}

static void expect_sub_users(uid_t uid)
{
	char path[64], map[64];
	pid_t pid;
	long ret;

	memset(shared, 0, sizeof(*shared));
	owner = uid;
	pid = tap_fork(owner_child);
	wait_step(1);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	snprintf(map, sizeof(map), "0 %u 1\n1 3001 2\n", uid);
	ret = write_text(path, map);
	if (ret)
		tap_bail("%s: %s", path, strerror(-ret));
	step(2);
	tap_join(pid);
}

static void test_sub_users(void)
{
	user_may_have(1);
	expect_sub_users(ALICE);
	expect_sub_users(0);
	params_restore();
}

static void full_root_child(void)
{
	drop_resource();
	CHECK_EQ(open(DEVICE, O_RDONLY), -1);
	CHECK_EQ(errno, ENOSPC);
}

static void test_capability(void)
{
	int fd;

	user_may_have(1);
	tap_join(tap_fork(weak_root_child));
	fd = wheel_open(O_NONBLOCK);
	expect_armed(fd, first + more, first + more);
	/* what went over the limit counts: there is none left without it */
	tap_join(tap_fork(full_root_child));
	close(fd);
	tap_join(tap_fork(weak_root_child));
	params_restore();
}

/* A wheel counts for who opened it, whoever arms */
static int passed;

static void passed_child(void)
{
	int fd;

	become(BOB);
	expect_full(passed, first);
	fd = wheel_open(O_NONBLOCK);
	expect_full(fd, first);
}

static void opener_child(void)
{
	int fd;

	become(ALICE);
	shared->armed[0] = wheel_open(O_NONBLOCK);
	step(1);
	wait_step(2);
	fd = wheel_open(O_NONBLOCK);
	expect_armed(fd, 1, 0);
}

/* The descriptor of another process, as if it had been passed */
static int take_fd(pid_t pid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	int copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	if (copy < 0)
		tap_bail("pidfd_getfd: %s", strerror(errno));
	close(pidfd);
	return copy;
}

static void test_opener_pays(void)
{
	pid_t opener;

	memset(shared, 0, sizeof(*shared));
	user_may_have(1);
	opener = tap_fork(opener_child);
	wait_step(1);
	passed = take_fd(opener, shared->armed[0]);
	tap_join(tap_fork(passed_child));
	step(2);
	tap_join(opener);
	close(passed);
	params_restore();
}

int main(void)
{
	mode_t mode;

	tap_start(60);
	shared = map_shared(sizeof(*shared));
	read_text(PARAMETERS "max_timers", wheel_param, sizeof(wheel_param));
	read_text(PARAMETERS "max_user_timers", user_param,
		  sizeof(user_param));
	mode = open_to_all();
	RUN(test_setup_limit, "the limit that a wheel was set up with");
	RUN(test_periodic_limit, "periodic timers at the limit");
	RUN(test_modify_at_limit, "MODIFY at the limit");
	RUN(test_wheel_limit, "the module's limit for a wheel");
	RUN(test_memory, "the memory of a user's timers");
	RUN(test_user_limit, "the limit of a user, across processes");
	RUN(test_many_wheels, "wheels without timers count, too");
	RUN(test_refused, "SETUP after an ARM that was refused");
	RUN(test_shared, "shared timers");
	RUN(test_shared_bytes, "the memory of shared timers");
	RUN(test_giving_back, "every end of timers gives back their memory");
	RUN(test_capability, "CAP_SYS_RESOURCE goes over the limit of a user");
	RUN(test_namespace_root, "root of a user namespace does not");
	RUN(test_sub_users, "the users of a user's namespace are that user");
	RUN(test_opener_pays, "a passed wheel counts for its opener");
	chmod(DEVICE, mode);
	return tap_end();
}
