// SPDX-License-Identifier: GPL-2.0
/*
 * What a page for browsers shows of the server, as JSON.
 *
 * It is one snapshot, a second old at most, so that any number of those who look costs the same.
 * It is made in steps, between which clients are served: a hundred tubes and schedules at most are
 * in it, but of a hundred thousand it has to be found which ones. What the store knows is of three
 * parts, which are asked for when they may be, and waited for a little: each is told as it is known
 * by then, and of when that is.
 */
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "cron/tabs_reader.h"
#include "jobs/command.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/stats.h"
#include "store/postgres_ask.h"
#include "store/postgres_watch.h"
#include "web/json.h"
#include "web/status.h"
#include "when/calendar.h"

#define SHOWN WATCH_MOST
/* Steps take so long, before clients have their turn */
#define TURN (MILLISECOND / 4)
/* Tubes that one step looks at */
#define TUBES_PIECE 100
/* What was made is good for so long, or for ten times what it took to make it, and no longer */
#define FRESH SECOND
#define FRESH_MOST (30 * SECOND)
/* So long the store is waited for; what comes later is told to those who ask next */
#define PATIENCE (2 * SECOND)

/* Who waits for what is being made; ask->more */
struct reader {
	struct ask *ask;
	void (*give)(struct ask *ask);
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
static json_t *made, *root;		/* the last one, and the one that is being made */
static char *text;			/* of the last one */
static int64_t fresh_until;

/* What is being made */
static int64_t began, asked_at;		/* asked_at: when the store was; 0: not yet */
static struct tube_line tubes[SHOWN];
static size_t tube_count, tubes_all, tubes_left, fewest;
static int64_t reserved;
static struct schedule *schedule_at, *schedules[SHOWN];	/* these are held */
static size_t shown, schedules_all, schedules_paused, latest;
static size_t row;			/* that is written next */

/* What the store is asked for, and has told last; all but the first of a shared one alone */
enum { RUNS, TUBES, NODES, PARTS };

static struct part {
	bool asked;		/* it is under way */
	bool failed;		/* the last time */
	int64_t since;		/* when it was asked */
	int64_t next;		/* when it may be asked again */
	int64_t known, asks;	/* by the wall clock: of when is what is known; of when the next */
} parts[PARTS];

static struct runs_asked *known_runs;	/* with the schedules of which that is known */
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
	for (size_t i = 1; i < shown; i++)
		if (next_of(schedules[i]) > next_of(schedules[latest]))
			latest = i;
}

