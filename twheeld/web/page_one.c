// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of a schedule, and of a tube.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cron/schedule.h"
#include "jobs/settings.h"
#include "store/runs.h"
#include "web/act.h"
#include "web/html.h"
#include "web/jobs.h"
#include "web/json.h"
#include "web/page.h"
#include "web/traces.h"
#include "when/calendar.h"
#include "when/zone.h"

#define RUNS_SHOWN 50
#define NEXT_TIMES 5
/* Of a chart, in its own units */
#define CHART_WIDTH 600
#define CHART_HEIGHT 80

static void add_pair(struct evbuffer *out, const char *name, const char *value)
{
	html_add(out, "<div><dt>%r</dt><dd>%s</dd></div>\n", name, value);
}

static void add_number(struct evbuffer *out, const char *name, int64_t number, const char *unit)
{
	html_add(out, "<div><dt>%r</dt><dd>%d%r</dd></div>\n", name, number, unit);
}

/* Runs */

static int64_t lateness_of(const struct run_row *run)
{
	return run->job > 0 && run->created > run->time ? run->created - run->time : 0;
}

static bool has_ended(const struct run_row *run)
{
	return run->job > 0 && run->ended && run->result != RUN_OPEN;
}

static int64_t duration_of(const struct run_row *run)
{
	return has_ended(run) && run->ended > run->created ? run->ended - run->created : 0;
}

static bool is_bad(const struct run_row *run)
{
	return run->result == RUN_FAILED || run->result == RUN_BURIED || run->result == RUN_MISSED;
}

/* Bars, the last run at the right. What is seen there stands in the table, too. */
static void add_chart(struct evbuffer *out, const struct runs_asked *asked, const char *what,
		      int64_t (*of)(const struct run_row *run))
{
	int64_t most = 0, width = CHART_WIDTH / RUNS_SHOWN;

	for (size_t i = 0; i < asked->found; i++)
		most = of(&asked->runs[i]) > most ? of(&asked->runs[i]) : most;
	html_add(out, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%r of the"
		 " last %d runs, at most ", (int64_t)CHART_WIDTH, (int64_t)CHART_HEIGHT, what,
		 (int64_t)asked->found);
	html_span(out, most);
	html_add(out, "\">");
	for (size_t i = 0; i < asked->found; i++) {
		const struct run_row *run = &asked->runs[i];
		int64_t height = most ? (double)of(run) / most * (CHART_HEIGHT - 2) + 2 : 2;

		html_add(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"%r/>",
			 CHART_WIDTH - width * (int64_t)(i + 1), CHART_HEIGHT - height, width - 1,
			 height, is_bad(run) ? " class=\"bad\"" : "");
	}
	html_add(out, "</svg><figcaption>%r, at most ", what);
	html_span(out, most);
	html_add(out, "</figcaption></figure>\n");
}

static void add_run(struct evbuffer *out, const struct run_row *run, const struct zone *zone,
		    int64_t now)
{
	html_add(out, "<tr><th scope=\"row\" class=\"time\">");
	html_time(out, run->time, zone, now);
	html_add(out, "</th><td data-of=\"Shard\">%d</td><td data-of=\"Job\">",
		 (int64_t)run->shard);
	if (run->job > 0)
		html_add(out, "<a href=\"%/jobs/%d\">%d</a>", run->job, run->job);
	html_add(out, "</td><td data-of=\"Result\"%r>%r%r</td><td data-of=\"Made late by\">",
		 is_bad(run) ? " class=\"wrong\"" : "", json_of_result(run),
		 run->time % SECOND ? ", by hand" : "");
	if (run->job > 0)
		html_span(out, lateness_of(run));
	html_add(out, "</td><td data-of=\"Took\">");
	if (has_ended(run))
		html_span(out, duration_of(run));
	html_add(out, "</td><td data-of=\"Ended\" class=\"time\">");
	if (run->ended && run->result != RUN_OPEN)
		html_time(out, run->ended, zone, now);
	html_add(out, "</td></tr>\n");
}

