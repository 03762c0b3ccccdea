/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What schedules there are and what they did, and pause, resume, run and backfill.
 */
#ifndef TWHEELD_SCHEDULES_H
#define TWHEELD_SCHEDULES_H

#include "web/http.h"

void schedules_start(int64_t history);
void schedules_list(struct ask *ask);
void schedules_one(struct ask *ask);
void schedules_runs(struct ask *ask);
void schedules_pause(struct ask *ask);
void schedules_resume(struct ask *ask);
void schedules_run(struct ask *ask);
void schedules_backfill(struct ask *ask);

#endif
