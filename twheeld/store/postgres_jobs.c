// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on jobs in a database of PostgreSQL.
 *
 * Each statement names the state that it wants a job in: with its holder's token, or with no
 * holder. A job that has another state by then is left alone, and the client's answer is that
 * there is none.
 */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/postgres_array.h"
#include "store/postgres_jobs.h"
#include "store/postgres_link.h"
#include "store/postgres_listen.h"
#include "store/postgres_runs.h"
#include "store/postgres_traces.h"

/* Jobs that become ready, or are kicked, in a transaction */
#define PIECE 1000
/* Bytes of bodies that one operation takes, not counting its last job's */
#define TAKE_BYTES (16 << 20)

#define COLUMNS "jobs.id, jobs.tube, jobs.state, jobs.ord, jobs.pri, jobs.delay, jobs.ttr," \
	" jobs.created, jobs.reserves, jobs.timeouts, jobs.releases, jobs.buries, jobs.kicks," \
	" jobs.scheduled, jobs.token, jobs.tries, jobs.body"

/* The jobs that took has: by the index, however large the planner takes the table to be */
#define TOOK "jobs.id = ANY (ARRAY(SELECT id FROM took))"

/* Reserve a job for the session $1. */
#define RESERVE "UPDATE twheeld.jobs SET state = 3, owner = $1, token = jobs.token + 1," \
	" reserves = reserves + 1, ord = " PG_NOW " + ttr * 1000000000" \
	" WHERE " TOOK " RETURNING " COLUMNS
/* How long until the row of a limit that another server holds is looked at again */
#define LIMIT_HELD (5 * MILLISECOND)
/* Tubes that take_head() looks at */
#define HEADS_MOST 4

/* A job's order: when it is due, or was buried; else its priority. @number: from order_of() */
#define ORDER(state, number) number " + CASE " state " WHEN 0 THEN 0 ELSE " PG_NOW " END"

static void take_row(const PGresult *result, int at, struct found_job *found)
{
	struct row *row = &found->row;
	uint32_t *small[] = {
		&row->pri, &row->delay, &row->ttr, NULL, &row->reserves, &row->timeouts,
		&row->releases, &row->buries, &row->kicks,
	};

	row->id = pg_int(result, at, 0);
	strncpy(found->tube, PQgetvalue(result, at, 1), TUBE_NAME_MAX);
	row->state = pg_int(result, at, 2);
	row->ord = pg_int(result, at, 3);
	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		if (small[i])
			*small[i] = pg_int(result, at, 4 + i);
	row->created = pg_int(result, at, 7);
	row->scheduled = pg_int(result, at, 13);
	row->token = pg_int(result, at, 14);
	row->tries = pg_int(result, at, 15);
	row->size = PQgetlength(result, at, 16);
	row->body = must(malloc(row->size + 1));
	memcpy(row->body, PQgetvalue(result, at, 16), row->size);
}

static struct found_job *more_jobs(struct request *request, size_t count)
{
	size_t all = request->found + count;

	request->jobs = must(realloc(request->jobs, (all + 1) * sizeof(*request->jobs)));
	memset(request->jobs + request->found, 0, count * sizeof(*request->jobs));
	return request->jobs + request->found;
}

static bool take_rows(struct request *request, PGresult *result)
{
	int count = PQntuples(result);
	struct found_job *jobs;

	if (!result)
		return false;
	jobs = more_jobs(request, count);
	for (int i = 0; i < count; i++)
		take_row(result, i, &jobs[i]);
	request->found += count;
	return pg_done(result);
}

/* Take the answer of a request that gives tubes and numbers, and no jobs. */
static bool take_tubes(struct request *request, PGresult *result)
{
	int count = PQntuples(result);
	struct found_job *jobs;

	if (!result)
		return false;
	jobs = more_jobs(request, count);
	for (int i = 0; i < count; i++) {
		strncpy(jobs[i].tube, PQgetvalue(result, i, 0), TUBE_NAME_MAX);
		jobs[i].row.ord = pg_int(result, i, 1);
		jobs[i].row.scheduled = pg_int(result, i, 2);
		jobs[i].row.id = pg_int(result, i, 3);
		jobs[i].row.reserves = pg_int(result, i, 4);
		jobs[i].row.created = pg_int(result, i, 5);
	}
	request->found += count;
	return pg_done(result);
}

/** pg_forget_results - free the results of an operation that is done once more, or failed */
void pg_forget_results(struct op *op)
{
	struct request *request = container_of(op, struct request, op);

	if (op->kind < OP_TAKE)
		return;
	for (size_t i = 0; i < request->found; i++)
		free(request->jobs[i].row.body);
	free(request->jobs);
	free(request->ids);
	free(request->pushed.text);
	request->jobs = NULL;
	request->ids = NULL;
	request->pushed.text = NULL;
	request->found = 0;
}

