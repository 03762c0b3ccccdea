// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of the library that the programs of tests/module/contract do not call: opening
 * and adopting, reading, callbacks. With whichever backend there is. And what a wheel in the
 * program itself can't do, as the table of libtwheel(3) says. Linked with --wrap.
 *
 * (Single operations and batches are in kernel_calls.c, shared timers in shared_memory.c; over
 * the module, single operations and shared timers are in the tests of Python's package.)
 */

#include "threads.h"
#include "choice.h"

#include <stdint.h>
#include <sys/timerfd.h>

#include <twheel.h>
#include <twheel_shared.h>

/* Far enough away never to come, and a time that is over */
#define NEVER HOUR
#define PAST 1
/* Since then, none is over */
#define PERIOD (KTIME_MAX / 2)

static struct twheel *tw;

static void fresh(int flags)
{
	int ret;

	twheel_close(tw);
	tw = NULL;
	ret = twheel_open(flags, &tw);
	if (ret)
		tap_bail("twheel_open: %s", strerror(-ret));
}

static int set_up_with(struct twheel_setup setup)
{
	setup.size = sizeof(setup);
	return twheel_setup(tw, &setup);
}

static void fresh_with(__u32 flags, __u32 event_size)
{
	fresh(O_NONBLOCK);
	EXPECT_EQ(set_up_with((struct twheel_setup){
		.flags = flags, .clock = TWHEEL_CLOCK_MONOTONIC, .event_size = event_size,
	}), 0);
}

static __u64 armed(__u8 flags, __u64 deadline, __u64 user_data)
{
	struct twheel_op op = twheel_op_arm(flags, deadline, 0, user_data);

	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_TRUE(op.id);
	return op.id;
}

static struct twheel_info info(void)
{
	struct twheel_info info = { .size = sizeof(info) };

	EXPECT_EQ(twheel_info(tw, &info), 0);
	return info;
}

static __u64 held(void)
{
	return info().pending + info().ready;
}

static void test_open(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct twheel *other;

	fresh(0);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFL) & O_NONBLOCK, 0);
	fresh(O_NONBLOCK);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	EXPECT_EQ(twheel_from_fd(null, &other), -ENOTTY);
	EXPECT_EQ(fcntl(null, F_GETFD), FD_CLOEXEC, "still open");
	EXPECT_EQ(twheel_from_fd(-1, &other), -EBADF);
	close(null);
}

static void test_adopt(void)
{
	struct twheel_event event;
	struct twheel *other;
	int fd;

	fresh_with(0, TWHEEL_EVENT_SIZE_ID);
	armed(0, NEVER, 0);
	armed(TWHEEL_ABS, PAST, 42);
	fd = fcntl(twheel_fd(tw), F_DUPFD_CLOEXEC, 0);
	EXPECT_EQ(twheel_from_fd(fd, &other), 0);
	EXPECT_EQ(twheel_fd(other), fd);
	twheel_close(tw);
	tw = other;
	EXPECT_EQ(info().pending, 1, "the same wheel");
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(event.user_data, 42);
	EXPECT_EQ(event.deadline, 0, "not told");
	twheel_close(tw);
	tw = NULL;
	EXPECT_EQ(fcntl(fd, F_GETFD), -1, "closed");
}

