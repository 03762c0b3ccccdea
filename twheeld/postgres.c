// SPDX-License-Identifier: GPL-2.0
/*
 * The store as a database of PostgreSQL: connections, its schema, the session, transactions.
 *
 * There are three connections: that of the committer, which does nearly all; one of the event
 * loop, for what is read at the start and for administrators; and one that listens.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alarm.h"
#include "postgres.h"
#include "postgres_listen.h"
#include "runs.h"
#include "util.h"

/* So long clients wait for a database that does not answer; then they are told so. */
#define PATIENCE (5 * SECOND)
/* So long a statement may take, that of an administrator less */
#define STATEMENT (10 * SECOND)
#define PROMPT (2 * SECOND)
#define PAUSE (50 * MILLISECOND)
/* So long for a lock, or a quarter of the lease */
#define LOCKED_MOST SECOND
#define PARAMETERS 20
/* So long it is known how often a tube was paused */
#define PAUSES_KEPT (86400 * SECOND)

const char *pg_address;

static enum sync sync_mode;

/* upgrades[N] makes a store of version N + 1 of one of version N; 0 is an empty one. */
static const char *const upgrades[] = {
	"CREATE TABLE twheeld.jobs(id bigint PRIMARY KEY, tube text NOT NULL,"
	" state bigint NOT NULL, ord bigint NOT NULL, pri bigint NOT NULL, delay bigint NOT NULL,"
	" ttr bigint NOT NULL, created bigint NOT NULL, reserves bigint NOT NULL,"
	" timeouts bigint NOT NULL, releases bigint NOT NULL, buries bigint NOT NULL,"
	" kicks bigint NOT NULL, scheduled bigint NOT NULL, token bigint NOT NULL,"
	" owner bigint NOT NULL, digest bytea, body bytea NOT NULL);"
	"CREATE INDEX jobs_in_order ON twheeld.jobs(tube, state, ord, id);"
	"CREATE INDEX jobs_due ON twheeld.jobs(ord) WHERE state = 1;"
	"CREATE INDEX jobs_owned ON twheeld.jobs(owner) WHERE state = 3;"
	"CREATE UNIQUE INDEX jobs_unique ON twheeld.jobs(tube, digest)"
	" WHERE digest IS NOT NULL;"
	"CREATE SEQUENCE twheeld.job_ids;"
	"CREATE SEQUENCE twheeld.session_ids;"
	"CREATE TABLE twheeld.sessions(id bigint PRIMARY KEY, until bigint NOT NULL,"
	" batch bigint NOT NULL);"
	"CREATE TABLE twheeld.pauses(tube text PRIMARY KEY, pause bigint NOT NULL,"
	" until bigint NOT NULL, count bigint NOT NULL);"
	"CREATE TABLE twheeld.schedules(id bigint PRIMARY KEY, name text NOT NULL UNIQUE,"
	" digest bigint NOT NULL, next bigint NOT NULL, paused bigint NOT NULL,"
	" gone bigint NOT NULL, since bigint NOT NULL);"
	"CREATE TABLE twheeld.runs(schedule bigint NOT NULL, time bigint NOT NULL,"
	" shard bigint NOT NULL, job bigint NOT NULL, result bigint NOT NULL,"
	" created bigint NOT NULL, ended bigint NOT NULL, PRIMARY KEY(schedule, time, shard));"
	"CREATE INDEX runs_open ON twheeld.runs(schedule) WHERE result = 0;"
	"CREATE INDEX runs_job ON twheeld.runs(job) WHERE result < 2;"
	"CREATE INDEX runs_over ON twheeld.runs(time) WHERE result >= 2;",
};

#define VERSIONS ARRAY_SIZE(upgrades)

/* A connection with what was prepared on it, each by one thread alone */
struct link {
	PGconn *db;
	unsigned int number;		/* another one for each connection */
	int64_t most;			/* so long a statement may take */
	enum pg_end failure;
};

static struct link writer = { .most = STATEMENT }, reader = { .most = PROMPT };
static unsigned int connections;

/* The committer's own */
static int64_t session;
static int64_t batch;		/* of this session: its transactions, one more each time */
static bool unsettled;		/* was the last transaction committed? */
static int64_t given_up;	/* a session of which nobody knows what it has done */
static int64_t down_since, up_since;
static char **ready;
static size_t ready_count, ready_room;

