// SPDX-License-Identifier: GPL-2.0
/*
 * The store as a database of PostgreSQL, which several servers share: its schema, the session,
 * transactions.
 *
 * The database alone says whose a job is. A server has a session there, which it renews with
 * each transaction. A session that is not renewed for the lease is ended by another server, and its
 * jobs are ready again. A reserved job has a token, a new one each time it changes hands: a write
 * by its holder counts only while the job still has that token.
 *
 * There are four connections: the committer's, which does nearly all; one that listens; and two for
 * questions, which are made for the first question. (PG_CONNECTIONS says so.) The event loop has
 * one more to read at the start, and closes it then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/postgres_ask.h"
#include "store/postgres_functions.h"
#include "store/postgres_jobs.h"
#include "store/postgres_link.h"
#include "store/postgres_listen.h"
#include "store/postgres_runs.h"
#include "store/postgres_traces.h"

/* How long clients wait for a database that does not answer; then they get an error. */
#define PATIENCE (5 * SECOND)
/* How long a server looks for whether a commit was done: longer than IDLE_MOST */
#define LOOK_UP (7 * SECOND)
#define PAUSE (50 * MILLISECOND)
/* The most operations in a flight, and bytes of bodies, not counting the last one's */
#define FLIGHT 256
#define FLIGHT_BYTES (256 << 10)
/* How long the count of a tube's pauses is kept */
#define PAUSES_KEPT (86400 * SECOND)
/* How many keys whose time is over are forgotten each second */
#define KEYS_FREED ((int64_t)1000)
/* An upgrade may have to make all indexes anew. */
#define UPGRADE_MOST (86400 * SECOND)
/*
 * An upgrade that waits for the lock of a table has an autovacuum of that table ended, but only
 * after deadlock_timeout, which is a second.
 */
#define UPGRADE_PATIENCE "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '10s'"

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
	"ALTER TABLE twheeld.sessions ADD COLUMN node text NOT NULL DEFAULT '',"
	" ADD COLUMN site text NOT NULL DEFAULT '';",
	/* No default: an older server does not write the lease, and must get no session. */
	"ALTER TABLE twheeld.sessions ADD COLUMN lease bigint NOT NULL;",
	/*
	 * The order of bytes: any other order changes with releases of glibc or ICU, and the next
	 * release would not find in an index what this one has put there.
	 */
	"ALTER TABLE twheeld.jobs ALTER COLUMN tube TYPE text COLLATE \"C\";"
	"ALTER TABLE twheeld.pauses ALTER COLUMN tube TYPE text COLLATE \"C\";"
	"ALTER TABLE twheeld.schedules ALTER COLUMN name TYPE text COLLATE \"C\";",
	/* twheeld.put() looks at this, and at meta's job-size. */
	"ALTER TABLE twheeld.sessions ADD COLUMN draining bigint NOT NULL DEFAULT 0,"
	" ADD COLUMN tabs bigint NOT NULL DEFAULT 0;",
	"CREATE TABLE twheeld.tries(job bigint NOT NULL, until bigint NOT NULL,"
	" size bigint NOT NULL, try bigint NOT NULL, deed bigint NOT NULL, made bigint NOT NULL,"
	" due bigint NOT NULL, begun bigint NOT NULL, ended bigint NOT NULL,"
	" tube text COLLATE \"C\" NOT NULL, client text NOT NULL, note bytea NOT NULL,"
	" PRIMARY KEY(job, until));"
	"ALTER TABLE twheeld.runs ADD COLUMN count bigint NOT NULL DEFAULT 1;",
	/* The tube from which a job came to the dead letters */
	"ALTER TABLE twheeld.jobs ADD COLUMN origin text;"
	"CREATE INDEX jobs_back ON twheeld.jobs(tube, id) WHERE origin IS NOT NULL;",
	/* A server that gives jobs of a tube with a limit holds its row until that is committed. */
	"CREATE TABLE twheeld.limits(tube text COLLATE \"C\" PRIMARY KEY,"
	" full_until bigint NOT NULL);",
	/* Keys that are taken for a time. A job with one has digest = '\\x01' || sha256(key). */
	"CREATE TABLE twheeld.keys(tube text COLLATE \"C\", key bytea, until bigint NOT NULL,"
	" job bigint NOT NULL, PRIMARY KEY(tube, key));"
	"CREATE INDEX keys_until ON twheeld.keys(until);",
	"ALTER TABLE twheeld.jobs ADD COLUMN tries bigint NOT NULL DEFAULT 0;",
	/* failing: the next run that is done is a recovery; scheduled: a schedule's number */
	"ALTER TABLE twheeld.schedules ADD COLUMN failing bigint NOT NULL DEFAULT 0;"
	"UPDATE twheeld.jobs SET scheduled = coalesce((SELECT max(schedule) FROM twheeld.runs"
	" WHERE job = jobs.id AND result < 2), scheduled) WHERE scheduled = 1;",
	/* The functions alone */
	"",
};

