/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Schedules and their runs in jobs.db.
 */
#ifndef TWHEELD_SQLITE_RUNS_H
#define TWHEELD_SQLITE_RUNS_H

#include "store/runs.h"

struct sqlite3;

void runs_start(struct sqlite3 *db);
bool runs_define(const struct schedule_row *row);
bool runs_pause(const struct schedule_row *row);
bool runs_fire(struct firing *firing, bool (*put)(struct op *op));
bool runs_ended(const struct op *op);
bool runs_waiting(struct waiting *waiting);
bool runs_late(struct late *late);
bool runs_failing(int64_t schedule);
bool runs_recovered(int64_t schedule, bool *recovered);
bool runs_prune(struct prune *prune, int64_t *last);

#endif
