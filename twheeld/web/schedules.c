// SPDX-License-Identifier: GPL-2.0
/*
 * What schedules there are and what they did, and pause, resume, run and backfill.
 *
 * A long list is read from the store and written a piece at a time, and so is a backfill: no
 * request can keep the server busy.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "cron/firing.h"
#include "cron/schedule.h"
#include "cron/tabs_reader.h"
#include "jobs/command.h"
#include "jobs/trace.h"
#include "web/how.h"
#include "web/json.h"
#include "web/schedules.h"
#include "web/traces.h"
#include "when/calendar.h"

/* Schedules a piece of an answer */
#define PIECE 100
#define HISTORY_MOST 1000
#define NEXT_TIMES 5
/* Jobs of a backfill, and of one transaction of it */
#define BACKFILL_MOST 10000
#define BACKFILL_PIECE 200

struct backfill {
	struct ask *ask;
	struct schedule *schedule;	/* it is held */
	int64_t at, to;
	bool begun;
	struct firing_counts counts;
};

/* Requests to the store */
struct list {
	struct schedule *next;		/* after this piece; it is held */
	struct schedule *asked[PIECE];	/* whose runs the store is asked for; they are held */
	size_t asked_count;
	bool any;			/* a schedule is in the answer */
	enum detail detail;		/* how much of each try is wanted */
};

static int64_t history;

static void agree(struct ask *ask)
{
	http_json(ask, HTTP_OK, json_pack("{s:b}", "ok", 1));
}

/* Runs */

static json_t *run_at_length(const struct runs_asked *asked, const struct run_row *run,
			     enum detail detail)
{
	return json_pack("{s:o, s:i, s:I, s:s, s:I, s:o, s:o, s:b, s:o}",
			 "time", json_of_time(run->time),
			 "shard", (int)run->shard,
			 "job", (json_int_t)(run->job > 0 ? run->job : 0),
			 "result", json_of_result(run), "count", (json_int_t)run->count,
			 "created", json_of_time(run->created),
			 "ended", json_of_time(run->result == RUN_OPEN ? 0 : run->ended),
			 "asked", run->time % SECOND != 0,
			 "tries", run->job > 0 ? json_of_traces(asked, run->job, detail) :
			 json_array());
}

static void got_history(struct op *op);

/* Until the store answers, which may take its time, nothing else is done for the request. */
static void ask_for_runs(struct ask *ask, int64_t most, void (*done)(struct op *op))
{
	struct list *list = ask->more;
	struct runs_asked *asked = zalloc(sizeof(*asked) +
					  list->asked_count * sizeof(*asked->schedules));

	asked->op.kind = OP_RUNS;
	asked->op.done = done;
	asked->arg = ask;
	asked->most = most;
	asked->trace = done == got_history;
	asked->notes = list->detail == DETAIL_ALL;
	asked->count = list->asked_count;
	for (size_t i = 0; i < asked->count; i++)
		asked->schedules[i] = list->asked[i]->id;
	store->runs(asked);
}

static void ask_about(struct ask *ask, struct schedule *schedule, int64_t most,
		      enum detail detail, void (*done)(struct op *op))
{
	struct list *list = ask->more = zalloc(sizeof(*list));

	list->detail = detail;
	list->asked[0] = schedule_hold(schedule);
	list->asked_count = 1;
	ask_for_runs(ask, most, done);
}

static void got_runs(struct list *list, struct runs_asked *asked)
{
	runs_free(asked);
	while (list->asked_count)
		schedule_release(list->asked[--list->asked_count]);
}

static void unreadable(struct ask *ask)
{
	http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be read");
}

/* Schedules */

static json_t *next_times(const struct schedule *schedule)
{
	json_t *array = must(json_array());
	int64_t time = schedule->time;

	for (int i = 0; i < NEXT_TIMES && time != CALENDAR_NEVER; i++) {
		json_array_append_new(array, json_of_time(time * SECOND));
		time = schedule_next(schedule, time);
	}
	return array;
}

