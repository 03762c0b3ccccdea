// SPDX-License-Identifier: GPL-2.0
/*
 * What a wheel in the program itself can't do, as the table of libtwheel(3) says, and
 * which of the two a program gets. With a device or without one. Linked with --wrap.
 */

#include "device.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/timerfd.h>

#include <twheel.h>
#include <twheel_shared.h>

static struct twheel *tw;

static void fresh(int flags)
{
	int ret;

	twheel_close(tw);
	tw = NULL;
	ret = twheel_open(TWHEEL_USER | flags, &tw);
	if (ret)
		tap_bail("twheel_open: %s", strerror(-ret));
}

static __u64 armed(__u8 flags, __u64 deadline)
{
	struct twheel_op op = twheel_op_arm(flags, deadline, 0, 0);

	EXPECT_EQ(twheel_arm(tw, &op), 0);
	return op.id;
}

/* What twheel_open() gives with these flags and that environment: a backend or an error */
static int given(int flags, const char *environment)
{
	int ret;

	setenv("TWHEEL_BACKEND", environment, 1);
	twheel_close(tw);
	tw = NULL;
	ret = twheel_open(flags, &tw);
	unsetenv("TWHEEL_BACKEND");
	return ret ?: twheel_backend(tw);
}

static void test_choice(void)
{
	int kernel = access(DEVICE, R_OK | W_OK) ? -errno : TWHEEL_KERNEL;
	int best = kernel < 0 ? TWHEEL_USER : TWHEEL_KERNEL;

	EXPECT_EQ(given(0, ""), best);
	EXPECT_EQ(given(O_NONBLOCK, ""), best);
	EXPECT_EQ(given(TWHEEL_USER, ""), TWHEEL_USER);
	EXPECT_EQ(given(TWHEEL_KERNEL, ""), kernel);
	EXPECT_EQ(given(0, "user"), TWHEEL_USER);
	EXPECT_EQ(given(0, "kernel"), kernel);
	EXPECT_EQ(given(TWHEEL_USER, "kernel"), TWHEEL_USER, "flags come first");
	EXPECT_EQ(given(TWHEEL_KERNEL, "user"), kernel, "flags come first");
	EXPECT_EQ(given(0, "User"), -EINVAL);
	EXPECT_EQ(given(TWHEEL_KERNEL | TWHEEL_USER, ""), -EINVAL);
	EXPECT_EQ(given(TWHEEL_USER | O_APPEND, ""), -EINVAL);
}

static void test_descriptor(void)
{
	struct twheel *other;
	char room[32];

	fresh(O_NONBLOCK);
	armed(TWHEEL_ABS, 1);
	EXPECT_TRUE(readable(twheel_fd(tw), 0));
	EXPECT_EQ(read(twheel_fd(tw), room, sizeof(room)), -1);
	EXPECT_EQ(errno, EINVAL, "read(2)");
	EXPECT_TRUE(ioctl(twheel_fd(tw), TWHEEL_IOC_INFO, room) == -1 &&
		    (errno == ENOTTY || errno == EINVAL), "ioctl(2): %d", errno);
	errno = -twheel_from_fd(twheel_fd(tw), &other);
	EXPECT_TRUE(errno == ENOTTY || errno == EINVAL, "twheel_from_fd(): %d", errno);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFD), FD_CLOEXEC, "gone after execve(2)");
}

