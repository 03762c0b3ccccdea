// SPDX-License-Identifier: GPL-2.0
/*
 * What a page for browsers shows of the server, as JSON.
 *
 * All who ask within a second have the same, so that any number of them costs the same. It is
 * made in steps, between which clients are served: a hundred tubes and schedules at most are in
 * it, but of a hundred thousand it has to be found which ones. What a shared store knows comes
 * from a thread.
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "calendar.h"
#include "command.h"
#include "http.h"
#include "postgres_watch.h"
#include "reading.h"
#include "shared.h"
#include "stats.h"
#include "status.h"
#include "told.h"
#include "util.h"

#define SHOWN WATCH_MOST
/* A step takes so long */
#define STEP (MILLISECOND / 4)
/* What was made is good for so long, or for ten times what it took to make it, and no longer */
#define FRESH SECOND
#define FRESH_MOST (30 * SECOND)
/* So long the database may take */
#define PATIENCE 6

/* Who waits for what is being made */
struct reader {
	struct evhttp_request *request;
	struct reader *prev, *next;
};

struct tube_line {
	char name[TUBE_NAME_MAX + 1];
	int64_t count[STATES];
	bool paused;
	int64_t jobs;
};

static struct event *turn;
static struct reader *readers;
static struct evbuffer *made, *out;	/* the last one, and the one that is being made */
static int64_t fresh_until;

/* What is being made */
static size_t stage;
static bool making, waiting;		/* waiting: for the database */
static int64_t began;
static struct overview watch;
static bool watching;			/* the watch is its thread's */
static bool away;			/* the database is */
static struct tube_line tubes[SHOWN];
static size_t tube_at, tube_count, tubes_all, fewest;
static struct schedule *schedule_at, *schedules[SHOWN];	/* these are held */
static size_t schedule_total, schedules_all, schedules_paused, latest;
static size_t line;			/* that is written next */

/* Schedules: those that come next */

static int64_t next_of(const struct schedule *schedule)
{
	return schedule->paused ? CALENDAR_NEVER : schedule->time;
}

static void find_latest(void)
{
	latest = 0;
	for (size_t i = 1; i < schedule_total; i++)
		if (next_of(schedules[i]) > next_of(schedules[latest]))
			latest = i;
}

static void take_schedule(struct schedule *schedule)
{
	schedules_all++;
	schedules_paused += schedule->paused;
	if (schedule_total < SHOWN) {
		schedules[schedule_total++] = schedule_hold(schedule);
	} else if (next_of(schedule) < next_of(schedules[latest])) {
		schedule_release(schedules[latest]);
		schedules[latest] = schedule_hold(schedule);
	} else {
		return;
	}
	find_latest();
}

static int compare_schedules(const void *a, const void *b)
{
	const struct schedule *one = *(struct schedule *const *)a;
	const struct schedule *other = *(struct schedule *const *)b;
	int64_t next = next_of(one), other_next = next_of(other);

	if (next != other_next)
		return next < other_next ? -1 : 1;
	return strcmp(one->name, other->name);
}

static bool find_schedules(void)
{
	struct schedule *one = schedule_at;

	if (!one) {
		qsort(schedules, schedule_total, sizeof(*schedules), compare_schedules);
		return true;
	}
	if (one->definition)
		take_schedule(one);
	schedule_at = schedule_hold(one->hash.next);
	schedule_release(one);
	return false;
}

/* The database */

static void watched(void)
{
	static const struct timeval now;

	watching = false;
	if (waiting)
		event_add(turn, &now);
}

/* It may still be at what nobody waits for any more. */
static bool ask_database(void)
{
	static const struct timeval patience = { PATIENCE, 0 };

	away = watching;
	if (!store->shared || watching)
		return true;
	memset(&watch, 0, sizeof(watch));
	for (; watch.schedule_count < schedule_total; watch.schedule_count++)
		watch.schedules[watch.schedule_count] = schedules[watch.schedule_count]->id;
	watching = true;
	waiting = true;
	pg_watch(&watch, watched);
	event_add(turn, &patience);
	return true;
}

/* Tubes: those with most jobs */

static struct tube_line *line_of(const char *name)
{
	for (size_t i = 0; i < tube_count; i++)
		if (!strcmp(tubes[i].name, name))
			return &tubes[i];
	return NULL;
}

static void find_fewest(void)
{
	fewest = 0;
	for (size_t i = 1; i < tube_count; i++)
		if (tubes[i].jobs < tubes[fewest].jobs)
			fewest = i;
}

static void take_tube(const char *name, const int64_t *count, bool paused)
{
	struct tube_line *to;
	int64_t jobs = 0;

	for (int state = 0; state < STATES; state++)
		jobs += count[state];
	tubes_all++;
	if (tube_count == SHOWN && jobs <= tubes[fewest].jobs)
		return;
	to = &tubes[tube_count < SHOWN ? tube_count++ : fewest];
	strcpy(to->name, name);
	memcpy(to->count, count, sizeof(to->count));
	to->paused = paused;
	to->jobs = jobs;
	find_fewest();
}

