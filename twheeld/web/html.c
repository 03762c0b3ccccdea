// SPDX-License-Identifier: GPL-2.0
/*
 * Pages as HTML. Whatever has a name was named by others: it becomes text, never markup.
 */
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/store.h"
#include "when/zone.h"
#include "web/act.h"
#include "web/html.h"

/* From where the page is to the first one: a proxy may have put all of them into a folder */
static char top[16];

/* Gives what stands for a character; NULL: itself. Terminals obey control characters. */
static const char *entity_of(unsigned char c)
{
	static const char special[] = "&<>\"'";
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };
	const char *at = memchr(special, c, sizeof(special) - 1);

	if (at)
		return entities[at - special];
	return c < ' ' && c != '\n' && c != '\t' ? "?" : NULL;
}

/* What needs nothing in its place is added at once: a page may have megabytes of output. */
static void add_text(struct evbuffer *out, const char *text)
{
	const char *from = text;

	for (; text && *text; text++) {
		const char *entity = entity_of(*text);

		if (!entity)
			continue;
		evbuffer_add(out, from, text - from);
		evbuffer_add(out, entity, strlen(entity));
		from = text + 1;
	}
	if (text)
		evbuffer_add(out, from, text - from);
}

static void add_encoded(struct evbuffer *out, const char *text)
{
	char *encoded = must(evhttp_uriencode(text, -1, 0));

	add_text(out, encoded);
	free(encoded);
}

/**
 * html_add - add to a page
 * @out: the page
 * @format: markup, with %s for a text, %u for a text as a part of a path, %r for markup, %d for a
 *	number of 64 bits, %/ for where paths begin
 */
void html_add(struct evbuffer *out, const char *format, ...)
{
	va_list args;
	size_t plain;

	va_start(args, format);
	for (; *format; format += 2) {
		plain = strcspn(format, "%");
		evbuffer_add(out, format, plain);
		format += plain;
		if (!*format)
			break;
		if (format[1] == 's')
			add_text(out, va_arg(args, const char *));
		else if (format[1] == 'u')
			add_encoded(out, va_arg(args, const char *));
		else if (format[1] == 'r')
			evbuffer_add_printf(out, "%s", va_arg(args, const char *));
		else if (format[1] == 'd')
			evbuffer_add_printf(out, "%lld", (long long)va_arg(args, int64_t));
		else
			evbuffer_add_printf(out, "%s", top);
	}
	va_end(args);
}

/** html_span - a length of time, as its first two units that count */
void html_span(struct evbuffer *out, int64_t ns)
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
	int64_t left = (ns + SECOND / 2) / SECOND;
	int words = 0;

	ns = ns > 0 ? ns : 0;
	if (ns < SECOND) {
		evbuffer_add_printf(out, "%.4g ms", ns < MILLISECOND ? ns / 1e6 :
				    (double)(ns / MILLISECOND));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units) && words < 2; i++) {
		if (left >= units[i].seconds) {
			evbuffer_add_printf(out, "%s%lld %s", words++ ? " " : "",
					    (long long)(left / units[i].seconds), units[i].name);
			left %= units[i].seconds;
		} else if (words) {
			break;
		}
	}
}

/** html_job - the number of a job, which leads to its page if who asks may see that */
void html_job(const struct ask *ask, struct evbuffer *out, int64_t id)
{
	if (ask->some_tubes)
		html_add(out, "%d", id);
	else
		html_add(out, "<a href=\"%/jobs/%d\">%d</a>", id, id);
}

