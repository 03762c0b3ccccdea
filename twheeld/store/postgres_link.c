// SPDX-License-Identifier: GPL-2.0
/*
 * Connections to PostgreSQL, and their statements.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/commit.h"
#include "store/postgres_link.h"

/*
 * How long a statement may take; its sender waits longer, for the database to say that it ended
 * it.
 */
#define STATEMENT (10 * SECOND)
#define ANSWER (STATEMENT + SECOND)
/* How long a statement waits for a lock; or a quarter of the lease, if that is less */
#define LOCKED_MOST SECOND
/* How long a new connection may take to be set up, once it is there */
#define BEGIN_MOST (5 * SECOND)
/* How long a transaction may wait for its next statement; or the lease, if that is less */
#define IDLE_MOST (5 * SECOND)
#define PARAMETERS 24

static const char *address;
static enum sync sync_mode;
static unsigned int connections;
static int64_t session;
static __thread struct pg_link *used;

static void ignore(void *arg, const PGresult *notice)
{
}

/* Wait until all is sent and the answer is there; false: it takes too long. */
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

/* The last answer of several statements, which is an error if one of them failed */
static PGresult *link_answer(PGconn *db, int sent, int64_t most)
{
	int64_t until = commit_now() + most;
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

static bool is_done(PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/** pg_exec - do statements, within the time that one may take; NULL: there is no answer */
PGresult *pg_exec(PGconn *db, const char *sql)
{
	return link_answer(db, PQsendQuery(db, sql), ANSWER);
}

/**
 * pg_within - do statements within a time; their results are not used
 * @db: the connection
 * @sql: the statements
 * @most: ns to wait for their answers. The database has its own statement_timeout
 */
bool pg_within(PGconn *db, const char *sql, int64_t most)
{
	return is_done(link_answer(db, PQsendQuery(db, sql), most));
}

/** pg_plain - do statements; their results are not used */
bool pg_plain(PGconn *db, const char *sql)
{
	return is_done(pg_exec(db, sql));
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
		return must(strdup("it has taken the connection, but answers nothing. Has a pooler"
				   " no place left? " PG_CONNECTIONS));
	why = must(strdup(PQerrorMessage(db)));
	why[strcspn(why, "\n")] = '\0';
	return why;
}

static long long least_ms(int64_t a, int64_t b)
{
	return (a < b ? a : b) / MILLISECOND;
}

/*
 * A server that is stopped in the middle of a transaction keeps its locks, and a session that is
 * locked can't be ended. So the database ends such a transaction itself; and soon, as a server that
 * was cut off looks up what became of it, and waits for that. The database also drops statements
 * that nobody waits for any more, and ends a wait for a lock in time to renew the session. A
 * statement is planned once, for arrays of any length: else arrays of one element would be
 * planned each time. The role's or database's own values of these settings are for others. Some
 * releases lack the last three.
 */
static bool set_up(PGconn *db)
{
	char sql[500];

	snprintf(sql, sizeof(sql), "SET idle_in_transaction_session_timeout = %lld;"
		 " SET statement_timeout = %lld; SET lock_timeout = %lld; %s"
		 " SELECT set_config(name, CASE vartype WHEN 'enum' THEN 'force_generic_plan'"
		 " ELSE '0' END, false) FROM pg_settings WHERE name IN ('idle_session_timeout',"
		 " 'transaction_timeout', 'plan_cache_mode')",
		 least_ms(store_lease, IDLE_MOST), (long long)(STATEMENT / MILLISECOND),
		 least_ms(store_lease / 4, LOCKED_MOST),
		 sync_mode == SYNC_ALWAYS ? "" : "SET synchronous_commit = off;");
	return pg_within(db, sql, BEGIN_MOST);
}

/* Connect to a server that can be written to, and let no server that reads nothing keep us. */
static PGconn *connect_to(void)
{
	/* The address may have these itself, and goes before. */
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
	if (PQstatus(db) == CONNECTION_OK)
		PQsetnonblocking(db, 1);
	return db;
}

static PGconn *new_connection(char **why)
{
	PGconn *db = connect_to();

	if (PQstatus(db) == CONNECTION_OK && PQisnonblocking(db) && set_up(db))
		return db;
	*why = pg_why(db);
	PQfinish(db);
	return NULL;
}

/**
 * pg_address - set the database's address, once, before all else; ends the program if it is no
 *	address
 * @where: as libpq takes it
 * @sync: SYNC_ALWAYS, or a commit is not waited for
 */
void pg_address(const char *where, enum sync sync)
{
	PQconninfoOption *options;

	libpq_load();
	options = PQconninfoParse(where, NULL);
	/* libpq's own message would show part of the address, which may be the password. */
	if (!options)
		die("the store: its address can't be read; write"
		    " postgresql:///DATABASE?host=...&user=..., with %%XX for what is no letter or"
		    " digit in a name or password");
	PQconninfoFree(options);
	address = where;
	sync_mode = sync;
}

/** pg_session - this server's session; 0: it has none now */
int64_t pg_session(void)
{
	return __atomic_load_n(&session, __ATOMIC_RELAXED);
}

/** pg_set_session - set this server's session; for the committer alone */
void pg_set_session(int64_t id)
{
	__atomic_store_n(&session, id, __ATOMIC_RELAXED);
}

/* The process of the database behind a connection; 0: the database could not say it */
static int backend_of(PGconn *db)
{
	PGresult *result = link_answer(db, PQsendQuery(db, "SELECT pg_backend_pid()"), BEGIN_MOST);
	int pid = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) ?
		atoi(PQgetvalue(result, 0, 0)) : 0;

	PQclear(result);
	return pid > 0 ? pid : 0;
}

#define POOLER "the store: a pooler is in between that %s. A server needs connections of its own:" \
	" connect to the database itself, or have the pooler give one out for a whole session" \
	" (pgbouncer: pool_mode = session)"

/*
 * While the first connection has a transaction, the second must keep its process of the database,
 * which is not the first's. Gives what is wrong, or NULL, also if one does not answer in time.
 */
static const char *compare_backends(PGconn *one, PGconn *other)
{
	int before = backend_of(one), during, after;
	PGresult *begun;
	bool refused;

	if (!before)
		return NULL;
	begun = link_answer(other, PQsendQuery(other, "BEGIN"), BEGIN_MOST);
	/*
	 * The database refuses the statement, and closes the connection: whichever is seen first.
	 */
	refused = PQstatus(other) != CONNECTION_OK ||
		(begun && PQresultStatus(begun) != PGRES_COMMAND_OK);
	during = begun && !refused ? backend_of(other) : 0;
	after = during ? backend_of(one) : 0;
	PQclear(begun);
	if (refused)
		return "knows no transactions";
	if (during && (before == during || (after && before != after)))
		return "shares a connection among transactions of several programs";
	return NULL;
}

static const char *look_for_pooler(void)
{
	PGconn *one = connect_to(), *other = NULL;
	const char *wrong = NULL;

	if (PQstatus(one) == CONNECTION_OK)
		other = connect_to();
	if (PQstatus(other) == CONNECTION_OK)
		wrong = compare_backends(one, other);
	PQfinish(one);
	PQfinish(other);
	return wrong;
}

/**
 * pg_refuse_poolers - end the program if connections are not the server's own
 *
 * With a pooler that shares connections, settings, prepared statements and LISTEN would be another
 * program's. So nothing is set before this is known. A database that is just being stopped ends a
 * connection once; a pooler does so each time.
 */
void pg_refuse_poolers(void)
{
	const char *wrong = NULL;

	for (int i = 0; i < 3; i++) {
		wrong = look_for_pooler();
		if (!wrong)
			return;
		usleep(200000);
	}
	die(POOLER, wrong);
}

/**
 * pg_open - connect a link
 * @link: the link
 * @why: out: why it could not, to be freed
 */
bool pg_open(struct pg_link *link, char **why)
{
	link->db = new_connection(why);
	link->mode = PG_ONE_BY_ONE;
	link->number = __atomic_add_fetch(&connections, 1, __ATOMIC_RELAXED);
	return link->db;
}

void pg_close(struct pg_link *link)
{
	PQfinish(link->db);
	link->db = NULL;
}

/** pg_use - have this thread do its statements on a link from now on */
void pg_use(struct pg_link *link)
{
	used = link;
}

/* Statements */

static bool starts(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* The SQLSTATE where another program has left a statement of that name on the connection */
#define WAS_PREPARED "42P05"
#define NO_RIGHT "42501"
/* The class of SQLSTATE for a full disk or memory */
#define NO_ROOM "53"

/*
 * Classes: 40: a transaction met another; 55P03: a lock; 57P, 08 and 25: this connection is over
 */
static enum pg_end classify(PGconn *db, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (!state || PQstatus(db) != CONNECTION_OK || starts(state, "57P") ||
	    starts(state, "08") || starts(state, "25"))
		return PG_BROKEN;
	if (starts(state, "55P03"))
		return PG_LOCKED;
	if (starts(state, "40") || starts(state, WAS_PREPARED))
		return PG_AGAIN;
	return PG_REFUSED;
}

static bool is_of(const PGresult *result, const char *class)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return state && starts(state, class);
}

/* Only the log has this: a worker's answer is that there is no job. */
static void say_refused(const PGresult *result)
{
	const char *why = PQresultErrorMessage(result);
	int length = strcspn(why, "\n");

	if (is_of(result, NO_ROOM))
		commit_say("the database's machine has no room (%.*s): until it has, no job can be"
			   " put or reserved, also of those that are ready", length, why);
	else
		commit_say("the store refuses: %.*s", length, why);
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
		say_refused(result);
	PQclear(result);
	return NULL;
}

/*
 * A hash of the text is the name: so a program that has the connection before or after this one has
 * the same statement, or none, under that name.
 */
static void name_statement(struct pg_statement *statement)
{
	uint64_t hash = 0xcbf29ce484222325;	/* FNV-1a */

	for (const char *at = statement->sql; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	snprintf(statement->name, sizeof(statement->name), "twheeld_%016llx",
		 (unsigned long long)hash);
}

static bool prepare(struct pg_statement *statement, int count)
{
	PGresult *result;
	bool there;

	if (statement->connection == used->number)
		return true;
	if (!*statement->name)
		name_statement(statement);
	result = link_answer(used->db, PQsendPrepare(used->db, statement->name, statement->sql,
						     count, NULL), ANSWER);
	there = is_of(result, WAS_PREPARED);
	result = judge(result);
	PQclear(result);
	if (result || there)
		statement->connection = used->number;
	return result;
}

/* Send a prepared statement. One that is not prepared is done when the flight is over. */
static bool send(struct pg_statement *statement, int count, const char *const *values,
		 const int *lengths, const int *formats)
{
	if (used->mode == PG_SENDING && statement->connection != used->number)
		return false;
	if (!prepare(statement, count))
		return false;
	if (PQsendQueryPrepared(used->db, statement->name, count, values, lengths, formats, 1))
		return true;
	used->failure = PG_BROKEN;
	return false;
}

static PGresult *next_answer(void)
{
	if (!used->next) {
		used->more = true;
		return NULL;
	}
	used->next = false;
	return judge(link_answer(used->db, 1, ANSWER));
}

/**
 * pg_is_unknown - has the engine no such feature (0A), or no grammar for it (42)?
 *
 * A right that lacks is in the same class, and somebody can grant it.
 */
bool pg_is_unknown(const PGresult *result)
{
	return is_of(result, "0A") || (is_of(result, "42") && !is_of(result, NO_RIGHT));
}

/**
 * pg_do - do a statement on the link that the thread uses
 * @statement: the statement
 * @types: a letter for each argument: i: an int64_t; s: a text; b: bytes and their count, or
 *	NULL
 *
 * Return: the result, in binary; NULL: it failed, or it was sent in a flight.
 */
PGresult *pg_do(struct pg_statement *statement, const char *types, ...)
{
	char numbers[PARAMETERS][24];
	const char *values[PARAMETERS];
	int lengths[PARAMETERS] = { 0 }, formats[PARAMETERS] = { 0 }, count = strlen(types);
	va_list args;

	if (used->mode == PG_ANSWERED)
		return next_answer();
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
			lengths[i] = va_arg(args, size_t);
			used->bytes += lengths[i];
			formats[i] = 1;
		}
	}
	va_end(args);
	if (!send(statement, count, values, lengths, formats))
		return NULL;
	if (used->mode == PG_ONE_BY_ONE)
		return judge(link_answer(used->db, 1, ANSWER));
	used->sent++;
	return NULL;
}

