/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store as a SQLite database, jobs.db.
 */
#ifndef TWHEELD_SQLITE_H
#define TWHEELD_SQLITE_H

#include <sqlite3.h>

#include "store/commit.h"

void sqlite_open(const char *dir, enum sync sync);
void sqlite_close(void);
int64_t sqlite_meta(const char *name, int64_t otherwise);
void sqlite_schedules(void (*each)(const struct schedule_row *row));
bool sqlite_pushed(struct pushed *pushed);
void sqlite_last_runs(struct runs_asked *asked);
bool sqlite_gone(void);

/* For the committer's files */
sqlite3 *sqlite_connect(void);
void sqlite_watch(void);
void sqlite_rescue(sqlite3 *db);
sqlite3_stmt *sqlite_prepare(sqlite3 *on, const char *sql);
bool sqlite_step(sqlite3_stmt *stmt);

#endif
