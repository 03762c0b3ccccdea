/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Schedules as JSON, for people.
 */
#ifndef TWHEELD_JSON_H
#define TWHEELD_JSON_H

#include <jansson.h>

#include "cron/schedule.h"

json_t *json_of_text(const char *text);
json_t *json_of_time(int64_t ns);
const char *json_of_result(const struct run_row *run);
json_t *json_of_run(const struct run_row *run);
json_t *json_of_schedule(const struct schedule *schedule, json_t *last);

#endif
