// SPDX-License-Identifier: GPL-2.0
/*
 * Texts, times, schedules and runs as JSON.
 */
#include <stdlib.h>
#include <time.h>

#include "base/utf8.h"
#include "base/util.h"
#include "web/how.h"
#include "web/json.h"

/** json_of_text - a text. Bytes that are no UTF-8 are left out, as JSON can't have them. */
json_t *json_of_text(const char *text)
{
	json_t *json = json_string(text ? text : "");

	return json ? json : json_string("(this is not UTF-8)");
}

/** json_of_bytes - a text of any bytes: what is no UTF-8 has U+FFFD in its place */
json_t *json_of_bytes(const char *bytes, size_t length)
{
	char *text = utf8_text(bytes, length, &length);
	json_t *json = json_stringn(text, length);

	free(text);
	return must(json);
}

/** json_of_time - a time by the wall clock, to the second; null if there is none */
json_t *json_of_time(int64_t ns)
{
	time_t seconds = ns / SECOND;
	char text[40];
	struct tm tm;

	if (!ns || ns == INT64_MAX || !gmtime_r(&seconds, &tm))
		return json_null();
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

/** json_text - a text of an object; NULL: it has none */
const char *json_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

/** json_number - a member that is a whole number; 0 if there is none */
int64_t json_number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/**
 * json_add - write a member of a list in pieces
 * @out: the piece
 * @json: the member, which is freed
 * @before: the text before it, a comma or a bracket
 */
void json_add(struct evbuffer *out, json_t *json, const char *before)
{
	char *text = must(json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY |
					    JSON_REAL_PRECISION(9)) : NULL);

	json_decref(json);
	evbuffer_add_printf(out, "%s%s", before, text);
	free(text);
}

/** json_of_result - a word for how far a run has come, or how it ended */
const char *json_of_result(const struct run_row *run)
{
	static const char *const names[RUN_RESULTS] = {
		"open", "buried", "done", "failed", "skipped", "missed",
	};

	if (run->result == RUN_OPEN && run->job <= 0)
		return "waiting";
	return run->result < RUN_RESULTS ? names[run->result] : "unknown";
}

/** json_of_run - a run in short */
json_t *json_of_run(const struct run_row *run)
{
	return json_pack("{s:o, s:s}", "time", json_of_time(run->time), "result",
			 json_of_result(run));
}

/** json_of_tube - a tube: its jobs by state, and what clients of this server did */
json_t *json_of_tube(const char *name, const int64_t *count, int64_t puts, int64_t deletes,
		     unsigned int waiting, bool paused)
{
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b}",
			 "name", json_of_text(name), "ready", (json_int_t)count[READY],
			 "reserved", (json_int_t)count[RESERVED],
			 "delayed", (json_int_t)count[DELAYED],
			 "buried", (json_int_t)count[BURIED], "puts", (json_int_t)puts,
			 "deletes", (json_int_t)deletes, "waiting", (int)waiting,
			 "paused", paused);
}

/**
 * json_of_schedule - a schedule in short
 * @schedule: one that a tab has
 *
 * Nothing is said of its runs until how_take() knows them.
 */
json_t *json_of_schedule(const struct schedule *schedule)
{
	const struct definition *definition = schedule->definition;
	const struct run_row *last = &schedule->last;
	json_t *json;

	json = json_pack("{s:o, s:o, s:o, s:s, s:b, s:o}",
			 "name", json_of_text(schedule->name),
			 "when", json_of_text(definition->when),
			 "zone", json_of_text(definition->zone),
			 "tube", definition->tube, "paused", schedule_is_paused(schedule),
			 "next", schedule_is_paused(schedule) ? json_null() :
			 json_of_time(schedule_due(schedule)));
	if (!last->schedule)
		return json;
	json_object_set_new(must(json), "last", last->time ? json_of_run(last) : json_null());
	json_object_set_new(json, "how", json_string(how_words[how_is(schedule, alarm_wall())]));
	return json;
}