/* Put */

static const uint8_t *digest(const struct op *op, uint8_t *space)
{
	struct sha256_ctx ctx;

	if (!op->unique)
		return NULL;
	sha256_init(&ctx);
	sha256_update(&ctx, op->row.size, (const uint8_t *)op->row.body);
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, space);
	return space;
}

static bool find_same(struct op *op, const uint8_t *hash)
{
	PG_STATEMENT(find, "SELECT id FROM twheeld.jobs WHERE tube = $1 AND digest = $2");
	PGresult *result = pg_do(&find, "sb", op->to->name, hash,
				 (size_t)SHA256_DIGEST_SIZE);

	op->same = result && PQntuples(result) ? pg_int(result, 0, 0) : 0;
	return pg_done(result);
}

/* A delayed job's delay, or a ready one's priority */
static int64_t order_of(const struct op *op)
{
	if (op->row.state == DELAYED)
		return op->row.ord - op->at;
	return op->row.state == READY ? op->row.pri : 0;
}

#define PUT_NUMBERS 6

static void put_arrays(struct op **ops, size_t count, struct pg_array *arrays)
{
	pg_array_begin(&arrays[0], TEXT, count);
	for (size_t i = 1; i <= PUT_NUMBERS; i++)
		pg_array_begin(&arrays[i], BIGINT, count);
	pg_array_begin(&arrays[PUT_NUMBERS + 1], BYTEA, count);
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &ops[i]->row;
		const int64_t numbers[PUT_NUMBERS] = {
			row->state, order_of(ops[i]), row->pri, row->delay, row->ttr, row->tries,
		};

		pg_array_add(&arrays[0], ops[i]->to->name, strlen(ops[i]->to->name));
		for (size_t j = 0; j < PUT_NUMBERS; j++)
			pg_array_number(&arrays[1 + j], numbers[j]);
		pg_array_add(&arrays[PUT_NUMBERS + 1], row->body, row->size);
	}
	pg_arrays_end(arrays, PUT_NUMBERS + 2);
}

/* Jobs of a schedule, and jobs with a unique body, come one by one. */
static bool insert(struct op **ops, size_t count, const uint8_t *hash, bool *there)
{
	PG_STATEMENT(put, "INSERT INTO twheeld.jobs(id, tube, state, ord, pri, delay, ttr, created,"
		     " reserves, timeouts, releases, buries, kicks, scheduled, token, owner,"
		     " digest, tries, body) SELECT nextval('twheeld.job_ids'), tube, state,"
		     " " ORDER("state", "ord") ", pri, delay, ttr, " PG_NOW ", 0, 0, 0, 0, 0, $1,"
		     " 1, 0, $2, tries, body FROM unnest($3::text[], $4::bigint[], $5::bigint[],"
		     " $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bytea[])"
		     " WITH ORDINALITY"
		     " AS new(tube, state, ord, pri, delay, ttr, tries, body, n) ORDER BY n"
		     " ON CONFLICT (tube, digest) WHERE digest IS NOT NULL DO NOTHING"
		     " RETURNING id, ord, created");
	struct pg_array in[PUT_NUMBERS + 2] = { 0 };
	PGresult *result;

	if (!pg_answered())
		put_arrays(ops, count, in);
	result = pg_do(&put, "ibbbbbbbbb", (int64_t)ops[0]->row.scheduled,
		       hash, (size_t)SHA256_DIGEST_SIZE,
		       in[0].data, in[0].size, in[1].data, in[1].size, in[2].data, in[2].size,
		       in[3].data, in[3].size, in[4].data, in[4].size, in[5].data, in[5].size,
		       in[6].data, in[6].size, in[7].data, in[7].size);
	pg_arrays_free(in, ARRAY_SIZE(in));
	*there = result && (size_t)PQntuples(result) == count;
	for (size_t i = 0; *there && i < count; i++) {
		ops[i]->row.id = pg_int(result, i, 0);
		ops[i]->row.token = 1;
		ops[i]->due = pg_int(result, i, 1);
		ops[i]->row.created = pg_int(result, i, 2);
		if (ops[i]->row.state == READY)
			pg_ready(ops[i]->to->name);
	}
	return pg_done(result);
}

/* What it does is the database's own: twheeld.put() has to do the same. */
static bool put_by_key(struct op *op)
{
	PG_STATEMENT(put, "SELECT id, made::int::bigint FROM twheeld.put_as($1::text, $2::bytea,"
		     " $3::bigint * interval '1 microsecond', $4::bigint, $5::bigint"
		     " * interval '1 second', $6::bytea, $7::text, $8::bigint * interval"
		     " '1 second', $9::bigint, $10::bigint)");
	int64_t wait = op->row.state == DELAYED ? op->row.ord - op->at : 0;
	uint8_t digest[JOB_KEY_DIGEST];
	PGresult *result;

	job_key_digest(op->key->text, digest);
	result = pg_do(&put, "sbiiibsiii", op->to->name, op->row.body, (size_t)op->row.size,
		       (wait + 999) / 1000, (int64_t)op->row.pri, (int64_t)op->row.ttr, digest,
		       sizeof(digest), key_hows[op->key->how], (int64_t)op->key->lasts,
		       (int64_t)op->row.delay, (int64_t)op->row.tries);
	if (PQntuples(result)) {
		op->row.id = pg_int(result, 0, 0);
		op->same = pg_int(result, 0, 1) ? 0 : op->row.id;
	}
	return pg_done(result);
}

