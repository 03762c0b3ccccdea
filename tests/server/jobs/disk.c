// SPDX-License-Identifier: GPL-2.0
/*
 * A disk that is slow, full, or broken: to be preloaded (LD_PRELOAD). What it is at the
 * moment stands in the file that TWHEELD_DISK names: "slow" (a sync takes 300 ms),
 * "broken" (a sync or write fails with EIO), "full" (a write fails with ENOSPC). Writes
 * to sockets and pipes are not touched: they come by other calls, or by a descriptor
 * that is no regular file.
 *
 * "once NAME NUMBER WHICH WHAT" is for one call alone, the one of that number, from when
 * another NAME is read. WHICH is "any", "read", "write", "sync" or
 * "open"; WHAT is "broken", "full", "kill" (with SIGKILL, a write having been half done).
 * When that was done, the file $TWHEELD_DISK.NAME is there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)real(#name))

/* What a call is in the eyes of "once" */
enum call { READ = 'r', WRITE = 'w', SYNC = 's', OPEN = 'o' };

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static int raw_open(const char *path, int flags)
{
	return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

/* What stands in the file: nothing when all is well */
static void read_state(char *state, size_t size)
{
	const char *path = getenv("TWHEELD_DISK");
	int fd = path ? raw_open(path, O_RDONLY) : -1;
	ssize_t got = fd < 0 ? -1 : syscall(SYS_read, fd, state, size - 1);

	state[got > 0 ? got : 0] = 0;
	if (fd >= 0)
		syscall(SYS_close, fd);
}

static void say_done(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.%s", getenv("TWHEELD_DISK"), name);
	syscall(SYS_close, raw_open(path, O_WRONLY | O_CREAT));
}

/* The first letter of what the one call is to do that "once" is for */
static char one_call(const char *state, enum call call)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char known[32];
	static int calls;
	char name[32], which[8], what[8], ret = 0;
	int number;

	if (sscanf(state, "once %31s %d %7s %7s", name, &number, which, what) != 4 ||
	    (which[0] != 'a' && which[0] != (char)call))
		return 0;
	pthread_mutex_lock(&lock);
	if (strcmp(known, name)) {
		strcpy(known, name);
		calls = 0;
	}
	if (++calls == number) {
		say_done(name);
		ret = what[0];
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* The disk's state for a call: the first letter of its word, 0 when all is well */
static char state_for(enum call call)
{
	char state[128];

	read_state(state, sizeof(state));
	return state[0] == 'o' ? one_call(state, call) : state[0];
}

static int is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* Whether a call fails; errno says why */
static int fails(char now)
{
	if (now == 'b')
		errno = EIO;
	else if (now == 'f')
		errno = ENOSPC;
	return now == 'b' || now == 'f';
}

/* Whether a write is to fail. Before a SIGKILL half of it is done. */
static int refused(int fd, const void *data, size_t size, off_t at)
{
	char now = is_file(fd) ? state_for(WRITE) : 0;

	if (now == 'k') {
		syscall(SYS_pwrite64, fd, data, size / 2, at);
		raise(SIGKILL);
	}
	return fails(now);
}

static int sync_fails(void)
{
	const struct timespec while_ = { .tv_nsec = 300000000 };
	char now = state_for(SYNC);

	if (now == 's')
		nanosleep(&while_, NULL);
	if (now == 'k')
		raise(SIGKILL);
	return now == 'f' ? 0 : fails(now);
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
	off_t at = is_file(fd) ? lseek(fd, 0, SEEK_CUR) : 0;

	return refused(fd, data, size, at) ? -1 : REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return refused(fd, data, size, at) ? -1 : REAL(pwrite)(fd, data, size, at);
}

/* Only that of "once" is for these: who reads from a bad disk mostly finds it in memory. */
static int once_fails(enum call call)
{
	char state[128];
	char now;

	read_state(state, sizeof(state));
	now = state[0] == 'o' ? one_call(state, call) : 0;
	if (now == 'k')
		raise(SIGKILL);
	return fails(now);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode = 0;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	return once_fails(OPEN) ? -1 : REAL(open)(path, flags, mode);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	return once_fails(READ) ? -1 : REAL(pread)(fd, data, size, at);
}

int ftruncate(int fd, off_t size)
{
	char now = state_for(WRITE);

	if (now == 'k')
		raise(SIGKILL);
	return now == 'b' && fails(now) ? -1 : REAL(ftruncate)(fd, size);
}

/* Where long has 64 bits, these are the same. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
ssize_t pread64(int fd, void *data, size_t size, off64_t at) __attribute__((alias("pread")));
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
	__attribute__((alias("pwrite")));
int ftruncate64(int fd, off64_t size) __attribute__((alias("ftruncate")));

int unlink(const char *path)
{
	char now = state_for(WRITE);

	if (now == 'k')
		raise(SIGKILL);
	return now == 'b' && fails(now) ? -1 : REAL(unlink)(path);
}

int posix_fallocate(int fd, off_t at, off_t size)
{
	char now = state_for(WRITE);
	int why = now == 'f' ? ENOSPC : EIO;

	if (now == 'k')
		raise(SIGKILL);
	return now == 'f' || now == 'b' ? why : REAL(posix_fallocate)(fd, at, size);
}

int posix_fallocate64(int fd, off64_t at, off64_t size)
	__attribute__((alias("posix_fallocate")));
