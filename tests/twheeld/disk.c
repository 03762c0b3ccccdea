// SPDX-License-Identifier: GPL-2.0
/*
 * A disk that is slow, full, or broken: to be preloaded (LD_PRELOAD). What it is at the
 * moment stands in the file that TWHEELD_DISK names: "slow" (a sync takes 300 ms),
 * "broken" (a sync or write fails with EIO), "full" (a write fails with ENOSPC). Writes
 * to sockets and pipes are not touched: they come by other calls, or by a descriptor
 * that is no regular file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)real(#name))

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* The disk's state: the first letter of its word, 0 when all is well */
static char state(void)
{
	const char *path = getenv("TWHEELD_DISK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char first = 0;

	if (fd < 0)
		return 0;
	if (read(fd, &first, 1) != 1)
		first = 0;
	close(fd);
	return first;
}

static int is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* Whether a write is to fail; errno says why */
static int refused(int fd)
{
	char now;

	if (!is_file(fd))
		return 0;
	now = state();
	if (now == 'b')
		errno = EIO;
	else if (now == 'f')
		errno = ENOSPC;
	return now == 'b' || now == 'f';
}

static int sync_fails(void)
{
	const struct timespec while_ = { .tv_nsec = 300000000 };
	char now = state();

	if (now == 's')
		nanosleep(&while_, NULL);
	if (now == 'b')
		errno = EIO;
	return now == 'b';
}

int fsync(int fd)
{
	return sync_fails() ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	return sync_fails() ? -1 : REAL(fdatasync)(fd);
}

ssize_t write(int fd, const void *data, size_t size)
{
	return refused(fd) ? -1 : REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return refused(fd) ? -1 : REAL(pwrite)(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	return refused(fd) ? -1 : REAL(pwrite64)(fd, data, size, at);
}

int posix_fallocate(int fd, off_t at, off_t size)
{
	char now = state();
	int why = now == 'f' ? ENOSPC : EIO;

	return now == 'f' || now == 'b' ? why : REAL(posix_fallocate)(fd, at, size);
}