/* A try of a job, or what somebody did */
static void add_trace(struct evbuffer *out, const struct trace *trace, const struct zone *zone,
		      bool reads, int64_t now)
{
	json_t *json = json_of_trace(trace, reads ? DETAIL_ALL : DETAIL_TIMES);
	const char *by = json_string_value(json_object_get(json, "by"));
	const char *said = json_string_value(json_object_get(json, "said"));
	const json_t *output = json_object_get(json, "output");

	html_add(out, "<li>");
	if (trace->try)
		html_add(out, "try %d, ", (int64_t)trace->try);
	html_add(out, "%s", json_string_value(json_object_get(json, "what")));
	if (trace->begun) {
		html_add(out, " after ");
		html_span(out, trace->ended - trace->begun);
	}
	if (by)
		html_add(out, ", by %s", by);
	if (said)
		html_add(out, ": %s", said);
	html_add(out, "<br>");
	html_time(out, trace->ended, zone, now);
	if (json_string_length(output))
		html_bytes(out, json_string_value(output), json_string_length(output),
			   json_string_length(output));
	html_add(out, "</li>\n");
	json_decref(json);
}

static void add_traces(struct evbuffer *out, const struct runs_asked *asked, int64_t job,
		       const struct zone *zone, bool reads, int64_t now)
{
	html_add(out, "<ul class=\"traces\">\n");
	for (size_t i = 0; i < asked->traced; i++)
		if (asked->traces[i].job == job)
			add_trace(out, &asked->traces[i], zone, reads, now);
	html_add(out, "</ul>\n");
}

static size_t count_traces(const struct runs_asked *asked, int64_t job)
{
	size_t count = 0;

	for (size_t i = 0; i < asked->traced; i++)
		count += asked->traces[i].job == job;
	return count;
}

static void add_tries(struct evbuffer *out, const struct runs_asked *asked, int64_t job,
		      const struct zone *zone, bool reads, int64_t now)
{
	size_t count = job > 0 ? count_traces(asked, job) : 0;

	if (!count)
		return;
	html_add(out, "<tr><td colspan=\"7\"><details><summary>Job %d: %d of its tries, and what"
		 " was done to it</summary>\n", job, (int64_t)count);
	add_traces(out, asked, job, zone, reads, now);
	html_add(out, "</details></td></tr>\n");
}

static void add_runs(struct evbuffer *out, const struct runs_asked *asked, const struct zone *zone,
		     bool reads, int64_t now)
{
	static const char *const heads[] = {
		"Time", "Shard", "Job", "Result", "Made late by", "Took", "Ended"
	};

	html_add(out, "<section data-live id=\"runs-all\" aria-labelledby=\"runs-title\">"
		 "<h2 id=\"runs-title\">Runs</h2>\n");
	if (asked->found) {
		html_add(out, "<div class=\"charts\">");
		add_chart(out, asked, "Duration", duration_of);
		add_chart(out, asked, "Lateness", lateness_of);
		html_add(out, "</div>\n");
	}
	html_table(out, "runs", heads, ARRAY_SIZE(heads));
	for (size_t i = 0; i < asked->found; i++) {
		add_run(out, &asked->runs[i], zone, now);
		add_tries(out, asked, asked->runs[i].job, zone, reads, now);
	}
	html_end_table(out);
	html_add(out, "<p class=\"note\">%r</p></section>\n", asked->found ?
		 asked->found == RUNS_SHOWN ? "These are the last ones." : "" : "None yet.");
}

/* A schedule */

