// SPDX-License-Identifier: GPL-2.0
/*
 * What a wheel says of itself: STATS, fdinfo; that an idle wheel is silent; and the counters
 * of all wheels together, in debugfs, while wheels come and go. (INFO, also when the next
 * timer expires, and what QUERY, MODIFY and CANCEL say of timers are in disturb.c; what a
 * wheel was set up with is in errors.c.)
 *
 * also in: both matrix
 */
#include "device.h"

#include <sys/prctl.h>
#include <sys/resource.h>

static int fd;

static void fresh(__u64 tick)
{
	wheel_replace_new(&fd, TWHEEL_CLOCK_MONOTONIC, tick);
}

static __u64 histogram(const struct twheel_stats *s)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < TWHEEL_LATENESS_BUCKETS; i++)
		sum += s->lateness[i];
	return sum;
}

static int bucket(__u64 ns)
{
	return ns ? 64 - __builtin_clzll(ns) : 0;
}

static void test_stats(void)
{
	static struct twheel_event ev[100];
	struct twheel_stats s;
	int i;

	fresh(MSEC);
	for (i = 0; i < 100; i++)
		arm(fd, 0, i % 10 * 3 * MSEC, i);
	EXPECT_EQ(collect(fd, ev, 60), 60);
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == 40));
	s = wheel_stats(fd);
	EXPECT_EQ(s.expired, 100);
	EXPECT_EQ(s.delivered, 60);
	EXPECT_EQ(histogram(&s), 100, "lateness");
	EXPECT_EQ(s.lateness[63], 0);
	EXPECT_TRUE(s.lateness[bucket(s.max_lateness)], "max_lateness %llu",
		    s.max_lateness);
	for (i = bucket(s.max_lateness) + 1; i < TWHEEL_LATENESS_BUCKETS; i++)
		EXPECT_EQ(s.lateness[i], 0, "later than the latest");
	EXPECT_TRUE(s.wakeups >= 1 && s.wakeups <= 100, "%llu", s.wakeups);
	EXPECT_TRUE(module_counter("longest_run") > 0);
}

/* The value of a key, or NULL: "key:\tvalue" on a line of its own */
static const char *find_key(const char *text, const char *key)
{
	static char value[64];
	char start[64];
	const char *p;

	snprintf(start, sizeof(start), "\n%s:\t", key);
	p = strstr(text, start);
	if (!p)
		return NULL;
	p += strlen(start);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(p, "\n"), p);
	return value;
}

static void check_key(const char *text, const char *key, const char *want)
{
	const char *got = find_key(text, key);

	EXPECT_TRUE(got && !strcmp(got, want), "%s: got %s want %s", key,
		    got ? got : "nothing", want);
}

static void check_number(const char *text, const char *key, __u64 want)
{
	char number[24];

	snprintf(number, sizeof(number), "%llu", want);
	check_key(text, key, number);
}

static void read_fdinfo(int wheel, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", wheel);
	read_text(path, text, size);
}

static void test_fdinfo(void)
{
	static const struct {
		__u32 id;
		const char *name;
	} clocks[] = {
		{ TWHEEL_CLOCK_MONOTONIC, "monotonic" },
		{ TWHEEL_CLOCK_BOOTTIME, "boottime" },
		{ TWHEEL_CLOCK_REALTIME, "realtime" },
		{ TWHEEL_CLOCK_TAI, "tai" },
	};
	char text[1024];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		int wheel = wheel_open(O_NONBLOCK);

		EXPECT_EQ(wheel_setup(wheel, clocks[i].id, 2 * MSEC, 1000, 0), 0);
		arm(wheel, 0, HOUR, 0);
		arm(wheel, 0, 2 * HOUR, 0);
		arm_past(wheel, 0);
		read_fdinfo(wheel, text, sizeof(text));
		check_key(text, "clock", clocks[i].name);
		check_number(text, "tick", 2 * MSEC);
		check_number(text, "pending", 2);
		check_number(text, "ready", 1);
		check_number(text, "limit", 1000);
		check_number(text, "next_expiry", wheel_info(wheel).next_expiry);
		check_number(text, "uid", getuid());
		check_number(text, "armed", 3);
		check_number(text, "expired", 1);
		check_number(text, "overruns", 0);
		check_number(text, "refused", 0);
		check_number(text, "max_lateness", wheel_stats(wheel).max_lateness);
		close(wheel);
	}
}

static __u64 fdinfo_number(int wheel, const char *key)
{
	char text[1024];
	const char *value;

	read_fdinfo(wheel, text, sizeof(text));
	value = find_key(text, key);
	return value ? strtoull(value, NULL, 10) : 0;
}

