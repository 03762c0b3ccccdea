/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before all else in a program of tests/module/contract, this makes its system calls on
 * /dev/twheel calls of the library, which has the wheel in the kernel or in the
 * program.
 */
#ifndef THROUGH_H
#define THROUGH_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int through_open(const char *path, int flags, ...);
int through_close(int fd);
int through_dup(int fd);
ssize_t through_read(int fd, void *to, size_t bytes);
ssize_t through_preadv2(int fd, const struct iovec *parts, int nr, off_t at, int flags);
long through_syscall(long nr, ...);
int through_poll(struct pollfd *fds, nfds_t nr, int timeout);

/* What /proc/PID/syscall has of a read that waits for a wheel in the program itself */
#define TEXT_OF(nr) #nr " "
#define TEXT(nr) TEXT_OF(nr)
#ifdef SYS_epoll_wait
#define THROUGH_WAITS TEXT(SYS_epoll_wait)
#else
#define THROUGH_WAITS TEXT(SYS_epoll_pwait)
#endif

#ifndef THROUGH
#define open(...) through_open(__VA_ARGS__)
#define close(fd) through_close(fd)
#define dup(fd) through_dup(fd)
#define read(fd, to, bytes) through_read(fd, to, bytes)
#define preadv2(fd, parts, nr, at, flags) through_preadv2(fd, parts, nr, at, flags)
#define syscall(...) through_syscall(__VA_ARGS__)
#define poll(fds, nr, timeout) through_poll(fds, nr, timeout)
#endif

#endif
