// SPDX-License-Identifier: GPL-2.0
/*
 * Servers: what the first page has of them, and the page of each.
 */
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cron/schedule.h"
#include "web/html.h"
#include "web/json.h"
#include "web/page.h"
#include "web/status.h"

/** page_shown_of - a list of the snapshot */
const json_t *page_shown_of(const char *list)
{
	return json_object_get(json_object_get(status_made(), list), "shown");
}

/** page_age_of - what is to be said of how new that is */
const char *page_age_of(const char *list)
{
	const json_t *part = json_object_get(status_made(), list);

	if (json_is_true(json_object_get(part, "failed")))
		return "The store does not tell the newest: what stands here may be old.";
	return json_number(part, "at") ? "" : "Not known yet.";
}

/** page_add_server - what this server does */
void page_add_server(struct evbuffer *out)
{
	const json_t *server = json_object_get(status_made(), "server");
	double waits = json_number_value(json_object_get(server, "waits"));
	bool shared = !strcmp(json_text(server, "store"), "database");

	html_add(out, "<div data-live id=\"server\"><dl><div><dt>Version</dt><dd>%s</dd></div>"
		 "<div><dt>Runs for</dt><dd>", json_text(server, "version"));
	html_span(out, json_number_value(json_object_get(server, "uptime")) * SECOND);
	html_add(out, "</dd></div><div><dt>Store</dt><dd>%r</dd></div>"
		 "<div><dt>New jobs</dt><dd>%r</dd></div>"
		 "<div><dt>Clients</dt><dd>%d, %d of them workers</dd></div>"
		 "<div><dt>Put</dt><dd>%d</dd></div><div><dt>Timed out</dt><dd>%d</dd></div>",
		 shared ? "a database that servers share" : "a folder",
		 json_is_true(json_object_get(server, "draining")) ? "refused: it drains" : "taken",
		 json_number(server, "connections"), json_number(server, "workers"),
		 json_number(server, "puts"), json_number(server, "timeouts"));
	if (*json_text(server, "site"))
		html_add(out, "<div><dt>Site</dt><dd>%s</dd></div>", json_text(server, "site"));
	if (waits > 1) {
		html_add(out, "<div><dt>The store does not answer</dt><dd class=\"wrong\">for ");
		html_span(out, waits * SECOND);
		html_add(out, "</dd></div>");
	}
	html_add(out, "</dl></div>\n");
}

/** page_add_nodes - the servers of a database */
void page_add_nodes(struct evbuffer *out)
{
	static const char *const heads[] = {
		"Name", "Site", "Session", "Last sign of life", "Reserved"
	};
	const json_t *one;
	size_t i;

	html_add(out, "<section data-live aria-labelledby=\"nodes-title\" id=\"nodes-all\">"
		 "<h2 id=\"nodes-title\">Servers on this database</h2>\n"
		 "<p class=\"note\" id=\"nodes-note\">%r</p>\n", page_age_of("nodes"));
	html_table(out, "nodes", heads, ARRAY_SIZE(heads));
	json_array_foreach(page_shown_of("nodes"), i, one) {
		double silent = json_number_value(json_object_get(one, "silent"));

		html_add(out, "<tr><th scope=\"row\"><a href=\"%/servers/%u\">%s</a>%r</th>"
			 "<td data-of=\"Site\">%s</td>"
			 "<td data-of=\"Session\">%d</td><td data-of=\"Last sign of life\"%r>",
			 json_text(one, "name"), json_text(one, "name"),
			 json_is_true(json_object_get(one, "self")) ? " (this one)" : "",
			 json_text(one, "site"), json_number(one, "session"),
			 silent > 3 ? " class=\"wrong\"" : "");
		html_span(out, silent * SECOND);
		html_add(out, " ago</td><td data-of=\"Reserved\">%d</td></tr>\n",
			 json_number(one, "reserved"));
	}
	html_end_table(out);
	html_add(out, "</section>\n");
}

/* Lateness */

#define KINDS 3

static const char *const kinds[KINDS] = { "jobs", "schedules", "commits" };

static int64_t sum_of(const json_t *counts, size_t to)
{
	int64_t sum = 0;

	for (size_t i = 0; i < to; i++)
		sum += json_integer_value(json_array_get(counts, i));
	return sum;
}

