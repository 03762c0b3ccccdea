// SPDX-License-Identifier: GPL-2.0
/*
 * What each command does.
 *
 * A lasting change of a job is written first. Meanwhile the job is nobody's, and the client waits;
 * then the job is in its new place, or in the old one, and the client has its reply.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/command.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/trace.h"

static uint32_t max_size;
static bool draining;
static uint64_t counts[CMD_KINDS];

static void do_line(struct conn *conn, const struct command *cmd);
static void do_body(struct conn *conn);
static void do_late(struct conn *conn);
/* Stands for a client that had its reply before its operation was done */
static struct conn nobody = { .state = DEAD, .pending = 1 };

/** command_start - begin to take commands; @size is the most bytes of a body */
void command_start(struct event_base *base, uint32_t size)
{
	max_size = size;
	conn_start(base, do_line, do_body, do_late);
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

/** command_sorry - reply that a job is not there, or that the store can't be read */
void command_sorry(struct conn *conn, enum found found)
{
	conn_reply(conn, found == UNREADABLE ? "INTERNAL_ERROR" : "NOT_FOUND");
}

/* Writing */

/** command_write - write a change of a job, while its client waits: job_write() */
void command_write(struct conn *conn, struct job *job, enum op_kind kind,
		   const struct row *row, void (*done)(struct op *op))
{
	int64_t late_at = engine->patience ? alarm_now() + engine->patience : 0;

	conn_commit(conn, job_write(job, kind, row, conn, done), late_at);
}

/*
 * The store took too long. A reserve is answered as if there were no job, any other command with an
 * error, as its outcome is unknown. An operation on the client's own job goes on for the client;
 * the result of any other one is for nobody.
 */
static void do_late(struct conn *conn)
{
	struct op *op = conn->op;
	enum op_kind kind = op->kind;
	/* A kick is answered once the client that waits has the job. */
	bool kicked = kind == OP_TAKE && container_of(op, struct request, op)->serves;

	__atomic_store_n(&op->given_up, true, __ATOMIC_RELAXED);
	if (!op->job) {
		op->conn = &nobody;
		nobody.pending++;
		conn->pending--;
	}
	if (kicked)
		conn_reply(conn, "KICKED");
	else if (kind == OP_TAKE)
		conn_reply(conn, conn_deadline_soon(conn) ? "DEADLINE_SOON" : "TIMED_OUT");
	else if ((kind == OP_KICK || kind == OP_BACK) && conn->kicked)
		conn_printf(conn, "KICKED %u\r\n", conn->kicked);
	else
		conn_reply(conn, kind == OP_PUT ? "OUT_OF_MEMORY" : "INTERNAL_ERROR");
}

/** command_answer - an operation is over: reply to its client, unless that had a reply before */
void command_answer(struct op *op, const char *reply)
{
	if (!op_given_up(op))
		conn_reply(op->conn, reply);
	conn_op_done(op->conn);
}

/**
 * command_take_back - undo a change that could not be written
 *
 * Only if the client and the job are still there. Returns the reply.
 */
const char *command_take_back(struct op *op)
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
	if (state == READY)
		engine->not_written(job);
	else
		job_attach(job, state);
	return "INTERNAL_ERROR";
}

/* A command that is done again */
struct again {
	struct op op;
	struct command cmd;
};

static void do_again(struct op *op)
{
	struct again *again = container_of(op, struct again, op);
	bool dead = op->conn->state == DEAD;

	conn_op_done(op->conn);
	if (!dead)
		do_line(op->conn, &again->cmd);
}

/**
 * command_again - do a command once more, when all that is being written has been written
 *
 * Not with a shared store. A job that is written for another client, or so that it may leave
 * memory, is there, but nobody can say yet where.
 */
void command_again(struct conn *conn, const struct command *cmd)
{
	struct again *again = zalloc(sizeof(*again));

	again->op.kind = OP_NOTHING;
	again->op.conn = conn;
	again->op.done = do_again;
	again->cmd = *cmd;
	again->cmd.counted = false;
	conn_commit(conn, &again->op, 0);
	commit_submit(&again->op);
}

/** command_changed - reply once a job was changed, or could not be */
void command_changed(struct op *op, const char *reply)
{
	bool fine = job_written(op);

	if (fine) {
		op->job->reserver = NULL;
		job_attach(op->job, op->row.state);
	} else {
		reply = command_take_back(op);
	}
	command_answer(op, reply);
}

/* Put */

static void put_done(struct op *op)
{
	char reply[40] = "OUT_OF_MEMORY";
	struct job *job = op->job;
	uint32_t size = job->row.size;
	bool fine = job_written(op), keyed = job->key;

	if (fine && op->same && keyed && job->key->how != KEY_IGNORE && engine->replace) {
		engine->replace(op);
		return;
	}
	free(job->key);
	job->key = NULL;
	if (fine)
		snprintf(reply, sizeof(reply), "INSERTED %lld",
			 (long long)(op->same ? op->same : job->row.id));
	if (fine && !op->same)
		job_put(job->tube);
	/* The client that put the job has its reply before another one gets the job. */
	if (engine->patience || keyed)
		command_answer(op, reply);
	else
		conn_put_done(op->conn, size, reply);
	if (fine && !op->same)
		job_attach(job, op->row.state);
	else
		job_free(job);
}

