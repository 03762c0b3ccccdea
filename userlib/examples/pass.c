// SPDX-License-Identifier: MIT
/*
 * A wheel is passed to another process through a socket. The timers go with it:
 * the child reads the event of a timer that its parent armed.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <twheel.h>

#define MS 1000000ULL

union control {
	char buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

static int send_fd(int socket, int fd)
{
	union control control = { 0 };
	struct iovec byte = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) < 0 ? -errno : 0;
}

static int receive_fd(int socket)
{
	union control control = { 0 };
	char buf;
	struct iovec byte = { &buf, 1 };
	struct msghdr msg = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fd;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return -EBADF;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

static int child(int socket)
{
	struct twheel_event event;
	struct twheel *tw;

	must(twheel_from_fd(must(receive_fd(socket), "receive"), &tw),
	     "twheel_from_fd");
	must(twheel_read(tw, &event, 1), "twheel_read");
	printf("the other process read %llu\n",
	       (unsigned long long)event.user_data);
	twheel_close(tw);
	return event.user_data != 42;
}

int main(void)
{
	struct twheel_op op = twheel_op_arm(0, 50 * MS, 0, 42);
	struct twheel *tw;
	int pair[2], status;
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -errno : 0,
	     "socketpair");
	pid = fork();
	if (!pid) {
		close(pair[0]);
		return child(pair[1]);
	}
	must(pid < 0 ? -errno : 0, "fork");
	/* Else a child that waits for the wheel would outlive a failure here */
	close(pair[1]);

	must(twheel_open(TWHEEL_KERNEL, &tw), "open (is the module loaded?)");
	must(twheel_arm(tw, &op), "twheel_arm");
	must(send_fd(pair[0], twheel_fd(tw)), "send");
	twheel_close(tw);	/* The child's descriptor keeps the wheel */

	waitpid(pid, &status, 0);
	return status != 0;
}