static json_t *misfire_text(const struct definition *definition)
{
	static const char *const words[] = { [MISFIRE_ONCE] = "once", [MISFIRE_SKIP] = "skip" };

	if (definition->misfire == MISFIRE_ALL)
		return json_sprintf("all:%u", definition->most);
	return json_string(words[definition->misfire]);
}

static json_t *text_or_null(const char *text)
{
	return text ? json_of_text(text) : json_null();
}

static json_t *at_length(const struct schedule *schedule, bool body)
{
	const struct definition *definition = schedule->definition;
	json_t *json = json_of_schedule(schedule), *more;

	more = json_pack("{s:I, s:I, s:I, s:o, s:I, s:I, s:b, s:b, s:o, s:o, s:o, s:I, s:o,"
			 " s:o, s:o, s:o, s:o}",
			 "pri", (json_int_t)definition->pri, "ttr", (json_int_t)definition->ttr,
			 "shards", (json_int_t)definition->shards,
			 "misfire", misfire_text(definition),
			 "misfire_after", (json_int_t)definition->late,
			 "jitter", (json_int_t)definition->jitter,
			 "overlap", definition->overlap == OVERLAP_YES,
			 "waits", definition->overlap == OVERLAP_WAIT,
			 "after", text_or_null(definition->after),
			 "calendar", text_or_null(definition->dates_path),
			 "file", json_of_text(schedule->file),
			 "line", (json_int_t)definition->line, "times", next_times(schedule),
			 "on_failure", text_or_null(definition->tells[NEWS_FAILED]),
			 "on_recovery", text_or_null(definition->tells[NEWS_RECOVERED]),
			 "on_missed", text_or_null(definition->tells[NEWS_MISSED]),
			 "on_late", definition->on_late ? json_integer(definition->on_late) :
			 json_null());
	must(more);
	/* A body may be secret: over TCP, where anybody may look, it is left out. */
	if (body) {
		json_object_set_new(must(json), "body", json_of_text(definition->body));
		json_object_set_new(json, "mailto", text_or_null(definition->mailto));
	}
	json_object_update(must(json), more);
	json_decref(more);
	return json;
}

static void list_on(struct ask *ask);

static void end_list(struct ask *ask)
{
	schedule_release(((struct list *)ask->more)->next);
	http_end(ask);
}

static void schedules_add(struct list *list, struct evbuffer *out, json_t *json)
{
	json_add(out, json, list->any ? "," : "");
	list->any = true;
}

static void end_text(struct evbuffer *out, bool failed)
{
	evbuffer_add_printf(out, "],\"wrong\":%zu", (size_t)tabs_reader_wrong());
	if (*schedule_differs())
		json_add(out, json_of_text(schedule_differs()), ",\"differ\":");
	evbuffer_add_printf(out, "%s}\n", failed ? ",\"error\":\"the store can't be read\"" : "");
}

/* Only the last piece says that the list is whole, or that it can't be. */
static void got_piece(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct ask *ask = asked->arg;
	struct list *list = ask->more;
	struct evbuffer *out;
	bool more = list->next && !op->failed;

	if (op->failed && !ask->chunks) {
		got_runs(list, asked);
		schedule_release(list->next);
		unreadable(ask);
		return;
	}
	out = must(evbuffer_new());
	/*
	 * libevent calls nobody back for an empty piece, and no tab may have this one's schedules
	 * now.
	 */
	evbuffer_add_printf(out, "%s", ask->chunks ? "\n" : "{\"schedules\":[");
	if (!op->failed)
		how_take(list->asked, asked);
	for (size_t i = 0; !op->failed && i < list->asked_count; i++)
		if (list->asked[i]->definition)
			schedules_add(list, out, json_of_schedule(list->asked[i]));
	if (!more)
		end_text(out, op->failed);
	got_runs(list, asked);
	http_piece(ask, out, more ? list_on : end_list);
	evbuffer_free(out);
}