int64_t pg_session(void)
{
	return session;
}

/* Connections */

static void pause_for(int64_t ns)
{
	struct timespec ts = { ns / SECOND, ns % SECOND };

	nanosleep(&ts, NULL);
}

static void ignore(void *arg, const PGresult *notice)
{
	(void)arg;
	(void)notice;
}

static bool plain(PGconn *db, const char *sql)
{
	PGresult *result = PQexec(db, sql);
	ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/*
 * A server that is stopped in the middle of a transaction holds what it has locked, and a
 * session that is locked is not ended. So the database ends such a transaction itself. Nor does
 * it go on with what nobody waits for any more; and who waits for a lock renews its session.
 */
static bool set_up(PGconn *db)
{
	long long lease = store_lease / MILLISECOND, locked = lease / 4;
	char sql[300];

	snprintf(sql, sizeof(sql), "SET idle_in_transaction_session_timeout = %lld;"
		 " SET statement_timeout = %lld; SET lock_timeout = %lld; %s", lease,
		 (long long)(STATEMENT / MILLISECOND),
		 locked < LOCKED_MOST / MILLISECOND ? locked : LOCKED_MOST / MILLISECOND,
		 sync_mode == SYNC_ALWAYS ? "" : "SET synchronous_commit = off");
	return plain(db, sql);
}

/**
 * pg_connect - a further connection, to a server that can be written to
 * @address: where
 * @why: out: if it can't be had, why, to be freed
 */
PGconn *pg_connect(const char *address, char **why)
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
	if (PQstatus(db) == CONNECTION_OK && set_up(db))
		return db;
	*why = must(strdup(db ? PQerrorMessage(db) : "out of memory"));
	(*why)[strcspn(*why, "\n")] = '\0';
	PQfinish(db);
	return NULL;
}

static void disconnect(struct link *link)
{
	PQfinish(link->db);
	link->db = NULL;
}

static bool connect_link(struct link *link, char **why)
{
	link->db = pg_connect(pg_address, why);
	link->number = __atomic_add_fetch(&connections, 1, __ATOMIC_RELAXED);
	return link->db;
}

/* Statements */

/* Until the answer is there, or it takes too long */
static bool wait_for_answer(struct link *link)
{
	struct pollfd fd = { .fd = PQsocket(link->db), .events = POLLIN };
	int64_t until = commit_now() + link->most;

	while (PQisBusy(link->db)) {
		int64_t left = until - commit_now();

		if (left <= 0 || (poll(&fd, 1, left / MILLISECOND + 1) < 0 && errno != EINTR))
			return false;
		if (fd.revents && !PQconsumeInput(link->db))
			return false;
	}
	return true;
}

static PGresult *answer(struct link *link, int sent)
{
	PGresult *result = NULL, *more;

	if (!sent || PQflush(link->db) < 0 || !wait_for_answer(link))
		return NULL;
	result = PQgetResult(link->db);
	while (wait_for_answer(link) && (more = PQgetResult(link->db)))
		PQclear(more);
	return result;
}

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

static PGresult *judge(struct link *link, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (!result) {
		link->failure = PG_BROKEN;
		return NULL;
	}
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return result;
	link->failure = classify(link->db, result);
	if (link->failure == PG_REFUSED)
		commit_say("the store refuses: %.*s",
			   (int)strcspn(PQresultErrorMessage(result), "\n"),
			   PQresultErrorMessage(result));
	PQclear(result);
	return NULL;
}

static bool prepare(struct link *link, struct pg_statement *statement, const char *name, int count)
{
	PGresult *result;

	if (statement->connection == link->number)
		return true;
	result = judge(link, answer(link, PQsendPrepare(link->db, name, statement->sql, count,
							NULL)));
	PQclear(result);
	if (result)
		statement->connection = link->number;
	return result;
}

/* i: an int64_t; s: a text; b: bytes and their count, or NULL */
static PGresult *do_on(struct link *link, struct pg_statement *statement, const char *types,
		       va_list args)
{
	char numbers[PARAMETERS][24], name[24];
	const char *values[PARAMETERS];
	int lengths[PARAMETERS] = { 0 }, formats[PARAMETERS] = { 0 }, count = strlen(types);

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
	snprintf(name, sizeof(name), "%llx", (unsigned long long)(uintptr_t)statement);
	if (!prepare(link, statement, name, count))
		return NULL;
	return judge(link, answer(link, PQsendQueryPrepared(link->db, name, count, values, lengths,
							    formats, 1)));
}

