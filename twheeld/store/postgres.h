/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store as a database of PostgreSQL, which several servers share.
 *
 * The database alone says whose a job is. A server has a session there, which it renews with
 * each transaction; that of one which did not for the lease is ended by another server, and its
 * jobs are ready again. A job that is reserved has a token, which is another one each time it
 * changes hands: what its holder writes is written only where it still has that token.
 */
#ifndef TWHEELD_POSTGRES_H
#define TWHEELD_POSTGRES_H

#include "store/commit.h"
#include "store/postgres_link.h"

struct counts;
struct firing;

/* For those who write what an operation is */
int64_t pg_session(void);
void pg_ready(const char *tube);

bool pg_job_op(struct op *op);
bool pg_count(struct counts *counts);
bool pg_put(struct op *op);
void pg_forget_results(struct op *op);

bool pg_fire(struct firing *firing);
bool pg_define(struct schedule_row *row);
bool pg_pause(struct op *op);
bool pg_prune(struct op *op);
bool pg_paused(struct op *op);
bool pg_last_runs(struct runs_asked *asked);
bool pg_run_set(int64_t job, enum result result);
bool pg_run_deleted(int64_t job);

#endif
