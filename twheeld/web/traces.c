// SPDX-License-Identifier: GPL-2.0
/*
 * Traces of tries of jobs, and of what somebody did, as JSON.
 *
 * Names, and what workers said, are for those who may see bodies.
 */
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "store/runs.h"
#include "web/jobs.h"
#include "web/json.h"
#include "web/traces.h"

static void add_note(json_t *json, const struct trace *trace, enum detail detail)
{
	const char *end = memchr(trace->note, '\n', trace->size);
	size_t line = end ? (size_t)(end - trace->note) : trace->size;

	json_object_set_new(json, "by", json_of_text(trace->by));
	if (trace->size)
		json_object_set_new(json, "said", json_of_bytes(trace->note, line));
	if (detail == DETAIL_ALL && end)
		json_object_set_new(json, "output",
				    json_of_bytes(end + 1, trace->size - line - 1));
}

/** json_of_trace - what is told of a try, or of what somebody did */
json_t *json_of_trace(const struct trace *trace, enum detail detail)
{
	static const char *const words[DEEDS] = {
		"done", "released", "buried", "timed out", "left", "kicked", "deleted", "paused",
		"resumed", "run", "backfilled",
	};
	const char *word = trace->deed < DEEDS ? words[trace->deed] : "unknown";
	json_t *json = json_pack("{s:s, s:o}", "what", word, "ended", json_of_time(trace->ended));

	must(json);
	if (trace->try)
		json_object_set_new(json, "try", json_integer(trace->try));
	if (trace->begun) {
		json_object_set_new(json, "begun", json_of_time(trace->begun));
		json_object_set_new(json, "seconds", json_real((trace->ended - trace->begun) /
							       MILLISECOND / 1e3));
	}
	if (trace->due)
		json_object_set_new(json, "due", json_of_time(trace->due));
	if (detail != DETAIL_TIMES)
		add_note(json, trace, detail);
	return json;
}

/**
 * json_of_traces - the traces of a job, or of a schedule
 * @asked: the store's answer
 * @job: the job's number; below 0: a schedule's
 * @detail: how much of it is for who asks
 *
 * Return: an array, the last first.
 */
json_t *json_of_traces(const struct runs_asked *asked, int64_t job, enum detail detail)
{
	json_t *array = must(json_array());

	for (size_t i = 0; i < asked->traced; i++)
		if (asked->traces[i].job == job)
			json_array_append_new(array, json_of_trace(&asked->traces[i], detail));
	return array;
}

static void told(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	const struct trace *first = asked->traces;
	struct ask *ask = asked->arg;

	if (op->failed)
		http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be read");
	else if (!asked->traced)
		http_fail(ask, HTTP_NOTFOUND, "nothing is kept of such a job: its tube needs a"
			  " 'keep' before it is reserved; see twheeld.conf(5)");
	else
		http_json(ask, HTTP_OK, json_pack("{s:I, s:o, s:o, s:o}", "job",
						  (json_int_t)asked->job, "tube",
						  json_of_text(first->tube), "created",
						  json_of_time(first->made), "tries",
						  json_of_traces(asked, asked->job, DETAIL_ALL)));
	runs_free(asked);
}

/** traces_ask - ask for the traces of the job that @ask is about; @notes: and what workers said */
void traces_ask(struct ask *ask, bool notes, void (*done)(struct op *op))
{
	struct runs_asked *asked = zalloc(sizeof(*asked));

	asked->op.kind = OP_RUNS;
	asked->op.done = done;
	asked->arg = ask;
	asked->job = strtoll(ask->name, NULL, 10);
	asked->notes = notes;
	store->runs(asked);
}

/** traces_of_job - answer with the traces of a job, also of one that is there no more */
void traces_of_job(struct ask *ask)
{
	if (jobs_is_one(ask))
		traces_ask(ask, true, told);
}
