/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store's log: SQLite's WAL, as the committer writes it.
 */
#ifndef TWHEELD_WAL_H
#define TWHEELD_WAL_H

#include <sqlite3.h>
#include <stdbool.h>

void wal_start(struct sqlite3 *db, bool later);
bool wal_tidy(struct sqlite3 *db);
bool wal_checkpoint(struct sqlite3 *db, int mode);
bool wal_sync(struct sqlite3 *db);

#endif
