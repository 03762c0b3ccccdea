/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server's one interface for programs and people: HTTP, and JSON.
 *
 * Over TCP, nothing can be changed, and no body of a job is read. Over the unix socket all can be
 * done: who may open it is a matter of its permissions.
 */
#ifndef TWHEELD_HTTP_H
#define TWHEELD_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct event_base;
struct evhttp_request;
struct evkeyvalq;

/* A request that is being answered. http_json(), http_fail() and http_end() free it. */
struct ask {
	struct evhttp_request *request;		/* NULL: the client has gone */
	bool local;				/* over the unix socket */
	bool reads;				/* who asks may read bodies */
	bool operates;				/* and may do something by pages */
	bool some_tubes;			/* only of some tubes */
	const char *who;			/* has logged in; NULL: nobody */
	char form_token[65];			/* that a form of such a page has */
	struct evkeyvalq *form;			/* what a page sends, or NULL */
	bool page;				/* the answer is HTML */
	bool chunks;				/* the answer has begun, and comes in pieces */
	char *name;				/* what stands for {} in the path */
	/* A piece was sent, or the client has gone; NULL: an operation under way finds that out */
	void (*go_on)(struct ask *ask);
	void *more;				/* the answering file's own; freed with it */
};

void http_start(struct event_base *base, uint32_t job_size);
void http_add(int fd);
void http_add_local(const char *path);

json_t *http_body(struct ask *ask);
struct evbuffer *http_bytes(struct ask *ask, bool *is_json);
bool http_number(struct ask *ask, const char *name, int64_t most, int64_t *value);
char *http_query(struct ask *ask, const char *name);

const char *http_who(const struct ask *ask);

void http_text(struct ask *ask, int code, struct evbuffer *out);
void http_json(struct ask *ask, int code, json_t *json);
__attribute__((format(printf, 3, 4)))
void http_fail(struct ask *ask, int code, const char *format, ...);
void http_redirect(struct ask *ask, const char *to);
void http_piece(struct ask *ask, struct evbuffer *out, void (*go_on)(struct ask *ask));
void http_end(struct ask *ask);

#endif