/* (What is in the structures, the programs of tests/module/contract say.) */
static void test_structures(void)
{
	struct twheel_stats stats = { .size = 1 };
	struct twheel_info small = { .size = 1 };
	struct twheel_op op = twheel_op_arm(0, NEVER, 0, 0);
	struct twheel_setup setup = { .tick = 100 * USEC, .limit = 1 };
	__u64 time = now(CLOCK_REALTIME);

	fresh(0);
	EXPECT_EQ(twheel_info(tw, &small), -EINVAL);
	EXPECT_EQ(twheel_stats(tw, &stats), -EINVAL);
	EXPECT_EQ(set_up_with(setup), -EINVAL, "a clock is always said");
	setup.clock = CLOCK_BOOTTIME;
	EXPECT_EQ(set_up_with(setup), -EINVAL, "not a clock of clock_gettime()");
	setup.clock = TWHEEL_CLOCK_REALTIME;
	EXPECT_EQ(set_up_with(setup), 0);
	EXPECT_EQ(set_up_with(setup), -EBUSY);
	EXPECT_EQ(info().clock, TWHEEL_CLOCK_REALTIME);
	EXPECT_EQ(info().tick, 100 * USEC);
	EXPECT_EQ(info().limit, 1);
	EXPECT_TRUE(twheel_now(tw) >= time && twheel_now(tw) <= now(CLOCK_REALTIME));
	EXPECT_EQ(twheel_arm(tw, &op), 0);
	op = twheel_op_arm(0, NEVER, 0, 0);
	EXPECT_EQ(twheel_arm(tw, &op), -ENOSPC);
}

static void test_read(void)
{
	struct twheel_event event[4];
	uint64_t count = 0;

	fresh(0);
	armed(0, 20 * MSEC, 44);
	EXPECT_EQ(twheel_read(tw, event, 0), -EINVAL);
	EXPECT_EQ(twheel_read_count(tw, &count), -EINVAL, "not in count mode");
	EXPECT_EQ(twheel_read(tw, event, 4), 1, "it waits");
	EXPECT_EQ(event[0].user_data, 44);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event[0].deadline);
	fresh_with(TWHEEL_SETUP_COUNT, 0);
	EXPECT_EQ(twheel_read_count(tw, &count), -EAGAIN);
	armed(TWHEEL_ABS, PAST, 0);
	EXPECT_EQ(twheel_read(tw, event, 1), -EINVAL);
	EXPECT_EQ(twheel_run_once(tw, 0), -EINVAL);
	EXPECT_EQ(twheel_read_count(tw, &count), 0);
	EXPECT_EQ(count, 1, "not lost");
	fresh_with(0, TWHEEL_EVENT_SIZE_ID);
	EXPECT_EQ(twheel_run_once(tw, 0), -EINVAL, "which of them are periodic?");
}

/* What a callback does: to another timer, or its own; to the spare one; and the loop */
#define CANCEL 1
#define FREE 2
#define ARM 4
#define ARM_BADLY 8
#define ARM_SPARE 16
#define RUN_LOOP 32

#define SPARE 3

/* Timers that are all read together, what each is to do, and what comes of it */
static const struct scene {
	const char *name;
	int returns;
	unsigned int left;
	unsigned int nr;
	struct {
		unsigned int does;
		unsigned int other;
		bool periodic;
		int called;
		int ret;
	} timers[SPARE + 1];
} scenes[] = {
	{ "cancel", 2, 0, 3, {
		{ CANCEL, 1, false, 1, 0 }, { 0 }, { CANCEL, 0, false, 1, -ENOENT },
	} },
	{ "cancel a periodic one", 2, 0, 3, {
		{ CANCEL, 1, false, 1, 0 }, { .periodic = true }, { CANCEL, 0, false, 1, -ENOENT },
	} },
	{ "cancel and free", 2, 0, 3, {
		{ CANCEL | FREE, 1, false, 1, 0 }, { 0 }, { .called = 1 },
	} },
	{ "a periodic one cancels itself", 1, 0, 1, { { CANCEL, 0, true, 1, 0 } } },
	{ "one frees itself", 1, 0, 1, { { FREE, 0, false, 1, 0 } } },
	{ "arm again", 1, 1, 2, { { ARM, 1, false, 1, 0 }, { 0 } } },
	{ "arm a periodic one again", 1, 1, 2, { { ARM, 1, false, 1, 0 }, { .periodic = true } } },
	{ "arm badly: nothing changes", 2, 0, 2, {
		{ ARM_BADLY, 1, false, 1, -EINVAL }, { .called = 1 },
	} },
	{ "run the loop within: the others are called there", 1, 0, 3, {
		{ RUN_LOOP, 0, false, 1, 1 }, { RUN_LOOP, 0, false, 1, 1 },
		{ RUN_LOOP, 0, false, 1, 0 },
	} },
	{ "what is withdrawn is no end of waiting", 1, 0, 2, {
		{ CANCEL | ARM_SPARE | RUN_LOOP, 1, false, 1, 1 }, { 0 },
		[SPARE] = { .called = 1 },
	} },
};

