// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: of a wheel, and of all wheels of a user in all of its processes.
 * CAP_SYS_RESOURCE goes over the module's limits, and nobody else.
 */
#include "shared.h"

#include <grp.h>
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

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid))
		tap_bail("setuid: %s", strerror(errno));
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
	__u64 limited, id;

	CHECK_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 10, 0), 0);
	CHECK_EQ(wheel_info(fd).limit, 10);
	CHECK_EQ(wheel_stats(fd).limited, 0);
	expect_armed(fd, 100, 10);
	limited = wheel_stats(fd).limited;
	CHECK_EQ(limited, 1);
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

static void first_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(wheel_info(fd).user_limit, 100);
	shared->armed[0] = arm_up_to(fd, 60, &shared->error[0]);
	step(1);
	wait_step(2);
}

static void second_child(void)
{
	struct twheel_op op;
	int fd, other;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	other = wheel_open(O_NONBLOCK);
	wait_step(1);
	CHECK_EQ(arm_up_to(other, 15, &shared->error[1]), 15);
	shared->armed[1] = arm_up_to(fd, 60, &shared->error[1]);
	CHECK(wheel_stats(fd).limited >= 1);
	/* one given back is one to take, on whichever wheel */
	CHECK_EQ(drain(other, &op, 1), 1);
	expect_armed(fd, 5, 1);
	close(other);
	expect_armed(fd, 50, 14);
	step(2);
	/* the first one is gone, and its sixty with it */
	wait_step(3);
	expect_armed(fd, 100, 60);
}

static void stranger_child(void)
{
	int fd;

	become(BOB);
	fd = wheel_open(O_NONBLOCK);
	wait_step(1);
	shared->armed[2] = arm_up_to(fd, 100, &shared->error[2]);
}

static void test_user_limit(void)
{
	pid_t first, second, stranger;

	memset(shared, 0, sizeof(*shared));
	params("1000000", "100");
	first = tap_fork(first_child);
	second = tap_fork(second_child);
	stranger = tap_fork(stranger_child);
	tap_join(first);
	step(3);
	tap_join(second);
	tap_join(stranger);
	CHECK_EQ(shared->armed[0], 60);
	CHECK_EQ(shared->error[0], 0);
	CHECK_EQ(shared->armed[1], 25);
	CHECK_EQ(shared->error[1], -ENOSPC);
	CHECK_EQ(shared->armed[2], 100, "another user has a hundred too");
	CHECK_EQ(shared->error[2], 0);
	params_restore();
}

/* Timers that end in each way are given back, all of them */
static void giving_back_child(void)
{
	struct twheel_event ev[100];
	struct twheel_op ops[100];
	int fd, round, i;

	become(ALICE);
	for (round = 0; round < 5; round++) {
		fd = wheel_open(O_NONBLOCK);
		for (i = 0; i < 100; i++) {
			ops[i] = op_arm(TWHEEL_ABS, i < 50 ? 1 : KTIME_MAX, i);
			ops[i].interval = i % 5 ? 0 : HOUR;
		}
		submit_all(fd, ops, 100);
		expect_armed(fd, 1, 0);
		for (i = 0; i < 10; i++)
			CHECK_EQ(cancel(fd, ops[i].id), 0);
		for (i = 60; i < 70; i++)
			CHECK_EQ(cancel(fd, ops[i].id), 0);
		/* eight of the forty are periodic and go on */
		CHECK_EQ(read_events(fd, ev, 100), 40);
		CHECK_EQ(drain(fd, ops, 20), 20);
		expect_armed(fd, 100, 72);
		close(fd);
	}
}

static void test_giving_back(void)
{
	params("1000000", "100");
	tap_join(tap_fork(giving_back_child));
	params_restore();
}

static void weak_root_child(void)
{
	int fd;

	drop_resource();
	fd = wheel_open(O_NONBLOCK);
	expect_armed(fd, 200, 100);
	CHECK_EQ(wheel_setup(wheel_open(0), TWHEEL_CLOCK_MONOTONIC, 0, 1000001,
			     0), -ENOSPC);
}

/* An ARM that was refused got memory for it: SETUP keeps that, and is still allowed */
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
	expect_armed(other, 2, 1);
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
	CHECK(ev.expired >= deadline, "early");
}

static void test_refused(void)
{
	params("1000000", "1");
	tap_join(tap_fork(refused_child));
	params_restore();
}

