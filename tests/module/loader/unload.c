// SPDX-License-Identifier: GPL-2.0
/*
 * Loading twice; unloading while the module is in use, which has to be refused
 * and to change nothing, and at once after that, which has to work whatever
 * the last wheel had in it.
 */
#include "loader.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* So many wheels are open, and this one works as if nobody had asked to unload */
static void check_refused(int fd, int want)
{
	EXPECT_EQ(users(NAME), want * USES_OF_WHEEL);
	EXPECT_EQ(unload(), -EAGAIN);
	EXPECT_EQ(users(NAME), want * USES_OF_WHEEL);
	check_loaded();
	if (fd >= 0) {
		struct twheel_event ev;
		__u64 id = arm_past(fd, 42);

		if (collect(fd, &ev, 1))
			EXPECT_TRUE(ev.id == id && ev.user_data == 42, "wrong event");
	}
}

static void test_twice(void)
{
	int fd;

	must_load("budget=99");
	fd = wheel_open(0);
	EXPECT_EQ(load("budget=77"), -EEXIST);
	check_refused(fd, 1);
	EXPECT_EQ(parameter_value("budget"), 99);
	close(fd);
	must_unload();
	EXPECT_EQ(unload(), -ENOENT);
	must_load("");
	check_loaded();
	must_unload();
}

static void test_not_loaded(void)
{
	EXPECT_EQ(unload(), -ENOENT);
	EXPECT_EQ(open(DEVICE, O_RDWR | O_CLOEXEC), -1);
	EXPECT_EQ(errno, ENOENT);
}

static void test_open(void)
{
	int a, b, c;

	must_load("");
	EXPECT_EQ(users(NAME), 0);
	a = wheel_open(0);
	check_refused(a, 1);
	b = wheel_open(0);
	check_refused(b, 2);
	c = dup(a);
	check_refused(c, 2);
	close(a);
	check_refused(c, 2);
	close(c);
	check_refused(b, 1);
	close(b);
	must_unload();
}

static void arm_slack(int fd, unsigned int nr, __u64 deadline, __u64 interval,
		      __u64 slack)
{
	struct twheel_op ops[1000];
	unsigned int i;

	if (nr > ARRAY_SIZE(ops))
		tap_bail("%u are too many", nr);
	for (i = 0; i < nr; i++) {
		ops[i] = op_arm(0, deadline, i);
		ops[i].interval = interval;
		ops[i].slack = slack;
	}
	submit_all(fd, ops, nr);
}

static void arm_many(int fd, unsigned int nr, __u64 deadline, __u64 interval)
{
	arm_slack(fd, nr, deadline, interval, 0);
}

static void test_pending(void)
{
	static const __u64 deadlines[] = { 5 * MSEC, SEC, HOUR, KTIME_MAX };
	size_t i;
	int fd;

	must_load("");
	fd = wheel_open(0);
	for (i = 0; i < ARRAY_SIZE(deadlines); i++)
		arm_many(fd, 1000, deadlines[i], 0);
	arm_many(fd, 1000, 300 * MSEC, 300 * MSEC);
	/* It may be running just now, and not be set. */
	EXPECT_TRUE(WAIT_FOR(mentions("/proc/timer_list", "tw_timer_fn")),
		    "what check_gone() looks for");
	check_refused(-1, 1);
	close(fd);
	must_unload();
}

static void test_ready(void)
{
	int fd;

	must_load("");
	fd = wheel_open(0);
	arm_many(fd, 1000, MSEC, 0);
	arm_many(fd, 1000, MSEC, MSEC);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 2000));
	check_refused(-1, 1);
	EXPECT_EQ(wheel_info(fd).ready, 2000);
	close(fd);
	must_unload();
}

/* The timer is running, or about to, when the wheel goes */
static void test_expiring(void)
{
	unsigned int i, k;

	for (i = 0; i < 10; i++) {
		must_load("");
		for (k = 0; k < 20; k++) {
			int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);

			arm_many(fd, 100, k * 20 * USEC, 0);
			arm_many(fd, 100, 100 * USEC, 50 * USEC);
			if (k % 2)
				EXPECT_TRUE(readable(fd, PATIENCE_MS));
			close(fd);
		}
		EXPECT_EQ(unload(), 0);
	}
	check_gone();
}

/* Whether this program goes before the worker, which leaves the only processor to no other */
static void go_first(bool on)
{
	struct sched_param param = { .sched_priority = on };

	if (sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param))
		tap_bail("sched_setscheduler: %s", strerror(errno));
}