#define VERSIONS ARRAY_SIZE(upgrades)
/* The version that brought the functions, or changed them last */
#define FUNCTIONS_SINCE 12

/* Operations of one kind that one statement does together */
struct several {
	struct op op;
	size_t count, bytes;
	struct op *ops[COMMIT_MOST];
};

/* The loop's own, until all threads have begun */
static struct pg_link reader;

/* The committer's own */
static struct pg_link writer;
/*
 * The session's transactions are numbered from a random number on, so that no other session can
 * have the same ones: the last one, and the last one that was committed.
 */
static int64_t batch, committed;
static bool unsettled;		/* was the last transaction committed? */
static int64_t had;		/* the session before, until another one begins */
static int64_t down_since, up_since;
static struct several all_puts = { .op = { .kind = OP_PUTS } };
static struct several all_deletes = { .op = { .kind = OP_DELETES } };
static struct several all_ends = { .op = { .kind = OP_DELETES } };	/* with traces */

static void pause_for(int64_t ns)
{
	struct timespec ts = { ns / SECOND, ns % SECOND };

	nanosleep(&ts, NULL);
}

/* The schema */

static int64_t ask(PGconn *db, const char *sql, int64_t otherwise)
{
	PGresult *result = pg_exec(db, sql);
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
		pg_plain(db, "CREATE SCHEMA IF NOT EXISTS twheeld;"
		      "CREATE TABLE twheeld.meta(name text PRIMARY KEY, value bigint NOT NULL);"
		      "INSERT INTO twheeld.meta VALUES('version', 0)");
}

/* Do the statements one by one, as the time limit is for each. */
static bool do_each(PGconn *db, const char *sql)
{
	char *all = must(strdup(sql)), *rest = all, *statement;
	bool fine = true;

	while (fine && (statement = strsep(&rest, ";")))
		fine = !*statement || pg_within(db, statement, UPGRADE_MOST);
	free(all);
	return fine;
}

static bool none_lives(PGconn *db, int64_t version)
{
	int64_t live = ask(db, "SELECT count(*) FROM twheeld.sessions WHERE until >= " PG_NOW, -1);

	if (live > 0)
		die("the store is of version %lld, and servers of an older twheeld still use it:"
		    " %lld. End them first; those that were killed count for their lease",
		    (long long)version, (long long)live);
	return !live;
}

/*
 * An older server does not know the new tables. Where one has a session, it goes on, and this
 * server can't have the store. One whose session is over, as it was cut off, can't begin another:
 * its make_session() looks at the version, or does not write a column that must be there. Older
 * servers are looked for before the lock, too: while this one waits for the lock, for a pg_dump
 * perhaps, they would wait behind it, each time that this one is started.
 */
static bool end_older(PGconn *db, int64_t version)
{
	return none_lives(db, version) &&
		pg_plain(db, "LOCK TABLE twheeld.sessions IN ACCESS EXCLUSIVE MODE") &&
		none_lives(db, version) &&
		pg_plain(db, "UPDATE twheeld.jobs SET state = 0, ord = pri, owner = 0,"
			 " token = token + 1 WHERE state = 3;"
			 "DELETE FROM twheeld.sessions");
}

/*
 * Locks the row of the version, so that only one of several servers upgrades. Leaves a failed
 * transaction to the caller, who asks why before rolling back.
 */
