// SPDX-License-Identifier: GPL-2.0
/*
 * The engine of a store that other servers share: the database says which job comes next, and what
 * is due. In memory are only the jobs that clients of this server have reserved.
 *
 * Each command is one operation of the committer, and its client waits for that. Nothing is
 * looked up here: another server may be about to change it. An operation that makes a job ready is
 * followed, in the same transaction, by one that gives it to a client of this server that waits.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/util.h"
#include "jobs/command.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/stats.h"
#include "jobs/trace.h"
#include "store/postgres_listen.h"

/* The most jobs that one operation takes, for as many clients */
#define TAKE_MOST 100
/* The most takes of a tube under way: while the database is silent, they would only pile up */
#define TAKES_MOST 1000
/* How often a database without hints is asked */
#define POLL (100 * MILLISECOND)
/*
 * The wait after an alarm found no job due, as the clocks differ a little. It doubles each time
 * while another server holds a job that is due, but stays short enough for jobs that fall due
 * meanwhile.
 */
#define TOO_EARLY (2 * MILLISECOND)
#define HELD (20 * MILLISECOND)
/* How many answers about the database's clock are compared */
#define CLOCKS 8
/* How long a client waits for the database; a reserve waits this beyond its own time */
#define PATIENCE (5 * SECOND)
#define RESERVE_PATIENCE SECOND
/* How long a server that ends waits for clients that have reserved jobs */
#define DRAIN (60 * SECOND)

static struct twheel_timer due_timer, poll_timer;
static int64_t next_due = INT64_MAX;
static bool promoting, renewing, asking;
static struct event_base *loop;
static bool draining;
static int64_t drain_until;
static struct histogram lateness;

/* Requests */

static struct request *new_request(enum op_kind kind, struct conn *conn,
				   void (*done)(struct op *op))
{
	struct request *request = zalloc(sizeof(*request));

	request->op.kind = kind;
	request->op.done = done;
	request->op.at = alarm_now();
	request->op.conn = conn;
	if (conn)
		conn_commit(conn, &request->op, request->op.at + PATIENCE);
	return request;
}

/* An operation on one job. A number that no job can have is sent as 0, which no job has. */
static void submit_for(struct conn *conn, enum op_kind kind, uint64_t id,
		       void (*done)(struct op *op))
{
	struct request *request = new_request(kind, conn, done);

	request->op.row.id = id > INT64_MAX ? 0 : id;
	if (kind != OP_TAKE_JOB)
		trace_of_request(&request->op, NULL, kind == OP_REMOVE ? DEED_DELETED :
				 DEED_KICKED);
	commit_submit(&request->op);
}

static struct request *of(struct op *op)
{
	return container_of(op, struct request, op);
}

static void set_tube(struct request *request, const char *name)
{
	strcpy(request->name, name);
	request->tube = request->name;
}

/* Free the request's results. A body that a client took is NULL. */
static void free_results(struct request *request)
{
	for (size_t i = 0; i < request->found; i++)
		free(request->jobs[i].row.body);
	free(request->jobs);
	free(request->ids);
	free(request->tubes);
}

static void end_request(struct request *request, const char *reply)
{
	struct conn *conn = request->op.conn;

	if (reply)
		conn_reply(conn, reply);
	free_results(request);
	trace_free(request->op.trace);
	if (conn)
		conn_op_done(conn);
}

static const char *result_of(const struct request *request, const char *good)
{
	if (request->op.failed)
		return "INTERNAL_ERROR";
	return request->found ? good : "NOT_FOUND";
}

/* Giving */

static void free_body(const void *body, size_t size, void *unused)
{
	free((void *)body);
}

