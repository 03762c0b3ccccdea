// SPDX-License-Identifier: GPL-2.0
/*
 * A failure reaches somebody: what became of jobs of a tube, or of a schedule, is a job of another
 * tube, with JSON.
 *
 * It is put in the transaction that ends the job. The first one comes at once; what happens within
 * the next minute is one more, which says how often. A tube that learns of others has nobody learn
 * of itself, so that a worker which can't send mail makes no more mail; and what it gets is no job
 * of a schedule.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>
#include <utlist.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "base/util.h"
#include "jobs/engine.h"
#include "jobs/notice.h"
#include "jobs/tube.h"

#define EVERY (60 * SECOND)
#define PRI 1024
#define TTR 120
/* Jobs that could not be written, and are tried again */
#define UNSENT_MOST 1000
/* Seconds for which it is known that a time was told to be late, also over a crash */
#define LATE_KEPT (30 * 86400)

static bool none(int64_t id, struct notice_schedule *found)
{
	return false;
}

bool (*notice_find)(int64_t id, struct notice_schedule *found) = none;

/* Of a tube, or a schedule */
struct notices {
	bool failing;			/* the last job of the tube that has ended had failed */
	struct {
		char to[TUBE_NAME_MAX + 1];
		int64_t next;		/* when there may be one again, by alarm_now() */
		json_int_t count;	/* of what is to be in that */
		json_t *last;		/* what the last of it was */
	} of[NEWS_KINDS];
	UT_hash_handle hash;
	char name[];			/* after a t or an s: the tube's or the schedule's */
};

static struct notices *all;
static size_t failing_count;
static struct job *unsent;
static size_t unsent_count;

/* @make: if there are none, make them; else gives NULL then */
static struct notices *notices_of(char kind, const char *name, bool make)
{
	size_t length = strlen(name) + 1;
	struct notices *notices = zalloc(sizeof(*notices) + length + 1), *there;

	notices->name[0] = kind;
	strcpy(notices->name + 1, name);
	HASH_FIND(hash, all, notices->name, length, there);
	if (!there && make) {
		HASH_ADD(hash, all, name, length, notices);
		return notices;
	}
	free(notices);
	return there;
}

static const char *tube_for(const struct tube *tube, enum news news)
{
	const char *to = tube->settings->tells[news];

	return to && !settings_learns(tube->name) ? to : NULL;
}

/* Sending */

/* A recovery was told: the next one comes a minute later at the earliest. */
static void note_recovery(int64_t id)
{
	struct notice_schedule schedule;

	if (notice_find(id, &schedule))
		notices_of('s', schedule.name, true)->of[NEWS_RECOVERED].next = alarm_now() + EVERY;
}

/* It is not sent again if what it is about did not happen. */
static void sent(struct op *op)
{
	struct job *job = op->job;
	bool fine = job_written(op);

	if (fine ? op->same != 0 : op->moot) {
		job_free(job);
	} else if (fine) {
		if (op->failing)
			note_recovery(op->failing);
		free(job->key);
		job->key = NULL;
		job_put(job->tube);
		job_attach(job, op->row.state);
	} else if (unsent_count < UNSENT_MOST) {
		unsent_count++;
		DL_APPEND(unsent, job);
	} else {
		complain("%.*s could not be put into %s", (int)job->row.size, job->row.body,
			 job->tube->name);
		job_free(job);
	}
}

static struct op *new_put(struct job *job)
{
	struct op *op = zalloc(sizeof(*op));

	job->row.created = alarm_now();
	job->busy = true;
	op->kind = OP_PUT;
	op->row = job->row;
	op->at = alarm_now();
	op->tube = &job->tube->commit;
	op->to = op->tube;
	op->unique = job->tube->settings->unique && !job->key;
	op->key = job->key;
	op->failing = job->row.scheduled;
	op->row.scheduled = 0;
	op->job = job;
	op->done = sent;
	return op;
}

