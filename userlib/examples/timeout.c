// SPDX-License-Identifier: MIT
/*
 * An idle timeout on epoll: a peer sends three bytes and then nothing more. The
 * timeout is pushed ahead at each byte, and in the end it comes. (The peer is a
 * second timer of the same wheel, with other user data.)
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <twheel.h>

#define MS 1000000ULL

enum { IDLE, PEER };

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0, "epoll");
}

/* Push the timeout ahead: new times for the same timer */
static void received(struct twheel *tw, __u64 timeout, int connection)
{
	struct twheel_op op = twheel_op_modify(timeout, 0, 200 * MS, 0, IDLE);
	char byte;

	if (read(connection, &byte, 1) == 1)
		printf("a byte, timeout pushed ahead\n");
	must(twheel_modify(tw, &op), "twheel_modify");
}

/* True when the connection is to be closed */
static int expired(struct twheel *tw, int peer)
{
	static int sent;
	struct twheel_event event;

	/* Nothing there: the timeout was ready, and pushed ahead before this */
	if (twheel_read(tw, &event, 1) != 1)
		return 0;
	if (event.user_data == IDLE)
		return 1;
	if (write(peer, "x", 1) == 1 && ++sent == 3)
		must(twheel_cancel(tw, event.id), "twheel_cancel");
	return 0;
}

int main(void)
{
	struct twheel_op timeout = twheel_op_arm(0, 200 * MS, 0, IDLE);
	struct twheel_op sender = twheel_op_arm(0, 20 * MS, 20 * MS, PEER);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	struct twheel *tw;
	int pair[2];

	must(twheel_open(O_NONBLOCK, &tw), "twheel_open");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	watch(epoll, twheel_fd(tw));
	watch(epoll, pair[0]);
	must(twheel_arm(tw, &timeout), "twheel_arm");
	must(twheel_arm(tw, &sender), "twheel_arm");

	for (;;) {
		if (epoll_wait(epoll, &event, 1, -1) != 1)
			continue;
		if (event.data.fd == pair[0])
			received(tw, timeout.id, pair[0]);
		else if (expired(tw, pair[1]))
			break;
	}
	printf("idle for too long, closing\n");
	twheel_close(tw);
	return 0;
}
