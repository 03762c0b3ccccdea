/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to the server: a command goes out, its reply comes in, one at a time. When
 * it breaks, it is made anew.
 */
#ifndef TWHEEL_RUN_LINK_H
#define TWHEEL_RUN_LINK_H

#include <event2/bufferevent.h>
#include <stdarg.h>
#include <stdbool.h>

/* A line of the protocol is not longer. */
#define LINK_LINE 256

/* A reply of the server */
struct reply {
	char line[LINK_LINE];
	bool has_more;		/* something follows the line: */
	unsigned long long size;		/* that many bytes, which are in: */
	int file;		/* after RESERVED; less than 0 if it could not be kept */
	char *text;		/* after anything else */
};

struct link {
	/* There is a connection; there is none any more; what was asked is answered. */
	void (*up)(struct link *link);
	void (*down)(struct link *link);
	void (*answer)(struct link *link, struct reply *reply);
	struct bufferevent *server;
	bool is_up, closed;
	bool is_new;		/* the server has not answered yet */
	bool asked;
	struct reply reply;	/* that comes in */
	unsigned long long left;		/* of its file */
	long long delay;		/* before the next attempt */
	unsigned int attempts;
	struct event *timer;
};

void link_open(struct link *link);
void link_works(struct link *link);
void link_close(struct link *link);
void link_break(struct link *link, const char *why);
__attribute__((format(printf, 2, 0)))
void link_ask(struct link *link, const char *format, va_list args);
void link_add(struct link *link, const void *body, size_t size);

#endif
