// SPDX-License-Identifier: GPL-2.0
/*
 * The page's figures of a database that servers share.
 */
#include <stdio.h>

#include "base/alarm.h"
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
