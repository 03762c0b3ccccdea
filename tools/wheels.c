// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the wheels that processes have open: each descriptor of each process that one may
 * look into, in /proc/PID/fd, and what /proc/PID/fdinfo says of it. See wheels.h.
 *
 * Processes end, and descriptors are closed, while this looks: then they are left out.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "module.h"
#include "tool.h"
#include "wheels.h"

static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
#define NUMBER(name, field) { name, offsetof(struct wheel, field) }
	NUMBER("wheel", nr),
	NUMBER("uid", uid),
	NUMBER("tick", tick),
	NUMBER("pending", pending),
	NUMBER("ready", ready),
	NUMBER("limit", limit),
	NUMBER("next_expiry", next_expiry),
	NUMBER("shared", shared),
	NUMBER("armed", armed),
	NUMBER("expired", expired),
	NUMBER("overruns", overruns),
	NUMBER("refused", refused),
	NUMBER("max_lateness", max_lateness),
};

/* A line of fdinfo, "name:\tvalue" */
static void read_line(struct wheel *wheel, char *line)
{
	char *value = strstr(line, ":\t");
	size_t i;

	if (!value)
		return;
	*value = 0;
	value += 2;
	if (!strcmp(line, "clock"))
		snprintf(wheel->clock, sizeof(wheel->clock), "%.*s",
			 (int)strcspn(value, "\n"), value);
	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(line, numbers[i].name))
			*(__u64 *)((char *)wheel + numbers[i].offset) =
				strtoull(value, NULL, 10);
}

static bool read_fdinfo(struct wheel *wheel)
{
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", wheel->pid, wheel->fd);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		read_line(wheel, line);
	fclose(file);
	/* The descriptor may belong to another file by now. */
	return *wheel->clock;
}

static void read_program(struct wheel *wheel)
{
	char path[64];
	FILE *file;

	strcpy(wheel->program, "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", wheel->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(wheel->program, sizeof(wheel->program), file))
		wheel->program[strcspn(wheel->program, "\n")] = 0;
	printable(wheel->program);
	fclose(file);
}

/*
 * Is that a descriptor of the device? Nothing is asked of a server of files, which may
 * never answer.
 */
static bool is_device(int dir, const char *name, dev_t rdev)
{
	struct statx st;

	return !statx(dir, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) &&
		S_ISCHR(st.stx_mode) &&
		makedev(st.stx_rdev_major, st.stx_rdev_minor) == rdev;
}

static void add(struct wheels *wheels, pid_t pid, int fd)
{
	struct wheel wheel = { .pid = pid, .fd = fd };

	if (!read_fdinfo(&wheel))
		return;
	read_program(&wheel);
	/* As many as a power of two says */
	if (!(wheels->nr & (wheels->nr - 1)))
		wheels->at = need(reallocarray(wheels->at, wheels->nr ? 2 * wheels->nr : 1,
					       sizeof(wheel)));
	wheels->at[wheels->nr++] = wheel;
}

/* The descriptors of a process: one, or all. False if one may not look at them. */
static bool find_in(struct wheels *wheels, pid_t pid, int fd, dev_t rdev)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir) {
		wheels->hidden += errno == EACCES;
		return false;
	}
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name) &&
		    (fd < 0 || atoi(entry->d_name) == fd) &&
		    is_device(dirfd(dir), entry->d_name, rdev))
			add(wheels, pid, atoi(entry->d_name));
	closedir(dir);
	return true;
}

static int compare(const void *pa, const void *pb)
{
	const struct wheel *a = pa, *b = pb;

	if (a->nr != b->nr)
		return a->nr < b->nr ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->fd - b->fd;
}

static int find_in_all(struct wheels *wheels, dev_t rdev)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc)))
		if (isdigit((unsigned char)*entry->d_name))
			find_in(wheels, atoi(entry->d_name), -1, rdev);
	closedir(proc);
	return 0;
}

/*
 * Find the wheels of a process, or with a @pid of 0 of all; one descriptor, or with a negative
 * @fd all. Gives 0, or a negative error: -ENODEV without the module.
 */
int wheels_find(struct wheels *wheels, pid_t pid, int fd)
{
	dev_t rdev;
	int ret = 0;

	memset(wheels, 0, sizeof(*wheels));
	if (!module_device(&rdev))
		return -ENODEV;
	if (!pid)
		ret = find_in_all(wheels, rdev);
	else if (!find_in(wheels, pid, fd, rdev))
		ret = -errno;
	if (wheels->nr)
		qsort(wheels->at, wheels->nr, sizeof(*wheels->at), compare);
	return ret;
}

void wheels_free(struct wheels *wheels)
{
	free(wheels->at);
	memset(wheels, 0, sizeof(*wheels));
}
