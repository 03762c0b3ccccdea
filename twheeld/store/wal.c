// SPDX-License-Identifier: GPL-2.0
/*
 * The store's log: SQLite's WAL, as the committer writes it.
 *
 * A file that grows has its new size and blocks written at each sync, which takes as long
 * again as the data. So the log gets room ahead, a MiB of zeros at a time, and transactions are
 * written over them. SQLite ignores the bytes after a log's last frame: when it begins the log
 * anew, old frames stay there, too.
 */
#include <stdint.h>

#include "base/limits.h"
#include "base/util.h"
#include "store/store.h"
#include "store/wal.h"

#define AHEAD (1 << 20)
#define PIECE (64 << 10)
/* Bytes that must be free on the disk, or the log gets no room ahead */
#define ROOM (256LL << 20)
#define PAGE 4096
#define FRAME (PAGE + 24)

static bool sync_later, sync_always;
/* A sync has failed: nobody knows how much of the log is on the disk. */
static bool unsettled;
static bool complained;
static int frames;		/* frames written since wal_tidy() */

static sqlite3_file *wal_file(struct sqlite3 *db)
{
	sqlite3_file *file;

	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK ||
	    !file->pMethods)
		return NULL;
	return file;
}

static bool room_for_more(void)
{
	int64_t left, all;

	return store_room(&left, &all) && left >= ROOM;
}

static bool wal_grow(sqlite3_file *file, sqlite3_int64 size)
{
	static const char zeros[PIECE];
	sqlite3_int64 until = size + AHEAD;

	/* Without room ahead, transactions do without, or fail by themselves. */
	while (size < until && file->pMethods->xWrite(file, zeros, PIECE, size) == SQLITE_OK)
		size += PIECE;
	/* Sync now: else the next transaction would wait for it. Nothing is lost if it fails. */
	return sync_always && file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK;
}

static bool rewrite(sqlite3_file *file)
{
	static char piece[PIECE];
	sqlite3_int64 size;
	int some;

	if (file->pMethods->xFileSize(file, &size) != SQLITE_OK)
		return false;
	for (sqlite3_int64 at = 0; at < size; at += some) {
		some = size - at < PIECE ? size - at : PIECE;
		if (file->pMethods->xRead(file, piece, some, at) != SQLITE_OK ||
		    file->pMethods->xWrite(file, piece, some, at) != SQLITE_OK)
			return false;
	}
	return true;
}

/**
 * wal_sync - sync commits that were not synced yet; gives false if that fails
 *
 * When a sync has failed, Linux takes pages for clean that it could not write, and the next sync
 * leaves them out. A power failure would cut off everything after them in the log. So the whole log
 * is written once more, as at the start.
 */
bool wal_sync(struct sqlite3 *db)
{
	sqlite3_file *file = wal_file(db);
	bool fine = !file || ((!unsettled || rewrite(file)) &&
			      file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) == SQLITE_OK);

	if (!fine && !complained)
		complain("the store can't be synced");
	complained = !fine;
	unsettled = !fine;
	return fine;
}

/**
 * wal_checkpoint - move the log into the database; gives false if it stays in the log
 * @db: the connection that alone writes
 * @mode: see sqlite3_wal_checkpoint_v2()
 *
 * The database must get nothing that the log has not on the disk: after a power failure the two
 * would not fit.
 */
bool wal_checkpoint(struct sqlite3 *db, int mode)
{
	int ret;

	if (unsettled && !wal_sync(db))
		return false;
	ret = sqlite3_wal_checkpoint_v2(db, NULL, mode, NULL, NULL);
	/* SQLite syncs the log first. Where each commit syncs, nothing is left to be lost. */
	unsettled = sync_later && (ret & 0xff) == SQLITE_IOERR;
	return ret == SQLITE_OK;
}

static int committed(void *arg, struct sqlite3 *db, const char *name, int count)
{
	frames = count;
	return SQLITE_OK;
}

/**
 * wal_tidy - move a long log into the database, and give it room ahead
 * @db: the connection that alone writes
 *
 * This takes longer than a transaction: call it once that one's clients were answered.
 *
 * Return: true if it wrote to the disk.
 */
bool wal_tidy(struct sqlite3 *db)
{
	sqlite3_file *file = wal_file(db);
	sqlite3_int64 size;
	bool did = false;

	if (frames >= LOG_PAGES)
		did = wal_checkpoint(db, SQLITE_CHECKPOINT_PASSIVE);
	else if (frames && file && file->pMethods->xFileSize(file, &size) == SQLITE_OK &&
		 size < (sqlite3_int64)frames * FRAME + AHEAD / 4 && room_for_more())
		did = wal_grow(file, size);
	frames = 0;
	return did;
}

static bool does_sync(struct sqlite3 *db)
{
	sqlite3_stmt *stmt;
	bool full = false;

	if (sqlite3_prepare_v2(db, "PRAGMA synchronous", -1, &stmt, NULL) == SQLITE_OK)
		full = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == 2;
	sqlite3_finalize(stmt);
	return full;
}

/**
 * wal_start - look after the log of the connection that alone writes
 * @db: the connection
 * @later: its commits do not sync: wal_sync() does
 */
void wal_start(struct sqlite3 *db, bool later)
{
	sync_later = later;
	sync_always = does_sync(db);
	sqlite3_wal_hook(db, committed, NULL);
}
