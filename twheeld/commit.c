// SPDX-License-Identifier: GPL-2.0
/*
 * The committer: a thread that writes what the event loop wants to have written. What came
 * while a transaction ran is the next one. When that is in the store, the loop is told, and
 * only then does a client see its reply.
 */
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "alarm.h"
#include "commit.h"
#include "util.h"

/* The longest transaction, so that no reply waits for long */
#define MOST 1000

struct queue {
	struct op *first;
	struct op **end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct queue todo = { NULL, &todo.first }, finished = { NULL, &finished.first };
static bool stopping;
static uint64_t written;
static pthread_t thread;
static int done_fd;

/* The committer's own */
static sqlite3 *db;
static sqlite3_stmt *begin, *commit, *rollback, *put, *change, *delete, *count_tube, *set_meta;
static struct tube_commit *touched;
static int64_t next_id, sync_every;

static void push(struct queue *queue, struct op *op)
{
	op->next = NULL;
	*queue->end = op;
	queue->end = &op->next;
}

static struct op *take_all(struct queue *queue)
{
	struct op *first = queue->first;

	queue->first = NULL;
	queue->end = &queue->first;
	return first;
}

static struct op *take_some(struct queue *queue, int most)
{
	struct op *first = queue->first, *last = first;

	while (last && last->next && --most > 0)
		last = last->next;
	if (!last || !last->next)
		return take_all(queue);
	queue->first = last->next;
	last->next = NULL;
	return first;
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK)
		die("the store: %s", sqlite3_errmsg(db));
	return stmt;
}

static bool step(sqlite3_stmt *stmt)
{
	int ret = sqlite3_step(stmt);

	if (ret != SQLITE_DONE)
		complain("the store can't be written: %s", sqlite3_errmsg(db));
	sqlite3_reset(stmt);
	return ret == SQLITE_DONE;
}

static bool set(const char *name, int64_t value)
{
	sqlite3_bind_text(set_meta, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(set_meta, 2, value);
	return step(set_meta);
}

static void count(struct tube_commit *tube, enum state state, bool urgent, int by)
{
	if (!tube->touched) {
		tube->touched = true;
		tube->next = touched;
		touched = tube;
	}
	tube->count[state] += by;
	if (state == READY && urgent)
		tube->urgent += by;
}

static bool write_counts(bool in_store)
{
	bool fine = true;

	while (touched) {
		struct tube_commit *tube = touched;

		touched = tube->next;
		sqlite3_bind_int64(count_tube, 1, tube->id);
		sqlite3_bind_text(count_tube, 2, tube->name, -1, SQLITE_STATIC);
		for (int i = 0; i < STORED_STATES; i++)
			sqlite3_bind_int64(count_tube, 3 + i, tube->count[i]);
		sqlite3_bind_int64(count_tube, 6, tube->urgent);
		fine = fine && (!in_store || step(count_tube));
		*tube = (struct tube_commit){ .id = tube->id, .name = tube->name };
	}
	return fine;
}

static void bind_change(sqlite3_stmt *stmt, const struct row *row)
{
	int64_t values[] = {
		row->id, row->tube, row->state, row->ord, row->pri, row->delay, row->ttr,
		row->created, row->reserves, row->timeouts, row->releases, row->buries, row->kicks,
	};

	for (int i = 0; i < 13; i++)
		sqlite3_bind_int64(stmt, i + 1, values[i]);
}

static bool write_put(struct op *op)
{
	bool fine;

	bind_change(put, &op->row);
	sqlite3_bind_blob(put, 14, op->row.body, op->row.size, SQLITE_STATIC);
	fine = step(put);
	sqlite3_bind_null(put, 14);
	count(op->tube, op->row.state, op->row.pri < 1024, 1);
	if (op->row.id >= next_id)
		next_id = op->row.id + 1;
	return fine;
}

static bool write_op(struct op *op)
{
	switch (op->kind) {
	case OP_PUT:
		return write_put(op);
	case OP_CHANGE:
		bind_change(change, &op->row);
		count(op->tube, op->from, op->from_urgent, -1);
		count(op->tube, op->row.state, op->row.pri < 1024, 1);
		return step(change);
	case OP_DELETE:
		sqlite3_bind_int64(delete, 1, op->row.id);
		count(op->tube, op->from, op->from_urgent, -1);
		return step(delete);
	case OP_SKEW:
		return set("skew", op->row.created);
	}
	return false;
}

/* All that has not failed, or, with @puts false, all that but those that need room */
static bool transaction(struct op *ops, bool puts)
{
	int64_t first_id = next_id;
	bool fine = step(begin);

	for (struct op *op = ops; fine && op; op = op->next)
		if (puts || op->kind != OP_PUT)
			fine = write_op(op);
	fine = write_counts(fine) && fine;
	if (fine && next_id != first_id)
		fine = set("next_id", next_id);
	fine = fine && step(commit);
	if (!fine && !sqlite3_get_autocommit(db))
		step(rollback);
	if (!fine)
		next_id = first_id;
	return fine;
}

/*
 * When the disk is full, puts fail. What only changes or deletes finds room in what the
 * write-ahead log holds, once that was copied to the database.
 */
static void write_ops(struct op *ops)
{
	bool fine = transaction(ops, true), others;

	if (fine)
		return;
	sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	others = transaction(ops, false);
	for (struct op *op = ops; op; op = op->next)
		op->failed = !others || op->kind == OP_PUT;
}

/* With -f MS: what was committed without being synced */
static void sync_log(void)
{
	sqlite3_file *file;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK &&
	    file->pMethods && file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		complain("the store can't be synced");
}

static void finish(struct op *ops)
{
	uint64_t one = 1;

	pthread_mutex_lock(&lock);
	while (ops) {
		struct op *op = ops;

		ops = op->next;
		push(&finished, op);
		written++;
	}
	pthread_mutex_unlock(&lock);
	if (write(done_fd, &one, sizeof(one)) != sizeof(one))
		die("an eventfd can't be written");
}

/* Waits for something to do. Gives false when it is time to sync, or to end. */
static bool wait_for_op(const struct timespec *until)
{
	while (!todo.first && !stopping) {
		if (!until)
			pthread_cond_wait(&wake, &lock);
		else if (pthread_cond_timedwait(&wake, &lock, until))
			return false;
	}
	return todo.first;
}

static void *committer(void *unused)
{
	struct timespec sync_at;
	bool synced = true;

	(void)unused;
	for (;;) {
		struct op *ops;
		bool stop;

		pthread_mutex_lock(&lock);
		wait_for_op(synced ? NULL : &sync_at);
		ops = take_some(&todo, MOST);
		stop = stopping && !ops;
		pthread_mutex_unlock(&lock);
		if (stop)
			break;
		if (ops) {
			write_ops(ops);
			finish(ops);
		}
		if (sync_every && synced && ops) {
			clock_gettime(CLOCK_REALTIME, &sync_at);
			sync_at.tv_nsec += sync_every % SECOND;
			sync_at.tv_sec += sync_every / SECOND + sync_at.tv_nsec / SECOND;
			sync_at.tv_nsec %= SECOND;
			synced = false;
		}
		if (!synced) {
			struct timespec now;

			clock_gettime(CLOCK_REALTIME, &now);
			if (now.tv_sec > sync_at.tv_sec || (now.tv_sec == sync_at.tv_sec &&
							    now.tv_nsec >= sync_at.tv_nsec)) {
				sync_log();
				synced = true;
			}
		}
	}
	return NULL;
}

static void report(evutil_socket_t fd, short what, void *arg)
{
	struct op *ops;
	uint64_t count;

	(void)what;
	(void)arg;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&lock);
	ops = take_all(&finished);
	pthread_mutex_unlock(&lock);
	while (ops) {
		struct op *op = ops;

		ops = op->next;
		op->done(op);
		free(op);
	}
}

