// SPDX-License-Identifier: GPL-2.0
/*
 * How many connections evhttp has, and for how long.
 *
 * libevent 2.1 bounds neither, and does not tell when a connection ends. But it asks for the
 * bufferevent of each. A reference to that is held here, and once libevent has let go of it,
 * nobody is called back any more.
 */
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/alarm.h"
#include "base/util.h"
#include "web/http_limit.h"

#define MOST 64
#define LISTENERS_MOST 16
/* For a request, and for its answer */
#define PATIENCE (10 * SECOND)

static struct connection {
	struct bufferevent *bev;
	int64_t until;
	bool asked;
} connections[MOST];
static size_t count;
static struct evconnlistener *listeners[LISTENERS_MOST];
static size_t listener_count;
static struct event *later;

static void listen_to_more(bool more)
{
	for (size_t i = 0; i < listener_count; i++) {
		if (more)
			evconnlistener_enable(listeners[i]);
		else
			evconnlistener_disable(listeners[i]);
	}
}

static bool has_ended(struct bufferevent *bev)
{
	bufferevent_event_cb told;

	bufferevent_getcb(bev, NULL, NULL, &told, NULL);
	return !told;
}

/* Who has asked for nothing yet, and has been there for longest, makes room for others. */
static void make_room(void)
{
	struct connection *oldest = NULL;

	for (size_t i = 0; i < count; i++)
		if (!connections[i].asked && (!oldest || connections[i].until < oldest->until))
			oldest = &connections[i];
	if (oldest)
		shutdown(bufferevent_getfd(oldest->bev), SHUT_RDWR);
}

static void listen_on(void)
{
	static const struct timeval soon = { 0, 100000 }, at_once = { 0, 1000 };

	listen_to_more(count < MOST);
	event_add(later, count < MOST ? &soon : &at_once);
}

static void look(void)
{
	for (size_t i = count; i-- > 0;) {
		struct bufferevent *bev = connections[i].bev;

		if (has_ended(bev)) {
			bufferevent_decref(bev);
			connections[i] = connections[--count];
		} else if (alarm_now() > connections[i].until) {
			/* libevent sees the end of it. */
			shutdown(bufferevent_getfd(bev), SHUT_RDWR);
		}
	}
	if (count == MOST)
		make_room();
	listen_on();
}

static void look_later(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (count)
		look();
}

static struct bufferevent *connected(struct event_base *base, void *arg)
{
	struct bufferevent *bev;

	(void)arg;
	look();
	/* A listener had one more. */
	if (count == MOST)
		return NULL;
	bev = must(bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE));
	bufferevent_incref(bev);
	connections[count++] = (struct connection){ bev, alarm_now() + PATIENCE, false };
	listen_on();
	return bev;
}

/** http_limit_renew - a connection has its time anew: its request is there, its only one */
void http_limit_renew(struct bufferevent *bev)
{
	for (size_t i = 0; i < count; i++) {
		if (connections[i].bev != bev)
			continue;
		connections[i].until = alarm_now() + PATIENCE;
		connections[i].asked = true;
	}
}

/** http_limit_add - have a listener of evhttp wait while there are too many connections */
void http_limit_add(struct evconnlistener *listener)
{
	if (listener_count == LISTENERS_MOST)
		die("metrics can't be served on more than %d sockets", LISTENERS_MOST);
	listeners[listener_count++] = listener;
}

void http_limit_start(struct event_base *base, struct evhttp *http)
{
	later = must(evtimer_new(base, look_later, NULL));
	evhttp_set_bevcb(http, connected, NULL);
}