/* The next piece of a list */
static void list_on(struct ask *ask)
{
	struct list *list = ask->more;
	struct schedule *first = list->next, *one = first;

	if (!ask->request) {
		end_list(ask);
		return;
	}
	for (; one && list->asked_count < PIECE; one = one->hash.next)
		if (one->definition)
			list->asked[list->asked_count++] = schedule_hold(one);
	list->next = schedule_hold(one);
	schedule_release(first);
	ask_for_runs(ask, 0, got_piece);
}

/** schedules_list - all, in short */
void schedules_list(struct ask *ask)
{
	struct list *list = ask->more = zalloc(sizeof(*list));

	list->next = schedule_hold(schedule_first());
	list_on(ask);
}

/* The schedule of the path; or NULL, once a request for an unknown one was answered */
static struct schedule *schedules_find(struct ask *ask, bool past)
{
	struct schedule *schedule = schedule_find(ask->name);

	if (schedule && (past || schedule->definition))
		return schedule;
	http_fail(ask, HTTP_NOTFOUND, schedule ? "no file has the schedule '%s' any more" :
		  "there is no schedule '%s'", ask->name);
	return NULL;
}

static void got_one(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct ask *ask = asked->arg;
	struct list *list = ask->more;
	struct schedule *schedule = list->asked[0];
	bool failed = op->failed;
	json_t *json = NULL;

	if (!failed)
		how_take(list->asked, asked);
	if (!failed && schedule->definition)
		json = at_length(schedule, ask->reads);
	got_runs(list, asked);
	if (json)
		http_json(ask, HTTP_OK, json);
	else if (failed)
		unreadable(ask);
	else
		http_fail(ask, HTTP_NOTFOUND, "no file has the schedule any more");
}

/** schedules_one - all of one */
void schedules_one(struct ask *ask)
{
	struct schedule *schedule = schedules_find(ask, false);

	if (schedule)
		ask_about(ask, schedule, 0, DETAIL_TIMES, got_one);
}

static void got_history(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct ask *ask = asked->arg;
	struct list *list = ask->more;
	const struct definition *definition = list->asked[0]->definition;
	json_t *runs = must(json_array()), *json;
	bool failed = op->failed;

	for (size_t i = 0; !failed && i < asked->found; i++)
		json_array_append_new(runs, run_at_length(asked, &asked->runs[i],
							  list->detail));
	json = json_pack("{s:o, s:o, s:o}",
			 "zone", json_of_text(definition ? definition->zone : ""), "runs", runs,
			 "acts", json_of_traces(asked, -list->asked[0]->id, list->detail));
	got_runs(list, asked);
	if (!failed) {
		http_json(ask, HTTP_OK, json);
		return;
	}
	json_decref(json);
	unreadable(ask);
}

/** schedules_runs - a schedule's last runs, also if no tab has it any more */
void schedules_runs(struct ask *ask)
{
	struct schedule *schedule = schedules_find(ask, true);
	int64_t count = 20, output = 0;

	if (!schedule || !http_number(ask, "count", HISTORY_MOST, &count) ||
	    !http_number(ask, "output", 1, &output))
		return;
	if (output && !ask->reads)
		http_fail(ask, 403, "what workers said is shown over the server's unix socket"
			  " alone");
	else
		ask_about(ask, schedule, count ? count : 1, output ? DETAIL_ALL :
			  ask->reads ? DETAIL_SAID : DETAIL_TIMES, got_history);
}

static void pause_done(void *arg, const char *why)
{
	if (why)
		http_fail(arg, HTTP_SERVUNAVAIL, "%s", why);
	else
		agree(arg);
}

static void set_paused(struct ask *ask, bool paused)
{
	struct schedule *schedule = schedules_find(ask, false);

	if (!schedule)
		return;
	if (schedule->pausing)
		http_fail(ask, 409, "another client pauses or resumes it just now: try again");
	else if (!paused && schedule->definition->paused)
		http_fail(ask, 409, "its line has PAUSED=yes (%s:%u): it fires when that is taken"
			  " out", schedule->file, schedule->definition->line);
	else if (schedule->paused == paused)
		agree(ask);
	else
		schedule_pause(schedule, paused, http_who(ask), pause_done, ask);
}