static const struct scene *scene;
static struct twheel_timer *timers[SPARE + 1];
static int called[SPARE + 1], rets[SPARE + 1];

static void call(struct twheel *wheel, struct twheel_timer *timer,
		 const struct twheel_event *event)
{
	EXPECT_TRUE(wheel == tw);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event->deadline);
	EXPECT_EQ(timer->id, event->flags & TWHEEL_EVENT_PERIODIC ? event->id : 0);
	called[(long)timer->arg] += 1 + event->overrun;
}

static void act(struct twheel *wheel, struct twheel_timer *timer,
		const struct twheel_event *event)
{
	long nr = (long)timer->arg;
	unsigned int does = scene->timers[nr].does, other = scene->timers[nr].other;

	call(wheel, timer, event);
	if (does & CANCEL)
		rets[nr] = twheel_timer_cancel(wheel, timers[other]);
	if (does & FREE) {
		free(timers[other]);
		timers[other] = NULL;
	}
	if (does & (ARM | ARM_BADLY))
		rets[nr] = twheel_timer_arm(wheel, timers[other], 0,
					    does & ARM ? NEVER : KTIME_MAX + 1, 0);
	if (does & ARM_SPARE)
		EXPECT_EQ(twheel_timer_arm(wheel, timers[SPARE], TWHEEL_ABS, PAST, 0), 0);
	if (does & RUN_LOOP)
		rets[nr] = twheel_run_once(wheel, 0);
}

static void test_callbacks_within(void)
{
	unsigned int s, i;

	for (s = 0; s < ARRAY_SIZE(scenes); s++) {
		scene = &scenes[s];
		fresh(0);
		for (i = 0; i <= SPARE; i++) {
			timers[i] = malloc(sizeof(*timers[i]));
			twheel_timer_init(timers[i], act, (void *)(long)i);
			called[i] = 0;
			rets[i] = 0;
			if (i < scene->nr)
				EXPECT_EQ(twheel_timer_arm(tw, timers[i], TWHEEL_ABS, PAST,
							   scene->timers[i].periodic * PERIOD), 0);
		}
		EXPECT_EQ(twheel_run_once(tw, 0), scene->returns, "%s", scene->name);
		EXPECT_EQ(twheel_run_once(tw, 0), 0, "%s", scene->name);
		EXPECT_EQ(held(), scene->left, "%s", scene->name);
		for (i = 0; i <= SPARE; i++) {
			EXPECT_EQ(called[i], scene->timers[i].called, "%s: %u", scene->name, i);
			EXPECT_EQ(rets[i], scene->timers[i].ret, "%s: %u", scene->name, i);
			free(timers[i]);
		}
	}
}

static void test_callback(void)
{
	struct twheel_timer timer;
	struct twheel_event event;
	__u64 start;

	fresh(0);
	called[0] = 0;
	twheel_timer_init(&timer, call, NULL);
	start = now(CLOCK_MONOTONIC);
	EXPECT_EQ(twheel_run_once(tw, 0), 0, "a descriptor that waits");
	EXPECT_EQ(twheel_run_once(tw, 10), 0);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= start + 10 * MSEC);
	EXPECT_EQ(twheel_timer_arm(tw, &timer, 0, NEVER, 0), 0);
	EXPECT_EQ(twheel_timer_arm(tw, &timer, 0, 20 * MSEC, 0), 0);
	EXPECT_EQ(held(), 1, "one timer, not two");
	EXPECT_EQ(twheel_run_once(tw, -1), 1);
	EXPECT_EQ(called[0], 1);
	EXPECT_EQ(twheel_timer_cancel(tw, &timer), -ENOENT);
	EXPECT_EQ(twheel_timer_arm(tw, &timer, TWHEEL_ABS, PAST, 0), 0);
	EXPECT_EQ(twheel_read(tw, &event, 1), 1, "which the loop does not see");
	EXPECT_EQ(twheel_timer_arm(tw, &timer, 0, 20 * MSEC, 0), 0);
	EXPECT_EQ(twheel_run_once(tw, PATIENCE_MS), 1);
	EXPECT_EQ(called[0], 2);
}