/**
 * pg_do - have the committer's connection do a statement
 * @statement: the statement
 * @types: of what follows, a letter each
 *
 * Return: what it gives, in binary; NULL: it failed.
 */
PGresult *pg_do(struct pg_statement *statement, const char *types, ...)
{
	PGresult *result;
	va_list args;

	va_start(args, types);
	result = do_on(&writer, statement, types, args);
	va_end(args);
	return result;
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

/* The schema */

static int64_t ask(PGconn *db, const char *sql, int64_t otherwise)
{
	PGresult *result = PQexec(db, sql);
	int64_t value = otherwise;

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result))
		value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return value;
}

static bool begin_schema(PGconn *db)
{
	return ask(db, "SELECT count(*) FROM information_schema.tables"
		   " WHERE table_schema = 'twheeld' AND table_name = 'meta'", 0) ||
		plain(db, "CREATE SCHEMA IF NOT EXISTS twheeld;"
		      "CREATE TABLE twheeld.meta(name text PRIMARY KEY, value bigint NOT NULL);"
		      "INSERT INTO twheeld.meta VALUES('version', 0)");
}

/* The row of the version is locked, so that of several servers one alone does it. */
static bool upgrade(PGconn *db)
{
	char sql[100];
	int64_t version;
	bool fine;

	if (!begin_schema(db) || !plain(db, "BEGIN"))
		return false;
	version = ask(db, "SELECT value FROM twheeld.meta WHERE name = 'version' FOR UPDATE", -1);
	if (version > (int64_t)VERSIONS)
		die("the store is of a newer twheeld (version %lld, this one knows %zu): use that"
		    " one", (long long)version, VERSIONS);
	fine = version >= 0;
	for (int64_t at = version; fine && at < (int64_t)VERSIONS; at++)
		fine = plain(db, upgrades[at]);
	snprintf(sql, sizeof(sql), "UPDATE twheeld.meta SET value = %zu WHERE name = 'version'",
		 VERSIONS);
	fine = fine && plain(db, sql);
	return plain(db, fine ? "COMMIT" : "ROLLBACK") && fine;
}

/* Also while others begin at the same time */
static void make_schema(PGconn *db)
{
	char *why;

	for (int i = 0; i < 20; i++) {
		if (upgrade(db))
			return;
		why = must(strdup(PQerrorMessage(db)));
		plain(db, "ROLLBACK");
		pause_for(PAUSE);
		if (i < 19)
			free(why);
	}
	why[strcspn(why, "\n")] = '\0';
	die("the store can't be set up: %s. Does the database belong to its user?", why);
}

/* Its tables must be there before the other threads begin. */
static void open_store(const char *address, enum sync sync)
{
	char *why;

	pg_address = address;
	sync_mode = sync;
	if (!PQisthreadsafe())
		die("this libpq knows no threads");
	if (!connect_link(&reader, &why))
		die("the store: %s", why);
	make_schema(reader.db);
}

static bool connect_reader(void)
{
	static int64_t failed_at;
	char *why;

	if (reader.db)
		return true;
	if (failed_at && commit_now() - failed_at < SECOND)
		return false;
	if (connect_link(&reader, &why))
		return true;
	failed_at = commit_now();
	free(why);
	return false;
}

/*
 * Reads of the event loop. They are of administrators: while the database is away, they fail.
 * The connection may be one of a database that was started anew since.
 */
static PGresult *read_store(struct pg_statement *statement, const char *types, ...)
{
	PGresult *result = NULL;
	va_list args;

	for (int i = 0; !result && i < 2 && connect_reader(); i++) {
		va_start(args, types);
		result = do_on(&reader, statement, types, args);
		va_end(args);
		if (!result)
			disconnect(&reader);
	}
	return result;
}

static int64_t ahead(PGresult *result)
{
	struct timespec ts;

	/* After the answer, so that it is never ahead of the database's */
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return result ? pg_int(result, 0, 0) - ts.tv_sec * SECOND - ts.tv_nsec : 0;
}

static int64_t get_clock(void)
{
	PG_STATEMENT(get, "SELECT " PG_NOW);
	PGresult *result = read_store(&get, "");
	int64_t clock = ahead(result);

	PQclear(result);
	if (!result)
		die("the store can't be read");
	return clock;
}

