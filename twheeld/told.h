/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What people are told of schedules, as JSON.
 */
#ifndef TWHEELD_TOLD_H
#define TWHEELD_TOLD_H

#include <jansson.h>

#include "schedule.h"

json_t *told_text(const char *text);
json_t *told_time(int64_t ns);
const char *told_result(enum result result);
json_t *told_run(const struct run_row *run);
json_t *told_schedule(const struct schedule *schedule, json_t *last);

#endif
