// SPDX-License-Identifier: GPL-2.0
/*
 * The committer's transactions in SQLite: many operations in each.
 */
#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/sqlite.h"
#include "store/sqlite_runs.h"
#include "store/sqlite_traces.h"
#include "store/wal.h"

/* Ids that are taken at a time: it saves writing a page in most transactions */
#define ID_BLOCK 1000
/* Bytes of the disk that new jobs leave free, unless the disk is small */
#define ROOM (32 << 20)
#define PAGE 4096
/* Bytes of a job in the tables, beside its body */
#define ROW 512
/* ms that a checkpoint waits for this server's readers; at the end, for other programs' */
#define OWN_READERS 100
#define OTHERS 5000

static sqlite3 *db;
static sqlite3_stmt *begin, *commit, *rollback, *put, *change, *delete, *count_tube, *set_meta,
	*forget_tube, *count_free, *count_pages, *get_same, *get_keyed, *get_kept, *keep_key,
	*drop_kept, *drop_old, *forget_key, *set_body, *move;
static struct tube_commit *touched;
static int64_t next_id;
static int64_t pages;		/* of the database at the last commit */

static bool set(const char *name, int64_t value)
{
	sqlite3_bind_text(set_meta, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(set_meta, 2, value);
	return sqlite_step(set_meta);
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
		fine = fine && (!in_store || sqlite_step(count_tube));
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

/* 64 bits of a cryptographic hash: nobody can make many bodies with the same digest */
static int64_t digest(const struct row *row)
{
	struct sha256_ctx ctx;
	int64_t value;

	sha256_init(&ctx);
	sha256_update(&ctx, row->size, (const uint8_t *)row->body);
	sha256_digest(&ctx, sizeof(value), (uint8_t *)&value);
	return value;
}

/* Gives false if it can't be read; else *id says which job, or 0. */
static bool look_up(sqlite3_stmt *stmt, int64_t *id)
{
	int ret = sqlite3_step(stmt);

	*id = ret == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	if (ret != SQLITE_ROW && ret != SQLITE_DONE)
		commit_say("the store can't be read: %s", sqlite3_errmsg(db));
	sqlite3_reset(stmt);
	return ret == SQLITE_ROW || ret == SQLITE_DONE;
}

/* Keys: a job has the digest of its key in place of its body's, and that is no number. */

static void bind_key(sqlite3_stmt *stmt, int at, const struct job_key *key)
{
	uint8_t digest[JOB_KEY_DIGEST];

	job_key_digest(key->text, digest);
	sqlite3_bind_blob(stmt, at, digest, sizeof(digest), SQLITE_TRANSIENT);
}

static bool get_by_key(const struct op *op, int64_t *id)
{
	sqlite3_bind_int64(get_keyed, 1, op->tube->id);
	bind_key(get_keyed, 2, op->key);
	return look_up(get_keyed, id);
}

static bool lose_key(int64_t id)
{
	sqlite3_bind_int64(forget_key, 1, id);
	return sqlite_step(forget_key);
}

/* Which job has the key, or had it a while ago */
static bool find_by_key(struct op *op)
{
	const struct job_key *key = op->key;

	op->same = 0;
	if (key->how == KEY_IGNORE) {
		sqlite3_bind_text(get_kept, 1, op->tube->name, -1, SQLITE_STATIC);
		bind_key(get_kept, 2, key);
		sqlite3_bind_int64(get_kept, 3, op->at);
		if (!look_up(get_kept, &op->same))
			return false;
	}
	if (!op->same && !get_by_key(op, &op->same))
		return false;
	if (op->same && op->same == key->instead) {
		op->same = 0;
		if (!lose_key(key->instead))
			return false;
	}
	bind_key(put, 15, key);
	return true;
}

/* What is over goes at least as fast as others come. */
static bool keep(const struct op *op)
{
	sqlite3_bind_text(keep_key, 1, op->tube->name, -1, SQLITE_STATIC);
	bind_key(keep_key, 2, op->key);
	sqlite3_bind_int64(keep_key, 3, op->at + op->key->lasts * SECOND);
	sqlite3_bind_int64(keep_key, 4, op->row.id);
	sqlite3_bind_int64(drop_old, 1, op->at);
	return sqlite_step(keep_key) && sqlite_step(drop_old);
}

static bool free_kept(const struct op *op)
{
	sqlite3_bind_text(drop_kept, 1, op->tube->name, -1, SQLITE_STATIC);
	bind_key(drop_kept, 2, op->key);
	sqlite3_bind_int64(drop_kept, 3, op->at);
	return sqlite_step(drop_kept);
}

/* What is kept of a job that is over is free at once. */
static bool find_to_delete(struct op *op)
{
	if (!get_by_key(op, &op->same) || (!op->same && !free_kept(op)))
		return false;
	op->gone = !op->same && !sqlite3_changes(db);
	return true;
}

static bool write_body(const struct op *op)
{
	bool fine;

	sqlite3_bind_int64(set_body, 1, op->row.id);
	sqlite3_bind_blob(set_body, 2, op->row.body, op->row.size, SQLITE_STATIC);
	sqlite3_bind_int64(set_body, 3, op->row.tries);
	fine = sqlite_step(set_body);
	sqlite3_bind_null(set_body, 2);
	return fine;
}

/*
 * Has the tube a job with that body that was put while the tube was unique, too? Earlier puts and
 * deletes of the same transaction are done already.
 */
static bool find_same(struct op *op)
{
	int64_t hash;
	bool fine;

	if (op->key)
		return find_by_key(op);
	op->same = 0;
	if (!op->unique)
		return true;
	hash = digest(&op->row);
	sqlite3_bind_int64(put, 15, hash);
	sqlite3_bind_int64(get_same, 1, op->row.tube);
	sqlite3_bind_int64(get_same, 2, hash);
	sqlite3_bind_blob(get_same, 3, op->row.body, op->row.size, SQLITE_STATIC);
	fine = look_up(get_same, &op->same);
	sqlite3_bind_null(get_same, 3);
	return fine;
}

static bool put_job(struct op *op)
{
	bool fine, recovered;

	if (op->failing && !runs_recovered(op->failing, &recovered))
		return false;
	if (op->failing && !recovered) {
		op->same = -1;
		return true;
	}
	sqlite3_bind_null(put, 15);
	if (!find_same(op) || op->same)
		return op->same;
	bind_change(put, &op->row);
	sqlite3_bind_blob(put, 14, op->row.body, op->row.size, SQLITE_STATIC);
	sqlite3_bind_int64(put, 16, op->row.scheduled);
	sqlite3_bind_int64(put, 17, op->row.tries);
	fine = sqlite_step(put);
	sqlite3_bind_null(put, 14);
	count(op->to, op->row.state, op->row.pri < 1024, 1);
	if (op->row.id >= next_id)
		next_id = op->row.id + ID_BLOCK;
	return fine && (!op->key || !op->key->lasts || keep(op));
}

static bool prune(struct op *op)
{
	int64_t last;

	if (!runs_prune(container_of(op, struct prune, op), &last))
		return false;
	if (last > op->row.ord)
		op->row.ord = last;
	return !op->row.size || set("forgotten", op->row.ord);
}

/* A job that goes to the dead letters can go back: then it is as new there. It has no key. */
static bool set_origin(const struct op *op)
{
	if (op->to == op->tube)
		return true;
	sqlite3_bind_int64(move, 1, op->row.id);
	sqlite3_bind_text(move, 2, op->tube->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(move, 3, op->to->name, -1, SQLITE_STATIC);
	return sqlite_step(move);
}

static bool write_op(struct op *op)
{
	switch (op->kind) {
	case OP_PUT:
		return put_job(op);
	case OP_CHANGE:
		bind_change(change, &op->row);
		count(op->tube, op->from, op->from_urgent, -1);
		count(op->to, op->row.state, op->row.pri < 1024, 1);
		return set_origin(op) && sqlite_step(change) && (!op->key || write_body(op)) &&
			runs_ended(op) && (!op->failing || runs_failing(op->failing));
	case OP_DELETE:
		sqlite3_bind_int64(delete, 1, op->row.id);
		count(op->tube, op->from, op->from_urgent, -1);
		return sqlite_step(delete) && (!op->key || free_kept(op)) && runs_ended(op);
	case OP_FIND_KEY:
		return find_to_delete(op);
	case OP_SKEW:
		return set("skew", op->row.created);
	case OP_FORGET_TUBE:
		sqlite3_bind_int64(forget_tube, 1, op->row.tube);
		return sqlite_step(forget_tube);
	case OP_DEFINE:
		return runs_define(op->schedule);
	case OP_PAUSE:
		return runs_pause(op->schedule);
	case OP_FIRE:
		return runs_fire(op->firing, put_job);
	case OP_PRUNE:
		return prune(op);
	case OP_FORGET:
		return traces_prune(&op->row.size);
	case OP_LATE:
		return runs_late(container_of(op, struct late, op));
	case OP_WAITING:
		return runs_waiting(container_of(op, struct waiting, op));
	case OP_NOTHING:
		return true;
	default:
		return false;
	}
}

static bool needs_room(const struct op *op)
{
	return op->kind == OP_PUT || op->kind == OP_FIRE || (op->kind == OP_CHANGE && op->key);
}

static int64_t number(sqlite3_stmt *stmt)
{
	int64_t value = 0;

	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	return value;
}

/*
 * The database's file gets blocks for all pages before they are committed. So the log's pages fit
 * there whenever they can be moved, and neither deletes nor other programs can take that room.
 */
static bool reach(int64_t count)
{
	bool fine = count <= pages || store_reach(count * PAGE);

	if (!fine)
		commit_say("the store can't be written: %s", strerror(errno));
	return fine;
}

/* Write all operations that have not failed; with @puts false, without those that need room. */
static bool transaction(struct op *ops, bool puts)
{
	int64_t first_id = next_id, count = 0;
	bool fine = sqlite_step(begin);

	traces_begin();
	for (struct op *op = ops; fine && op; op = op->next)
		if (!needs_room(op) || (puts && !op->failed)) {
			fine = write_op(op);
			if (op->trace && puts && !op->untraced)
				traces_add(op);
		}
	fine = fine && traces_write();
	fine = write_counts(fine) && fine;
	if (fine && next_id != first_id)
		fine = set("next_id", next_id);
	if (fine)
		count = number(count_pages);
	fine = fine && reach(count) && sqlite_step(commit);
	if (!fine && !sqlite3_get_autocommit(db))
		sqlite_step(rollback);
	if (fine)
		pages = count;
	else
		next_id = first_id;
	return fine;
}

/*
 * Move the log into the database; false: it stays. This server's own readers are soon done, and are
 * waited for; another program's may read for hours, and are waited for only now and then.
 */
static bool empty_log(void)
{
	static int64_t in_vain;		/* when another program's reader was waited for */
	bool wait = !in_vain || commit_now() - in_vain >= SECOND, empty;

	sqlite3_busy_timeout(db, wait ? OWN_READERS : 0);
	empty = wal_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE);
	sqlite3_busy_timeout(db, OTHERS);
	if (empty || wait)
		in_vain = empty ? 0 : commit_now();
	return empty;
}

/*
 * The bytes that are free for new jobs, each of which takes its size in the log and in the
 * database. They leave some for deletes and changes, which the log has first. Once the log is
 * empty, the pages of deleted jobs can be written over: that takes room in the log alone, which
 * comes back.
 */
static int64_t room(int64_t need)
{
	int64_t left, all, keep, new, again = 0;
	bool empty;

	if (!store_room(&left, &all))
		return INT64_MAX;
	keep = least(all / 4, ROOM);
	if (left >= keep + need)
		return left - keep;
	empty = empty_log();
	if (!store_room(&left, &all))
		return INT64_MAX;
	new = left > keep ? left - keep : 0;
	if (empty && left > keep / 4)
		again = least(number(count_free) * PAGE, least(left, keep) - keep / 4);
	return new + 2 * again;
}

/* A job's bytes in log and database. A row of more than half a page has pages of its own. */
static int64_t size_of(const struct op *op)
{
	int64_t size = op->kind == OP_FIRE ? (int64_t)op->firing->weight : op->row.size;

	return 2 * (size + least(size + ROW, PAGE));
}

static int64_t size_of_trace(const struct op *op)
{
	return op->trace ? 2 * (op->trace->size + ROW) : 0;
}

/* Let the puts fail for which there is no room, and leave such traces out. */
static void find_room(struct op *ops)
{
	int64_t need = 0, left;

	for (struct op *op = ops; op; op = op->next)
		need += (needs_room(op) ? size_of(op) : 0) + size_of_trace(op);
	left = need ? room(need) : 0;
	for (struct op *op = ops; op; op = op->next) {
		op->untraced = size_of_trace(op) > left;
		if (!op->untraced)
			left -= size_of_trace(op);
		if (!needs_room(op))
			continue;
		op->failed = size_of(op) > left;
		if (!op->failed)
			left -= size_of(op);
		else if (op->kind == OP_FIRE)
			commit_say("the disk has no room for all jobs of a schedule");
		else
			commit_say("the disk is nearly full: no new jobs are taken");
	}
}

/*
 * Operations that do not fit into the log together may fit one by one, as the log is moved to the
 * database in between. Where one alone can't be written, no other can.
 */
static void one_by_one(struct op *ops)
{
	bool fine = true;

	for (struct op *op = ops, *next; op; op = next) {
		next = op->next;
		op->next = NULL;
		if (!needs_room(op)) {
			fine = fine && (transaction(op, false) ||
					(empty_log() && transaction(op, false)));
			op->failed = !fine;
		}
		op->next = next;
	}
}

static void set_failed(struct op *ops)
{
	for (struct op *op = ops; op; op = op->next)
		op->failed = true;
}

/*
 * When the disk is full, puts fail, and all else is tried once more without them.
 */
static void write_ops(struct op *ops)
{
	bool puts = true, fine;

	if (sqlite_gone()) {
		set_failed(ops);
		return;
	}
	find_room(ops);
	fine = transaction(ops, puts);
	if (!fine) {
		puts = false;
		empty_log();
		fine = transaction(ops, puts);
	}
	for (struct op *op = ops; op; op = op->next)
		op->failed = !fine || (needs_room(op) && (op->failed || !puts));
	if (!fine && ops->next)
		one_by_one(ops);
	/* A commit to files that were moved away is not acknowledged. */
	if (sqlite_gone())
		set_failed(ops);
}

static void prepare_all(void)
{
	begin = sqlite_prepare(db, "BEGIN IMMEDIATE");
	commit = sqlite_prepare(db, "COMMIT");
	rollback = sqlite_prepare(db, "ROLLBACK");
	put = sqlite_prepare(db, "INSERT INTO jobs(id, tube, state, ord, pri, delay, ttr, created,"
			     " reserves, timeouts, releases, buries, kicks, body, digest, scheduled,"
			     " tries)"
			     " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
			     " ?11, ?12, ?13, ifnull(?14, x''), ?15, ?16, ?17)");
	change = sqlite_prepare(db, "UPDATE jobs SET tube = ?2, state = ?3, ord = ?4, pri = ?5,"
				" delay = ?6, ttr = ?7, created = ?8, reserves = ?9,"
				" timeouts = ?10, releases = ?11, buries = ?12, kicks = ?13"
				" WHERE id = ?1");
	move = sqlite_prepare(db, "UPDATE jobs SET origin = CASE WHEN origin = ?3 THEN NULL"
			      " ELSE ?2 END, digest = CASE typeof(digest) WHEN 'integer' THEN"
			      " digest END WHERE id = ?1");
	delete = sqlite_prepare(db, "DELETE FROM jobs WHERE id = ?1");
	count_tube = sqlite_prepare(db, "INSERT INTO tubes VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
				    " ON CONFLICT(id) DO UPDATE SET ready = ready + excluded.ready,"
				    " delayed = delayed + excluded.delayed,"
				    " buried = buried + excluded.buried,"
				    " urgent = urgent + excluded.urgent");
	get_same = sqlite_prepare(db, "SELECT id FROM jobs INDEXED BY jobs_unique WHERE tube = ?1"
				  " AND digest = ?2 AND body = ifnull(?3, x'') LIMIT 1");
	get_keyed = sqlite_prepare(db, "SELECT id FROM jobs INDEXED BY jobs_unique WHERE tube = ?1"
				   " AND digest = ?2");
	get_kept = sqlite_prepare(db, "SELECT job FROM keys WHERE tube = ?1 AND key = ?2"
				  " AND until > ?3");
	keep_key = sqlite_prepare(db, "INSERT OR REPLACE INTO keys VALUES(?1, ?2, ?3, ?4)");
	drop_kept = sqlite_prepare(db, "DELETE FROM keys WHERE tube = ?1 AND key = ?2"
				   " AND until > ?3");
	drop_old = sqlite_prepare(db, "DELETE FROM keys WHERE (tube, key) IN (SELECT tube, key"
				  " FROM keys INDEXED BY keys_until WHERE until <= ?1"
				  " ORDER BY until LIMIT 2)");
	forget_key = sqlite_prepare(db, "UPDATE jobs SET digest = NULL WHERE id = ?1");
	set_body = sqlite_prepare(db, "UPDATE jobs SET body = ifnull(?2, x''), tries = ?3"
				  " WHERE id = ?1");
	forget_tube = sqlite_prepare(db, "DELETE FROM tubes WHERE id = ?1 AND ready = 0"
				     " AND delayed = 0 AND buried = 0");
	count_free = sqlite_prepare(db, "PRAGMA freelist_count");
	count_pages = sqlite_prepare(db, "PRAGMA page_count");
	set_meta = sqlite_prepare(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
	runs_start(db);
	traces_start(db);
}

static void write_start(int64_t sync_ns)
{
	next_id = store->meta("next_id", 1);
	db = sqlite_connect();
	wal_start(db, sync_ns);
	prepare_all();
	pages = number(count_pages);
	/* Where the disk has no room for earlier pages, deletes may still be possible. */
	store_reach(pages * PAGE);
	sqlite_watch();
}

/* Look after the log, once the clients have their replies. */
static bool tidy(void)
{
	return wal_tidy(db);
}

static bool sync_log(void)
{
	return wal_sync(db);
}

/* After a clean end one may copy jobs.db alone: say that here the log belongs to it. */
static void say_not_moved(void)
{
	const char *name = sqlite3_db_filename(db, "main");
	int error = sqlite3_errcode(db) & 0xff;

	complain("%s is not all of the store, as %s-wal can't be moved into it (%s): copy both,"
		 " or start the server and end it once more", name, name,
		 error == SQLITE_BUSY ? "another process reads it" :
		 error == SQLITE_OK ? "it can't be synced" : sqlite3_errmsg(db));
}

/* Move all to the database, so that its file alone is the store. */
static void write_end(void)
{
	sqlite3_stmt *stmt;

	while ((stmt = sqlite3_next_stmt(db, NULL)))
		sqlite3_finalize(stmt);
	if (!wal_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE))
		say_not_moved();
	if (sqlite_gone())
		sqlite_rescue(db);
	sqlite3_close(db);
}

const struct store store_sqlite = {
	.open = sqlite_open,
	.close = sqlite_close,
	.meta = sqlite_meta,
	.schedules = sqlite_schedules,
	.pushed = sqlite_pushed,
	.runs = sqlite_last_runs,
	.write_start = write_start,
	.write = write_ops,
	.tidy = tidy,
	.sync = sync_log,
	.gone = sqlite_gone,
	.write_end = write_end,
};