/* Without memory, or if the store can't be read, the log has it. @json is freed. */
static struct job *new_job(const char *name, json_t *json)
{
	char *text = must(json_dumps(json, JSON_COMPACT));
	struct tube *tube = tube_get(name);
	struct job *job = tube ? job_new(tube, strlen(text)) : NULL;

	if (job) {
		memcpy(job->row.body, text, strlen(text));
		job->row.state = READY;
		job->row.pri = PRI;
		job->row.ord = PRI;
		job->row.ttr = TTR;
	} else {
		complain("%s could not be put into %s", text, name);
	}
	if (tube)
		tube_put(tube);
	free(text);
	json_decref(json);
	return job;
}

/* The job of what has happened up to now */
static struct job *job_of(struct notices *notices, enum news news)
{
	json_t *last = notices->of[news].last;

	json_object_set_new(last, "count", json_integer(notices->of[news].count));
	notices->of[news].last = NULL;
	notices->of[news].count = 0;
	notices->of[news].next = alarm_now() + EVERY;
	return new_job(notices->of[news].to, last);
}

/* Gives whether it may be told now. @json is freed later. */
static bool happened(struct notices *notices, enum news news, const char *to, int64_t count,
		     json_t *json)
{
	json_decref(notices->of[news].last);
	notices->of[news].last = must(json);
	notices->of[news].count += count;
	strcpy(notices->of[news].to, to);
	return alarm_now() >= notices->of[news].next;
}

static void tell(struct notices *notices, enum news news, const char *to, int64_t count,
		 json_t *json)
{
	struct job *job;

	if (!happened(notices, news, to, count, json))
		return;
	job = job_of(notices, news);
	if (job)
		engine->submit(new_put(job));
}

/* What happened */

static json_t *json_of(const char *bytes, size_t length)
{
	char *text = utf8_text(bytes, length, &length);
	json_t *json = json_stringn(text, length);

	free(text);
	return json;
}

