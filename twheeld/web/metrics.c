// SPDX-License-Identifier: GPL-2.0
/*
 * What the server does, in the text format of Prometheus: GET /metrics; and all tubes as JSON.
 *
 * The loop writes them, and never waits for a reader: the figures of all tubes are copied at once,
 * and written a piece at a time, the next one when the last was sent. So all figures are of one
 * moment, a reader that does not read costs that copy alone, and clients are served
 * between the pieces. There are few such readers at a time, and they have some seconds.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/util.h"
#include "cron/figures.h"
#include "cron/holidays.h"
#include "cron/schedule.h"
#include "cron/tabs_reader.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/command.h"
#include "jobs/stats.h"
#include "jobs/window.h"
#include "store/tube_counts.h"
#include "web/json.h"
#include "web/metrics.h"
#include "when/calendar.h"

/* Tubes in a piece of the answer */
#define PIECE 200
#define SCRAPES_MOST 8

struct tube_figures {
	char name[TUBE_NAME_MAX + 1];
	int64_t count[STATES];
	int64_t puts, deletes, done_at;
	uint64_t ends[TRY_ENDS];
	unsigned int waiting;
	bool paused;
};

/* A schedule, as it was when the answer began */
struct schedule_copy {
	char *name;			/* as a label has it */
	int64_t next;
	struct figures figures;
};

/* @of is a tube, or a schedule. */
struct family {
	const char *before, *name, *after;
	void (*add)(struct evbuffer *out, const struct family *family, const void *of, bool first);
	bool add_deletes, of_schedules;
};

/* An answer that is being written */
struct scrape {
	struct counts_asker counts;	/* asks a shared store */
	struct ask *ask;
	const struct family *families;	/* ends with one without a name */
	struct tube_figures *tubes;
	struct schedule_copy *schedules;
	size_t count, schedule_count, at;
	bool sent, failed;		/* sent: the lines before the tubes are */
};

static const char *const states[] = {
	[READY] = "ready", [DELAYED] = "delayed", [BURIED] = "buried", [RESERVED] = "reserved",
};

/* Over TCP and at the unix socket apart, so that strangers keep nobody from the socket */
static unsigned int scrapes[2];

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

/* @name: all of it; @label: none, or one that ends with a comma */
static void add_counts(struct evbuffer *out, const char *name, const char *label,
		       const struct histogram *histogram)
{
	const char *begin = *label ? "{" : "", *end = *label ? "}" : "";
	uint64_t sum = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		sum += histogram->counts[i];
		evbuffer_add_printf(out, "%s_bucket{%sle=\"%g\"} %llu\n", name, label,
				    histogram_bounds[i], (unsigned long long)sum);
	}
	sum += histogram->counts[HISTOGRAM_BUCKETS];
	evbuffer_add_printf(out, "%s_bucket{%sle=\"+Inf\"} %llu\n", name, label,
			    (unsigned long long)sum);
	evbuffer_add_printf(out, "%s_sum%s%s%s %.9g\n", name, begin, label, end,
			    histogram->seconds);
	evbuffer_add_printf(out, "%s_count%s%s%s %llu\n", name, begin, label, end,
			    (unsigned long long)sum);
}