void schedules_pause(struct ask *ask)
{
	set_paused(ask, true);
}

void schedules_resume(struct ask *ask)
{
	set_paused(ask, false);
}

static void count_done(struct ask *ask, struct firing_counts counts)
{
	http_json(ask, HTTP_OK, json_pack("{s:b, s:I, s:I, s:I, s:I}", "ok", 1,
					  "made", (json_int_t)counts.made,
					  "there", (json_int_t)counts.there,
					  "skipped", (json_int_t)counts.skipped,
					  "waiting", (json_int_t)counts.waiting));
}

static void run_done(struct op *op)
{
	struct ask *ask = op->firing->request;
	bool any = op->firing->count;
	struct firing_counts counts = firing_end(op);

	if (op->failed)
		http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be written: no job was made");
	else if (!any)
		http_fail(ask, HTTP_NOTFOUND, "no client of this server watches a tube of it:"
			  " no job was made");
	else
		count_done(ask, counts);
}

/* The schedule of the path if it can make jobs; or NULL, once the request was answered */
static struct schedule *find_to_fire(struct ask *ask)
{
	struct schedule *schedule = schedules_find(ask, false);

	if (!schedule || !command_draining())
		return schedule;
	http_fail(ask, HTTP_SERVUNAVAIL, "the server takes no new jobs: it drains");
	return NULL;
}

/* A fraction of a second keeps this time apart from all for which the schedule fires. */
void schedules_run(struct ask *ask)
{
	struct schedule *schedule = find_to_fire(ask);
	int64_t now = alarm_wall();
	struct op *op;

	if (!schedule)
		return;
	now += now % SECOND == 0;
	op = schedule->unwritten ? NULL : firing_new(schedule, &now, 1);
	if (!op) {
		http_fail(ask, HTTP_SERVUNAVAIL, "it can't be run yet: try again");
		return;
	}
	op->firing->request = ask;
	trace_of_schedule(op, schedule->id, DEED_RUN, http_who(ask));
	firing_submit(op, run_done);
}

static void backfill_on(struct backfill *backfill);

static void backfilled(struct op *op)
{
	struct backfill *backfill = op->firing->request;
	struct firing_counts *sum = &backfill->counts, counts = firing_end(op);

	sum->made += counts.made;
	sum->there += counts.there;
	if (!op->failed) {
		backfill_on(backfill);
		return;
	}
	schedule_release(backfill->schedule);
	http_fail(backfill->ask, HTTP_SERVUNAVAIL, "the store can't be written: only %zu jobs were"
		  " made. Try again", sum->made);
}

static size_t next_piece(struct backfill *backfill, int64_t *times)
{
	size_t count = 0, most = BACKFILL_PIECE / backfill->schedule->definition->shards;

	do {
		int64_t time = schedule_next(backfill->schedule, backfill->at);

		if (time > backfill->to)
			break;
		times[count++] = time * SECOND;
		backfill->at = time;
	} while (count < most);
	return count;
}

/* A backfill ends where its client goes. */
static void backfill_on(struct backfill *backfill)
{
	int64_t times[BACKFILL_PIECE];
	struct op *op = NULL;
	size_t count = 0;

	if (backfill->ask->request && backfill->schedule->definition)
		count = next_piece(backfill, times);
	if (count)
		op = firing_new(backfill->schedule, times, count);
	if (op) {
		op->firing->overlap = true;
		op->firing->request = backfill;
		if (!backfill->begun)
			trace_of_schedule(op, backfill->schedule->id, DEED_BACKFILLED,
					  http_who(backfill->ask));
		backfill->begun = true;
		firing_submit(op, backfilled);
		return;
	}
	schedule_release(backfill->schedule);
	if (count)
		http_fail(backfill->ask, HTTP_SERVUNAVAIL, "there is no memory: %zu jobs were made",
			  backfill->counts.made);
	else
		count_done(backfill->ask, backfill->counts);
}

