/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages for people: what needs somebody, all schedules, tubes, servers; and each of them.
 */
#ifndef TWHEELD_PAGE_H
#define TWHEELD_PAGE_H

#include "web/http.h"

struct definition;
struct event_base;

void page_start(struct event_base *base);
void page_home(struct ask *ask);
void page_schedule(struct ask *ask);
void page_job(struct ask *ask);
void page_tube(struct ask *ask);
void page_jobs(struct ask *ask);
void page_server(struct ask *ask);

/* Parts of them */
const json_t *page_shown_of(const char *list);
const char *page_age_of(const char *list);
void page_add_tube(struct evbuffer *out, const struct definition *definition);
void page_add_server(struct evbuffer *out);
void page_add_nodes(struct evbuffer *out);
void page_add_lateness(struct evbuffer *out);
void page_list_of_server(struct ask *ask, struct evbuffer *out, int64_t session);

#endif
