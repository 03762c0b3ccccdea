// SPDX-License-Identifier: GPL-2.0
/*
 * Measures what a wheel takes: kernel memory with a memory cgroup, and that of a wheel in
 * the program itself by what the program has of the machine's.
 *
 * The module promises to charge its timers to the cgroup of whoever opens the
 * wheel. So that is the scale to put them on: it is exact to a few hundred
 * kilobytes, nothing else in the machine moves it, and memory that the module
 * forgot to charge shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"
#include "memcg.h"

#define CGROUPS "/sys/fs/cgroup"
#define GROUP CGROUPS "/twheel-demo-%s"

static int current_fd;
static int resident_fd = -1;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("can't write '%s' to %s: %s; it takes root and cgroup v2", text, path,
		    strerror(errno));
	close(fd);
}

void memory_cgroup_enter(const char *name)
{
	char group[64], procs[80], current[80];

	snprintf(group, sizeof(group), GROUP, name);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	snprintf(current, sizeof(current), "%s/memory.current", group);
	if (access(CGROUPS "/cgroup.controllers", F_OK) &&
	    mount("none", CGROUPS, "cgroup2", 0, NULL))
		die("can't mount cgroup v2 on %s: %s", CGROUPS, strerror(errno));
	write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	if (mkdir(group, 0755) && errno != EEXIST)
		die("can't make the cgroup %s: %s", group, strerror(errno));
	write_file(procs, "0");
	current_fd = open(current, O_RDONLY);
	if (current_fd < 0)
		die("can't open %s: %s", current, strerror(errno));
}

void memory_own_watch(void)
{
	resident_fd = open("/proc/self/statm", O_RDONLY);
	if (resident_fd < 0)
		die("can't open /proc/self/statm: %s", strerror(errno));
}

/* The number that comes after @words others */
static __u64 read_number(int fd, unsigned int words)
{
	char text[128], *at = text;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		die("can't read how much memory is used");
	text[n] = '\0';
	while (words--)
		strtoull(at, &at, 10);
	return strtoull(at, NULL, 10);
}

__u64 memory_used(void)
{
	if (resident_fd >= 0)
		return read_number(resident_fd, 1) * sysconf(_SC_PAGESIZE);
	return read_number(current_fd, 0);
}
