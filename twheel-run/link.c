// SPDX-License-Identifier: GPL-2.0
/*
 * A connection to the server.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "job.h"
#include "link.h"
#include "lookup.h"
#include "loop.h"
#include "must.h"
#include "options.h"

/* The most bytes after a line: of a job, and of anything else */
#define MOST_BODY 1000000000
#define MOST_TEXT 65536
/* The longest a server may take for a reply. A reserve waits for half a minute. */
#define PATIENCE 90000
#define FIRST_DELAY 100
#define MOST_DELAY 10000
/* ms until it is looked again whether the server's address is known */
#define LOOK 20

/* The message that the server is away was printed: once, not for each connection */
static bool said_away;

static bool is_unix(void)
{
	return !strncmp(options.server, "unix:", 5);
}

static void say_away(const char *why)
{
	if (!said_away)
		warnx("%s%s%s: %s; trying again", options.server, is_unix() ? "" : " port ",
		      is_unix() ? "" : options.port, why);
	said_away = true;
}

/* A proxy takes connections while the server is away. So that there is one says nothing. */
static void say_back(struct link *link)
{
	if (said_away)
		warnx("connected to the server again");
	said_away = false;
	link->is_new = false;
}

static void forget_reply(struct link *link)
{
	if (link->reply.file >= 0)
		close(link->reply.file);
	free(link->reply.text);
	link->reply = (struct reply){ .file = -1 };
}

static void drop(struct link *link)
{
	bool was_up = link->is_up;

	if (link->server)
		bufferevent_free(link->server);
	link->server = NULL;
	link->is_up = false;
	link->asked = false;
	forget_reply(link);
	event_del(link->timer);
	if (was_up)
		link->down(link);
}

/** link_break - end a connection that is of no use any more; it is made anew */
void link_break(struct link *link, const char *why)
{
	say_away(why);
	drop(link);
	if (link->closed)
		return;
	loop_set(link->timer, link->delay);
	link->delay = link->delay * 2 > MOST_DELAY ? MOST_DELAY : link->delay * 2;
}

/** link_works - the server does what it is asked: when the connection breaks, it is tried soon */
void link_works(struct link *link)
{
	link->delay = FIRST_DELAY;
}

/** link_close - end a connection; what was reserved by it is ready again */
void link_close(struct link *link)
{
	link->closed = true;
	drop(link);
}

