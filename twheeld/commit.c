// SPDX-License-Identifier: GPL-2.0
/*
 * The committer: a thread that writes what the event loop wants to have written. What came
 * while a transaction ran is the next one. When that is in the store, the loop is told, and
 * only then does a client see its reply.
 */
#include <event2/event.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "alarm.h"
#include "commit.h"
#include "log.h"
#include "runs.h"
#include "util.h"

/* The longest transaction, so that no reply waits for long */
#define MOST 1000
/* So many ids are taken at a time: a page less in most transactions */
#define ID_BLOCK 1000
/* Bytes of the disk that new jobs leave free, unless the disk is small */
#define ROOM (32 << 20)
/* Bytes of a firing that are no matter there, as those of a put */
#define SMALL (64 << 10)

struct queue {
	struct op *first;
	struct op **end;
	size_t length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static struct queue todo = { NULL, &todo.first, 0 }, finished = { NULL, &finished.first, 0 };
static size_t wanted;		/* operations for which the committer is woken */
static bool holding;		/* more operations come at once */
static bool stopping;
static uint64_t written;
static int64_t busy_since;	/* of what is being written; 0: nothing is */
static struct histogram times;
static pthread_t thread;
static int done_fd;

/* The committer's own */
static sqlite3 *db;
static sqlite3_stmt *begin, *commit, *rollback, *put, *change, *delete, *count_tube, *set_meta,
	*forget_tube, *count_free, *get_same;
static struct tube_commit *touched;
static int64_t next_id, sync_every;

static void push(struct queue *queue, struct op *op)
{
	op->next = NULL;
	*queue->end = op;
	queue->end = &op->next;
	queue->length++;
}

static struct op *take_all(struct queue *queue)
{
	struct op *first = queue->first;

	queue->first = NULL;
	queue->end = &queue->first;
	queue->length = 0;
	return first;
}

static struct op *take_some(struct queue *queue, size_t most)
{
	struct op *first = queue->first, *last = first;

	if (queue->length <= most)
		return take_all(queue);
	for (size_t i = 1; i < most; i++)
		last = last->next;
	queue->first = last->next;
	queue->length -= most;
	last->next = NULL;
	return first;
}

/** commit_prepare - a statement of the connection that writes, for good */
sqlite3_stmt *commit_prepare(const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK)
		die("the store: %s", sqlite3_errmsg(db));
	return stmt;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* At most one message a second, as each client may try again at once */
#define say(...) ({							\
	static int64_t said;						\
									\
	if (!said || now_ns() - said >= SECOND) {			\
		said = now_ns();					\
		complain(__VA_ARGS__);					\
	} })

/** commit_step - do what a statement says; gives false, having complained, if it can't be */
bool commit_step(sqlite3_stmt *stmt)
{
	int ret = sqlite3_step(stmt);

	if (ret != SQLITE_DONE)
		say("the store can't be written: %s", sqlite3_errmsg(db));
	sqlite3_reset(stmt);
	return ret == SQLITE_DONE;
}

/** commit_changes - rows that the last statement has changed */
int commit_changes(void)
{
	return sqlite3_changes(db);
}