static void test_periodic_callback(void)
{
	__u64 begin = now(CLOCK_MONOTONIC);
	struct twheel_timer timer;

	fresh(0);
	called[0] = 0;
	twheel_timer_init(&timer, call, NULL);
	EXPECT_EQ(twheel_timer_arm(tw, &timer, TWHEEL_ABS, begin + 10 * MSEC, 10 * MSEC), 0);
	while (called[0] < 5)
		if (!EXPECT_EQ(twheel_run_once(tw, PATIENCE_MS), 1))
			break;
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= begin + called[0] * 10 * MSEC);
	EXPECT_EQ(twheel_timer_cancel(tw, &timer), 0);
	EXPECT_EQ(held(), 0);
}

#define TIMERS 10000

/* Callbacks that cancel and arm others at random: each life has one end */
static struct twheel_timer soak[TIMERS];
static bool alive[TIMERS];
static unsigned int ended;
static __u64 seed = 88172645463325252ULL;

static void end_of(long i)
{
	EXPECT_TRUE(alive[i], "timer %ld", i);
	alive[i] = false;
	ended++;
}

static void soak_call(struct twheel *wheel, struct twheel_timer *timer,
		      const struct twheel_event *event)
{
	long i = random_next(&seed) % TIMERS;
	int ret;

	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event->deadline);
	end_of(timer - soak);
	ret = twheel_timer_cancel(wheel, &soak[i]);
	EXPECT_EQ(ret, alive[i] ? 0 : -ENOENT);
	if (!ret)
		end_of(i);
	i = random_next(&seed) % TIMERS;
	if (alive[i])
		EXPECT_EQ(twheel_timer_arm(wheel, &soak[i], 0,
					   random_next(&seed) % (50 * MSEC), 0), 0);
}

static void test_soak(void)
{
	int i, ret;

	fresh(0);
	for (i = 0; i < TIMERS; i++) {
		twheel_timer_init(&soak[i], soak_call, NULL);
		EXPECT_EQ(twheel_timer_arm(tw, &soak[i], 0,
					   random_next(&seed) % (200 * MSEC), 0), 0);
		alive[i] = true;
	}
	while (held()) {
		ret = twheel_run_once(tw, PATIENCE_MS);
		if (!EXPECT_TRUE(ret > 0, "%d", ret))
			break;
	}
	EXPECT_EQ(twheel_run_once(tw, 0), 0);
	EXPECT_EQ(ended, TIMERS);
}

/* From here on: a wheel in the program itself, whether or not there is a device. */

static void test_choice(void)
{
	int kernel = access(DEVICE, R_OK | W_OK) ? -errno : TWHEEL_KERNEL;
	int best = kernel < 0 ? TWHEEL_USER : TWHEEL_KERNEL;

	EXPECT_EQ(given(&tw, 0, ""), best);
	EXPECT_EQ(given(&tw, O_NONBLOCK, ""), best);
	EXPECT_EQ(given(&tw, TWHEEL_USER, ""), TWHEEL_USER);
	EXPECT_EQ(given(&tw, TWHEEL_KERNEL, ""), kernel);
	EXPECT_EQ(given(&tw, 0, "user"), TWHEEL_USER);
	EXPECT_EQ(given(&tw, 0, "kernel"), kernel);
	EXPECT_EQ(given(&tw, TWHEEL_USER, "kernel"), TWHEEL_USER, "flags come first");
	EXPECT_EQ(given(&tw, TWHEEL_KERNEL, "user"), kernel, "flags come first");
	EXPECT_EQ(given(&tw, 0, "User"), -EINVAL);
	EXPECT_EQ(given(&tw, TWHEEL_KERNEL | TWHEEL_USER, ""), -EINVAL);
	EXPECT_EQ(given(&tw, TWHEEL_USER | O_APPEND, ""), -EINVAL);
}

