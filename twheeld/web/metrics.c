// SPDX-License-Identifier: GPL-2.0
/*
 * What the server does, in the text format of Prometheus: GET /metrics.
 *
 * The loop serves it, and never waits for it: the figures of all tubes are copied at once,
 * and written a piece at a time, the next one when the last was sent. So they are of one
 * moment, a reader that does not read costs that copy alone, and clients are served
 * between the pieces. There are few such readers at a time, and they have some seconds; bound.c
 * says how many others there are.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cron/holidays.h"
#include "cron/schedule.h"
#include "cron/tabs_reader.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/command.h"
#include "jobs/stats.h"
#include "jobs/window.h"
#include "store/tube_counts.h"
#include "web/http.h"
#include "web/metrics.h"

/* Tubes a piece */
#define PIECE 200
#define SCRAPES_MOST 8

struct tube_figures {
	char name[TUBE_NAME_MAX + 1];
	int64_t figures[6];
};

/* An answer that is being written */
struct scrape {
	struct counts_asker counts;	/* of a shared store */
	struct evhttp_request *request;
	struct tube_figures *tubes;
	size_t count, at;
	size_t family;
	bool sent;		/* what comes before the tubes is */
};

static const struct {
	const char *text, *name;
	size_t figure, figures;
} families[] = {
	{ "# HELP twheeld_jobs Jobs that are there.\n# TYPE twheeld_jobs gauge\n",
	  "twheeld_jobs", 0, STATES },
	{ "# HELP twheeld_tube_puts_total Jobs put in the tube.\n"
	  "# TYPE twheeld_tube_puts_total counter\n", "twheeld_tube_puts_total", 4, 1 },
	{ "# HELP twheeld_tube_deletes_total Jobs of the tube deleted.\n"
	  "# TYPE twheeld_tube_deletes_total counter\n", "twheeld_tube_deletes_total", 5, 1 },
};

static unsigned int scrapes;

static void head(struct evbuffer *out, const char *name, const char *type, const char *help)
{
	evbuffer_add_printf(out, "# HELP twheeld_%s %s\n# TYPE twheeld_%s %s\n", name, help, name,
			    type);
}

static void one(struct evbuffer *out, const char *name, const char *type, const char *help,
		double value)
{
	head(out, name, type, help);
	evbuffer_add_printf(out, "twheeld_%s %.9g\n", name, value);
}

static void add_histogram(struct evbuffer *out, const char *name, const char *help,
			  const struct histogram *histogram)
{
	uint64_t sum = 0;

	head(out, name, "histogram", help);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		sum += histogram->counts[i];
		evbuffer_add_printf(out, "twheeld_%s_bucket{le=\"%g\"} %llu\n", name,
				    histogram_bounds[i], (unsigned long long)sum);
	}
	sum += histogram->counts[HISTOGRAM_BUCKETS];
	evbuffer_add_printf(out, "twheeld_%s_bucket{le=\"+Inf\"} %llu\n", name,
			    (unsigned long long)sum);
	evbuffer_add_printf(out, "twheeld_%s_sum %.9g\ntwheeld_%s_count %llu\n", name,
			    histogram->seconds, name, (unsigned long long)sum);
}

static void add_commands(struct evbuffer *out)
{
	head(out, "commands_total", "counter", "Commands of clients.");
	for (size_t i = 0; i < STATS_COMMANDS; i++)
		evbuffer_add_printf(out, "twheeld_commands_total{command=\"%s\"} %llu\n",
				    stats_commands[i].key,
				    (unsigned long long)command_count(stats_commands[i].kind));
}

static void add_connections(struct evbuffer *out)
{
	one(out, "connections", "gauge", "Clients that are connected.", conn_counts.now);
	one(out, "producers", "gauge", "Clients that have put.", conn_counts.producers);
	one(out, "workers", "gauge", "Clients that have reserved.", conn_counts.workers);
	one(out, "waiting", "gauge", "Clients that wait for a job.", conn_counts.waiting);
	one(out, "accepted_total", "counter", "Clients that have connected.",
	    conn_counts.total);
}

static void add_window(struct evbuffer *out)
{
	/* Of a shared store there is none: it ends before all times. */
	int64_t until = window_end().ord, now = alarm_now();

	one(out, "window_jobs", "gauge", "Delayed jobs that are in memory.", window_jobs());
	one(out, "window_seconds", "gauge", "How far ahead all delayed jobs are in memory.",
	    until > now ? (until - now) / 1e9 : 0);
}

static void add_schedules(struct evbuffer *out)
{
	struct schedule_counts counts = schedule_count();

	head(out, "schedules", "gauge", "Schedules that files have.");
	evbuffer_add_printf(out, "twheeld_schedules{state=\"active\"} %zu\n"
			    "twheeld_schedules{state=\"paused\"} %zu\n", counts.active,
			    counts.paused);
	one(out, "schedule_lines_wrong", "gauge", "Lines of these files that are wrong.",
	    tabs_reader_wrong());
	one(out, "calendars_empty", "gauge",
	    "Files of CALENDAR= that leave out nothing from now on.", holidays_empty());
	one(out, "schedule_jobs_total", "counter", "Jobs that schedules made.", counts.jobs);
	add_histogram(out, "schedule_lateness_seconds",
		      "How long after they were due jobs of schedules were ready.",
		      schedule_lateness());
}