static bool set(const char *name, int64_t value)
{
	sqlite3_bind_text(set_meta, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(set_meta, 2, value);
	return commit_step(set_meta);
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
		fine = fine && (!in_store || commit_step(count_tube));
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

/* So much of a cryptographic hash that nobody can make many bodies have the same */
static int64_t digest(const struct row *row)
{
	struct sha256_ctx ctx;
	int64_t value;

	sha256_init(&ctx);
	sha256_update(&ctx, row->size, (const uint8_t *)row->body);
	sha256_digest(&ctx, sizeof(value), (uint8_t *)&value);
	return value;
}

/*
 * Has the tube a job with that body, which was put when it was so configured, too? What
 * was put or deleted before, in the same transaction or one before it, is done already.
 */
static bool find_same(struct op *op)
{
	int64_t hash;
	int ret;

	op->same = 0;
	if (!op->unique)
		return true;
	hash = digest(&op->row);
	sqlite3_bind_int64(put, 15, hash);
	sqlite3_bind_int64(get_same, 1, op->row.tube);
	sqlite3_bind_int64(get_same, 2, hash);
	sqlite3_bind_blob(get_same, 3, op->row.body, op->row.size, SQLITE_STATIC);
	ret = sqlite3_step(get_same);
	if (ret == SQLITE_ROW)
		op->same = sqlite3_column_int64(get_same, 0);
	else if (ret != SQLITE_DONE)
		say("the store can't be read: %s", sqlite3_errmsg(db));
	sqlite3_reset(get_same);
	sqlite3_bind_null(get_same, 3);
	return ret == SQLITE_ROW || ret == SQLITE_DONE;
}

/** commit_put - write a new job */
bool commit_put(struct op *op)
{
	bool fine;

	sqlite3_bind_null(put, 15);
	if (!find_same(op) || op->same)
		return op->same;
	bind_change(put, &op->row);
	sqlite3_bind_blob(put, 14, op->row.body, op->row.size, SQLITE_STATIC);
	fine = commit_step(put);
	sqlite3_bind_null(put, 14);
	count(op->to, op->row.state, op->row.pri < 1024, 1);
	if (op->row.id >= next_id)
		next_id = op->row.id + ID_BLOCK;
	return fine;
}

static bool prune(struct op *op)
{
	int64_t last;
	size_t count;

	op->row.size = 0;
	if (!runs_prune(op->row.created, &count, &last))
		return false;
	op->row.size = count;
	if (last > op->row.ord)
		op->row.ord = last;
	return !count || set("forgotten", op->row.ord);
}

static bool write_op(struct op *op)
{
	switch (op->kind) {
	case OP_PUT:
		return commit_put(op);
	case OP_CHANGE:
		bind_change(change, &op->row);
		count(op->tube, op->from, op->from_urgent, -1);
		count(op->to, op->row.state, op->row.pri < 1024, 1);
		return commit_step(change) && runs_ended(op);
	case OP_DELETE:
		sqlite3_bind_int64(delete, 1, op->row.id);
		count(op->tube, op->from, op->from_urgent, -1);
		return commit_step(delete) && runs_ended(op);
	case OP_SKEW:
		return set("skew", op->row.created);
	case OP_FORGET_TUBE:
		sqlite3_bind_int64(forget_tube, 1, op->row.tube);
		return commit_step(forget_tube);
	case OP_DEFINE:
		return runs_define(op->schedule);
	case OP_PAUSE:
		return runs_pause(op->schedule);
	case OP_FIRE:
		return runs_fire(op->firing);
	case OP_PRUNE:
		return prune(op);
	}
	return false;
}

static bool needs_room(const struct op *op)
{
	return op->kind == OP_PUT || op->kind == OP_FIRE;
}

/* All that has not failed, or, with @puts false, all that but those that need room */
static bool transaction(struct op *ops, bool puts)
{
	int64_t first_id = next_id;
	bool fine = commit_step(begin);

	for (struct op *op = ops; fine && op; op = op->next)
		if (!needs_room(op) || (puts && !op->failed))
			fine = write_op(op);
	fine = write_counts(fine) && fine;
	if (fine && next_id != first_id)
		fine = set("next_id", next_id);
	fine = fine && commit_step(commit);
	if (!fine && !sqlite3_get_autocommit(db))
		commit_step(rollback);
	if (!fine)
		next_id = first_id;
	return fine;
}

/* Bytes of the database that deleted jobs have left */
static int64_t unused(void)
{
	int64_t pages = 0;

	if (sqlite3_step(count_free) == SQLITE_ROW)
		pages = sqlite3_column_int64(count_free, 0);
	sqlite3_reset(count_free);
	return pages * 4096;
}

/*
 * How many bytes are there for new jobs, or -1: there is no room for any. They leave some for
 * what deletes and changes, as each write goes to the log first, and then to the database.
 * Once the log is empty, what deleted jobs have left there counts, too.
 */
static int64_t room(int64_t need)
{
	int64_t left, all, want;

	if (!store_room(&left, &all))
		return INT64_MAX;
	want = all / 4 < ROOM ? all / 4 : ROOM;
	if (left >= want + need)
		return left - want;
	log_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE);
	if (!store_room(&left, &all))
		return INT64_MAX;
	if (left >= want)
		return left - want;
	if (left >= want / 4 && left + unused() >= want)
		return 0;
	say("the disk is nearly full: no new jobs are taken");
	return -1;
}

/* A firing is written into the log, and into the database after that. */
static int64_t size_of(const struct op *op)
{
	return op->kind == OP_FIRE && op->firing->weight > SMALL ? 2 * op->firing->weight : 0;
}

/* Firings for which there is no room fail. Gives whether there is room for other jobs. */
static bool find_room(struct op *ops)
{
	int64_t need = 0, left;

	for (struct op *op = ops; op; op = op->next)
		need += size_of(op);
	left = room(need);
	for (struct op *op = ops; op; op = op->next) {
		op->failed = size_of(op) > 0 && size_of(op) > left;
		if (op->failed)
			say("the disk has no room for all jobs of a schedule");
		else
			left -= size_of(op);
	}
	return left >= 0;
}

static bool any_put(const struct op *op)
{
	while (op && !needs_room(op))
		op = op->next;
	return op;
}

/* When the disk is full, puts fail, and all else is tried once more without them. */
static void write_ops(struct op *ops)
{
	bool puts = !any_put(ops) || find_room(ops);
	bool fine = transaction(ops, puts);

	if (!fine) {
		puts = false;
		log_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE);
		fine = transaction(ops, puts);
	}
	for (struct op *op = ops; op; op = op->next)
		op->failed = !fine || (needs_room(op) && (op->failed || !puts));
}

static void finish(struct op *ops, int64_t took)
{
	uint64_t one = 1;

	pthread_mutex_lock(&lock);
	while (ops) {
		struct op *op = ops;

		ops = op->next;
		push(&finished, op);
		written++;
	}
	busy_since = 0;
	histogram_add(&times, took);
	pthread_mutex_unlock(&lock);
	if (write(done_fd, &one, sizeof(one)) != sizeof(one))
		die("an eventfd can't be written");
}

