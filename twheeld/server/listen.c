// SPDX-License-Identifier: GPL-2.0
/*
 * Where clients connect.
 */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/util.h"
#include "jobs/conn.h"
#include "server/listen.h"

struct listener {
	struct event *event;
	bool tls;
	struct listener *next;
};

static struct event_base *loop;
static struct listener *listeners;
static struct event *later;
static unsigned int most_clients;

/* Accept nobody for now: the most clients are there, or memory or descriptors are used up. */
static void pause_all(void)
{
	static const struct timeval soon = { 0, 100000 };

	for (struct listener *one = listeners; one; one = one->next)
		event_del(one->event);
	event_add(later, &soon);
}

static void again(evutil_socket_t fd, short what, void *arg)
{
	for (struct listener *one = listeners; one; one = one->next)
		event_add(one->event, NULL);
}

static void connected(evutil_socket_t fd, short what, void *arg)
{
	const struct listener *one = arg;

	for (int i = 0; i < 64; i++) {
		int client;

		if (conn_counts.now >= most_clients && !conn_make_room()) {
			pause_all();
			return;
		}
		client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client >= 0) {
			conn_accept(client, one->tls);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			pause_all();
		return;
	}
}

/**
 * listen_start - begin to take clients
 * @base: the loop
 * @most: how many at a time; others wait until one has gone
 */
void listen_start(struct event_base *base, unsigned int most)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	loop = base;
	most_clients = most;
	later = must(evtimer_new(base, again, NULL));
}

/* Accepted sockets inherit these from the one that listens. Unix sockets ignore them. */
static void set_options(int fd)
{
	int yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/** listen_add - take clients from a socket, with TLS or without */
void listen_add(int fd, bool tls)
{
	struct listener *one = zalloc(sizeof(*one));

	socket_say(fd, tls ? "clients with TLS" : "clients");
	set_options(fd);
	one->event = must(event_new(loop, fd, EV_READ | EV_PERSIST, connected, one));
	one->tls = tls;
	one->next = listeners;
	listeners = one;
	event_add(one->event, NULL);
}

/** listen_no_more - take no further clients, so that they go elsewhere */
void listen_no_more(void)
{
	while (listeners) {
		struct listener *one = listeners;
		int fd = event_get_fd(one->event);

		listeners = one->next;
		/* Free the event before its descriptor is closed. */
		event_free(one->event);
		close(fd);
		free(one);
	}
}
