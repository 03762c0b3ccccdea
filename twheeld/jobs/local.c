// SPDX-License-Identifier: GPL-2.0
/*
 * The engine of a store that is this server's alone: memory says which job is due and which comes
 * next, and the store has the jobs that do not fit into memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/util.h"
#include "jobs/command.h"
#include "jobs/engine.h"
#include "jobs/job_end.h"
#include "jobs/keyed.h"
#include "jobs/ready.h"
#include "jobs/stats.h"
#include "jobs/window.h"

static struct histogram lateness;

/* Jobs */

static enum found local_find(int64_t id, struct job **job)
{
	struct tube *tube;
	struct row row;
	bool found;

	if (!store_job(id, &row, &found))
		return UNREADABLE;
	if (!found)
		return NOT_THERE;
	tube = tube_by_id(row.tube);
	if (!tube) {
		free(row.body);
		return UNREADABLE;
	}
	*job = job_from_row(tube, &row);
	return FOUND;
}

static void detach(struct job *job)
{
	if (job->row.state == READY)
		ready_remove(job->tube, job);
	else if (job->row.state == DELAYED)
		window_remove(job);
	job->cold = false;
}

static void local_attach(struct job *job, enum state state)
{
	struct tube *tube = job->tube;

	job_count(job, state);
	switch (state) {
	case READY:
		tube->users++;
		if (!tube->waiting || tube_paused(tube))
			job_spare_body(job);
		ready_add(tube, job);
		engine->serve(tube);
		tube_put(tube);
		break;
	case DELAYED:
		job->deadline = job->row.ord;
		window_add(job);
		break;
	default:
		job_free(job);
		break;
	}
}

static void attach_ready(struct job *job)
{
	job_attach(job, READY);
}

static void local_expired(struct job *job)
{
	if (job->row.state != DELAYED) {
		job_end_expired(job);
		return;
	}
	job_detach(job);
	histogram_add(&lateness, alarm_now() - job->deadline);
	job_attach(job, READY);
}

static const struct histogram *how_late(void)
{
	return &lateness;
}

/* Have a client that waits, or asked for it, reserve a job that is ready */
static void local_give(struct conn *conn, struct job *job)
{
	conn_stop_waiting(conn);
	if (!job_need_body(job)) {
		conn_reply(conn, "INTERNAL_ERROR");
		return;
	}
	conn_job(conn, "RESERVED", job);
	job_drop_body(job);
	job_detach(job);
	tube_gave(job->tube);
	job_reserve(job, &conn->reserver);
}

/* Peek */

struct first {
	struct tube *tube;
	struct job *job;
};

static bool load_first(struct row *row, void *arg)
{
	struct first *first = arg;

	if (job_in_memory(row->id)) {
		free(row->body);
		return true;
	}
	first->job = job_from_row(first->tube, row);
	return false;
}

static enum found first_in_store(struct tube *tube, enum state state, struct cursor *cursor,
				 struct job **job)
{
	struct first first = { .tube = tube };
	bool end;

	if (!tube->count[state])
		return NOT_THERE;
	if (!store_in_order(tube->commit.id, state, cursor, &end, load_first, &first))
		return UNREADABLE;
	*job = first.job;
	return first.job ? FOUND : NOT_THERE;
}

/*
 * The delayed job that is due first. The cursor begins at CURSOR_BEGIN; called again with it, the
 * function gives the next job. After use: job_unfind()
 */
static enum found first_delayed(struct tube *tube, struct cursor *cursor, struct job **job)
{
	struct cursor end = window_end();

	*job = job_of_node(heap_first(&tube->delayed));
	if (*job)
		return FOUND;
	if (cursor->ord < end.ord)
		*cursor = end;
	return first_in_store(tube, DELAYED, cursor, job);
}

/* The job that was buried first, and by the cursor the next ones; after use: job_unfind() */
static enum found first_buried(struct tube *tube, struct cursor *cursor, struct job **job)
{
	*job = NULL;
	return first_in_store(tube, BURIED, cursor, job);
}

