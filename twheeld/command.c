// SPDX-License-Identifier: GPL-2.0
/*
 * What each command does.
 *
 * What changes a job for good is written first. Meanwhile the job is nobody's, and the
 * client waits; then the job is where it shall be, or where it was, and the client is told.
 */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "limits.h"
#include "retry.h"
#include "shared.h"
#include "stats.h"
#include "util.h"

static uint32_t max_size;
static bool draining;
static uint64_t counts[CMD_KINDS];

void command_start(uint32_t size)
{
	max_size = size;
}

void command_drain(void)
{
	draining = true;
}

bool command_draining(void)
{
	return draining;
}

uint32_t command_max_size(void)
{
	return max_size;
}

uint64_t command_count(enum command_kind kind)
{
	return counts[kind];
}

static void sorry(struct conn *conn, enum found found)
{
	conn_reply(conn, found == UNREADABLE ? "INTERNAL_ERROR" : "NOT_FOUND");
}

/* Writing */

static void write_job(struct conn *conn, struct job *job, enum op_kind kind,
		      const struct row *row, void (*done)(struct op *op))
{
	conn->state = COMMITTING;
	job_write(job, kind, row, conn, done);
}

/*
 * It could not be written: all is as it was, as far as the client is still there, and the job.
 * Gives the reply.
 */
static const char *take_back(struct op *op)
{
	struct job *job = op->job;
	enum state state = job->row.state;

	if (op->gone) {
		job_forget(job);
		return "NOT_FOUND";
	}
	if (state == RESERVED && op->conn->state == DEAD) {
		job->reserver = NULL;
		state = READY;
	}
	if (store->shared && state == READY)
		retry_later(job);
	else
		job_attach(job, state);
	return "INTERNAL_ERROR";
}

static void changed(struct op *op, const char *reply)
{
	bool fine = job_written(op);

	if (fine) {
		op->job->reserver = NULL;
		job_attach(op->job, op->row.state);
	} else {
		reply = take_back(op);
	}
	conn_reply(op->conn, reply);
	conn_op_done(op->conn);
}

/* Put */

static void put_done(struct op *op)
{
	struct job *job = op->job;

	if (job_written(op) && op->same) {
		conn_printf(op->conn, "INSERTED %lld\r\n", (long long)op->same);
		job_free(job);
	} else if (!op->failed) {
		job->tube->total++;
		stats_put();
		conn_printf(op->conn, "INSERTED %lld\r\n", (long long)job->row.id);
		job_attach(job, op->row.state);
	} else {
		job_free(job);
		conn_reply(op->conn, "OUT_OF_MEMORY");
	}
	conn_op_done(op->conn);
}

static void do_put(struct conn *conn, const struct command *cmd)
{
	struct job *job;

	if (cmd->size > max_size) {
		conn_skip(conn, (uint64_t)cmd->size + 2, "JOB_TOO_BIG");
		return;
	}
	if (cmd->trailing) {
		conn_reply(conn, "BAD_FORMAT");
		return;
	}
	conn_counts.producers += !conn->producer;
	conn->producer = true;
	job = job_new(conn->use, cmd->size);
	if (!job) {
		conn_skip(conn, (uint64_t)cmd->size + 2, "OUT_OF_MEMORY");
		return;
	}
	job->row.pri = cmd->pri;
	job->row.delay = cmd->delay;
	job->row.ttr = cmd->ttr ? cmd->ttr : 1;
	conn->new_job = job;
	conn->have = 0;
	conn->state = WANT_BODY;
}

/** command_body - the body of a put is there */
void command_body(struct conn *conn)
{
	struct job *job = conn->new_job;
	struct row row;

	conn->new_job = NULL;
	if (memcmp(job->row.body + job->row.size, "\r\n", 2) || draining) {
		conn_reply(conn, memcmp(job->row.body + job->row.size, "\r\n", 2) ?
			   "EXPECTED_CRLF" : "DRAINING");
		job_free(job);
		return;
	}
	job->row.created = alarm_now();
	job->row.state = job->row.delay ? DELAYED : READY;
	job->row.ord = job->row.delay ?
		job->row.created + job->row.delay * conn->use->settings->unit : job->row.pri;
	row = job->row;
	write_job(conn, job, OP_PUT, &row, put_done);
}

/* Peek */

static void show(struct conn *conn, enum found found, struct job *job)
{
	if (found == FOUND && !job_need_body(job))
		found = UNREADABLE;
	if (found != FOUND)
		sorry(conn, found);
	else
		conn_job(conn, "FOUND", job);
	if (job)
		job_spare_body(job);
	job_unfind(job);
}