/* A large body is sent from where it is: a copy would hold up the loop, and double the memory. */
static void reply_row(struct conn *conn, const char *word, struct row *row)
{
	if (conn->state == DEAD)
		return;
	conn_printf(conn, "%s %lld %u\r\n", word, (long long)row->id, row->size);
	if (row->size > SMALL_BODY &&
	    !evbuffer_add_reference(conn->out, row->body, row->size, free_body, NULL))
		row->body = NULL;
	else
		evbuffer_add(conn->out, row->body, row->size);
	evbuffer_add(conn->out, "\r\n", 2);
}

static struct job *own(struct found_job *found)
{
	struct tube *tube = tube_get(found->tube);
	struct job *job;

	free(found->row.body);
	found->row.body = NULL;
	found->row.tube = tube->commit.id;
	job = job_own(tube, &found->row);
	tube_put(tube);
	return job;
}

static void cluster_give(struct conn *conn, struct found_job *found)
{
	struct job *job;

	conn_stop_waiting(conn);
	reply_row(conn, "RESERVED", &found->row);
	job = own(found);
	job->reserver = &conn->reserver;
	job->deadline = alarm_now() + job->row.ttr * SECOND;
	trace_begin(job, conn);
	job_attach(job, RESERVED);
}

/* Give a job back as if it had not been reserved. */
static void hand_back(struct found_job *found)
{
	struct job *job = own(found);

	job->row.reserves--;
	job_hand_back(job);
}

/* A server that was stopped for the lease may have lost it to another one. */
static bool fresh(const struct op *op)
{
	return alarm_now() - op->at < store_lease;
}

static void take_for_tube(struct tube *tube, struct conn *conn);

static bool wants(const struct tube *tube)
{
	return tube->waiting && !draining;
}

static void took_for_tube(struct op *op)
{
	struct request *request = of(op);
	struct tube *tube = request->serves;
	bool more = !op->failed && (request->found == request->count || request->full ||
				    tube->news != request->news);

	tube->taking--;
	if (request->again)
		tube_serve_at(tube, alarm_now() + request->again);
	for (size_t i = 0; i < request->found; i++) {
		if (wants(tube) && fresh(op))
			cluster_give(tube->waiting->conn, &request->jobs[i]);
		else
			hand_back(&request->jobs[i]);
	}
	if (more && wants(tube) && !tube->taking)
		take_for_tube(tube, NULL);
	end_request(request, op->conn ? "KICKED" : NULL);
	tube_put(tube);
}

/* Take as many jobs as clients wait; @conn has kicked one. */
static void take_for_tube(struct tube *tube, struct conn *conn)
{
	struct request *request = new_request(OP_TAKE, conn, took_for_tube);

	request->serves = tube;
	request->news = tube->news;
	request->count = tube->waiting_count < TAKE_MOST ? tube->waiting_count : TAKE_MOST;
	request->limited = limit_any(&tube->settings->limit);
	set_tube(request, tube->name);
	tube->users++;
	tube->taking++;
	commit_submit(&request->op);
}

/* A tube may have jobs for clients that wait. */
static void cluster_serve(struct tube *tube)
{
	tube->news++;
	if (wants(tube) && !tube->taking)
		take_for_tube(tube, NULL);
}

/*
 * The operation just submitted makes a job ready: take it after that, or have the last take do
 * so.
 */
static void follow(struct tube *tube)
{
	tube->news++;
	if (wants(tube) && tube->taking < TAKES_MOST)
		take_for_tube(tube, NULL);
}

/* Another server says that a tube has jobs that are ready. */
static void tube_has_jobs(const char *name)
{
	struct tube *tube = tube_find(name);

	if (tube)
		cluster_serve(tube);
}

static void add_name(struct evbuffer *names, const struct tube *tube)
{
	evbuffer_add_printf(names, "%s\"%s\"", evbuffer_get_length(names) > 1 ? "," : "",
			    tube->name);
}

/* An array of PostgreSQL. A tube's name needs quotes alone. NULL: there are no names. */
static char *array_of(struct evbuffer *names)
{
	size_t length = evbuffer_get_length(names);
	char *array = NULL;

	if (length > 1) {
		array = must(malloc(length + 2));
		evbuffer_remove(names, array, length);
		strcpy(array + length, "}");
	}
	evbuffer_free(names);
	return array;
}

