// SPDX-License-Identifier: GPL-2.0
/*
 * For a server that is started with it as LD_PRELOAD: what it does to files below the folder
 * $RECORD_OF, and what it sends to its clients, is written to the file $RECORD_TO.N in the order
 * in which it is done, N = 0 for the first server, 1 for the next. disk_image.py says what of
 * that is on the disk when the power fails.
 *
 * It may be killed at any moment. So a write is recorded before it is done, and a record that
 * is not whole is the last one, of what was not begun.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define MOST_FILES 4096

/* All that is written of one call: this, and then the bytes */
struct head {
	/* Open, Write, Truncate, Sync, Failed sync, Unlink, reply sent: R; only so much of it: E */
	char what;
	int32_t pid;
	int32_t fd;
	uint64_t at;
	uint64_t size;
} __attribute__((packed));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char recorded[MOST_FILES];
static int log_fd = -1;

/* The server's handlers of signals write, too: none may come to who has the lock. */
static __thread sigset_t before;

static void hold(void)
{
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	pthread_mutex_lock(&lock);
}

static void let_go(void)
{
	sigset_t set = before;

	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}

static int is_recorded(int fd)
{
	return fd >= 0 && fd < MOST_FILES && recorded[fd];
}

static int is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

/* By the system call, as what is preloaded has a write() of its own */
static void all(const void *data, size_t size)
{
	while (size) {
		long done = syscall(SYS_write, log_fd, data, size);

		if (done < 0)
			abort();
		data = (const char *)data + done;
		size -= done;
	}
}

static int new_log(void)
{
	char path[PATH_MAX];
	int fd = -1;

	for (int n = 0; fd < 0 && n < 1000; n++) {
		snprintf(path, sizeof(path), "%s.%d", getenv("RECORD_TO"), n);
		fd = syscall(SYS_openat, AT_FDCWD, path,
			     O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	}
	return fd;
}

static void note(char what, int fd, uint64_t at, const void *data, uint64_t size)
{
	struct head head = { what, getpid(), fd, at, data ? size : 0 };
	int saved = errno;

	if (!getenv("RECORD_TO"))
		return;
	if (log_fd < 0)
		log_fd = new_log();
	all(&head, sizeof(head));
	if (data)
		all(data, size);
	errno = saved;
}

static int opened(int fd, const char *path)
{
	const char *of = getenv("RECORD_OF");
	char full[PATH_MAX];

	if (fd < 0 || fd >= MOST_FILES)
		return fd;
	recorded[fd] = of && realpath(path, full) && !strncmp(full, of, strlen(of));
	if (recorded[fd])
		note('O', fd, 0, full, strlen(full));
	return fd;
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & O_CREAT ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int fd;

	va_start(args, flags);
	hold();
	fd = opened(REAL(open)(path, flags, mode_of(flags, args)), path);
	let_go();
	va_end(args);
	return fd;
}

int close(int fd)
{
	if (is_recorded(fd))
		recorded[fd] = 0;
	return REAL(close)(fd);
}

static void will_write(int fd, off_t at, const void *data, size_t size)
{
	if (is_recorded(fd))
		note('W', fd, at, data, size);
}

static ssize_t wrote(int fd, size_t size, ssize_t done)
{
	if (is_recorded(fd) && done < (ssize_t)size)
		note('E', fd, done > 0 ? done : 0, NULL, 0);
	return done;
}

static ssize_t sent(int fd, const void *data, ssize_t done)
{
	if (done > 0 && is_socket(fd))
		note('R', fd, 0, data, done);
	return done;
}

ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t done;

	hold();
	if (is_recorded(fd))
		will_write(fd, lseek(fd, 0, SEEK_CUR), data, size);
	done = wrote(fd, size, REAL(write)(fd, data, size));
	sent(fd, data, is_recorded(fd) ? 0 : done);
	let_go();
	return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	ssize_t done;

	hold();
	will_write(fd, at, data, size);
	done = wrote(fd, size, REAL(pwrite)(fd, data, size, at));
	let_go();
	return done;
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	ssize_t done, left;

	hold();
	done = REAL(writev)(fd, iov, count);
	left = done;
	for (int i = 0; left > 0 && i < count; i++) {
		ssize_t part = left < (ssize_t)iov[i].iov_len ? left : (ssize_t)iov[i].iov_len;

		sent(fd, iov[i].iov_base, part);
		left -= part;
	}
	let_go();
	return done;
}

int ftruncate(int fd, off_t size)
{
	int ret;

	hold();
	if (is_recorded(fd))
		note('T', fd, size, NULL, 0);
	ret = REAL(ftruncate)(fd, size);
	if (ret && is_recorded(fd))
		note('E', fd, 0, NULL, 0);
	let_go();
	return ret;
}

/* Of what is beyond the end of a file alone: that it is longer then */
int posix_fallocate(int fd, off_t at, off_t size)
{
	int ret;

	hold();
	if (is_recorded(fd))
		note('T', fd, at + size, NULL, 0);
	ret = REAL(posix_fallocate)(fd, at, size);
	if (ret && is_recorded(fd))
		note('E', fd, 0, NULL, 0);
	let_go();
	return ret;
}

static int synced(int fd, int (*how)(int fd))
{
	int ret;

	hold();
	ret = how(fd);
	if (is_recorded(fd))
		note(ret ? 'F' : 'S', fd, 0, NULL, 0);
	let_go();
	return ret;
}

int fsync(int fd)
{
	return synced(fd, REAL(fsync));
}

int fdatasync(int fd)
{
	return synced(fd, REAL(fdatasync));
}

/* Where long has 64 bits, these are the same. */
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
	__attribute__((alias("pwrite")));
int ftruncate64(int fd, off64_t size) __attribute__((alias("ftruncate")));
int posix_fallocate64(int fd, off64_t at, off64_t size)
	__attribute__((alias("posix_fallocate")));

int unlink(const char *path)
{
	const char *of = getenv("RECORD_OF");
	char full[PATH_MAX];
	int there, ret;

	hold();
	there = of && realpath(path, full) && !strncmp(full, of, strlen(of));
	if (there)
		note('U', -1, 0, full, strlen(full));
	ret = REAL(unlink)(path);
	if (ret && there)
		note('E', -1, 0, NULL, 0);
	let_go();
	return ret;
}