/** pg_put_all - write new jobs; none may be a schedule's, or have a unique body */
bool pg_put_all(struct op **ops, size_t count)
{
	bool there;

	return insert(ops, count, NULL, &there);
}

/**
 * pg_put - write a new job
 *
 * A job of the same body may have kept it out, and be gone when its number is looked up.
 */
bool pg_put(struct op *op)
{
	uint8_t space[SHA256_DIGEST_SIZE];
	const uint8_t *hash = digest(op, space);
	bool there, recovered;

	if (op->failing && !pg_set_failing(op->failing, false, &recovered))
		return false;
	if (op->failing && !recovered) {
		op->same = -1;
		return true;
	}
	if (op->key)
		return put_by_key(op);
	do {
		op->same = 0;
		if (!insert(&op, 1, hash, &there))
			return false;
		if (!there && !find_same(op, hash))
			return false;
	} while (!there && !op->same);
	return true;
}

#define CHANGE "UPDATE twheeld.jobs SET digest = CASE WHEN tube = $3 THEN digest END," \
	" origin = CASE WHEN tube = $3 THEN origin ELSE tube END," \
	" tube = $3, state = $4, ord = " ORDER("$4::bigint", "$5") ", pri = $6," \
	" delay = $7, reserves = $8, timeouts = $9, releases = $10, buries = $11," \
	" kicks = $12, owner = 0, token = token + 1 WHERE id = $1 AND token = $2" \
	" AND owner = $13 RETURNING ord"

/*
 * Change a job whose token its holder has, and whose owner is this session. By the token alone it
 * could be another session's, where the database has lost the transaction that gave it to this one.
 *
 * Without a trace, there are no parameters beyond the 13th.
 */
static bool change(struct op *op)
{
	PG_STATEMENT(change, CHANGE);
	PG_STATEMENT(change_kept, "WITH changed AS (" CHANGE "), kept AS (" TRACE_INTO "(SELECT"
		     " $1::bigint AS job, $14::bigint AS keep, $15::bigint AS size,"
		     " $16::bigint AS try, $17::bigint AS deed, $18::bigint AS made,"
		     " $19::bigint AS due, $20::bigint AS begun, $21::text AS tube,"
		     " $22::text AS client, $23::bytea AS note FROM changed) AS one)"
		     " SELECT ord FROM changed");
	static const struct trace none = { .note = "" };
	const struct trace *trace = op->trace ? op->trace : &none;
	const struct row *row = &op->row;
	PGresult *result;
	bool changed;

	result = pg_do(op->trace ? &change_kept : &change,
		       op->trace ? "iisiiiiiiiiiiiiiiiiissb" : "iisiiiiiiiiii",
		       row->id, row->token, op->to->name, (int64_t)row->state, order_of(op),
		       (int64_t)row->pri, (int64_t)row->delay, (int64_t)row->reserves,
		       (int64_t)row->timeouts, (int64_t)row->releases, (int64_t)row->buries,
		       (int64_t)row->kicks, pg_session(), trace->keep, (int64_t)trace->size,
		       (int64_t)trace->try, (int64_t)trace->deed, trace->made, trace->due,
		       trace->begun, op->tube->name, trace->by, trace->note ? trace->note : "",
		       (size_t)trace->size);
	op->gone = result && !PQntuples(result);
	if (result && !op->gone)
		op->due = pg_int(result, 0, 0);
	if (!pg_done(result) || op->gone)
		return op->gone;
	if (row->state == READY)
		pg_ready(op->to->name);
	if (!pg_trace_drop(op->trace))
		return false;
	if (op->leaves_room)
		pg_ready(op->tube->name);
	if (!row->scheduled)
		return true;
	if (op->failing && !pg_set_failing(op->failing, true, &changed))
		return false;
	/*
	 * A job that goes to the dead letters, or is buried, ends its run; a released one does
	 * not.
	 */
	if (op->to != op->tube)
		return pg_run_set(row->id, RUN_FAILED);
	return row->state != BURIED || pg_run_set(row->id, RUN_BURIED);
}