static struct evbuffer *no_names(void)
{
	struct evbuffer *names = must(evbuffer_new());

	evbuffer_add(names, "{", 1);
	return names;
}

static void which(struct op *op)
{
	struct request *request = of(op);

	asking = false;
	for (size_t i = 0; i < request->found; i++)
		tube_has_jobs(request->jobs[i].tube);
	free_results(request);
}

/* Hints may be lost: ask in which tubes with waiting clients there are jobs. */
static void serve_all(void)
{
	struct evbuffer *names;
	struct request *request;
	size_t count;
	struct tube **list = tube_list(&count);
	char *tubes;

	if (asking || draining)
		return;
	names = no_names();
	for (size_t i = 0; i < count; i++)
		if (list[i]->waiting)
			add_name(names, list[i]);
	tubes = array_of(names);
	if (!tubes)
		return;
	asking = true;
	request = new_request(OP_WHICH, NULL, which);
	request->tubes = tubes;
	commit_submit(&request->op);
}

/* Reserve */

static uint64_t news_of(const struct conn *conn)
{
	uint64_t news = 0;

	for (size_t i = 0; i < conn->watch_count; i++)
		news += conn->watches[i]->tube->news;
	return news;
}

static void take_for(struct conn *conn, int64_t late_at);

/*
 * While the database is away, a worker is answered as if there were no jobs: it asks again, or goes
 * on waiting. An error would end many workers.
 */
static void none_for(struct conn *conn, const struct request *request)
{
	if (conn_deadline_soon(conn))
		conn_reply(conn, "DEADLINE_SOON");
	else if (alarm_now() >= conn->until || draining)
		conn_reply(conn, "TIMED_OUT");
	else if (!request->op.failed && request->news != news_of(conn))
		take_for(conn, conn->late_at);
	else
		conn_wait(conn, conn->until);
	conn_go_on(conn);
}

static void took_for(struct op *op)
{
	struct request *request = of(op);
	struct conn *conn = op->conn;

	if (request->found && conn->state != DEAD && fresh(op))
		cluster_give(conn, &request->jobs[0]);
	else if (request->found)
		hand_back(&request->jobs[0]);
	if (conn->state == COMMITTING)
		none_for(conn, request);
	for (size_t i = 0; request->again && i < conn->watch_count; i++)
		if (limit_any(&conn->watches[i]->tube->settings->limit))
			tube_serve_at(conn->watches[i]->tube, alarm_now() + request->again);
	end_request(request, NULL);
}

static char *watched(const struct conn *conn)
{
	struct evbuffer *names = no_names();

	for (size_t i = 0; i < conn->watch_count; i++)
		add_name(names, conn->watches[i]->tube);
	return array_of(names);
}

static void take_for(struct conn *conn, int64_t late_at)
{
	struct request *request = new_request(OP_TAKE, NULL, took_for);

	request->op.conn = conn;
	conn_commit(conn, &request->op, late_at == INT64_MAX ? 0 : late_at);
	request->count = 1;
	request->news = news_of(conn);
	if (conn->watch_count == 1)
		set_tube(request, conn->watches[0]->tube->name);
	else
		request->tubes = watched(conn);
	request->tube_count = conn->watch_count;
	for (size_t i = 0; i < conn->watch_count; i++)
		request->limited |= limit_any(&conn->watches[i]->tube->settings->limit);
	commit_submit(&request->op);
}

static void do_reserve(struct conn *conn, const struct command *cmd)
{
	int64_t now = alarm_now(), late_at;

	conn_set_worker(conn);
	conn->until = cmd->timeout < 0 ? INT64_MAX : now + cmd->timeout * SECOND;
	late_at = conn_wait_until(conn, conn->until);
	if (late_at != INT64_MAX)
		late_at = (late_at > now ? late_at : now) + RESERVE_PATIENCE;
	if (!draining)
		take_for(conn, late_at);
	else if (conn->reserver.jobs)
		conn_reply(conn, "TIMED_OUT");
	else
		conn->state = CLOSING;
}