static void add_histogram(struct evbuffer *out, const char *name, const char *help,
			  const struct histogram *histogram)
{
	char all[64];

	head(out, name, "histogram", help);
	snprintf(all, sizeof(all), "twheeld_%s", name);
	add_counts(out, all, "", histogram);
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
	/* A shared store has no window: its end is before all times. */
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
	one(out, "schedules_without_figures", "gauge",
	    "Schedules of which there are no figures here, as there are too many.",
	    counts.active + counts.paused - figures_count());
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

static void add_jobs(struct evbuffer *out, const struct family *family, const void *of, bool first)
{
	const struct tube_figures *tube = of;

	for (int i = 0; i < STATES; i++)
		evbuffer_add_printf(out, "%s{tube=\"%s\",state=\"%s\"} %lld\n", family->name,
				    tube->name, states[i], (long long)tube->count[i]);
}

static void add_figure(struct evbuffer *out, const struct family *family, const void *of,
		       bool first)
{
	const struct tube_figures *tube = of;

	evbuffer_add_printf(out, "%s{tube=\"%s\"} %lld\n", family->name, tube->name,
			    (long long)(family->add_deletes ? tube->deletes : tube->puts));
}

static void add_ends(struct evbuffer *out, const struct family *family, const void *of, bool first)
{
	const struct tube_figures *tube = of;
	static const char *const names[TRY_ENDS] = {
		[DEED_DONE] = "done", [DEED_RELEASED] = "released", [DEED_BURIED] = "buried",
		[DEED_TIMED_OUT] = "timed_out", [DEED_LEFT] = "left", [TRY_DEAD] = "dead",
	};

	for (int i = 0; i < TRY_ENDS; i++)
		evbuffer_add_printf(out, "%s{tube=\"%s\",end=\"%s\"} %llu\n", family->name,
				    tube->name, names[i], (unsigned long long)tube->ends[i]);
}

static void add_done(struct evbuffer *out, const struct family *family, const void *of, bool first)
{
	const struct tube_figures *tube = of;

	evbuffer_add_printf(out, "%s{tube=\"%s\"} %lld\n", family->name, tube->name,
			    (long long)(tube->done_at / SECOND));
}

static void add_runs(struct evbuffer *out, const struct family *family, const void *of, bool first)
{
	static const char *const names[RUN_ENDS] = { "done", "failed", "skipped", "missed" };
	const struct schedule_copy *one = of;

	for (int i = 0; i < RUN_ENDS; i++)
		evbuffer_add_printf(out, "%s{%sresult=\"%s\"} %llu\n", family->name, one->name,
				    names[i], (unsigned long long)one->figures.ends[i]);
}

static void add_moment(struct evbuffer *out, const struct family *family, int64_t seconds,
		       const struct schedule_copy *one)
{
	evbuffer_add_printf(out, "%s{%s} %lld\n", family->name, one->name, (long long)seconds);
}

static void add_run_done(struct evbuffer *out, const struct family *family, const void *of,
			 bool first)
{
	const struct schedule_copy *one = of;

	add_moment(out, family, one->figures.done_at / SECOND, one);
}

static void add_run_failed(struct evbuffer *out, const struct family *family, const void *of,
			   bool first)
{
	const struct schedule_copy *one = of;

	add_moment(out, family, one->figures.failed_at / SECOND, one);
}

static void add_next(struct evbuffer *out, const struct family *family, const void *of, bool first)
{
	const struct schedule_copy *one = of;

	add_moment(out, family, one->next, one);
}

static void add_duration(struct evbuffer *out, const struct family *family, const void *of,
			 bool first)
{
	const struct schedule_copy *one = of;

	add_counts(out, family->name, one->name, &one->figures.duration);
}

static void add_lateness(struct evbuffer *out, const struct family *family, const void *of,
			 bool first)
{
	const struct schedule_copy *one = of;

	add_counts(out, family->name, one->name, &one->figures.lateness);
}

static void add_json(struct evbuffer *out, const struct family *family, const void *of, bool first)
{
	const struct tube_figures *tube = of;

	json_add(out, json_of_tube(tube->name, tube->count, tube->puts, tube->deletes,
				   tube->waiting, tube->paused), first ? "" : ",");
}

#define FAMILY(metric, type, help, how, ...) { .name = metric, .add = how, .after = "",	\
	.before = "# HELP " metric " " help "\n# TYPE " metric " " type "\n", ##__VA_ARGS__ }

static const struct family of_metrics[] = {
	FAMILY("twheeld_jobs", "gauge", "Jobs that are there.", add_jobs),
	FAMILY("twheeld_tube_puts_total", "counter", "Jobs put in the tube.", add_figure),
	FAMILY("twheeld_tube_deletes_total", "counter", "Jobs of the tube deleted.", add_figure,
	       .add_deletes = true),
	FAMILY("twheeld_tube_tries_total", "counter", "Tries of the tube's jobs that ended.",
	       add_ends),
	FAMILY("twheeld_tube_done_seconds", "gauge",
	       "When the last job was done, since 1970; 0: none was.", add_done),
#define OF_SCHEDULE(metric, type, help, how) \
	FAMILY("twheeld_schedule_" metric, type, help, how, .of_schedules = true)
	OF_SCHEDULE("runs_total", "counter", "Runs of the schedule that ended here, or were not.",
		    add_runs),
	OF_SCHEDULE("done_seconds", "gauge",
		    "When the last run was done, since 1970; 0: none is known.", add_run_done),
	OF_SCHEDULE("failed_seconds", "gauge",
		    "When the last run failed, since 1970; 0: none is known.", add_run_failed),
	OF_SCHEDULE("next_seconds", "gauge", "When it fires next, since 1970; 0: never, or paused.",
		    add_next),
	OF_SCHEDULE("run_seconds", "histogram", "How long the last try of each run took.",
		    add_duration),
	OF_SCHEDULE("begin_seconds", "histogram",
		    "How long after its job was made the first try of a run began.", add_lateness),
	{ .name = NULL },
};

static const struct family of_list[] = {
	{ .before = "", .name = "tubes", .after = "]}\n", .add = add_json },
	{ .name = NULL },
};

static struct tube_figures copy(const struct tube *tube)
{
	struct tube_figures copy = {
		.puts = tube->total, .deletes = tube->deletes, .waiting = tube->waiting_count,
		.paused = tube_paused(tube),
	};

	strcpy(copy.name, tube->name);
	copy.done_at = tube->done_at;
	memcpy(copy.ends, tube->ends, sizeof(copy.ends));
	if (!engine->counts_in_store)
		memcpy(copy.count, tube->count, sizeof(tube->count));
	return copy;
}

static void end_scrape(struct scrape *scrape)
{
	scrapes[scrape->ask->local]--;
	tube_counts_forget(&scrape->counts);
	free(scrape->tubes);
	for (size_t i = 0; i < scrape->schedule_count; i++)
		free(scrape->schedules[i].name);
	free(scrape->schedules);
	http_end(scrape->ask);
}

/* Write the next piece once the last is sent; libevent calls nobody back for an empty one. */
static void next(struct ask *ask)
{
	struct scrape *scrape = ask->more;
	const struct family *family = scrape->families;
	struct evbuffer *out;
	size_t until, count;

	scrape->sent = true;
	ask->go_on = next;
	if (!ask->request || !family->name) {
		end_scrape(scrape);
		return;
	}
	if (scrape->counts.asks)
		return;
	out = must(evbuffer_new());
	if (!scrape->at)
		evbuffer_add_printf(out, "%s", family->before);
	count = family->of_schedules ? scrape->schedule_count : scrape->count;
	until = scrape->at + PIECE < count ? scrape->at + PIECE : count;
	for (; scrape->at < until; scrape->at++)
		family->add(out, family, family->of_schedules ?
			    (void *)&scrape->schedules[scrape->at] : &scrape->tubes[scrape->at],
			    !scrape->at);
	if (scrape->at == count) {
		evbuffer_add_printf(out, "%s", scrape->failed && *family->after ?
				    "],\"error\":\"the store can't be read\"}\n" : family->after);
		scrape->at = 0;
		scrape->families++;
	}
	http_piece(ask, out, next);
	evbuffer_free(out);
}

static void copy_schedules(struct scrape *scrape)
{
	const struct figures *figures;

	scrape->schedules = must(calloc(figures_count() + 1, sizeof(*scrape->schedules)));
	for (figures = figures_first(); figures; figures = figures->next) {
		struct schedule_copy *copy = &scrape->schedules[scrape->schedule_count++];
		const struct schedule *schedule = figures->schedule;

		if (asprintf(&copy->name, "schedule=\"%s\",", schedule->name) < 0)
			must(NULL);
		copy->figures = *figures;
		if (schedule->time != CALENDAR_NEVER && !schedule_is_paused(schedule))
			copy->next = schedule->time;
	}
}

/* Places without a tube, which has no row, are filled; and the sum of such tubes comes last. */
static void close_gaps(struct scrape *scrape, const struct tube_figures *others)
{
	size_t count = 0;

	for (size_t i = 0; i < scrape->count; i++)
		if (*scrape->tubes[i].name)
			scrape->tubes[count++] = scrape->tubes[i];
	if (*others->name)
		scrape->tubes[count++] = *others;
	scrape->count = count;
}

/* Jobs by state, of a store that is shared. Of tubes that it alone knows, @room have a row. */
static void copy_counts(struct scrape *scrape, const struct tube_counts *counts, size_t length,
			size_t room, struct tube_figures *others)
{
	for (size_t i = 0; i < length; i++) {
		struct tube *tube = tube_find(counts[i].tube);
		struct tube_figures *figures = others;

		if (tube && *scrape->tubes[tube->place].name)
			figures = &scrape->tubes[tube->place];
		else if (!tube && room && room--)
			figures = &scrape->tubes[scrape->count++];
		strcpy(figures->name, figures == others ? OTHERS : counts[i].tube);
		for (int state = 0; state < STATES; state++)
			figures->count[state] += counts[i].count[state];
	}
}

/*
 * The tubes of this server come first, and then those that it knows from the store alone. Metrics
 * have the first that there were, which keep their rows, and one row for the rest.
 */
static void copy_all(struct scrape *scrape, const struct tube_counts *counts, size_t length)
{
	bool each = scrape->families != of_metrics;
	size_t room = each ? length : FIGURES_MOST;
	struct tube **list = tube_list(&scrape->count), sum = *tube_others();
	struct tube_figures others;

	scrape->tubes = must(calloc(scrape->count + length + 1, sizeof(*scrape->tubes)));
	for (size_t i = 0; i < scrape->count; i++) {
		if (!each && !list[i]->figures) {
			tube_add(&sum, list[i]);
			continue;
		}
		scrape->tubes[i] = copy(list[i]);
		room -= !each;
	}
	others = copy(&sum);
	copy_counts(scrape, counts, length, room, &others);
	if (!each)
		close_gaps(scrape, &others);
}

/* While the database is away, there are no figures of tubes. */
static void counted(struct counts_asker *asker, const struct counts *counts)
{
	struct scrape *scrape = container_of(asker, struct scrape, counts);

	scrape->failed = counts->op.failed;
	if (!scrape->failed)
		copy_all(scrape, counts->figures, counts->length);
	if (scrape->sent)
		next(scrape->ask);
}

/* @out: the lines before the tubes */
static void begin_scrape(struct ask *ask, const struct family *families,
			 void (*add_first)(struct evbuffer *out))
{
	struct scrape *scrape;
	struct evbuffer *out;

	if (scrapes[ask->local] >= SCRAPES_MOST) {
		http_fail(ask, HTTP_SERVUNAVAIL, "too many ask at a time: try again");
		return;
	}
	scrapes[ask->local]++;
	scrape = zalloc(sizeof(*scrape));
	ask->more = scrape;
	scrape->ask = ask;
	scrape->families = families;
	scrape->counts.answered = counted;
	out = must(evbuffer_new());
	add_first(out);
	if (families == of_metrics)
		copy_schedules(scrape);
	if (engine->counts_in_store)
		tube_counts_ask(&scrape->counts, NULL);
	else
		copy_all(scrape, NULL, 0);
	http_piece(ask, out, next);
	evbuffer_free(out);
}

static void add_all(struct evbuffer *out)
{
	add_server(out);
	add_window(out);
	add_connections(out);
	add_schedules(out);
	add_commands(out);
}

/** metrics_answer - answer a request for /metrics */
void metrics_answer(struct ask *ask)
{
	begin_scrape(ask, of_metrics, add_all);
}

static void begin_list(struct evbuffer *out)
{
	evbuffer_add_printf(out, "{\"tubes\":[");
}

/** metrics_tubes - answer with all tubes */
void metrics_tubes(struct ask *ask)
{
	begin_scrape(ask, of_list, begin_list);
}
