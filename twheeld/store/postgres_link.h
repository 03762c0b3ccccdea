/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections to PostgreSQL, and their statements. Each thread has its own connection.
 */
#ifndef TWHEELD_POSTGRES_LINK_H
#define TWHEELD_POSTGRES_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/libpq.h"
#include "store/store.h"

/* How a statement, or a transaction, ended */
enum pg_end {
	PG_FINE,
	PG_AGAIN,	/* it met another transaction: try again */
	PG_LOCKED,	/* another transaction kept a lock for too long */
	PG_REFUSED,
	PG_BROKEN,	/* the connection broke, or it took too long */
	PG_ENDED,	/* the session is over */
};

/* Whether pg_do() does a statement, or a part of it: pg_flight_begin() */
enum pg_mode { PG_ONE_BY_ONE, PG_SENDING, PG_ANSWERED };

/* A connection, and the state of its flight */
struct pg_link {
	PGconn *db;			/* NULL: there is none */
	unsigned int number;		/* differs from connection to connection */
	enum pg_end failure;
	enum pg_mode mode;
	size_t sent, bytes;		/* statements in the flight, and bytes of large arguments */
	bool next;			/* PG_ANSWERED: an answer is there */
	bool more;			/* PG_ANSWERED: a statement is wanted that was not sent */
};

/* A statement of one thread; pg_do() prepares it where a connection has it for the first time */
struct pg_statement {
	const char *sql;
	unsigned int connection;
	char name[32];			/* a hash of its text; "": not made yet */
};

/* A sentence for whoever sizes a pool, or the database */
#define PG_CONNECTIONS "a server makes 2 connections, at most 4"

#define PG_STATEMENT(name, text) static struct pg_statement name = { .sql = text }

/* The database's clock, in ns since 1970; now() would stand still in a transaction. */
#define PG_NOW "(floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000)"

void pg_address(const char *address, enum sync sync);
int64_t pg_session(void);
void pg_set_session(int64_t id);
PGresult *pg_exec(PGconn *db, const char *sql);
bool pg_plain(PGconn *db, const char *sql);
bool pg_within(PGconn *db, const char *sql, int64_t most);
bool pg_hangs(PGconn *db);
bool pg_is_unknown(const PGresult *result);
char *pg_why(PGconn *db);
void pg_refuse_poolers(void);
bool pg_open(struct pg_link *link, char **why);
void pg_close(struct pg_link *link);

/* Calls for the link that the thread uses. NULL, false: it failed. */
void pg_use(struct pg_link *link);
PGresult *pg_do(struct pg_statement *statement, const char *types, ...);
bool pg_flight_begin(void);
bool pg_flight_sent(void);
void pg_flight_next(void);
bool pg_flight_end(void);
bool pg_answered(void);
bool pg_command(const char *sql);
bool pg_done(PGresult *result);
int64_t pg_int(const PGresult *result, int row, int column);

#endif
