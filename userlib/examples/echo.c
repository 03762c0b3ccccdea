// SPDX-License-Identifier: MIT
/*
 * An echo server with 10,000 connections, each with an idle timeout. What comes in
 * pushes the timeout ahead; who is silent for too long is disconnected. (Connections are
 * made up of socket pairs, 100 at a time, as many descriptors are for root only: the
 * others are idle, and have no socket.)
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <twheel_pool.h>

#define MS 1000000LL
#define CONNECTIONS 10000
#define SOCKETS 100
#define IDLE (200 * MS)
#define ROUNDS 5

struct connection {
	struct twheel_task idle;
	int server;
	int client;
	int echoed;
};

static struct connection connections[CONNECTIONS];
static struct twheel_pool *pool;
static int closed;

/* Called by the pool's worker when nothing came within the timeout */
static int disconnect(struct twheel_task *task, const struct twheel_run *run)
{
	struct connection *connection = task->arg;

	(void)run;
	if (connection->server >= 0)
		shutdown(connection->server, SHUT_RDWR);
	__atomic_fetch_add(&closed, 1, __ATOMIC_RELAXED);
	return 0;
}

static int connect_one(struct connection *connection, int epoll, int with_socket)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
	int pair[2] = { -1, -1 };

	if (with_socket && (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
			    epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event)))
		return -1;
	connection->server = pair[0];
	connection->client = pair[1];
	connection->idle.run = disconnect;
	connection->idle.arg = connection;
	return twheel_task_start(pool, &connection->idle, 0, IDLE, 0);
}

/* 1 when the connection is closed */
static int serve(struct connection *connection)
{
	char bytes[64];
	ssize_t nr = read(connection->server, bytes, sizeof(bytes));

	if (nr > 0) {
		twheel_task_reset(&connection->idle, 0, IDLE, 0);
		nr = write(connection->server, bytes, nr);
	}
	if (nr > 0) {
		connection->echoed++;
		/* What the client does: it reads, and sends the next one */
		if (read(connection->client, bytes, sizeof(bytes)) > 0 &&
		    connection->echoed < ROUNDS && write(connection->client, "x", 1) < 0)
			perror("a client");
		return 0;
	}
	/* The pool's worker may be about to shut it down */
	twheel_task_cancel_wait(&connection->idle);
	close(connection->server);
	close(connection->client);
	return 1;
}

int main(void)
{
	struct twheel_pool_options options = {
		.size = sizeof(options), .threads = 1, .tick = MS,
	};
	int epoll = epoll_create1(EPOLL_CLOEXEC), open = 0, echoed = 0, i;
	struct epoll_event event;

	/* A connection may be shut down as idle while it is written to. */
	signal(SIGPIPE, SIG_IGN);
	if (twheel_pool_new(&options, &pool))
		return 1;
	for (i = 0; i < CONNECTIONS; i++)
		if (connect_one(&connections[i], epoll, i < SOCKETS))
			return 1;
	for (i = 0; i < SOCKETS; i++)
		open += write(connections[i].client, "x", 1) == 1;
	while (open)
		if (epoll_wait(epoll, &event, 1, -1) == 1)
			open -= serve(event.data.ptr);
	twheel_pool_stop(pool, TWHEEL_RUN_ONCE, NULL, NULL);
	for (i = 0; i < SOCKETS; i++)
		echoed += connections[i].echoed;
	printf("%d echoed, %d of %d connections closed as idle\n", echoed, closed, CONNECTIONS);
	return -twheel_pool_free(pool);
}
