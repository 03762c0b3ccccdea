// SPDX-License-Identifier: GPL-2.0
/*
 * The page's figures of a database that servers share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/postgres_link.h"
#include "store/postgres_watch.h"

static void copy_name(char *to, const PGresult *result, int row, int column)
{
	snprintf(to, TUBE_NAME_MAX + 1, "%s", PQgetvalue(result, row, column));
}

/** pg_tubes - the tubes with buried jobs, and those with most jobs */
bool pg_tubes(struct tubes_asked *asked)
{
	PG_STATEMENT(get, "SELECT tube, count(*) FILTER (WHERE state = 0),"
		     " count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2),"
		     " count(*) FILTER (WHERE state = 3), count(*) OVER (),"
		     " (SELECT count(*) FROM twheeld.pauses AS p WHERE p.tube = j.tube"
		     " AND until > " PG_NOW ") FROM twheeld.jobs AS j GROUP BY tube"
		     " ORDER BY count(*) FILTER (WHERE state = 2) > 0 DESC, count(*) DESC,"
		     " tube LIMIT $1");
	PGresult *result = pg_do(&get, "i", (int64_t)WATCH_MOST);

	asked->count = PQntuples(result);
	asked->all = asked->count ? pg_int(result, 0, 5) : 0;
	for (size_t i = 0; i < asked->count; i++) {
		struct watch_tube *tube = &asked->tubes[i];

		copy_name(tube->name, result, i, 0);
		for (int state = 0; state < STATES; state++)
			tube->count[state] = pg_int(result, i, 1 + state);
		tube->paused = pg_int(result, i, 6);
	}
	return pg_done(result);
}

/** pg_nodes - servers that have a session */
bool pg_nodes(struct nodes_asked *asked)
{
	PG_STATEMENT(get, "SELECT id, node, site, " PG_NOW " - until + lease, (SELECT count(*)"
		     " FROM twheeld.jobs WHERE owner = s.id AND state = 3), count(*) OVER ()"
		     " FROM twheeld.sessions AS s ORDER BY node, id LIMIT $1");
	PGresult *result = pg_do(&get, "i", (int64_t)WATCH_MOST);

	asked->count = PQntuples(result);
	asked->all = asked->count ? pg_int(result, 0, 5) : 0;
	for (size_t i = 0; i < asked->count; i++) {
		struct watch_node *node = &asked->nodes[i];

		node->session = pg_int(result, i, 0);
		copy_name(node->name, result, i, 1);
		copy_name(node->site, result, i, 2);
		node->silent = pg_int(result, i, 3);
		node->reserved = pg_int(result, i, 4);
		node->self = node->session == pg_session();
	}
	return pg_done(result);
}

static bool take_jobs(struct jobs_asked *asked, PGresult *result)
{
	for (size_t i = 0; i < asked->found; i++)
		free(asked->jobs[i].row.body);
	asked->found = PQntuples(result);
	for (size_t i = 0; i < asked->found; i++) {
		struct listed_job *job = &asked->jobs[i];

		job->row = (struct row){
			.id = pg_int(result, i, 0), .state = pg_int(result, i, 2),
			.ord = pg_int(result, i, 3), .pri = pg_int(result, i, 4),
			.created = pg_int(result, i, 5), .reserves = pg_int(result, i, 6),
			.size = pg_int(result, i, 7),
		};
		if (asked->session)
			copy_name(job->tube, result, i, 1);
		if (!PQgetlength(result, i, 8))
			continue;
		/* The begin alone, with zeros behind it where it is short */
		job->row.body = zalloc(LISTED_BYTES);
		memcpy(job->row.body, PQgetvalue(result, i, 8), PQgetlength(result, i, 8));
	}
	return pg_done(result);
}

/** pg_jobs - jobs of a tube in one state, or those that a session has, some at a time */
bool pg_jobs(struct jobs_asked *asked)
{
#define LISTED "SELECT id, tube, state, ord, pri, created, reserves, octet_length(body)::bigint," \
	" CASE WHEN octet_length(body) <= 2048 THEN substr(body, 1, 64) ELSE '' END" \
	" FROM twheeld.jobs WHERE "
	PG_STATEMENT(of_tube, LISTED "tube = $1 AND state = $2 AND (ord, id) > ($3, $4)"
		     " ORDER BY ord, id LIMIT $5");
	PG_STATEMENT(of_session, LISTED "owner = $1 AND state = 3 AND id > $2"
		     " ORDER BY id LIMIT $3");
	int64_t most = LISTED_MOST;

	return take_jobs(asked, asked->session ?
			 pg_do(&of_session, "iii", asked->session, asked->after.id, most) :
			 pg_do(&of_tube, "siiii", asked->tube, (int64_t)asked->state,
			       asked->after.ord, asked->after.id, most));
}