static bool upgrade(PGconn *db)
{
	char sql[100];
	int64_t version;
	bool fine;

	if (!begin_schema(db) || !pg_plain(db, "BEGIN"))
		return false;
	version = ask(db, "SELECT value FROM twheeld.meta WHERE name = 'version' FOR UPDATE", -1);
	if (version > (int64_t)VERSIONS)
		die("the store is of a newer twheeld (version %lld, this one knows %zu): use that"
		    " one", (long long)version, VERSIONS);
	fine = version >= 0;
	if (version > 0 && version < (int64_t)VERSIONS)
		fine = end_older(db, version) && pg_plain(db, UPGRADE_PATIENCE);
	for (int64_t at = version; fine && at < (int64_t)VERSIONS; at++)
		fine = do_each(db, upgrades[at]);
	if (fine && version < FUNCTIONS_SINCE)
		fine = pg_make_functions(db);
	snprintf(sql, sizeof(sql), "UPDATE twheeld.meta SET value = %zu WHERE name = 'version'",
		 VERSIONS);
	return fine && pg_plain(db, sql) && pg_plain(db, "COMMIT");
}

/* Make or upgrade the tables, also while other servers begin at the same time. */
static void make_schema(PGconn *db)
{
	char *why;

	for (int i = 1; !upgrade(db); i++) {
		why = pg_why(db);
		if (pg_hangs(db))
			die("the store: %s", why);
		if (PQstatus(db) != CONNECTION_OK)
			die("the store: the connection was lost as it was set up (%s). Is the"
			    " database being stopped?", why);
		if (i == 20)
			die("the store can't be set up: %s. Does the database belong to its user,"
			    " and may that use the languages sql and plpgsql?", why);
		free(why);
		pg_plain(db, "ROLLBACK");
		pause_for(PAUSE);
	}
}

/* A logical replica would lose our rows to the original's, and give out its numbers once more. */
static void refuse_copies(PGconn *db)
{
	if (ask(db, "SELECT count(*) FROM pg_subscription_rel"
		    " WHERE srrelid = 'twheeld.jobs'::regclass", 0))
		die("the store: this database has its jobs from another one, by a subscription: use"
		    " that one. If it is to take that one's place, drop the subscription, and have"
		    " the sequences in the schema twheeld go on from further on");
}

/* Makes the tables, before the other threads begin. */
static void open_store(const char *address, enum sync sync)
{
	char *why;

	pg_address(address, sync);
	if (!PQisthreadsafe())
		die("this libpq knows no threads");
	pg_refuse_poolers();
	if (!pg_open(&reader, &why))
		die("the store: %s. Does PostgreSQL run there, is there such a database, and may"
		    " this user connect to it? psql with the same address tells", why);
	make_schema(reader.db);
	refuse_copies(reader.db);
	pg_use(&reader);
}

static int64_t ahead(PGresult *result)
{
	struct timespec ts;

	/* Read after the answer, so that our time is never ahead of the database's. */
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return result ? pg_int(result, 0, 0) - ts.tv_sec * SECOND - ts.tv_nsec : 0;
}

static void must_be_read(const PGresult *result)
{
	if (!result)
		die("the store can't be read: %s", pg_why(reader.db));
}

static int64_t get_clock(void)
{
	PG_STATEMENT(get, "SELECT " PG_NOW);
	PGresult *result = pg_do(&get, "");
	int64_t clock = ahead(result);

	must_be_read(result);
	PQclear(result);
	return clock;
}

static void end_reading(void)
{
	pg_close(&reader);
	inform(PG_CONNECTIONS ": while somebody asks for counts, schedules or the page");
}

static void close_store(void)
{
}

static int64_t get_meta(const char *name, int64_t otherwise)
{
	PG_STATEMENT(get, "SELECT value FROM twheeld.meta WHERE name = $1");
	PGresult *result = pg_do(&get, "s", name);
	int64_t value = otherwise;

	must_be_read(result);
	if (PQntuples(result))
		value = pg_int(result, 0, 0);
	PQclear(result);
	return value;
}