static void close_store(void)
{
	disconnect(&reader);
}

static int64_t get_meta(const char *name, int64_t otherwise)
{
	PG_STATEMENT(get, "SELECT value FROM twheeld.meta WHERE name = $1");
	PGresult *result = read_store(&get, "s", name);
	int64_t value = otherwise;

	if (!result)
		die("the store can't be read");
	if (PQntuples(result))
		value = pg_int(result, 0, 0);
	PQclear(result);
	return value;
}

static void each_schedule(void (*each)(const struct schedule_row *row))
{
	PG_STATEMENT(get, "SELECT name, id, digest, next, paused, gone, since"
		     " FROM twheeld.schedules");
	PGresult *result = read_store(&get, "");

	if (!result)
		die("the store can't be read");
	for (int i = 0; i < PQntuples(result); i++) {
		struct schedule_row row = {
			.name = PQgetvalue(result, i, 0), .id = pg_int(result, i, 1),
			.digest = pg_int(result, i, 2), .next = pg_int(result, i, 3),
			.paused = pg_int(result, i, 4), .gone = pg_int(result, i, 5),
			.since = pg_int(result, i, 6),
		};

		each(&row);
	}
	PQclear(result);
}

static bool last_runs(int64_t schedule, int64_t count,
		      void (*each)(const struct run_row *run, void *arg), void *arg)
{
	PG_STATEMENT(get, "SELECT time, shard, job, result, created, ended FROM twheeld.runs"
		     " WHERE schedule = $1 ORDER BY time DESC, shard DESC LIMIT $2");
	PGresult *result = read_store(&get, "ii", schedule, count);

	for (int i = 0; result && i < PQntuples(result); i++) {
		struct run_row run = {
			.time = pg_int(result, i, 0), .shard = pg_int(result, i, 1),
			.job = pg_int(result, i, 2), .result = pg_int(result, i, 3),
			.created = pg_int(result, i, 4), .ended = pg_int(result, i, 5),
		};

		each(&run, arg);
	}
	return pg_done(result);
}

/* The session */

static const char release_jobs[] =
	"UPDATE twheeld.jobs SET state = 0, ord = pri, owner = 0, token = token + 1"
	" WHERE owner = $1 AND state = 3 RETURNING tube";

static bool jobs_of(int64_t owner)
{
	static struct pg_statement give_back = { .sql = release_jobs };
	PGresult *result = pg_do(&give_back, "i", owner);

	for (int i = 0; result && i < PQntuples(result); i++)
		pg_ready(PQgetvalue(result, i, 0));
	return pg_done(result);
}

/* The row comes first: a transaction of that session, which may be under way, holds it. */
static bool forget_session(int64_t id)
{
	PG_STATEMENT(forget, "DELETE FROM twheeld.sessions WHERE id = $1");

	return pg_done(pg_do(&forget, "i", id)) && jobs_of(id);
}

/*
 * A server that is stopped while it is sent a result keeps what it has locked: the database waits
 * for it. Its connection has the session's name. Engines that can't do this are asked once.
 */
static bool end_connections(void)
{
	PG_STATEMENT(end, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity AS a"
		     " JOIN twheeld.sessions AS s"
		     " ON a.application_name = 'twheeld session ' || s.id"
		     " WHERE a.datname = current_database() AND s.until < " PG_NOW
		     " AND s.id <> $1");
	static bool refused;

	if (refused || pg_done(pg_do(&end, "i", session)))
		return true;
	refused = writer.failure == PG_REFUSED;
	return false;
}

/*
 * Those whose servers did not renew them. After a database that was away for long, the others
 * have a lease's time, as they could not.
 */
static bool end_sessions(void)
{
	PG_STATEMENT(old, "DELETE FROM twheeld.pauses WHERE until < " PG_NOW " - $1");
	PG_STATEMENT(find, "SELECT id FROM twheeld.sessions WHERE until < " PG_NOW
		     " AND id <> $1 FOR UPDATE SKIP LOCKED");
	PGresult *result;
	bool fine;

	if (commit_now() - up_since < store_lease)
		return true;
	if (!pg_done(pg_do(&old, "i", PAUSES_KEPT)))
		return false;
	result = pg_do(&find, "i", session);
	fine = result;
	for (int i = 0; fine && i < PQntuples(result); i++)
		fine = forget_session(pg_int(result, i, 0));
	PQclear(result);
	return fine && end_connections();
}

