// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules and their runs in a database of PostgreSQL.
 *
 * All servers with the same tabs come when a schedule is due. The first moves the schedule's next
 * time on, in the transaction that makes the jobs. The others find a later time there, and take it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/postgres_link.h"
#include "store/postgres_runs.h"
#include "store/postgres_traces.h"

static bool found_row(PGresult *result, struct schedule_row *row)
{
	if (result && PQntuples(result)) {
		row->next = pg_int(result, 0, 0);
		row->since = pg_int(result, 0, 1);
		row->paused = pg_int(result, 0, 2);
		row->digest = pg_int(result, 0, 3);
		row->gone = pg_int(result, 0, 4);
	}
	return pg_done(result);
}

/**
 * pg_define - write a schedule, or find it as another server has written it
 * @row: the schedule; out: as the store has it then
 *
 * If the definition is the same, the earlier time counts: no job is made twice. A schedule that is
 * gone from the tabs is gone unless another server has given it another definition.
 */
bool pg_define(struct schedule_row *row)
{
	PG_STATEMENT(define, "INSERT INTO twheeld.schedules AS s"
		     " (id, name, digest, next, paused, gone, since)"
		     " VALUES($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET"
		     " next = CASE WHEN s.digest = $3 AND s.gone = 0 AND $6 = 0"
		     " THEN least(s.next, $4) ELSE $4 END,"
		     " since = CASE WHEN s.digest = $3 AND s.gone = 0 AND $6 = 0"
		     " THEN least(s.since, $7) ELSE $7 END, digest = $3, gone = $6"
		     " WHERE $6 = 0 OR s.digest = $3 RETURNING next, since, paused, digest, gone");

	return found_row(pg_do(&define, "isiiiii", row->id, row->name, row->digest, row->next,
			       (int64_t)row->paused, row->gone, row->since), row);
}

/**
 * pg_pause - write that a schedule is paused; or that it is not, and its next time
 *
 * If the store has another definition, this server does not know its times: op->gone is set.
 */
bool pg_pause(struct op *op)
{
	PG_STATEMENT(pause, "UPDATE twheeld.schedules SET paused = $2,"
		     " next = CASE $2::bigint WHEN 0 THEN $3 ELSE next END,"
		     " since = CASE $2::bigint WHEN 0 THEN $3 ELSE since END WHERE id = $1"
		     " AND digest = $4 RETURNING id");
	const struct schedule_row *row = op->schedule;
	PGresult *result = pg_do(&pause, "iiii", row->id, (int64_t)row->paused, row->next,
				 row->digest);

	op->gone = result && !PQntuples(result);
	return pg_done(result);
}

/* The names of living servers with other tabs, with commas between, up to a length */
static bool others_differ(struct request *request)
{
	PG_STATEMENT(get, "SELECT left(string_agg(DISTINCT node, ', '), $2::int)"
		     " FROM twheeld.sessions WHERE tabs NOT IN (0, $1) AND until >= " PG_NOW);
	int64_t tabs = __atomic_load_n(&store_tabs, __ATOMIC_RELAXED);
	PGresult *result;

	*request->name = 0;
	if (!tabs)
		return true;
	result = pg_do(&get, "ii", tabs, (int64_t)TUBE_NAME_MAX / 4);
	if (PQntuples(result))
		strcpy(request->name, PQgetvalue(result, 0, 0));
	return pg_done(result);
}

/** pg_pushed - the tabs that were pushed; each change of the row gives it another version */
bool pg_pushed(struct pushed *pushed)
{
	PG_STATEMENT(get, "SELECT version, CASE WHEN version <> $1 THEN body END FROM"
		     " (SELECT body, hashint8extended(id, xmin::text::bigint) AS version"
		     " FROM twheeld.jobs WHERE tube = '" TABS_TUBE "'"
		     " AND state = 1 ORDER BY ord, id LIMIT 1) AS tabs");
	PGresult *result = pg_do(&get, "i", pushed->known);

	pushed->version = PQntuples(result) ? pg_int(result, 0, 0) : 0;
	if (PQntuples(result) && !PQgetisnull(result, 0, 1)) {
		pushed->size = PQgetlength(result, 0, 1);
		pushed->text = must(malloc(pushed->size + 1));
		memcpy(pushed->text, PQgetvalue(result, 0, 1), pushed->size);
	}
	return pg_done(result);
}

/** pg_paused - which schedules are paused, the tabs, and which servers have others */
bool pg_paused(struct op *op)
{
	PG_STATEMENT(get, "SELECT id FROM twheeld.schedules WHERE paused = 1");
	struct request *request = container_of(op, struct request, op);
	PGresult *result = pg_do(&get, "");

	request->count = PQntuples(result);
	request->ids = must(calloc(request->count + 1, sizeof(*request->ids)));
	for (uint32_t i = 0; i < request->count; i++)
		request->ids[i] = pg_int(result, i, 0);
	return pg_done(result) && pg_pushed(&request->pushed) &&
		others_differ(request);
}

