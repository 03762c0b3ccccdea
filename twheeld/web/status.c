// SPDX-License-Identifier: GPL-2.0
/*
 * What a page for browsers shows of the server, as JSON.
 *
 * All who ask within a second have the same, so that any number of them costs the same. It is
 * made in steps, between which clients are served: a hundred tubes and schedules at most are in
 * it, but of a hundred thousand it has to be found which ones. What the store knows is of three
 * parts, each of which has its time: where one is late or fails, what was known of it before is
 * told, and of when that is.
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "cron/tabs_reader.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/command.h"
#include "jobs/stats.h"
#include "store/postgres_ask.h"
#include "store/postgres_watch.h"
#include "web/http.h"
#include "web/json.h"
#include "web/status.h"
#include "when/calendar.h"

#define SHOWN WATCH_MOST
/* A step takes so long */
#define STEP (MILLISECOND / 4)
/* Tubes that are looked at before the time is */
#define TUBES_PIECE 100
/* What was made is good for so long, or for ten times what it took to make it, and no longer */
#define FRESH SECOND
#define FRESH_MOST (30 * SECOND)
/* So long the store is waited for, in seconds; what comes later is told to those who ask next */
#define PATIENCE 2

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
static bool making, waiting;		/* waiting: for the store */
static int64_t began, waits_since;
static struct tube_line tubes[SHOWN];
static size_t tube_count, tubes_all, tubes_left, fewest;
static struct schedule *schedule_at, *schedules[SHOWN];	/* these are held */
static size_t schedule_total, schedules_all, schedules_paused, latest;
static size_t line;			/* that is written next */

/* What the store is asked for, and has told last; all but the first of a shared one alone */
enum { RUNS, TUBES, NODES, PARTS };

static struct part {
	bool asked;		/* it is under way */
	bool awaited;		/* for what is being made */
	bool failed;		/* the last time */
	int64_t since;		/* when it was asked */
	int64_t next;		/* when it may be asked again */
	int64_t known, asks;	/* by the wall clock: of when is what is known; of when the next */
} parts[PARTS];

static struct run_row runs[SHOWN];
static size_t run_count;
static int64_t known_ids[SHOWN];	/* schedules of which the store has told the last run */
static size_t known_count;
static struct tubes_asked known_tubes;
static struct nodes_asked known_nodes;

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
	schedules_paused += schedule_is_paused(schedule);
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

/* The store */

static int64_t lasting(int64_t took)
{
	int64_t fresh = 10 * took < FRESH_MOST ? 10 * took : FRESH_MOST;

	return fresh > FRESH ? fresh : FRESH;
}

static void wait_no_more(void)
{
	static const struct timeval now;

	for (size_t i = 0; i < PARTS; i++)
		if (parts[i].awaited)
			return;
	if (waiting)
		event_add(turn, &now);
}

/* Gives whether there is something new. */
static bool told(struct part *part, const struct op *op)
{
	int64_t now = commit_now();

	part->asked = false;
	part->awaited = false;
	part->failed = op->failed;
	part->next = now + lasting(now - part->since);
	if (!op->failed)
		part->known = part->asks;
	wait_no_more();
	return !op->failed;
}

static void told_runs(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);

	if (told(&parts[RUNS], op)) {
		for (run_count = 0; run_count < asked->found; run_count++)
			runs[run_count] = asked->runs[run_count];
		known_count = asked->count;
		memcpy(known_ids, asked->schedules, known_count * sizeof(*known_ids));
	}
	free(asked->runs);
}

static void ask_runs(void)
{
	struct runs_asked *asked = zalloc(sizeof(*asked) +
					  schedule_total * sizeof(*asked->schedules));

	asked->op.kind = OP_RUNS;
	asked->op.done = told_runs;
	asked->most = 1;
	for (; asked->count < schedule_total; asked->count++)
		asked->schedules[asked->count] = schedules[asked->count]->id;
	store->runs(asked);
}

static void told_tubes(struct op *op)
{
	if (told(&parts[TUBES], op))
		known_tubes = *container_of(op, struct tubes_asked, op);
}

static void ask_tubes(void)
{
	struct tubes_asked *asked = zalloc(sizeof(*asked));

	asked->op.kind = OP_TUBES;
	asked->op.done = told_tubes;
	pg_ask(&asked->op);
}

static void told_nodes(struct op *op)
{
	if (told(&parts[NODES], op))
		known_nodes = *container_of(op, struct nodes_asked, op);
}

static void ask_nodes(void)
{
	struct nodes_asked *asked = zalloc(sizeof(*asked));

	asked->op.kind = OP_NODES;
	asked->op.done = told_nodes;
	pg_ask(&asked->op);
}

/* A store of this server's alone answers at once. */
static bool ask_store(void)
{
	static void (*const ask[PARTS])(void) = { ask_runs, ask_tubes, ask_nodes };
	static const struct timeval patience = { PATIENCE, 0 };

	waits_since = commit_now();
	for (size_t i = 0; i < (engine->counts_in_store ? PARTS : TUBES); i++) {
		struct part *part = &parts[i];

		if (part->asked || waits_since < part->next)
			continue;
		part->asked = true;
		part->awaited = true;
		part->since = waits_since;
		part->asks = alarm_wall();
		ask[i]();
		waiting = waiting || part->awaited;
	}
	if (waiting)
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
	if (tube_count == SHOWN && jobs <= tubes[fewest].jobs)
		return;
	to = line_of(name);
	if (!to)
		to = &tubes[tube_count < SHOWN ? tube_count++ : fewest];
	strcpy(to->name, name);
	memcpy(to->count, count, sizeof(to->count));
	to->paused = paused;
	to->jobs = jobs;
	find_fewest();
}

