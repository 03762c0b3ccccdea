// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules and their runs in jobs.db.
 */
#include "base/alarm.h"
#include "base/util.h"
#include "store/sqlite.h"
#include "store/sqlite_runs.h"

/*
 * The runs to forget. A clock that is ahead for a moment must not make an old run of one that has
 * just ended.
 */
#define PRUNED "SELECT schedule, time, shard FROM runs AS r INDEXED BY runs_over WHERE" \
	" result >= 2 AND time < ?1 AND ended < ?1 AND NOT " AWAITED("runs") \
	" ORDER BY time, schedule, shard LIMIT ?2"

#define NUMBER_TEXT(number) NUMBER_TEXT_OF(number)
#define NUMBER_TEXT_OF(number) #number

static sqlite3 *writer;
static sqlite3_stmt *define, *pause_it, *advance, *get_open, *get_run, *add_run, *end_run,
	*set_run, *last_pruned, *prune_runs, *prune_schedule, *get_waiting, *leave_out,
	*end_waiting, *which_may, *get_other, *adopt_it, *get_late, *set_failing;
/* Is there a run whose job may still be there? If not, no job needs its run looked up. */
static bool any_runs;

static void bind(sqlite3_stmt *stmt, int first, const int64_t *values, int count)
{
	for (int i = 0; i < count; i++)
		sqlite3_bind_int64(stmt, first + i, values[i]);
}

/* Sets *there if there is a row; gives false if it can't be read. */
static bool look(sqlite3_stmt *stmt, bool *there, int64_t *value)
{
	int ret = sqlite3_step(stmt);

	*there = ret == SQLITE_ROW;
	if (*there)
		*value = sqlite3_column_int64(stmt, 0);
	if (ret == SQLITE_DONE || *there) {
		sqlite3_reset(stmt);
		return true;
	}
	return sqlite_step(stmt);
}

/** runs_define - write a schedule; one that is there stays paused, or not paused */
bool runs_define(const struct schedule_row *row)
{
	const int64_t values[] = {
		row->digest, row->next, row->paused, row->gone, row->since,
	};

	sqlite3_bind_int64(define, 1, row->id);
	sqlite3_bind_text(define, 2, row->name, -1, SQLITE_STATIC);
	bind(define, 3, values, 5);
	return sqlite_step(define);
}

/** runs_pause - write that a schedule is paused; or that it is not, and its next time */
bool runs_pause(const struct schedule_row *row)
{
	const int64_t values[] = { row->id, row->paused, row->next };

	bind(pause_it, 1, values, 3);
	return sqlite_step(pause_it);
}

/* A time that has a run keeps it, unless there was no job for it. */
static bool write_run(const struct firing *firing, int64_t time, uint32_t shard, int64_t job,
		      enum result result)
{
	int64_t now = alarm_wall();
	const int64_t values[] = {
		firing->id, time, shard, job, result, now,
		result != RUN_OPEN ? now : job < 0 ? now + firing->within : 0,
		result == RUN_MISSED ? firing->missed_count : 1,
	};

	bind(add_run, 1, values, 8);
	any_runs = any_runs || result == RUN_OPEN;
	return sqlite_step(add_run);
}

static bool adopt(const struct firing *firing, int64_t job)
{
	const int64_t values[] = { job, firing->id };

	bind(adopt_it, 1, values, 2);
	return sqlite_step(adopt_it);
}

static bool may_run(const struct firing *firing, const struct firing_run *run, bool *may)
{
	const int64_t key[] = { firing->id, run->time, run->shard };
	int64_t job = 0;
	bool there;

	bind(get_run, 1, key, 3);
	if (!look(get_run, &there, &job))
		return false;
	*may = !there || job <= 0;
	return true;
}

static bool any_open(const struct firing *firing, bool *open)
{
	int64_t unused;

	sqlite3_bind_int64(get_open, 1, firing->id);
	return look(get_open, open, &unused);
}

static bool waits(const struct firing *firing, int64_t time, bool *there, bool *before, bool *over)
{
	const int64_t key[] = { firing->id, time };
	int64_t until = 0;

	bind(get_waiting, 1, key, 2);
	if (!look(get_waiting, there, &until))
		return false;
	*before = until;
	*over = until && until <= alarm_wall();
	return true;
}

static bool get_before(const struct firing *firing, int64_t time, enum before *before)
{
	const int64_t key[] = { firing->after, time };
	int64_t value = BEFORE_OPEN;
	bool there;

	bind(get_other, 1, key, 2);
	if (!look(get_other, &there, &value))
		return false;
	*before = value;
	return true;
}

static bool leave_others_out(const struct firing *firing, int64_t time)
{
	const int64_t values[] = { firing->id, time, alarm_wall() };

	bind(leave_out, 1, values, 3);
	return sqlite_step(leave_out);
}

