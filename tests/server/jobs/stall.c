// SPDX-License-Identifier: GPL-2.0
/*
 * A server that hangs: to be preloaded (LD_PRELOAD). While the file that TWHEELD_STALL
 * names says "disk", a sync does not return; while it says "loop", to accept a client
 * does not, which the event loop does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int is(char letter)
{
	const char *path = getenv("TWHEELD_STALL");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char first = 0;

	if (fd < 0)
		return 0;
	if (read(fd, &first, 1) != 1)
		first = 0;
	close(fd);
	return first == letter;
}

static void stall(char letter)
{
	static const struct timespec soon = { 0, 10000000 };

	while (is(letter))
		nanosleep(&soon, NULL);
}

int fdatasync(int fd)
{
	stall('d');
	return ((__typeof__(fdatasync) *)dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

int fsync(int fd)
{
	stall('d');
	return ((__typeof__(fsync) *)dlsym(RTLD_NEXT, "fsync"))(fd);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	stall('l');
	return ((__typeof__(accept4) *)dlsym(RTLD_NEXT, "accept4"))(fd, addr, length, flags);
}
