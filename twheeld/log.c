// SPDX-License-Identifier: GPL-2.0
/*
 * The store's log: SQLite's WAL, as the committer writes it.
 *
 * A file that grows has its new size and blocks written at each sync, which takes as long
 * again as the data. So the log gets room ahead, a MiB of zeros at a time, over which the
 * transactions are written then. What follows the last frame of a log has no meaning:
 * when SQLite begins it anew, which it does once it is in the database, the old frames are
 * left behind there, too.
 */
#include <stdbool.h>
#include <stdint.h>

#include "limits.h"
#include "log.h"
#include "store.h"
#include "util.h"

#define AHEAD (1 << 20)
#define PIECE (64 << 10)
/* So much of the disk must be left, or the log takes what it needs alone */
#define ROOM (256LL << 20)
#define PAGE 4096
#define FRAME (PAGE + 24)

static sqlite3_file *log_file(struct sqlite3 *db)
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

static void grow(sqlite3_file *file, sqlite3_int64 size)
{
	static const char zeros[PIECE];
	sqlite3_int64 until = size + AHEAD;

	/* If it can't be had, transactions do without, or say so. */
	while (size < until && file->pMethods->xWrite(file, zeros, PIECE, size) == SQLITE_OK)
		size += PIECE;
}

static int committed(void *arg, struct sqlite3 *db, const char *name, int frames)
{
	sqlite3_file *file = log_file(db);
	sqlite3_int64 size;

	(void)arg;
	if (frames >= LOG_PAGES)
		sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	else if (file && file->pMethods->xFileSize(file, &size) == SQLITE_OK &&
		 size < (sqlite3_int64)frames * FRAME + AHEAD / 4 && room_for_more())
		grow(file, size);
	return SQLITE_OK;
}

/** log_start - look after the log of a connection, which alone writes */
void log_start(struct sqlite3 *db)
{
	sqlite3_wal_hook(db, committed, NULL);
}

/** log_sync - sync what was committed without being synced */
void log_sync(struct sqlite3 *db)
{
	sqlite3_file *file = log_file(db);

	if (file && file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) != SQLITE_OK)
		complain("the store can't be synced");
}