/** runs_waiting - which times need wait no longer */
bool runs_waiting(struct waiting *waiting)
{
	const int64_t values[] = { alarm_wall(), waiting->from.time, waiting->from.schedule };
	int ret;

	bind(which_may, 1, values, 3);
	waiting->count = 0;
	waiting->any = false;
	while ((ret = sqlite3_step(which_may)) == SQLITE_ROW) {
		waiting->any = true;
		if (!sqlite3_column_int(which_may, 2))
			break;
		waiting->found[waiting->count].schedule = sqlite3_column_int64(which_may, 0);
		waiting->found[waiting->count++].time = sqlite3_column_int64(which_may, 1);
	}
	sqlite3_reset(which_may);
	return ret == SQLITE_DONE || ret == SQLITE_ROW;
}

/** runs_late - which runs of a schedule are late, and when the next one may be */
bool runs_late(struct late *late)
{
	const int64_t values[] = { late->schedule, late->after, late->until, LATE_MOST };
	int ret;

	bind(get_late, 1, values, 4);
	late->first = 0;
	late->count = 0;
	late->next = 0;
	while ((ret = sqlite3_step(get_late)) == SQLITE_ROW) {
		int64_t time = sqlite3_column_int64(get_late, 0);

		if (time > late->until) {
			late->next = time;
			break;
		}
		if (!late->count++)
			late->first = time;
	}
	sqlite3_reset(get_late);
	return ret == SQLITE_DONE || ret == SQLITE_ROW;
}

static bool set_whether_failing(int64_t schedule, bool failing)
{
	const int64_t values[] = { schedule, failing };

	bind(set_failing, 1, values, 2);
	return sqlite_step(set_failing);
}

/** runs_failing - a schedule has failed, and the next run that is done is its recovery */
bool runs_failing(int64_t schedule)
{
	return set_whether_failing(schedule, true);
}

/** runs_recovered - a run of a schedule is done: was that so? */
bool runs_recovered(int64_t schedule, bool *recovered)
{
	bool fine = set_whether_failing(schedule, false);

	*recovered = fine && sqlite3_changes(writer);
	return fine;
}

/**
 * runs_fire - move a schedule's next time on, and make its due jobs, once
 * @firing: the times that are due
 * @put: writes one of its jobs
 */
bool runs_fire(struct firing *firing, bool (*put)(struct op *op))
{
	const struct run_table table = {
		may_run, any_open, waits, get_before, leave_others_out, write_run, adopt, put
	};
	const int64_t values[] = { firing->id, firing->from, firing->next, firing->since };

	firing->stale = false;
	if (firing->from != firing->next) {
		bind(advance, 1, values, 4);
		if (!sqlite_step(advance))
			return false;
		firing->stale = !sqlite3_changes(writer);
	}
	return firing->stale || runs_make(firing, &table);
}

static bool set_result(int64_t job, enum result result)
{
	const int64_t values[] = { job, result, result == RUN_OPEN ? 0 : alarm_wall() };

	bind(set_run, 1, values, 3);
	return sqlite_step(set_run);
}

/** runs_ended - set the result of a job's run after an operation that was written */
bool runs_ended(const struct op *op)
{
	if (!any_runs)
		return true;
	if (op->kind == OP_DELETE) {
		const int64_t values[] = { op->row.id, alarm_wall() };

		bind(end_run, 1, values, 2);
		return sqlite_step(end_run);
	}
	/* The job goes to the dead letters. */
	if (op->to != op->tube)
		return set_result(op->row.id, RUN_FAILED);
	if (op->row.state == BURIED)
		return op->from == BURIED || set_result(op->row.id, RUN_BURIED);
	return op->from != BURIED || set_result(op->row.id, RUN_OPEN);
}

static bool forget_schedules(struct prune *prune)
{
	for (size_t i = 0; i < prune->count; i++) {
		const int64_t values[] = { prune->ids[i], prune->op.row.created };

		bind(end_waiting, 1, values, 1);
		sqlite3_bind_int64(end_waiting, 2, alarm_wall());
		bind(prune_schedule, 1, values, 2);
		if (!sqlite_step(end_waiting) || !sqlite_step(prune_schedule))
			return false;
		prune->forgotten[i] = sqlite3_changes(writer);
	}
	return true;
}

/**
 * runs_prune - forget runs that are over, a piece at a time
 * @prune: op.row.created: runs for times before this one; op.row.size: out: how many runs those
 *	were
 * @last: out: the last time among them; 0: there was none
 */
bool runs_prune(struct prune *prune, int64_t *last)
{
	const int64_t values[] = { prune->op.row.created, PRUNE_PIECE };
	bool there;

	*last = 0;
	bind(last_pruned, 1, values, 2);
	bind(prune_runs, 1, values, 2);
	if (!look(last_pruned, &there, last) || !sqlite_step(prune_runs))
		return false;
	prune->op.row.size = sqlite3_changes(writer);
	return forget_schedules(prune);
}