/* A number tells the descriptors of a wheel from those of another one. */
static void test_fdinfo_wheel(void)
{
	int first = wheel_open(O_NONBLOCK), second = wheel_open(O_NONBLOCK);
	int same = dup(first);

	EXPECT_TRUE(fdinfo_number(first, "wheel") > 0);
	EXPECT_EQ(fdinfo_number(same, "wheel"), fdinfo_number(first, "wheel"));
	EXPECT_TRUE(fdinfo_number(second, "wheel") > fdinfo_number(first, "wheel"));
	close(same);
	close(second);
	close(first);
}

/* Whose a wheel is does not change with who has it. */
static void test_fdinfo_uid(void)
{
	int wheel = wheel_open(O_NONBLOCK), status = -1;
	pid_t child = fork();

	if (!child) {
		/* /proc/self is not for a process that is not dumpable. */
		if (setuid(1000) || prctl(PR_SET_DUMPABLE, 1))
			_exit(2);
		_exit(fdinfo_number(wheel, "uid") != 0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0, "the uid that a child sees");
	close(wheel);
}

#define TRACING "/sys/kernel/tracing/"

static char trace[32768];

static void read_trace(void)
{
	int file = open(TRACING "trace", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	while ((n = read(file, trace + len, sizeof(trace) - 1 - len)) > 0)
		len += n;
	EXPECT_TRUE(!n, "%s", strerror(errno));
	trace[len] = 0;
	close(file);
}

#define EXPECT_TRACED(...) ({						\
	char trace_line[256];						\
									\
	snprintf(trace_line, sizeof(trace_line), "twheel_" __VA_ARGS__); \
	EXPECT_TRUE(strstr(trace, trace_line), "%.200s", trace_line); })

static void test_trace(void)
{
	__u64 base = now(CLOCK_MONOTONIC) + HOUR, wheel = 0, id;
	struct twheel_op op = op_arm(TWHEEL_ABS, base, 0xabcdef);
	struct twheel_event ev;
	const char *first;

	close(open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC));
	EXPECT_EQ(write_text(TRACING "events/twheel/enable", "1"), 0);
	close(fd);
	fd = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_setup(fd, TWHEEL_CLOCK_MONOTONIC, 0, 1, 0), 0);
	op.interval = 5 * HOUR;
	op.id = arm_op(fd, op);
	id = op.id;
	EXPECT_EQ(op_single(fd, &op), -ENOSPC);
	op = op_modify(id, TWHEEL_ABS, base + SEC, 0x123);
	EXPECT_EQ(op_single(fd, &op), 0);
	EXPECT_EQ(cancel(fd, id), 0);
	arm(fd, 0, 5 * MSEC, 0);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(write_text(TRACING "events/twheel/enable", "0"), 0);

	read_trace();
	first = strstr(trace, "twheel_arm: ");
	EXPECT_TRUE(first && sscanf(first, "twheel_arm: wheel=%llu", &wheel) == 1);
	EXPECT_TRACED("arm: wheel=%llu id=%#llx deadline=%llu interval=%llu user_data=0xabcdef\n",
		      wheel, id, base, 5 * HOUR);
	EXPECT_TRACED("modify: wheel=%llu id=%#llx deadline=%llu interval=0 user_data=0x123\n",
		      wheel, id, base + SEC);
	EXPECT_TRACED("cancel: wheel=%llu id=%#llx state=%u\n", wheel, id,
		      TWHEEL_STATE_PENDING);
	EXPECT_TRACED("arm: wheel=%llu id=%#llx deadline=%llu interval=0 user_data=0x0\n",
		      wheel, ev.id, ev.deadline);
	EXPECT_TRACED("expire: wheel=%llu timers=1 lateness=", wheel);
	EXPECT_TRACED("read: wheel=%llu events=1\n", wheel);
}

/* No timers, no interrupts; a lone one far away at most two in its life */
static void test_silent(void)
{
	__u64 id;

	fresh(USEC);
	sleep_ns(100 * MSEC);
	EXPECT_EQ(wheel_stats(fd).wakeups, 0, "without timers");
	id = arm(fd, 0, HOUR, 0);
	sleep_ns(200 * MSEC);
	EXPECT_TRUE(wheel_stats(fd).wakeups <= 2, "%llu wake-ups",
		    wheel_stats(fd).wakeups);
	EXPECT_EQ(cancel(fd, id), 0);
	id = wheel_stats(fd).wakeups;
	sleep_ns(100 * MSEC);
	EXPECT_TRUE(wheel_stats(fd).wakeups <= id + 1, "after the last was cancelled");
}