/* A time that has a run keeps it, unless there was no job for it. */
static bool write_run(const struct firing *firing, int64_t time, uint32_t shard, int64_t job,
		      enum result result)
{
	PG_STATEMENT(add, "INSERT INTO twheeld.runs AS r"
		     " (schedule, time, shard, job, result, created, ended, count)"
		     " VALUES($1, $2, $3, $4,"
		     " $5, " PG_NOW ", CASE WHEN $5::bigint > 0 THEN " PG_NOW
		     " WHEN $4::bigint < 0 THEN " PG_NOW " + $6 ELSE 0 END, $7)"
		     " ON CONFLICT (schedule, time, shard) DO UPDATE SET job = excluded.job,"
		     " result = excluded.result, created = excluded.created,"
		     " ended = excluded.ended, count = excluded.count WHERE r.job <= 0");

	return pg_done(pg_do(&add, "iiiiiii", firing->id, time, (int64_t)shard, job,
			     (int64_t)result, firing->within,
			     result == RUN_MISSED ? firing->missed_count : 1));
}

static bool adopt(const struct firing *firing, int64_t job)
{
	PG_STATEMENT(adopt, "UPDATE twheeld.jobs SET scheduled = $2 WHERE id = $1");

	return pg_done(pg_do(&adopt, "ii", job, firing->id));
}

static bool may_run(const struct firing *firing, const struct firing_run *run, bool *may)
{
	PG_STATEMENT(get, "SELECT job FROM twheeld.runs WHERE schedule = $1 AND time = $2"
		     " AND shard = $3");
	PGresult *result = pg_do(&get, "iii", firing->id, run->time, (int64_t)run->shard);

	*may = !PQntuples(result) || pg_int(result, 0, 0) <= 0;
	return pg_done(result);
}

static bool any_open(const struct firing *firing, bool *open)
{
	PG_STATEMENT(get, "SELECT 1::bigint FROM twheeld.runs WHERE schedule = $1 AND result = 0"
		     " AND job > 0 LIMIT 1");
	PGresult *result = pg_do(&get, "i", firing->id);

	*open = PQntuples(result);
	return pg_done(result);
}

static bool waits(const struct firing *firing, int64_t time, bool *there, bool *before, bool *over)
{
	PG_STATEMENT(get, "SELECT CASE WHEN ended = 0 THEN 0 WHEN ended <= " PG_NOW " THEN 2 ELSE 1"
		     " END::bigint FROM twheeld.runs WHERE schedule = $1 AND time = $2"
		     " AND shard = 0 AND result = 0 AND job <= 0");
	PGresult *result = pg_do(&get, "ii", firing->id, time);

	*there = PQntuples(result);
	*before = *there && pg_int(result, 0, 0);
	*over = *there && pg_int(result, 0, 0) == 2;
	return pg_done(result);
}

static bool get_before(const struct firing *firing, int64_t time, enum before *before)
{
	PG_STATEMENT(get, "SELECT " BEFORE("twheeld.runs", "twheeld.schedules", "$1", "$2")
		     "::bigint");
	PGresult *result = pg_do(&get, "ii", firing->after, time);

	*before = PQntuples(result) ? pg_int(result, 0, 0) : BEFORE_OPEN;
	return pg_done(result);
}

static bool leave_others_out(const struct firing *firing, int64_t time)
{
	PG_STATEMENT(leave, "UPDATE twheeld.runs SET result = 4, ended = " PG_NOW
		     " WHERE schedule = $1 AND result = 0 AND job = 0 AND time <> $2");

	return pg_done(pg_do(&leave, "ii", firing->id, time));
}

/** pg_waiting - which times need wait no longer */
bool pg_waiting(struct waiting *waiting)
{
	PG_STATEMENT(get, "SELECT schedule, time, CASE WHEN job < 0 AND ended > " PG_NOW
		     " THEN least(1, " BEFORE("twheeld.runs", "twheeld.schedules", "-r.job",
		     "r.time") ") WHEN job = 0"
		     " AND EXISTS (SELECT 1 FROM twheeld.runs AS o WHERE o.schedule = r.schedule"
		     " AND o.result = 0 AND o.job > 0) THEN 0 ELSE 1 END::bigint AS may"
		     " FROM twheeld.runs AS r WHERE result < 2 AND job <= 0"
		     " AND (time, schedule) > ($2::bigint, $3::bigint)"
		     " ORDER BY may DESC, time, schedule LIMIT $1");
	PGresult *result = pg_do(&get, "iii", (int64_t)WAITING_MOST, waiting->from.time,
				 waiting->from.schedule);

	waiting->any = PQntuples(result);
	waiting->count = 0;
	for (int i = 0; i < PQntuples(result) && pg_int(result, i, 2); i++) {
		waiting->found[i].schedule = pg_int(result, i, 0);
		waiting->found[i].time = pg_int(result, i, 1);
		waiting->count++;
	}
	return pg_done(result);
}

