/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs that measure who gets how much of a processor: control groups, programs that
 * count as fast as they can, what others took from them, and one that wants the processor at
 * certain times.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "users.h"

#include <sys/resource.h>

#define CGROUP "/sys/fs/cgroup/"

static inline void cgroup_write(const char *group, const char *file,
				const char *text)
{
	char path[128];
	int err;

	snprintf(path, sizeof(path), CGROUP "%s/%s", group, file);
	err = write_text(path, text);
	if (err)
		tap_bail("%s: %s", path, strerror(-err));
}

static inline void cgroup_make(const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP "%s", group);
	if (mkdir(path, 0755) && errno != EEXIST)
		tap_bail("%s: %s", path, strerror(errno));
}

static inline void cgroup_move(const char *group, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	cgroup_write(group, "cgroup.procs", text);
}

/* The number in such a file that comes after @name, at first there */
static inline __u64 number_after(const char *path, const char *name)
{
	char text[8192], *at;

	read_text(path, text, sizeof(text));
	at = strstr(text, name);
	if (!at)
		tap_bail("%s has no %s", path, name);
	return strtoull(at + strlen(name), NULL, 10);
}

/* For how long programs of the group have run, in ns */
static inline __u64 cgroup_time(const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP "%s/cpu.stat", group);
	return number_after(path, "usage_usec ") * USEC;
}

/* A program that does nothing but count */
static __u64 *counter;

static inline void counting_child(void)
{
	for (;;)
		__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* The same on a processor of two, each with a counter in a cache line of its own */
static int processor;

static inline void pinned_child(void)
{
	pin_to(processor);
	for (;;)
		__atomic_add_fetch(&counter[8 * processor], 1, __ATOMIC_RELAXED);
}

/*
 * Only both together mean something where instructions are counted: the processors take turns
 * there, and what one of them does not need is the other's.
 */
static inline __u64 counted_on_both(void)
{
	return __atomic_load_n(&counter[0], __ATOMIC_RELAXED) +
	       __atomic_load_n(&counter[8], __ATOMIC_RELAXED);
}

static inline void counter_init(void)
{
	counter = map_shared(PAGE);
}

static inline void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/**
 * struct measured - what became of the processors' time
 * @count: what the programs that count have counted in an ns
 * @own: the time of the programs of a group, as a part of a processor's
 * @interrupts: of timers, in a second
 */
struct measured {
	double count;
	double own;
	__u64 interrupts;
};

/*
 * Have a program on each processor count, and after @settle ns measure for @length ns what
 * they get beside that @group, or beside none. Where there is one processor and a group, the
 * program is in the group "other".
 */
static inline struct measured measure(int processors, const char *group, __u64 settle,
				      __u64 length)
{
	__u64 from, time, count, own = 0, interrupts;
	struct measured m = {};
	pid_t pids[2];

	for (processor = 0; processor < processors; processor++)
		pids[processor] = tap_fork(processors == 1 ? counting_child : pinned_child);
	if (group && processors == 1)
		cgroup_move("other", pids[0]);
	sleep_ns(settle);
	interrupts = number_after("/proc/interrupts", "LOC:");
	if (group)
		own = cgroup_time(group);
	from = now(CLOCK_MONOTONIC);
	count = counted_on_both();
	sleep_ns(length);
	time = now(CLOCK_MONOTONIC) - from;
	m.count = (double)(counted_on_both() - count) / time;
	if (group)
		m.own = (double)(cgroup_time(group) - own) / time;
	m.interrupts = (number_after("/proc/interrupts", "LOC:") - interrupts) * SEC / time;
	while (processor--)
		end(pids[processor]);
	return m;
}

/* ---- what processes tell each other ---- */

static inline bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static inline void set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* One more has come so far. */
static inline void count_up(int *ready)
{
	__atomic_add_fetch(ready, 1, __ATOMIC_RELEASE);
}

static inline bool all_ready(const int *ready, int nr)
{
	return WAIT_FOR(__atomic_load_n(ready, __ATOMIC_ACQUIRE) == nr);
}

/**
 * struct beats - of a program with a real-time priority, which wants the processor each 50 us
 * @over: it is to end
 * @nr: how often it had it
 * @latest: by which one of them came late, in ns
 */
struct beats {
	bool over;
	__u64 nr;
	__u64 latest;
};

#define BEAT (50 * USEC)

static struct beats *beats;

static inline void beating_child(void)
{
	struct sched_param param = { .sched_priority = 50 };
	__u64 at = now(CLOCK_MONOTONIC), late;

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		tap_bail("sched_setscheduler: %s", strerror(errno));
	while (!is_set(&beats->over)) {
		struct timespec ts;

		at += BEAT;
		ts = (struct timespec){ at / SEC, at % SEC };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		late = now(CLOCK_MONOTONIC) - at;
		if (late > beats->latest)
			beats->latest = late;
		__atomic_add_fetch(&beats->nr, 1, __ATOMIC_RELAXED);
		at += late / BEAT * BEAT;
	}
}

static inline pid_t beats_begin(void)
{
	if (!beats)
		beats = map_shared(sizeof(*beats));
	memset(beats, 0, sizeof(*beats));
	return tap_fork(beating_child);
}

static inline void beats_end(pid_t pid)
{
	set(&beats->over);
	tap_join(pid);
}

/* For @nr wheels, or copies of them */
static inline void allow_descriptors(unsigned int nr)
{
	struct rlimit limit = { nr + 100, nr + 100 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		tap_bail("RLIMIT_NOFILE: %s", strerror(errno));
}

#endif