static void do_peek(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	show(conn, found, job);
}

static void do_peek_ready(struct conn *conn, const struct command *cmd)
{
	struct job *job = tube_first_ready(conn->use);

	(void)cmd;
	show(conn, job ? FOUND : NOT_THERE, job);
}

static void do_peek_delayed(struct conn *conn, const struct command *cmd)
{
	struct cursor begin = CURSOR_BEGIN;
	struct job *job;
	enum found found = tube_first_delayed(conn->use, &begin, &job);

	(void)cmd;
	show(conn, found, job);
}

static void do_peek_buried(struct conn *conn, const struct command *cmd)
{
	struct cursor begin = CURSOR_BEGIN;
	struct job *job;
	enum found found = tube_first_buried(conn->use, &begin, &job);

	(void)cmd;
	show(conn, found, job);
}

/* Reserve */

static struct job *first_ready(struct conn *conn)
{
	struct job *first = NULL;

	for (size_t i = 0; i < conn->watch_count; i++)
		tube_end_pause(conn->watches[i]->tube);
	for (size_t i = 0; i < conn->watch_count; i++) {
		struct tube *tube = conn->watches[i]->tube;
		struct job *job = tube_paused(tube) ? NULL : tube_first_ready(tube);

		if (job && (!first || job_ready_less(job, first)))
			first = job;
	}
	return first;
}

static bool any_ready(struct conn *conn)
{
	for (size_t i = 0; i < conn->watch_count; i++)
		if (conn->watches[i]->tube->count[READY])
			return true;
	return false;
}

/* Of both kinds: plain reserve has no timeout, which is below 0 */
static void do_reserve(struct conn *conn, const struct command *cmd)
{
	struct job *job;

	conn_set_worker(conn);
	if (conn_deadline_soon(conn) && !any_ready(conn)) {
		conn_reply(conn, "DEADLINE_SOON");
		return;
	}
	job = first_ready(conn);
	if (job)
		conn_give(conn, job);
	else if (cmd->timeout == 0)
		conn_reply(conn, "TIMED_OUT");
	else
		conn_wait(conn, cmd->timeout);
}

static void reserve_job_done(struct op *op)
{
	struct job *job = op->job;
	bool fine = job_written(op);

	if (!fine) {
		take_back(op);
		conn_reply(op->conn, "INTERNAL_ERROR");
	} else if (op->conn->state == DEAD) {
		job_attach(job, READY);
	} else if (!job_need_body(job)) {
		job_attach(job, READY);
		conn_reply(op->conn, "INTERNAL_ERROR");
	} else {
		conn_job(op->conn, "RESERVED", job);
		job_drop_body(job);
		job_reserve(job, op->conn);
	}
	conn_op_done(op->conn);
}

/*
 * After a crash, a job that was reserved is ready. The store calls it ready as long as it
 * is reserved; one that was not ready before is written first.
 */
static void do_reserve_job(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);
	struct row row;

	if (found != FOUND || job->busy || job->row.state == RESERVED) {
		sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
		return;
	}
	if (!job_need_body(job)) {
		sorry(conn, UNREADABLE);
		job_unfind(job);
		return;
	}
	conn_set_worker(conn);
	if (job->row.state == READY) {
		conn_give(conn, job);
		return;
	}
	row = job->row;
	row.state = READY;
	row.ord = row.pri;
	job_detach(job);
	write_job(conn, job, OP_CHANGE, &row, reserve_job_done);
}

/* The client's own jobs */

static struct job *find_own(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND && job->row.state == RESERVED && job->reserver == conn && !job->busy)
		return job;
	sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
	job_unfind(job);
	return NULL;
}

static void delete_done(struct op *op)
{
	struct job *job = op->job;
	const char *reply = "DELETED";

	if (job_written(op)) {
		job->tube->deletes++;
		job_forget(job);
	} else {
		reply = take_back(op);
	}
	conn_reply(op->conn, reply);
	conn_op_done(op->conn);
}

static void do_delete(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found != FOUND || job->busy ||
	    (job->row.state == RESERVED && job->reserver != conn)) {
		sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
		return;
	}
	job_detach(job);
	write_job(conn, job, OP_DELETE, &job->row, delete_done);
}

static void release_done(struct op *op)
{
	changed(op, op->row.state == BURIED ? "BURIED" : "RELEASED");
}

static void do_release(struct conn *conn, const struct command *cmd)
{
	struct job *job = find_own(conn, cmd);
	struct row row;

	if (!job)
		return;
	row = job->row;
	row.pri = cmd->pri;
	row.delay = cmd->delay;
	row.releases++;
	retry_row(job, &row);
	job_detach(job);
	write_job(conn, job, OP_CHANGE, &row, release_done);
}