/** pg_late - which runs of a schedule are late, and when the next one may be */
bool pg_late(struct late *late)
{
	PG_STATEMENT(get, "SELECT time FROM twheeld.runs WHERE schedule = $1 AND result = 0"
		     " AND time > $2 ORDER BY time LIMIT $3");
	PGresult *result = pg_do(&get, "iii", late->schedule, late->after, (int64_t)LATE_MOST);

	late->first = 0;
	late->count = 0;
	late->next = 0;
	for (int i = 0; i < PQntuples(result) && !late->next; i++) {
		int64_t time = pg_int(result, i, 0);

		if (time > late->until)
			late->next = time;
		else if (!late->count++)
			late->first = time;
	}
	return pg_done(result);
}

/** pg_set_failing - a schedule has failed, or a run of it is done; was that not so before? */
bool pg_set_failing(int64_t schedule, bool failing, bool *changed)
{
	PG_STATEMENT(set, "UPDATE twheeld.schedules SET failing = $2 WHERE id = $1"
		     " AND failing <> $2 RETURNING id");
	PGresult *result = pg_do(&set, "ii", schedule, (int64_t)failing);

	*changed = PQntuples(result);
	return pg_done(result);
}

static bool look_up(struct firing *firing)
{
	PG_STATEMENT(get, "SELECT next, since, paused, digest, gone FROM twheeld.schedules"
		     " WHERE id = $1 FOR UPDATE");
	PGresult *result = pg_do(&get, "i", firing->id);

	firing->found.id = PQntuples(result);
	return found_row(result, &firing->found);
}

static bool advance(struct firing *firing)
{
	PG_STATEMENT(advance, "UPDATE twheeld.schedules SET next = $3, since = $4, gone = 0"
		     " WHERE id = $1 AND next = $2 AND digest = $5 AND paused = 0 RETURNING id");
	PGresult *result = pg_do(&advance, "iiiii", firing->id, firing->from, firing->next,
				 firing->since, firing->digest);

	firing->stale = result && !PQntuples(result);
	return pg_done(result) && (!firing->stale || look_up(firing));
}

/**
 * pg_fire - move a schedule's next time on, and make its due jobs, once
 * @firing: the times that are due
 * @put: writes one of its jobs
 */
bool pg_fire(struct firing *firing, bool (*put)(struct op *op))
{
	const struct run_table table = {
		may_run, any_open, waits, get_before, leave_others_out, write_run, adopt, put
	};

	firing->stale = false;
	/* A run out of turn locks the row, too, so that no two look for open runs at a time. */
	if (firing->from != firing->next ? !advance(firing) : !look_up(firing))
		return false;
	if (firing->waited)
		firing->stale = !firing->found.id || firing->found.paused ||
			firing->found.digest != firing->digest;
	return firing->stale || runs_make(firing, &table);
}

#define RUNS_OF(more) "SELECT wanted.id, run.time, run.shard, run.job, run.result, run.created," \
	" run.ended, run.count FROM unnest($1::bigint[]) AS wanted(id) CROSS JOIN LATERAL" \
	" ((SELECT * FROM twheeld.runs WHERE schedule = wanted.id ORDER BY time DESC, shard DESC" \
	" LIMIT $2) " more ") AS run ORDER BY wanted.id, run.time DESC, run.shard DESC"

/** pg_last_runs - the last runs of some schedules, or those that say how they are */
bool pg_last_runs(struct runs_asked *asked)
{
	PG_STATEMENT(get, RUNS_OF(""));
	PG_STATEMENT(get_how, RUNS_OF("UNION ALL (SELECT * FROM twheeld.runs"
		     " WHERE schedule = wanted.id AND result NOT IN (0, 4) AND time = (SELECT time FROM"
		     " (SELECT time, result FROM twheeld.runs WHERE schedule = wanted.id"
		     " ORDER BY time DESC, shard DESC LIMIT $3) AS r WHERE result NOT IN (0, 4)"
		     " ORDER BY time DESC LIMIT 1) ORDER BY result = 2, shard DESC LIMIT 1)"
		     " UNION ALL (SELECT * FROM twheeld.runs WHERE schedule = wanted.id"
		     " AND result = 0 ORDER BY time, shard LIMIT 1)"));
	char *ids = pg_numbers(asked->schedules, asked->count);
	PGresult *result = asked->most ? pg_do(&get, "si", ids, asked->most) :
		pg_do(&get_how, "sii", ids, (int64_t)1, (int64_t)RUNS_HOW);

	free(ids);
	for (int i = 0; result && i < PQntuples(result); i++) {
		const struct run_row run = {
			.schedule = pg_int(result, i, 0), .time = pg_int(result, i, 1),
			.shard = pg_int(result, i, 2), .job = pg_int(result, i, 3),
			.result = pg_int(result, i, 4), .created = pg_int(result, i, 5),
			.ended = pg_int(result, i, 6), .count = pg_int(result, i, 7),
		};

		runs_add(asked, &run);
	}
	return pg_done(result) && pg_last_traces(asked);
}

