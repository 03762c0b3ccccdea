/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is written of tries, and of what somebody did, to a database of PostgreSQL.
 */
#ifndef TWHEELD_POSTGRES_TRACES_H
#define TWHEELD_POSTGRES_TRACES_H

#include "store/commit.h"
#include "store/postgres_array.h"

/* A row is made of one that was changed, and of columns of these names. The clock is read once. */
#define TRACE_INTO "INSERT INTO twheeld.tries(job, until, size, try, deed, made, due, begun," \
	" ended, tube, client, note) SELECT job, (SELECT " PG_NOW ") + keep, size, try, deed," \
	" made, due, begun, (SELECT " PG_NOW "), tube, client, note FROM "

/* The columns of pg_trace_arrays(), from a number on: job is another one */
#define TRACE_ARRAYS 10
#define TRACE_NAMES(of, tube) of "keep, " of "size, " of "try, " of "deed, " of "made, " \
	of "due, " of "begun, " tube ", " of "client, " of "note"

void pg_trace_arrays(struct op **ops, size_t count, struct pg_array *arrays);
bool pg_trace_full(const struct trace *trace);
bool pg_trace_drop(const struct trace *trace);
bool pg_trace_acts(const struct op *op, const struct found_job *jobs, size_t count);
bool pg_last_traces(struct runs_asked *asked);
bool pg_traces_prune(uint32_t *forgotten);

#endif