static void add_server(struct evbuffer *out)
{
	struct histogram times = commit_times();

	head(out, "info", "gauge", "The version.");
	evbuffer_add_printf(out, "twheeld_info{version=\"%s\"} 1\n", TWHEELD_VERSION);
	one(out, "uptime_seconds", "gauge", "Since the server started.",
	    (alarm_now() - stats_started()) / 1e9);
	one(out, "draining", "gauge", "Does it take no new jobs?", command_draining());
	one(out, "puts_total", "counter", "Jobs put.", job_puts());
	one(out, "timeouts_total", "counter", "Jobs whose time to run was over.", job_timeouts());
	one(out, "written_total", "counter", "Operations written to the store.", commit_count());
	one(out, "failed_total", "counter", "Operations that the store could not do.",
	    commit_failures());
	add_histogram(out, "commit_seconds", "How long transactions took.", &times);
	add_histogram(out, "lateness_seconds",
		      "How long after they were due delayed jobs became ready.",
		      engine->lateness());
}

static void add_tube(struct evbuffer *out, size_t family, const struct tube_figures *tube)
{
	static const char *const states[] = {
		[READY] = "ready", [DELAYED] = "delayed", [BURIED] = "buried",
		[RESERVED] = "reserved",
	};

	const int64_t *figures = tube->figures + families[family].figure;

	for (size_t i = 0; i < families[family].figures; i++) {
		evbuffer_add_printf(out, "%s{tube=\"%s\"", families[family].name, tube->name);
		if (families[family].figures > 1)
			evbuffer_add_printf(out, ",state=\"%s\"", states[i]);
		evbuffer_add_printf(out, "} %lld\n", (long long)figures[i]);
	}
}

static struct tube_figures copy(const struct tube *tube)
{
	struct tube_figures copy = { .figures[4] = tube->total, .figures[5] = tube->deletes };

	strcpy(copy.name, tube->name);
	memcpy(copy.figures, tube->count, sizeof(tube->count));
	return copy;
}

static void end(struct scrape *scrape)
{
	scrapes--;
	free(scrape->tubes);
	free(scrape);
}

static void lost(struct evhttp_connection *connection, void *arg)
{
	struct scrape *scrape = arg;

	(void)connection;
	http_lost(scrape->request);
	tube_counts_forget(&scrape->counts);
	end(scrape);
}

/* The next piece, once the last is sent */
static void next(struct evhttp_connection *connection, void *arg)
{
	struct scrape *scrape = arg;
	struct evbuffer *out;
	size_t until;

	scrape->sent = true;
	if (scrape->counts.asks)
		return;
	if (scrape->family == ARRAY_SIZE(families)) {
		evhttp_connection_set_closecb(connection, NULL, NULL);
		evhttp_send_reply_end(scrape->request);
		end(scrape);
		return;
	}
	out = must(evbuffer_new());
	if (!scrape->at)
		evbuffer_add_printf(out, "%s", families[scrape->family].text);
	until = scrape->at + PIECE < scrape->count ? scrape->at + PIECE : scrape->count;
	while (scrape->at < until)
		add_tube(out, scrape->family, &scrape->tubes[scrape->at++]);
	if (scrape->at == scrape->count) {
		scrape->at = 0;
		scrape->family++;
	}
	evhttp_send_reply_chunk_with_cb(scrape->request, out, next, scrape);
	evbuffer_free(out);
}

/* Those of this server, and after them those that it knows from the store alone */
static void copy_all(struct scrape *scrape, const struct tube_counts *counts, size_t length)
{
	struct tube **list = tube_list(&scrape->count);

	scrape->tubes = must(calloc(scrape->count + length + 1, sizeof(*scrape->tubes)));
	for (size_t i = 0; i < scrape->count; i++) {
		scrape->tubes[i] = copy(list[i]);
		if (engine->counts_in_store)
			memset(scrape->tubes[i].figures, 0, sizeof(list[i]->count));
	}
	for (size_t i = 0; i < length; i++) {
		struct tube *tube = tube_find(counts[i].tube);
		struct tube_figures *figures = &scrape->tubes[tube ? tube->place : scrape->count++];

		strcpy(figures->name, counts[i].tube);
		memcpy(figures->figures, counts[i].count, sizeof(counts[i].count));
	}
}

/* While the database is away, there are no figures of tubes. */
static void counted(struct counts_asker *asker, const struct counts *counts)
{
	struct scrape *scrape = container_of(asker, struct scrape, counts);

	if (!counts->op.failed)
		copy_all(scrape, counts->figures, counts->length);
	if (scrape->sent)
		next(evhttp_request_get_connection(scrape->request), scrape);
}

static struct scrape *begin(struct evhttp_request *request)
{
	struct scrape *scrape = zalloc(sizeof(*scrape));

	scrapes++;
	scrape->request = request;
	scrape->counts.told = counted;
	if (engine->counts_in_store)
		tube_counts_ask(&scrape->counts, NULL);
	else
		copy_all(scrape, NULL, 0);
	return scrape;
}

/** metrics_answer - answer a request for /metrics */
void metrics_answer(struct evhttp_request *request)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct scrape *scrape;
	struct evbuffer *out;

	if (scrapes >= SCRAPES_MOST) {
		http_refuse(request, HTTP_SERVUNAVAIL, "Too many ask at a time");
		return;
	}
	scrape = begin(request);
	out = must(evbuffer_new());
	add_server(out);
	add_window(out);
	add_connections(out);
	add_schedules(out);
	add_commands(out);
	evhttp_connection_set_closecb(connection, lost, scrape);
	evhttp_send_reply_start(request, HTTP_OK, "OK");
	evhttp_send_reply_chunk_with_cb(request, out, next, scrape);
	evbuffer_free(out);
}