static void took_job(struct op *op)
{
	struct request *request = of(op);
	struct conn *conn = op->conn;
	const char *reply = result_of(request, NULL);

	if (request->found && conn->state != DEAD && fresh(op)) {
		conn_set_worker(conn);
		cluster_give(conn, &request->jobs[0]);
	} else if (request->found) {
		hand_back(&request->jobs[0]);
		reply = "NOT_FOUND";
	}
	end_request(request, reply);
}

/* Delete and kick: jobs that nobody has reserved */

static void removed(struct op *op)
{
	struct request *request = of(op);
	struct tube *tube = request->found ? tube_find(request->jobs[0].tube) : NULL;

	if (tube)
		tube->deletes++;
	free((void *)op->key);
	end_request(request, result_of(request, "DELETED"));
}

/* The client that waits for the job has it before the one that kicked has its reply. */
static void kicked_job(struct op *op)
{
	struct request *request = of(op);
	struct tube *tube = request->found ? tube_find(request->jobs[0].tube) : NULL;

	if (tube)
		tube->news++;
	if (!tube || !wants(tube) || op->conn->state == DEAD) {
		end_request(request, result_of(request, "KICKED"));
		return;
	}
	take_for_tube(tube, op->conn);
	end_request(request, NULL);
}

static void kick_on(struct conn *conn, enum state state);

static void cluster_kicked(struct op *op)
{
	struct request *request = of(op);
	struct conn *conn = op->conn;
	bool first = !conn->kicked;

	conn->kicked += request->found;
	conn->kick_left -= request->found;
	if (op->failed && first)
		conn_reply(conn, "INTERNAL_ERROR");
	else if (conn->state != DEAD && request->found && conn->kick_left)
		kick_on(conn, request->state);
	else if (conn->state != DEAD && first && !request->found && request->state == BURIED)
		kick_on(conn, DELAYED);
	else
		conn_printf(conn, "KICKED %u\r\n", conn->kicked);
	end_request(request, NULL);
}

/* Send back from the dead letters: one piece, then the next. */

static void back_on(struct conn *conn);

static void went_back(struct op *op)
{
	struct request *request = of(op);
	struct conn *conn = op->conn;
	bool one = op->kind == OP_BACK_JOB;

	for (size_t i = 0; i < request->found; i++) {
		/* A priority, or a time */
		if (request->jobs[i].row.ord <= UINT32_MAX)
			tube_has_jobs(request->jobs[i].tube);
		else
			engine->due(request->jobs[i].row.ord);
	}
	conn->kicked += request->found;
	conn->kick_left -= request->found;
	if (!one && conn->state != DEAD && request->found && conn->kick_left)
		back_on(conn);
	else if (!one && (conn->kicked || !op->failed))
		conn_printf(conn, "KICKED %u\r\n", conn->kicked);
	else
		conn_reply(conn, result_of(request, "KICKED"));
	end_request(request, NULL);
}

static void back(struct conn *conn, enum op_kind kind, int64_t id)
{
	struct request *request = new_request(kind, conn, went_back);

	request->op.row.id = id;
	request->op.row.ord = conn_back_wait(conn, kind == OP_BACK_JOB ? 1 : conn->kicked);
	request->pause = conn->back_every;
	request->count = conn->kick_left;
	trace_of_request(&request->op, conn->use, DEED_KICKED);
	set_tube(request, conn->use->name);
	commit_submit(&request->op);
}

/* Each piece has its time. */
static void back_on(struct conn *conn)
{
	conn->late_at = 0;
	back(conn, OP_BACK, 0);
}

