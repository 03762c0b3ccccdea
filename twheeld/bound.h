/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many connections evhttp has, and for how long.
 */
#ifndef TWHEELD_BOUND_H
#define TWHEELD_BOUND_H

struct bufferevent;
struct event_base;
struct evconnlistener;
struct evhttp;

void bound_start(struct event_base *base, struct evhttp *http);
void bound_add(struct evconnlistener *listener);
void bound_renew(struct bufferevent *bev);

#endif