static void test_descriptor(void)
{
	struct twheel *other;
	char room[32];

	fresh(TWHEEL_USER | O_NONBLOCK);
	armed(TWHEEL_ABS, 1, 0);
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
	EXPECT_EQ(twheel_cancel(tw, op.id), -EBADF);
	EXPECT_EQ(twheel_submit(tw, &op, 0), -EBADF, "though there is nothing to do");
	EXPECT_EQ(twheel_drain(tw, &op, 1), -EBADF);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EBADF);
	EXPECT_EQ(twheel_run_once(tw, 0), -EBADF);
	EXPECT_EQ(twheel_setup(tw, &setup), -EBADF);
	EXPECT_EQ(twheel_info(tw, &info), -EBADF);
	EXPECT_EQ(twheel_stats(tw, &stats), -EBADF);
	fresh(TWHEEL_USER | O_NONBLOCK);
	armed(TWHEEL_ABS, 1, 0);
	EXPECT_EQ(twheel_read(tw, &event, 1), 1, "one of its own");
}

/* Again and again, and the parent's wheel goes on */
static void test_fork(void)
{
	struct twheel_event event;
	__u64 id;
	int i;

	fresh(TWHEEL_USER);
	id = armed(0, 50 * MSEC, 0);
	for (i = 0; i < 20; i++)
		tap_join(tap_fork(in_child));
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(event.id, id);
}

static void test_not_there(void)
{
	struct twheel_setup setup = {
		.flags = TWHEEL_SETUP_SHARED, .clock = TWHEEL_CLOCK_MONOTONIC, .shared = 1,
	};
	struct twheel_area area;

	fresh(TWHEEL_USER);
	EXPECT_EQ(info().features, TWHEEL_FEATURE_COUNT | TWHEEL_FEATURE_DRAIN);
	EXPECT_EQ(set_up_with(setup), -ENODEV);
	EXPECT_EQ(twheel_shared_map(tw, &area), -EINVAL);
	EXPECT_EQ(twheel_set_eventfd(tw, -1), -EOPNOTSUPP);
	EXPECT_EQ(twheel_set_eventfd(tw, 0), -EOPNOTSUPP);
	setup.flags = 0;
	setup.shared = 0;
	setup.limit = info().user_limit + 1;
	EXPECT_EQ(set_up_with(setup), -ENOSPC);
	setup.limit--;
	EXPECT_EQ(set_up_with(setup), 0);
}

/* Woken for a timer that was cancelled, beside one that was not: there is nothing, once */
static void test_for_nothing(void)
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	struct twheel_event event;
	__u64 start, id;

	fresh(TWHEEL_USER | O_NONBLOCK);
	armed(0, HOUR, 0);
	start = now(CLOCK_MONOTONIC);
	id = armed(0, 20 * MSEC, 0);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	if (readable(twheel_fd(tw), 100))
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= start + 20 * MSEC);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0), "not again");
	/* Who waits by way of the library does not notice */
	start = now(CLOCK_MONOTONIC);
	id = armed(0, 20 * MSEC, 0);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_run_once(tw, 100), 0);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= start + 99 * MSEC);
	/* A wake-up after the last one, too; then all is silent */
	fresh(TWHEEL_USER | O_NONBLOCK);
	id = armed(0, 20 * MSEC, 0);
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	readable(twheel_fd(tw), 60);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 60), "not again");
	EXPECT_EQ(twheel_stats(tw, &stats), 0);
	EXPECT_EQ(stats.wakeups, 1);
}

