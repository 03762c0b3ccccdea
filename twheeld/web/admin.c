// SPDX-License-Identifier: GPL-2.0
/*
 * The admin socket. A request is a line of words, and is answered by lines of JSON: objects,
 * of which the last has "ok" or "error".
 *
 * Who asks can't make the server wait, nor keep it busy: there are few of them, a request is
 * short, long answers are written a piece at a time, and a backfill is done a piece at a time.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/util.h"
#include "cron/firing.h"
#include "cron/schedule.h"
#include "cron/tabs_reader.h"
#include "jobs/command.h"
#include "store/commit.h"
#include "web/admin.h"
#include "web/json.h"
#include "when/calendar.h"

#define CLIENTS_MOST 32
#define LINE_MOST 1024
#define PATIENCE 60
#define WORDS_MOST 5
/* Schedules a piece of an answer */
#define PIECE 100
#define HISTORY_MOST 1000
#define NEXT_TIMES 5
/* Jobs of a backfill, and of one transaction of it */
#define BACKFILL_MOST 10000
#define BACKFILL_PIECE 200

struct backfill {
	struct schedule *schedule;
	int64_t at, to;
	struct firing_counts counts;
};

struct client {
	struct bufferevent *bev;	/* NULL: it has gone */
	bool busy;			/* something is being written for it */
	bool closing;			/* once all is sent; nothing more is read */
	bool eof;			/* it sends no more, and may wait for answers */
	bool listing;
	struct schedule *next;		/* of a list; it is held */
	struct schedule *asked[PIECE];	/* those whose runs are asked for; they are held */
	size_t asked_count;
	struct backfill backfill;
};

static struct event_base *loop;
static struct evconnlistener *listener;
static unsigned int clients;
static int64_t history;

static void read_on(struct client *client);

/* Answers */

static void answer(struct client *client, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	must(text);
	if (client->bev) {
		bufferevent_write(client->bev, text, strlen(text));
		bufferevent_write(client->bev, "\n", 1);
	}
	free(text);
}

__attribute__((format(printf, 2, 3)))
static void refuse(struct client *client, const char *format, ...)
{
	va_list args;
	char *text;
	int ret;

	va_start(args, format);
	ret = vasprintf(&text, format, args);
	va_end(args);
	if (ret < 0)
		must(NULL);
	answer(client, json_pack("{s:o}", "error", json_of_text(text)));
	free(text);
}

static void agree(struct client *client)
{
	answer(client, json_pack("{s:b}", "ok", 1));
}

/* Runs */

static void tell_run(struct client *client, const struct run_row *run)
{
	answer(client, json_pack("{s:o, s:i, s:I, s:s, s:o, s:o, s:b}", "time",
				 json_of_time(run->time), "shard", (int)run->shard, "job",
				 (json_int_t)(run->job > 0 ? run->job : 0),
				 "result", json_of_result(run),
				 "created", json_of_time(run->created),
				 "ended", json_of_time(run->result == RUN_OPEN ? 0 : run->ended),
				 "asked", run->time % SECOND != 0));
}

static json_t *last_run(const struct runs_asked *asked, const struct schedule *schedule)
{
	for (size_t i = 0; i < asked->found; i++) {
		const struct run_row *run = &asked->runs[i];

		if (run->schedule == schedule->id)
			return json_of_run(run);
	}
	return json_null();
}

/* The store may take its time: until then, nothing else is done for the client. */
static void ask_for_runs(struct client *client, int64_t most, void (*done)(struct op *op))
{
	struct runs_asked *asked = zalloc(sizeof(*asked) +
					  client->asked_count * sizeof(*asked->schedules));

	asked->op.kind = OP_RUNS;
	asked->op.done = done;
	asked->arg = client;
	asked->most = most;
	asked->count = client->asked_count;
	for (size_t i = 0; i < asked->count; i++)
		asked->schedules[i] = client->asked[i]->id;
	client->busy = true;
	store->runs(asked);
}

