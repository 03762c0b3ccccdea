// SPDX-License-Identifier: GPL-2.0
/*
 * Traces of tries, and of what somebody did, in a database of PostgreSQL.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/limits.h"
#include "base/util.h"
#include "store/postgres_link.h"
#include "store/postgres_traces.h"
#include "store/runs.h"

/* Bytes of a try, beside its note */
#define ROW_BYTES 150

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

/** pg_trace_full - has a job the most tries that are kept, so that its first ones go? */
bool pg_trace_full(const struct trace *trace)
{
	return trace && trace->try > TRACES_OF_JOB;
}

/** pg_trace_drop - forget a job's first tries when it has too many */
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
		     " $4::bigint[]) AS done(job, keep, try, made)) AS done"
		     " ON CONFLICT DO NOTHING");
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

/** pg_last_traces - the traces of some jobs, and of the runs and schedules in the answer */
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

/*
 * The same by bytes. To add them up takes the database a second for a million rows, so the table's
 * size is looked at first; that stays where rows were deleted.
 */
static bool find_cut_by_bytes(int64_t *cut)
{
	PG_STATEMENT(measure, "SELECT pg_total_relation_size('twheeld.tries')");
	PG_STATEMENT(find, "SELECT job FROM (SELECT job, until, sum(size + $2) OVER (ORDER BY"
		     " job DESC, until DESC)::bigint AS bytes FROM twheeld.tries WHERE job > 0)"
		     " AS summed WHERE bytes > $1 ORDER BY job DESC, until DESC LIMIT 1");
	PGresult *result = pg_do(&measure, "");
	bool many = PQntuples(result) && pg_int(result, 0, 0) > TRACE_BYTES_MOST;
	bool fine = pg_done(result);

	if (!fine || !many)
		return fine;
	result = pg_do(&find, "ii", (int64_t)TRACE_BYTES_MOST, (int64_t)ROW_BYTES);
	if (PQntuples(result) && pg_int(result, 0, 0) > *cut)
		*cut = pg_int(result, 0, 0);
	return pg_done(result);
}

/* The last job of those that are too many, from the first one on; 0: there are none. */
static bool find_cut(int64_t *cut)
{
	PG_STATEMENT(find, "SELECT job FROM twheeld.tries WHERE job > 0"
		     " ORDER BY job DESC, until DESC OFFSET $1 LIMIT 1");
	PGresult *result = pg_do(&find, "i", (int64_t)TRACES_MOST);

	*cut = PQntuples(result) ? pg_int(result, 0, 0) : 0;
	return pg_done(result) && find_cut_by_bytes(cut);
}

/* Where some rows end that come after one; false: it can't be read */
static bool look_on(int64_t *job, int64_t *until)
{
	PG_STATEMENT(look, "SELECT job, until FROM twheeld.tries WHERE (job, until) > ($1, $2)"
		     " ORDER BY job, until OFFSET $3 LIMIT 1");
	PGresult *result = pg_do(&look, "iii", *job, *until, (int64_t)PRUNE_PIECE - 1);
	bool more = PQntuples(result);

	*job = more ? pg_int(result, 0, 0) : INT64_MAX;
	*until = more ? pg_int(result, 0, 1) : 0;
	return pg_done(result);
}

static bool take_dropped(PGresult *result, uint32_t *forgotten)
{
	*forgotten = PQntuples(result);
	return pg_done(result);
}

/**
 * pg_traces_prune - forget what was kept for long enough, or is too much, a piece at a time
 * @forgotten: out: 0: all is done that is to be done now
 *
 * Each server goes through all rows, and looks at those of the oldest jobs in between.
 */
bool pg_traces_prune(uint32_t *forgotten)
{
	PG_STATEMENT(drop_first, "DELETE FROM twheeld.tries WHERE (job, until) IN"
		     " (SELECT job, until FROM twheeld.tries WHERE job > 0 AND job <= $1 ORDER BY job, until LIMIT $2"
		     " FOR UPDATE SKIP LOCKED) RETURNING 1");
	PG_STATEMENT(drop_old, "DELETE FROM twheeld.tries WHERE (job, until) > ($1, $2)"
		     " AND (job, until) <= ($3, $4) AND until < " PG_NOW " RETURNING 1");
	static int64_t cut, at_job = INT64_MIN, at_until;
	static unsigned int times;
	bool oldest = times % 2;
	int64_t job = oldest ? 0 : at_job, until = oldest ? 0 : at_until;
	const int64_t from_job = job, from_until = until;

	if (times++ % TRACE_COUNT == 0 && !find_cut(&cut))
		return false;
	if (cut) {
		if (!take_dropped(pg_do(&drop_first, "ii", cut, (int64_t)PRUNE_PIECE), forgotten))
			return false;
		if (*forgotten)
			return true;
		cut = 0;
	}
	if (!look_on(&job, &until) ||
	    !take_dropped(pg_do(&drop_old, "iiii", from_job, from_until, job, until), forgotten))
		return false;
	if (!oldest) {
		at_job = job == INT64_MAX ? INT64_MIN : job;
		at_until = until;
	}
	return true;
}
