// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs with keys, of a store that is this server's alone: a put replaces the one that has its key,
 * or that one is deleted.
 *
 * The store knows which job has a key, as memory may not have it. Memory knows whether a worker has
 * that job. So the store is asked first; and once more if the job is just being written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "jobs/engine.h"
#include "jobs/keyed.h"

static void forget_key(struct job *job)
{
	free(job->key);
	job->key = NULL;
}

/* Replace */

/* The client has its reply before another one gets the job. */
static void replaced(struct op *op)
{
	struct job *job = op->job;
	char reply[40];
	bool fine;

	free(op->row.body);
	op->row.body = NULL;
	fine = job_written(op);
	forget_key(job);
	if (!fine)
		command_take_back(op);
	snprintf(reply, sizeof(reply), "INSERTED %lld", (long long)op->row.id);
	command_answer(op, fine ? reply : "OUT_OF_MEMORY");
	if (fine)
		job_attach(job, op->row.state);
}

/*
 * The new job has the place of the other one: its id, and, unless its delay begins anew, the time
 * at which that one is due.
 */
static void replace(struct op *op, struct job *other)
{
	struct job *job = op->job;
	struct row row = job->row;

	row.id = other->row.id;
	row.created = other->row.created;
	if (job->key->how == KEY_REPLACE && other->row.state != BURIED) {
		row.state = other->row.state;
		row.ord = row.state == READY ? row.pri : other->row.ord;
		row.delay = other->row.delay;
	}
	row.body = job_take_body(job);
	job_detach(other);
	job_drop_body(other);
	other->key = job->key;
	job->key = NULL;
	job_free(job);
	command_write(op->conn, other, OP_CHANGE, &row, replaced);
	conn_op_done(op->conn);
}

/** keyed_replace - a job was not put, as another one has its key: have it in place of that */
void keyed_replace(struct op *op)
{
	struct job *job = op->job, *other = NULL;
	enum found found = UNREADABLE;

	if (op->conn->state != DEAD)
		found = job_find(op->same, &other);
	if (found == UNREADABLE) {
		job_free(job);
		command_answer(op, "OUT_OF_MEMORY");
		return;
	}
	if (found == FOUND && !other->busy && other->row.state != RESERVED) {
		replace(op, other);
		return;
	}
	/* What a worker has stays as it is. */
	job->key->instead = found == FOUND && !other->busy ? other->row.id : 0;
	command_put_again(op);
}

/* Delete */

static void deleted(struct op *op)
{
	forget_key(op->job);
	command_deleted(op);
}

static void find_key(struct conn *conn, struct job_key *key);

static void found_key(struct op *op)
{
	struct job_key *key = (struct job_key *)op->key;
	struct conn *conn = op->conn;
	enum found found = op->failed || conn->state == DEAD ? UNREADABLE : NOT_THERE;
	struct job *job = NULL;

	if (op->same && found == NOT_THERE)
		found = job_find(op->same, &job);
	if (found == FOUND && !job->busy && job->row.state != RESERVED) {
		job->key = key;
		job_detach(job);
		command_write(conn, job, OP_DELETE, &job->row, deleted);
		conn_op_done(conn);
		return;
	}
	if (op->same && (found == NOT_THERE || (found == FOUND && job->busy))) {
		find_key(conn, key);
		conn_op_done(conn);
		return;
	}
	free(key);
	command_answer(op, found == UNREADABLE ? "INTERNAL_ERROR" :
		       op->same || op->gone ? "NOT_FOUND" : "DELETED");
}

static void find_key(struct conn *conn, struct job_key *key)
{
	struct op *op = zalloc(sizeof(*op));

	op->kind = OP_FIND_KEY;
	op->tube = &conn->use->commit;
	op->to = op->tube;
	op->row.tube = op->tube->id;
	op->at = alarm_now();
	op->key = key;
	op->conn = conn;
	op->done = found_key;
	conn_commit(conn, op, 0);
	commit_submit(op);
}

/** keyed_delete - delete the job that has a key in the client's tube, unless a worker has it */
void keyed_delete(struct conn *conn, const struct command *cmd)
{
	struct job_key *key = zalloc(sizeof(*key));

	strcpy(key->text, cmd->key);
	find_key(conn, key);
}