static void ask_about(struct client *client, struct schedule *schedule, int64_t most,
		      void (*done)(struct op *op))
{
	client->asked[0] = schedule_hold(schedule);
	client->asked_count = 1;
	ask_for_runs(client, most, done);
}

static void unbusy(struct client *client)
{
	client->busy = false;
	if (client->bev)
		read_on(client);
	else
		free(client);
}

static void told_runs(struct client *client, struct runs_asked *asked)
{
	free(asked->runs);
	while (client->asked_count)
		schedule_release(client->asked[--client->asked_count]);
	unbusy(client);
}

/* Schedules */

static json_t *in_short(const struct schedule *schedule, const struct runs_asked *asked)
{
	return json_of_schedule(schedule, last_run(asked, schedule));
}

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

static json_t *at_length(const struct schedule *schedule, const struct runs_asked *asked)
{
	const struct definition *definition = schedule->definition;
	json_t *json = in_short(schedule, asked), *more;

	more = json_pack("{s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:b, s:b, s:o, s:o, s:o, s:I, s:o}",
			 "body", json_of_text(definition->body), "pri", (json_int_t)definition->pri,
			 "ttr", (json_int_t)definition->ttr,
			 "shards", (json_int_t)definition->shards,
			 "misfire", misfire_text(definition),
			 "misfire_after", (json_int_t)definition->late,
			 "jitter", (json_int_t)definition->jitter,
			 "overlap", definition->overlap == OVERLAP_YES,
			 "waits", definition->overlap == OVERLAP_WAIT,
			 "after", definition->after ? json_of_text(definition->after) : json_null(),
			 "calendar", definition->dates_path ? json_of_text(definition->dates_path) :
			 json_null(), "file", json_of_text(schedule->file),
			 "line", (json_int_t)definition->line, "times", next_times(schedule));
	must(more);
	json_object_update(must(json), more);
	json_decref(more);
	return json;
}

static void list_on(struct client *client);

static void told_piece(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct client *client = asked->arg;
	bool more;
	json_t *end;

	for (size_t i = 0; !op->failed && i < client->asked_count; i++)
		if (client->asked[i]->definition)
			answer(client, in_short(client->asked[i], asked));
	if (op->failed) {
		refuse(client, "the store can't be read");
	} else if (!client->next) {
		end = must(json_pack("{s:b, s:I}", "ok", 1,
				     "wrong", (json_int_t)tabs_reader_wrong()));
		if (*schedule_differs())
			json_object_set_new(end, "differ", json_of_text(schedule_differs()));
		answer(client, end);
	}
	if (op->failed) {
		schedule_release(client->next);
		client->next = NULL;
	}
	more = client->next;
	client->listing = more;
	told_runs(client, asked);
	/* No file has those of this piece any more */
	if (more && !evbuffer_get_length(bufferevent_get_output(client->bev)))
		list_on(client);
}

/* The next piece of a list: sent() comes for the one after that. */
static void list_on(struct client *client)
{
	struct schedule *first = client->next, *one = first;

	for (; one && client->asked_count < PIECE; one = one->hash.next)
		if (one->definition)
			client->asked[client->asked_count++] = schedule_hold(one);
	client->next = schedule_hold(one);
	schedule_release(first);
	ask_for_runs(client, 1, told_piece);
}

/* Requests: @words has as many as the table says, or an empty one in place of the others. */

static void do_list(struct client *client, char **words)
{
	(void)words;
	client->listing = true;
	client->next = schedule_hold(schedule_first());
	list_on(client);
}

static struct schedule *find(struct client *client, const char *name)
{
	struct schedule *schedule = schedule_find(name);

	if (schedule && schedule->definition)
		return schedule;
	refuse(client, schedule ? "no file has the schedule '%s' any more" :
	       "there is no schedule '%s'", name);
	return NULL;
}

static void told_one(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct client *client = asked->arg;
	struct schedule *schedule = client->asked[0];

	if (op->failed) {
		refuse(client, "the store can't be read");
	} else if (!schedule->definition) {
		refuse(client, "no file has the schedule any more");
	} else {
		answer(client, at_length(schedule, asked));
		agree(client);
	}
	told_runs(client, asked);
}