static void do_back(struct conn *conn, const struct command *cmd)
{
	bool one = cmd->kind == CMD_BACK_JOB;

	conn->kick_left = one ? 1 : cmd->id < UINT32_MAX ? cmd->id : UINT32_MAX;
	conn->kicked = 0;
	conn->back_every = cmd->pri * MILLISECOND;
	back(conn, one ? OP_BACK_JOB : OP_BACK, one && cmd->id <= INT64_MAX ? cmd->id : 0);
}

/* Kick one piece, then the next. The job that is kicked first goes to the client that waits. */
static void kick(struct conn *conn, enum state state)
{
	struct request *request = new_request(OP_KICK, conn, cluster_kicked);

	request->state = state;
	trace_of_request(&request->op, conn->use, DEED_KICKED);
	request->count = conn->kick_left && wants(conn->use) ? 1 : conn->kick_left;
	set_tube(request, conn->use->name);
	commit_hold(true);
	commit_submit(&request->op);
	follow(conn->use);
	commit_hold(false);
}

/* Kick the next piece; each has its own time limit. */
static void kick_on(struct conn *conn, enum state state)
{
	conn->late_at = 0;
	kick(conn, state);
}

static void do_kick(struct conn *conn, const struct command *cmd)
{
	conn->kick_left = cmd->bound;
	conn->kicked = 0;
	kick(conn, BURIED);
}

/* Looking */

static void cluster_looked(struct op *op)
{
	struct request *request = of(op);

	if (request->found)
		reply_row(op->conn, "FOUND", &request->jobs[0].row);
	end_request(request, result_of(request, NULL));
}

static void cluster_look(struct conn *conn, uint64_t id, enum state state,
			 void (*done)(struct op *op))
{
	struct request *request = new_request(OP_LOOK, conn, done);

	request->op.row.id = id > INT64_MAX ? 0 : id;
	request->state = state;
	if (!id)
		set_tube(request, conn->use->name);
	commit_submit(&request->op);
}

/* Reply with a job; the database's times become the server's. */
static void tell_job(struct conn *conn, struct found_job *found)
{
	int64_t ahead = alarm_now() - alarm_wall();
	struct job job = { .row = found->row, .tube = tube_get(found->tube) };

	job.row.created += ahead;
	job.row.ord += job.row.state == DELAYED ? ahead : 0;
	job.deadline = found->row.ord + ahead;
	conn_text(conn, stats_job(&job));
	tube_put(job.tube);
}

static void looked_for_stats(struct op *op)
{
	struct request *request = of(op);

	if (request->found)
		tell_job(op->conn, &request->jobs[0]);
	end_request(request, result_of(request, NULL));
}

/* A pause holds for all servers. */

static void paused(struct op *op)
{
	struct request *request = of(op);
	struct tube *tube = tube_find(request->name);

	if (request->found && tube)
		tube_pause(tube, request->pause);
	end_request(request, result_of(request, "PAUSED"));
}

static void do_pause_tube(struct conn *conn, const struct command *cmd)
{
	struct request *request = new_request(OP_PAUSE_TUBE, conn, paused);

	request->pause = cmd->delay * SECOND;
	request->used = tube_find(cmd->tube);
	set_tube(request, cmd->tube);
	commit_submit(&request->op);
}

/* Counts */

static struct conn *conn_of(struct counts_asker *asker)
{
	return container_of(asker, struct conn, counts);
}

static void counted_tube(struct counts_asker *asker, const struct counts *counts)
{
	struct conn *conn = conn_of(asker);
	struct tube *tube = tube_find(counts->tube);
	bool known = tube || counts->length;

	if (counts->op.failed || !known) {
		conn_reply(conn, counts->op.failed ? "INTERNAL_ERROR" : "NOT_FOUND");
		return;
	}
	tube = tube_get(counts->tube);
	conn_text(conn, stats_tube(tube, counts->figures));
	tube_put(tube);
}

