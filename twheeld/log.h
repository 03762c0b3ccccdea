/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store's log: SQLite's WAL, as the committer writes it.
 */
#ifndef TWHEELD_LOG_H
#define TWHEELD_LOG_H

#include <sqlite3.h>
#include <stdbool.h>

void log_start(struct sqlite3 *db, bool later);
void log_tidy(struct sqlite3 *db);
bool log_checkpoint(struct sqlite3 *db, int mode);
bool log_sync(struct sqlite3 *db);

#endif
