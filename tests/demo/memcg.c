// SPDX-License-Identifier: GPL-2.0
/*
 * Measures kernel memory with a memory cgroup.
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

__u64 memory_charged(void)
{
	char text[32];
	ssize_t n = pread(current_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		die("can't read what the cgroup is charged");
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}
