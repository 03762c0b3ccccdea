// SPDX-License-Identifier: GPL-2.0
/*
 * A failure reaches somebody: what became of jobs of a tube is a job of another tube, with JSON.
 *
 * It is put in the transaction that ends the job. The first one comes at once; what happens within
 * the next minute is one more, which says how often. A tube that learns of others has nobody learn
 * of itself, so that a worker which can't send mail makes no more mail.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

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

enum event { FAILED, RECOVERED, MISSED, EVENTS };

/* Of a tube */
struct notices {
	bool failing;			/* its last job that has ended had failed */
	struct {
		int64_t next;		/* when there may be one again, by alarm_now() */
		json_int_t count;	/* of events that are to be in that */
		json_t *last;		/* what the last of them was */
	} of[EVENTS];
};

static struct job *unsent;
static size_t unsent_count;
static size_t held;			/* tubes that have notices, and stay for that */

void notice_free(struct notices *notices)
{
	for (int i = 0; notices && i < EVENTS; i++)
		json_decref(notices->of[i].last);
	free(notices);
}

static const char *tube_for(const struct tube *tube, enum event event)
{
	const struct tube_settings *settings = tube->settings;
	const char *const names[EVENTS] = {
		settings->on_failure, settings->on_recovery, settings->on_missed,
	};

	return names[event] && !settings_learns(tube->name) ? names[event] : NULL;
}

/* Sending */

static void sent(struct op *op)
{
	struct job *job = op->job;

	if (job_written(op)) {
		if (op->same) {
			job_free(job);
			return;
		}
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

static void write_job(struct job *job)
{
	struct row row;

	job->row.created = alarm_now();
	row = job->row;
	job_write(job, OP_PUT, &row, NULL, sent);
}

/* Without memory, or if the store can't be read, the log has it. */
static void send_text(const char *name, const char *text)
{
	struct tube *tube = tube_get(name);
	struct job *job = tube ? job_new(tube, strlen(text)) : NULL;

	if (job) {
		memcpy(job->row.body, text, strlen(text));
		job->row.state = READY;
		job->row.pri = PRI;
		job->row.ord = PRI;
		job->row.ttr = TTR;
		write_job(job);
	} else {
		complain("%s could not be put into %s", text, name);
	}
	if (tube)
		tube_put(tube);
}

static void send(struct tube *tube, enum event event)
{
	struct notices *notices = tube->notices;
	const char *name = tube_for(tube, event);
	json_t *last = notices->of[event].last;
	char *text;

	json_object_set_new(last, "count", json_integer(notices->of[event].count));
	text = must(json_dumps(last, JSON_COMPACT));
	/* The configuration may have changed meanwhile. */
	if (name)
		send_text(name, text);
	free(text);
	json_decref(last);
	notices->of[event].last = NULL;
	notices->of[event].count = 0;
	notices->of[event].next = alarm_now() + EVERY;
}

/* The tube stays until let_go(). */
static struct notices *notices_of(struct tube *tube)
{
	if (tube->notices)
		return tube->notices;
	tube->notices = zalloc(sizeof(*tube->notices));
	tube->users++;
	held++;
	return tube->notices;
}

/* @json is freed. */
static void happened(struct tube *tube, enum event event, int64_t count, json_t *json)
{
	struct notices *notices = notices_of(tube);

	json_decref(notices->of[event].last);
	notices->of[event].last = must(json);
	notices->of[event].count += count;
	if (alarm_now() >= notices->of[event].next)
		send(tube, event);
}

/* What happened */

static json_t *json_of(const char *bytes, size_t length)
{
	char *text = utf8_text(bytes, length, &length);
	json_t *json = json_stringn(text, length);

	free(text);
	return json;
}

static json_t *now_json(const char *event, const char *tube)
{
	time_t seconds = alarm_wall() / SECOND;
	char text[40] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return must(json_pack("{s:s, s:s, s:s, s:o}", "event", event, "tube", tube, "time", text,
			      "server", json_of(store_node, strlen(store_node))));
}

static json_t *json_of_op(const char *event, const struct op *op)
{
	const struct trace *trace = op->trace;
	json_t *json = now_json(event, op->tube->name);
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

static void failed(struct op *op)
{
	struct tube *tube = op->job->tube;

	if (tube_for(tube, FAILED))
		happened(tube, FAILED, 1, json_of_op("failed", op));
	if (tube_for(tube, RECOVERED))
		notices_of(tube)->failing = true;
}

/* The number of a job that is being put is not known, nor is it one that has ended. */
static void look_at(struct op *op)
{
	struct tube *tube = op->job->tube;

	if (op->kind == OP_CHANGE && (op->row.state == BURIED || op->to != op->tube)) {
		failed(op);
	} else if (op->kind == OP_DELETE && tube->notices && tube->notices->failing) {
		tube->notices->failing = false;
		if (tube_for(tube, RECOVERED))
			happened(tube, RECOVERED, 1, json_of_op("recovered", op));
	}
}

/** notice_submit - submit an operation of a job, and in the same transaction what others learn */
void notice_submit(struct op *op)
{
	const struct tube_settings *settings = op->job->tube->settings;

	if ((!settings->on_failure && !settings->on_recovery) || op->kind == OP_PUT ||
	    op->job->row.state != RESERVED) {
		engine->submit(op);
		return;
	}
	commit_join(true);
	engine->submit(op);
	look_at(op);
	commit_join(false);
}

/**
 * notice_missed - a schedule has missed times
 * @name: the tube in which their jobs would have been
 * @schedule: its name
 * @time: the first of them, in ns
 * @count: how many
 */
void notice_missed(const char *name, const char *schedule, int64_t time, int64_t count)
{
	struct tube *tube = tube_get(name);
	json_t *json;

	if (tube && tube_for(tube, MISSED)) {
		json = now_json("missed", name);
		json_object_set_new(json, "schedule", json_of(schedule, strlen(schedule)));
		json_object_set_new(json, "first", json_integer(time / SECOND));
		happened(tube, MISSED, count, json);
	}
	if (tube)
		tube_put(tube);
}

/* Sends what has waited, and gives whether there is nothing more to be known of the tube. */
static bool send_what_waits(struct tube *tube)
{
	bool over = !tube->notices->failing;

	for (int event = 0; event < EVENTS; event++) {
		if (tube->notices->of[event].count &&
		    alarm_now() >= tube->notices->of[event].next)
			send(tube, event);
		over = over && alarm_now() >= tube->notices->of[event].next;
	}
	return over;
}

static void let_go(struct tube *tube)
{
	notice_free(tube->notices);
	tube->notices = NULL;
	held--;
	tube_put(tube);
}

/** notice_tick - to be called each second: what has waited for its minute is sent */
void notice_tick(void)
{
	struct job *again = unsent, *job, *next;
	struct tube **list;
	size_t count;

	unsent = NULL;
	unsent_count = 0;
	DL_FOREACH_SAFE(again, job, next)
		write_job(job);
	/* A tube that goes has the last one in its place: that has its turn next time. */
	for (size_t i = 0; held && (list = tube_list(&count), i < count); i++)
		if (list[i]->notices && send_what_waits(list[i]))
			let_go(list[i]);
}