/* Jobs between two times; more than the most if there are too many */
static size_t count_jobs(const struct schedule *schedule, int64_t from, int64_t to)
{
	size_t count = 0;

	for (int64_t time = schedule_next(schedule, from - 1);
	     time <= to && count <= BACKFILL_MOST; time = schedule_next(schedule, time))
		count += schedule->definition->shards;
	return count;
}

/* For an older time, jobs may have been made, and the store has forgotten it. */
static bool is_forgotten(struct ask *ask, int64_t from, int64_t now)
{
	int64_t first = now - history / SECOND;
	json_t *text;

	if (first < schedule_forgotten() / SECOND)
		first = schedule_forgotten() / SECOND;
	if (from > first)
		return false;
	text = json_of_time((first + 1) * SECOND);
	http_fail(ask, HTTP_BADREQUEST, "times before %s may have had their jobs, and the history"
		  " has forgotten them; begin there", json_string_value(text));
	json_decref(text);
	return true;
}

static bool backfill_fits(struct ask *ask, const struct schedule *schedule, int64_t from,
			  int64_t to)
{
	int64_t now = alarm_wall() / SECOND;

	if (schedule->definition->each_worker)
		http_fail(ask, HTTP_BADREQUEST, "ON=each-worker is for those who watch at the time:"
			  " nobody knows who did. 'run' makes a job for each who does now");
	else if (from > to)
		http_fail(ask, HTTP_BADREQUEST, "the first time comes after the last one");
	else if (to > now)
		http_fail(ask, HTTP_BADREQUEST, "the last time is not over yet: the schedule fires"
			  " by itself then");
	else if (is_forgotten(ask, from, now))
		return false;
	else if (count_jobs(schedule, from, to) > BACKFILL_MOST)
		http_fail(ask, HTTP_BADREQUEST, "that is more than %d jobs: take a shorter time",
			  BACKFILL_MOST);
	else
		return true;
	return false;
}

/*
 * Read a time as @at has it, in the schedule's zone, or as seconds since 1970. Returns false once a
 * request without one was answered.
 */
static bool schedules_take_time(struct ask *ask, const struct schedule *schedule,
				const json_t *json, int64_t *seconds)
{
	const char *zone = schedule->definition->zone, *text = json_string_value(json);
	struct calendar_error error = { .text = "" };
	struct calendar *calendar = NULL;
	char at[100];
	int length = text ? snprintf(at, sizeof(at), "@at %s", text) : (int)sizeof(at);

	if (json_is_integer(json)) {
		*seconds = json_integer_value(json);
		return true;
	}
	if (length < (int)sizeof(at))
		calendar = calendar_parse(at, length, *zone ? zone : NULL, &error);
	if (calendar) {
		*seconds = calendar_next(calendar, -1);
		calendar_free(calendar);
		return true;
	}
	if (*error.text)
		http_fail(ask, HTTP_BADREQUEST, "%s: %s", text, error.text);
	else
		http_fail(ask, HTTP_BADREQUEST, "\"from\" or \"to\" is no time like"
			  " 2027-01-01T00:00Z, and no seconds since 1970");
	return false;
}

/** schedules_backfill - make the jobs of times that are over */
void schedules_backfill(struct ask *ask)
{
	struct schedule *schedule = find_to_fire(ask);
	struct backfill *backfill;
	int64_t from, to;
	json_t *json = schedule ? http_body(ask) : NULL;
	bool right;

	if (!json)
		return;
	right = schedules_take_time(ask, schedule, json_object_get(json, "from"), &from) &&
		schedules_take_time(ask, schedule, json_object_get(json, "to"), &to) &&
		backfill_fits(ask, schedule, from, to);
	json_decref(json);
	if (!right)
		return;
	backfill = zalloc(sizeof(*backfill));
	ask->more = backfill;
	*backfill = (struct backfill){
		.ask = ask, .schedule = schedule_hold(schedule), .at = from - 1, .to = to,
	};
	backfill_on(backfill);
}

/** schedules_start - @keep: for how long the store keeps runs that are over, in ns */
void schedules_start(int64_t keep)
{
	history = keep;
}