static void bury_done(struct op *op)
{
	changed(op, "BURIED");
}

static void do_bury(struct conn *conn, const struct command *cmd)
{
	struct job *job = find_own(conn, cmd);
	struct row row;

	if (!job)
		return;
	row = job->row;
	row.pri = cmd->pri;
	row.buries++;
	row.state = BURIED;
	row.ord = retry_next_burial();
	job_detach(job);
	write_job(conn, job, OP_CHANGE, &row, bury_done);
}

static void touch_done(struct op *op)
{
	struct job *job = op->job;
	const char *reply = "TOUCHED";

	if (!job_written(op)) {
		reply = take_back(op);
	} else if (op->conn->state == DEAD) {
		retry_job(job);
	} else {
		job->deadline = op->at + job->row.ttr * SECOND;
		job_attach(job, RESERVED);
	}
	conn_reply(op->conn, reply);
	conn_op_done(op->conn);
}

/* Of a shared store, it may be another server's. */
static void do_touch(struct conn *conn, const struct command *cmd)
{
	struct job *job = find_own(conn, cmd);

	if (!job)
		return;
	job_detach(job);
	if (store->shared) {
		write_job(conn, job, OP_TOUCH, &job->row, touch_done);
		return;
	}
	job->deadline = alarm_now() + job->row.ttr * SECOND;
	job_attach(job, RESERVED);
	conn_reply(conn, "TOUCHED");
}

/* Kick */

static void write_kick(struct conn *conn, struct job *job, void (*done)(struct op *op))
{
	struct row row = job->row;

	row.kicks++;
	row.state = READY;
	row.ord = row.pri;
	job_detach(job);
	write_job(conn, job, OP_CHANGE, &row, done);
}

static void kick_job_done(struct op *op)
{
	changed(op, "KICKED");
}

static void do_kick_job(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND && !job->busy &&
	    (job->row.state == BURIED || job->row.state == DELAYED)) {
		write_kick(conn, job, kick_job_done);
		return;
	}
	sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
	job_unfind(job);
}

static void kick_piece(struct conn *conn);

static void kicked(struct op *op)
{
	struct conn *conn = op->conn;
	bool fine = job_written(op);

	if (fine) {
		conn->kicked++;
		job_attach(op->job, READY);
	} else {
		conn->kick_failed = true;
		take_back(op);
	}
	conn_op_done(conn);
	if (!conn->pending && conn->state != DEAD)
		kick_piece(conn);
}

/*
 * Kicks some jobs, and when these are in the store some more, until there are as many as
 * the client wants, or no more.
 */
static void kick_piece(struct conn *conn)
{
	enum found found = FOUND;

	while (conn->kick_left && conn->pending < KICK_PIECE && !conn->kick_failed) {
		struct job *job;

		found = conn->kick_buried ?
			tube_first_buried(conn->use, &conn->kick_from, &job) :
			tube_first_delayed(conn->use, &conn->kick_from, &job);
		if (found != FOUND)
			break;
		conn->kick_left--;
		write_kick(conn, job, kicked);
	}
	if (conn->pending)
		return;
	if ((conn->kick_failed || found == UNREADABLE) && !conn->kicked)
		conn_reply(conn, "INTERNAL_ERROR");
	else
		conn_printf(conn, "KICKED %u\r\n", conn->kicked);
}

static void do_kick(struct conn *conn, const struct command *cmd)
{
	conn->kick_left = cmd->bound;
	conn->kicked = 0;
	conn->kick_failed = false;
	conn->kick_from = CURSOR_BEGIN;
	conn->kick_buried = conn->use->count[BURIED] > 0;
	kick_piece(conn);
}

/* Tubes */

static void do_use(struct conn *conn, const struct command *cmd)
{
	struct tube *tube = tube_get(cmd->tube);

	if (!tube) {
		sorry(conn, UNREADABLE);
		return;
	}
	conn->use->using--;
	tube_put(conn->use);
	conn->use = tube;
	tube->using++;
	conn_printf(conn, "USING %s\r\n", tube->name);
}

static size_t find_watch(struct conn *conn, const char *name)
{
	size_t i;

	for (i = 0; i < conn->watch_count; i++)
		if (!strcmp(conn->watches[i]->tube->name, name))
			break;
	return i;
}

static void do_watch(struct conn *conn, const struct command *cmd)
{
	if (find_watch(conn, cmd->tube) == conn->watch_count) {
		struct tube *tube = tube_get(cmd->tube);

		if (!tube) {
			sorry(conn, UNREADABLE);
			return;
		}
		conn_watch(conn, tube);
		tube_put(tube);
	}
	conn_printf(conn, "WATCHING %zu\r\n", conn->watch_count);
}

