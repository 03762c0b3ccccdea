// SPDX-License-Identifier: GPL-2.0
/*
 * What a page shows of a database that servers share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm.h"
#include "postgres.h"
#include "postgres_ask.h"
#include "postgres_watch.h"
#include "util.h"

static void copy_name(char *to, const PGresult *result, int row, int column)
{
	snprintf(to, TUBE_NAME_MAX + 1, "%s", PQgetvalue(result, row, column));
}

static bool get_tubes(struct overview *watch)
{
	PG_STATEMENT(get, "SELECT tube, count(*) FILTER (WHERE state = 0),"
		     " count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2),"
		     " count(*) FILTER (WHERE state = 3), count(*) OVER (),"
		     " (SELECT count(*) FROM twheeld.pauses AS p WHERE p.tube = j.tube"
		     " AND until > " PG_NOW ") FROM twheeld.jobs AS j GROUP BY tube"
		     " ORDER BY count(*) DESC, tube LIMIT $1");
	PGresult *result = pg_do(&get, "i", (int64_t)WATCH_MOST);

	watch->tube_count = PQntuples(result);
	watch->tubes_all = watch->tube_count ? pg_int(result, 0, 5) : 0;
	for (size_t i = 0; i < watch->tube_count; i++) {
		struct watch_tube *tube = &watch->tubes[i];

		copy_name(tube->name, result, i, 0);
		for (int state = 0; state < STATES; state++)
			tube->count[state] = pg_int(result, i, 1 + state);
		tube->paused = pg_int(result, i, 6);
	}
	return pg_done(result);
}

static bool get_nodes(struct overview *watch)
{
	PG_STATEMENT(get, "SELECT id, node, site, " PG_NOW " - until, (SELECT count(*)"
		     " FROM twheeld.jobs WHERE owner = s.id AND state = 3), count(*) OVER ()"
		     " FROM twheeld.sessions AS s ORDER BY node, id LIMIT $1");
	PGresult *result = pg_do(&get, "i", (int64_t)WATCH_MOST);

	watch->node_count = PQntuples(result);
	watch->nodes_all = watch->node_count ? pg_int(result, 0, 5) : 0;
	for (size_t i = 0; i < watch->node_count; i++) {
		struct watch_node *node = &watch->nodes[i];

		node->session = pg_int(result, i, 0);
		copy_name(node->name, result, i, 1);
		copy_name(node->site, result, i, 2);
		node->silent = pg_int(result, i, 3) + store_lease;
		node->reserved = pg_int(result, i, 4);
		node->self = node->session == pg_session();
	}
	return pg_done(result);
}

static void take_run(struct overview *watch, const struct run_row *run)
{
	for (size_t i = 0; i < watch->schedule_count; i++)
		if (watch->schedules[i] == run->schedule)
			watch->runs[i] = *run;
}

static bool get_runs(struct overview *watch)
{
	size_t size = watch->schedule_count * sizeof(*watch->schedules);
	struct runs_asked *asked = zalloc(sizeof(*asked) + size);
	bool fine;

	asked->most = 1;
	asked->count = watch->schedule_count;
	memcpy(asked->schedules, watch->schedules, size);
	fine = pg_last_runs(asked);
	for (size_t i = 0; i < asked->found; i++)
		take_run(watch, &asked->runs[i]);
	free(asked->runs);
	free(asked);
	return fine;
}

/** pg_overview - look at the database, for pg_watch() */
bool pg_overview(struct overview *overview)
{
	return get_nodes(overview) && get_tubes(overview) && get_runs(overview);
}

static void watched(struct op *op)
{
	struct overview_asked *asked = container_of(op, struct overview_asked, op);

	asked->overview->failed = op->failed;
	asked->done();
}

/**
 * pg_watch - look at the database
 * @overview: what is asked, and the answer; nobody else's until @done is called
 * @done: called by the loop
 */
void pg_watch(struct overview *overview, void (*done)(void))
{
	struct overview_asked *asked = zalloc(sizeof(*asked));

	asked->op.kind = OP_WATCH;
	asked->op.done = watched;
	asked->overview = overview;
	asked->done = done;
	pg_ask(&asked->op);
}
