// SPDX-License-Identifier: GPL-2.0
/*
 * A process that comes into other time namespaces with a wheel, by setns(2), fork(2) or as it
 * was given the descriptor: no timer is early there, none is lost, and twheel_now() is the
 * wheel's clock. What time it really is, the wall clock says, which no namespace moves. SEED in
 * the environment is where random numbers begin.
 */

#include "device.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/socket.h>

#include <twheel.h>
#include <twheel_pool.h>

#define TIMERS 32
#define STEPS 60

/* Of timers that are not to expire: what each namespace is ahead by is more */
#define FAR (1000 * SEC)

/* By how much the namespaces are ahead of that of the machine, in s; a day or two, or 2 ms */
static const long long ahead[] = { 0, 100000, 200000, 500, 99999 };

#define SPACES ARRAY_LEN(ahead)
#define ARRAY_LEN(x) (sizeof(x) / sizeof((x)[0]))

static int spaces[SPACES];
static const __u32 clocks[] = { TWHEEL_CLOCK_MONOTONIC, TWHEEL_CLOCK_BOOTTIME };
static struct twheel *tw;
static struct twheel_pool *pool;
static struct twheel_task tasks[TIMERS];
/* Of each timer and task: the wall clock's time before which it is early; 0 if it is not armed */
static __u64 due[2 * TIMERS];
static unsigned int armed;
static __u64 seed;

static __u64 rnd(__u64 below)
{
	return (random_next(&seed) >> 32) % below;
}

/* The namespaces, for this process to enter. Returns false without any. */
static bool make_spaces(void)
{
	char text[100];
	unsigned int i;

	for (i = 0; i < SPACES; i++) {
		/* In a user namespace of its own it may, though it may not set the clock. */
		if (unshare(i ? CLONE_NEWTIME : CLONE_NEWTIME | CLONE_NEWUSER))
			return false;
		snprintf(text, sizeof(text), "monotonic %lld %u\nboottime %lld %u\n", ahead[i],
			 i == 1 ? 2000000 : 0, ahead[i], i == 1 ? 2000000 : 0);
		if (write_text("/proc/self/timens_offsets", text))
			tap_bail("timens_offsets can't be written");
		spaces[i] = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
		if (spaces[i] < 0)
			tap_bail("time_for_children: %s", strerror(errno));
	}
	return true;
}

static void enter(unsigned int space)
{
	if (setns(spaces[space], CLONE_NEWTIME))
		tap_bail("setns: %s", strerror(errno));
}

static void open_both(__u32 clock)
{
	struct twheel_setup setup = { .size = sizeof(setup), .clock = clock, .tick = MSEC };
	struct twheel_pool_options options = {
		.size = sizeof(options), .clock = clock, .tick = MSEC,
	};
	struct twheel_op op = twheel_op_arm(0, FAR, 0, 2 * TIMERS);

	if (twheel_open(O_NONBLOCK, &tw) || twheel_setup(tw, &setup) ||
	    twheel_pool_new(&options, &pool))
		tap_bail("no wheel");
	EXPECT_EQ(twheel_arm(tw, &op), 0);
}

static void arm_one(unsigned int n)
{
	__u64 delay = (1 + rnd(40)) * MSEC, wall = now(CLOCK_REALTIME);
	bool absolute = rnd(2);
	struct twheel_op op;

	if (due[n])
		return;
	if (n >= TIMERS) {
		EXPECT_EQ(twheel_task_start(pool, &tasks[n - TIMERS], 0, delay, 0), 0);
	} else {
		op = twheel_op_arm(absolute ? TWHEEL_ABS : 0,
				   delay + (absolute ? twheel_now(tw) : 0), 0, n);
		EXPECT_EQ(twheel_arm(tw, &op), 0);
	}
	due[n] = wall + delay;
	armed++;
}

static void expired(unsigned int n)
{
	__u64 wall = now(CLOCK_REALTIME);

	if (!EXPECT_TRUE(n < 2 * TIMERS && due[n], "it is timer %u", n))
		return;
	EXPECT_TRUE(wall >= due[n], "timer %u is early by %llu ns", n, due[n] - wall);
	due[n] = 0;
	armed--;
}

static void take(void)
{
	struct twheel_task *taken[TIMERS];
	struct twheel_event events[TIMERS];
	int nr = twheel_read(tw, events, TIMERS), i;
	__u64 time = twheel_now(tw);

	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(events[i].deadline <= time && time < events[i].deadline + FAR / 2,
			    "deadline %llu at %llu", events[i].deadline, time);
		expired(events[i].user_data);
	}
	nr = twheel_pool_take(pool, taken, TIMERS, 0);
	for (i = 0; i < nr; i++)
		expired(TIMERS + (taken[i] - tasks));
}

static bool all_taken(void)
{
	take();
	return !armed;
}

