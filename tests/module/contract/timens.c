// SPDX-License-Identifier: GPL-2.0
/*
 * A time namespace: all absolute times of a wheel are those of the namespace
 * in which it was opened, whoever uses it.
 */
#include "shared.h"

#include <linux/sched.h>

/* Far from each other, and from what a machine has been up */
#define MONOTONIC_OFFSET (1000000 * SEC)
#define BOOTTIME_OFFSET (5000000 * SEC)

#define NO_NAMESPACES 77	/* status of a child */

static int fd;
static __u64 *ids;
static __u32 clock_id;

/* Children are in a namespace that is so far ahead */
static bool offsets_set(void)
{
	char text[128];

	if (syscall(SYS_unshare, CLONE_NEWTIME)) {
		if (errno == EINVAL) {
			tap_skip("this kernel has no time namespaces");
			return false;
		}
		tap_bail("unshare: %s", strerror(errno));
	}
	snprintf(text, sizeof(text), "monotonic %llu 0\nboottime %llu 0\n",
		 MONOTONIC_OFFSET / SEC, BOOTTIME_OFFSET / SEC);
	if (write_text("/proc/self/timens_offsets", text))
		tap_bail("timens_offsets can't be written");
	return true;
}

static __u64 offset_of(__u32 clock)
{
	return clock == TWHEEL_CLOCK_MONOTONIC ? MONOTONIC_OFFSET :
	       clock == TWHEEL_CLOCK_BOOTTIME ? BOOTTIME_OFFSET : 0;
}

static bool about(__u64 a, __u64 b)
{
	return a < b + 100 * SEC && b < a + 100 * SEC;
}

/* In a process of its own, which unshares; the tests run in its child */
static void (*inner)(void);

static void unshared_child(void)
{
	if (offsets_set())
		tap_join(tap_fork(inner));
	if (tap_skipped[0])
		_exit(NO_NAMESPACES);
}

static void in_namespace(void (*fn)(void))
{
	pid_t pid;
	int status;

	inner = fn;
	pid = tap_fork(unshared_child);
	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid failed");
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACES)
		tap_skip("this kernel has no time namespaces");
	else
		EXPECT_EQ(status, 0, "child's status");
}

/* A lower bound, but not one of another time */
static void check_next(__u32 clock, __u64 time, __u64 deadline)
{
	__u64 next = wheel_info(fd).next_expiry;

	EXPECT_TRUE(next + SEC >= time && next <= deadline + 10 * MSEC,
		    "clock %u next expiry %llu, now %llu, a timer at %llu", clock,
		    next, time, deadline);
}

static void absolute(__u32 clock)
{
	struct twheel_event ev;
	struct twheel_op op;
	__u64 deadline, id;

	fd = wheel_new(clock, 0);
	deadline = wheel_now(clock) + 50 * MSEC;
	id = arm(fd, TWHEEL_ABS, deadline, 1);
	EXPECT_EQ(query(fd, id, &op), 0, "clock %u", clock);
	EXPECT_EQ(op.deadline, deadline, "clock %u", clock);
	EXPECT_EQ(collect(fd, &ev, 1), 1, "clock %u", clock);
	EXPECT_EQ(ev.deadline, deadline, "clock %u", clock);
	EXPECT_TRUE(wheel_now(clock) >= deadline, "clock %u early", clock);

	/* a time that is past here, though not outside */
	arm(fd, TWHEEL_ABS, wheel_now(clock) - SEC, 2);
	EXPECT_EQ(read_events(fd, &ev, 1), 1, "clock %u", clock);
	/* before there was anything outside */
	arm(fd, TWHEEL_ABS, 1, 3);
	EXPECT_EQ(read_events(fd, &ev, 1), 1, "clock %u", clock);
	EXPECT_TRUE(ev.deadline <= wheel_now(clock), "clock %u", clock);

	deadline = wheel_now(clock) + HOUR;
	id = arm(fd, TWHEEL_ABS, deadline, 4);
	check_next(clock, wheel_now(clock), deadline);
	EXPECT_EQ(drain(fd, &op, 1), 1);
	EXPECT_EQ(op.deadline, deadline, "drained, clock %u", clock);
	close(fd);
}

/* The words have the namespace's time in them, as answers about them have */
static void shared_absolute(__u32 clock)
{
	struct twheel_event ev;
	struct twheel_op op;
	struct client c;
	__u64 deadline;
	__u32 i;

	client_open(&c, clock, 0, 10);
	deadline = wheel_now(clock) + 50 * MSEC;
	shared_arm(&c, 1, deadline);
	EXPECT_EQ(collect(c.fd, &ev, 1), 1, "clock %u", clock);
	EXPECT_EQ(ev.deadline | ARMED, deadline | ARMED, "clock %u", clock);
	EXPECT_TRUE(wheel_now(clock) >= deadline, "clock %u early", clock);
	/* past here, though not outside; and before there was anything outside */
	for (i = 2; i < 4; i++) {
		shared_arm(&c, i, i == 2 ? wheel_now(clock) - SEC : 1);
		EXPECT_TRUE(readable(c.fd, PATIENCE_MS), "clock %u", clock);
		EXPECT_TRUE(shared_take(&c, &i), "clock %u", clock);
	}
	deadline = wheel_now(clock) + HOUR;
	shared_arm(&c, 4, deadline);
	EXPECT_TRUE(read64(&c.area->next_wake) <= deadline + SEC &&
		    read64(&c.area->next_wake) + SEC > wheel_now(clock),
		    "clock %u next wake-up %llu deadline %llu", clock,
		    read64(&c.area->next_wake), deadline);
	EXPECT_EQ(drain(c.fd, &op, 1), 1);
	EXPECT_EQ(op.deadline | ARMED, deadline | ARMED, "clock %u", clock);
	client_close(&c);
}

