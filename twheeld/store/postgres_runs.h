/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Schedules and their runs in a database of PostgreSQL.
 */
#ifndef TWHEELD_POSTGRES_RUNS_H
#define TWHEELD_POSTGRES_RUNS_H

#include "store/runs.h"

bool pg_fire(struct firing *firing, bool (*put)(struct op *op));
bool pg_define(struct schedule_row *row);
bool pg_pause(struct op *op);
bool pg_waiting(struct waiting *waiting);
bool pg_late(struct late *late);
bool pg_set_failing(int64_t schedule, bool failing, bool *changed);
bool pg_prune(struct op *op);
bool pg_pushed(struct pushed *pushed);
bool pg_paused(struct op *op);
bool pg_last_runs(struct runs_asked *asked);
bool pg_run_set(int64_t job, enum result result);
bool pg_run_deleted(int64_t job);

#endif