/** command_put_again - the job that had a key may have gone, or be another one */
void command_put_again(struct op *op)
{
	struct row row = op->job->row;

	command_write(op->conn, op->job, OP_PUT, &row, put_done);
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
	job->row.tries = conn->tries;
	if (*cmd->key) {
		job->key = zalloc(sizeof(*job->key));
		strcpy(job->key->text, cmd->key);
		job->key->how = cmd->how;
		job->key->lasts = cmd->lasts;
	}
	conn->new_job = job;
	conn_want(conn, cmd->size);
}

static void do_tries(struct conn *conn, const struct command *cmd)
{
	conn->tries = cmd->id;
	conn_printf(conn, "TRIES %u\r\n", conn->tries);
}

/* Put a job whose body is complete. */
static void take_put(struct conn *conn)
{
	struct job *job = conn->new_job;
	struct row row;

	conn->new_job = NULL;
	if (memcmp(job->row.body + job->row.size, "\r\n", 2) || draining) {
		/* The error comes after the replies to the puts before it. */
		conn_skip(conn, 0, memcmp(job->row.body + job->row.size, "\r\n", 2) ?
			  "EXPECTED_CRLF" : "DRAINING");
		job_free(job);
		return;
	}
	job->row.created = alarm_now();
	job->row.state = job->row.delay ? DELAYED : READY;
	job->row.ord = job->row.delay ?
		job->row.created + job->row.delay * conn->use->settings->unit : job->row.pri;
	row = job->row;
	if (engine->patience || job->key) {
		command_write(conn, job, OP_PUT, &row, put_done);
		return;
	}
	conn_put(conn, row.size);
	job_write(job, OP_PUT, &row, conn, put_done);
}

/* The client's own jobs */

/*
 * The job may be one with an earlier command that is not settled yet, and whose reply was an
 * error.
 */
static void sorry(struct conn *conn, const struct command *cmd, enum found found)
{
	bool unsettled = conn->pending && cmd->id <= INT64_MAX && job_in_memory(cmd->id);

	command_sorry(conn, found == UNREADABLE || unsettled ? UNREADABLE : NOT_THERE);
}

static struct job *find_own(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND && job->row.state == RESERVED && job->reserver == &conn->reserver &&
	    !job->busy)
		return job;
	sorry(conn, cmd, found);
	job_unfind(job);
	return NULL;
}

/** command_deleted - a job is not in the store any more, or could not be deleted */
void command_deleted(struct op *op)
{
	struct job *job = op->job;
	const char *reply = "DELETED";

	if (job_written(op)) {
		job->tube->deletes++;
		job_forget(job);
	} else {
		reply = command_take_back(op);
	}
	command_answer(op, reply);
}

/** command_delete - delete a job that is in memory, or that the engine can read */
void command_delete(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND && job->busy && !engine->patience) {
		command_again(conn, cmd);
		return;
	}
	if (found != FOUND || job->busy ||
	    (job->row.state == RESERVED && job->reserver != &conn->reserver)) {
		sorry(conn, cmd, found);
		return;
	}
	job_detach(job);
	command_write(conn, job, OP_DELETE, &job->row, command_deleted);
}

static void release_done(struct op *op)
{
	command_changed(op, op->row.state == BURIED ? "BURIED" : "RELEASED");
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
	job_end_row(job, &row);
	job_detach(job);
	command_write(conn, job, OP_CHANGE, &row, release_done);
}

static void bury_done(struct op *op)
{
	command_changed(op, "BURIED");
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
	row.ord = job_next_burial();
	job_detach(job);
	command_write(conn, job, OP_CHANGE, &row, bury_done);
}

/** command_touched - reply once the store has a job's new time to run, or could not take it */
void command_touched(struct op *op)
{
	struct job *job = op->job;
	const char *reply = "TOUCHED";

	if (!job_written(op)) {
		reply = command_take_back(op);
	} else if (op->conn->state == DEAD) {
		job_end_try(job);
	} else {
		job->deadline = op->at + job->row.ttr * SECOND;
		job_attach(job, RESERVED);
	}
	command_answer(op, reply);
}

static void do_touch(struct conn *conn, const struct command *cmd)
{
	struct job *job = find_own(conn, cmd);

	if (!job)
		return;
	job_detach(job);
	engine->touch(conn, job);
}

/* Notes, and names of clients */

static void do_client(struct conn *conn, const struct command *cmd)
{
	conn_set_name(conn, cmd->tube);
	conn_reply(conn, "NAMED");
}

static void do_note(struct conn *conn, const struct command *cmd)
{
	if (cmd->size > NOTE_MOST) {
		conn_skip(conn, (uint64_t)cmd->size + 2, "NOTE_TOO_BIG");
		return;
	}
	conn->note = must(malloc((size_t)cmd->size + 2));
	conn->note_job = cmd->id;
	conn_want(conn, cmd->size);
}

