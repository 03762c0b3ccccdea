// SPDX-License-Identifier: GPL-2.0
/*
 * What is written of tries, and of what somebody did, to a database of PostgreSQL.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/limits.h"
#include "base/util.h"
#include "store/postgres_link.h"
#include "store/postgres_traces.h"
#include "store/runs.h"

/** pg_trace_arrays - the columns of the traces of some operations: TRACE_NAMES */
void pg_trace_arrays(struct op **ops, size_t count, struct pg_array *arrays)
{
	for (size_t i = 0; i < TRACE_ARRAYS; i++)
		pg_array_begin(&arrays[i], i < 7 ? BIGINT : i < 9 ? TEXT : BYTEA, count);
	for (size_t i = 0; i < count; i++) {
		const struct trace *trace = ops[i]->trace;
		const int64_t numbers[] = {
			trace->keep, trace->size, trace->try, trace->deed, trace->made, trace->due,
			trace->begun,
		};

		for (size_t j = 0; j < ARRAY_SIZE(numbers); j++)
			pg_array_number(&arrays[j], numbers[j]);
		pg_array_add(&arrays[7], ops[i]->tube->name, strlen(ops[i]->tube->name));
		pg_array_add(&arrays[8], trace->by, strlen(trace->by));
		pg_array_add(&arrays[9], trace->note ? trace->note : "", trace->size);
	}
	pg_arrays_end(arrays, TRACE_ARRAYS);
}

/** pg_trace_full - has a job so many tries that the first ones are forgotten? */
bool pg_trace_full(const struct trace *trace)
{
	return trace && trace->try > TRACES_OF_JOB;
}

/** pg_trace_drop - forget the first ones, when there are more */
bool pg_trace_drop(const struct trace *trace)
{
	PG_STATEMENT(drop, "DELETE FROM twheeld.tries WHERE job = $1 AND try <= $2");

	return !pg_trace_full(trace) ||
		pg_done(pg_do(&drop, "ii", trace->job, (int64_t)trace->try - TRACES_OF_JOB));
}

/**
 * pg_trace_acts - write what somebody did to a schedule, or to jobs that are nobody's
 * @op: it, which has a trace, or none
 * @jobs: the jobs; NULL: the trace says of what it is
 * @count: how many; those of schedules alone are kept, or all of the tube
 */
bool pg_trace_acts(const struct op *op, const struct found_job *jobs, size_t count)
{
	PG_STATEMENT(add, TRACE_INTO "(SELECT job, keep, 0 AS size, try, $5::bigint AS deed, made,"
		     " 0 AS due, 0 AS begun, $6::text AS tube, $7::text AS client,"
		     " ''::bytea AS note FROM unnest($1::bigint[], $2::bigint[], $3::bigint[],"
		     " $4::bigint[]) AS done(job, keep, try, made)) AS done" TRACE_ONCE);
	const struct trace *trace = op->trace;
	int64_t *numbers[4];
	char *arrays[4];
	size_t length = 0;
	bool fine = true;

	if (!trace)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		numbers[i] = must(calloc(count + 1, sizeof(*numbers[i])));
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &jobs[i].row;

		if (!row->scheduled && !trace->keep)
			continue;
		numbers[0][length] = row->id;
		numbers[1][length] = row->scheduled ? store_history : trace->keep;
		numbers[2][length] = row->reserves;
		numbers[3][length++] = row->created;
	}
	if (!jobs) {
		numbers[0][0] = trace->job;
		numbers[1][0] = trace->keep;
		length = 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		arrays[i] = pg_numbers(numbers[i], length);
		free(numbers[i]);
	}
	if (length)
		fine = pg_done(pg_do(&add, "ssssiss", arrays[0], arrays[1], arrays[2], arrays[3],
				     (int64_t)trace->deed, jobs ? jobs[0].tube : "", trace->by));
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		free(arrays[i]);
	return fine;
}

static char *whose(const struct runs_asked *asked)
{
	int64_t *numbers = must(calloc(asked->count + asked->found + 1, sizeof(*numbers)));
	size_t count = 0;
	char *array;

	if (asked->job)
		numbers[count++] = asked->job;
	for (size_t i = 0; asked->trace && i < asked->count; i++)
		numbers[count++] = -asked->schedules[i];
	for (size_t i = 0; asked->trace && i < asked->found; i++)
		if (asked->runs[i].job > 0)
			numbers[count++] = asked->runs[i].job;
	array = pg_numbers(numbers, count);
	free(numbers);
	return array;
}

/** pg_last_traces - the traces of some jobs, and of runs and schedules that were told */
bool pg_last_traces(struct runs_asked *asked)
{
#define TRACES(note) "SELECT try, deed, made, due, begun, ended, tube, client, " note ", job" \
	" FROM twheeld.tries WHERE job = ANY ($1::bigint[]) ORDER BY until DESC LIMIT $2"
	PG_STATEMENT(get, TRACES("substr(note, 1, 256)"));
	PG_STATEMENT(get_all, TRACES("note"));
	PGresult *result;
	char *jobs;

	if (!asked->trace && !asked->job)
		return true;
	jobs = whose(asked);
	result = pg_do(asked->notes ? &get_all : &get, "si", jobs, (int64_t)TRACES_TOLD);
	free(jobs);
	for (int i = 0; result && i < PQntuples(result); i++) {
		const struct trace trace = {
			.try = pg_int(result, i, 0), .deed = pg_int(result, i, 1),
			.made = pg_int(result, i, 2), .due = pg_int(result, i, 3),
			.begun = pg_int(result, i, 4), .ended = pg_int(result, i, 5),
			.tube = PQgetvalue(result, i, 6), .by = PQgetvalue(result, i, 7),
			.note = PQgetvalue(result, i, 8), .size = PQgetlength(result, i, 8),
			.job = pg_int(result, i, 9),
		};

		runs_add_trace(asked, &trace);
	}
	return pg_done(result);
}

/* Other servers write, too. All of an index is read. */
static bool count_all(int64_t *rows, int64_t *bytes)
{
	PG_STATEMENT(get, "SELECT count(*), coalesce(sum(size), 0)::bigint FROM twheeld.tries");
	PGresult *result = pg_do(&get, "");

	if (result) {
		*rows = pg_int(result, 0, 0) - TRACES_MOST;
		*bytes = pg_int(result, 0, 1) - TRACE_BYTES_MOST;
	}
	return pg_done(result);
}

/** pg_traces_prune - forget what was kept for long enough, or is too much; tells how many */
bool pg_traces_prune(uint32_t *forgotten)
{
	PG_STATEMENT(drop, "DELETE FROM twheeld.tries WHERE (job, until, size) IN"
		     " (SELECT job, until, size FROM twheeld.tries WHERE until < " PG_NOW
		     " OR $1::bigint = 1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)"
		     " RETURNING size");
	static int64_t rows, bytes, times;	/* by which there are too many */
	PGresult *result;

	if (times++ % TRACE_COUNT == 0 && !count_all(&rows, &bytes))
		return false;
	result = pg_do(&drop, "ii", (int64_t)(rows > 0 || bytes > 0), (int64_t)PRUNE_PIECE);
	for (int i = 0; result && i < PQntuples(result); i++) {
		rows--;
		bytes -= pg_int(result, i, 0);
	}
	*forgotten = PQntuples(result);
	return pg_done(result);
}