/**
 * pg_flight_begin - from now on send statements; their answers come later, all at once
 *
 * Each way to the database and back takes as long as many statements. So each function with a
 * statement is called twice: now, when pg_do() sends, and gives NULL; and after pg_flight_sent(),
 * in the same order, each after pg_flight_next(), when pg_do() gives the answer. Such a function
 * may send one statement. Where it needs a further one, pg_do() sets the link's ->more, and the
 * function has to be called once more when the flight is over. A statement that is not prepared
 * yet is not sent: ->sent stays as it was.
 */
bool pg_flight_begin(void)
{
	used->sent = 0;
	used->bytes = 0;
	if (!PQenterPipelineMode(used->db)) {
		used->failure = PG_BROKEN;
		return false;
	}
	used->mode = PG_SENDING;
	return true;
}

/** pg_flight_sent - end of the statements; from now on pg_do() gives answers */
bool pg_flight_sent(void)
{
	used->mode = PG_ANSWERED;
	if (used->failure == PG_FINE && used->sent && !PQpipelineSync(used->db))
		used->failure = PG_BROKEN;
	return used->failure == PG_FINE;
}

/** pg_answered - does pg_do() give answers now, so that its arguments need not be made? */
bool pg_answered(void)
{
	return used->mode == PG_ANSWERED;
}