/** runs_start - prepare the statements, on the connection that writes */
void runs_start(sqlite3 *db)
{
	int64_t unused;

	writer = db;
	define = sqlite_prepare(db, "INSERT INTO schedules VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)"
				" ON CONFLICT(id) DO UPDATE SET digest = ?3, next = ?4, gone = ?6,"
				" since = ?7");
	pause_it = sqlite_prepare(db, "UPDATE schedules SET paused = ?2,"
				  " next = CASE ?2 WHEN 0 THEN ?3 ELSE next END,"
				  " since = CASE ?2 WHEN 0 THEN ?3 ELSE since END WHERE id = ?1");
	advance = sqlite_prepare(db, "UPDATE schedules SET next = ?3, since = ?4"
				 " WHERE id = ?1 AND next = ?2");
	get_open = sqlite_prepare(db, "SELECT 1 FROM runs INDEXED BY runs_open WHERE schedule = ?1"
				  " AND result = 0 AND job > 0 LIMIT 1");
	get_waiting = sqlite_prepare(db, "SELECT ended FROM runs WHERE schedule = ?1"
				     " AND time = ?2 AND shard = 0 AND result = 0 AND job <= 0");
	get_other = sqlite_prepare(db, "SELECT " BEFORE("runs", "schedules", "?1", "?2"));
	leave_out = sqlite_prepare(db, "UPDATE runs INDEXED BY runs_open SET result = 4, ended = ?3"
				   " WHERE schedule = ?1 AND result = 0 AND job = 0 AND time <> ?2");
	end_waiting = sqlite_prepare(db, "UPDATE runs INDEXED BY runs_open SET result = 4,"
				     " ended = ?2 WHERE schedule = ?1 AND result = 0 AND job <= 0"
				     " AND EXISTS (SELECT 1 FROM schedules WHERE id = ?1"
				     " AND gone > 0)");
	which_may = sqlite_prepare(db, "SELECT schedule, time, CASE WHEN job < 0 THEN ended <= ?1"
				   " OR " BEFORE("runs", "schedules", "-r.job", "r.time")
				   " > 0 ELSE NOT EXISTS (SELECT 1 FROM runs INDEXED BY runs_open WHERE schedule ="
				   " r.schedule AND result = 0 AND job > 0) END AS may"
				   " FROM runs AS r INDEXED BY runs_job WHERE result < 2"
				   " AND job <= 0 AND (time, schedule) > (?2, ?3)"
				   " ORDER BY may DESC, time, schedule LIMIT "
				   NUMBER_TEXT(WAITING_MOST));
	get_run = sqlite_prepare(db, "SELECT job FROM runs WHERE schedule = ?1 AND time = ?2"
				 " AND shard = ?3");
	add_run = sqlite_prepare(db, "INSERT INTO runs VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
				 " ON CONFLICT DO UPDATE SET job = ?4, result = ?5, created = ?6,"
				 " ended = ?7, count = ?8"
				 " WHERE job <= 0");
	adopt_it = sqlite_prepare(db, "UPDATE jobs SET scheduled = ?2 WHERE id = ?1");
	get_late = sqlite_prepare(db, "SELECT time FROM runs INDEXED BY runs_open"
				  " WHERE schedule = ?1 AND result = 0 AND time > ?2"
				  " ORDER BY time LIMIT ?4");
	set_failing = sqlite_prepare(db, "UPDATE schedules SET failing = ?2 WHERE id = ?1"
				     " AND failing <> ?2");
	end_run = sqlite_prepare(db, "UPDATE runs INDEXED BY runs_job SET result = 2 + (result"
				 " = 1), ended = ?2 WHERE job = ?1 AND result < 2");
	set_run = sqlite_prepare(db, "UPDATE runs INDEXED BY runs_job SET result = ?2, ended = ?3"
				 " WHERE job = ?1 AND result < 2");
	last_pruned = sqlite_prepare(db, "SELECT max(time) FROM (" PRUNED ")");
	prune_runs = sqlite_prepare(db, "DELETE FROM runs WHERE (schedule, time, shard) IN (" PRUNED
				    ")");
	prune_schedule = sqlite_prepare(db, "DELETE FROM schedules WHERE id = ?1 AND gone > 0"
					" AND (gone < ?2 OR NOT paused) AND NOT EXISTS"
					" (SELECT 1 FROM runs WHERE schedule = ?1)");
	if (!look(sqlite_prepare(db, "SELECT 1 FROM runs INDEXED BY runs_job WHERE result < 2"
				 " LIMIT 1"), &any_runs, &unused))
		any_runs = true;
}