static void local_show(struct conn *conn, enum found found, struct job *job)
{
	if (found == FOUND && !job_need_body(job))
		found = UNREADABLE;
	if (found != FOUND)
		command_sorry(conn, found);
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

	local_show(conn, found, job);
}

static void do_peek_ready(struct conn *conn, const struct command *cmd)
{
	struct job *job = ready_first(conn->use);

	if (ready_unsure(conn->use)) {
		command_again(conn, cmd);
		return;
	}
	local_show(conn, job ? FOUND : NOT_THERE, job);
}

static void do_peek_delayed(struct conn *conn, const struct command *cmd)
{
	struct cursor begin = CURSOR_BEGIN;
	struct job *job;
	enum found found = first_delayed(conn->use, &begin, &job);

	local_show(conn, found, job);
}

static void do_peek_buried(struct conn *conn, const struct command *cmd)
{
	struct cursor begin = CURSOR_BEGIN;
	struct job *job;
	enum found found = first_buried(conn->use, &begin, &job);

	local_show(conn, found, job);
}

/* Reserve */

static struct job *first_ready(struct conn *conn)
{
	struct job *first = NULL;

	for (size_t i = 0; i < conn->watch_count; i++)
		tube_catch_up(conn->watches[i]->tube);
	for (size_t i = 0; i < conn->watch_count; i++) {
		struct tube *tube = conn->watches[i]->tube;
		struct job *job = tube_paused(tube) ? NULL : ready_first(tube);

		if (job && (!first || job_comes_before(job, first)) && tube_may_give(tube))
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

static bool any_unsure(struct conn *conn)
{
	for (size_t i = 0; i < conn->watch_count; i++)
		if (ready_unsure(conn->watches[i]->tube) && !tube_paused(conn->watches[i]->tube))
			return true;
	return false;
}

/* reserve, and reserve-with-timeout: without one, the timeout is below 0 */
static void do_reserve(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	bool unsure;

	conn_set_worker(conn);
	if (conn_deadline_soon(conn) && !any_ready(conn)) {
		conn_reply(conn, "DEADLINE_SOON");
		return;
	}
	job = first_ready(conn);
	unsure = any_unsure(conn);
	if (unsure && cmd->timeout == 0)
		command_again(conn, cmd);
	else if (job && !unsure)
		local_give(conn, job);
	else if (cmd->timeout == 0)
		conn_reply(conn, "TIMED_OUT");
	else
		conn_wait(conn, cmd->timeout < 0 ? INT64_MAX :
			  alarm_now() + cmd->timeout * SECOND);
}

static void reserve_job_done(struct op *op)
{
	struct job *job = op->job;
	bool fine = job_written(op);

	if (!fine) {
		command_take_back(op);
		conn_reply(op->conn, "INTERNAL_ERROR");
	} else if (op->conn->state == DEAD) {
		job_attach(job, READY);
	} else if (!tube_may_give(job->tube) || !job_need_body(job)) {
		conn_reply(op->conn, tube_may_give(job->tube) ? "INTERNAL_ERROR" : "NOT_FOUND");
		job_attach(job, READY);
	} else {
		tube_gave(job->tube);
		conn_job(op->conn, "RESERVED", job);
		job_drop_body(job);
		job_reserve(job, &op->conn->reserver);
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

	if (found == FOUND && job->busy) {
		command_again(conn, cmd);
		return;
	}
	if (found != FOUND || job->row.state == RESERVED) {
		command_sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
		return;
	}
	if (!tube_may_give(job->tube)) {
		command_sorry(conn, NOT_THERE);
		job_unfind(job);
		return;
	}
	if (!job_need_body(job)) {
		command_sorry(conn, UNREADABLE);
		job_unfind(job);
		return;
	}
	conn_set_worker(conn);
	if (job->row.state == READY) {
		local_give(conn, job);
		return;
	}
	row = job->row;
	row.state = READY;
	row.ord = row.pri;
	job_detach(job);
	command_write(conn, job, OP_CHANGE, &row, reserve_job_done);
}

/* Kick */

static void write_kick(struct conn *conn, struct job *job, void (*done)(struct op *op))
{
	struct row row = job->row;

	row.kicks++;
	row.state = READY;
	row.ord = row.pri;
	job_detach(job);
	command_write(conn, job, OP_CHANGE, &row, done);
}

static void kick_job_done(struct op *op)
{
	command_changed(op, "KICKED");
}

static void do_kick_job(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND && job->busy) {
		command_again(conn, cmd);
		return;
	}
	if (found == FOUND && (job->row.state == BURIED || job->row.state == DELAYED)) {
		write_kick(conn, job, kick_job_done);
		return;
	}
	command_sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
	job_unfind(job);
}

static void end_kick(struct conn *conn, bool unreadable)
{
	if ((conn->kick_failed || unreadable) && !conn->kicked)
		conn_reply(conn, "INTERNAL_ERROR");
	else
		conn_printf(conn, "KICKED %u\r\n", conn->kicked);
}

/* A job of a piece was written, or could not be. Gives whether the next piece is to come. */
static bool end_of_piece(struct op *op)
{
	struct conn *conn = op->conn;

	if (job_written(op)) {
		conn->kicked++;
		job_attach(op->job, op->row.state);
	} else {
		conn->kick_failed = true;
		command_take_back(op);
	}
	conn_op_done(conn);
	return !conn->pending && conn->state != DEAD;
}

static void kick_piece(struct conn *conn);

static void local_kicked(struct op *op)
{
	if (end_of_piece(op))
		kick_piece(op->conn);
}

/*
 * Kick some jobs, and once these are in the store some more, until there are as many as the client
 * wants, or no job is left.
 */
static void kick_piece(struct conn *conn)
{
	enum found found = FOUND;

	while (conn->kick_left && conn->pending < KICK_PIECE && !conn->kick_failed) {
		struct job *job;

		found = conn->kick_buried ?
			first_buried(conn->use, &conn->kick_from, &job) :
			first_delayed(conn->use, &conn->kick_from, &job);
		if (found != FOUND)
			break;
		conn->kick_left--;
		write_kick(conn, job, local_kicked);
	}
	if (!conn->pending)
		end_kick(conn, found == UNREADABLE);
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

/* Send back from the dead letters */

/* A job without a further try is a dead letter for good: all of its tries are before it again. */
static void write_back(struct conn *conn, struct job *job, struct tube *to, int64_t wait,
		       void (*done)(struct op *op))
{
	int64_t unit = to->settings->unit;
	struct row row = job->row;

	wait = wait < UINT32_MAX * unit ? wait : UINT32_MAX * unit;
	row.kicks++;
	row.reserves = 0;
	row.tube = to->commit.id;
	row.state = wait ? DELAYED : READY;
	row.ord = wait ? alarm_now() + wait : row.pri;
	row.delay = (wait + unit - 1) / unit;
	job_detach(job);
	command_write(conn, job, OP_CHANGE, &row, done);
}

/* The next dead letter of a tube, which no worker has, and the tube from which it came */
static enum found next_letter(struct tube *tube, int64_t *after, struct job **job,
			      struct tube **from)
{
	char name[TUBE_NAME_MAX + 1];

	while (store_letter(tube->commit.id, *after, after, name)) {
		enum found found = *after ? job_find(*after, job) : NOT_THERE;

		if (!*after || found == UNREADABLE)
			return found;
		if (found == NOT_THERE)
			continue;
		if (!(*job)->busy && (*job)->row.state != RESERVED && (*job)->tube == tube) {
			*from = tube_get(name);
			if (*from)
				return FOUND;
			job_unfind(*job);
			return UNREADABLE;
		}
		job_unfind(*job);
	}
	return UNREADABLE;
}

static void back_piece(struct conn *conn);

static void went_back(struct op *op)
{
	if (end_of_piece(op))
		back_piece(op->conn);
}

static void back_piece(struct conn *conn)
{
	uint32_t first = conn->kicked;
	enum found found = FOUND;
	struct tube *from = NULL;
	struct job *job;

	while (conn->kick_left && conn->pending < KICK_PIECE && !conn->kick_failed) {
		found = next_letter(conn->use, &conn->kick_from.id, &job, &from);
		if (found != FOUND)
			break;
		conn->kick_left--;
		write_back(conn, job, from, conn_back_wait(conn, first + conn->pending), went_back);
	}
	if (!conn->pending)
		end_kick(conn, found == UNREADABLE);
}

static void do_back(struct conn *conn, const struct command *cmd)
{
	conn->kick_left = cmd->id < UINT32_MAX ? cmd->id : UINT32_MAX;
	conn->kicked = 0;
	conn->kick_failed = false;
	conn->kick_from = (struct cursor){ 0 };
	conn->back_every = cmd->pri * MILLISECOND;
	back_piece(conn);
}

static void back_job_done(struct op *op)
{
	command_changed(op, "KICKED");
}

static void do_back_job(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);
	char name[TUBE_NAME_MAX + 1];
	struct tube *from = NULL;
	int64_t letter = 0;

	if (found == FOUND && job->busy) {
		command_again(conn, cmd);
		return;
	}
	if (found == FOUND && job->row.state != RESERVED &&
	    !store_letter(job->tube->commit.id, job->row.id - 1, &letter, name))
		found = UNREADABLE;
	if (letter && letter == job->row.id) {
		from = tube_get(name);
		found = from ? FOUND : UNREADABLE;
	}
	if (from) {
		write_back(conn, job, from, cmd->pri * MILLISECOND, back_job_done);
		return;
	}
	command_sorry(conn, found == UNREADABLE ? UNREADABLE : NOT_THERE);
	job_unfind(job);
}

/* Tubes */

static void do_pause_tube(struct conn *conn, const struct command *cmd)
{
	struct tube *tube = tube_find(cmd->tube);

	if (!tube) {
		conn_reply(conn, "NOT_FOUND");
		return;
	}
	/* Never 0, so that the end of the pause serves the clients that wait. */
	tube_pause(tube, cmd->delay ? cmd->delay * SECOND : 1);
	conn_reply(conn, "PAUSED");
}

static void do_list_tubes(struct conn *conn, const struct command *cmd)
{
	struct evbuffer *text = must(evbuffer_new());
	size_t count;
	struct tube **list = tube_list(&count);

	evbuffer_add_printf(text, "---\n");
	for (size_t i = 0; i < count; i++)
		evbuffer_add_printf(text, "- %s\n", list[i]->name);
	conn_text(conn, text);
}

/* Statistics */

static void do_stats(struct conn *conn, const struct command *cmd)
{
	int64_t count[STATES] = { 0 }, urgent = 0;
	size_t tubes;
	struct tube **list = tube_list(&tubes);

	for (size_t i = 0; i < tubes; i++) {
		for (int state = 0; state < STATES; state++)
			count[state] += list[i]->count[state];
		urgent += list[i]->urgent;
	}
	conn_text(conn, stats_server(count, urgent, tubes));
}

static void do_stats_job(struct conn *conn, const struct command *cmd)
{
	struct job *job;
	enum found found = job_find(cmd->id, &job);

	if (found == FOUND)
		conn_text(conn, stats_job(job));
	else
		command_sorry(conn, found);
	job_unfind(job);
}

static void do_stats_tube(struct conn *conn, const struct command *cmd)
{
	struct tube *tube = tube_find(cmd->tube);

	if (tube)
		conn_text(conn, stats_tube(tube, &(struct tube_counts){
			.count = { tube->count[READY], tube->count[DELAYED], tube->count[BURIED],
				   tube->count[RESERVED] },
			.urgent = tube->urgent, .pause = tube->pause, .pauses = tube->pauses,
			.pause_left = tube->pause ? tube->unpause_at - alarm_now() : 0,
		}));
	else
		conn_reply(conn, "NOT_FOUND");
}

/* Touch: the store has no times to run. */
static void local_touch(struct conn *conn, struct job *job)
{
	job->deadline = alarm_now() + job->row.ttr * SECOND;
	job_attach(job, RESERVED);
	conn_reply(conn, "TOUCHED");
}

/* Tubes that begin and end */

static void tube_begins(struct tube *tube)
{
	tube->ready.less = job_before;
	tube->delayed.less = job_due_before;
}

static void forgotten(struct op *op)
{
}

/*
 * Drop the row of a tube without jobs, unless the tube has jobs again by then. A tube that comes
 * later makes a new row.
 */
static void forget_tube(int64_t id)
{
	struct op *op = zalloc(sizeof(*op));

	op->kind = OP_FORGET_TUBE;
	op->row.tube = id;
	op->done = forgotten;
	commit_submit(op);
}

static void tube_ends(struct tube *tube)
{
	if (tube->stored)
		forget_tube(tube->commit.id);
	heap_free(&tube->ready);
	heap_free(&tube->delayed);
}

/* Give jobs to those that wait */
static void local_serve(struct tube *tube)
{
	struct job *job;

	tube->users++;
	while (tube->waiting && !tube_paused(tube)) {
		job = ready_first(tube);
		if (!job || !tube_may_give(tube))
			break;
		local_give(tube->waiting->conn, job);
	}
	tube_put(tube);
}

/* Start, and each second */

static int64_t stored_skew;

static void skew_written(struct op *op)
{
	if (!op->failed)
		stored_skew = op->row.created;
}

/* Has somebody set the wall clock? */
static void check_clock(void)
{
	int64_t skew = alarm_skew();
	struct op *op;

	if (llabs(skew - stored_skew) <= 5 * MILLISECOND)
		return;
	op = zalloc(sizeof(*op));
	op->kind = OP_SKEW;
	op->row.created = skew;
	op->done = skew_written;
	commit_submit(op);
}

static void local_tick(void)
{
	struct tube **list;
	size_t count;

	check_clock();
	/* The store may be readable again. */
	for (size_t i = 0; list = tube_list(&count), i < count; i++)
		if (list[i]->waiting && list[i]->count[READY])
			local_serve(list[i]);
}

static int64_t last_burial(void)
{
	size_t count;
	struct tube **list = tube_list(&count);
	int64_t last = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t one = store_last_burial(list[i]->commit.id);

		last = one > last ? one : last;
	}
	return last;
}

static void local_load(struct event_base *base)
{
	struct alarm_past past = { store->meta("boot", 0), store->meta("offset", 0) };

	stored_skew = store->meta("skew", 0);
	alarm_start(base, stored_skew, &past);
	store_keep_past(past.boot, past.offset);
	job_ids_begin(store->meta("next_id", 1));
	tube_ids_begin(store_next_tube_id());
	store_tubes(ready_load);
	job_end_start(last_burial());
}

static void local_start(struct event_base *base)
{
	window_start();
}

const struct engine engine_local = {
	.store = "folder",
	.disk = "the disk of the store",
	.load = local_load,
	.start = local_start,
	.tick = local_tick,
	.lateness = how_late,
	.commands = {
		[CMD_PEEK] = do_peek,
		[CMD_PEEK_READY] = do_peek_ready,
		[CMD_PEEK_DELAYED] = do_peek_delayed,
		[CMD_PEEK_BURIED] = do_peek_buried,
		[CMD_RESERVE] = do_reserve,
		[CMD_RESERVE_TIMEOUT] = do_reserve,
		[CMD_RESERVE_JOB] = do_reserve_job,
		[CMD_KICK] = do_kick,
		[CMD_KICK_JOB] = do_kick_job,
		[CMD_BACK] = do_back,
		[CMD_BACK_JOB] = do_back_job,
		[CMD_PAUSE_TUBE] = do_pause_tube,
		[CMD_DELETE_KEY] = keyed_delete,
		[CMD_STATS] = do_stats,
		[CMD_STATS_JOB] = do_stats_job,
		[CMD_STATS_TUBE] = do_stats_tube,
		[CMD_LIST_TUBES] = do_list_tubes,
	},
	.touch = local_touch,
	.replace = keyed_replace,
	.tube_id = store_tube_id,
	.tube_begins = tube_begins,
	.tube_ends = tube_ends,
	.serve = local_serve,
	.find = local_find,
	.attach = local_attach,
	.detach = detach,
	.expired = local_expired,
	.submit = commit_submit,
	.hand_back = attach_ready,
	.not_written = attach_ready,
};