#define DELETE(arrays, names, returned) "DELETE FROM twheeld.jobs USING unnest($1::bigint[]," \
	" $2::bigint[]" arrays ") WITH ORDINALITY AS old(id, token" names ", n)" \
	" WHERE jobs.id = ANY ($1::bigint[]) AND jobs.id = old.id AND jobs.token = old.token" \
	" AND owner = $3 RETURNING n" returned

/* All of them have a trace. */
static PGresult *delete_with_traces(struct op **ops, size_t count, const struct pg_array *jobs)
{
	PG_STATEMENT(delete, "WITH gone AS (" DELETE(", $4::bigint[], $5::bigint[], $6::bigint[],"
		     " $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[],"
		     " $12::text[], $13::bytea[]", ", " TRACE_NAMES("", "of_tube"),
		     ", old.id AS job, " TRACE_NAMES("old.", "of_tube AS tube"))
		     "), kept AS (" TRACE_INTO "gone) SELECT n FROM gone");
	struct pg_array in[TRACE_ARRAYS] = { 0 };
	PGresult *result;

	if (!pg_answered())
		pg_trace_arrays(ops, count, in);
	result = pg_do(&delete, "bbibbbbbbbbbb", jobs[0].data, jobs[0].size, jobs[1].data,
		       jobs[1].size, pg_session(), in[0].data, in[0].size, in[1].data, in[1].size,
		       in[2].data, in[2].size, in[3].data, in[3].size, in[4].data, in[4].size,
		       in[5].data, in[5].size, in[6].data, in[6].size, in[7].data, in[7].size,
		       in[8].data, in[8].size, in[9].data, in[9].size);
	pg_arrays_free(in, TRACE_ARRAYS);
	return result;
}

/**
 * pg_delete_all - delete jobs; op->gone where the holder has not the job's token any more
 *
 * A job may be among them twice: from its holder, and from the holder in a session that is over.
 * All have a trace, or none has.
 */
bool pg_delete_all(struct op **ops, size_t count)
{
	PG_STATEMENT(delete, DELETE("", "", ""));
	struct pg_array in[2] = { 0 };
	PGresult *result;

	if (!pg_answered()) {
		pg_array_begin(&in[0], BIGINT, count);
		pg_array_begin(&in[1], BIGINT, count);
		for (size_t i = 0; i < count; i++) {
			pg_array_number(&in[0], ops[i]->row.id);
			pg_array_number(&in[1], ops[i]->row.token);
		}
		pg_arrays_end(in, 2);
	}
	result = ops[0]->trace ? delete_with_traces(ops, count, in) :
		pg_do(&delete, "bbi", in[0].data, in[0].size, in[1].data, in[1].size,
		      pg_session());
	pg_arrays_free(in, 2);
	for (size_t i = 0; i < count; i++)
		ops[i]->gone = result;
	for (int i = 0; result && i < PQntuples(result); i++) {
		struct op *op = ops[pg_int(result, i, 0) - 1];

		op->gone = false;
		if (op->leaves_room)
			pg_ready(op->tube->name);
	}
	return pg_done(result);
}

static bool delete(struct op *op)
{
	bool fine = pg_delete_all(&op, 1) && (op->gone || pg_trace_drop(op->trace));

	if (!fine || op->gone || !op->row.scheduled)
		return fine;
	return pg_run_deleted(op->row.id);
}

static bool touch(struct op *op)
{
	PG_STATEMENT(touch, "UPDATE twheeld.jobs SET ord = " PG_NOW " + ttr * 1000000000"
		     " WHERE id = $1 AND token = $2 AND owner = $3 RETURNING id");
	PGresult *result = pg_do(&touch, "iii", op->row.id, op->row.token, pg_session());

	op->gone = result && !PQntuples(result);
	return pg_done(result);
}

/* Requests for jobs that have no holder */

#define NOT_PAUSED(tube) " AND NOT EXISTS (SELECT 1 FROM twheeld.pauses WHERE pauses.tube = " tube \
	" AND until > " PG_NOW ")"

static bool is_full(const struct request *request)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < request->found; i++)
		bytes += request->jobs[i].row.size;
	return bytes >= TAKE_BYTES;
}

static bool take_of(struct request *request, const char *tube, int64_t most)
{
	PG_STATEMENT(take, "WITH first AS (SELECT id, ord, octet_length(body)::bigint AS size"
		     " FROM twheeld.jobs WHERE tube = $2 AND state = 0" NOT_PAUSED("$2")
		     " ORDER BY ord, id LIMIT $3 FOR UPDATE SKIP LOCKED),"
		     " took AS (SELECT id FROM (SELECT id, sum(size) OVER (ORDER BY ord, id) - size"
		     " AS before FROM first) AS sums WHERE before < $4), taken AS (" RESERVE
		     ") SELECT * FROM taken ORDER BY pri, id");

	if (!take_rows(request, pg_do(&take, "isii", pg_session(), tube, most,
				      (int64_t)TAKE_BYTES)))
		return false;
	request->full = is_full(request);
	return true;
}