/* Shared timers count from their set-up on, whatever is done with them */
static void shared_child(void)
{
	struct client client;
	int fd, other, round;

	become(ALICE);
	for (round = 0; round < 5; round++) {
		fd = wheel_open(O_NONBLOCK);
		CHECK_EQ(shared_setup(fd, 1, 0, 0, 101), -ENOSPC);
		CHECK_EQ(shared_setup(fd, 1, 0, 0, 60), 0);
		other = wheel_open(O_NONBLOCK);
		CHECK_EQ(shared_setup(other, 1, 0, 0, 41), -ENOSPC);
		expect_armed(other, 100, 40);
		expect_armed(fd, 1, 0);
		close(other);
		other = wheel_open(O_NONBLOCK);
		CHECK_EQ(shared_setup(other, 1, 0, 0, 40), 0);
		expect_armed(fd, 1, 0);
		close(fd);
		/* they are there as long as they are mapped */
		client_map(&client, other);
		shared_arm(&client, 0, HOUR);
		close(other);
		fd = wheel_open(O_NONBLOCK);
		expect_armed(fd, 100, 60);
		munmap(client.area, client.size);
		expect_armed(fd, 100, 40);
		close(fd);
	}
}

static void shared_wheel_child(void)
{
	int fd;

	become(ALICE);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, 1, 0, 0, 21), -ENOSPC);
	CHECK_EQ(shared_setup(fd, 1, 0, 10, 11), -ENOSPC);
	CHECK_EQ(shared_setup(fd, 1, 0, 21, 1), -ENOSPC);
	CHECK_EQ(shared_setup(fd, 1, 0, 10, 6), 0);
	CHECK_EQ(wheel_info(fd).limit, 10);
	expect_armed(fd, 10, 4);
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, 1, 0, 0, 20), 0);
	CHECK_EQ(wheel_info(fd).limit, 20);
	expect_armed(fd, 1, 0);
}

static void test_shared(void)
{
	int fd;

	params("1000000", "100");
	tap_join(tap_fork(shared_child));
	params("20", "1000000");
	tap_join(tap_fork(shared_wheel_child));
	/* root's CAP_SYS_RESOURCE */
	fd = wheel_open(O_NONBLOCK);
	CHECK_EQ(shared_setup(fd, 1, 0, 60, 50), 0);
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
	expect_armed(wheel_open(O_NONBLOCK), 200, 100);
}

static void test_namespace_root(void)
{
	params("1000000", "100");
	tap_join(tap_fork(namespace_root_child));
	params_restore();
}

static void full_root_child(void)
{
	drop_resource();
	expect_armed(wheel_open(O_NONBLOCK), 10, 0);
}

static void test_capability(void)
{
	int fd;

	params("1000000", "100");
	tap_join(tap_fork(weak_root_child));
	fd = wheel_open(O_NONBLOCK);
	expect_armed(fd, 300, 300);
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
	expect_armed(passed, 200, 100);
	fd = wheel_open(O_NONBLOCK);
	expect_armed(fd, 100, 100);
}

static void opener_child(void)
{
	int fd;

	become(ALICE);
	shared->armed[0] = wheel_open(O_NONBLOCK);
	step(1);
	wait_step(2);
	fd = wheel_open(O_NONBLOCK);
	expect_armed(fd, 10, 0);
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
	params("1000000", "100");
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
	struct stat st;

	tap_start(60);
	shared = map_shared(sizeof(*shared));
	read_text(PARAMETERS "max_timers", wheel_param, sizeof(wheel_param));
	read_text(PARAMETERS "max_user_timers", user_param,
		  sizeof(user_param));
	/* the root of an initramfs may be closed to others */
	if (stat(DEVICE, &st) || chmod(DEVICE, 0666) || chmod("/", 0755))
		tap_bail("%s: %s", DEVICE, strerror(errno));
	RUN(test_setup_limit, "the limit that a wheel was set up with");
	RUN(test_periodic_limit, "periodic timers at the limit");
	RUN(test_modify_at_limit, "MODIFY at the limit");
	RUN(test_wheel_limit, "the module's limit for a wheel");
	RUN(test_user_limit, "the limit of a user, across processes");
	RUN(test_refused, "SETUP after an ARM that was refused");
	RUN(test_shared, "shared timers");
	RUN(test_giving_back, "every end of a timer gives it back");
	RUN(test_capability, "CAP_SYS_RESOURCE goes over the limit of a user");
	RUN(test_namespace_root, "root of a user namespace does not");
	RUN(test_opener_pays, "a passed wheel counts for its opener");
	chmod(DEVICE, st.st_mode & 0777);
	return tap_end();
}