/* The next call is what sees what time it is */
static void test_cancel_due(void)
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	struct twheel_event event;
	__u64 due, id, other;

	fresh(TWHEEL_USER | O_NONBLOCK);
	due = now(CLOCK_MONOTONIC) + 10 * MSEC;
	id = armed(TWHEEL_ABS, due, 0);
	other = armed(TWHEEL_ABS, due, 0);
	EXPECT_TRUE(readable(twheel_fd(tw), 10000));
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_cancel(tw, id), -ENOENT);
	EXPECT_TRUE(readable(twheel_fd(tw), 0), "the other one is due");
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(event.id, other);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0));
	/* The only one */
	id = armed(0, 10 * MSEC, 0);
	EXPECT_TRUE(readable(twheel_fd(tw), 10000));
	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EAGAIN);
	EXPECT_TRUE(!readable(twheel_fd(tw), 0));
	/* One that is known to have expired */
	id = armed(0, 10 * MSEC, 0);
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

	fresh(TWHEEL_USER);
	settings = 0;
	for (i = 0; i < 1000; i++)
		EXPECT_EQ(twheel_cancel(tw, armed(0, HOUR, 0)), 0);
	EXPECT_EQ(settings, 1);
	armed(0, HOUR / 2, 0);
	for (i = 0; i < 1000; i++)
		EXPECT_EQ(twheel_cancel(tw, armed(0, HOUR, 0)), 0);
	EXPECT_EQ(settings, 2);
}

/* A waiting read ends, where the handler's SA_RESTART would have it go on in the kernel. */
static void test_restart(void)
{
	struct twheel_event event;

	fresh(TWHEEL_USER);
	armed(0, HOUR, 0);
	signals_come(1);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EINTR);
	signals_come(0);
}

static void *use_all(void *arg)
{
	struct twheel_event event[4];

	(void)arg;
	for (;;) {
		armed(TWHEEL_ABS, 1, 0);
		armed(0, MSEC, 0);
		twheel_read(tw, event, 1);
		pthread_testcancel();
	}
	return NULL;
}

/* In a read that waits, or in any other function */
static void test_cancelled_thread(void)
{
	struct twheel_event event;
	pthread_t user;
	int i;

	for (i = 0; i < 200; i++) {
		fresh(TWHEEL_USER);
		user = thread(use_all, NULL);
		sleep_ns(i % 10 * 100 * USEC);
		EXPECT_TRUE(end_thread(user));
		armed(TWHEEL_ABS, 1, 0);
		EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	}
}

int main(void)
{
	tap_start(120);
	RUN(test_open, "twheel_open, twheel_fd, and what is no wheel");
	RUN(test_adopt, "twheel_from_fd, twheel_close");
	RUN(test_structures, "twheel_setup, _info, _stats, _now");
	RUN(test_read, "twheel_read, _read_count");
	RUN(test_callback, "a callback");
	RUN(test_periodic_callback, "a periodic callback");
	RUN(test_callbacks_within, "what callbacks do to timers that were read with them");
	RUN(test_soak, "10,000 timers that cancel and arm each other");
	RUN(test_choice, "which of the two a program gets");
	RUN(test_descriptor, "in the program: the descriptor, by itself");
	RUN(test_fork, "in the program: fork");
	RUN(test_not_there, "in the program: shared timers, eventfd, limits");
	RUN(test_for_nothing, "in the program: readable for nothing");
	RUN(test_cancel_due, "in the program: a timer that is due is cancelled");
	RUN(test_cheap, "in the program: one timer, armed and cancelled again and again");
	RUN(test_restart, "in the program: a reader that waits, and SA_RESTART");
	RUN(test_cancelled_thread, "in the program: a thread that is cancelled");
	twheel_close(tw);
	return tap_end();
}
