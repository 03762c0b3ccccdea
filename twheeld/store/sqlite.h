/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The store as a SQLite database, jobs.db.
 */
#ifndef TWHEELD_SQLITE_H
#define TWHEELD_SQLITE_H

#include <sqlite3.h>

#include "store/commit.h"

struct sqlite3 *sqlite_connect(void);

void sqlite_write_start(int64_t sync_ns);
void sqlite_write(struct op *ops);
void sqlite_tidy(void);
bool sqlite_sync(void);
void sqlite_write_end(void);

/* For those who write what an operation is: within its transaction */
sqlite3_stmt *sqlite_prepare(const char *sql);
bool sqlite_step(sqlite3_stmt *stmt);
int sqlite_changed(void);
bool sqlite_put(struct op *put);

#endif
