// SPDX-License-Identifier: GPL-2.0
/*
 * Traces of tries, and of what somebody did, in jobs.db.
 *
 * What is old is looked for by going through all rows, some at a time; and, in between, among those
 * of the oldest jobs.
 */
#include <stdlib.h>

#include "base/alarm.h"
#include "base/limits.h"
#include "base/util.h"
#include "store/sqlite.h"
#include "store/sqlite_traces.h"
#include "store/trace_rows.h"

/* Bytes of a row's traces, but for those of the last one */
#define ROW_BYTES (32 << 10)

static sqlite3_stmt *add, *drop_tries, *drop_first, *look, *drop_old;
static const struct op *pending[COMMIT_MOST];
static size_t pending_count;
/* What there is, as the last way through all rows has found it, and what was written since */
static int64_t all, bytes;
static int64_t at = INT64_MIN, found, found_bytes;	/* of the way that is gone now */
static bool known;			/* the first one is over */

/** traces_begin - a transaction begins */
void traces_begin(void)
{
	pending_count = 0;
}

/** traces_add - have the trace of an operation written with the transaction */
void traces_add(const struct op *op)
{
	pending[pending_count++] = op;
}

/* Traces that are kept for as long come together, in the order of their jobs. */
static int traces_compare(const void *a, const void *b)
{
	const struct trace *one = (*(const struct op *const *)a)->trace;
	const struct trace *other = (*(const struct op *const *)b)->trace;

	if (one->keep != other->keep)
		return one->keep < other->keep ? -1 : 1;
	return (one->job > other->job) - (one->job < other->job);
}

/*
 * As many as may be in one row, from the first one on; how many bytes those have. With a job that
 * has the most tries that are kept, its first ones go: each has a row of its own.
 */
static size_t choose(const struct op **ops, size_t count, size_t *chosen)
{
	const struct trace *first = ops[0]->trace;
	size_t size = 0, i;

	for (i = 0; i < count && size < ROW_BYTES; i++) {
		const struct trace *trace = ops[i]->trace;

		if (trace->keep != first->keep || trace->job - first->job >= TRACE_SPAN ||
		    (i && (trace->try > TRACES_OF_JOB || first->try > TRACES_OF_JOB)))
			break;
		size += trace_size(ops[i]);
	}
	*chosen = i;
	return size;
}

/* Write some of the pending traces as a row. */
static bool write_row(const struct op **ops, size_t count, size_t size)
{
	const struct trace *first = ops[0]->trace, *last = ops[count - 1]->trace;
	int64_t at_ms = last->ended / MILLISECOND % (1 << TRACE_SHIFT);
	int64_t id = last->job * (1 << TRACE_SHIFT) + at_ms;
	int64_t until = 0, try = 0;
	char *row = malloc(size), *to = row;
	bool fine;

	for (size_t i = 0; row && i < count; i++) {
		const struct trace *trace = ops[i]->trace;

		to = trace_put(to, ops[i]);
		until = trace->ended + trace->keep > until ? trace->ended + trace->keep : until;
		try = trace->try > try ? trace->try : try;
	}
	sqlite3_bind_int64(add, 2, first->job);
	sqlite3_bind_int64(add, 3, until);
	sqlite3_bind_int64(add, 4, try);
	sqlite3_bind_int64(add, 5, count);
	sqlite3_bind_blob(add, 6, row, size, SQLITE_STATIC);
	/* One that ended at the same time of another day may have that number. */
	do {
		sqlite3_bind_int64(add, 1, id++);
		fine = row && sqlite_step(add);
	} while (fine && !sqlite3_changes(sqlite3_db_handle(add)));
	sqlite3_bind_null(add, 6);
	free(row);
	all += count;
	bytes += size;
	return fine;
}

/*
 * Takes what a statement that deletes gives; gives false if it has failed. Rows that were counted
 * on the way that is gone now count there no more.
 */
static bool take_dropped(sqlite3_stmt *stmt, uint32_t *pruned)
{
	int ret;

	while ((ret = sqlite3_step(stmt)) == SQLITE_ROW) {
		int64_t count = sqlite3_column_int64(stmt, 1);
		int64_t size = sqlite3_column_int64(stmt, 2);
		bool gone_by = sqlite3_column_int64(stmt, 0) <= at;

		all -= count;
		bytes -= size;
		found -= gone_by ? count : 0;
		found_bytes -= gone_by ? size : 0;
		++*pruned;
	}
	sqlite3_reset(stmt);
	return ret == SQLITE_DONE || sqlite_step(stmt);
}

