// SPDX-License-Identifier: GPL-2.0
/*
 * What a page for browsers shows of the server, as JSON.
 *
 * All pages get one snapshot, a second old at most, so that a hundred of them cost as much as one.
 * It shows a hundred tubes and schedules at most; to find these among a hundred thousand takes
 * steps, between which clients are served. The store has three parts of it, and is waited for a
 * little: each part is shown as it is known by then, with the time from when it is.
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
#include "web/how.h"
#include "web/json.h"
#include "web/status.h"
#include "when/calendar.h"

#define SHOWN WATCH_MOST
/* How long steps go on before clients have their turn */
#define TURN (MILLISECOND / 4)
/* No tube has so many jobs. */
#define MANY (1LL << 50)
/* Tubes that one step looks at */
#define TUBES_PIECE 100
/* For how long a snapshot is shown, or for ten times what it took to make it */
#define FRESH SECOND
#define FRESH_MOST (30 * SECOND)
/* How long a snapshot waits for the store; what comes later is in the next one */
#define PATIENCE (2 * SECOND)
/* Schedules in a question about last runs: to a folder, as many as a step; to a database */
#define RUNS_PIECE 64
#define RUNS_MOST 1000

/* A request that waits for the next snapshot; ask->more */
struct waiter {
	struct ask *ask;
	void (*give)(struct ask *ask);
	struct waiter *prev, *next;
};

struct tube_line {
	char name[TUBE_NAME_MAX + 1];
	int64_t count[STATES];
	bool paused;
	int64_t jobs;
};

static struct event *turn, *runs_turn;
static struct schedule *runs_next;	/* first of the next question; held */
static struct waiter *waiters;
static json_t *made, *root;		/* the last snapshot, and the next one */
static char *text;			/* the last snapshot's */
static int64_t fresh_until;

/* The next snapshot, while it is being made */
static int64_t began, asked_at;		/* asked_at: when the store was asked; 0: not yet */
static struct tube_line tubes[SHOWN];
static size_t tube_count, tubes_all, tubes_left, fewest;
static int64_t reserved;
static struct schedule *schedule_at, *schedules[SHOWN];	/* these are held */
static size_t shown, schedules_all, schedules_paused, latest;
static size_t row;			/* to be written next */

/* The parts that the store is asked for, and its last answers; TUBES, NODES: a shared store's */
enum { RUNS, TUBES, NODES, PARTS };

static struct part {
	bool asked;		/* a request is under way */
	bool failed;		/* the last time */
	int64_t since;		/* when it was asked */
	int64_t next;		/* when it may be asked again */
	int64_t known, asks;	/* wall clock: from when the last answer is, and the next */
} parts[PARTS];

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
static bool waits_for_store(void)
{
	if (!asked_at || root || commit_now() - asked_at >= PATIENCE)
		return false;
	for (size_t i = 0; i < PARTS; i++)
		if (parts[i].asked && parts[i].since >= asked_at)
			return true;
	return false;
}

/* Take the store's answer for a part; false: it failed, and the last one stays. */
static bool answered(struct part *part, bool failed)
{
	static const struct timeval at_once;
	int64_t now = commit_now();

	part->asked = false;
	part->failed = failed;
	part->next = now + lasting(now - part->since);
	if (!failed)
		part->known = part->asks;
	if (began && !waits_for_store())
		event_add(turn, &at_once);
	return !failed;
}

/* The schedules of the question are held. The next ones have another turn. */
static void got_runs(struct op *op)
{
	static const struct timeval at_once;
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct schedule **schedules = asked->arg;

	if (!op->failed)
		how_take(schedules, asked);
	for (size_t i = 0; i < asked->count; i++)
		schedule_release(schedules[i]);
	free(schedules);
	free(asked->runs);
	if (runs_next && !op->failed) {
		event_add(runs_turn, &at_once);
		return;
	}
	schedule_release(runs_next);
	runs_next = NULL;
	answered(&parts[RUNS], op->failed);
}

static void ask_runs(evutil_socket_t fd, short what, void *arg)
{
	size_t most = engine->counts_in_store ? RUNS_MOST : RUNS_PIECE;
	struct runs_asked *asked = zalloc(sizeof(*asked) + most * sizeof(*asked->schedules));
	struct schedule *first = runs_next, *one = first;
	struct schedule **schedules = must(calloc(most, sizeof(*schedules)));

	for (; one && asked->count < most; one = one->hash.next) {
		asked->schedules[asked->count] = one->id;
		schedules[asked->count++] = schedule_hold(one);
	}
	runs_next = schedule_hold(one);
	schedule_release(first);
	asked->op.kind = OP_RUNS;
	asked->op.done = got_runs;
	asked->arg = schedules;
	store->runs(asked);
}

static void got_tubes(struct op *op)
{
	if (answered(&parts[TUBES], op->failed))
		known_tubes = *container_of(op, struct tubes_asked, op);
}

static struct op *ask_tubes(void)
{
	return zalloc(sizeof(struct tubes_asked));
}

static void got_nodes(struct op *op)
{
	if (answered(&parts[NODES], op->failed))
		known_nodes = *container_of(op, struct nodes_asked, op);
}

static struct op *ask_nodes(void)
{
	return zalloc(sizeof(struct nodes_asked));
}

/* A store that no other server shares answers at once. */
static void ask_store(void)
{
	static const struct {
		enum op_kind kind;
		struct op *(*new)(void);
		void (*done)(struct op *op);
	} questions[PARTS] = {
		[TUBES] = { OP_TUBES, ask_tubes, got_tubes },
		[NODES] = { OP_NODES, ask_nodes, got_nodes },
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
		if (i == RUNS) {
			runs_next = schedule_hold(schedule_first());
			ask_runs(-1, 0, NULL);
			continue;
		}
		op = questions[i].new();
		op->kind = questions[i].kind;
		op->done = questions[i].done;
		pg_ask(op);
	}
}