/* Gives false when it is over. */
static bool renew(void)
{
	PG_STATEMENT(extend, "UPDATE twheeld.sessions SET until = " PG_NOW " + $2, batch = $3"
		     " WHERE id = $1 RETURNING id");
	PGresult *result = pg_do(&extend, "iii", session, store_lease, ++batch);

	if (result && !PQntuples(result))
		writer.failure = PG_ENDED;
	/* Its row is locked by one that ends it, or by what this server did last */
	if (writer.failure == PG_LOCKED)
		writer.failure = PG_AGAIN;
	PQclear(result);
	return writer.failure == PG_FINE;
}

/* Transactions */

/** pg_ready - a tube has jobs that are ready, once the transaction is committed */
void pg_ready(const char *tube)
{
	for (size_t i = 0; i < ready_count; i++)
		if (!strcmp(ready[i], tube))
			return;
	if (ready_count == ready_room) {
		ready_room = ready_room ? 2 * ready_room : 16;
		ready = must(realloc(ready, ready_room * sizeof(*ready)));
	}
	ready[ready_count++] = must(strdup(tube));
}

static void tell(bool committed)
{
	if (committed && ready_count)
		pg_notify((const char *const *)ready, ready_count);
	for (size_t i = 0; i < ready_count; i++)
		free(ready[i]);
	ready_count = 0;
}

static bool clock_and_sessions(struct op *op)
{
	PG_STATEMENT(get, "SELECT " PG_NOW);
	struct request *request = container_of(op, struct request, op);
	PGresult *result;

	if (!end_sessions())
		return false;
	result = pg_do(&get, "");
	request->clock = ahead(result);
	return pg_done(result);
}

static bool write_op(struct op *op)
{
	op->gone = false;
	switch (op->kind) {
	case OP_SKEW:
	case OP_FORGET_TUBE:
		return true;
	case OP_DEFINE:
		return pg_define(op->schedule);
	case OP_PAUSE:
		return pg_pause(op);
	case OP_FIRE:
		return pg_fire(op->firing);
	case OP_PRUNE:
		return pg_prune(op);
	case OP_PAUSED:
		return pg_paused(op);
	case OP_RENEW:
		return clock_and_sessions(op);
	default:
		return pg_job_op(op);
	}
}

static bool command(const char *sql)
{
	return pg_done(judge(&writer, answer(&writer, PQsendQuery(writer.db, sql))));
}

static enum pg_end roll_back(void)
{
	enum pg_end end = writer.failure;

	tell(false);
	return end == PG_BROKEN || command("ROLLBACK") ? end : PG_BROKEN;
}

static enum pg_end transaction(struct op *ops)
{
	bool fine;

	writer.failure = PG_FINE;
	fine = command("BEGIN") && renew();
	for (struct op *op = ops; fine && op; op = op->next) {
		pg_forget_results(op);
		fine = write_op(op);
	}
	if (!fine)
		return roll_back();
	unsettled = true;
	if (!command("COMMIT") && writer.failure == PG_BROKEN)
		return PG_BROKEN;
	unsettled = false;
	tell(writer.failure == PG_FINE);
	return writer.failure;
}

/*
 * Was the transaction committed whose connection broke? While it may still be, it holds the
 * session's row, and this waits for it.
 */
static enum pg_end settle(void)
{
	PG_STATEMENT(get, "SELECT batch FROM twheeld.sessions WHERE id = $1 FOR UPDATE");
	PGresult *result;
	enum pg_end end;

	writer.failure = PG_FINE;
	result = pg_do(&get, "i", session);
	if (!result)
		return writer.failure == PG_BROKEN ? PG_BROKEN : PG_AGAIN;
	unsettled = false;
	if (!PQntuples(result))
		end = PG_ENDED;
	else
		end = pg_int(result, 0, 0) == batch ? PG_FINE : PG_AGAIN;
	PQclear(result);
	tell(end == PG_FINE);
	return end;
}

/* By which other servers find its connection */
static void name_connection(void)
{
	char sql[80];

	snprintf(sql, sizeof(sql), "SET application_name = 'twheeld session %lld'",
		 (long long)session);
	plain(writer.db, sql);
}

