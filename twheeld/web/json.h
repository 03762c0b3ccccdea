/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Texts, times, schedules and runs as JSON.
 */
#ifndef TWHEELD_JSON_H
#define TWHEELD_JSON_H

#include <event2/buffer.h>
#include <jansson.h>

#include "cron/schedule.h"

json_t *json_of_text(const char *text);
json_t *json_of_bytes(const char *bytes, size_t length);
json_t *json_of_time(int64_t ns);
const char *json_text(const json_t *object, const char *name);
int64_t json_number(const json_t *object, const char *name);
const char *json_of_result(const struct run_row *run);
json_t *json_of_run(const struct run_row *run);
void json_add(struct evbuffer *out, json_t *json, const char *before);
json_t *json_of_tube(const char *name, const int64_t *count, int64_t puts, int64_t deletes,
		     unsigned int waiting, bool paused);
json_t *json_of_schedule(const struct schedule *schedule);

#endif
