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

#include <libpq-fe.h>

#include "commit.h"

struct firing;

/* What became of a statement, or of a transaction */
enum pg_end {
	PG_FINE,
	PG_AGAIN,	/* it met another one: to be tried again */
	PG_LOCKED,	/* another one had what it needs for too long */
	PG_REFUSED,
	PG_BROKEN,	/* the connection is, or it took too long */
	PG_ENDED,	/* the session is over */
};

/* The database's clock, in ns since 1970. The transaction's own would stand still. */
#define PG_NOW "(floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000)"

/* A statement, which is prepared where it is first used on a connection */
struct pg_statement {
	const char *sql;
	unsigned int connection;
};

#define PG_STATEMENT(name, text) static struct pg_statement name = { .sql = text }

PGconn *pg_connect(const char *address, char **why);
extern const char *pg_address;

/* For those who write what an operation is. NULL: it failed. */
PGresult *pg_do(struct pg_statement *statement, const char *types, ...);
bool pg_done(PGresult *result);
int64_t pg_int(const PGresult *result, int row, int column);
int64_t pg_session(void);
void pg_ready(const char *tube);

bool pg_job_op(struct op *op);
bool pg_put(struct op *op);
void pg_forget_results(struct op *op);

bool pg_fire(struct firing *firing);
bool pg_define(struct schedule_row *row);
bool pg_pause(struct op *op);
bool pg_prune(struct op *op);
bool pg_paused(struct op *op);
bool pg_run_set(int64_t job, enum result result);
bool pg_run_deleted(int64_t job);

#endif