static void do_ignore(struct conn *conn, const struct command *cmd)
{
	size_t at = find_watch(conn, cmd->tube);

	if (at < conn->watch_count && conn->watch_count < 2) {
		conn_reply(conn, "NOT_IGNORED");
		return;
	}
	if (at < conn->watch_count)
		conn_ignore(conn, at);
	conn_printf(conn, "WATCHING %zu\r\n", conn->watch_count);
}

static void do_pause_tube(struct conn *conn, const struct command *cmd)
{
	struct tube *tube = tube_find(cmd->tube);

	if (!tube) {
		conn_reply(conn, "NOT_FOUND");
		return;
	}
	/* Not 0, so that those who wait are served when it is over */
	tube_pause(tube, cmd->delay ? cmd->delay * SECOND : 1);
	conn_reply(conn, "PAUSED");
}

static void do_list_tubes(struct conn *conn, const struct command *cmd)
{
	struct evbuffer *text = must(evbuffer_new());
	size_t count;
	struct tube **list = tube_list(&count);

	(void)cmd;
	evbuffer_add_printf(text, "---\n");
	for (size_t i = 0; i < count; i++)
		evbuffer_add_printf(text, "- %s\n", list[i]->name);
	conn_text(conn, text);
}

static void do_list_tube_used(struct conn *conn, const struct command *cmd)
{
	(void)cmd;
	conn_printf(conn, "USING %s\r\n", conn->use->name);
}

static void do_list_tubes_watched(struct conn *conn, const struct command *cmd)
{
	struct evbuffer *text = must(evbuffer_new());

	(void)cmd;
	evbuffer_add_printf(text, "---\n");
	for (size_t i = 0; i < conn->watch_count; i++)
		evbuffer_add_printf(text, "- %s\n", conn->watches[i]->tube->name);
	conn_text(conn, text);
}

/* Statistics */

static void do_stats(struct conn *conn, const struct command *cmd)
{
	(void)cmd;
	conn_text(conn, stats_server(NULL, 0));
}

static void do_stats_job(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND)
		conn_text(conn, stats_job(job));
	else
		sorry(conn, found);
	job_unfind(job);
}

static void do_stats_tube(struct conn *conn, const struct command *cmd)
{
	struct tube *tube = tube_find(cmd->tube);

	if (tube)
		conn_text(conn, stats_tube(tube, NULL));
	else
		conn_reply(conn, "NOT_FOUND");
}

static void do_quit(struct conn *conn, const struct command *cmd)
{
	(void)cmd;
	conn->state = CLOSING;
}

static void (*const commands[CMD_KINDS])(struct conn *conn, const struct command *cmd) = {
	[CMD_PUT] = do_put,
	[CMD_PEEK] = do_peek,
	[CMD_PEEK_READY] = do_peek_ready,
	[CMD_PEEK_DELAYED] = do_peek_delayed,
	[CMD_PEEK_BURIED] = do_peek_buried,
	[CMD_RESERVE_TIMEOUT] = do_reserve,
	[CMD_RESERVE_JOB] = do_reserve_job,
	[CMD_RESERVE] = do_reserve,
	[CMD_DELETE] = do_delete,
	[CMD_RELEASE] = do_release,
	[CMD_BURY] = do_bury,
	[CMD_KICK] = do_kick,
	[CMD_KICK_JOB] = do_kick_job,
	[CMD_TOUCH] = do_touch,
	[CMD_STATS_JOB] = do_stats_job,
	[CMD_STATS_TUBE] = do_stats_tube,
	[CMD_STATS] = do_stats,
	[CMD_USE] = do_use,
	[CMD_WATCH] = do_watch,
	[CMD_IGNORE] = do_ignore,
	[CMD_LIST_TUBES_WATCHED] = do_list_tubes_watched,
	[CMD_LIST_TUBE_USED] = do_list_tube_used,
	[CMD_LIST_TUBES] = do_list_tubes,
	[CMD_QUIT] = do_quit,
	[CMD_PAUSE_TUBE] = do_pause_tube,
};

/** command_do - do what a line says */
void command_do(struct conn *conn, const struct command *cmd)
{
	if (cmd->counted)
		counts[cmd->kind]++;
	if (cmd->bad)
		conn_reply(conn, "BAD_FORMAT");
	else if (cmd->kind == CMD_UNKNOWN)
		conn_reply(conn, "UNKNOWN_COMMAND");
	else if (!store->shared || !shared_command(conn, cmd))
		commands[cmd->kind](conn, cmd);
}
