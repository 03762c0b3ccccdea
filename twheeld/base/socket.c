// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets that listen: on a TCP port, or a unix socket.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/util.h"

/* How long an address that is in use is tried again, in ms, and how often */
#define TAKEN_MS 1000
#define LOOK_MS 10

/*
 * A child that reads a file for a server has the server's sockets until it has closed them. If the
 * server is killed at that moment, its address is free only a little later.
 */
static bool may_become_free(unsigned int *ms)
{
	*ms += LOOK_MS;
	return *ms <= TAKEN_MS && usleep(LOOK_MS * 1000) == 0;
}

/* A killed server leaves its socket's file behind, and nobody listens on it. */
static bool somebody_listens(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool there = fd >= 0 && (!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ||
				 errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return there;
}

static int open_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	unsigned int ms = 0;
	struct stat st;
	int fd;

	if (!*path)
		die("listen on unix:%s: the path of a socket comes after unix:", path);
	if (strlen(path) >= sizeof(addr.sun_path))
		die("listen on unix:%s: the path is too long, %zu bytes are the most", path,
		    sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	if (stat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			die("listen on unix:%s: there is something else of that name", path);
		while (somebody_listens(&addr))
			if (!may_become_free(&ms))
				die("listen on unix:%s: another server listens there", path);
		unlink(path);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		die("listen on unix:%s: %s", path, strerror(errno));
	return fd;
}

static int try_inet(const struct addrinfo *info, bool both)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int yes = 1, no = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (both && info->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, info->ai_addr, info->ai_addrlen) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_inet(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *infos;
	unsigned int ms = 0;
	int fd = -1, ret;

	ret = getaddrinfo(host, port, &hints, &infos);
	if (ret)
		die("listen on %s, port %s: %s", host ? host : "all addresses", port,
		    gai_strerror(ret));
	do {
		for (struct addrinfo *info = infos; info && fd < 0; info = info->ai_next)
			fd = try_inet(info, !host);
	} while (fd < 0 && errno == EADDRINUSE && may_become_free(&ms));
	if (fd < 0)
		die("listen on %s, port %s: %s", host ? host : "all addresses", port,
		    strerror(errno));
	freeaddrinfo(infos);
	return fd;
}

/**
 * socket_open - listen
 * @address: a host, "unix:PATH", or NULL for all of the machine's addresses
 * @port: a port
 */
int socket_open(const char *address, const char *port)
{
	int fd = address && !strncmp(address, "unix:", 5) ? open_unix(address + 5) :
		open_inet(address, port);

	if (listen(fd, 1024) < 0)
		die("listen on %s%s%s: %s", address ? address : "all addresses",
		    port ? ", port " : "", port ? port : "", strerror(errno));
	return fd;
}

/** socket_open_text - listen on an address that address_wrong() has passed */
int socket_open_text(const char *text)
{
	const char *colon = strrchr(text, ':');
	char host[NI_MAXHOST];
	size_t length;

	if (!strncmp(text, "unix:", 5))
		return socket_open(text, NULL);
	if (!colon)
		return socket_open(NULL, text);
	length = colon - text;
	if (length >= 2 && *text == '[' && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	memcpy(host, text, length);
	host[length] = 0;
	return socket_open(length && strcmp(host, "*") ? host : NULL, colon + 1);
}

/** socket_say - say where a socket listens, and for whom */
void socket_say(int fd, const char *whom)
{
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_storage room;
	} addr = { .any.sa_family = AF_UNSPEC };
	socklen_t length = sizeof(addr);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getsockname(fd, &addr.any, &length) < 0)
		return;
	if (addr.any.sa_family == AF_UNIX)
		inform("listening on unix:%s for %s", addr.local.sun_path, whom);
	else if (!getnameinfo(&addr.any, length, host, sizeof(host), port, sizeof(port),
			      NI_NUMERICHOST | NI_NUMERICSERV))
		inform("listening on %s, port %s, for %s", host, port, whom);
}

static void enable(evutil_socket_t fd, short what, void *arg)
{
	evconnlistener_enable(arg);
}

/* Wait: most likely no descriptor is left, and accept() would be tried without end. */
static void refused(struct evconnlistener *listener, void *arg)
{
	static const struct timeval soon = { 0, 100000 };

	evconnlistener_disable(listener);
	if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, enable, listener,
			    &soon) < 0)
		die("out of memory");
}

/** socket_spare - let a listener of libevent wait after accept() has failed, and try again */
void socket_spare(struct evconnlistener *listener)
{
	evconnlistener_set_error_cb(listener, refused);
}
