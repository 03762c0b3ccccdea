/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs of this folder share: a wheel's calls, results as lines of
 * JSON, and goals. For a guest in which one instruction takes 1 ns (scripts/vm -i),
 * unless a program says otherwise.
 */
#ifndef GUARANTEES_H
#define GUARANTEES_H

#include <errno.h>
#include <fcntl.h>
#include <linux/twheel.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BATCH 256
#define TICK (4 * MS)	/* a jiffy of the kernels that this runs on */
#define US 1000ULL
#define MS 1000000ULL
#define SECOND 1000000000ULL
#define HOUR (3600 * SECOND)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static bool promise_broken;

/* The clock that times are of; all wheels are of its kind. */
static clockid_t clock_id = CLOCK_MONOTONIC;

#define die(...) (say("can't go on: " __VA_ARGS__), exit(2))

static inline void __attribute__((format(printf, 1, 2)))
say(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

#define broken(...) (promise_broken = true, say("PROMISE BROKEN: " __VA_ARGS__))

static inline void result(const char *operation, __u64 timers,
			  const char *metric, double value)
{
	printf("{\"peer\":\"twheel\",\"operation\":\"%s\",\"timers\":%llu,", operation, timers);
	printf("\"metric\":\"%s\",\"value\":%.12g}\n", metric, value);
	fflush(stdout);
}

/* A result that shall not be more than @goal. Twice as much breaks a promise. */
static inline void result_goal(const char *operation, __u64 timers,
			       const char *metric, double value, double goal)
{
	result(operation, timers, metric, value);
	if (value > 2 * goal)
		broken("%s, %llu timers: %s is %.12g, the goal is %.12g",
		       operation, timers, metric, value, goal);
	else if (value > goal)
		say("GOAL MISSED: %s, %llu timers: %s is %.12g, the goal is %.12g",
		    operation, timers, metric, value, goal);
}

static inline __u64 now(void)
{
	struct timespec ts;

	clock_gettime(clock_id, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static inline void sleep_until(__u64 ns)
{
	struct timespec ts = { ns / SECOND, ns % SECOND };

	while (clock_nanosleep(clock_id, TIMER_ABSTIME, &ts, NULL))
		;
}

/* xorshift64*, so that the guest's library does not matter */
static inline __u64 rnd_of(__u64 *state, __u64 below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dULL >> 16) % below;
}

static inline __u64 rnd(__u64 below)
{
	static __u64 state = 1;

	return rnd_of(&state, below);
}

/* Memory that is all there from the start. */
static inline void *allocate(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("no memory for %zu bytes", size);
	return p;
}

static inline int wheel_open_shared(__u64 tick, __u32 shared)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = shared ? TWHEEL_SETUP_SHARED : 0,
		/* (The numbers of the clocks of a wheel begin there) */
		.clock = TWHEEL_CLOCK_REALTIME + clock_id,
		.shared = shared,
		.tick = tick,
	};
	int wheel = open("/dev/twheel", O_RDWR | O_NONBLOCK);

	if (wheel < 0 || ioctl(wheel, TWHEEL_IOC_SETUP, &setup))
		die("/dev/twheel: %s", strerror(errno));
	return wheel;
}

static inline int wheel_open(__u64 tick)
{
	return wheel_open_shared(tick, 0);
}

static inline struct twheel_stats wheel_stats(int wheel)
{
	struct twheel_stats stats = { .size = sizeof(stats) };

	if (ioctl(wheel, TWHEEL_IOC_STATS, &stats))
		die("STATS: %s", strerror(errno));
	return stats;
}

/* What the module counts of how it works, of all wheels since it was loaded. */
static inline __u64 counter(const char *name)
{
	static const char path[] = "/sys/kernel/debug/twheel/counters";
	FILE *f = fopen(path, "r");
	char line[128], is[64];
	__u64 value;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %llu", is, &value) == 2 && !strcmp(is, name)) {
			fclose(f);
			return value;
		}
	}
	die("%s has no '%s'", path, name);
}

/* For counters that begin again: that of the longest run is the largest ever. */
static inline void reload_module(void)
{
	if (system("modprobe -r twheel && modprobe twheel"))
		die("can't reload the module");
}

/* Timers that are in a wheel, pending and ready. */
static inline __u64 wheel_timers(int wheel)
{
	struct twheel_info info = { .size = sizeof(info) };

	if (ioctl(wheel, TWHEEL_IOC_INFO, &info))
		die("INFO: %s", strerror(errno));
	return info.pending + info.ready;
}

static inline struct twheel_op op_arm(__u64 deadline, __u64 user_data)
{
	return (struct twheel_op){
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.deadline = deadline,
		.user_data = user_data,
	};
}

static inline struct twheel_op op_modify(__u64 id, __u64 deadline,
					 __u64 user_data)
{
	struct twheel_op op = op_arm(deadline, user_data);

	op.opcode = TWHEEL_OP_MODIFY;
	op.id = id;
	return op;
}

static inline struct twheel_op op_cancel(__u64 id)
{
	return (struct twheel_op){
		.opcode = TWHEEL_OP_CANCEL,
		.id = id,
	};
}

static inline void submit(int wheel, struct twheel_op *ops, __u32 nr)
{
	struct twheel_submit submit = {
		.size = sizeof(submit),
		.ops = (uintptr_t)ops,
		.nr = nr,
		.op_size = sizeof(*ops),
	};

	if (ioctl(wheel, TWHEEL_IOC_SUBMIT, &submit) != (int)nr)
		die("SUBMIT: %s", strerror(errno));
}

/* Submit operations of which none may fail. */
static inline void submit_good(int wheel, struct twheel_op *ops, __u32 nr)
{
	__u32 i;

	submit(wheel, ops, nr);
	for (i = 0; i < nr; i++)
		if (ops[i].result)
			die("an operation %u: %s", ops[i].opcode,
			    strerror(-ops[i].result));
}

/* Arm a timer for each of the deadlines; its user data is the place there. */
static inline void arm_all(int wheel, const __u64 *deadlines, __u64 *ids,
			   size_t n)
{
	struct twheel_op ops[BATCH];
	size_t done, i, nr;

	for (done = 0; done < n; done += nr) {
		nr = n - done < BATCH ? n - done : BATCH;
		for (i = 0; i < nr; i++)
			ops[i] = op_arm(deadlines[done + i], done + i);
		submit_good(wheel, ops, nr);
		for (i = 0; ids && i < nr; i++)
			ids[done + i] = ops[i].id;
	}
}

/* Returns how many events there were, 0 for none. */
static inline size_t read_events(int wheel, struct twheel_event *events,
				 size_t room)
{
	ssize_t bytes = read(wheel, events, room * sizeof(*events));

	if (bytes < 0 && errno != EAGAIN)
		die("read: %s", strerror(errno));
	return bytes < 0 ? 0 : bytes / sizeof(*events);
}

/* The tick of the kernel's clock at which a deadline is due. */
static inline __u64 due_tick(__u64 deadline, __u64 tick)
{
	return (deadline + tick - 1) / tick;
}

#define TRACING "/sys/kernel/tracing/"

static inline void trace_write(const char *file, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), TRACING "%s", file);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("'%s' into %s: %s", text, path, strerror(errno));
	close(fd);
}

static inline FILE *trace_open(const char *file)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), TRACING "%s", file);
	f = fopen(path, "r");
	if (!f)
		die("%s: %s", path, strerror(errno));
	return f;
}

#endif
