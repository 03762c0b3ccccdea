/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections to PostgreSQL, and what is done on them: each thread has its own.
 */
#ifndef TWHEELD_POSTGRES_LINK_H
#define TWHEELD_POSTGRES_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/libpq.h"
#include "store/store.h"

/* What became of a statement, or of a transaction */
enum pg_end {
	PG_FINE,
	PG_AGAIN,	/* it met another one: to be tried again */
	PG_LOCKED,	/* another one had what it needs for too long */
	PG_REFUSED,
	PG_BROKEN,	/* the connection is, or it took too long */
	PG_ENDED,	/* the session is over */
};

/* How pg_do() does a statement: pg_flight_begin() */
enum pg_mode { PG_ONE_BY_ONE, PG_SENDING, PG_ANSWERED };

/* A connection with what was prepared on it */
struct pg_link {
	PGconn *db;			/* NULL: there is none */
	unsigned int number;		/* another one for each connection */
	enum pg_end failure;
	enum pg_mode mode;
	size_t sent, bytes;		/* of the flight: statements, and bytes that are not few */
	bool next;			/* PG_ANSWERED: an answer is to be had */
	bool more;			/* PG_ANSWERED: one was wanted that was not sent for */
};

/* A statement, which is prepared where it is first used on a connection, by one thread alone */
struct pg_statement {
	const char *sql;
	unsigned int connection;
	char name[32];			/* of what it says; "": not known yet */
};

/* A sentence for who sizes a pool, or the database */
#define PG_CONNECTIONS "a server makes 2 connections, at most 4"

#define PG_STATEMENT(name, text) static struct pg_statement name = { .sql = text }

/* The database's clock, in ns since 1970. The transaction's own would stand still. */
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

/* On the connection that the thread uses. NULL, false: it failed. */
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