/* The request's tubes with jobs that can be taken, in the order of their first jobs */
static PGresult *in_order(const struct request *request)
{
	PG_STATEMENT(order, "SELECT watched.tube, head.ord, 0::bigint, head.id,"
		     " 0::bigint, 0::bigint"
		     " FROM unnest($1::text[]) AS watched(tube) CROSS JOIN LATERAL"
		     " (SELECT ord, id FROM twheeld.jobs WHERE jobs.tube = watched.tube AND state = 0 ORDER BY ord, id LIMIT 1)"
		     " AS head WHERE true" NOT_PAUSED("watched.tube")
		     " ORDER BY head.ord, head.id");

	return pg_do(&order, "s", request->tubes);
}

/* Take the first job of a tube. */
static bool take_one_of(struct request *request, const char *tube)
{
	PG_STATEMENT(take, "WITH took AS (SELECT id FROM twheeld.jobs WHERE tube = $2 AND state = 0"
		     NOT_PAUSED("$2") " ORDER BY ord, id LIMIT 1 FOR UPDATE SKIP LOCKED) "
		     RESERVE);

	return take_rows(request, pg_do(&take, "is", pg_session(), tube));
}

/* Limits */

/* What a limit allows, while this server has the tube's row */
struct allowed {
	int64_t most;
	int64_t again;		/* if all of these are taken, a further one may be in so many ns */
	int64_t full_until, now;
};

/*
 * Who has the row is found without waiting: a server that was stopped may have it. It is another
 * statement than the one that counts, which has to see what the server before has committed.
 */
static bool hold_limit(const char *tube, struct allowed *allowed)
{
	PG_STATEMENT(hold, "SELECT full_until, " PG_NOW " FROM twheeld.limits WHERE tube = $1"
		     " FOR UPDATE SKIP LOCKED");
	PG_STATEMENT(make, "INSERT INTO twheeld.limits(tube, full_until) VALUES($1, 0)"
		     " ON CONFLICT (tube) DO NOTHING RETURNING full_until, " PG_NOW);
	PGresult *result = pg_do(&hold, "s", tube);

	if (result && !PQntuples(result)) {
		PQclear(result);
		result = pg_do(&make, "s", tube);
	}
	if (PQntuples(result)) {
		allowed->full_until = pg_int(result, 0, 0);
		allowed->now = pg_int(result, 0, 1);
	} else {
		allowed->most = 0;
		allowed->again = LIMIT_HELD;
	}
	return pg_done(result);
}

static bool count_reserved(const char *tube, int64_t at_most, struct allowed *allowed)
{
	PG_STATEMENT(count, "SELECT count(*) FROM (SELECT 1 FROM twheeld.jobs WHERE tube = $1"
		     " AND state = 3 LIMIT $2) AS held");
	PGresult *result = pg_do(&count, "si", tube, at_most);

	if (PQntuples(result))
		allowed->most = least(allowed->most, at_most - pg_int(result, 0, 0));
	return pg_done(result);
}

/* After the database's clock went back, a rate waits for no more than its burst. */
static void apply_rate(const struct limit *limit, struct allowed *allowed)
{
	int64_t burst = limit->burst * limit->interval, used = allowed->full_until - allowed->now;
	int64_t most;

	used = used < 0 ? 0 : least(used, burst);
	most = (burst - used) / limit->interval;
	allowed->full_until = allowed->now + used;
	if (most >= allowed->most)
		return;
	allowed->most = most;
	allowed->again = used + (most + 1) * limit->interval - burst;
}

static bool apply_limit(const char *tube, const struct limit *limit, struct allowed *allowed)
{
	if (!limit_any(limit))
		return true;
	if (!hold_limit(tube, allowed))
		return false;
	if (allowed->most > 0 && limit->at_most && !count_reserved(tube, limit->at_most, allowed))
		return false;
	if (allowed->most > 0 && limit->interval)
		apply_rate(limit, allowed);
	return true;
}

/* So many were taken. If these are all that a rate allowed, it allows a further one later. */
static bool use_limit(struct request *request, const char *tube, const struct limit *limit,
		      const struct allowed *allowed, int64_t count)
{
	PG_STATEMENT(use, "UPDATE twheeld.limits SET full_until = $2 WHERE tube = $1");
	int64_t from = allowed->full_until > allowed->now ? allowed->full_until : allowed->now;

	if (allowed->again && count == allowed->most &&
	    (!request->again || allowed->again < request->again))
		request->again = allowed->again;
	return !count || !limit_any(limit) ||
		pg_done(pg_do(&use, "si", tube, from + count * limit->interval));
}

