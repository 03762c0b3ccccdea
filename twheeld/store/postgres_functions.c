// SPDX-License-Identifier: GPL-2.0
/*
 * Functions in a database of PostgreSQL, for programs in their own transactions: put() and
 * cancel().
 *
 * They run with the rights of the servers' role, so that a program that may call them needs no
 * right to the tables. Their arguments have the protocol's limits, and they find no names but the
 * system's and those that they call by their schema.
 */
#include <stdlib.h>

#include "base/tube_name.h"
#include "base/util.h"
#include "store/postgres_functions.h"
#include "store/postgres_link.h"

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
#define WITH_RIGHTS " SECURITY DEFINER SET search_path = pg_catalog, pg_temp "
#define HEAD(type) "twheeld.put(tube text, body " type ", delay interval DEFAULT '0 s'," \
	" priority bigint DEFAULT 1024, ttr interval DEFAULT '60 s'," \
	" unique_body boolean DEFAULT false)"
#define REFUSE(unless, class, text) " IF (" unless ") IS NOT TRUE THEN RAISE EXCEPTION" \
	" USING ERRCODE = '" class "', MESSAGE = 'twheeld.put: " text "'; END IF;"
#define WRONG "22023"		/* invalid_parameter_value */
#define TOO_BIG "54000"		/* program_limit_exceeded */
#define NOT_NOW "55000"		/* object_not_in_prerequisite_state */

/*
 * Names are compared in the order of bytes, whatever the caller's columns have. A job that is due
 * within two seconds makes servers look for the next due one; otherwise they look each second.
 * Where the queue of notifications is nearly full, the function sends none, as the caller's
 * commit would fail with it: then, too, servers find the job when they look.
 */
static const char functions[] =
	"CREATE OR REPLACE FUNCTION " HEAD("bytea") " RETURNS bigint LANGUAGE plpgsql VOLATILE"
	WITH_RIGHTS "AS $put$\n"
	"#variable_conflict use_column\n"
	"DECLARE"
	" name text NOT NULL = coalesce(put.tube, '');"
	" start timestamptz = clock_timestamp();"
	" now bigint = floor(extract(epoch FROM start) * 1000000)::bigint * 1000;"
	" due bigint;"
	" wait bigint = ceil(extract(epoch FROM start + put.delay - start));"
	" most bigint = coalesce((SELECT value FROM twheeld.meta AS m WHERE m.name = 'job-size'),"
	" 65535);"
	" hash bytea;"
	" made bigint;"
	"BEGIN"
	REFUSE("octet_length(name) BETWEEN 1 AND " TEXT(TUBE_NAME_MAX) " AND name !~ '^-'"
	       " AND translate(name, '" TUBE_NAME_CHARS "', '') = ''",
	       WRONG, "a tube has a name of 1 to " TEXT(TUBE_NAME_MAX) " of the characters"
	       " A-Z a-z 0-9 - + / ; . $ _ ( ), and not a - first")
	REFUSE("put.body IS NOT NULL", WRONG, "a job has a body, which may be empty, and not NULL")
	" IF octet_length(put.body) > most THEN RAISE EXCEPTION USING ERRCODE = '" TOO_BIG "',"
	" MESSAGE = format('twheeld.put: a body of %s bytes, and the servers take %s',"
	" octet_length(put.body), most), HINT = 'job-size in twheeld.conf, or -z, is the limit'; END IF;"
	REFUSE("put.priority BETWEEN 0 AND 4294967295", WRONG,
	       "a priority is from 0 to 4294967295, and 0 comes first")
	REFUSE("extract(epoch FROM put.ttr) BETWEEN 0 AND 4294967295", WRONG,
	       "the time to run is up to 4294967295 seconds, and at least one")
	REFUSE("wait <= 4294967295", WRONG, "a delay is up to 4294967295 seconds")
	REFUSE("put.unique_body IS NOT NULL", WRONG, "unique_body is true or false")
	REFUSE("coalesce((SELECT NOT bool_and(draining = 1) FROM twheeld.sessions"
	       " WHERE until >= now), true)", NOT_NOW, "the servers take no new jobs (DRAINING)")
	" due = ceil(extract(epoch FROM start + put.delay) * 1000000)::bigint * 1000;"
	" hash = CASE WHEN put.unique_body THEN sha256(put.body) END;"
	" LOOP"
	"  INSERT INTO twheeld.jobs(id, tube, state, ord, pri, delay, ttr, created, reserves,"
	"   timeouts, releases, buries, kicks, scheduled, token, owner, digest, body)"
	"  VALUES(nextval('twheeld.job_ids'), name, CASE WHEN wait > 0 THEN 1 ELSE 0 END,"
	"   CASE WHEN wait > 0 THEN due ELSE put.priority END, put.priority,"
	"   greatest(0, wait),"
	"   greatest(1, ceil(extract(epoch FROM put.ttr)))::bigint, now, 0, 0, 0, 0, 0, 0, 1, 0,"
	"   hash, put.body) ON CONFLICT (tube, digest) WHERE digest IS NOT NULL DO NOTHING"
	"  RETURNING jobs.id INTO made;"
	"  EXIT WHEN made IS NOT NULL;"
	"  SELECT jobs.id INTO made FROM twheeld.jobs WHERE jobs.tube = name COLLATE \"C\""
	"   AND jobs.digest = hash;"
	"  IF made IS NOT NULL THEN RETURN made; END IF;"
	" END LOOP;"
	" IF wait <= 2 AND pg_notification_queue_usage() < 0.9 THEN"
	"  PERFORM pg_notify('twheeld', CASE WHEN wait > 0 THEN '' ELSE name END);"
	" END IF;"
	" RETURN made; "
	"END $put$;"
	"CREATE OR REPLACE FUNCTION " HEAD("text") " RETURNS bigint LANGUAGE sql VOLATILE"
	" AS $$ SELECT twheeld.put($1, convert_to($2, 'UTF8'), $3, $4, $5, $6) $$;"
	/* A program can't cancel a schedule's job, nor one that a worker has. */
	"CREATE OR REPLACE FUNCTION twheeld.cancel(job bigint) RETURNS boolean LANGUAGE sql VOLATILE"
	WITH_RIGHTS "AS $$ WITH gone AS (DELETE FROM twheeld.jobs WHERE id = $1 AND state <> 3"
	" AND scheduled = 0 RETURNING id) SELECT EXISTS (SELECT 1 FROM gone) $$;"
	"REVOKE ALL ON FUNCTION twheeld.put(text, bytea, interval, bigint, interval, boolean),"
	" twheeld.put(text, text, interval, bigint, interval, boolean), twheeld.cancel(bigint)"
	" FROM PUBLIC";

/**
 * pg_make_functions - make the functions, or replace them with this version's
 * @db: a connection, in the transaction that upgrades
 *
 * Return: false if the transaction has failed. An engine that has no such functions goes without.
 */
bool pg_make_functions(PGconn *db)
{
	bool fine, unknown;
	PGresult *result;
	char *why;

	if (!pg_plain(db, "SAVEPOINT functions"))
		return false;
	result = pg_exec(db, functions);
	fine = PQresultStatus(result) == PGRES_COMMAND_OK;
	unknown = pg_is_unknown(result);
	PQclear(result);
	if (fine || !unknown)
		return fine;
	why = pg_why(db);
	inform("the database does not take functions: twheeld.put() is not there (%s)", why);
	free(why);
	return pg_plain(db, "ROLLBACK TO SAVEPOINT functions");
}