static void add_definition(struct evbuffer *out, const struct schedule *schedule, bool reads)
{
	static const char *const misfires[] = {
		[MISFIRE_ONCE] = "once", [MISFIRE_SKIP] = "skip", [MISFIRE_ALL] = "all",
	};
	static const char *const overlaps[] = {
		[OVERLAP_NO] = "no", [OVERLAP_YES] = "yes", [OVERLAP_WAIT] = "wait",
	};
	static const char *const news[] = {
		[NEWS_FAILED] = "ON_FAILURE", [NEWS_RECOVERED] = "ON_RECOVERY",
		[NEWS_MISSED] = "ON_MISSED",
	};
	const struct definition *definition = schedule->definition;

	html_add(out, "<section aria-labelledby=\"definition-title\"><h2 id=\"definition-title\">"
		 "Definition</h2>\n<dl>\n<div><dt>When</dt><dd><code>%s</code></dd></div>\n"
		 "<div><dt>Line</dt><dd>%s:%d</dd></div>\n<div><dt>Tube</dt><dd>",
		 definition->when, schedule->file, (int64_t)definition->line);
	page_add_tube(out, definition);
	html_add(out, "</dd></div>\n");
	add_pair(out, "Zone", *definition->zone ? definition->zone : "the server's");
	add_pair(out, "OVERLAP", overlaps[definition->overlap]);
	add_pair(out, "MISFIRE", misfires[definition->misfire]);
	add_number(out, "MISFIRE_AFTER", definition->late, " s");
	add_number(out, "JITTER", definition->jitter, " s");
	add_number(out, "SHARDS", definition->shards, "");
	add_number(out, "PRI", definition->pri, "");
	add_number(out, "TTR", definition->ttr, " s");
	if (definition->after)
		add_pair(out, "AFTER", definition->after);
	if (definition->dates_path)
		add_pair(out, "CALENDAR", definition->dates_path);
	for (size_t i = 0; i < ARRAY_SIZE(news); i++)
		if (definition->tells[i])
			add_pair(out, news[i], definition->tells[i]);
	if (definition->on_late)
		add_number(out, "ON_LATE", definition->on_late, " s");
	if (definition->mailto && reads)
		add_pair(out, "MAILTO", definition->mailto);
	html_add(out, "</dl>\n");
	if (reads)
		html_bytes(out, definition->body, strlen(definition->body),
			   strlen(definition->body));
	else
		html_add(out, "<p class=\"note\">What its jobs have as their bodies is shown to who"
			 " has logged in.</p>\n");
	html_add(out, "</section>\n");
}

static void add_next(struct evbuffer *out, const struct schedule *schedule, const struct zone *zone,
		     int64_t now)
{
	int64_t time = schedule->time;

	html_add(out, "<section data-live id=\"next-all\" aria-labelledby=\"next-title\">"
		 "<h2 id=\"next-title\">Next times</h2>\n");
	if (schedule_is_paused(schedule))
		html_add(out, "<p class=\"wrong\">It is paused%r.</p>", schedule->paused ? "" :
			 " by its line");
	html_add(out, "<ul id=\"next\">\n");
	for (int i = 0; i < NEXT_TIMES && time != CALENDAR_NEVER && !schedule_is_paused(schedule);
	     i++) {
		html_add(out, "<li class=\"time\">");
		html_time(out, time * SECOND, zone, now);
		html_add(out, "</li>\n");
		time = schedule_next(schedule, time);
	}
	html_add(out, "</ul></section>\n");
}

static void add_acts(struct ask *ask, struct evbuffer *out, const struct schedule *schedule)
{
	const char *name = schedule->name;

	act_link(ask, out, "schedules", name, "run", NULL);
	act_link(ask, out, "schedules", name, "backfill", NULL);
	act_link(ask, out, "schedules", name, schedule->paused ? "resume" : "pause", NULL);
}

static void told_runs(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct ask *ask = asked->arg;
	struct schedule *schedule = schedule_find(ask->name);
	const struct definition *definition = schedule ? schedule->definition : NULL;
	const char *name = definition ? definition->zone : "";
	struct zone *zone;
	struct evbuffer *out;

	if (op->failed || !ask->request || !schedule) {
		http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be read");
		runs_free(asked);
		return;
	}
	zone = must(zone_get(*name ? name : NULL));
	out = html_begin(ask, schedule->name);
	if (definition)
		add_acts(ask, out, schedule);
	if (definition)
		add_next(out, schedule, zone, alarm_wall());
	else
		html_add(out, "<p class=\"wrong\">No file has it any more.</p>\n");
	add_runs(out, asked, zone, ask->reads, alarm_wall());
	if (count_traces(asked, -schedule->id)) {
		html_add(out, "<h2>By hand</h2>\n");
		add_traces(out, asked, -schedule->id, zone, ask->reads, alarm_wall());
	}
	if (definition)
		add_definition(out, schedule, ask->reads);
	zone_put(zone);
	runs_free(asked);
	html_end(ask, HTTP_OK, out);
}

