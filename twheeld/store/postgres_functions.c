// SPDX-License-Identifier: GPL-2.0
/*
 * Functions in a database of PostgreSQL, for programs in their own transactions: put() and
 * cancel().
 *
 * They run with the rights of the servers' role, so that a program that may call them needs no
 * right to the tables; put_as() runs with its caller's, as it is for servers and those functions
 * alone. Their arguments have the protocol's limits, and they find no names but the system's and
 * those that they call by their schema. The tabs that were pushed are not for programs, as who
 * changes them operates the servers.
 */
#include <stdlib.h>

#include "base/job_key.h"
#include "base/tube_name.h"
#include "base/util.h"
#include "store/postgres_functions.h"
#include "store/postgres_link.h"
#include "store/store.h"

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
#define WITH_PATH " SET search_path = pg_catalog, pg_temp "
#define WITH_RIGHTS " SECURITY DEFINER" WITH_PATH
/* The second one needs its key and how: so no call without names can mean either. */
#define HEAD(type) "twheeld.put(tube text, body " type ", delay interval DEFAULT '0 s'," \
	" priority bigint DEFAULT 1024, ttr interval DEFAULT '60 s'," \
	" unique_body boolean DEFAULT false, tries bigint DEFAULT 0)"
#define KEYED(type) "twheeld.put(tube text, body " type ", key text, how text," \
	" unique_for interval DEFAULT '0 s', delay interval DEFAULT '0 s'," \
	" priority bigint DEFAULT 1024, ttr interval DEFAULT '60 s', tries bigint DEFAULT 0)"
#define KEY_DIGEST(key) "'\\x01'::bytea || sha256(convert_to(" key ", 'UTF8'))"
#define REFUSE(unless, class, text) " IF (" unless ") IS NOT TRUE THEN RAISE EXCEPTION" \
	" USING ERRCODE = '" class "', MESSAGE = 'twheeld.put: " text "'; END IF;"
#define REFUSE_TABS REFUSE("put.tube COLLATE \"C\" IS DISTINCT FROM '" TABS_TUBE "'", WRONG, \
	"the tabs in " TABS_TUBE " are put by twheel jobs push alone")
/* A key that is taken for a time, by a job that may be gone */
#define TAKEN "twheeld.keys AS k WHERE put_as.how = 'ignore' AND k.tube = name AND k.key = hash" \
	" AND k.until > now"
/* Beyond any delay, and within what a timestamp has */
#define LONGEST "interval '200 years'"
#define WRONG "22023"		/* invalid_parameter_value */
#define TOO_BIG "54000"		/* program_limit_exceeded */
#define NOT_NOW "55000"		/* object_not_in_prerequisite_state */

/*
 * Names are compared as bytes, whatever the caller's columns have. A job that is due
 * within two seconds makes servers look for the next due one; otherwise they look each second.
 * Where the queue of notifications is nearly full, the function sends none, as the caller's
 * commit would fail with it: then, too, servers find the job when they look.
 */
