/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many connections evhttp has, and for how long.
 */
#ifndef TWHEELD_HTTP_LIMIT_H
#define TWHEELD_HTTP_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_MOST 64
#define HTTP_LISTENERS 16

struct bufferevent;
struct evconnlistener;
struct event_base;
struct evhttp;

struct http_limit {
	size_t most;		/* connections */
	int patience;		/* seconds for a request, and for its answer */
	bool old_programs;	/* clients that speak no HTTP get a sentence */
	/* http_limit.c's own */
	struct evhttp *http;
	struct http_connection {
		struct bufferevent *bev;
		int64_t until;
		bool asked;
	} connections[HTTP_MOST];
	size_t count;
	struct evconnlistener *listeners[HTTP_LISTENERS];
	size_t listener_count;
	struct event *later;
};

void http_limit_start(struct http_limit *limit, struct event_base *base, struct evhttp *http);
void http_limit_add(struct http_limit *limit, struct evconnlistener *listener);
void http_limit_renew(struct http_limit *limit, struct bufferevent *bev);

#endif