static void each_schedule(void (*each)(const struct schedule_row *row))
{
	PG_STATEMENT(get, "SELECT name, id, digest, next, paused, gone, since"
		     " FROM twheeld.schedules");
	PGresult *result = pg_do(&get, "");

	must_be_read(result);
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

/* Take the row first: a transaction of that session, which may be under way, holds it. */
static bool forget_session(int64_t id)
{
	PG_STATEMENT(forget, "DELETE FROM twheeld.sessions WHERE id = $1");

	return pg_done(pg_do(&forget, "i", id)) && jobs_of(id);
}

/*
 * A server that is stopped while it reads a result keeps its locks, as the database waits for it.
 * Its connection, which has the session's name, is ended. Engines that can't do this are asked
 * once.
 */
static bool end_connections(int64_t up)
{
	PG_STATEMENT(end, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity AS a"
		     " JOIN twheeld.sessions AS s"
		     " ON a.application_name = 'twheeld session ' || s.id"
		     " WHERE a.datname = current_database() AND s.until < " PG_NOW
		     " AND s.lease <= $2 AND s.id <> $1");
	static bool refused;

	if (refused || pg_done(pg_do(&end, "ii", pg_session(), up)))
		return true;
	refused = writer.failure == PG_REFUSED;
	return false;
}

/*
 * End the sessions that their servers did not renew. After the database was away for long, no
 * server could renew: each of the others has the time of its own lease first.
 */
static bool end_sessions(void)
{
	PG_STATEMENT(old, "DELETE FROM twheeld.pauses WHERE until < " PG_NOW " - $1");
	PG_STATEMENT(unused, "DELETE FROM twheeld.limits WHERE tube IN (SELECT tube"
		     " FROM twheeld.limits WHERE full_until < " PG_NOW " - $1"
		     " FOR UPDATE SKIP LOCKED)");
	PG_STATEMENT(find, "SELECT id FROM twheeld.sessions WHERE until < " PG_NOW
		     " AND lease <= $2 AND id <> $1 FOR UPDATE SKIP LOCKED");
	/* Programs don't do this: one that sees a snapshot would fail where another one had. */
	PG_STATEMENT(over, "DELETE FROM twheeld.keys WHERE (tube, key) IN (SELECT tube, key"
		     " FROM twheeld.keys WHERE until <= (SELECT " PG_NOW ") ORDER BY until"
		     " LIMIT $1 FOR UPDATE SKIP LOCKED)");
	int64_t up = commit_now() - up_since;
	PGresult *result;
	bool fine;

	if (!pg_done(pg_do(&old, "i", PAUSES_KEPT)) ||
	    !pg_done(pg_do(&unused, "i", PAUSES_KEPT)) || !pg_done(pg_do(&over, "i", KEYS_FREED)))
		return false;
	result = pg_do(&find, "ii", pg_session(), up);
	fine = result;
	for (int i = 0; fine && i < PQntuples(result); i++)
		fine = forget_session(pg_int(result, i, 0));
	PQclear(result);
	return fine && end_connections(up);
}

/*
 * Gives false when the session is over. It is, too, where the database lacks its last transaction:
 * commits did not wait for the standby that took over. There, other sessions may have the same
 * jobs with the same tokens, or even the same number.
 */
static bool renew(void)
{
	PG_STATEMENT(extend, "UPDATE twheeld.sessions SET until = " PG_NOW " + $2, batch = $3,"
		     " draining = $4, tabs = $5 WHERE id = $1 AND batch = $6 RETURNING id");
	PGresult *result = pg_do(&extend, "iiiiii", pg_session(), store_lease, batch,
				 (int64_t)__atomic_load_n(&store_refuses, __ATOMIC_RELAXED),
				 __atomic_load_n(&store_tabs, __ATOMIC_RELAXED), committed);

	if (result && !PQntuples(result))
		writer.failure = PG_ENDED;
	/*
	 * A server that ends the session has locked its row, or this server's last transaction
	 * has.
	 */
	if (writer.failure == PG_LOCKED)
		writer.failure = PG_AGAIN;
	PQclear(result);
	return writer.failure == PG_FINE;
}

/* Transactions */

static bool begin(void)
{
	PG_STATEMENT(begin, "BEGIN");

	return pg_done(pg_do(&begin, ""));
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
	struct several *several = container_of(op, struct several, op);

	op->gone = false;
	switch (op->kind) {
	case OP_SKEW:
	case OP_FORGET_TUBE:
		return true;
	case OP_BEGIN:
		return begin();
	case OP_EXTEND:
		return renew();
	case OP_PUTS:
		return pg_put_all(several->ops, several->count);
	case OP_DELETES:
		return pg_delete_all(several->ops, several->count);
	case OP_DEFINE:
		return pg_define(op->schedule);
	case OP_PAUSE:
		return pg_pause(op) && (op->gone || pg_trace_acts(op, NULL, 0));
	case OP_FIRE:
		return pg_fire(op->firing, pg_put) && pg_trace_acts(op, NULL, 0);
	case OP_PRUNE:
		return pg_prune(op);
	case OP_FORGET:
		return pg_traces_prune(&op->row.size);
	case OP_LATE:
		return pg_late(container_of(op, struct late, op));
	case OP_WAITING:
		return pg_waiting(container_of(op, struct waiting, op));
	case OP_PAUSED:
		return pg_paused(op);
	case OP_RENEW:
		return clock_and_sessions(op);
	default:
		return pg_job_op(op);
	}
}

/* The client was answered that the put failed, and may put the job once more. */
static bool is_too_late(const struct op *op)
{
	return op_given_up(op) && op_is_optional(op);
}

static enum pg_end roll_back(void)
{
	enum pg_end end = writer.failure;

	pg_tell(false);
	return end == PG_BROKEN || pg_command("ROLLBACK") ? end : PG_BROKEN;
}

/* Does the first statement do all of it, or, where it needs another one, nothing yet? */
static bool is_one_statement(const struct op *op)
{
	switch (op->kind) {
	case OP_CHANGE:
	case OP_DELETE:
		return !op->row.scheduled && !pg_trace_full(op->trace);
	case OP_BEGIN:
	case OP_EXTEND:
	case OP_PUTS:
	case OP_DELETES:
	case OP_TOUCH:
	case OP_LOOK:
		return true;
	case OP_PUT:
		return !op->failing;
	case OP_TAKE:
		return !container_of(op, struct request, op)->limited;
	default:
		return false;
	}
}

/* Operations that need only their own rows go together. Bodies beyond FLIGHT_BYTES go alone. */
static struct several *can_join(const struct op *op)
{
	if (op->row.scheduled || op->failing)
		return NULL;
	if (op->kind == OP_PUT && !op->unique && !op->key && all_puts.bytes < FLIGHT_BYTES)
		return &all_puts;
	if (op->kind != OP_DELETE || pg_trace_full(op->trace))
		return NULL;
	if (!op->trace)
		return &all_deletes;
	return all_ends.bytes < FLIGHT_BYTES ? &all_ends : NULL;
}

/*
 * Puts go first, as later operations may want their jobs. Nobody can notice in which order the rest
 * is done: a client waits for one operation at a time.
 */
static struct op *gather(struct op *ops)
{
	all_puts.count = 0;
	all_puts.bytes = 0;
	all_deletes.count = 0;
	all_ends.count = 0;
	all_ends.bytes = 0;
	for (struct op *op = ops; op; op = op->next) {
		struct several *several = can_join(op);

		op->left_out = is_too_late(op);
		op->together = several && !op->left_out;
		if (!op->together)
			continue;
		several->ops[several->count++] = op;
		several->bytes += op->trace ? op->trace->size : op->row.size;
	}
	all_ends.op.next = ops;
	all_deletes.op.next = all_ends.count ? &all_ends.op : ops;
	all_puts.op.next = all_deletes.count ? &all_deletes.op : all_deletes.op.next;
	return all_puts.count ? &all_puts.op : all_puts.op.next;
}

/* Gives the first operation that is not sent. */
static struct op *send_some(struct op *op)
{
	while (op && writer.sent < FLIGHT && writer.bytes < FLIGHT_BYTES) {
		size_t sent = writer.sent;

		op->more = false;
		if (!op->left_out && !op->together) {
			pg_forget_results(op);
			if (is_one_statement(op))
				write_op(op);
			if (writer.sent == sent)
				break;
		}
		op = op->next;
	}
	return op;
}

static bool take_answers(struct op *op, const struct op *end)
{
	for (; op != end && writer.failure == PG_FINE; op = op->next) {
		if (op->left_out || op->together)
			continue;
		pg_flight_next();
		write_op(op);
		op->more = writer.more;
	}
	return writer.failure == PG_FINE;
}

static bool do_more(struct op *op, const struct op *end)
{
	for (; op != end; op = op->next) {
		if (!op->more)
			continue;
		pg_forget_results(op);
		if (!write_op(op))
			return false;
	}
	return true;
}

/*
 * Statements are sent together as long as none needs another one's result. The database does them
 * in order, and none after one that failed.
 */
static bool write_all(struct op *ops)
{
	bool fine = true;

	while (fine && ops) {
		struct op *end = ops;

		fine = pg_flight_begin();
		if (fine)
			end = send_some(ops);
		fine = fine && pg_flight_sent() && take_answers(ops, end);
		fine = pg_flight_end() && fine && do_more(ops, end);
		/* Nothing was sent; a result of the first one from an earlier try is dropped. */
		if (fine && end == ops) {
			fine = write_op(ops);
			end = ops->next;
		}
		ops = end;
	}
	return fine;
}

static enum pg_end transaction(struct op *ops)
{
	struct op extend = { .kind = OP_EXTEND, .next = gather(ops) };
	struct op begin = { .kind = OP_BEGIN, .next = &extend };

	writer.failure = PG_FINE;
	batch++;
	if (!write_all(&begin))
		return roll_back();
	unsettled = true;
	if (!pg_command("COMMIT") && writer.failure == PG_BROKEN)
		return PG_BROKEN;
	unsettled = false;
	if (writer.failure == PG_FINE)
		committed = batch;
	pg_tell(writer.failure == PG_FINE);
	return writer.failure;
}

/*
 * Was the transaction committed whose connection broke? While it may still be committed, it holds
 * the session's row, and this waits for the row.
 */
static enum pg_end settle(void)
{
	PG_STATEMENT(get, "SELECT batch FROM twheeld.sessions WHERE id = $1 FOR UPDATE");
	PGresult *result;
	enum pg_end end;

	writer.failure = PG_FINE;
	result = pg_do(&get, "i", pg_session());
	if (!result)
		return writer.failure == PG_BROKEN ? PG_BROKEN : PG_AGAIN;
	unsettled = false;
	if (!PQntuples(result))
		end = PG_ENDED;
	else
		end = pg_int(result, 0, 0) == batch ? PG_FINE : PG_AGAIN;
	if (end == PG_FINE)
		committed = batch;
	PQclear(result);
	pg_tell(end == PG_FINE);
	return end;
}

/* Name the connection after the session, so that other servers can end it. */
static void name_connection(void)
{
	char sql[80];

	snprintf(sql, sizeof(sql), "SET application_name = 'twheeld session %lld'",
		 (long long)pg_session());
	pg_plain(writer.db, sql);
}

/* The functions hold programs to the limit of the server that began last. */
static bool tell_job_size(void)
{
	PG_STATEMENT(tell, "INSERT INTO twheeld.meta AS m (name, value) VALUES('job-size', $1)"
		     " ON CONFLICT (name) DO UPDATE SET value = $1 WHERE m.value <> $1");

	return pg_done(pg_do(&tell, "i", store_job_size));
}

/* Below 2^62, so that counting on from it never overflows */
static int64_t random_number(void)
{
	uint64_t number = commit_now();

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		complain("no random number can be had: %s", strerror(errno));
	return number >> 2;
}

static bool make_session(void)
{
	PG_STATEMENT(make, "INSERT INTO twheeld.sessions(id, until, batch, lease, node, site)"
		     " SELECT nextval('twheeld.session_ids'), " PG_NOW " + $1, $5, $1, $2, $3"
		     " FROM twheeld.meta WHERE name = 'version' AND value = $4 RETURNING id");
	int64_t id = 0, first = random_number();
	PGresult *result;

	writer.failure = PG_FINE;
	if (!pg_command("BEGIN") || (had && !forget_session(had))) {
		roll_back();
		return false;
	}
	result = pg_do(&make, "issii", store_lease, store_node, store_site, (int64_t)VERSIONS,
		       first);
	if (result && !PQntuples(result))
		die("the store was upgraded by a newer twheeld, while this one was cut off:"
		    " use that one");
	if (result)
		id = pg_int(result, 0, 0);
	PQclear(result);
	if (!result || !tell_job_size() || !pg_command("COMMIT")) {
		roll_back();
		return false;
	}
	pg_tell(true);
	pg_set_session(id);
	batch = first;
	committed = first;
	had = 0;
	name_connection();
	return true;
}

/*
 * The planner takes a table that was vacuumed while it was empty for an empty one, and would read
 * all of it for each job until somebody analyzes it. Without sequential scans, a query that needs
 * one gets so high a cost that the database would compile it, which takes seconds: so without
 * jit, too. Engines may not know these settings.
 */
static void want_indexes(void)
{
	pg_plain(writer.db, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off");
}

static bool connect_writer(void)
{
	char *why;

	if (writer.db)
		return true;
	if (pg_open(&writer, &why)) {
		want_indexes();
		if (down_since)
			inform("the database answers again");
		down_since = 0;
		up_since = commit_now();
		if (pg_session())
			name_connection();
		return true;
	}
	if (!down_since) {
		complain("the database does not answer: %s. It is tried again. (" PG_CONNECTIONS
			 ")", why);
		down_since = commit_now();
	}
	free(why);
	return false;
}

/*
 * The next session begins in the transaction that ends this one for good, even where the row is not
 * there: after a crash the database may show a state that its standby never got. The standby, which
 * takes its place, has the row, and jobs with tokens that this server's clients hold.
 */
static void end_session(const char *why)
{
	inform("the session of this server is over, %s: its reserved jobs are ready again", why);
	had = pg_session();
	pg_set_session(0);
}

/* Try the transaction once. */
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
	if (!pg_session() && !make_session())
		return writer.failure == PG_BROKEN ? PG_BROKEN : PG_AGAIN;
	end = transaction(ops);
	if (end == PG_ENDED)
		end_session("as it did not reach the database for the lease, or that has lost what"
			    " it did last");
	return end == PG_ENDED ? PG_AGAIN : end;
}

/*
 * Clients wait for a database that is away, but not for ever. Where a commit was not answered, it
 * may have taken all of this time: there is more time to find whether it was done. A commit that
 * has not reached the database leaves the session's row locked until the database's own patience
 * is over.
 */
static enum pg_end insist(struct op *ops)
{
	int64_t until = (down_since ? down_since : commit_now()) + PATIENCE;
	bool looked_up = false;
	enum pg_end end;

	while ((end = attempt(ops)) == PG_AGAIN || end == PG_BROKEN) {
		if (end == PG_BROKEN && writer.db) {
			commit_say("the connection to the database is lost: it is made again");
			pg_close(&writer);
		}
		if (unsettled && !looked_up) {
			until = commit_now() + LOOK_UP;
			looked_up = true;
		}
		if (commit_now() >= until)
			break;
		pause_for(end == PG_BROKEN ? PAUSE : MILLISECOND);
	}
	return end;
}

/* Give up the session, as it is not known what the last transaction did. */
static void give_up(void)
{
	if (!unsettled)
		return;
	unsettled = false;
	pg_tell(false);
	end_session("as it is not known what it did last");
}

static void set_failed(struct op *ops, bool failed)
{
	for (struct op *op = ops; op; op = op->next)
		op->failed = failed || op->left_out;
}

/* Write each operation in a transaction of its own: one that can't be done must not stop others. */
static void write_one_by_one(struct op *ops)
{
	for (struct op *op = ops; op; op = op->next) {
		struct op *next = op->next;

		op->next = NULL;
		op->failed = insist(op) != PG_FINE;
		if (op->failed)
			give_up();
		op->failed = op->failed || op->left_out;
		op->next = next;
	}
}

static void write_ops(struct op *ops)
{
	enum pg_end end;

	pg_use(&writer);
	end = insist(ops);
	set_failed(ops, end != PG_FINE);
	if (end == PG_FINE)
		return;
	give_up();
	if ((end == PG_REFUSED || end == PG_LOCKED) && pg_session() && ops->next)
		write_one_by_one(ops);
	for (struct op *op = ops; op; op = op->next)
		if (op->failed)
			pg_forget_results(op);
}

static void start(int64_t sync_ns)
{
	pg_listen();
	pg_ask_start();
}

static bool sync_store(void)
{
	return true;
}

/* End the session, so that jobs which no client has taken are ready again at once. */
static void end(void)
{
	pg_use(&writer);
	if (pg_session() && connect_writer() && !unsettled) {
		writer.failure = PG_FINE;
		if (pg_command("BEGIN") && forget_session(pg_session()) && pg_command("COMMIT"))
			pg_tell(true);
	}
	pg_close(&writer);
}

const struct store store_postgres = {
	.open = open_store,
	.close = close_store,
	.clock = get_clock,
	.meta = get_meta,
	.schedules = each_schedule,
	.pushed = pg_pushed,
	.loaded = end_reading,
	.runs = pg_ask_runs,
	.write_start = start,
	.write = write_ops,
	.sync = sync_store,
	.write_end = end,
};