/* Tubes: those with buried jobs or dead letters, and those with most */

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

static void take_tube_counts(const char *name, const int64_t *count, bool paused)
{
	struct tube_line *to;
	int64_t jobs = 0;

	for (int state = 0; state < STATES; state++)
		jobs += count[state];
	if (count[BURIED] || settings_is_dead_letter(name))
		jobs += MANY;
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
 * Look at a piece of the list, which changes between steps, from its end: where a tube goes, the
 * last one takes its place, and is looked at twice at worst. A new tube is in the next snapshot.
 */
static void take_own_tubes(void)
{
	struct tube **list = tube_list(&tubes_all);

	if (tubes_left > tubes_all)
		tubes_left = tubes_all;
	for (int i = 0; tubes_left && i < TUBES_PIECE; i++) {
		const struct tube *tube = list[--tubes_left];

		reserved += tube->count[RESERVED];
		take_tube_counts(tube->name, tube->count, tube_paused(tube));
	}
}

/* This server's tubes without jobs come after the others. */
static void find_shared_tubes(void)
{
	static const int64_t none[STATES];
	size_t count, elsewhere = 0;
	struct tube **list = tube_list(&count);

	for (size_t i = 0; i < known_tubes.count; i++) {
		const struct watch_tube *tube = &known_tubes.tubes[i];

		take_tube_counts(tube->name, tube->count, tube->paused);
		elsewhere += !tube_find(tube->name);
	}
	for (size_t i = 0; parts[TUBES].known && tube_count < SHOWN && i < count; i++)
		if (!line_of(list[i]->name))
			take_tube_counts(list[i]->name, none, tube_paused(list[i]));
	tubes_all = count + elsewhere;
	if (tubes_all < (size_t)known_tubes.all)
		tubes_all = known_tubes.all;
}

/* The snapshot as JSON */

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

/* A list from this server's memory is as of now, one from the store as of its last answer. */
static json_t *list_of(size_t all, const struct part *part)
{
	bool asked = engine->counts_in_store || part == &parts[RUNS];
	int64_t at = asked ? part->known : alarm_wall();

	return json_pack("{s:I, s:b, s:I, s:[]}", "at", (json_int_t)(at / MILLISECOND),
			 "failed", part->failed, "all", (json_int_t)all, "shown");
}

static void add_list(const char *list, json_t *json)
{
	json_array_append_new(json_object_get(json_object_get(root, list), "shown"), must(json));
}

/* Clients of other servers are not counted here. */
static void add_tube(const struct tube_line *line)
{
	const struct tube *tube = tube_find(line->name);

	add_list("tubes", json_of_tube(line->name, line->count, tube ? tube->total : 0,
				       tube ? tube->deletes : 0, tube ? tube->waiting_count : 0,
				       line->paused));
}

/* The schedule may have gone since it was found. */
static void add_schedule(const struct schedule *schedule)
{
	if (schedule->definition)
		add_list("schedules", json_of_schedule(schedule));
}

static void add_node(const char *name, const char *site, const struct watch_node *node)
{
	add_list("nodes", json_pack("{s:o, s:o, s:I, s:f, s:I, s:b}", "name", json_of_text(name),
				    "site", json_of_text(site),
				    "session", (json_int_t)node->session,
				    "silent", node->silent > 0 ? node->silent / 1e9 : 0,
				    "reserved", (json_int_t)node->reserved, "self", node->self));
}

/* Times are the wall clock's: the database's clock where there is one. */
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
	http_text(ask, HTTP_OK, out);
	evbuffer_free(out);
}

static void end_making(void)
{
	struct waiter *waiter;
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
	while ((waiter = waiters)) {
		DL_DELETE(waiters, waiter);
		waiter->give(waiter->ask);
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
		/* The wait for the store does not count as work. */
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

/* Do the next steps, by a timer, so that clients have their turn before. */
static void go_on(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now, patience = { PATIENCE / SECOND, 0 };
	int64_t until = commit_now() + TURN;

	while (began && step()) {
		if (waits_for_store() || commit_now() >= until) {
			event_add(turn, waits_for_store() ? &patience : &now);
			return;
		}
	}
	if (began)
		end_making();
}

static void begin_making(void)
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
	struct waiter *waiter = ask->more;

	DL_DELETE(waiters, waiter);
	http_end(ask);
}

/** status_wait - answer when all is known as it is now; the request's more is freed then */
void status_wait(struct ask *ask, void (*how)(struct ask *ask))
{
	struct waiter *waiter;

	if (made && commit_now() < fresh_until) {
		how(ask);
		return;
	}
	waiter = zalloc(sizeof(*waiter));
	ask->more = waiter;
	waiter->ask = ask;
	waiter->give = how;
	ask->go_on = lost;
	DL_APPEND(waiters, waiter);
	if (!began)
		begin_making();
}

/** status_made - what is known, in the function that status_wait() calls */
const json_t *status_made(void)
{
	return made;
}

/** status_answer - answer with what the page shows */
void status_answer(struct ask *ask)
{
	status_wait(ask, give);
}

/* Servers as the store knows them now, not as an older snapshot for the page had them */
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
	status_wait(ask, give_servers);
}

/** status_start - be ready to answer pages */
void status_start(struct event_base *base)
{
	turn = must(evtimer_new(base, go_on, NULL));
	runs_turn = must(evtimer_new(base, ask_runs, NULL));
}