/*
 * A piece of the list, which changes between steps. From its end: what takes the place of a tube
 * that goes was the last, and is looked at twice at worst. Those that come are not missed for long.
 */
static bool find_own_tubes(void)
{
	struct tube **list;

	if (engine->counts_in_store)
		return true;
	list = tube_list(&tubes_all);
	if (tubes_left > tubes_all)
		tubes_left = tubes_all;
	for (int i = 0; tubes_left && i < TUBES_PIECE; i++) {
		const struct tube *tube = list[--tubes_left];

		take_tube(tube->name, tube->count, tube_paused(tube));
	}
	return !tubes_left;
}

/* Those of this server that have no jobs come after the others. */
static void find_shared_tubes(void)
{
	static const int64_t none[STATES];
	size_t count, elsewhere = 0;
	struct tube **list = tube_list(&count);

	for (size_t i = 0; i < known_tubes.count; i++) {
		const struct watch_tube *tube = &known_tubes.tubes[i];

		take_tube(tube->name, tube->count, tube->paused);
		elsewhere += !tube_find(tube->name);
	}
	for (size_t i = 0; parts[TUBES].known && tube_count < SHOWN && i < count; i++)
		if (!line_of(list[i]->name))
			take_tube(list[i]->name, none, tube_paused(list[i]));
	tubes_all = count + elsewhere;
	if (tubes_all < (size_t)known_tubes.all)
		tubes_all = known_tubes.all;
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
	add_histogram("jobs", engine->lateness());
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
	add(json_pack("{s:o, s:o, s:s, s:f, s:s, s:f, s:b, s:i, s:i, s:i, s:I, s:I}",
		      "name", json_of_text(store_node), "site", json_of_text(store_site),
		      "version", TWHEELD_VERSION,
		      "uptime", (alarm_now() - stats_started()) / 1e9,
		      "store", engine->store,
		      "waits", commit_waits() / 1e9, "draining", command_draining(),
		      "connections", (int)conn_counts.now, "workers", (int)conn_counts.workers,
		      "waiting", (int)conn_counts.waiting, "puts", (json_int_t)job_puts(),
		      "timeouts", (json_int_t)job_timeouts()));
	return true;
}

/* What is of this server's memory is of now. */
static void begin_list(const char *name, size_t all, const struct part *part)
{
	bool asked = engine->counts_in_store || part == &parts[RUNS];
	int64_t at = asked ? part->known : alarm_wall();

	add_name(name);
	evbuffer_add_printf(out, "{\"at\":%lld,\"failed\":%s,\"all\":%zu,\"shown\":[",
			    (long long)(at / MILLISECOND), part->failed ? "true" : "false", all);
	line = 0;
}

static bool begin_tubes(void)
{
	if (engine->counts_in_store)
		find_shared_tubes();
	begin_list("tubes", tubes_all, &parts[TUBES]);
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
	add(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b}",
		      "name", json_of_text(at->name),
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
	begin_list("schedules", schedules_all, &parts[RUNS]);
	return true;
}

static json_t *last_run(const struct schedule *schedule)
{
	for (size_t i = 0; i < run_count; i++)
		if (runs[i].schedule == schedule->id)
			return json_of_run(&runs[i]);
	return json_null();
}

/* One that came since the store was asked may have run. */
static bool is_known(const struct schedule *schedule)
{
	for (size_t i = 0; i < known_count; i++)
		if (known_ids[i] == schedule->id)
			return true;
	return false;
}

static json_t *shown_schedule(const struct schedule *schedule)
{
	json_t *shown = json_of_schedule(schedule, last_run(schedule));

	if (!is_known(schedule))
		json_object_del(shown, "last");
	return shown;
}

/* Since it was found, it may have gone. */
static bool add_schedule(void)
{
	static bool any;
	const struct schedule *schedule;

	if (line == schedule_total) {
		evbuffer_add_printf(out, "],\"paused\":%zu,\"wrong\":%zu}", schedules_paused,
				    (size_t)tabs_reader_wrong());
		return true;
	}
	schedule = schedules[line];
	any = any && line;
	if (schedule->definition) {
		evbuffer_add_printf(out, "%s", any ? "," : "");
		add(shown_schedule(schedule));
		any = true;
	}
	line++;
	return false;
}

static bool add_nodes(void)
{
	begin_list("nodes", known_nodes.all, &parts[NODES]);
	for (size_t i = 0; i < known_nodes.count; i++) {
		const struct watch_node *node = &known_nodes.nodes[i];

		evbuffer_add_printf(out, "%s", i ? "," : "");
		add(json_pack("{s:o, s:o, s:I, s:f, s:I, s:b}", "name", json_of_text(node->name),
			      "site", json_of_text(node->site),
			      "session", (json_int_t)node->session,
			      "silent", node->silent > 0 ? node->silent / 1e9 : 0,
			      "reserved", (json_int_t)node->reserved, "self", node->self));
	}
	evbuffer_add_printf(out, "]}}\n");
	return true;
}

/* Each is called again and again until it says that it is done. */
static bool (*const stages[])(void) = {
	find_schedules, ask_store, add_server, add_lateness, find_own_tubes, begin_tubes, add_tube,
	begin_schedules, add_schedule, add_nodes,
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
	int64_t now = commit_now();
	struct reader *reader;

	if (made)
		evbuffer_free(made);
	made = out;
	out = NULL;
	making = false;
	fresh_until = now + lasting(now - began);
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

/* What has not come yet is not waited for, and the time until now was no work. */
static void go_without(void)
{
	for (size_t i = 0; i < PARTS; i++)
		parts[i].awaited = false;
	waiting = false;
	began += commit_now() - waits_since;
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
		go_without();
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
	tube_count = 0;
	tubes_left = SIZE_MAX;
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