static void in_child(void)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel_stats stats = { .size = sizeof(stats) };
	struct twheel_setup setup = {
		.size = sizeof(setup), .clock = TWHEEL_CLOCK_MONOTONIC,
	};
	struct twheel_op op = twheel_op_arm(0, HOUR, 0, 0);
	struct twheel_event event;

	EXPECT_EQ(twheel_arm(tw, &op), -EBADF);
	EXPECT_EQ(twheel_submit(tw, &op, 1), -EBADF);
	EXPECT_EQ(twheel_submit(tw, &op, 0), -EBADF, "though there is nothing to do");
	EXPECT_EQ(twheel_drain(tw, &op, 1), -EBADF);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EBADF);
	EXPECT_EQ(twheel_run_once(tw, 0), -EBADF);
	EXPECT_EQ(twheel_setup(tw, &setup), -EBADF);
	EXPECT_EQ(twheel_info(tw, &info), -EBADF);
	EXPECT_EQ(twheel_stats(tw, &stats), -EBADF);
	twheel_close(tw);
	tw = NULL;
	fresh(O_NONBLOCK);
	armed(TWHEEL_ABS, 1);
	EXPECT_EQ(twheel_read(tw, &event, 1), 1, "one of its own");
	twheel_close(tw);
}

static bool over;

#define MANY 4096

/* So many that memory comes and goes */
static void *arm_and_cancel(void *arg)
{
	static struct twheel_op ops[MANY];
	unsigned int i;

	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		for (i = 0; i < MANY; i++)
			ops[i] = twheel_op_arm(0, HOUR, 0, 0);
		EXPECT_EQ(twheel_submit(tw, ops, MANY), MANY);
		for (i = 0; i < MANY; i++)
			ops[i] = twheel_op_cancel(ops[i].id);
		EXPECT_EQ(twheel_submit(tw, ops, MANY), MANY);
	}
	return NULL;
}

/* Whatever other threads do meanwhile; and the parent's wheel goes on */
static void test_fork(void)
{
	struct twheel_event event;
	pthread_t thread;
	__u64 id;
	int i;

	fresh(0);
	id = armed(0, 50 * MSEC);
	over = false;
	if (pthread_create(&thread, NULL, arm_and_cancel, NULL))
		tap_bail("pthread_create");
	for (i = 0; i < 100; i++)
		tap_join(tap_fork(in_child));
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(event.id, id);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static void test_not_there(void)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.shared = 1,
	};
	struct twheel_area area;

	fresh(0);
	EXPECT_EQ(twheel_info(tw, &info), 0);
	EXPECT_EQ(info.features, TWHEEL_FEATURE_COUNT | TWHEEL_FEATURE_DRAIN);
	EXPECT_EQ(twheel_setup(tw, &setup), -ENODEV);
	EXPECT_EQ(twheel_shared_map(tw, &area), -EINVAL);
	EXPECT_EQ(twheel_set_eventfd(tw, -1), -EOPNOTSUPP);
	EXPECT_EQ(twheel_set_eventfd(tw, 0), -EOPNOTSUPP);
	setup.flags = 0;
	setup.shared = 0;
	setup.limit = info.user_limit + 1;
	EXPECT_EQ(twheel_setup(tw, &setup), -ENOSPC);
	setup.limit = info.user_limit;
	EXPECT_EQ(twheel_setup(tw, &setup), 0);
}

/* Woken for a timer that was cancelled, beside one that was not: there is nothing, once */
static void test_for_nothing(void)
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	struct twheel_event event;
	__u64 start, id;

	fresh(O_NONBLOCK);
	armed(0, HOUR);
	start = now(CLOCK_MONOTONIC);
	id = armed(0, 20 * MSEC);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	if (readable(twheel_fd(tw), 100))
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= start + 20 * MSEC);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0), "not again");
	/* Who waits by way of the library does not notice */
	start = now(CLOCK_MONOTONIC);
	id = armed(0, 20 * MSEC);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_run_once(tw, 100), 0);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= start + 99 * MSEC);
	/* The same after the last one; then all is silent */
	fresh(O_NONBLOCK);
	id = armed(0, 20 * MSEC);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	readable(twheel_fd(tw), 60);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 60), "not again");
	EXPECT_EQ(twheel_stats(tw, &stats), 0);
	EXPECT_EQ(stats.wakeups, 1);
}

