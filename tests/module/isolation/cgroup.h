/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs that measure who gets how much of a processor: control groups, a
 * program that counts as fast as it can, and what others took from it.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "users.h"

#include <dirent.h>

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

/* For how long programs of the group have run, in ns */
static inline __u64 cgroup_time(const char *group)
{
	char path[128], text[1024], *at;

	snprintf(path, sizeof(path), CGROUP "%s/cpu.stat", group);
	read_text(path, text, sizeof(text));
	at = strstr(text, "usage_usec ");
	if (!at)
		tap_bail("%s has no usage", path);
	return strtoull(at + strlen("usage_usec "), NULL, 10) * USEC;
}

/* What a file of a process says; nothing if it is gone */
static inline void process_text(const char *pid, const char *file, char *text, size_t size)
{
	char path[300];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, size - 1);
	text[length > 0 ? length : 0] = 0;
	close(fd);
}

/* For how long a process has run, in ns; 0 if it is gone */
static inline __u64 process_time(const char *pid)
{
	char text[128];

	process_text(pid, "schedstat", text, sizeof(text));
	return strtoull(text, NULL, 10);
}

/* For how long threads of the kernel have run whose name begins so, in ns */
static inline __u64 kernel_time(const char *name)
{
	char text[64];
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	__u64 sum = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		process_text(entry->d_name, "comm", text, sizeof(text));
		if (!strncmp(text, name, strlen(name)))
			sum += process_time(entry->d_name);
	}
	if (!dir)
		tap_bail("/proc: %s", strerror(errno));
	closedir(dir);
	return sum;
}

/* A program that does nothing but count */
static __u64 *counter;

static inline void counting_child(void)
{
	for (;;)
		__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static inline __u64 counted(void)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
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

#endif