static bool take_database(void)
{
	for (size_t i = 0; store->shared && !away && i < watch.tube_count; i++)
		take_tube(watch.tubes[i].name, watch.tubes[i].count, watch.tubes[i].paused);
	return true;
}

/* Of a shared store, those of this server that have no jobs */
static bool find_tubes(void)
{
	static const int64_t none[STATES];
	struct tube **list, *tube;
	size_t count;

	list = tube_list(&count);
	if (tube_at >= count || away) {
		if (store->shared && !away && (size_t)watch.tubes_all > tubes_all)
			tubes_all = watch.tubes_all;
		return true;
	}
	tube = list[tube_at++];
	if (!store->shared)
		take_tube(tube->name, tube->count, tube_paused(tube));
	else if (watch.tube_count < SHOWN && !line_of(tube->name))
		take_tube(tube->name, none, tube_paused(tube));
	return false;
}

/* Writing */

static void add(json_t *json)
{
	char *text = must(json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL);

	json_decref(json);
	evbuffer_add(out, text, strlen(text));
	free(text);
}

static void add_name(const char *name)
{
	evbuffer_add_printf(out, ",\"%s\":", name);
}

static void add_histogram(const char *name, const struct histogram *histogram)
{
	json_t *counts = must(json_array());

	for (int i = 0; i <= HISTOGRAM_BUCKETS; i++)
		json_array_append_new(counts, json_integer(histogram->counts[i]));
	add_name(name);
	add(counts);
}

static bool add_lateness(void)
{
	struct histogram times = commit_times();
	json_t *bounds = must(json_array());

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		json_array_append_new(bounds, json_real(histogram_bounds[i]));
	add_name("lateness");
	evbuffer_add_printf(out, "{\"bounds\":");
	add(bounds);
	add_histogram("jobs", store->shared ? shared_lateness() : job_lateness());
	add_histogram("schedules", schedule_lateness());
	add_histogram("commits", &times);
	evbuffer_add_printf(out, "}");
	return true;
}

/* Times are by the wall clock, which is the database's where there is one. */
static bool add_server(void)
{
	evbuffer_add_printf(out, "{\"now\":%lld", (long long)(alarm_wall() / MILLISECOND));
	add_name("server");
	add(json_pack("{s:o, s:o, s:s, s:f, s:s, s:b, s:f, s:b, s:i, s:i, s:i, s:I, s:I}",
		      "name", told_text(store_node), "site", told_text(store_site),
		      "version", TWHEELD_VERSION,
		      "uptime", (alarm_now() - stats_started()) / 1e9,
		      "store", store->shared ? "database" : "folder", "away", away,
		      "waits", commit_waits() / 1e9, "draining", command_draining(),
		      "connections", (int)conn_counts.now, "workers", (int)conn_counts.workers,
		      "waiting", (int)conn_counts.waiting, "puts", (json_int_t)stats_puts(),
		      "timeouts", (json_int_t)job_timeouts()));
	return true;
}

static void begin_list(const char *name, size_t all)
{
	add_name(name);
	evbuffer_add_printf(out, "{\"all\":%zu,\"shown\":[", all);
	line = 0;
}

static bool begin_tubes(void)
{
	begin_list("tubes", tubes_all);
	return true;
}

/* What clients did is known of this server's alone. */
static bool add_tube(void)
{
	const struct tube_line *at;
	const struct tube *tube;

	if (line == tube_count) {
		evbuffer_add_printf(out, "]}");
		return true;
	}
	at = &tubes[line];
	tube = tube_find(at->name);
	evbuffer_add_printf(out, "%s", line++ ? "," : "");
	add(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b}", "name", told_text(at->name),
		      "ready", (json_int_t)at->count[READY],
		      "reserved", (json_int_t)at->count[RESERVED],
		      "delayed", (json_int_t)at->count[DELAYED],
		      "buried", (json_int_t)at->count[BURIED],
		      "puts", (json_int_t)(tube ? tube->total : 0),
		      "deletes", (json_int_t)(tube ? tube->deletes : 0),
		      "waiting", tube ? (int)tube->waiting_count : 0, "paused", at->paused));
	return false;
}

static bool begin_schedules(void)
{
	begin_list("schedules", schedules_all);
	return true;
}

static json_t *last_of_own;

static void keep_run(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);

	last_of_own = asked->found ? told_run(&asked->runs[0]) : NULL;
	free(asked->runs);
}