/** page_schedule - the page of a schedule, also of one that no file has any more */
void page_schedule(struct ask *ask)
{
	struct schedule *schedule = schedule_find(ask->name);
	struct runs_asked *asked;

	if (!schedule) {
		http_fail(ask, HTTP_NOTFOUND, "there is no schedule '%s'", ask->name);
		return;
	}
	asked = zalloc(sizeof(*asked) + sizeof(*asked->schedules));
	asked->op.kind = OP_RUNS;
	asked->op.done = told_runs;
	asked->arg = ask;
	asked->most = RUNS_SHOWN;
	asked->trace = true;
	asked->notes = ask->reads;
	asked->count = 1;
	asked->schedules[0] = schedule->id;
	store->runs(asked);
}

/* A tube */

/* A body that is no text has a character of two bytes at most for each of its own. */
static void add_body(struct evbuffer *out, const json_t *job)
{
	const json_t *body = json_object_get(job, "body");
	const char *text = json_string_value(body);
	size_t length = json_string_length(body), left = 0;
	char *bytes = must(malloc(length + 1));

	if (!strcmp(json_string_value(json_object_get(job, "encoding")), "utf-8")) {
		html_bytes(out, text, length, json_number(job, "size"));
	} else {
		for (size_t i = 0; i < length; i++) {
			unsigned char byte = text[i];

			if (byte >= 0x80)
				byte = byte << 6 | (text[++i] & 0x3f);
			bytes[left++] = byte;
		}
		html_bytes(out, bytes, left, json_number(job, "size"));
	}
	free(bytes);
}

static void add_job(struct ask *ask, struct evbuffer *out, const json_t *job)
{
	char number[32];

	static const char *const numbers[] = {
		"pri", "age", "delay", "ttr", "reserves", "timeouts", "releases", "buries", "kicks",
	};
	const char *state = json_string_value(json_object_get(job, "state"));
	const char *tube = json_string_value(json_object_get(job, "tube"));

	html_add(out, "<dl>");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		add_number(out, numbers[i], json_number(job, numbers[i]), "");
	html_add(out, "</dl>\n");
	snprintf(number, sizeof(number), "%lld", (long long)json_number(job, "id"));
	if (!strcmp(state, "delayed") || !strcmp(state, "buried"))
		act_link(ask, out, "jobs", number, "kick", tube);
	if (strcmp(state, "reserved") && settings_is_dead_letter(tube))
		act_link(ask, out, "jobs", number, "back", tube);
	if (strcmp(state, "reserved"))
		act_link(ask, out, "jobs", number, "delete", tube);
	if (ask->reads)
		add_body(out, job);
	else
		html_add(out, "<p class=\"note\">Its body is shown to who has logged in.</p>\n");
}

static void told_job(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct ask *ask = asked->arg;
	struct evbuffer *out;
	struct zone *zone;
	char *title;

	if (op->failed || !ask->request) {
		http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be read");
	} else if (!ask->more && !asked->traced) {
		http_fail(ask, HTTP_NOTFOUND, "there is no such job, and nothing is kept of one");
	} else {
		if (asprintf(&title, "Job %s", ask->name) < 0)
			must(NULL);
		out = html_begin(ask, title);
		free(title);
		if (ask->more)
			html_add(out, "%r", ask->more);
		else
			html_add(out, "<p>It is there no more. It was in the tube"
				 " <a href=\"%/tubes/%u\">%s</a>.</p>\n", asked->traces[0].tube,
				 asked->traces[0].tube);
		if (asked->traced) {
			zone = must(zone_get(NULL));
			html_add(out, "<h2>Its tries, and what was done to it</h2>\n");
			add_traces(out, asked, asked->job, zone, ask->reads, alarm_wall());
			zone_put(zone);
		}
		html_end(ask, HTTP_OK, out);
	}
	runs_free(asked);
}