/* The worker is on it, many pieces from its end, when the wheel goes */
static void test_working(void)
{
	unsigned int tries, k, caught = 0;

	go_first(true);
	for (tries = 0; caught < 3 && tries < 30; tries++) {
		int fd;

		must_load("budget=16");
		/* Timers with slack are looked at one by one. */
		fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, 100 * MSEC);
		for (k = 0; k < 50; k++)
			arm_slack(fd, 1000, 20 * MSEC, 0, 100 * MSEC);
		EXPECT_TRUE(WAIT_FOR(module_counter("deferred")));
		caught += wheel_info(fd).pending > 1000;
		close(fd);
		EXPECT_EQ(unload(), 0);
	}
	go_first(false);
	EXPECT_EQ(caught, 3, "of %u tries", tries);
	check_gone();
}

static int shared_fd;
static pid_t reader_tid;

static void *reader(void *result)
{
	struct twheel_event ev;

	__atomic_store_n(&reader_tid, gettid(), __ATOMIC_RELEASE);
	*(ssize_t *)result = read(shared_fd, &ev, sizeof(ev));
	return NULL;
}

static pthread_t start_reader(ssize_t *result)
{
	pthread_t thread;

	reader_tid = 0;
	if (pthread_create(&thread, NULL, reader, result))
		tap_bail("pthread_create");
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&reader_tid, __ATOMIC_ACQUIRE) &&
			     blocked_in(reader_tid, SYS_read)));
	return thread;
}

/* A read that waits keeps the wheel, even if its descriptor is closed */
static void test_reader(void)
{
	pthread_t thread;
	ssize_t result;

	must_load("");
	shared_fd = wheel_open(0);
	thread = start_reader(&result);
	check_refused(-1, 1);
	arm(shared_fd, 0, 200 * MSEC, 0);
	close(shared_fd);
	EXPECT_EQ(unload(), -EAGAIN);
	pthread_join(thread, NULL);
	EXPECT_EQ(result, sizeof(struct twheel_event));
	must_unload();
}

static void block_in_read(void)
{
	struct twheel_event ev;

	read_events(shared_fd, &ev, 1);
}

static void test_killed_reader(void)
{
	pid_t pid;

	must_load("");
	shared_fd = wheel_open(0);
	pid = tap_fork(block_in_read);
	close(shared_fd);
	EXPECT_TRUE(WAIT_FOR(blocked_in(pid, SYS_read)));
	check_refused(-1, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	must_unload();
}

static void wait_for_signal(void)
{
	sleep_ns(HOUR);
}

static void test_inherited(void)
{
	pid_t pid;
	int fd;

	must_load("");
	fd = wheel_open(0);
	arm(fd, 0, HOUR, 0);
	pid = tap_fork(wait_for_signal);
	EXPECT_TRUE(WAIT_FOR(blocked_in(pid, SYS_clock_nanosleep)));
	check_refused(fd, 1);
	close(fd);
	check_refused(-1, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	must_unload();
}

/* On its way to another process, which never takes it */
static void test_in_flight(void)
{
	int fd, pair[2];

	must_load("");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		tap_bail("socketpair: %s", strerror(errno));
	fd = wheel_open(0);
	arm(fd, 0, HOUR, 0);
	send_fd(pair[0], fd);
	close(fd);
	check_refused(-1, 1);
	close(pair[0]);
	close(pair[1]);
	EXPECT_TRUE(WAIT_FOR(!users(NAME)));
	must_unload();
}

static void *poller(void *result)
{
	struct epoll_event ev;

	__atomic_store_n(&reader_tid, gettid(), __ATOMIC_RELEASE);
	*(ssize_t *)result = epoll_wait(shared_fd, &ev, 1, 500);
	return NULL;
}

/* epoll and an eventfd know of the wheel, but don't keep it */
static void test_watched(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int efd = eventfd(0, EFD_NONBLOCK), fd;
	pthread_t thread;
	ssize_t result;
	__u64 count;

	must_load("");
	shared_fd = epoll_create1(0);
	fd = wheel_open(0);
	EXPECT_EQ(wheel_eventfd(fd, efd), 0);
	EXPECT_EQ(epoll_ctl(shared_fd, EPOLL_CTL_ADD, fd, &ev), 0);
	reader_tid = 0;
	if (pthread_create(&thread, NULL, poller, &result))
		tap_bail("pthread_create");
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&reader_tid, __ATOMIC_ACQUIRE)));
	check_refused(-1, 1);
	close(fd);
	must_unload();
	pthread_join(thread, NULL);
	EXPECT_EQ(result, 0);
	close(shared_fd);
	EXPECT_EQ(read(efd, &count, sizeof(count)), -1);
	close(efd);
}