/* A store of this server's alone answers at once. */
static void ask_own(const struct schedule *schedule)
{
	struct runs_asked *asked = zalloc(sizeof(*asked) + sizeof(*asked->schedules));

	asked->op.kind = OP_RUNS;
	asked->op.done = keep_run;
	asked->most = 1;
	asked->count = 1;
	asked->schedules[0] = schedule->id;
	store->runs(asked);
}

static json_t *last_run(size_t at)
{
	json_t *last = NULL;

	if (!store->shared) {
		ask_own(schedules[at]);
		last = last_of_own;
	} else if (!away && watch.runs[at].created) {
		last = told_run(&watch.runs[at]);
	}
	return last ? last : json_null();
}

/* Since it was found, it may have gone. */
static bool add_schedule(void)
{
	static bool any;
	const struct schedule *schedule;

	if (line == schedule_total) {
		evbuffer_add_printf(out, "],\"paused\":%zu,\"wrong\":%zu}", schedules_paused,
				    (size_t)reading_wrong());
		return true;
	}
	schedule = schedules[line];
	any = any && line;
	if (schedule->definition) {
		evbuffer_add_printf(out, "%s", any ? "," : "");
		add(told_schedule(schedule, last_run(line)));
		any = true;
	}
	line++;
	return false;
}

static bool add_nodes(void)
{
	bool known = store->shared && !away;

	begin_list("nodes", known ? watch.nodes_all : 0);
	for (size_t i = 0; known && i < watch.node_count; i++) {
		const struct watch_node *node = &watch.nodes[i];

		evbuffer_add_printf(out, "%s", i ? "," : "");
		add(json_pack("{s:o, s:o, s:I, s:f, s:I, s:b}", "name", told_text(node->name),
			      "site", told_text(node->site),
			      "session", (json_int_t)node->session,
			      "silent", node->silent > 0 ? node->silent / 1e9 : 0,
			      "reserved", (json_int_t)node->reserved, "self", node->self));
	}
	evbuffer_add_printf(out, "]}}\n");
	return true;
}

/* Each is called again and again until it says that it is done. */
static bool (*const stages[])(void) = {
	find_schedules, ask_database, take_database, find_tubes, add_server, add_lateness,
	begin_tubes, add_tube, begin_schedules, add_schedule, add_nodes,
};

/* Answers */

static void give(struct evhttp_request *request)
{
	struct evbuffer *copy = must(evbuffer_new());

	evbuffer_add(copy, evbuffer_pullup(made, -1), evbuffer_get_length(made));
	evhttp_send_reply(request, HTTP_OK, "OK", copy);
	evbuffer_free(copy);
}

static void end_making(void)
{
	int64_t now = commit_now(), fresh = away ? 0 : 10 * (now - began);
	struct reader *reader;

	if (made)
		evbuffer_free(made);
	made = out;
	out = NULL;
	making = false;
	fresh = fresh < FRESH_MOST ? fresh : FRESH_MOST;
	fresh_until = now + (fresh > FRESH ? fresh : FRESH);
	while (schedule_total)
		schedule_release(schedules[--schedule_total]);
	while ((reader = readers)) {
		DL_DELETE(readers, reader);
		evhttp_connection_set_closecb(evhttp_request_get_connection(reader->request), NULL,
					      NULL);
		give(reader->request);
		free(reader);
	}
}

/* The next step. By a timer, as it is after what clients have sent meanwhile. */
static void go_on(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now;
	int64_t until = commit_now() + STEP;

	(void)fd;
	(void)what;
	(void)arg;
	if (waiting)
		away = watching || watch.failed;
	waiting = false;
	while (stage < ARRAY_SIZE(stages) && !waiting && commit_now() < until)
		stage += stages[stage]();
	if (stage == ARRAY_SIZE(stages))
		end_making();
	else if (!waiting)
		event_add(turn, &now);
}

static void begin(void)
{
	out = must(evbuffer_new());
	making = true;
	began = commit_now();
	stage = 0;
	schedule_at = schedule_hold(schedule_first());
	schedules_all = 0;
	schedules_paused = 0;
	tube_at = 0;
	tube_count = 0;
	tubes_all = 0;
	go_on(-1, 0, NULL);
}

static void lost(struct evhttp_connection *connection, void *arg)
{
	struct reader *reader = arg;

	(void)connection;
	http_lost(reader->request);
	DL_DELETE(readers, reader);
	free(reader);
}

/** status_answer - answer a request for what the page shows */
void status_answer(struct evhttp_request *request)
{
	struct reader *reader;

	if (made && commit_now() < fresh_until) {
		give(request);
		return;
	}
	reader = zalloc(sizeof(*reader));
	reader->request = request;
	DL_APPEND(readers, reader);
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), lost, reader);
	if (!making)
		begin();
}

/** status_start - be ready for those who look */
void status_start(struct event_base *base)
{
	turn = must(evtimer_new(base, go_on, NULL));
}
