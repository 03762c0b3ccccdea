#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In a time namespace, an absolute timeout of io_uring is late by the namespace's offset on Linux
# 6.12, and right on 7.3.
#
# A program in a namespace whose CLOCK_MONOTONIC is 1,000 s ahead asks for "in one second" with
# IORING_TIMEOUT_ABS and with an absolute timerfd. timerfd_settime takes the namespace's time. On
# 6.12.117 io_uring takes the host's, and the timeout comes 1,000 s late; in a namespace that is
# behind it comes at once. On 7.3.4 both come after one second.
#
# It matters to what is restored by CRIU or runs in containers that have such a namespace, and to
# who moves from timerfd to io_uring.
#
# Boots both kernels by scripts/vm, from its cache. Wants gcc.

. "$(dirname "$0")/lib.sh"

cat >"$work/timens.c" <<'EOF'
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	static const char offset[] = "monotonic 1000 0";
	struct io_uring_params params = { 0 };
	struct itimerspec at = { 0 };
	struct __kernel_timespec when;
	struct io_uring_sqe *entry;
	struct pollfd fds[2];
	int file, timer, ring;
	char *queue;

	if (unshare(CLONE_NEWTIME))
		return 1;
	file = open("/proc/self/timens_offsets", O_WRONLY);
	if (write(file, offset, sizeof(offset) - 1) < 0)
		return 1;
	if (fork())
		return wait(NULL) < 0;
	clock_gettime(CLOCK_MONOTONIC, &at.it_value);
	at.it_value.tv_sec++;
	when = (struct __kernel_timespec){ at.it_value.tv_sec, at.it_value.tv_nsec };
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);

	ring = syscall(SYS_io_uring_setup, 4, &params);
	queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entry = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	*entry = (struct io_uring_sqe){ .opcode = IORING_OP_TIMEOUT, .len = 1, .addr = (long)&when,
		.timeout_flags = IORING_TIMEOUT_ABS };
	__atomic_store_n((unsigned int *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0);

	sleep(4);
	fds[0] = (struct pollfd){ timer, POLLIN, 0 };
	fds[1] = (struct pollfd){ ring, POLLIN, 0 };
	poll(fds, 2, 0);
	printf("timerfd: %s, io_uring: %s\n", fds[0].revents ? "came" : "did not come",
	       fds[1].revents ? "came" : "did not come");
	return 0;
}
EOF
gcc -O1 -static -o "$work/timens" "$work/timens.c"

# The kernel's release, and what was seen on it
in_kernel() {
	TWHEEL_CACHE=$cache "$top/scripts/vm" -k "$1" -f "$work/timens" -l "$work/log" \
		/bin/sh -c 'uname -r; timens'
}

for kernel in 6.12 7.3; do
	seen=$(in_kernel $kernel-cloud)
	echo "Linux ${seen%%$'\n'*}, four seconds later"
	want="timerfd: came, io_uring: did not come"
	[ $kernel = 6.12 ] || want="timerfd: came, io_uring: came"
	expect "$kernel" "${seen##*$'\n'}" "$want"
done
