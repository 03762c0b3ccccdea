/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page for browsers shows of the server, as JSON.
 */
#ifndef TWHEELD_STATUS_H
#define TWHEELD_STATUS_H

struct event_base;
struct evhttp_request;

void status_start(struct event_base *base);
void status_answer(struct evhttp_request *request);

#endif