static bool make_session(void)
{
	PG_STATEMENT(make, "INSERT INTO twheeld.sessions(id, until, batch) VALUES("
		     "nextval('twheeld.session_ids'), " PG_NOW " + $1, 0) RETURNING id");
	PGresult *result;
	int64_t id = 0;

	writer.failure = PG_FINE;
	if (!command("BEGIN") || (given_up && !forget_session(given_up))) {
		roll_back();
		return false;
	}
	result = pg_do(&make, "i", store_lease);
	if (result)
		id = pg_int(result, 0, 0);
	PQclear(result);
	if (!result || !command("COMMIT")) {
		roll_back();
		return false;
	}
	tell(true);
	session = id;
	batch = 0;
	given_up = 0;
	name_connection();
	return true;
}

static bool connect_writer(void)
{
	char *why;

	if (writer.db)
		return true;
	if (connect_link(&writer, &why)) {
		if (down_since)
			inform("the database answers again");
		down_since = 0;
		up_since = commit_now();
		if (session)
			name_connection();
		return true;
	}
	if (!down_since) {
		complain("the database does not answer: %s. It is tried again", why);
		down_since = commit_now();
	}
	free(why);
	return false;
}

static void end_session(const char *why)
{
	inform("the session of this server is over, %s: what it had reserved is ready again", why);
	session = 0;
}

/* One try */
static enum pg_end attempt(struct op *ops)
{
	enum pg_end end;

	if (!connect_writer())
		return PG_BROKEN;
	if (unsettled) {
		end = settle();
		if (end == PG_ENDED)
			end_session("and it is not known what it did last");
		return end == PG_ENDED ? PG_REFUSED : end;
	}
	if (!session && !make_session())
		return writer.failure == PG_BROKEN ? PG_BROKEN : PG_AGAIN;
	end = transaction(ops);
	if (end == PG_ENDED)
		end_session("as it did not reach the database for the lease");
	return end == PG_ENDED ? PG_AGAIN : end;
}

/* Clients wait for a database that is away, but not for ever. */
static enum pg_end insist(struct op *ops)
{
	int64_t until = (down_since ? down_since : commit_now()) + PATIENCE;
	enum pg_end end;

	while ((end = attempt(ops)) == PG_AGAIN || end == PG_BROKEN) {
		if (end == PG_BROKEN && writer.db) {
			commit_say("the connection to the database is lost: it is made again");
			disconnect(&writer);
		}
		if (commit_now() >= until)
			break;
		pause_for(end == PG_BROKEN ? PAUSE : MILLISECOND);
	}
	return end;
}

/* What it may have done is not known: so nobody may rely on what it holds. */
static void give_up(void)
{
	if (!unsettled)
		return;
	unsettled = false;
	tell(false);
	given_up = session;
	end_session("as it is not known what it did last");
}

static void set_failed(struct op *ops, bool failed)
{
	for (struct op *op = ops; op; op = op->next)
		op->failed = failed;
}

/* Where one can't be done, the others are. */
static void write_one_by_one(struct op *ops)
{
	for (struct op *op = ops; op; op = op->next) {
		struct op *next = op->next;

		op->next = NULL;
		op->failed = insist(op) != PG_FINE;
		if (op->failed)
			give_up();
		op->next = next;
	}
}

static void write_ops(struct op *ops)
{
	enum pg_end end = insist(ops);

	set_failed(ops, end != PG_FINE);
	if (end == PG_FINE)
		return;
	give_up();
	if ((end == PG_REFUSED || end == PG_LOCKED) && session && ops->next)
		write_one_by_one(ops);
	for (struct op *op = ops; op; op = op->next)
		if (op->failed)
			pg_forget_results(op);
}

static void start(int64_t sync_ns)
{
	(void)sync_ns;
	pg_listen();
}

static bool sync_store(void)
{
	return true;
}

/* Its session is over: what nobody has taken is ready again at once. */
static void end(void)
{
	if (session && connect_writer() && !unsettled) {
		writer.failure = PG_FINE;
		if (command("BEGIN") && forget_session(session) && command("COMMIT"))
			tell(true);
	}
	disconnect(&writer);
}

const struct store store_postgres = {
	.shared = true,
	.open = open_store,
	.close = close_store,
	.clock = get_clock,
	.meta = get_meta,
	.schedules = each_schedule,
	.runs = last_runs,
	.write_start = start,
	.write = write_ops,
	.sync = sync_store,
	.write_end = end,
};