static bool take_within(struct request *request, const char *tube, int64_t most)
{
	const struct limit limit = request->limited ? store_limit(tube) : (struct limit){ 0 };
	struct allowed allowed = { .most = most };
	size_t had = request->found;

	if (!apply_limit(tube, &limit, &allowed))
		return false;
	if (allowed.most == 1 && !take_one_of(request, tube))
		return false;
	if (allowed.most > 1 && !take_of(request, tube, allowed.most))
		return false;
	return use_limit(request, tube, &limit, &allowed, request->found - had);
}

/*
 * Take the first job of a few tubes; where another server is just taking it, the row is NULL.
 *
 * (The tubes are numbered, without unnest(): the database guesses another length for each array,
 * and would plan each time anew.)
 */
static PGresult *take_head(const struct request *request)
{
#define WATCHED(number) "(($2::text[])[" #number "])"
	PG_STATEMENT(take, "WITH head AS (SELECT first.id FROM (VALUES " WATCHED(1) ", " WATCHED(2)
		     ", " WATCHED(3) ", " WATCHED(4) ") AS watched(tube) CROSS JOIN LATERAL"
		     " (SELECT ord, id FROM twheeld.jobs WHERE jobs.tube = watched.tube"
		     " AND state = 0 ORDER BY ord, id LIMIT 1) AS first"
		     " WHERE true" NOT_PAUSED("watched.tube") " ORDER BY first.ord, first.id"
		     " LIMIT 1), took AS (SELECT id FROM twheeld.jobs WHERE id = (SELECT id FROM"
		     " head) AND state = 0 FOR UPDATE SKIP LOCKED), taken AS (" RESERVE
		     ") SELECT taken.* FROM head LEFT JOIN taken ON true");

	return pg_do(&take, "is", pg_session(), request->tubes);
}

static bool take(struct request *request)
{
	PGresult *result;
	bool fine;

	request->again = 0;
	if (request->tube)
		return take_within(request, request->tube, request->count);
	if (request->count == 1 && request->tube_count <= HEADS_MOST && !request->limited) {
		result = take_head(request);
		if (!PQntuples(result) || !PQgetisnull(result, 0, 0))
			return take_rows(request, result);
		PQclear(result);
	}
	result = in_order(request);
	fine = result;
	for (int i = 0; fine && request->found < request->count && i < PQntuples(result); i++)
		fine = take_within(request, PQgetvalue(result, i, 0),
				   request->count - request->found);
	PQclear(result);
	return fine;
}

static bool take_job(struct request *request)
{
	PG_STATEMENT(was, "SELECT state, tube FROM twheeld.jobs WHERE id = $1 AND state <> 3"
		     " FOR UPDATE");
	PG_STATEMENT(take, "WITH took AS (SELECT id FROM twheeld.jobs WHERE id = $2) " RESERVE);
	PGresult *result = pg_do(&was, "i", request->op.row.id);
	char tube[TUBE_NAME_MAX + 1] = "";
	struct allowed allowed = { .most = 1 };
	struct limit limit;
	bool buried;

	if (!result || !PQntuples(result))
		return pg_done(result);
	buried = pg_int(result, 0, 0) == BURIED;
	strncpy(tube, PQgetvalue(result, 0, 1), TUBE_NAME_MAX);
	PQclear(result);
	limit = store_limit(tube);
	if (!apply_limit(tube, &limit, &allowed))
		return false;
	if (allowed.most <= 0)
		return true;
	if (!take_rows(request, pg_do(&take, "ii", pg_session(), request->op.row.id)) ||
	    !use_limit(request, tube, &limit, &allowed, 1))
		return false;
	return !buried || !request->jobs[0].row.scheduled ||
		pg_run_set(request->op.row.id, RUN_OPEN);
}

#define TOLD "tube, ord, scheduled, id, reserves, created"

/* What is kept of the key, too, unless a worker has the job */
static bool remove_by_key(struct request *request)
{
	PG_STATEMENT(remove, "DELETE FROM twheeld.jobs WHERE tube = $1 AND digest = $2"
		     " AND state <> 3 RETURNING " TOLD);
	PG_STATEMENT(kept, "DELETE FROM twheeld.keys WHERE tube = $1 AND key = $2 AND NOT EXISTS"
		     " (SELECT 1 FROM twheeld.jobs WHERE tube = $1 AND digest = $2)"
		     " RETURNING tube, until - " PG_NOW ", 0::bigint, job, 0::bigint, 0::bigint");
	uint8_t digest[JOB_KEY_DIGEST];
	PGresult *result;

	job_key_digest(request->op.key->text, digest);
	if (!take_tubes(request, pg_do(&remove, "sb", request->tube, digest, sizeof(digest))) ||
	    !pg_trace_acts(&request->op, request->jobs, request->found))
		return false;
	result = pg_do(&kept, "sb", request->tube, digest, sizeof(digest));
	if (!request->found && PQntuples(result) && pg_int(result, 0, 1) > 0)
		return take_tubes(request, result);
	return pg_done(result);
}