static void on_each_clock(void (*fn)(__u32 clock))
{
	fn(TWHEEL_CLOCK_MONOTONIC);
	fn(TWHEEL_CLOCK_BOOTTIME);
	fn(TWHEEL_CLOCK_REALTIME);
	fn(TWHEEL_CLOCK_TAI);
}

static void shared_child(void)
{
	on_each_clock(shared_absolute);
}

static void absolute_child(void)
{
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= MONOTONIC_OFFSET);
	EXPECT_TRUE(now(CLOCK_BOOTTIME) >= BOOTTIME_OFFSET);
	on_each_clock(absolute);
}

static void relative(__u32 clock)
{
	struct twheel_event ev;
	struct twheel_op op;
	__u64 before, after, id;

	fd = wheel_new(clock, MSEC);
	before = wheel_now(clock);
	id = arm(fd, 0, 50 * MSEC, 1);
	after = wheel_now(clock);
	EXPECT_EQ(query(fd, id, &op), 0, "clock %u", clock);
	EXPECT_TRUE(op.deadline >= before + 50 * MSEC &&
		    op.deadline <= after + 50 * MSEC, "clock %u: %llu of %llu",
		    clock, op.deadline, before + 50 * MSEC);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.deadline, op.deadline, "clock %u", clock);
	EXPECT_TRUE(wheel_now(clock) >= ev.deadline, "clock %u early", clock);

	/* a day is no more than a day, and the largest time is the largest */
	arm(fd, 0, 24 * HOUR, 2);
	id = arm(fd, TWHEEL_ABS, KTIME_MAX, 3);
	EXPECT_EQ(readable(fd, 20), 0, "clock %u", clock);
	EXPECT_EQ(query(fd, id, &op), 0);
	EXPECT_EQ(op.deadline, KTIME_MAX, "clock %u", clock);
	close(fd);
}

static void relative_child(void)
{
	relative(TWHEEL_CLOCK_MONOTONIC);
	relative(TWHEEL_CLOCK_BOOTTIME);
}

/* ---- a wheel in another namespace than its opener's ---- */

/* Who uses the wheel of a namespace whose time is so far ahead of that here */
static void use_elsewhere(__s64 ahead)
{
	struct twheel_event ev;
	struct twheel_op op;
	__u64 deadline, time;

	EXPECT_EQ(query(fd, ids[0], &op), 0);
	EXPECT_EQ(op.deadline, ids[1], "as the opener sees it");
	check_next(clock_id, wheel_now(clock_id) + ahead, ids[1]);
	deadline = wheel_now(clock_id) + ahead + 50 * MSEC;
	arm(fd, TWHEEL_ABS, deadline, 5);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 5);
	EXPECT_EQ(ev.deadline, deadline);
	time = wheel_now(clock_id) + ahead;
	EXPECT_TRUE(time >= deadline && about(time, deadline),
		    "time %llu deadline %llu", time, deadline);
}

static void guest_child(void)
{
	use_elsewhere(-offset_of(clock_id));
	/* one of its own has its own times */
	absolute(clock_id);
}

static void brought_in(__u32 clock)
{
	clock_id = clock;
	fd = wheel_new(clock, 0);
	ids[1] = wheel_now(clock) + HOUR;
	ids[0] = arm(fd, TWHEEL_ABS, ids[1], 1);
	in_namespace(guest_child);
	close(fd);
}

static void test_brought_in(void)
{
	brought_in(TWHEEL_CLOCK_MONOTONIC);
	brought_in(TWHEEL_CLOCK_BOOTTIME);
}

static void opening_child(void)
{
	fd = wheel_new(clock_id, 0);
	ids[1] = wheel_now(clock_id) + HOUR;
	ids[0] = arm(fd, TWHEEL_ABS, ids[1], 1);
	ids[2] = fd;
	__atomic_store_n(&ids[3], getpid(), __ATOMIC_RELEASE);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&ids[4], __ATOMIC_ACQUIRE)));
}

/* The child's wheel, taken over by us here outside */
static void taking_child(void)
{
	int pidfd;

	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&ids[3], __ATOMIC_ACQUIRE)));
	pidfd = syscall(SYS_pidfd_open, ids[3], 0);
	fd = syscall(SYS_pidfd_getfd, pidfd, ids[2], 0);
	__atomic_store_n(&ids[4], 1, __ATOMIC_RELEASE);
	if (fd < 0)
		tap_bail("pidfd_getfd: %s", strerror(errno));
	use_elsewhere(offset_of(clock_id));
}

static void brought_out(__u32 clock)
{
	pid_t pid;

	clock_id = clock;
	memset(ids, 0, PAGE);
	pid = tap_fork(taking_child);
	in_namespace(opening_child);
	tap_join(pid);
}

static void test_brought_out(void)
{
	/* without namespaces nobody would come */
	if (access("/proc/self/timens_offsets", F_OK)) {
		tap_skip("this kernel has no time namespaces");
		return;
	}
	brought_out(TWHEEL_CLOCK_MONOTONIC);
	brought_out(TWHEEL_CLOCK_BOOTTIME);
}

int main(void)
{
	tap_start(60);
	ids = map_shared(PAGE);
	RUN_CALL(in_namespace(absolute_child), "absolute times are the namespace's");
	RUN_CALL(in_namespace(shared_child), "shared timers");
	RUN_CALL(in_namespace(relative_child), "delays are delays");
	RUN(test_brought_in, "a wheel from outside keeps the time outside");
	RUN(test_brought_out, "a wheel from inside keeps the time inside");
	return tap_end();
}