static void came_up(struct link *link)
{
	static const int yes = 1;

	setsockopt(bufferevent_getfd(link->server), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	link->is_up = true;
	link->is_new = true;
	event_del(link->timer);
	link->up(link);
}

static void happened(struct bufferevent *server, short what, void *arg)
{
	struct link *link = arg;
	int error = EVUTIL_SOCKET_ERROR();

	if (what & BEV_EVENT_CONNECTED)
		came_up(link);
	else if (what & BEV_EVENT_EOF)
		link_break(link, "the server closed the connection");
	else
		link_break(link, strerror(error));
}

/* The reply is whole. What it has is the callee's until the next is asked for. */
static bool answer(struct link *link)
{
	link->asked = false;
	event_del(link->timer);
	link->answer(link, &link->reply);
	if (link->server && link->is_new)
		say_back(link);
	return link->server;
}

static void follows(struct link *link, const char *word)
{
	bool is_body = !strncmp(word, "RESERVED ", 9);

	if (!job_number(strrchr(word, ' ') + 1, &link->reply.size) ||
	    link->reply.size > (is_body ? MOST_BODY : MOST_TEXT)) {
		link_break(link, "the server says what makes no sense");
		return;
	}
	link->reply.has_more = true;
	link->left = link->reply.size;
	if (is_body)
		link->reply.file = memfd_create("job", MFD_CLOEXEC);
}

static bool take_line(struct link *link, struct evbuffer *in)
{
	size_t length;
	char *line = evbuffer_readln(in, &length, EVBUFFER_EOL_CRLF_STRICT);

	if (!line && evbuffer_get_length(in) < LINK_LINE)
		return false;
	if (!line || length >= LINK_LINE || !link->asked) {
		free(line);
		link_break(link, "the server says what nobody asked");
		return false;
	}
	forget_reply(link);
	strcpy(link->reply.line, line);
	free(line);
	if (strncmp(link->reply.line, "RESERVED ", 9) && strncmp(link->reply.line, "OK ", 3))
		return answer(link);
	follows(link, link->reply.line);
	return link->server;
}

/* A body that can't be kept is read all the same, as replies come after it. */
static void spoil(struct link *link)
{
	close(link->reply.file);
	link->reply.file = -1;
}

static bool take_body(struct link *link, struct evbuffer *in)
{
	while (link->left && evbuffer_get_length(in)) {
		unsigned long long have = evbuffer_get_length(in);
		unsigned long long some = have < link->left ? have : link->left;

		if (link->reply.file < 0) {
			evbuffer_drain(in, some);
			link->left -= some;
			continue;
		}
		int wrote = evbuffer_write_atmost(in, link->reply.file, some);

		if (wrote > 0)
			link->left -= wrote;
		else
			spoil(link);
	}
	return !link->left;
}

static bool take_text(struct link *link, struct evbuffer *in)
{
	if (link->reply.text)
		return true;
	if (evbuffer_get_length(in) < link->reply.size)
		return false;
	link->reply.text = must(calloc(1, link->reply.size + 1));
	evbuffer_remove(in, link->reply.text, link->reply.size);
	return true;
}

static bool take_end(struct link *link, struct evbuffer *in)
{
	char end[2];

	if (evbuffer_get_length(in) < 2)
		return false;
	evbuffer_remove(in, end, 2);
	if (!memcmp(end, "\r\n", 2))
		return true;
	link_break(link, "what the server says does not end with CR LF");
	return false;
}

static bool take_more(struct link *link, struct evbuffer *in)
{
	bool is_body = !strncmp(link->reply.line, "RESERVED ", 9);

	if (!(is_body ? take_body(link, in) : take_text(link, in)) || !take_end(link, in))
		return false;
	link->reply.has_more = false;
	return answer(link);
}

static void readable(struct bufferevent *server, void *arg)
{
	struct link *link = arg;
	struct evbuffer *in = bufferevent_get_input(server);

	while (link->reply.has_more ? take_more(link, in) : take_line(link, in))
		;
}

static int connect_unix(struct link *link)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = options.server + 5;

	if (strlen(path) >= sizeof(addr.sun_path))
		errx(5, "-s %s: the path is too long, %zu bytes are the most", options.server,
		     sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	return bufferevent_socket_connect(link->server, (struct sockaddr *)&addr, sizeof(addr));
}

/* One after the other, as a server need not listen on all that it has. */
static int connect_to(struct link *link, const struct lookup *lookup)
{
	const struct address *to = &lookup->addresses[link->attempts++ % lookup->count];

	return bufferevent_socket_connect(link->server, (const struct sockaddr *)&to->addr,
					  to->size);
}

/*
 * libevent does not. With a copy in a command the connection would outlive this program, and
 * the server go on to give it jobs.
 */
static void keep_from_commands(struct link *link)
{
	int fd = bufferevent_getfd(link->server);

	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void connect_link(struct link *link, const struct lookup *lookup)
{
	int ret;

	link->server = must(bufferevent_socket_new(loop, -1, BEV_OPT_CLOSE_ON_FREE));
	bufferevent_setcb(link->server, readable, NULL, happened, link);
	bufferevent_enable(link->server, EV_READ | EV_WRITE);
	ret = is_unix() ? connect_unix(link) : connect_to(link, lookup);
	/* (Of some errors it has called happened() by now.) */
	if (link->server)
		keep_from_commands(link);
	if (ret < 0 && link->server)
		link_break(link, strerror(errno));
	else if (ret == 0 && link->server && !link->is_up)
		loop_set(link->timer, PATIENCE);
}

static void try(struct link *link)
{
	const struct lookup *lookup = is_unix() ? NULL : lookup_server();

	if (!is_unix() && !lookup)
		loop_set(link->timer, LOOK);
	else if (lookup && lookup->error)
		link_break(link, gai_strerror(lookup->error));
	else
		connect_link(link, lookup);
}

static void timer(evutil_socket_t fd, short what, void *arg)
{
	struct link *link = arg;

	if (link->server)
		link_break(link, "the server does not answer");
	else
		try(link);
}

void link_open(struct link *link)
{
	link->timer = loop_timer(timer, link);
	link->delay = FIRST_DELAY;
	link->reply.file = -1;
	try(link);
}

/** link_ask - send a command; the next reply is its */
void link_ask(struct link *link, const char *format, va_list args)
{
	struct evbuffer *out = bufferevent_get_output(link->server);

	if (evbuffer_add_vprintf(out, format, args) < 0 || evbuffer_add(out, "\r\n", 2) < 0)
		errx(1, "out of memory");
	link->asked = true;
	loop_set(link->timer, PATIENCE);
}

/** link_add - a body follows the command */
void link_add(struct link *link, const void *body, size_t size)
{
	struct evbuffer *out = bufferevent_get_output(link->server);

	if (evbuffer_add(out, body, size) < 0 || evbuffer_add(out, "\r\n", 2) < 0)
		errx(1, "out of memory");
}