static void counted_all(struct counts_asker *asker, const struct counts *counts)
{
	int64_t count[STATES] = { 0 }, urgent = 0;
	size_t tubes;

	if (counts->op.failed) {
		conn_reply(conn_of(asker), "INTERNAL_ERROR");
		return;
	}
	tube_list(&tubes);
	for (size_t i = 0; i < counts->length; i++) {
		const struct tube_counts *tube = &counts->figures[i];

		for (int state = 0; state < STATES; state++)
			count[state] += tube->count[state];
		urgent += tube->urgent;
		tubes += !tube_find(tube->tube);
	}
	conn_text(conn_of(asker), stats_server(count, urgent, tubes));
}

static void counted_names(struct counts_asker *asker, const struct counts *counts)
{
	struct evbuffer *text;
	size_t count;
	struct tube **list = tube_list(&count);

	if (counts->op.failed) {
		conn_reply(conn_of(asker), "INTERNAL_ERROR");
		return;
	}
	text = must(evbuffer_new());
	evbuffer_add_printf(text, "---\n");
	for (size_t i = 0; i < count; i++)
		evbuffer_add_printf(text, "- %s\n", list[i]->name);
	for (size_t i = 0; i < counts->length; i++)
		if (!tube_find(counts->figures[i].tube))
			evbuffer_add_printf(text, "- %s\n", counts->figures[i].tube);
	conn_text(conn_of(asker), text);
}

static void do_reserve_job(struct conn *conn, const struct command *cmd)
{
	submit_for(conn, OP_TAKE_JOB, cmd->id, took_job);
}

/* Only a job that a client of this server has reserved is in memory. */
static void do_delete(struct conn *conn, const struct command *cmd)
{
	if (cmd->id <= INT64_MAX && job_in_memory(cmd->id))
		command_delete(conn, cmd);
	else
		submit_for(conn, OP_REMOVE, cmd->id, removed);
}

static void do_delete_key(struct conn *conn, const struct command *cmd)
{
	struct request *request = new_request(OP_REMOVE, conn, removed);
	struct job_key *key = zalloc(sizeof(*key));

	strcpy(key->text, cmd->key);
	request->op.key = key;
	trace_of_request(&request->op, conn->use, DEED_DELETED);
	set_tube(request, conn->use->name);
	commit_submit(&request->op);
}

static void do_kick_job(struct conn *conn, const struct command *cmd)
{
	submit_for(conn, OP_KICK_JOB, cmd->id, kicked_job);
}

/* peek, and stats-job */
static void do_look(struct conn *conn, const struct command *cmd)
{
	if (cmd->id)
		cluster_look(conn, cmd->id, READY,
			     cmd->kind == CMD_PEEK ? cluster_looked : looked_for_stats);
	else
		conn_reply(conn, "NOT_FOUND");
}

static void do_peek_first(struct conn *conn, const struct command *cmd)
{
	static const enum state states[CMD_KINDS] = {
		[CMD_PEEK_READY] = READY, [CMD_PEEK_DELAYED] = DELAYED, [CMD_PEEK_BURIED] = BURIED,
	};

	cluster_look(conn, 0, states[cmd->kind], cluster_looked);
}

/* stats-tube, which names a tube; stats, and list-tubes */
static void do_count(struct conn *conn, const struct command *cmd)
{
	conn->state = COMMITTING;
	conn->counts.answered = cmd->kind == CMD_STATS_TUBE ? counted_tube :
		cmd->kind == CMD_STATS ? counted_all : counted_names;
	tube_counts_ask(&conn->counts, cmd->kind == CMD_STATS_TUBE ? cmd->tube : NULL);
}

/* The job may be another server's by now. */
static void cluster_touch(struct conn *conn, struct job *job)
{
	command_write(conn, job, OP_TOUCH, &job->row, command_touched);
}

/* Jobs and tubes in memory */

static enum found cluster_find(int64_t id, struct job **job)
{
	return NOT_THERE;
}

/* The job is the store's again. */
static void cluster_attach(struct job *job, enum state state)
{
	job_forget(job);
}

