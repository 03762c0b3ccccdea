// SPDX-License-Identifier: GPL-2.0
/*
 * How many connections evhttp has, and for how long.
 *
 * libevent 2.1 bounds neither, and does not tell when a connection ends. But it asks for the
 * bufferevent of each. A reference to that is held here, and once libevent has let go of it,
 * nobody is called back any more.
 */
#include <ctype.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/alarm.h"
#include "base/util.h"
#include "web/http_limit.h"

static void listen_to_more(struct http_limit *limit, bool more)
{
	for (size_t i = 0; i < limit->listener_count; i++) {
		if (more)
			evconnlistener_enable(limit->listeners[i]);
		else
			evconnlistener_disable(limit->listeners[i]);
	}
}

static bool has_ended(struct bufferevent *bev)
{
	bufferevent_event_cb called;

	bufferevent_getcb(bev, NULL, NULL, &called, NULL);
	return !called;
}

/* The connection that has asked for nothing for the longest makes room for others. */
static void make_room(struct http_limit *limit)
{
	struct http_connection *oldest = NULL, *one = limit->connections;

	for (; one < limit->connections + limit->count; one++)
		if (!one->asked && (!oldest || one->until < oldest->until))
			oldest = one;
	if (oldest)
		shutdown(bufferevent_getfd(oldest->bev), SHUT_RDWR);
}

static void listen_on(struct http_limit *limit)
{
	static const struct timeval soon = { 0, 100000 }, at_once = { 0, 1000 };

	listen_to_more(limit, limit->count < limit->most);
	event_add(limit->later, limit->count < limit->most ? &soon : &at_once);
}

static void http_limit_look(struct http_limit *limit)
{
	for (size_t i = limit->count; i-- > 0;) {
		struct bufferevent *bev = limit->connections[i].bev;

		if (has_ended(bev)) {
			bufferevent_decref(bev);
			limit->connections[i] = limit->connections[--limit->count];
		} else if (alarm_now() > limit->connections[i].until) {
			/* libevent sees the end of the connection then, and frees it. */
			shutdown(bufferevent_getfd(bev), SHUT_RDWR);
		}
	}
	if (limit->count == limit->most)
		make_room(limit);
	listen_on(limit);
}

static void look_later(evutil_socket_t fd, short what, void *arg)
{
	struct http_limit *limit = arg;

	if (limit->count)
		http_limit_look(limit);
}

/* A twheel(1) of before HTTP begins with a word in small letters, and reads a line of JSON. */
static void first_bytes(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
	static const char text[] = "{\"error\":\"this server is of a newer version (twheeld "
		TWHEELD_VERSION "): take the twheel of that version, too\"}\n";
	unsigned char first = 0;

	evbuffer_copyout(in, &first, 1);
	evbuffer_remove_cb(in, first_bytes, arg);
	if (islower(first))
		send(bufferevent_getfd(arg), text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static struct bufferevent *http_limit_connected(struct event_base *base, void *arg)
{
	struct http_limit *limit = arg;
	struct bufferevent *bev;

	http_limit_look(limit);
	/* A listener that stopped at the limit has one more to accept. */
	if (limit->count == limit->most)
		return NULL;
	bev = must(bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE));
	if (limit->old_programs)
		must(evbuffer_add_cb(bufferevent_get_input(bev), first_bytes, bev));
	bufferevent_incref(bev);
	limit->connections[limit->count++] = (struct http_connection){
		bev, alarm_now() + limit->patience * SECOND, false
	};
	listen_on(limit);
	return bev;
}

/** http_limit_renew - give a connection its time anew, as its one request is there */
void http_limit_renew(struct http_limit *limit, struct bufferevent *bev)
{
	for (size_t i = 0; i < limit->count; i++) {
		if (limit->connections[i].bev != bev)
			continue;
		limit->connections[i].until = alarm_now() + limit->patience * SECOND;
		limit->connections[i].asked = true;
	}
}

/** http_limit_add - have a listener of evhttp wait while there are too many connections */
void http_limit_add(struct http_limit *limit, struct evconnlistener *listener)
{
	if (limit->listener_count == HTTP_LISTENERS)
		die("HTTP can't be served on more than %d sockets", HTTP_LISTENERS);
	limit->listeners[limit->listener_count++] = listener;
}

/** http_limit_start - bound what an evhttp has */
void http_limit_start(struct http_limit *limit, struct event_base *base, struct evhttp *http)
{
	limit->http = http;
	limit->later = must(evtimer_new(base, look_later, limit));
	evhttp_set_bevcb(http, http_limit_connected, limit);
}
