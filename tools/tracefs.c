// SPDX-License-Identifier: GPL-2.0
/*
 * An instance of the kernel's tracing, which has its own buffer, so that whoever else
 * traces is not disturbed. See tracefs.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"
#include "tracefs.h"

static char instance[128];

/* Writes to a file of the instance. Gives 0, or a negative error. */
static int put(const char *name, const char *text)
{
	char path[192];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/%s", instance, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static const char *place(void)
{
	static const char *const places[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/instances", places[i]);
		if (!access(path, F_OK) || errno == EACCES)
			return places[i];
	}
	return NULL;
}

static int explain(int error)
{
	if (error == -EACCES || error == -EPERM)
		return fail(-STATUS_NOT_ALLOWED,
			    geteuid() ? "only root may trace the kernel: sudo twheel watch" :
			    "the kernel's tracing is locked, as under Secure Boot it may be");
	return fail(-STATUS_FAILED, "can't trace: %s: %s", instance, strerror(-error));
}

/*
 * Instances of those that were killed, which could not remove them. (What somebody reads is
 * busy, and so stays, whatever his number is here.)
 */
static void remove_dead(const char *top)
{
	char path[128];
	struct dirent *entry;
	DIR *dir;
	int pid;

	snprintf(path, sizeof(path), "%s/instances", top);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "twheel-%d", &pid) != 1 || pid <= 0 ||
		    (pid != getpid() && (!kill(pid, 0) || errno != ESRCH)))
			continue;
		unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
}

static int set_up(__u64 wheel)
{
	char filter[64], path[192];
	int fd, ret;

	snprintf(filter, sizeof(filter), "wheel == %llu", wheel);
	/* Have times by CLOCK_MONOTONIC, and each line at once. */
	ret = put("trace_clock", "mono");
	put("buffer_percent", "0");
	if (!ret && wheel)
		ret = put("events/twheel/filter", filter);
	/* One event is enabled after the other: all are to be seen from the same moment on. */
	if (!ret)
		ret = put("tracing_on", "0");
	if (!ret)
		ret = put("events/twheel/enable", "1");
	if (!ret)
		ret = put("tracing_on", "1");
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/trace_pipe", instance);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Begins with a trace: of one wheel, or with 0 of all. Gives a descriptor to read lines
 * from, or, after it has said why not, a status, negative.
 */
int tracefs_open(__u64 wheel)
{
	const char *top = place();
	int ret;

	if (!top)
		return fail(-STATUS_FAILED,
			    "there is no tracefs; as root: mount -t tracefs none "
			    "/sys/kernel/tracing");
	remove_dead(top);
	snprintf(instance, sizeof(instance), "%s/instances/twheel-%d", top, getpid());
	if (mkdir(instance, 0700))
		return explain(-errno);
	ret = set_up(wheel);
	if (ret >= 0)
		return ret;
	rmdir(instance);
	return explain(ret);
}

/* The end, once the descriptor is closed */
void tracefs_close(void)
{
	put("events/twheel/enable", "0");
	if (rmdir(instance))
		say("%s: %s", instance, strerror(errno));
}