static void take_schedule(struct schedule *schedule)
{
	schedules_all++;
	schedules_paused += schedule_is_paused(schedule);
	if (shown < SHOWN) {
		schedules[shown++] = schedule_hold(schedule);
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

/* The store */

static int64_t lasting(int64_t took)
{
	int64_t fresh = 10 * took < FRESH_MOST ? 10 * took : FRESH_MOST;

	return fresh > FRESH ? fresh : FRESH;
}

/* Does what is being made wait for the store? */
static bool waits(void)
{
	if (!asked_at || root || commit_now() - asked_at >= PATIENCE)
		return false;
	for (size_t i = 0; i < PARTS; i++)
		if (parts[i].asked && parts[i].since >= asked_at)
			return true;
	return false;
}

/* Gives whether there is something new. */
static bool told(struct part *part, const struct op *op)
{
	static const struct timeval at_once;
	int64_t now = commit_now();

	part->asked = false;
	part->failed = op->failed;
	part->next = now + lasting(now - part->since);
	if (!op->failed)
		part->known = part->asks;
	if (began && !waits())
		event_add(turn, &at_once);
	return !op->failed;
}

/* What was told is freed by the committer's loop, but for the runs. */
static void told_runs(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op), *copy;
	size_t size = sizeof(*asked) + asked->count * sizeof(*asked->schedules);

	if (!told(&parts[RUNS], op)) {
		free(asked->runs);
		return;
	}
	if (known_runs)
		free(known_runs->runs);
	free(known_runs);
	copy = must(malloc(size));
	memcpy(copy, asked, size);
	known_runs = copy;
}

static struct op *ask_runs(void)
{
	struct runs_asked *asked = zalloc(sizeof(*asked) +
					  shown * sizeof(*asked->schedules));

	asked->most = 1;
	for (; asked->count < shown; asked->count++)
		asked->schedules[asked->count] = schedules[asked->count]->id;
	return &asked->op;
}

static void told_tubes(struct op *op)
{
	if (told(&parts[TUBES], op))
		known_tubes = *container_of(op, struct tubes_asked, op);
}

static struct op *ask_tubes(void)
{
	return zalloc(sizeof(struct tubes_asked));
}

static void told_nodes(struct op *op)
{
	if (told(&parts[NODES], op))
		known_nodes = *container_of(op, struct nodes_asked, op);
}

static struct op *ask_nodes(void)
{
	return zalloc(sizeof(struct nodes_asked));
}

/* A store of this server's alone answers at once. */
static void ask_store(void)
{
	static const struct {
		enum op_kind kind;
		struct op *(*new)(void);
		void (*done)(struct op *op);
	} questions[PARTS] = {
		{ OP_RUNS, ask_runs, told_runs }, { OP_TUBES, ask_tubes, told_tubes },
		{ OP_NODES, ask_nodes, told_nodes },
	};
	int64_t now = commit_now();

	asked_at = now;
	for (size_t i = 0; i < (engine->counts_in_store ? PARTS : TUBES); i++) {
		struct part *part = &parts[i];
		struct op *op;

		if (part->asked || now < part->next)
			continue;
		part->asked = true;
		part->since = now;
		part->asks = alarm_wall();
		op = questions[i].new();
		op->kind = questions[i].kind;
		op->done = questions[i].done;
		if (i == RUNS)
			store->runs(container_of(op, struct runs_asked, op));
		else
			pg_ask(op);
	}
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
static void take_own_tubes(void)
{
	struct tube **list = tube_list(&tubes_all);

	if (tubes_left > tubes_all)
		tubes_left = tubes_all;
	for (int i = 0; tubes_left && i < TUBES_PIECE; i++) {
		const struct tube *tube = list[--tubes_left];

		reserved += tube->count[RESERVED];
		take_tube(tube->name, tube->count, tube_paused(tube));
	}
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

/* What is written */

static json_t *counts_of(const struct histogram *histogram)
{
	json_t *counts = must(json_array());

	for (int i = 0; i <= HISTOGRAM_BUCKETS; i++)
		json_array_append_new(counts, json_integer(histogram->counts[i]));
	return counts;
}

static json_t *lateness(void)
{
	struct histogram times = commit_times();
	json_t *bounds = must(json_array());

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		json_array_append_new(bounds, json_real(histogram_bounds[i]));
	return json_pack("{s:o, s:o, s:o, s:o}", "bounds", bounds,
			 "jobs", counts_of(engine->lateness()),
			 "schedules", counts_of(schedule_lateness()),
			 "commits", counts_of(&times));
}

static json_t *server(void)
{
	return json_pack("{s:o, s:o, s:s, s:f, s:s, s:f, s:b, s:i, s:i, s:i, s:I, s:I}",
			 "name", json_of_text(store_node), "site", json_of_text(store_site),
			 "version", TWHEELD_VERSION,
			 "uptime", (alarm_now() - stats_started()) / 1e9, "store", engine->store,
			 "waits", commit_waits() / 1e9, "draining", command_draining(),
			 "connections", (int)conn_counts.now,
			 "workers", (int)conn_counts.workers,
			 "waiting", (int)conn_counts.waiting, "puts", (json_int_t)job_puts(),
			 "timeouts", (json_int_t)job_timeouts());
}

/* What is of this server's memory is of now. */
static json_t *list_of(size_t all, const struct part *part)
{
	bool asked = engine->counts_in_store || part == &parts[RUNS];
	int64_t at = asked ? part->known : alarm_wall();

	return json_pack("{s:I, s:b, s:I, s:[]}", "at", (json_int_t)(at / MILLISECOND),
			 "failed", part->failed, "all", (json_int_t)all, "shown");
}

static void add(const char *list, json_t *json)
{
	json_array_append_new(json_object_get(json_object_get(root, list), "shown"), must(json));
}

/* What clients did is known of this server's alone. */
static void add_tube(const struct tube_line *line)
{
	const struct tube *tube = tube_find(line->name);

	add("tubes", json_of_tube(line->name, line->count, tube ? tube->total : 0,
				  tube ? tube->deletes : 0, tube ? tube->waiting_count : 0,
				  line->paused));
}

/* Of one that came since the store was asked, nothing is known: it may have run. */
static json_t *last_run(const struct schedule *schedule)
{
	const struct runs_asked *known = known_runs;

	for (size_t i = 0; known && i < known->found; i++)
		if (known->runs[i].schedule == schedule->id)
			return json_of_run(&known->runs[i]);
	for (size_t i = 0; known && i < known->count; i++)
		if (known->schedules[i] == schedule->id)
			return json_null();
	return NULL;
}

/* Since it was found, it may have gone. */
static void add_schedule(const struct schedule *schedule)
{
	json_t *last = last_run(schedule), *json;

	if (!schedule->definition) {
		json_decref(last);
		return;
	}
	json = json_of_schedule(schedule, last ? last : json_null());
	if (!last)
		json_object_del(json, "last");
	add("schedules", json);
}

static void add_node(const char *name, const char *site, const struct watch_node *node)
{
	add("nodes", json_pack("{s:o, s:o, s:I, s:f, s:I, s:b}", "name", json_of_text(name),
			       "site", json_of_text(site), "session", (json_int_t)node->session,
			       "silent", node->silent > 0 ? node->silent / 1e9 : 0,
			       "reserved", (json_int_t)node->reserved, "self", node->self));
}

/* Times are by the wall clock, which is the database's where there is one. */
static void begin_root(void)
{
	struct watch_node self = { .reserved = reserved, .self = true };
	bool shared = engine->counts_in_store;
	json_t *scheduled;

	if (shared)
		find_shared_tubes();
	scheduled = must(list_of(schedules_all, &parts[RUNS]));
	json_object_set_new(scheduled, "paused", json_integer(schedules_paused));
	json_object_set_new(scheduled, "wrong", json_integer(tabs_reader_wrong()));
	root = must(json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}",
			      "now", (json_int_t)(alarm_wall() / MILLISECOND), "server", server(),
			      "lateness", lateness(), "tubes", list_of(tubes_all, &parts[TUBES]),
			      "schedules", scheduled,
			      "nodes", list_of(shared ? known_nodes.all : 1, &parts[NODES])));
	for (size_t i = 0; shared && i < known_nodes.count; i++)
		add_node(known_nodes.nodes[i].name, known_nodes.nodes[i].site,
			 &known_nodes.nodes[i]);
	if (!shared)
		add_node(store_node, store_site, &self);
	row = 0;
}

/* Answers */

static void give(struct ask *ask)
{
	struct evbuffer *out = must(evbuffer_new());

	evbuffer_add(out, text, strlen(text));
	http_text(ask, out);
	evbuffer_free(out);
}

static void end_making(void)
{
	struct reader *reader;
	int64_t now;

	json_decref(made);
	made = root;
	root = NULL;
	free(text);
	text = must(json_dumps(made, JSON_COMPACT | JSON_REAL_PRECISION(9)));
	now = commit_now();
	fresh_until = now + lasting(now - began);
	began = 0;
	while (shown)
		schedule_release(schedules[--shown]);
	while ((reader = readers)) {
		DL_DELETE(readers, reader);
		reader->give(reader->ask);
	}
}

/* Gives false when there is nothing left to do but the end. */
static bool step(void)
{
	struct schedule *one = schedule_at;

	if (one) {
		if (one->definition)
			take_schedule(one);
		schedule_at = schedule_hold(one->hash.next);
		schedule_release(one);
	} else if (tubes_left) {
		take_own_tubes();
	} else if (!asked_at) {
		qsort(schedules, shown, sizeof(*schedules), compare_schedules);
		ask_store();
	} else if (!root) {
		/* To wait was no work. */
		began += commit_now() - asked_at;
		begin_root();
	} else if (row < tube_count) {
		add_tube(&tubes[row++]);
	} else if (row < tube_count + shown) {
		add_schedule(schedules[row++ - tube_count]);
	} else {
		return false;
	}
	return true;
}

/* The next steps. By a timer, as they are after what clients have sent meanwhile. */
static void go_on(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now, patience = { PATIENCE / SECOND, 0 };
	int64_t until = commit_now() + TURN;

	(void)fd;
	(void)what;
	(void)arg;
	while (began && step()) {
		if (waits() || commit_now() >= until) {
			event_add(turn, waits() ? &patience : &now);
			return;
		}
	}
	if (began)
		end_making();
}

static void begin(void)
{
	began = commit_now();
	asked_at = 0;
	schedule_at = schedule_hold(schedule_first());
	schedules_all = 0;
	schedules_paused = 0;
	tube_count = 0;
	reserved = 0;
	tubes_left = engine->counts_in_store ? 0 : SIZE_MAX;
	go_on(-1, 0, NULL);
}

static void lost(struct ask *ask)
{
	struct reader *reader = ask->more;

	DL_DELETE(readers, reader);
	http_end(ask);
}

static void answer(struct ask *ask, void (*how)(struct ask *ask))
{
	struct reader *reader;

	if (made && commit_now() < fresh_until) {
		how(ask);
		return;
	}
	reader = zalloc(sizeof(*reader));
	ask->more = reader;
	reader->ask = ask;
	reader->give = how;
	ask->go_on = lost;
	DL_APPEND(readers, reader);
	if (!began)
		begin();
}

/** status_answer - answer with what the page shows */
void status_answer(struct ask *ask)
{
	answer(ask, give);
}

/* Which there are is known by the store, and is not told as it was, as the page does. */
static void give_servers(struct ask *ask)
{
	const json_t *nodes = json_object_get(made, "nodes");

	if (json_is_true(json_object_get(nodes, "failed")) ||
	    !json_integer_value(json_object_get(nodes, "at")))
		http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be read");
	else
		http_json(ask, HTTP_OK, json_pack("{s:O}", "servers",
						  json_object_get(nodes, "shown")));
}

/** status_servers - answer with the servers that there are */
void status_servers(struct ask *ask)
{
	answer(ask, give_servers);
}

/** status_start - be ready for those who look */
void status_start(struct event_base *base)
{
	turn = must(evtimer_new(base, go_on, NULL));
}