static bool remove_job(struct request *request)
{
	PG_STATEMENT(remove, "DELETE FROM twheeld.jobs WHERE id = $1 AND state <> 3"
		     " RETURNING " TOLD);

	if (request->op.key)
		return remove_by_key(request);
	if (!take_tubes(request, pg_do(&remove, "i", request->op.row.id)) ||
	    !pg_trace_acts(&request->op, request->jobs, request->found))
		return false;
	return !request->found || !request->jobs[0].row.scheduled ||
		pg_run_deleted(request->op.row.id);
}

/* The run of a job that was buried is open again. */
static bool kicked(struct request *request, PGresult *result)
{
	if (!take_tubes(request, result) ||
	    !pg_trace_acts(&request->op, request->jobs, request->found))
		return false;
	for (size_t i = 0; i < request->found; i++)
		if (request->jobs[i].row.scheduled &&
		    !pg_run_set(request->jobs[i].row.id, RUN_OPEN))
			return false;
	if (request->found)
		pg_ready(request->jobs[0].tube);
	return true;
}

#define KICK "UPDATE twheeld.jobs SET state = 0, ord = pri, kicks = kicks + 1, token = token + 1"

static bool kick_job(struct request *request)
{
	PG_STATEMENT(kick, KICK " WHERE id = $1 AND state IN (1, 2) RETURNING " TOLD);

	return kicked(request, pg_do(&kick, "i", request->op.row.id));
}

static bool kick(struct request *request)
{
	PG_STATEMENT(kick, "WITH took AS (SELECT id FROM twheeld.jobs WHERE tube = $1"
		     " AND state = $2 ORDER BY ord, id LIMIT $3 FOR UPDATE SKIP LOCKED) " KICK
		     " WHERE " TOOK " RETURNING " TOLD);
	int64_t most = request->count < PIECE ? request->count : PIECE;

	return kicked(request, pg_do(&kick, "sii", request->tube, (int64_t)request->state, most));
}

/*
 * Dead letters go back to where they came from, and are as new there. Each waits a bit longer than
 * the one before, and none longer than a delay can be.
 */
#define BACK(which) "WITH took AS (SELECT id FROM twheeld.jobs WHERE " which " AND state <> 3" \
	" AND origin IS NOT NULL ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)," \
	" waits AS (SELECT id, LEAST($3::bigint + $4::bigint * (row_number() OVER (ORDER BY id)" \
	" - 1), 4294967295000000000) AS wait FROM took)" \
	" UPDATE twheeld.jobs SET tube = origin, origin = NULL, digest = NULL," \
	" reserves = 0, kicks = kicks + 1, token = token + 1," \
	" state = CASE WHEN wait > 0 THEN 1 ELSE 0 END," \
	" ord = CASE WHEN wait > 0 THEN " PG_NOW " + wait ELSE pri END," \
	" delay = (wait + 999999999) / 1000000000 FROM waits WHERE jobs.id = waits.id AND " TOOK \
	" RETURNING jobs.tube, jobs.ord, jobs.scheduled, jobs.id, jobs.reserves, jobs.created"

static bool back(struct request *request)
{
	PG_STATEMENT(one, BACK("id = $1"));
	PG_STATEMENT(some, BACK("tube = $1"));
	int64_t most = request->count < PIECE ? request->count : PIECE;
	int64_t first = request->op.row.ord, every = request->pause;

	if (!take_tubes(request, request->op.kind == OP_BACK_JOB ?
			pg_do(&one, "iiii", request->op.row.id, most, first, every) :
			pg_do(&some, "siii", request->tube, most, first, every)) ||
	    !pg_trace_acts(&request->op, request->jobs, request->found))
		return false;
	for (size_t i = 0; i < request->found; i++)
		if (request->jobs[i].row.ord <= UINT32_MAX)
			pg_ready(request->jobs[i].tube);
	return true;
}

/*
 * Make due jobs of all tubes ready, and find when the next one is due. (Without the SELECT, the
 * time might differ from row to row as far as the database knows, and it looks at all delayed
 * jobs.)
 */
static bool promote(struct request *request)
{
	PG_STATEMENT(promote, "WITH took AS (SELECT id, ord FROM twheeld.jobs WHERE state = 1"
		     " AND ord <= (SELECT " PG_NOW ") ORDER BY ord LIMIT $1"
		     " FOR UPDATE SKIP LOCKED)"
		     " UPDATE twheeld.jobs SET state = 0, ord = pri FROM took"
		     " WHERE jobs.id = took.id AND " TOOK
		     " RETURNING jobs.tube, took.ord, jobs.scheduled, jobs.id,"
		     " jobs.reserves, jobs.created");
	PG_STATEMENT(next, "SELECT min(ord) FROM twheeld.jobs WHERE state = 1");
	PGresult *result;

	if (!take_tubes(request, pg_do(&promote, "i", (int64_t)PIECE)))
		return false;
	for (size_t i = 0; i < request->found; i++)
		pg_ready(request->jobs[i].tube);
	result = pg_do(&next, "");
	if (result)
		request->next = PQgetisnull(result, 0, 0) ? INT64_MAX : pg_int(result, 0, 0);
	return pg_done(result);
}