static json_t *time_json(int64_t ns)
{
	time_t seconds = ns / SECOND;
	char text[40] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

/* @schedule: the one of which it is told, or NULL */
static json_t *now_json(enum news news, const char *tube, const struct notice_schedule *schedule)
{
	static const char *const events[NEWS_KINDS] = { "failed", "recovered", "missed", "late" };
	json_t *json = must(json_pack("{s:s, s:s, s:o, s:o}", "event", events[news], "tube", tube,
				      "time", time_json(alarm_wall()),
				      "server", json_of(store_node, strlen(store_node))));

	if (!schedule)
		return json;
	json_object_set_new(json, "schedule", json_of(schedule->name, strlen(schedule->name)));
	if (schedule->mailto)
		json_object_set_new(json, "mailto",
				    json_of(schedule->mailto, strlen(schedule->mailto)));
	return json;
}

static json_t *json_of_op(enum news news, const struct op *op,
			  const struct notice_schedule *schedule)
{
	const struct trace *trace = op->trace;
	json_t *json = now_json(news, op->tube->name, schedule);
	const char *end;

	json_object_set_new(json, "job", json_integer(op->row.id));
	json_object_set_new(json, "tries", json_integer(op->row.reserves));
	if (op->to != op->tube)
		json_object_set_new(json, "moved_to", json_string(op->to->name));
	if (!trace)
		return json;
	json_object_set_new(json, "by", json_of(trace->by, strlen(trace->by)));
	if (!trace->note)
		return json;
	end = memchr(trace->note, '\n', trace->size);
	end = end ? end : trace->note + trace->size;
	json_object_set_new(json, "said", json_of(trace->note, end - trace->note));
	if (end < trace->note + trace->size)
		json_object_set_new(json, "output",
				    json_of(end + 1, trace->note + trace->size - end - 1));
	return json;
}

/* The number of a job that is being put is not known, nor is it one that has ended. */
static enum news news_of(const struct op *op)
{
	if (op->job->row.state != RESERVED)
		return NEWS_KINDS;
	if (op->kind == OP_CHANGE && (op->row.state == BURIED || op->to != op->tube))
		return NEWS_FAILED;
	return op->kind == OP_DELETE ? NEWS_RECOVERED : NEWS_KINDS;
}

static void set_failing(struct notices *notices, bool failing)
{
	if (failing == notices->failing || (failing && failing_count == FAILING_MOST))
		return;
	notices->failing = failing;
	failing_count += failing ? 1 : -1;
}

static void tell_of_tube(struct op *op, enum news news)
{
	const struct tube *tube = op->job->tube;
	const char *to = tube_for(tube, news);
	struct notices *notices;

	if (!to && !(news == NEWS_FAILED && tube_for(tube, NEWS_RECOVERED)))
		return;
	notices = notices_of('t', tube->name, true);
	if (to && (news == NEWS_FAILED || notices->failing))
		tell(notices, news, to, 1, json_of_op(news, op, NULL));
	set_failing(notices, news == NEWS_FAILED && tube_for(tube, NEWS_RECOVERED));
}

/*
 * The store knows whether a schedule has failed, and is the only one where servers share it: what
 * tells of a recovery is put if that was so. Within a minute of the last one it waits for the next
 * run.
 */
static void tell_of_schedule(struct op *op, enum news what, const struct notice_schedule *schedule)
{
	const char *to = schedule->tells[what];
	struct notices *notices;
	struct job *job;

	if (!to)
		return;
	if (what == NEWS_FAILED) {
		notices = notices_of('s', schedule->name, true);
		tell(notices, what, to, 1, json_of_op(what, op, schedule));
		return;
	}
	notices = notices_of('s', schedule->name, false);
	if (notices && alarm_now() < notices->of[what].next)
		return;
	job = new_job(to, json_of_op(what, op, schedule));
	if (!job)
		return;
	job->row.scheduled = op->job->row.scheduled;
	engine->submit(new_put(job));
}

/** notice_submit - submit an operation of a job, and in the same transaction what others learn */
void notice_submit(struct op *op)
{
	const char *const *of_tube = op->job->tube->settings->tells;
	struct notice_schedule schedule = { .name = NULL };
	int64_t id = op->job->row.scheduled;
	enum news news = NEWS_KINDS;

	if (of_tube[NEWS_FAILED] || of_tube[NEWS_RECOVERED] || id)
		news = news_of(op);
	if (news != NEWS_KINDS && id && !notice_find(id, &schedule))
		schedule.name = NULL;
	if (news == NEWS_FAILED && schedule.name && schedule.tells[NEWS_RECOVERED])
		op->failing = id;
	if (news == NEWS_KINDS || (!of_tube[NEWS_FAILED] && !of_tube[NEWS_RECOVERED] &&
				   (!schedule.name || !schedule.tells[news]))) {
		engine->submit(op);
		return;
	}
	commit_join(true);
	engine->submit(op);
	tell_of_tube(op, news);
	if (schedule.name)
		tell_of_schedule(op, news, &schedule);
	commit_join(false);
}

static json_t *missed_json(const struct notice_schedule *schedule, bool of_tube, int64_t time)
{
	json_t *json = now_json(NEWS_MISSED, schedule->tube, schedule);

	if (of_tube)
		json_object_del(json, "mailto");
	json_object_set_new(json, "first", json_integer(time / SECOND));
	return json;
}

/* Whom the schedule's tube tells, or the schedule itself */
static const char *missed_for(const struct notice_schedule *schedule, bool of_tube)
{
	const char *to = of_tube ? settings_tube(schedule->tube)->tells[NEWS_MISSED] :
		schedule->tells[NEWS_MISSED];

	return to && !(of_tube && settings_learns(schedule->tube)) ? to : NULL;
}

static struct notices *missed_notices(const struct notice_schedule *schedule, bool of_tube)
{
	return notices_of(of_tube ? 't' : 's', of_tube ? schedule->tube : schedule->name, true);
}

/**
 * notice_missed - a schedule misses times: what is told of it at once
 * @schedule: the schedule
 * @time: the first of them, in ns
 * @count: how many
 * @told: out: for notice_missed_later()
 *
 * Return: puts that go into the transaction which says so, each with the next one, and then to
 * notice_end(); or NULL.
 */
struct op *notice_missed(const struct notice_schedule *schedule, int64_t time, int64_t count,
			 unsigned int *told)
{
	struct op *first = NULL, *op;

	*told = 0;
	for (unsigned int of_tube = 0; of_tube < 2; of_tube++) {
		const char *to = missed_for(schedule, of_tube);
		struct notices *notices = to ? missed_notices(schedule, of_tube) : NULL;
		struct job *job = NULL;

		if (!to || alarm_now() < notices->of[NEWS_MISSED].next)
			continue;
		*told |= 1U << of_tube;
		happened(notices, NEWS_MISSED, to, count, missed_json(schedule, of_tube, time));
		job = job_of(notices, NEWS_MISSED);
		if (!job)
			continue;
		op = new_put(job);
		op->next = first;
		first = op;
	}
	return first;
}

/** notice_missed_later - the times were missed, and that was written: the rest of what is told */
void notice_missed_later(const struct notice_schedule *schedule, int64_t time, int64_t count,
			 unsigned int told)
{
	for (unsigned int of_tube = 0; of_tube < 2; of_tube++) {
		const char *to = missed_for(schedule, of_tube);

		if (to && !(told & 1U << of_tube))
			tell(missed_notices(schedule, of_tube), NEWS_MISSED, to, count,
			     missed_json(schedule, of_tube, time));
	}
}

/** notice_end - the transaction with a put of notice_missed() is over; the put is freed */
void notice_end(struct op *put, bool failed)
{
	put->failed = failed;
	put->moot = failed;
	sent(put);
	free(put);
}

/**
 * notice_late - runs of a schedule are late
 * @schedule: the schedule
 * @id: its number
 * @time: the first time of those of which it was not told, in ns: told once, also over a crash
 * @count: how many
 */
void notice_late(const struct notice_schedule *schedule, int64_t id, int64_t time, int64_t count)
{
	json_t *json = now_json(NEWS_LATE, schedule->tube, schedule);
	struct job *job;

	json_object_set_new(json, "first", json_integer(time / SECOND));
	json_object_set_new(json, "count", json_integer(count));
	job = new_job(schedule->tells[NEWS_LATE], json);
	if (!job)
		return;
	job->key = zalloc(sizeof(*job->key));
	snprintf(job->key->text, sizeof(job->key->text), "twheeld/late/%lld/%lld", (long long)id,
		 (long long)time);
	job->key->how = KEY_IGNORE;
	job->key->lasts = LATE_KEPT;
	engine->submit(new_put(job));
}

/* Sends what has waited its minute, all if @ending; gives whether there is no more to be known. */
static bool send_what_waits(struct notices *notices, bool ending)
{
	bool over = !notices->failing;

	for (int news = 0; news < NEWS_KINDS; news++) {
		struct job *job;

		if (notices->of[news].count &&
		    (ending || alarm_now() >= notices->of[news].next)) {
			job = job_of(notices, news);
			if (job)
				engine->submit(new_put(job));
		}
		over = over && alarm_now() >= notices->of[news].next;
	}
	return over;
}

/**
 * notice_tick - what has waited for its minute is sent
 * @ending: false: to be called each second; true: the server ends, and nobody would send later what
 *	waits: before commit_stop()
 */
void notice_tick(bool ending)
{
	struct notices *notices, *next_notices;
	struct job *again = unsent, *job, *next;

	unsent = NULL;
	unsent_count = 0;
	DL_FOREACH_SAFE(again, job, next)
		engine->submit(new_put(job));
	HASH_ITER(hash, all, notices, next_notices) {
		if (!send_what_waits(notices, ending))
			continue;
		HASH_DELETE(hash, all, notices);
		free(notices);
	}
}