static void entering(__u32 clock)
{
	struct twheel_info info = { .size = sizeof(info) };
	unsigned int i;

	enter(rnd(SPACES));
	open_both(clock);
	for (i = 0; i < STEPS && !tap_bad; i++) {
		switch (rnd(4)) {
		case 0:
			enter(rnd(SPACES));
			break;
		case 1:
			sleep_ns(rnd(20) * MSEC);
			break;
		default:
			arm_one(rnd(2 * TIMERS));
		}
		if (rnd(2))
			take();
	}
	/* As those who poll do: it is readable in time. */
	while (armed && !tap_bad && readable(twheel_fd(tw), 100))
		take();
	EXPECT_TRUE(WAIT_FOR(all_taken()), "%u timers are lost", armed);
	EXPECT_EQ(twheel_info(tw, &info), 0);
	EXPECT_EQ(info.pending, 1, "that which is far away");
	EXPECT_TRUE(info.now <= twheel_now(tw) && twheel_now(tw) < info.now + SEC);
	EXPECT_EQ(twheel_pool_free(pool), 0);
	twheel_close(tw);
}

static void entering_child(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(clocks); i++)
		entering(clocks[i]);
}

/* A wheel of another namespace, in which that is so: an absolute time comes when it is to */
static void use_there(struct twheel *there)
{
	struct twheel_event event = { 0 };
	__u64 wall = now(CLOCK_REALTIME);
	struct twheel_op op = twheel_op_arm(TWHEEL_ABS, twheel_now(there) + 50 * MSEC, 0, 1);

	EXPECT_EQ(twheel_arm(there, &op), 0);
	EXPECT_TRUE(readable(twheel_fd(there), PATIENCE_MS), "it does not come");
	EXPECT_TRUE(now(CLOCK_REALTIME) >= wall + 50 * MSEC, "early");
	EXPECT_EQ(twheel_read(there, &event, 1), 1);
	EXPECT_EQ(event.deadline, op.deadline);
	EXPECT_TRUE(twheel_now(there) >= event.deadline);
}

static void forked_child(void)
{
	struct twheel_op op = twheel_op_arm(0, MSEC, 0, 0);

	if (twheel_backend(tw) == TWHEEL_USER)
		EXPECT_EQ(twheel_arm(tw, &op), -EBADF);
	else
		use_there(tw);
}

static void forking_child(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(clocks); i++) {
		open_both(clocks[i]);
		/* The last namespace is that of children. */
		tap_join(tap_fork(forked_child));
		EXPECT_EQ(twheel_pool_free(pool), 0);
		twheel_close(tw);
	}
}

static int sockets[2];

static void giving_child(void)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec vec = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &vec, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(clocks); i++) {
		int fd;

		open_both(clocks[i]);
		fd = twheel_fd(tw);
		*control = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(control), &fd, sizeof(fd));
		EXPECT_EQ(sendmsg(sockets[0], &message, 0), 1);
	}
}

/* The children are in the last namespace, and we are not. */
static void taking_child(void)
{
	char space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec vec = { &byte, 1 };
	unsigned int i;
	bool in_kernel;
	pid_t child;

	open_both(clocks[0]);
	in_kernel = twheel_backend(tw) == TWHEEL_KERNEL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		tap_bail("socketpair: %s", strerror(errno));
	child = tap_fork(giving_child);
	for (i = 0; i < ARRAY_LEN(clocks); i++) {
		struct msghdr message = {
			.msg_iov = &vec, .msg_iovlen = 1,
			.msg_control = space, .msg_controllen = sizeof(space),
		};
		struct twheel *given;
		int fd, ret;

		EXPECT_EQ(recvmsg(sockets[1], &message, MSG_CMSG_CLOEXEC), 1);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		ret = twheel_from_fd(fd, &given);
		/* One in the program itself is in nobody else's. */
		if (!in_kernel) {
			EXPECT_TRUE(ret < 0);
			close(fd);
		} else if (EXPECT_EQ(ret, 0)) {
			use_there(given);
			twheel_close(given);
		}
	}
	tap_join(child);
}

static void (*then)(void);

static void in_spaces(void)
{
	if (!make_spaces())
		_exit(77);
	then();
}

static void with_spaces(void (*fn)(void))
{
	pid_t pid;
	int status;

	then = fn;
	pid = tap_fork(in_spaces);
	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid failed");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		tap_skip("no time namespaces here, or not for us");
	else
		EXPECT_EQ(status, 0, "child's status");
}

int main(void)
{
	seed = number_of("SEED", 1);
	tap_start(120);
	RUN_CALL(with_spaces(entering_child), "setns");
	RUN_CALL(with_spaces(forking_child), "fork");
	RUN_CALL(with_spaces(taking_child), "a descriptor that was given");
	return tap_end();
}
