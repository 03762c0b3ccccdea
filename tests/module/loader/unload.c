// SPDX-License-Identifier: GPL-2.0
/*
 * Loading twice; unloading while the module is in use, which has to be refused
 * and to change nothing, and at once after that, which has to work whatever
 * the last wheel had in it.
 */
#include "loader.h"

#include <pthread.h>
#include <sys/eventfd.h>

/* @want wheels are open, and this one works as if nobody had asked to unload */
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
	/* The timer is set again by the next call, when it has come. */
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).size && mentions("/proc/timer_list", "tw_timer_fn")),
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

/* Whether this program goes before all others on the only processor */
static void go_first(bool on)
{
	struct sched_param param = { .sched_priority = on };

	if (sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param))
		tap_bail("sched_setscheduler: %s", strerror(errno));
}

/* The work is many pieces from its end when the wheel goes */
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
		/* The kernel turns it by itself. */
		EXPECT_EQ(wheel_eventfd(fd, eventfd(0, EFD_CLOEXEC)), 0);
		EXPECT_TRUE(WAIT_FOR(module_counter("deferred")));
		caught += wheel_info(fd).pending > 1000;
		close(fd);
		EXPECT_EQ(unload(), 0);
	}
	go_first(false);
	EXPECT_EQ(caught, 3, "of %u tries", tries);
	check_gone();
}

static int read_fd;
static long read_gave;

static void blocked_read(struct sleeper *sleeper)
{
	struct twheel_event ev;

	(void)sleeper;
	read_gave = read_events(read_fd, &ev, 1);
}

/* A read that waits keeps the wheel, even if its descriptor is closed */
static void test_reader(void)
{
	struct sleeper reader = { .call = blocked_read };

	must_load("");
	read_fd = wheel_open(0);
	sleeper_start(&reader, SYS_read);
	check_refused(-1, 1);
	arm(read_fd, 0, 200 * MSEC, 0);
	close(read_fd);
	EXPECT_EQ(unload(), -EAGAIN);
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(read_gave, 1);
	must_unload();
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
	RUN(test_pending, "unloading after a wheel with pending timers");
	RUN(test_ready, "unloading after a wheel with events unread");
	RUN(test_expiring, "unloading after wheels whose timers are expiring");
	RUN(test_working, "unloading after a wheel with work left over");
	RUN(test_reader, "a waiting reader keeps the module");
	RUN(test_its_files, "its files in debugfs and sysfs");
	RUN(test_traced, "unloading with tracepoints on");
	RUN(test_race, "loading and unloading while others open");
	return tap_end();
}
