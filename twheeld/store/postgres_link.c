// SPDX-License-Identifier: GPL-2.0
/*
 * Connections to PostgreSQL, and what is done on them.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/commit.h"
#include "store/postgres_link.h"

/* So long a statement may take; who waits for its answer gives the database time to say so. */
#define STATEMENT (10 * SECOND)
#define ANSWER (STATEMENT + SECOND)
/* So long for a lock, or a quarter of the lease */
#define LOCKED_MOST SECOND
/* So long the next statement of a transaction may not come, or the lease */
#define IDLE_MOST (5 * SECOND)
#define PARAMETERS 20

static const char *address;
static enum sync sync_mode;
static unsigned int connections;
static int64_t session;
static __thread struct pg_link *used;

static void ignore(void *arg, const PGresult *notice)
{
	(void)arg;
	(void)notice;
}

/* Until all is sent and the answer is there, or it takes too long */
static bool wait_for_answer(PGconn *db, int64_t until)
{
	int unsent;

	while ((unsent = PQflush(db)) > 0 || PQisBusy(db)) {
		short events = POLLIN | (unsent ? POLLOUT : 0);
		struct pollfd fd = { .fd = PQsocket(db), .events = events };
		int64_t left = until - commit_now();

		if (left <= 0 || (poll(&fd, 1, left / MILLISECOND + 1) < 0 && errno != EINTR))
			return false;
		if (fd.revents & ~POLLOUT && !PQconsumeInput(db))
			return false;
	}
	return !unsent;
}

/* Of several statements, the last answer, which is an error if one of them failed */
static PGresult *answer(PGconn *db, int sent)
{
	int64_t until = commit_now() + ANSWER;
	PGresult *result = NULL, *more;

	if (!sent)
		return NULL;
	while (wait_for_answer(db, until)) {
		more = PQgetResult(db);
		if (!more)
			return result;
		PQclear(result);
		result = more;
	}
	PQclear(result);
	return NULL;
}

/** pg_exec - do statements, within the time that one may take; NULL: there is no answer */
PGresult *pg_exec(PGconn *db, const char *sql)
{
	return answer(db, PQsendQuery(db, sql));
}