static void do_show(struct client *client, char **words)
{
	struct schedule *schedule = find(client, words[1]);

	if (schedule)
		ask_about(client, schedule, 1, told_one);
}

static bool number_of(const char *text, int64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && end != text && !*end;
}

static void told_history(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct client *client = asked->arg;

	for (size_t i = 0; !op->failed && i < asked->found; i++)
		tell_run(client, &asked->runs[i]);
	if (op->failed)
		refuse(client, "the store can't be read");
	else
		agree(client);
	told_runs(client, asked);
}

static void do_history(struct client *client, char **words)
{
	struct schedule *schedule = schedule_find(words[1]);
	int64_t count = 20;

	if (!schedule)
		refuse(client, "there is no schedule '%s'", words[1]);
	else if (*words[2] && (!number_of(words[2], &count) || count < 1 || count > HISTORY_MOST))
		refuse(client, "%d runs are the most that history shows", HISTORY_MOST);
	else
		ask_about(client, schedule, count, told_history);
}

static void pause_done(void *arg, const char *why)
{
	struct client *client = arg;

	if (why)
		refuse(client, "%s", why);
	else
		agree(client);
	unbusy(client);
}

static void set_paused(struct client *client, const char *name, bool paused)
{
	struct schedule *schedule = find(client, name);

	if (!schedule)
		return;
	if (schedule->pausing) {
		refuse(client, "another client pauses or resumes it just now: try again");
		return;
	}
	if (!paused && schedule->definition->paused) {
		refuse(client, "its line has PAUSED=yes (%s:%u): it fires when that is taken out",
		       schedule->file, schedule->definition->line);
		return;
	}
	if (schedule->paused == paused) {
		agree(client);
		return;
	}
	client->busy = true;
	schedule_pause(schedule, paused, pause_done, client);
}

static void do_pause(struct client *client, char **words)
{
	set_paused(client, words[1], true);
}

static void do_resume(struct client *client, char **words)
{
	set_paused(client, words[1], false);
}

static void count_done(struct client *client, struct firing_counts counts)
{
	answer(client, json_pack("{s:b, s:I, s:I, s:I, s:I}", "ok", 1,
				 "made", (json_int_t)counts.made,
				 "there", (json_int_t)counts.there,
				 "skipped", (json_int_t)counts.skipped,
				 "waiting", (json_int_t)counts.waiting));
}

static void run_done(struct op *op)
{
	struct client *client = op->firing->request;
	struct firing_counts counts = firing_end(op);

	if (op->failed)
		refuse(client, "the store can't be written: no job was made");
	else
		count_done(client, counts);
	unbusy(client);
}

static bool taken(struct client *client)
{
	if (command_draining())
		refuse(client, "the server takes no new jobs: it drains");
	return !command_draining();
}

/* A time that is no whole second is none for which the schedule itself fires. */
static void do_run(struct client *client, char **words)
{
	struct schedule *schedule = find(client, words[1]);
	int64_t now = alarm_wall();
	struct op *op;

	if (!schedule || !taken(client))
		return;
	now += now % SECOND == 0;
	op = schedule->unwritten ? NULL : firing_new(schedule, &now, 1);
	if (!op) {
		refuse(client, "it can't be run yet: try again");
		return;
	}
	client->busy = true;
	op->firing->request = client;
	firing_submit(op, run_done);
}

static void backfill_on(struct client *client);

static void backfill_ends(struct client *client)
{
	schedule_release(client->backfill.schedule);
	unbusy(client);
}

