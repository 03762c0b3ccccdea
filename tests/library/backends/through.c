// SPDX-License-Identifier: GPL-2.0
/* The programs of tests/module/contract by way of the library. See through.h. */

#define THROUGH
#include "through.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../userlib/src/internal.h"

#define DEVICE "/dev/twheel"
#define MOST_FDS 4096

/* The wheel of each descriptor */
static struct twheel *wheels[MOST_FDS];

static long with_errno(long ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

static struct twheel *wheel_of(int fd)
{
	if (fd < 0 || fd >= MOST_FDS)
		return NULL;
	return __atomic_load_n(&wheels[fd], __ATOMIC_ACQUIRE);
}

static void set_wheel(int fd, struct twheel *tw)
{
	if (fd >= MOST_FDS)
		abort();
	__atomic_store_n(&wheels[fd], tw, __ATOMIC_RELEASE);
}

int through_open(const char *path, int flags, ...)
{
	struct twheel *tw;
	va_list ap;
	int mode, ret;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	if (strcmp(path, DEVICE))
		return open(path, flags, mode);
	ret = twheel_open(flags & O_NONBLOCK, &tw);
	if (ret)
		return with_errno(ret);
	set_wheel(twheel_fd(tw), tw);
	return twheel_fd(tw);
}

int through_dup(int fd)
{
	int copy = dup(fd);

	if (wheel_of(fd) && copy >= 0)
		set_wheel(copy, wheel_of(fd));
	return copy;
}

static bool used(const struct twheel *tw)
{
	int fd;

	for (fd = 0; fd < MOST_FDS; fd++)
		if (wheel_of(fd) == tw)
			return true;
	return false;
}

/* (The library's own descriptor stays as long as others of the wheel do.) */
int through_close(int fd)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct twheel *tw = wheel_of(fd);
	bool last, own;

	if (!tw)
		return close(fd);
	pthread_mutex_lock(&lock);
	own = fd == twheel_fd(tw);
	set_wheel(fd, NULL);
	last = !used(tw);
	pthread_mutex_unlock(&lock);
	if (!own)
		close(fd);
	if (last)
		twheel_close(tw);
	return 0;
}

/*
 * Where there is no kernel between, a program's arrays are where the compiler wants them.
 * Returns a copy of one that is elsewhere, or that itself.
 */
static void *aligned(struct twheel *tw, void *at, size_t bytes)
{
	void *copy;

	if (!tw->user || (uintptr_t)at % sizeof(__u64) == 0)
		return at;
	copy = malloc(bytes);
	return copy ? memcpy(copy, at, bytes) : at;
}

static void back(void *at, void *copy, size_t bytes)
{
	if (copy == at)
		return;
	memcpy(at, copy, bytes);
	free(copy);
}

static long submit(struct twheel *tw, const struct twheel_submit *arg)
{
	void *at = (void *)(uintptr_t)arg->ops;
	size_t bytes = (size_t)arg->nr * arg->op_size;
	void *ops = aligned(tw, at, bytes);
	long ret = submit_ops(tw, ops, arg->nr, arg->op_size);

	back(at, ops, bytes);
	return ret;
}

static long call(struct twheel *tw, unsigned long cmd, void *arg)
{
	const struct twheel_drain *drain = arg;

	switch (cmd) {
	case TWHEEL_IOC_INFO:
		return twheel_info(tw, arg);
	case TWHEEL_IOC_SETUP:
		return twheel_setup(tw, arg);
	case TWHEEL_IOC_SUBMIT:
		return submit(tw, arg);
	case TWHEEL_IOC_DRAIN:
		return drain_ops(tw, (void *)(uintptr_t)drain->ops, drain->nr,
				 drain->op_size);
	case TWHEEL_IOC_EVENTFD:
		return twheel_set_eventfd(tw, ((struct twheel_eventfd *)arg)->fd);
	case TWHEEL_IOC_STATS:
		return twheel_stats(tw, arg);
	default:
		return -ENOTTY;
	}
}

ssize_t through_read(int fd, void *to, size_t bytes)
{
	struct twheel *tw = wheel_of(fd);
	void *at;
	long ret;

	if (!tw)
		return read(fd, to, bytes);
	at = aligned(tw, to, bytes);
	ret = read_bytes(tw, at, bytes, false);
	back(to, at, bytes);
	return with_errno(ret);
}

ssize_t through_preadv2(int fd, const struct iovec *parts, int nr, off_t at, int flags)
{
	struct twheel *tw = wheel_of(fd);

	if (!tw || nr != 1 || at != -1)
		return preadv2(fd, parts, nr, at, flags);
	return with_errno(read_bytes(tw, parts->iov_base, parts->iov_len,
				     flags & RWF_NOWAIT));
}

/* Whatever call it is: there may be less than six, which is no matter to the kernel */
__attribute__((no_sanitize("address")))
long through_syscall(long nr, ...)
{
	struct twheel *tw;
	long arg[6];
	va_list ap;
	int i;

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	tw = wheel_of(arg[0]);
	if (tw && nr == SYS_read)
		return through_read(arg[0], (void *)arg[1], arg[2]);
	if (tw && nr == SYS_ioctl)
		return with_errno(call(tw, arg[1], (void *)arg[2]));
	return syscall(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Readable, but a wheel of which nothing has expired? */
static bool for_nothing(const struct pollfd *p)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel *tw = wheel_of(p->fd);

	return p->revents && tw && !twheel_info(tw, &info) && !info.ready;
}

/* A wheel in the program itself may be readable for nothing: that is not reported */
int through_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	long long end = now_ms() + timeout;
	nfds_t i;
	int ret;

	for (;;) {
		ret = poll(fds, nr, timeout);
		if (ret <= 0)
			return ret;
		for (i = 0; i < nr; i++) {
			if (for_nothing(&fds[i])) {
				fds[i].revents = 0;
				ret--;
			}
		}
		if (ret)
			return ret;
		if (timeout > 0)
			timeout = end > now_ms() ? end - now_ms() : 0;
	}
}