/* A wheel that was drained sleeps, and goes on when there is something again. */
static void test_drained(void)
{
	struct twheel_op out[8];
	struct twheel_event ev;
	__u64 wakeups, lead = 100 * MSEC, start;
	long n;

	do {
		fresh(MSEC);
		lead *= 2;
		start = now(CLOCK_MONOTONIC);
		arm(fd, 0, lead, 1);
		arm(fd, 0, HOUR, 2);
		n = drain(fd, out, 8);
	} while (now(CLOCK_MONOTONIC) >= start + lead);
	EXPECT_EQ(n, 2);
	wakeups = wheel_stats(fd).wakeups;
	EXPECT_EQ(readable(fd, lead / MSEC + 200), 0);
	EXPECT_TRUE(wheel_stats(fd).wakeups <= wakeups + 1, "%llu wake-ups, then %llu",
		    wakeups, wheel_stats(fd).wakeups);
	EXPECT_EQ(wheel_info(fd).next_expiry, 0);
	arm(fd, 0, 10 * MSEC, 3);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 3);
}

/* ---- all wheels together ---- */

static void test_counters(void)
{
	static const char *const names[] = { "open", "opened", "pending", "armed", "cancelled" };
	static const int more[][ARRAY_SIZE(names)] = {
		{ 1, 1, 2, 3, 1 }, { 0, 1, 0, 3, 1 },
	};
	__u64 before[ARRAY_SIZE(names)];
	int wheel, i, closed;

	for (i = 0; i < (int)ARRAY_SIZE(names); i++)
		before[i] = module_counter(names[i]);
	wheel = wheel_open(0);
	arm(wheel, 0, HOUR, 0);
	arm(wheel, 0, HOUR, 0);
	EXPECT_EQ(cancel(wheel, arm(wheel, 0, HOUR, 0)), 0);
	for (closed = 0; closed < 2; closed++) {
		for (i = 0; i < (int)ARRAY_SIZE(names); i++)
			EXPECT_EQ(module_counter(names[i]) - before[i], more[closed][i], "%s",
				  names[i]);
		if (!closed)
			close(wheel);
	}
}

struct counters {
	unsigned long long open, opened, armed;
};

/* In one look */
static struct counters read_counters(void)
{
	struct counters c;
	char text[4096];
	const char *armed;

	read_text("/sys/kernel/debug/twheel/counters", text, sizeof(text));
	armed = strstr(text, "\narmed ");
	if (!armed || sscanf(text, "open %llu opened %llu", &c.open, &c.opened) != 2 ||
	    sscanf(armed, " armed %llu", &c.armed) != 1)
		tap_bail("the counters say: %.400s", text);
	return c;
}

#define FLEETS 2
#define FLEET 60
#define READINGS 100

/* Closes any of its wheels, and opens one, with a timer each. */
static void fleet_child(void)
{
	__u64 seed = getpid(), i;
	int fds[FLEET];

	for (i = 0; ; i++) {
		int *fd = &fds[i < FLEET ? i : random_next(&seed) % FLEET];

		if (i >= FLEET)
			close(*fd);
		*fd = wheel_open(0);
		arm(*fd, 0, HOUR, 0);
	}
}

/*
 * Each wheel counts once, also one that is closed before or after it is read: nothing goes
 * back, and no more than the wheels that were just opened have no timer.
 */
static void test_counters_of_fleets(void)
{
	struct counters first, last, next;
	pid_t pids[FLEETS];
	int i;

	first = read_counters();
	for (i = 0; i < FLEETS; i++)
		pids[i] = tap_fork(fleet_child);
	EXPECT_TRUE(WAIT_FOR(read_counters().open >= first.open + FLEETS * FLEET - 1));
	/* So that reading is often interrupted */
	if (setpriority(PRIO_PROCESS, 0, 10))
		tap_bail("setpriority: %s", strerror(errno));
	last = first;
	for (i = 0; i < READINGS; i++, last = next) {
		next = read_counters();
		EXPECT_TRUE(next.open <= first.open + FLEETS * FLEET &&
			    next.open + FLEETS >= first.open + FLEETS * FLEET,
			    "%llu are open", next.open - first.open);
		EXPECT_TRUE(next.opened >= last.opened && next.armed >= last.armed,
			    "opened %llu, then %llu; armed %llu, then %llu", last.opened,
			    next.opened, last.armed, next.armed);
		EXPECT_TRUE(next.opened - first.opened - (next.armed - first.armed) <= FLEETS,
			    "opened %llu, armed %llu", next.opened - first.opened,
			    next.armed - first.armed);
	}
	for (i = 0; i < FLEETS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

int main(void)
{
	tap_start(60);
	RUN(test_stats, "STATS");
	RUN(test_fdinfo, "fdinfo");
	RUN(test_fdinfo_wheel, "fdinfo: the number of a wheel");
	RUN(test_fdinfo_uid, "fdinfo: whose a wheel is");
	RUN(test_trace, "tracepoints");
	RUN(test_silent, "an idle wheel is silent");
	RUN(test_drained, "a drained wheel sleeps, and goes on");
	RUN(test_counters, "counters: wheels that are open, and closed ones");
	RUN(test_counters_of_fleets, "counters: wheels that come and go");
	return tap_end();
}