/** pg_run_set - set the result of the run of a job that is still there */
bool pg_run_set(int64_t job, enum result result)
{
	PG_STATEMENT(set, "UPDATE twheeld.runs SET result = $2,"
		     " ended = CASE $2::bigint WHEN 0 THEN 0 ELSE " PG_NOW " END"
		     " WHERE job = $1 AND result < 2");

	return pg_done(pg_do(&set, "ii", job, (int64_t)result));
}

/** pg_run_deleted - end the run of a deleted job: it has failed if the job was buried */
bool pg_run_deleted(int64_t job)
{
	PG_STATEMENT(end, "UPDATE twheeld.runs SET result = 2 + result, ended = " PG_NOW
		     " WHERE job = $1 AND result < 2");

	return pg_done(pg_do(&end, "i", job));
}

/* Until when have runs been forgotten, by any server? A backfill must not make them again. */
static bool forget_until(int64_t last, int64_t *until)
{
	PG_STATEMENT(keep, "INSERT INTO twheeld.meta AS m (name, value) VALUES('forgotten', $1)"
		     " ON CONFLICT (name) DO UPDATE SET value = greatest(m.value, $1)");
	PG_STATEMENT(get, "SELECT value FROM twheeld.meta WHERE name = 'forgotten'");
	PGresult *result;

	if (last && !pg_done(pg_do(&keep, "i", last)))
		return false;
	result = pg_do(&get, "");
	if (PQntuples(result))
		*until = pg_int(result, 0, 0);
	return pg_done(result);
}

/* Which schedules are gone from the store? Any server may have deleted them. */
static bool which_are_forgotten(struct prune *prune)
{
	PG_STATEMENT(get, "SELECT at FROM unnest($1::bigint[]) WITH ORDINALITY AS gone(id, at)"
		     " WHERE NOT EXISTS"
		     " (SELECT 1 FROM twheeld.schedules AS s WHERE s.id = gone.id)");
	char *ids = pg_numbers(prune->ids, prune->count);
	PGresult *result = pg_do(&get, "s", ids);

	free(ids);
	memset(prune->forgotten, 0, sizeof(prune->forgotten));
	for (int i = 0; i < PQntuples(result); i++)
		prune->forgotten[pg_int(result, i, 0) - 1] = true;
	return pg_done(result);
}

/** pg_prune - forget runs that are over, a piece at a time */
bool pg_prune(struct op *op)
{
	PG_STATEMENT(runs, "DELETE FROM twheeld.runs WHERE (schedule, time, shard) IN"
		     " (SELECT schedule, time, shard FROM twheeld.runs AS r WHERE result >= 2"
		     " AND time < $1 AND ended < $1 AND NOT " AWAITED("twheeld.runs")
		     " ORDER BY time, schedule, shard LIMIT $2)"
		     " RETURNING time");
	PG_STATEMENT(waiting, "UPDATE twheeld.runs SET result = 4, ended = " PG_NOW
		     " WHERE result = 0 AND job <= 0 AND schedule IN"
		     " (SELECT id FROM twheeld.schedules WHERE gone > 0)");
	PG_STATEMENT(schedules, "DELETE FROM twheeld.schedules WHERE gone > 0"
		     " AND (gone < $1 OR paused = 0) AND NOT EXISTS"
		     " (SELECT 1 FROM twheeld.runs WHERE schedule = schedules.id)");
	PGresult *result = pg_do(&runs, "ii", op->row.created, (int64_t)PRUNE_PIECE);
	struct prune *prune = container_of(op, struct prune, op);
	int64_t last = 0;

	op->row.size = PQntuples(result);
	for (uint32_t i = 0; i < op->row.size; i++)
		if (pg_int(result, i, 0) > last)
			last = pg_int(result, i, 0);
	if (!pg_done(result) || !forget_until(last, &op->row.ord))
		return false;
	if (!pg_done(pg_do(&waiting, "")))
		return false;
	if (!op->row.size && !pg_done(pg_do(&schedules, "i", op->row.created)))
		return false;
	return !prune->count || which_are_forgotten(prune);
}
