/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages as HTML. Whatever has a name was named by others: it becomes text, never markup.
 */
#ifndef TWHEELD_HTML_H
#define TWHEELD_HTML_H

#include <event2/buffer.h>

#include "web/http.h"

struct zone;

/* Of a body, so much is shown */
#define BODY_MOST 65536

void html_add(struct evbuffer *out, const char *format, ...);
void html_job(const struct ask *ask, struct evbuffer *out, int64_t id);
void html_time(struct evbuffer *out, int64_t ns, const struct zone *zone, int64_t now);
void html_span(struct evbuffer *out, int64_t ns);
void html_bytes(struct evbuffer *out, const char *bytes, size_t length, size_t all);
void html_table(struct evbuffer *out, const char *id, const char *const *heads, size_t count);
void html_end_table(struct evbuffer *out);
struct evbuffer *html_begin(struct ask *ask, const char *title);
void html_go_on(struct ask *ask);
void html_redirect(struct ask *ask, const char *to);
void html_end(struct ask *ask, int code, struct evbuffer *out);
void html_fail(struct ask *ask, int code, const char *why);

#endif