static void detach(struct job *job)
{
}

static void submit(struct op *op)
{
	commit_hold(true);
	commit_submit(op);
	if (op->row.state == READY && op->kind != OP_DELETE)
		follow(container_of(op->to, struct tube, commit));
	commit_hold(false);
}

/* The database numbers no tubes. */
static bool tube_id(const char *name, int64_t *id)
{
	*id = 0;
	return true;
}

static void tube_comes_or_goes(struct tube *tube)
{
}

/* Jobs that fall due */

static void set_due_timer(int64_t least)
{
	int64_t wait = next_due - alarm_wall();

	if (next_due != INT64_MAX)
		alarm_set(&due_timer, alarm_now() + (wait > least ? wait : least));
}

static void promoted(struct op *op)
{
	static int64_t pause;
	struct request *request = of(op);

	promoting = false;
	if (!op->failed)
		next_due = request->next;
	if (request->found)
		pause = 0;
	else if (!pause || next_due > alarm_wall())
		pause = TOO_EARLY;
	else
		pause = 2 * pause < HELD ? 2 * pause : HELD;
	for (size_t i = 0; i < request->found; i++) {
		histogram_add(&lateness, alarm_wall() - request->jobs[i].row.ord);
		tube_has_jobs(request->jobs[i].tube);
	}
	set_due_timer(op->failed ? SECOND : pause);
	free_results(request);
}

static void promote(void)
{
	if (promoting)
		return;
	promoting = true;
	commit_submit(&new_request(OP_PROMOTE, NULL, promoted)->op);
}

static void is_due(struct twheel *tw, struct twheel_timer *timer,
		   const struct twheel_event *event)
{
	promote();
}

/* A job falls due at @when, by the database's clock. */
static void due(int64_t when)
{
	if (when >= next_due)
		return;
	next_due = when;
	if (!promoting)
		set_due_timer(0);
}

/* How late this server made due jobs ready */
static const struct histogram *how_late(void)
{
	return &lateness;
}

/* The clock, and sessions */

/*
 * Each answer says how far the database's clock is ahead at least: the time that the answer took is
 * missing. So the largest of the last answers is the best.
 */
static void renewed(struct op *op)
{
	static int64_t clocks[CLOCKS];
	static unsigned int at;
	int64_t best = INT64_MIN;

	renewing = false;
	if (!op->failed) {
		clocks[at++ % CLOCKS] = of(op)->clock;
		for (unsigned int i = 0; i < CLOCKS && i < at; i++)
			best = clocks[i] > best ? clocks[i] : best;
		alarm_follow(best);
		/* Other servers may have put jobs that are due. */
		promote();
	}
	free_results(of(op));
}

/* While the database is silent, clients go and try again: what nobody waits for is dropped. */
static bool hopeless(const struct op *op)
{
	return op_is_optional(op) &&
		(op_given_up(op) || (op->conn && op->conn->state == DEAD &&
				 alarm_now() - op->at > PATIENCE));
}

/* Once a second: the question for the time also keeps the session alive. */
static void cluster_tick(void)
{
	commit_drop(hopeless);
	if (!renewing)
		commit_submit(&new_request(OP_RENEW, NULL, renewed)->op);
	renewing = true;
	serve_all();
}

/* The end */

static bool anything_reserved(void)
{
	size_t count;
	struct tube **list = tube_list(&count);

	for (size_t i = 0; i < count; i++)
		if (list[i]->count[RESERVED])
			return true;
	return false;
}

/* A client that has reserved no job is sent to another server. */
static void send_away(struct conn *conn)
{
	if (conn->reserver.jobs) {
		conn_stop_waiting(conn);
		conn_reply(conn, "TIMED_OUT");
	} else {
		conn_close(conn);
	}
}

static struct conn *any_that_waits(void)
{
	size_t count;
	struct tube **list = tube_list(&count);