/* Waits until @count operations are there, or until a time; 0 is never. */
static void wait_for(size_t count, int64_t until)
{
	struct timespec ts = { until / SECOND, until % SECOND };

	wanted = count;
	while (todo.length < count && !stopping) {
		if (!until)
			pthread_cond_wait(&wake, &lock);
		else if (pthread_cond_timedwait(&wake, &lock, &ts))
			break;
	}
}

/*
 * The clients whose operations were just written send their next ones now. Without a short
 * wait these would miss the next transaction, and each would hold half of the clients.
 */
static void gather(size_t expected, int64_t took)
{
	int64_t most = took / 4 < MILLISECOND ? took / 4 : MILLISECOND;

	if (todo.length && todo.length < expected)
		wait_for(expected, now_ns() + most);
}

static struct op *next_ops(size_t last, int64_t took, int64_t sync_at)
{
	struct op *ops;

	pthread_mutex_lock(&lock);
	last += todo.length;
	wait_for(1, sync_at);
	gather(last < MOST ? last : MOST, took);
	ops = take_some(&todo, MOST);
	busy_since = ops ? now_ns() : 0;
	pthread_mutex_unlock(&lock);
	return ops;
}

static size_t count_ops(const struct op *op)
{
	size_t count = 0;

	for (; op; op = op->next)
		count++;
	return count;
}

static bool to_stop(void)
{
	bool stop;

	pthread_mutex_lock(&lock);
	stop = stopping && !todo.first;
	pthread_mutex_unlock(&lock);
	return stop;
}

static void *committer(void *unused)
{
	int64_t took = 0, sync_at = 0;
	size_t last = 0;

	(void)unused;
	while (!to_stop()) {
		struct op *ops = next_ops(last, took, sync_at);
		int64_t begin_at = now_ns();

		last = count_ops(ops);
		if (ops) {
			write_ops(ops);
			took = now_ns() - begin_at;
			finish(ops, took);
			if (sync_every && !sync_at)
				sync_at = begin_at + sync_every;
		}
		if (sync_at && now_ns() >= sync_at)
			sync_at = log_sync(db) ? 0 : now_ns() + sync_every;
	}
	if (sync_at)
		log_sync(db);
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
	begin = commit_prepare("BEGIN IMMEDIATE");
	commit = commit_prepare("COMMIT");
	rollback = commit_prepare("ROLLBACK");
	put = commit_prepare("INSERT INTO jobs VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
			     " ?11, ?12, ?13, ifnull(?14, x''), ?15)");
	change = commit_prepare("UPDATE jobs SET tube = ?2, state = ?3, ord = ?4, pri = ?5,"
				" delay = ?6, ttr = ?7, created = ?8, reserves = ?9,"
				" timeouts = ?10, releases = ?11, buries = ?12, kicks = ?13"
				" WHERE id = ?1");
	delete = commit_prepare("DELETE FROM jobs WHERE id = ?1");
	count_tube = commit_prepare("INSERT INTO tubes VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
				    " ON CONFLICT(id) DO UPDATE SET ready = ready + excluded.ready,"
				    " delayed = delayed + excluded.delayed,"
				    " buried = buried + excluded.buried,"
				    " urgent = urgent + excluded.urgent");
	get_same = commit_prepare("SELECT id FROM jobs INDEXED BY jobs_unique WHERE tube = ?1"
				  " AND digest = ?2 AND body = ifnull(?3, x'') LIMIT 1");
	forget_tube = commit_prepare("DELETE FROM tubes WHERE id = ?1 AND ready = 0"
				     " AND delayed = 0 AND buried = 0");
	count_free = commit_prepare("PRAGMA freelist_count");
	set_meta = commit_prepare("INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
	runs_start();
}

/**
 * commit_start - start the thread
 * @base: the loop that is told what was committed
 * @sync_ns: with SYNC_SOMETIMES how often the disk is synced, else 0
 */
void commit_start(struct event_base *base, int64_t sync_ns)
{
	pthread_condattr_t attr;
	sigset_t all, old;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	sync_every = sync_ns;
	next_id = store_meta("next_id", 1);
	db = store_connect();
	log_start(db, sync_ns);
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
	if (!holding && todo.length >= wanted)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/**
 * commit_hold - more operations come at once, which are to be in one transaction
 * @hold: whether more come; or that was all
 *
 * Without it the first of them would be in a transaction of its own, and all others wait
 * for that.
 */
void commit_hold(bool hold)
{
	pthread_mutex_lock(&lock);
	holding = hold;
	if (!hold && todo.length >= wanted)
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

/** commit_times - how long the transactions took */
struct histogram commit_times(void)
{
	struct histogram copy;

	pthread_mutex_lock(&lock);
	copy = times;
	pthread_mutex_unlock(&lock);
	return copy;
}

/** commit_waits - for how many ns the transaction that is being written has been */
int64_t commit_waits(void)
{
	int64_t since;

	pthread_mutex_lock(&lock);
	since = busy_since;
	pthread_mutex_unlock(&lock);
	return since ? now_ns() - since : 0;
}