static void backfilled(struct op *op)
{
	struct client *client = op->firing->request;
	struct firing_counts *sum = &client->backfill.counts, counts = firing_end(op);

	sum->made += counts.made;
	sum->there += counts.there;
	if (!op->failed) {
		backfill_on(client);
		return;
	}
	refuse(client, "the store can't be written: only %zu jobs were made. Try again",
	       sum->made);
	backfill_ends(client);
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

/* Whose client has gone ends. */
static void backfill_on(struct client *client)
{
	struct backfill *backfill = &client->backfill;
	int64_t times[BACKFILL_PIECE];
	struct op *op = NULL;
	size_t count = 0;

	if (client->bev && backfill->schedule->definition)
		count = next_piece(backfill, times);
	if (count)
		op = firing_new(backfill->schedule, times, count);
	if (!op) {
		if (count)
			refuse(client, "there is no memory: %zu jobs were made",
			       backfill->counts.made);
		else
			count_done(client, backfill->counts);
		backfill_ends(client);
		return;
	}
	op->firing->overlap = true;
	op->firing->request = client;
	firing_submit(op, backfilled);
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

/* What is older may have had its jobs, and that was forgotten. */
static bool is_forgotten(struct client *client, int64_t from, int64_t now)
{
	int64_t first = now - history / SECOND;
	char text[sizeof("2027-01-01T00:00:00Z")] = "";
	struct tm tm;

	if (first < schedule_forgotten() / SECOND)
		first = schedule_forgotten() / SECOND;
	if (from > first)
		return false;
	first++;
	if (gmtime_r(&first, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	refuse(client, "what is before %s may have had its jobs, and the history has forgotten it;"
	       " begin there", text);
	return true;
}

static bool backfill_fits(struct client *client, const struct schedule *schedule, int64_t from,
			  int64_t to)
{
	int64_t now = alarm_wall() / SECOND;

	if (from > to)
		refuse(client, "the first time comes after the last one");
	else if (to > now)
		refuse(client, "the last time is not over yet: the schedule fires by itself then");
	else if (is_forgotten(client, from, now))
		return false;
	else if (count_jobs(schedule, from, to) > BACKFILL_MOST)
		refuse(client, "that is more than %d jobs: take a shorter time", BACKFILL_MOST);
	else
		return true;
	return false;
}

/* A time as @at has it, in the schedule's zone, or seconds since 1970 */
static bool take_time(struct client *client, const struct schedule *schedule, const char *text,
		      int64_t *seconds)
{
	const char *zone = schedule->definition->zone;
	struct calendar_error error;
	struct calendar *calendar;
	char at[100];
	int length = snprintf(at, sizeof(at), "@at %s", text);

	if (number_of(text, seconds))
		return true;
	if (length >= (int)sizeof(at)) {
		refuse(client, "this is no time like 2027-01-01T00:00Z");
		return false;
	}
	calendar = calendar_parse(at, length, *zone ? zone : NULL, &error);
	if (!calendar) {
		refuse(client, "%s: %s", text, error.text);
		return false;
	}
	*seconds = calendar_next(calendar, -1);
	calendar_free(calendar);
	return true;
}

static void do_backfill(struct client *client, char **words)
{
	struct schedule *schedule = find(client, words[1]);
	int64_t from, to;

	if (!schedule || !taken(client))
		return;
	if (!take_time(client, schedule, words[2], &from) ||
	    !take_time(client, schedule, words[3], &to))
		return;
	if (!backfill_fits(client, schedule, from, to))
		return;
	client->busy = true;
	client->backfill = (struct backfill){
		.schedule = schedule_hold(schedule), .at = from - 1, .to = to,
	};
	backfill_on(client);
}

static const struct {
	const char *name;
	int words, more;	/* that follow it, and that may */
	void (*run)(struct client *client, char **words);
} requests[] = {
	{ "list", 0, 0, do_list },
	{ "show", 1, 0, do_show },
	{ "history", 1, 1, do_history },
	{ "pause", 1, 0, do_pause },
	{ "resume", 1, 0, do_resume },
	{ "run", 1, 0, do_run },
	{ "backfill", 3, 0, do_backfill },
};

static void take_line(struct client *client, char *line)
{
	static char empty[1];
	char *words[WORDS_MOST + 1], *rest = line;
	int count = 0;

	while (count <= WORDS_MOST && (words[count] = strsep(&rest, " ")))
		count++;
	for (int i = count; i <= WORDS_MOST; i++)
		words[i] = empty;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		if (strcmp(words[0], requests[i].name))
			continue;
		if (count - 1 >= requests[i].words &&
		    count - 1 <= requests[i].words + requests[i].more)
			requests[i].run(client, words);
		else
			refuse(client, "%s takes another number of words", requests[i].name);
		return;
	}
	refuse(client, "there is no such request");
}

/* Clients */

static void close_client(struct client *client)
{
	bufferevent_free(client->bev);
	client->bev = NULL;
	schedule_release(client->next);
	client->next = NULL;
	clients--;
	evconnlistener_enable(listener);
	if (!client->busy)
		free(client);
}

/* The next request, if there is one and the answers to those before were taken */
static void read_on(struct client *client)
{
	struct evbuffer *in = bufferevent_get_input(client->bev);
	size_t length;
	char *line;

	while (!client->busy && !client->listing && !client->closing &&
	       !evbuffer_get_length(bufferevent_get_output(client->bev))) {
		line = evbuffer_readln(in, &length, EVBUFFER_EOL_LF);
		if (!line && evbuffer_get_length(in) < LINE_MOST)
			return;
		if (!line || length >= LINE_MOST || strlen(line) != length) {
			free(line);
			refuse(client, "a request is a line of less than %d bytes", LINE_MOST);
			client->closing = true;
			bufferevent_disable(client->bev, EV_READ);
			return;
		}
		take_line(client, line);
		free(line);
	}
}

static void readable(struct bufferevent *bev, void *arg)
{
	(void)bev;
	read_on(arg);
}

static bool idle(const struct client *client)
{
	return !client->busy && !client->listing &&
		!evbuffer_get_length(bufferevent_get_output(client->bev));
}

static void sent(struct bufferevent *bev, void *arg)
{
	struct client *client = arg;

	(void)bev;
	if (client->listing && !client->busy)
		list_on(client);
	else
		read_on(client);
	if (idle(client) && (client->closing || client->eof))
		close_client(client);
}

static void gone(struct bufferevent *bev, short what, void *arg)
{
	struct client *client = arg;

	(void)bev;
	/* It waits for us, not we for it. */
	if (what & BEV_EVENT_TIMEOUT && client->busy) {
		bufferevent_enable(client->bev, EV_READ);
		return;
	}
	client->eof = what & BEV_EVENT_EOF;
	if (!client->eof || idle(client))
		close_client(client);
}

static void accepted(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *address,
		     int length, void *arg)
{
	static const struct timeval patience = { PATIENCE, 0 };
	struct client *client;

	(void)address;
	(void)length;
	(void)arg;
	if (clients >= CLIENTS_MOST) {
		evutil_closesocket(fd);
		return;
	}
	client = zalloc(sizeof(*client));
	client->bev = must(bufferevent_socket_new(loop, fd, BEV_OPT_CLOSE_ON_FREE));
	bufferevent_setcb(client->bev, readable, sent, gone, client);
	bufferevent_setwatermark(client->bev, EV_READ, 0, LINE_MOST);
	bufferevent_set_timeouts(client->bev, &patience, &patience);
	bufferevent_enable(client->bev, EV_READ | EV_WRITE);
	if (++clients >= CLIENTS_MOST)
		evconnlistener_disable(from);
}

/**
 * admin_start - answer on a unix socket
 * @base: the loop
 * @path: the socket
 * @keep: so long runs are kept that are over, in ns
 */
void admin_start(struct event_base *base, const char *path, int64_t keep)
{
	char *address;
	int fd;

	if (asprintf(&address, "unix:%s", path) < 0)
		must(NULL);
	fd = socket_open(address, NULL);
	free(address);
	if (chmod(path, 0660) < 0)
		die("%s: %s", path, strerror(errno));
	history = keep;
	loop = base;
	listener = must(evconnlistener_new(base, accepted, NULL,
					   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd));
	socket_spare(listener);
}