/* Of one job: the rows that it alone has */
static bool forget_first_tries(const struct trace *trace)
{
	uint32_t dropped = 0;

	if (trace->try <= TRACES_OF_JOB)
		return true;
	sqlite3_bind_int64(drop_tries, 1, trace->job);
	sqlite3_bind_int64(drop_tries, 2, trace->try - TRACES_OF_JOB);
	return take_dropped(drop_tries, &dropped);
}

/** traces_write - write the traces of the transaction; gives false if that fails */
bool traces_write(void)
{
	bool fine = true;
	size_t count, size;

	if (pending_count > 1)
		qsort(pending, pending_count, sizeof(*pending), traces_compare);
	for (size_t i = 0; fine && i < pending_count; i += count) {
		size = choose(pending + i, pending_count - i, &count);
		fine = write_row(pending + i, count, size);
	}
	for (size_t i = 0; fine && i < pending_count; i++)
		fine = forget_first_tries(pending[i]->trace);
	return fine;
}

/* Counts some rows after one, if they are to be; gives the last of them. */
static int64_t look_on(int64_t from, bool counts)
{
	int64_t last = INT64_MAX;

	sqlite3_bind_int64(look, 1, from);
	for (int i = 0; sqlite3_step(look) == SQLITE_ROW; i++) {
		found += counts ? sqlite3_column_int64(look, 1) : 0;
		found_bytes += counts ? sqlite3_column_int64(look, 2) : 0;
		if (i == PRUNE_PIECE - 1)
			last = sqlite3_column_int64(look, 0);
	}
	sqlite3_reset(look);
	return last;
}

/* The way through all rows is over: begin another one. */
static void begin_again(void)
{
	all = found;
	bytes = found_bytes;
	found = 0;
	found_bytes = 0;
	at = INT64_MIN;
	known = true;
}

/* What was done to schedules goes once nothing of jobs is left. */
static bool drop_too_many(uint32_t *pruned)
{
	sqlite3_bind_int64(drop_first, 1, 0);
	if (!take_dropped(drop_first, pruned))
		return false;
	if (*pruned)
		return true;
	sqlite3_bind_int64(drop_first, 1, INT64_MIN);
	return take_dropped(drop_first, pruned);
}

/**
 * traces_prune - forget what was kept for long enough, or is too much, a piece at a time
 * @pruned: out: 0: all is done that is to be done now
 */
bool traces_prune(uint32_t *pruned)
{
	static bool oldest = true;
	int64_t from, last;

	*pruned = 0;
	if (all > TRACES_MOST || bytes > TRACE_BYTES_MOST) {
		if (!drop_too_many(pruned))
			return false;
		if (*pruned)
			return true;
	}
	oldest = !oldest && known;
	from = oldest ? 0 : at;
	last = look_on(from, !oldest);
	sqlite3_bind_int64(drop_old, 1, from);
	sqlite3_bind_int64(drop_old, 2, last);
	sqlite3_bind_int64(drop_old, 3, alarm_wall());
	at = oldest ? at : last;
	if (!take_dropped(drop_old, pruned))
		return false;
	if (at == INT64_MAX)
		begin_again();
	*pruned += !known;
	return true;
}

#define COUNTED " RETURNING id, count, length(traces)"

/** traces_start - prepare the statements, on the connection that writes */
void traces_start(sqlite3 *db)
{
	add = sqlite_prepare(db, "INSERT OR IGNORE INTO tries VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
	drop_tries = sqlite_prepare(db, "DELETE FROM tries WHERE " TRACES_BEHIND(1)
				    " AND first = ?1 AND try <= ?2" COUNTED);
	drop_first = sqlite_prepare(db, "DELETE FROM tries WHERE id IN (SELECT id FROM tries"
				    " WHERE id > ?1 ORDER BY id LIMIT " TRACE_TEXT(PRUNE_PIECE) ")"
				    COUNTED);
	look = sqlite_prepare(db, "SELECT id, count, length(traces) FROM tries WHERE id > ?1"
			      " ORDER BY id LIMIT " TRACE_TEXT(PRUNE_PIECE));
	drop_old = sqlite_prepare(db, "DELETE FROM tries WHERE id > ?1 AND id <= ?2"
				  " AND until < ?3" COUNTED);
}