/* It is the next call that sees what time it is */
static void test_cancel_due(void)
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	struct twheel_event event;
	__u64 due, id, other;

	fresh(O_NONBLOCK);
	due = now(CLOCK_MONOTONIC) + 10 * MSEC;
	id = armed(TWHEEL_ABS, due);
	other = armed(TWHEEL_ABS, due);
	EXPECT_TRUE(readable(twheel_fd(tw), 10000));
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_cancel(tw, id), -ENOENT);
	EXPECT_TRUE(readable(twheel_fd(tw), 0), "the other one is due");
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(event.id, other);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0));
	/* The only one */
	id = armed(0, 10 * MSEC);
	EXPECT_TRUE(readable(twheel_fd(tw), 10000));
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0));
	/* One that is known to have expired */
	id = armed(0, 10 * MSEC);
	EXPECT_TRUE(readable(twheel_fd(tw), 10000));
	EXPECT_EQ(twheel_stats(tw, &stats), 0);
	EXPECT_EQ(stats.expired, 2);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0));
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_EQ(twheel_stats(tw, &stats), 0);
	EXPECT_EQ(stats.cancelled, 3);
	EXPECT_EQ(stats.delivered, 1);
}

/* How often the library has set its timerfd */
static unsigned int settings;

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to,
			   struct itimerspec *was)
{
	settings++;
	return syscall(SYS_timerfd_settime, fd, flags, to, was);
}

/* A timer that is cancelled costs no system call each time, be it the only one or not */
static void test_cheap(void)
{
	int i;

	fresh(0);
	settings = 0;
	for (i = 0; i < 1000; i++)
		EXPECT_EQ(twheel_cancel(tw, armed(0, HOUR)), 0);
	EXPECT_EQ(settings, 1);
	armed(0, HOUR / 2);
	for (i = 0; i < 1000; i++)
		EXPECT_EQ(twheel_cancel(tw, armed(0, HOUR)), 0);
	EXPECT_EQ(settings, 2);
}

static int handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *interrupt(void *arg)
{
	pid_t *reader = arg;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		syscall(SYS_tgkill, getpid(), *reader, SIGUSR1);
		sleep_ns(10 * MSEC);
	}
	return NULL;
}

static void test_restart(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct twheel_event event;
	pid_t reader = gettid();
	pthread_t thread;

	fresh(0);
	armed(0, HOUR);
	over = false;
	sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&thread, NULL, interrupt, &reader))
		tap_bail("pthread_create");
	EXPECT_EQ(twheel_read(tw, &event, 1), -EINTR);
	EXPECT_TRUE(handled);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static void *use_all(void *arg)
{
	struct twheel_event event[4];

	(void)arg;
	for (;;) {
		armed(TWHEEL_ABS, 1);
		armed(0, MSEC);
		twheel_read(tw, event, 1);
		pthread_testcancel();
	}
	return NULL;
}

/* Wherever it is: in a read that waits, or in any other function */
static void test_cancelled_thread(void)
{
	struct twheel_event event;
	pthread_t thread;
	void *ret;
	int i;

	for (i = 0; i < 200; i++) {
		fresh(0);
		if (pthread_create(&thread, NULL, use_all, NULL))
			tap_bail("pthread_create");
		sleep_ns(i % 10 * 100 * USEC);
		pthread_cancel(thread);
		pthread_join(thread, &ret);
		EXPECT_TRUE(ret == PTHREAD_CANCELED);
		armed(TWHEEL_ABS, 1);
		EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	}
}

int main(void)
{
	tap_start(60);
	RUN(test_choice, "which of the two a program gets");
	RUN(test_descriptor, "the descriptor, by itself");
	RUN(test_fork, "fork");
	RUN(test_not_there, "shared timers, eventfd, limits");
	RUN(test_for_nothing, "readable for nothing");
	RUN(test_cancel_due, "a timer that is due is cancelled");
	RUN(test_cheap, "one timer, armed and cancelled again and again");
	RUN(test_restart, "a reader that waits, and SA_RESTART");
	RUN(test_cancelled_thread, "a thread that is cancelled");
	twheel_close(tw);
	return tap_end();
}