	for (size_t i = 0; i < count; i++)
		if (list[i]->waiting)
			return list[i]->waiting->conn;
	return NULL;
}

/*
 * End, once no client has a job reserved any more. Gives false, and does nothing, if the server is
 * draining already.
 */
static bool drain(void)
{
	struct conn *conn;

	if (draining)
		return false;
	inform("ending once clients have finished their reserved jobs, or in %d s",
	       (int)(DRAIN / SECOND));
	draining = true;
	drain_until = alarm_now() + DRAIN;
	while ((conn = any_that_waits()))
		send_away(conn);
	return true;
}

static void poll_again(struct twheel *tw, struct twheel_timer *timer,
		       const struct twheel_event *event)
{
	if (pg_polls())
		serve_all();
	if (draining && (!anything_reserved() || alarm_now() >= drain_until))
		event_base_loopbreak(loop);
	alarm_set(timer, alarm_now() + POLL);
}

/* Hints are lines, and the last may be in part. An empty one means that a job falls due soon. */
static void hinted(evutil_socket_t fd, short what, void *arg)
{
	static char lines[64 * (TUBE_NAME_MAX + 1) + 1];
	static size_t have;
	char *line = lines, *end;
	ssize_t got;

	got = read(fd, lines + have, sizeof(lines) - 1 - have);
	if (got <= 0)
		return;
	have += got;
	lines[have] = '\0';
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		if (*line)
			tube_has_jobs(line);
		else
			promote();
		line = end + 1;
	}
	have -= line - lines;
	memmove(lines, line, have);
}

static void cluster_start(struct event_base *base)
{
	loop = base;
	alarm_init(&due_timer, is_due);
	alarm_init(&poll_timer, poll_again);
	alarm_set(&poll_timer, alarm_now() + POLL);
	event_add(must(event_new(base, pg_hints(), EV_READ | EV_PERSIST, hinted, NULL)), NULL);
	cluster_tick();
}

/* Nothing is loaded: no job is in memory, and the database gives out the ids. */
static void cluster_load(struct event_base *base)
{
	struct alarm_past past = { 0 };

	alarm_follow(store->clock());
	alarm_start(base, 0, &past);
	job_ids_begin(INT64_MIN + 1);
	job_end_start(0);
}

const struct engine engine_cluster = {
	.store = "database",
	.disk = "the database",
	.counts_in_store = true,
	.patience = PATIENCE,
	.load = cluster_load,
	.start = cluster_start,
	.tick = cluster_tick,
	.drain = drain,
	.lateness = how_late,
	.commands = {
		[CMD_PEEK] = do_look,
		[CMD_PEEK_READY] = do_peek_first,
		[CMD_PEEK_DELAYED] = do_peek_first,
		[CMD_PEEK_BURIED] = do_peek_first,
		[CMD_RESERVE] = do_reserve,
		[CMD_RESERVE_TIMEOUT] = do_reserve,
		[CMD_RESERVE_JOB] = do_reserve_job,
		[CMD_DELETE] = do_delete,
		[CMD_KICK] = do_kick,
		[CMD_KICK_JOB] = do_kick_job,
		[CMD_BACK] = do_back,
		[CMD_BACK_JOB] = do_back,
		[CMD_PAUSE_TUBE] = do_pause_tube,
		[CMD_DELETE_KEY] = do_delete_key,
		[CMD_STATS] = do_count,
		[CMD_STATS_JOB] = do_look,
		[CMD_STATS_TUBE] = do_count,
		[CMD_LIST_TUBES] = do_count,
	},
	.touch = cluster_touch,
	.tube_id = tube_id,
	.tube_begins = tube_comes_or_goes,
	.tube_ends = tube_comes_or_goes,
	.serve = cluster_serve,
	.find = cluster_find,
	.attach = cluster_attach,
	.detach = detach,
	.expired = job_end_expired,
	.submit = submit,
	.due = due,
	.hand_back = job_hand_back,
	.not_written = job_end_later,
};