/* The bound of the bucket in which that many of a thousand are */
static void add_quantile(struct evbuffer *out, const json_t *bounds, const json_t *counts,
			 int64_t share)
{
	size_t count = json_array_size(bounds), i = 0;
	int64_t all = sum_of(counts, count + 1);

	while (i < count && sum_of(counts, i + 1) * 1000 < all * share)
		i++;
	html_add(out, all ? i < count ? "≤ " : "> " : "");
	if (all)
		html_span(out, json_real_value(json_array_get(bounds, i < count ? i : i - 1)) *
			  SECOND);
}

/** page_add_lateness - how late this server is */
void page_add_lateness(struct evbuffer *out)
{
	static const char *const heads[] = {
		"Share", "Delayed jobs", "Jobs of schedules", "Transactions"
	};
	static const struct {
		const char *name;
		int64_t share;
	} rows[] = { { "half of all", 500 }, { "p99", 990 }, { "p999", 999 }, { "all", 1000 } };
	const json_t *lateness = json_object_get(status_made(), "lateness");
	const json_t *bounds = json_object_get(lateness, "bounds");

	html_add(out, "<section data-live aria-labelledby=\"lateness-title\" id=\"lateness-all\">"
		 "<h2 id=\"lateness-title\">Lateness</h2>\n<p class=\"note\">How long after they"
		 " were due jobs were ready, and how long transactions took, since this server"
		 " started.</p>\n");
	html_table(out, "lateness", heads, ARRAY_SIZE(heads));
	html_add(out, "<tr><th scope=\"row\">how many</th>");
	for (int kind = 0; kind < KINDS; kind++)
		html_add(out, "<td data-of=\"%r\">%d</td>", heads[kind + 1],
			 sum_of(json_object_get(lateness, kinds[kind]),
				json_array_size(bounds) + 1));
	html_add(out, "</tr>\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		html_add(out, "<tr><th scope=\"row\">%r</th>", rows[i].name);
		for (int kind = 0; kind < KINDS; kind++) {
			html_add(out, "<td data-of=\"%r\">", heads[kind + 1]);
			add_quantile(out, bounds, json_object_get(lateness, kinds[kind]),
				     rows[i].share);
			html_add(out, "</td>");
		}
		html_add(out, "</tr>\n");
	}
	html_end_table(out);
	html_add(out, "</section>\n");
}

/* A server */

static void show_server(struct ask *ask)
{
	const json_t *one, *self = NULL;
	struct evbuffer *out = NULL;
	int64_t session = 0;
	size_t i;

	json_array_foreach(page_shown_of("nodes"), i, one) {
		double silent = json_number_value(json_object_get(one, "silent"));

		if (strcmp(json_text(one, "name"), ask->name))
			continue;
		out = out ? out : html_begin(ask, ask->name);
		self = json_is_true(json_object_get(one, "self")) ? one : self;
		session = session ? session : json_number(one, "session");
		html_add(out, "<dl><div><dt>Jobs that its clients have</dt><dd>%d</dd></div>",
			 json_number(one, "reserved"));
		/* A folder has no sessions. */
		if (session) {
			html_add(out, "<div><dt>Site</dt><dd>%s</dd></div><div><dt>Session</dt>"
				 "<dd>%d</dd></div><div><dt>Last sign of life</dt><dd%r>",
				 json_text(one, "site"), json_number(one, "session"),
				 silent > 3 ? " class=\"wrong\"" : "");
			html_span(out, silent * SECOND);
			html_add(out, " ago</dd></div>");
		}
		html_add(out, "</dl>\n");
	}
	if (!out) {
		http_fail(ask, HTTP_NOTFOUND, "no server '%s' is known now", ask->name);
		return;
	}
	if (!self && strstr(schedule_differs(), ask->name))
		html_add(out, "<p class=\"wrong\">Servers with other tabs than this one: %s</p>\n",
			 schedule_differs());
	if (self)
		page_add_server(out);
	if (self)
		page_add_lateness(out);
	page_list_of_server(ask, out, session);
}

/** page_server - the page of a server */
void page_server(struct ask *ask)
{
	status_wait(ask, show_server);
}
