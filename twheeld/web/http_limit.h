/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many connections evhttp has, and for how long.
 */
#ifndef TWHEELD_HTTP_LIMIT_H
#define TWHEELD_HTTP_LIMIT_H

struct bufferevent;
struct event_base;
struct evconnlistener;
struct evhttp;

void http_limit_start(struct event_base *base, struct evhttp *http);
void http_limit_add(struct evconnlistener *listener);
void http_limit_renew(struct bufferevent *bev);

#endif
