// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs, page by page: those of a tube in one state, and those that a server's clients have.
 */
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "base/alarm.h"
#include "base/tube_name.h"
#include "base/utf8.h"
#include "base/util.h"
#include "jobs/conn.h"
#include "jobs/engine.h"
#include "jobs/tube.h"
#include "store/postgres_ask.h"
#include "store/postgres_watch.h"
#include "web/html.h"
#include "web/page.h"

static const char *const states[STATES] = {
	[READY] = "ready", [DELAYED] = "delayed", [BURIED] = "buried", [RESERVED] = "reserved",
};

/* A page that is being made */
struct list {
	struct jobs_asked asked;
	struct ask *ask;
	struct evbuffer *out;
};

/* A store of this server's alone does not know who has a job, nor that somebody has it. */
static const char *who_has(struct row *row)
{
	const char *who = NULL;
	struct job *job;

	if (engine->counts_in_store || !job_in_memory(row->id) || job_find(row->id, &job) != FOUND)
		return NULL;
	if (job->row.state == RESERVED) {
		who = conn_who(container_of(job->reserver, struct conn, reserver));
		row->state = RESERVED;
		row->reserves = job->row.reserves;
	}
	job_unfind(job);
	return who;
}

static void add_begin(struct evbuffer *out, const struct row *row)
{
	size_t length = !row->body ? 0 : row->size < LISTED_BYTES ? row->size : LISTED_BYTES;
	char *text = utf8_text(row->body ? row->body : "", length, &length);

	html_add(out, "<td data-of=\"Begins with\"><code>%s</code></td>", text);
	free(text);
}

static void add_row(struct ask *ask, struct evbuffer *out, struct listed_job *one)
{
	bool reads = ask->reads;
	struct row *row = &one->row;
	const char *who = who_has(row);
	int64_t now = engine->counts_in_store ? alarm_wall() : alarm_now();

	html_add(out, "<tr><th scope=\"row\">");
	html_job(ask, out, row->id);
	html_add(out, "</th><td data-of=\"State\">%r%r%s</td>",
		 states[row->state], who && reads ? ", by " : "", who && reads ? who : "");
	if (one->tube[0])
		html_add(out, "<td data-of=\"Tube\"><a href=\"%/tubes/%u\">%s</a></td>", one->tube,
			 one->tube);
	html_add(out, "<td data-of=\"Priority\">%d</td><td data-of=\"Age\">", (int64_t)row->pri);
	html_span(out, now - row->created);
	html_add(out, "</td><td data-of=\"Tries\">%d</td><td data-of=\"Bytes\">%d</td>",
		 (int64_t)row->reserves, (int64_t)row->size);
	if (reads)
		add_begin(out, row);
	html_add(out, "</tr>\n");
}

static void show(struct op *op)
{
	static const char *const of_server[] = {
		"Job", "State", "Tube", "Priority", "Age", "Tries", "Bytes", "Begins with",
	}, *const of_tube[] = {
		"Job", "State", "Priority", "Age", "Tries", "Bytes", "Begins with",
	};
	struct list *list = container_of(container_of(op, struct jobs_asked, op), struct list,
					 asked);
	struct jobs_asked *asked = &list->asked;
	struct ask *ask = list->ask;
	struct evbuffer *out = list->out;
	bool fine = ask->request && !op->failed;

	if (!fine) {
		evbuffer_free(out);
		http_fail(ask, HTTP_SERVUNAVAIL, "the store can't be read");
	} else {
		html_go_on(ask);
		if (asked->session)
			html_table(out, "jobs", of_server, ARRAY_SIZE(of_server) - !ask->reads);
		else
			html_table(out, "jobs", of_tube, ARRAY_SIZE(of_tube) - !ask->reads);
		for (size_t i = 0; i < asked->found; i++)
			add_row(ask, out, &asked->jobs[i]);
		html_end_table(out);
		if (!asked->found)
			html_add(out, "<p class=\"note\">There are none%r.</p>\n",
				 asked->after.id ? " after these" : "");
	}
	if (fine && asked->found == LISTED_MOST)
		html_add(out, "<nav aria-label=\"Pages of jobs\"><p><a href=\"?state=%r&amp;"
			 "order=%d&amp;after=%d\">after these</a></p></nav>\n",
			 states[asked->state], asked->jobs[LISTED_MOST - 1].row.ord,
			 asked->jobs[LISTED_MOST - 1].row.id);
	if (fine)
		html_end(ask, HTTP_OK, out);
	for (size_t i = 0; i < asked->found; i++)
		free(asked->jobs[i].row.body);
}