/** html_time - a time by the clock of a zone, and how far it is from now, by the wall clock */
void html_time(struct evbuffer *out, int64_t ns, const struct zone *zone, int64_t now)
{
	time_t seconds = ns / SECOND, clock = zone_clock(zone, seconds);
	char utc[40], text[40];
	struct tm tm;

	if (!ns || ns == INT64_MAX || !gmtime_r(&seconds, &tm)) {
		html_add(out, "never");
		return;
	}
	strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", &tm);
	gmtime_r(&clock, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	html_add(out, "<time datetime=\"%s\">%s</time> <small>%r", utc, text,
		 ns > now ? "in " : "");
	html_span(out, llabs(ns - now));
	html_add(out, "%r</small>", ns > now ? "" : " ago");
}

/**
 * html_bytes - a body: as text if it is some, else in hexadecimal numbers
 * @bytes: it, or the begin of it
 * @length: bytes that are there
 * @all: bytes of the whole body
 */
void html_bytes(struct evbuffer *out, const char *bytes, size_t length, size_t all)
{
	json_t *is_text = json_stringn(bytes, length);
	size_t most = length < BODY_MOST ? length : BODY_MOST;
	char *copy;

	if (is_text && !memchr(bytes, 0, length)) {
		copy = must(strndup(bytes, most));
		html_add(out, "<pre>%s</pre>", copy);
		free(copy);
	} else {
		html_add(out, "<pre>");
		for (size_t i = 0; i < most; i++)
			evbuffer_add_printf(out, "%02x%s", (unsigned char)bytes[i],
					    i % 16 == 15 ? "\n" : " ");
		html_add(out, "</pre>");
	}
	json_decref(is_text);
	if (most < all)
		html_add(out, "<p class=\"note\">These are the first %d of %d bytes.</p>",
			 (int64_t)most, (int64_t)all);
}

/** html_table - the begin of a table, with the heads of its columns */
void html_table(struct evbuffer *out, const char *id, const char *const *heads, size_t count)
{
	html_add(out, "<table id=\"%r\"><thead><tr>", id);
	for (size_t i = 0; i < count; i++)
		html_add(out, "<th scope=\"col\">%s</th>", heads[i]);
	html_add(out, "</tr></thead><tbody>\n");
}

/** html_end_table - its end */
void html_end_table(struct evbuffer *out)
{
	html_add(out, "</tbody></table>\n");
}

/* Find out where the paths of a page begin. */
static void find_top(struct ask *ask)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(ask->request));
	size_t at = 0;

	for (path = path && *path ? path + 1 : ""; *path && at + 3 < sizeof(top); path++)
		if (*path == '/')
			at += sprintf(top + at, "../");
	strcpy(top + at, at ? "" : "./");
}

/** html_go_on - go on with a page, after others may have been made meanwhile */
void html_go_on(struct ask *ask)
{
	find_top(ask);
}

/** html_redirect - have the browser look at another page, whose path begins as all of ours */
void html_redirect(struct ask *ask, const char *to)
{
	char path[100];

	find_top(ask);
	snprintf(path, sizeof(path), "%s%s", top, to);
	http_redirect(ask, path);
}

static void add_login(struct ask *ask, struct evbuffer *out)
{
	if (ask->who)
		html_add(out, "<form method=\"post\" action=\"%/logout\">"
			 "<input type=\"hidden\" name=\"form\" value=\"%s\">%s, who may %r"
			 " <button>Log out</button></form>", ask->form_token, ask->who,
			 ask->operates ? "operate" : "read");
}

/** html_begin - the begin of a page */
struct evbuffer *html_begin(struct ask *ask, const char *title)
{
	struct evbuffer *out = must(evbuffer_new());

	find_top(ask);
	html_add(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		 "<meta name=\"color-scheme\" content=\"light dark\"><title>%s</title>\n"
		 "<link rel=\"stylesheet\" href=\"%/status.css\">"
		 "<script src=\"%/status.js\" defer></script></head>\n<body>\n"
		 "<header><a href=\"%/\">twheeld <b>%s</b></a>", title, store_node);
	add_login(ask, out);
	html_add(out, "</header>\n<p id=\"away\" role=\"alert\"></p>\n<main>\n<h1>%s</h1>\n",
		 title);
	act_say(ask, out);
	return out;
}

/** html_end - its end; it is sent, and freed */
void html_end(struct ask *ask, int code, struct evbuffer *out)
{
	html_add(out, "</main>\n</body></html>\n");
	http_text(ask, code, out);
	evbuffer_free(out);
}

/** html_fail - a page that says what is wrong */
void html_fail(struct ask *ask, int code, const char *why)
{
	struct evbuffer *out = html_begin(ask, ask->form ? "That was not done" :
					  "There is nothing to show");

	html_add(out, "<p class=\"wrong\">%s</p>\n", why);
	html_end(ask, code, out);
}