/** pg_flight_next - pg_do() gives the next answer from now on */
void pg_flight_next(void)
{
	used->next = true;
	used->more = false;
}

/* A statement that failed has ended the flight: later ones were not done. */
static bool end_flight(void)
{
	ExecStatusType status = PGRES_PIPELINE_SYNC;
	PGresult *result;

	if (used->sent)
		do {
			result = link_answer(used->db, 1, ANSWER);
			status = PQresultStatus(result);
			PQclear(result);
		} while (result && status != PGRES_PIPELINE_SYNC);
	return status == PGRES_PIPELINE_SYNC && PQexitPipelineMode(used->db);
}

/** pg_flight_end - do statements one by one again; gives false if one of the flight failed */
bool pg_flight_end(void)
{
	used->mode = PG_ONE_BY_ONE;
	if (used->failure != PG_BROKEN && !end_flight())
		used->failure = PG_BROKEN;
	return used->failure == PG_FINE;
}

/** pg_command - do a statement; gives false if it failed */
bool pg_command(const char *sql)
{
	return pg_done(judge(pg_exec(used->db, sql)));
}

/** pg_done - was a statement done whose result is not used? Frees the result. */
bool pg_done(PGresult *result)
{
	PQclear(result);
	return result;
}

/** pg_int - a number of a result; all have 64 bits */
int64_t pg_int(const PGresult *result, int row, int column)
{
	uint64_t value;

	if (PQgetisnull(result, row, column))
		return 0;
	memcpy(&value, PQgetvalue(result, row, column), sizeof(value));
	return be64toh(value);
}