/** pg_plain - do statements, of which nothing is wanted but that they are done */
bool pg_plain(PGconn *db, const char *sql)
{
	PGresult *result = pg_exec(db, sql);
	ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/** pg_hangs - was something sent, and did no answer come in time? */
bool pg_hangs(PGconn *db)
{
	return PQtransactionStatus(db) == PQTRANS_ACTIVE;
}

/** pg_why - why something on a connection failed, to be freed */
char *pg_why(PGconn *db)
{
	char *why;

	if (!db)
		return must(strdup("out of memory"));
	if (pg_hangs(db))
		return must(strdup("it has taken the connection, but answers nothing"));
	why = must(strdup(PQerrorMessage(db)));
	why[strcspn(why, "\n")] = '\0';
	return why;
}

static long long least_ms(int64_t a, int64_t b)
{
	return (a < b ? a : b) / MILLISECOND;
}

/*
 * A server that is stopped in the middle of a transaction holds what it has locked, and a
 * session that is locked is not ended. So the database ends such a transaction itself; and soon,
 * as who was cut off looks up what became of it, and waits for that. Nor does it go on with what
 * nobody waits for any more; and who waits for a lock renews its session.
 */
static bool set_up(PGconn *db)
{
	char sql[300];

	snprintf(sql, sizeof(sql), "SET idle_in_transaction_session_timeout = %lld;"
		 " SET statement_timeout = %lld; SET lock_timeout = %lld; %s",
		 least_ms(store_lease, IDLE_MOST), (long long)(STATEMENT / MILLISECOND),
		 least_ms(store_lease / 4, LOCKED_MOST),
		 sync_mode == SYNC_ALWAYS ? "" : "SET synchronous_commit = off");
	return pg_plain(db, sql);
}

/* To a server that can be written to */
static PGconn *new_connection(char **why)
{
	/* What the address itself says of these goes before. */
	const char *const names[] = {
		"connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval",
		"keepalives_count", "target_session_attrs", "fallback_application_name", "dbname",
		NULL,
	};
	const char *const values[] = {
		"2", "5000", "5", "2", "3", "read-write", "twheeld", address, NULL,
	};
	PGconn *db = PQconnectdbParams(names, values, 1);

	if (db)
		PQsetNoticeReceiver(db, ignore, NULL);
	/* Nor is a database waited for without end that does not take what is sent. */
	if (PQstatus(db) == CONNECTION_OK && !PQsetnonblocking(db, 1) && set_up(db))
		return db;
	*why = pg_why(db);
	PQfinish(db);
	return NULL;
}

/**
 * pg_address - say where the database is, once, before all else; ends the program if that is no
 *	address
 * @where: as libpq takes it
 * @sync: SYNC_ALWAYS, or a commit is not waited for
 */
void pg_address(const char *where, enum sync sync)
{
	PQconninfoOption *options;

	libpq_load();
	options = PQconninfoParse(where, NULL);
	/* What libpq itself would say shows part of it, which may be the password. */
	if (!options)
		die("the store: its address can't be read; write"
		    " postgresql:///DATABASE?host=...&user=..., with %%XX for what is no letter or"
		    " digit in a name or password");
	PQconninfoFree(options);
	address = where;
	sync_mode = sync;
}

/** pg_session - the number of this server's session; 0: it has none now */
int64_t pg_session(void)
{
	return __atomic_load_n(&session, __ATOMIC_RELAXED);
}

/** pg_set_session - it has that one from now on; for the committer alone */
void pg_set_session(int64_t id)
{
	__atomic_store_n(&session, id, __ATOMIC_RELAXED);
}

/**
 * pg_open - connect a link
 * @link: the link
 * @why: out: if it can't be, why, to be freed
 */
bool pg_open(struct pg_link *link, char **why)
{
	link->db = new_connection(why);
	link->number = __atomic_add_fetch(&connections, 1, __ATOMIC_RELAXED);
	return link->db;
}

void pg_close(struct pg_link *link)
{
	PQfinish(link->db);
	link->db = NULL;
}

/** pg_use - what this thread does is done on that link from now on */
void pg_use(struct pg_link *link)
{
	used = link;
}

/* Statements */

static bool starts(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* 40: a transaction met another; 55P03: a lock; 57P, 08 and 25: this connection is over */
static enum pg_end classify(PGconn *db, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (!state || PQstatus(db) != CONNECTION_OK || starts(state, "57P") ||
	    starts(state, "08") || starts(state, "25"))
		return PG_BROKEN;
	if (starts(state, "55P03"))
		return PG_LOCKED;
	if (starts(state, "40"))
		return PG_AGAIN;
	return PG_REFUSED;
}

static PGresult *judge(PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (!result) {
		used->failure = PG_BROKEN;
		return NULL;
	}
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return result;
	used->failure = classify(used->db, result);
	if (used->failure == PG_REFUSED)
		commit_say("the store refuses: %.*s",
			   (int)strcspn(PQresultErrorMessage(result), "\n"),
			   PQresultErrorMessage(result));
	PQclear(result);
	return NULL;
}

static bool prepare(struct pg_statement *statement, const char *name, int count)
{
	PGresult *result;
	int sent;

	if (statement->connection == used->number)
		return true;
	sent = PQsendPrepare(used->db, name, statement->sql, count, NULL);
	result = judge(answer(used->db, sent));
	PQclear(result);
	if (result)
		statement->connection = used->number;
	return result;
}

/**
 * pg_do - do a statement on the link that the thread uses
 * @statement: the statement
 * @types: of what follows, a letter each: i: an int64_t; s: a text; b: bytes and their count, or
 *	NULL
 *
 * Return: what it gives, in binary; NULL: it failed.
 */
PGresult *pg_do(struct pg_statement *statement, const char *types, ...)
{
	char numbers[PARAMETERS][24], name[24];
	const char *values[PARAMETERS];
	int lengths[PARAMETERS] = { 0 }, formats[PARAMETERS] = { 0 }, count = strlen(types);
	va_list args;
	int sent;

	va_start(args, types);
	for (int i = 0; i < count; i++) {
		if (types[i] == 'i') {
			snprintf(numbers[i], sizeof(numbers[i]), "%lld",
				 (long long)va_arg(args, int64_t));
			values[i] = numbers[i];
		} else {
			values[i] = va_arg(args, const char *);
		}
		if (types[i] == 'b') {
			lengths[i] = va_arg(args, uint32_t);
			formats[i] = 1;
		}
	}
	va_end(args);
	snprintf(name, sizeof(name), "%llx", (unsigned long long)(uintptr_t)statement);
	if (!prepare(statement, name, count))
		return NULL;
	sent = PQsendQueryPrepared(used->db, name, count, values, lengths, formats, 1);
	return judge(answer(used->db, sent));
}

/** pg_command - do a statement; gives false if it failed */
bool pg_command(const char *sql)
{
	return pg_done(judge(pg_exec(used->db, sql)));
}

/** pg_done - the same is done with what a statement gave as without: was it done? */
bool pg_done(PGresult *result)
{
	PQclear(result);
	return result;
}

/** pg_int - a number of a result; all are of 64 bits */
int64_t pg_int(const PGresult *result, int row, int column)
{
	uint64_t value;

	if (PQgetisnull(result, row, column))
		return 0;
	memcpy(&value, PQgetvalue(result, row, column), sizeof(value));
	return be64toh(value);
}