static bool keep_row(struct row *row, void *arg)
{
	struct list *list = arg;

	list->asked.jobs[list->asked.found++].row = *row;
	return list->asked.found < LISTED_MOST;
}

static void find(struct list *list)
{
	const struct tube *tube = tube_find(list->asked.tube);
	struct cursor cursor = list->asked.after;
	bool end;

	list->asked.op.kind = OP_JOBS;
	list->asked.op.done = show;
	if (engine->counts_in_store) {
		pg_ask(&list->asked.op);
		return;
	}
	list->asked.op.failed = tube && !store_in_order(tube->commit.id, list->asked.state, &cursor,
							&end, keep_row, list);
	show(&list->asked.op);
	free(list);
}

/* The state that is asked for, and where it goes on; false: it is answered */
static bool take_query(struct ask *ask, struct jobs_asked *asked)
{
	int64_t order = INT64_MIN, after = 0;
	char *said;

	if (!http_number(ask, "order", INT64_MAX, &order) ||
	    !http_number(ask, "after", INT64_MAX, &after))
		return false;
	asked->after = (struct cursor){ order, after };
	said = http_query(ask, "state");
	for (int state = 0; said && state < STATES; state++)
		if (!strcmp(said, states[state]))
			asked->state = state;
	free(said);
	/* Those are among the ready ones, as the store has them. */
	if (asked->state == RESERVED && !engine->counts_in_store)
		asked->state = READY;
	return true;
}

/** page_jobs - the jobs of a tube in one of its states */
void page_jobs(struct ask *ask)
{
	struct list *list;
	char *title;

	if (!tube_name_ok(ask->name, strlen(ask->name))) {
		http_fail(ask, HTTP_NOTFOUND, "there is no such tube");
		return;
	}
	list = zalloc(sizeof(*list));
	if (!take_query(ask, &list->asked)) {
		free(list);
		return;
	}
	list->ask = ask;
	if (asprintf(&title, "Jobs of %s", ask->name) < 0)
		must(NULL);
	list->out = html_begin(ask, title);
	free(title);
	strcpy(list->asked.tube, ask->name);
	html_add(list->out, "<nav aria-label=\"States\"><p><a href=\"%/tubes/%u\">The tube</a>",
		 ask->name);
	for (int state = 0; state < STATES; state++)
		if (state != RESERVED || engine->counts_in_store)
			html_add(list->out, ", <a href=\"?state=%r\"%r>%r%r</a>", states[state],
				 state == (int)list->asked.state ? " aria-current=\"page\"" : "",
				 states[state], state == READY && !engine->counts_in_store ?
				 " and reserved" : "");
	html_add(list->out, "</p></nav>\n");
	find(list);
}

/** page_list_of_server - the end of a server's page: the jobs that its clients have */
void page_list_of_server(struct ask *ask, struct evbuffer *out, int64_t session)
{
	struct list *list;

	if (!engine->counts_in_store) {
		html_end(ask, HTTP_OK, out);
		return;
	}
	list = zalloc(sizeof(*list));
	if (!take_query(ask, &list->asked)) {
		evbuffer_free(out);
		free(list);
		return;
	}
	list->ask = ask;
	list->out = out;
	list->asked.state = RESERVED;
	list->asked.session = session;
	html_add(out, "<h2>Jobs that its clients have</h2>\n");
	find(list);
}
