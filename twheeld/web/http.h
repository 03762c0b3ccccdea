/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What can be looked at over HTTP: metrics, and a page for browsers. Nothing can be changed.
 */
#ifndef TWHEELD_HTTP_H
#define TWHEELD_HTTP_H

struct event_base;
struct evhttp_request;

void http_start(struct event_base *base);
void http_add(int fd);
void http_lost(struct evhttp_request *request);
void http_refuse(struct evhttp_request *request, int code, const char *why);

#endif