/* What is shown of a job that is there waits in ask->more for what is kept of its tries. */
static void got_job(struct ask *ask, const json_t *job)
{
	const char *tube = json_string_value(json_object_get(job, "tube"));
	struct evbuffer *out;

	free(ask->more);
	ask->more = NULL;
	if (job) {
		out = must(evbuffer_new());
		html_go_on(ask);
		html_add(out, "<p>It is %s, in the tube <a href=\"%/tubes/%u\">%s</a>.</p>\n",
			 json_string_value(json_object_get(job, "state")), tube, tube);
		add_job(ask, out, job);
		evbuffer_add(out, "", 1);
		ask->more = must(strdup((char *)evbuffer_pullup(out, -1)));
		evbuffer_free(out);
	}
	traces_ask(ask, ask->reads, told_job);
}

/** page_job - the page of a job, also of one of which only tries are kept */
void page_job(struct ask *ask)
{
	jobs_peek_for(ask, got_job);
}

static void looked(struct ask *ask, const json_t *answer)
{
	static const struct {
		const char *name, *label;
	} counts[] = {
		{ "current-jobs-ready", "Ready" }, { "current-jobs-reserved", "Reserved" },
		{ "current-jobs-delayed", "Delayed" }, { "current-jobs-buried", "Buried" },
		{ "current-watching", "Clients that watch it" },
		{ "current-waiting", "Waiting clients" }, { "total-jobs", "Put" },
		{ "cmd-delete", "Deleted" },
	};
	static const char *const states[] = { "ready", "reserved", "delayed", "buried" };
	const json_t *tube = json_object_get(answer, "tube"), *job;
	const struct tube_settings *settings = settings_tube(ask->name);
	struct evbuffer *out = html_begin(ask, ask->name);
	size_t i;

	act_link(ask, out, "tubes", ask->name, "kick", NULL);
	if (settings_is_dead_letter(ask->name))
		act_link(ask, out, "tubes", ask->name, "back", NULL);
	html_add(out, "<section data-live id=\"tube\" aria-labelledby=\"jobs-title\">"
		 "<h2 id=\"jobs-title\">Jobs of this tube</h2>\n<dl>");
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		add_number(out, counts[i].label, json_number(tube, counts[i].name), "");
	if (settings->tries)
		add_number(out, "Tries", settings->tries, "");
	if (settings->dead_letter && ask->some_tubes)
		html_add(out, "<div><dt>Dead letters</dt><dd>%s</dd></div>", settings->dead_letter);
	else if (settings->dead_letter)
		html_add(out, "<div><dt>Dead letters</dt><dd><a href=\"%/tubes/%u\">%s</a></dd>"
			 "</div>", settings->dead_letter, settings->dead_letter);
	html_add(out, "</dl>\n<p>All jobs that are");
	for (i = 0; i < ARRAY_SIZE(states); i++)
		html_add(out, "%r <a href=\"%/tubes/%u/jobs?state=%r\">%r</a>", i ? "," : "",
			 ask->name, states[i], states[i]);
	html_add(out, "</p>\n");
	json_array_foreach(json_object_get(answer, "jobs"), i, job) {
		const char *state = json_string_value(json_object_get(job, "state"));

		/* One that has gone meanwhile has none. */
		if (!state)
			continue;
		html_add(out, "<section><h3>The first that is %s: job ", state);
		html_job(ask, out, json_number(job, "id"));
		html_add(out, "</h3>\n");
		add_job(ask, out, job);
		html_add(out, "</section>\n");
	}
	html_add(out, "</section>\n");
	html_end(ask, HTTP_OK, out);
}

/** page_tube - the page of a tube */
void page_tube(struct ask *ask)
{
	jobs_look(ask, looked);
}