static void prepare_all(void)
{
	begin = prepare("BEGIN IMMEDIATE");
	commit = prepare("COMMIT");
	rollback = prepare("ROLLBACK");
	put = prepare("INSERT INTO jobs VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
		      " ?13, ifnull(?14, x''))");
	change = prepare("UPDATE jobs SET tube = ?2, state = ?3, ord = ?4, pri = ?5, delay = ?6,"
			 " ttr = ?7, created = ?8, reserves = ?9, timeouts = ?10, releases = ?11,"
			 " buries = ?12, kicks = ?13 WHERE id = ?1");
	delete = prepare("DELETE FROM jobs WHERE id = ?1");
	count_tube = prepare("INSERT INTO tubes VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(id)"
			     " DO UPDATE SET ready = ready + excluded.ready,"
			     " delayed = delayed + excluded.delayed,"
			     " buried = buried + excluded.buried, urgent = urgent + excluded.urgent");
	set_meta = prepare("INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
}

/**
 * commit_start - start the thread
 * @base: the loop that is told what was committed
 * @sync_ns: with SYNC_SOMETIMES how often the disk is synced, else 0
 */
void commit_start(struct event_base *base, int64_t sync_ns)
{
	sigset_t all, old;

	sync_every = sync_ns;
	next_id = store_meta("next_id", 1);
	db = store_connect();
	prepare_all();
	done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (done_fd < 0)
		die("no eventfd can be had");
	event_add(must(event_new(base, done_fd, EV_READ | EV_PERSIST, report, NULL)), NULL);
	/* Signals are for the event loop */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, committer, NULL))
		die("no thread can be had");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/**
 * commit_submit - have an operation written
 * @op: malloc()ed; op->done() is called by the loop, and then it is freed
 */
void commit_submit(struct op *op)
{
	pthread_mutex_lock(&lock);
	push(&todo, op);
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/** commit_stop - write what waits, and end the thread and the connection */
void commit_stop(void)
{
	sqlite3_stmt *stmt;

	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	while ((stmt = sqlite3_next_stmt(db, NULL)))
		sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/** commit_count - operations written since the start */
uint64_t commit_count(void)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = written;
	pthread_mutex_unlock(&lock);
	return count;
}