/* Files of the module's in debugfs and sysfs */
static void test_its_files(void)
{
	int counters, parameter;
	char text[64] = "";

	must_load("");
	counters = open(COUNTERS, O_RDONLY | O_CLOEXEC);
	EXPECT_TRUE(counters >= 0);
	EXPECT_EQ(unload(), -EAGAIN);
	check_loaded();
	EXPECT_TRUE(read(counters, text, sizeof(text) - 1) > 0);
	EXPECT_TRUE(!strncmp(text, "open 0\n", 7), "%s", text);
	close(counters);

	parameter = open(PARAMETERS "budget", O_RDONLY | O_CLOEXEC);
	EXPECT_TRUE(parameter >= 0);
	must_unload();
	EXPECT_EQ(read(parameter, text, sizeof(text)), -1);
	EXPECT_EQ(errno, ENODEV);
	close(parameter);
}

/* All tracepoints on, and events of theirs still to be shown afterwards */
static void test_traced(void)
{
	static const char tracing[] = "/sys/kernel/tracing/";
	char path[128];
	int fd;

	must_load("");
	snprintf(path, sizeof(path), "%sevents/" NAME "/enable", tracing);
	EXPECT_EQ(write_text(path, "1"), 0);
	fd = wheel_open(0);
	arm_many(fd, 100, HOUR, 0);
	check_refused(fd, 1);
	close(fd);
	must_unload();

	snprintf(path, sizeof(path), "%strace", tracing);
	/* The buffer is emptied when a module that wrote to it goes. */
	EXPECT_TRUE(!mentions(path, "twheel_arm:"));
	must_load("");
	fd = wheel_open(0);
	arm_many(fd, 100, HOUR, 0);
	EXPECT_TRUE(!mentions(path, "twheel_arm:"), "still on");
	close(fd);
	must_unload();
}

static bool stop_opening;

/* Any of these can come, but nothing else */
static void *opener(void *opened)
{
	while (!__atomic_load_n(&stop_opening, __ATOMIC_ACQUIRE)) {
		int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

		if (fd < 0) {
			EXPECT_TRUE(errno == ENOENT || errno == ENODEV ||
				    errno == ENXIO, "open: %s", strerror(errno));
			sched_yield();
			continue;
		}
		arm(fd, 0, 50 * USEC, 0);
		close(fd);
		__atomic_add_fetch((unsigned long *)opened, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void test_race(void)
{
	unsigned long opened = 0, unloaded = 0, refused = 0;
	const __u64 end = now(CLOCK_MONOTONIC) + 2 * PATIENCE_MS * MSEC;
	pthread_t thread;

	stop_opening = false;
	if (pthread_create(&thread, NULL, opener, &opened))
		tap_bail("pthread_create");
	while (unloaded < 10 && now(CLOCK_MONOTONIC) < end) {
		unsigned long before = __atomic_load_n(&opened, __ATOMIC_ACQUIRE);
		int ret = load("");

		EXPECT_TRUE(!ret || ret == -EEXIST, "load: %s", strerror(-ret));
		/* Who comes while it is loaded waits for a modprobe first: some are waited for. */
		if (unloaded % 2)
			EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&opened, __ATOMIC_ACQUIRE) !=
					     before));
		ret = unload();
		EXPECT_TRUE(!ret || ret == -EAGAIN, "unload: %s", strerror(-ret));
		if (ret)
			refused++;
		else
			unloaded++;
	}
	__atomic_store_n(&stop_opening, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	tap_diag("unloaded %lu times, refused %lu, opened %lu", unloaded,
		 refused, opened);
	/* Whoever has it open refuses it; a slow machine is seldom in between. */
	EXPECT_TRUE(unloaded > 1);
	EXPECT_TRUE(opened);
	if (module_state(NAME) == KMOD_MODULE_LIVE)
		EXPECT_EQ(unload(), 0);
	check_gone();
}

int main(void)
{
	loader_start(120);
	RUN(test_not_loaded, "nothing there to unload or to open");
	RUN(test_twice, "loading twice is refused, and the first one stays");
	RUN(test_open, "an open wheel is one user, whatever is done with it");
	RUN(test_pending, "unloading after a wheel with pending timers");
	RUN(test_ready, "unloading after a wheel with events unread");
	RUN(test_expiring, "unloading after wheels whose timers are expiring");
	RUN(test_working, "unloading after a wheel with work left over");
	RUN(test_reader, "a waiting reader keeps the module");
	RUN(test_killed_reader, "a reader that was killed lets go of it");
	RUN(test_inherited, "a wheel that another process inherited keeps it");
	RUN(test_in_flight, "a wheel on its way in a socket keeps it");
	RUN(test_watched, "epoll and eventfd don't keep it");
	RUN(test_its_files, "its files in debugfs and sysfs");
	RUN(test_traced, "unloading with tracepoints on");
	RUN(test_race, "loading and unloading while others open");
	return tap_end();
}