/* A note is there. */
static void take_note(struct conn *conn)
{
	static const char *const replies[] = {
		[NOTED] = "NOTED", [NOT_KEPT] = "NOT_KEPT", [NO_ROOM] = "OUT_OF_MEMORY",
	};
	const struct command cmd = { .id = conn->note_job };
	char *note = conn->note;
	enum noted noted = NOT_KEPT;
	struct job *job;

	conn->note = NULL;
	if (memcmp(note + conn->size, "\r\n", 2)) {
		conn_reply(conn, "EXPECTED_CRLF");
	} else {
		job = find_own(conn, &cmd);
		if (job) {
			noted = trace_note(job, note, conn->size);
			conn_reply(conn, replies[noted]);
		}
	}
	if (noted != NOTED)
		free(note);
}

static void do_body(struct conn *conn)
{
	if (conn->note)
		take_note(conn);
	else
		take_put(conn);
}

/* Tubes */

static void do_use(struct conn *conn, const struct command *cmd)
{
	struct tube *tube = tube_get(cmd->tube);

	if (!tube) {
		command_sorry(conn, UNREADABLE);
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
			command_sorry(conn, UNREADABLE);
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

static void do_list_tube_used(struct conn *conn, const struct command *cmd)
{
	conn_printf(conn, "USING %s\r\n", conn->use->name);
}

static void do_list_tubes_watched(struct conn *conn, const struct command *cmd)
{
	struct evbuffer *text = must(evbuffer_new());

	evbuffer_add_printf(text, "---\n");
	for (size_t i = 0; i < conn->watch_count; i++)
		evbuffer_add_printf(text, "- %s\n", conn->watches[i]->tube->name);
	conn_text(conn, text);
}

static void do_quit(struct conn *conn, const struct command *cmd)
{
	conn->state = CLOSING;
}

static void do_auth(struct conn *conn, const struct command *cmd)
{
	conn_auth(conn, cmd->tube);
}

static const command_fn commands[CMD_KINDS] = {
	[CMD_PUT] = do_put,
	[CMD_PUT_UNIQUE] = do_put,
	[CMD_DELETE] = command_delete,
	[CMD_RELEASE] = do_release,
	[CMD_BURY] = do_bury,
	[CMD_TOUCH] = do_touch,
	[CMD_USE] = do_use,
	[CMD_WATCH] = do_watch,
	[CMD_IGNORE] = do_ignore,
	[CMD_LIST_TUBES_WATCHED] = do_list_tubes_watched,
	[CMD_LIST_TUBE_USED] = do_list_tube_used,
	[CMD_QUIT] = do_quit,
	[CMD_CLIENT] = do_client,
	[CMD_NOTE] = do_note,
	[CMD_TRIES] = do_tries,
	[CMD_AUTH] = do_auth,
};

/* Guests */

static bool is_own(struct conn *conn, uint64_t id)
{
	struct job *job;

	return conn->reserver.jobs && id <= INT64_MAX && job_in_memory(id) &&
		job_find(id, &job) == FOUND && job->row.state == RESERVED &&
		job->reserver == &conn->reserver;
}

static bool may(struct conn *conn, const struct command *cmd)
{
	const struct token *token = conn->guest->token;

	if (cmd->kind == CMD_AUTH || cmd->kind == CMD_QUIT)
		return true;
	if ((cmd->kind == CMD_RESERVE || cmd->kind == CMD_RESERVE_TIMEOUT) && !conn->watch_count)
		return false;
	return token && (access_may_do(token, cmd, conn->use->name) ||
			 ((cmd->kind == CMD_DELETE || cmd->kind == CMD_STATS_JOB) &&
			  is_own(conn, cmd->id)));
}

/* A worker whose time was over finds no job, as without tokens where another one has it. */
static void forbid(struct conn *conn, const struct command *cmd)
{
	bool body = (cmd->kind == CMD_PUT || cmd->kind == CMD_PUT_UNIQUE ||
		     cmd->kind == CMD_NOTE) && !cmd->trailing;

	if (body)
		conn_skip(conn, (uint64_t)cmd->size + 2, "FORBIDDEN");
	else
		conn_reply(conn, cmd->kind == CMD_DELETE && conn->guest->token ? "NOT_FOUND" :
			   "FORBIDDEN");
}

/* Do the command in a line. */
static void do_line(struct conn *conn, const struct command *cmd)
{
	if (cmd->counted)
		counts[cmd->kind]++;
	if (cmd->bad)
		conn_reply(conn, "BAD_FORMAT");
	else if (cmd->kind == CMD_UNKNOWN)
		conn_reply(conn, "UNKNOWN_COMMAND");
	else if (conn->guest && !may(conn, cmd))
		forbid(conn, cmd);
	else if (engine->commands[cmd->kind])
		engine->commands[cmd->kind](conn, cmd);
	else
		commands[cmd->kind](conn, cmd);
}