/* Looking */

static bool look(struct request *request)
{
	PG_STATEMENT(by_id, "SELECT " COLUMNS " FROM twheeld.jobs WHERE id = $1");
	PG_STATEMENT(first, "SELECT " COLUMNS " FROM twheeld.jobs WHERE tube = $1 AND state = $2"
		     " ORDER BY ord, id LIMIT 1");

	return take_rows(request, request->tube ?
			 pg_do(&first, "si", request->tube, (int64_t)request->state) :
			 pg_do(&by_id, "i", request->op.row.id));
}

static void take_figures(struct counts *counts, const PGresult *result)
{
	struct tube_counts *figures = NULL;

	free(counts->figures);
	counts->figures = must(calloc(PQntuples(result) + 1, sizeof(*figures)));
	counts->length = 0;
	for (int i = 0; i < PQntuples(result); i++) {
		int64_t state = pg_int(result, i, 1);

		if (!figures || strcmp(figures->tube, PQgetvalue(result, i, 0))) {
			figures = &counts->figures[counts->length++];
			strncpy(figures->tube, PQgetvalue(result, i, 0), TUBE_NAME_MAX);
		}
		if (state >= STATES)
			continue;
		figures->count[state] = pg_int(result, i, 2);
		if (state == READY)
			figures->urgent = pg_int(result, i, 3);
	}
}

static bool take_pause(struct tube_counts *figures, const char *tube)
{
	PG_STATEMENT(get, "SELECT pause, until - " PG_NOW ", count FROM twheeld.pauses"
		     " WHERE tube = $1");
	PGresult *result = pg_do(&get, "s", tube);

	if (result && PQntuples(result)) {
		figures->pauses = pg_int(result, 0, 2);
		figures->pause_left = pg_int(result, 0, 1);
		figures->pause = pg_int(result, 0, 0);
		if (figures->pause_left < 0) {
			figures->pause_left = 0;
			figures->pause = 0;
		}
	}
	return pg_done(result);
}

#define COUNT "SELECT tube, state, count(*), sum(CASE WHEN pri < 1024 THEN 1 ELSE 0 END)::bigint" \
	" FROM twheeld.jobs "

/** pg_count - count the jobs of a tube, or of all */
bool pg_count(struct counts *counts)
{
	PG_STATEMENT(of_all, COUNT "GROUP BY tube, state ORDER BY tube");
	PG_STATEMENT(of_one, COUNT "WHERE tube = $1 GROUP BY tube, state ORDER BY tube");
	PGresult *result = *counts->tube ? pg_do(&of_one, "s", counts->tube) : pg_do(&of_all, "");

	if (result)
		take_figures(counts, result);
	if (!pg_done(result))
		return false;
	return !*counts->tube || take_pause(&counts->figures[0], counts->tube);
}

/* A tube without jobs can be paused, too, while a client uses it. */
static bool pause_tube(struct request *request)
{
	PG_STATEMENT(pause, "INSERT INTO twheeld.pauses AS p (tube, pause, until, count)"
		     " SELECT $1::text, $2::bigint, " PG_NOW " + $2, 1 WHERE $3::bigint = 1 OR"
		     " EXISTS (SELECT 1 FROM twheeld.jobs WHERE tube = $1) ON CONFLICT (tube)"
		     " DO UPDATE SET pause = $2, until = excluded.until, count = p.count + 1"
		     " RETURNING tube, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint");

	return take_tubes(request, pg_do(&pause, "sii", request->tube, request->pause,
					 (int64_t)request->used));
}

/** pg_job_op - do an operation that is not about schedules; gives false if it failed */
bool pg_job_op(struct op *op)
{
	struct request *request = container_of(op, struct request, op);

	switch (op->kind) {
	case OP_PUT:
		return pg_put(op);
	case OP_CHANGE:
		return change(op);
	case OP_DELETE:
		return delete(op);
	case OP_TOUCH:
		return touch(op);
	case OP_TAKE:
		return take(request);
	case OP_TAKE_JOB:
		return take_job(request);
	case OP_WHICH:
		return take_tubes(request, in_order(request));
	case OP_REMOVE:
		return remove_job(request);
	case OP_KICK:
		return kick(request);
	case OP_KICK_JOB:
		return kick_job(request);
	case OP_BACK:
	case OP_BACK_JOB:
		return back(request);
	case OP_LOOK:
		return look(request);
	case OP_PAUSE_TUBE:
		return pause_tube(request);
	case OP_PROMOTE:
		return promote(request);
	default:
		return false;
	}
}