static const char functions[] =
	"CREATE OR REPLACE FUNCTION twheeld.put_as(tube text, body bytea, delay interval,"
	" priority bigint, ttr interval, hash bytea, how text, unique_for interval, units bigint,"
	" tries bigint, OUT id bigint, OUT made boolean) LANGUAGE plpgsql VOLATILE SECURITY INVOKER"
	WITH_PATH "AS $put$\n"
	"#variable_conflict use_column\n"
	"DECLARE"
	" name text COLLATE \"C\" NOT NULL = coalesce(put_as.tube, '');"
	" start timestamptz = clock_timestamp();"
	" due_at timestamptz = start + least(greatest(put_as.delay, -" LONGEST "), " LONGEST ");"
	" now bigint = floor(extract(epoch FROM start) * 1000000)::bigint * 1000;"
	" due bigint = ceil(extract(epoch FROM due_at) * 1000000)::bigint * 1000;"
	" wait bigint = ceil(extract(epoch FROM due_at - start));"
	" run bigint = greatest(1, ceil(extract(epoch FROM least(put_as.ttr, " LONGEST "))));"
	" most bigint = coalesce((SELECT value FROM twheeld.meta AS m WHERE m.name = 'job-size'),"
	" 65535);"
	" became bigint;"
	"BEGIN"
	REFUSE("octet_length(name) BETWEEN 1 AND " TEXT(TUBE_NAME_MAX) " AND name !~ '^-'"
	       " AND translate(name, '" TUBE_NAME_CHARS "', '') = ''",
	       WRONG, "a tube has a name of 1 to " TEXT(TUBE_NAME_MAX) " of the characters"
	       " A-Z a-z 0-9 - + / ; . $ _ ( ), and not a - first")
	REFUSE("put_as.body IS NOT NULL", WRONG,
	       "a job has a body, which may be empty, and not NULL")
	" IF octet_length(put_as.body) > most THEN RAISE EXCEPTION USING ERRCODE = '" TOO_BIG "',"
	" MESSAGE = format('twheeld.put: a body of %s bytes, and the servers take %s',"
	" octet_length(put_as.body), most), HINT = 'job-size in twheeld.conf, or -z, is the limit';"
	" END IF;"
	REFUSE("put_as.priority BETWEEN 0 AND 4294967295", WRONG,
	       "a priority is from 0 to 4294967295, and 0 comes first")
	REFUSE("extract(epoch FROM put_as.ttr) BETWEEN 0 AND 4294967295", WRONG,
	       "the time to run is up to 4294967295 seconds, and at least one")
	REFUSE("put_as.tries BETWEEN 0 AND 2147483647", WRONG,
	       "tries are from 1 to 2147483647, or 0: as the tube has it")
	REFUSE("put_as.delay IS NOT NULL AND wait <= 4294967295", WRONG,
	       "a delay is up to 4294967295 seconds")
	REFUSE("extract(epoch FROM put_as.unique_for) BETWEEN 0 AND 4294967295 AND"
	       " (put_as.how = 'ignore' OR put_as.unique_for <= interval '0 s')", WRONG,
	       "unique_for is up to 4294967295 seconds, and only with how => ''ignore''")
	REFUSE("put_as.how = 'ignore' OR octet_length(hash) = " TEXT(JOB_KEY_DIGEST), WRONG,
	       "only what has a key can be replaced")
	REFUSE("coalesce((SELECT NOT bool_and(draining = 1) FROM twheeld.sessions"
	       " WHERE until >= now), true)", NOT_NOW, "the servers take no new jobs (DRAINING)")
	" LOOP"
	"  id = (SELECT k.job FROM " TAKEN ");"
	"  made = false;"
	"  IF id IS NOT NULL THEN RETURN; END IF;"
	"  INSERT INTO twheeld.jobs AS j (id, tube, state, ord, pri, delay, ttr, created, reserves,"
	"   timeouts, releases, buries, kicks, scheduled, token, owner, digest, tries, body)"
	"  VALUES(nextval('twheeld.job_ids'), name, CASE WHEN wait > 0 THEN 1 ELSE 0 END,"
	"   CASE WHEN wait > 0 THEN due ELSE put_as.priority END, put_as.priority,"
	"   coalesce(units, greatest(0, wait)), run, now, 0, 0, 0, 0, 0, 0, 1, 0,"
	"   hash, put_as.tries, put_as.body) ON CONFLICT (tube, digest) WHERE digest IS NOT NULL DO NOTHING"
	"  RETURNING j.id, j.state INTO id, became;"
	"  made = id IS NOT NULL;"
	/* Another job that had the key may have come, and gone, while this one waited for it. */
	"  EXIT WHEN made AND NOT EXISTS (SELECT 1 FROM " TAKEN ");"
	"  IF made THEN"
	"   DELETE FROM twheeld.jobs AS j WHERE j.id = put_as.id;"
	"   CONTINUE;"
	"  END IF;"
	"  IF put_as.how = 'ignore' THEN"
	"   SELECT j.id INTO id FROM twheeld.jobs AS j WHERE j.tube = name"
	"    AND j.digest = hash;"
	"   IF id IS NOT NULL THEN RETURN; END IF;"
	"  ELSE"
	/* In place of that one, as if it were new; and when that is due, unless it begins anew */
	"   UPDATE twheeld.jobs AS j SET body = put_as.body, pri = put_as.priority, ttr = run,"
	"    token = j.token + 1, reserves = 0, timeouts = 0, releases = 0, buries = 0, kicks = 0,"
	"    tries = put_as.tries,"
	"    state = CASE WHEN stays THEN j.state WHEN wait > 0 THEN 1 ELSE 0 END,"
	"    delay = CASE WHEN stays THEN j.delay ELSE coalesce(units, greatest(0, wait)) END,"
	"    ord = CASE WHEN stays AND j.state = 1 THEN j.ord WHEN NOT stays AND wait > 0 THEN due"
	"     ELSE put_as.priority END"
	"    FROM (SELECT o.id AS old, put_as.how = 'replace' AND o.state <> 2 AS stays"
	"     FROM twheeld.jobs AS o WHERE o.tube = name AND o.digest = hash"
	"     AND o.state <> 3 FOR UPDATE) AS o"
	"    WHERE j.id = o.old RETURNING j.id, j.state INTO id, became;"
	"   EXIT WHEN id IS NOT NULL;"
	/* What a worker has stays as it is. */
	"   UPDATE twheeld.jobs AS j SET digest = NULL WHERE j.tube = name"
	"    AND j.digest = hash AND j.state = 3;"
	"  END IF;"
	" END LOOP;"
	" IF put_as.unique_for > interval '0 s' THEN"
	"  INSERT INTO twheeld.keys AS k (tube, key, until, job) VALUES(name, hash,"
	"   now + ceil(extract(epoch FROM put_as.unique_for))::bigint * 1000000000, id)"
	"   ON CONFLICT (tube, key) DO UPDATE SET until = excluded.until, job = excluded.job;"
	" END IF;"
	" IF (became = 0 OR wait <= 2) AND pg_notification_queue_usage() < 0.9 THEN"
	"  PERFORM pg_notify('twheeld', CASE became WHEN 0 THEN name ELSE '' END);"
	" END IF;"
	"END $put$;"
	"CREATE OR REPLACE FUNCTION " HEAD("bytea") " RETURNS bigint LANGUAGE plpgsql VOLATILE"
	WITH_RIGHTS "AS $put$\n"
	"#variable_conflict use_column\n"
	"BEGIN"
	REFUSE_TABS
	REFUSE("put.unique_body IS NOT NULL", WRONG, "unique_body is true or false")
	" RETURN (SELECT id FROM twheeld.put_as(put.tube, put.body, put.delay, put.priority,"
	" put.ttr, CASE WHEN put.unique_body THEN sha256(put.body) END, 'ignore', '0 s', NULL, put.tries)); "
	"END $put$;"
	"CREATE OR REPLACE FUNCTION " HEAD("text") " RETURNS bigint LANGUAGE sql VOLATILE"
	" AS $$ SELECT twheeld.put($1, convert_to($2, 'UTF8'), $3, $4, $5, $6, $7) $$;"
	"CREATE OR REPLACE FUNCTION " KEYED("bytea") " RETURNS bigint LANGUAGE plpgsql VOLATILE"
	WITH_RIGHTS "AS $put$\n"
	"#variable_conflict use_column\n"
	"BEGIN"
	REFUSE_TABS
	REFUSE("put.key COLLATE \"C\" ~ '^[!-~]{1," TEXT(KEY_MOST) "}$'", WRONG, "a key has 1 to "
	       TEXT(KEY_MOST) " characters of ASCII that can be seen, and no blank")
	REFUSE("put.how COLLATE \"C\" IN ('ignore', 'replace', 'debounce')", WRONG,
	       "how is ignore, replace or debounce")
	" RETURN (SELECT id FROM twheeld.put_as(put.tube, put.body, put.delay, put.priority,"
	" put.ttr, " KEY_DIGEST("put.key") ", put.how, put.unique_for, NULL, put.tries)); "
	"END $put$;"
	"CREATE OR REPLACE FUNCTION " KEYED("text") " RETURNS bigint LANGUAGE sql VOLATILE"
	" AS $$ SELECT twheeld.put($1, convert_to($2, 'UTF8'), $3, $4, $5, $6, $7, $8, $9) $$;"
	/* A program can't cancel a schedule's job, nor one that a worker has. */
	"CREATE OR REPLACE FUNCTION twheeld.cancel(job bigint) RETURNS boolean LANGUAGE sql VOLATILE"
	WITH_RIGHTS "AS $$ WITH gone AS (DELETE FROM twheeld.jobs WHERE id = $1 AND state <> 3"
	" AND scheduled = 0 AND tube <> '" TABS_TUBE "' RETURNING id)"
	" SELECT EXISTS (SELECT 1 FROM gone) $$;"
	/* Two statements: the second has to see which job has the key by then. */
	"CREATE OR REPLACE FUNCTION twheeld.cancel_key(tube text, key text) RETURNS boolean"
	" LANGUAGE plpgsql VOLATILE"
	WITH_RIGHTS "AS $cancel$\n"
	"#variable_conflict use_column\n"
	"DECLARE"
	" name text COLLATE \"C\" = cancel_key.tube;"
	" hash bytea = " KEY_DIGEST("cancel_key.key") ";"
	" gone boolean; kept boolean; "
	"BEGIN"
	" DELETE FROM twheeld.jobs AS j WHERE j.tube = name AND j.tube <> '" TABS_TUBE "'"
	"  AND j.digest = hash AND j.state <> 3;"
	" gone = FOUND;"
	" DELETE FROM twheeld.keys AS k WHERE k.tube = name AND k.key = hash AND NOT EXISTS"
	"  (SELECT 1 FROM twheeld.jobs AS j WHERE j.tube = name AND j.digest = hash)"
	"  RETURNING k.until > extract(epoch FROM clock_timestamp()) * 1000000000 INTO kept;"
	" RETURN gone OR kept IS TRUE; "
	"END $cancel$;"
	"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA twheeld FROM PUBLIC;"
	/* Functions of older servers take no tries. Who might call those may call the new ones. */
	"DO $do$ DECLARE old record; BEGIN"
	" FOR old IN SELECT left(p.oid::regprocedure::text, -1) AS it,"
	"  pg_get_userbyid(a.grantee) AS who FROM pg_proc AS p, aclexplode(p.proacl) AS a"
	"  WHERE p.pronamespace = 'twheeld'::regnamespace AND p.proname = 'put'"
	"  AND p.pronargs IN (6, 8)"
	" LOOP EXECUTE format('GRANT EXECUTE ON FUNCTION %s,bigint) TO %I', old.it, old.who);"
	" END LOOP; END $do$;"
	"DROP FUNCTION IF EXISTS twheeld.put(text, bytea, interval, bigint, interval, boolean),"
	" twheeld.put(text, text, interval, bigint, interval, boolean),"
	" twheeld.put(text, bytea, text, text, interval, interval, bigint, interval),"
	" twheeld.put(text, text, text, text, interval, interval, bigint, interval),"
	" twheeld.put_as(text, bytea, interval, bigint, interval, bytea, text, interval, bigint)";

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
