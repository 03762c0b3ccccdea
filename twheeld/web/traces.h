/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is kept of tries of jobs, and of what somebody did, as JSON.
 */
#ifndef TWHEELD_WEB_TRACES_H
#define TWHEELD_WEB_TRACES_H

#include <jansson.h>

#include "store/commit.h"
#include "web/http.h"

/* When and how often alone; who, and what the worker said first; and all that it said */
enum detail { DETAIL_TIMES, DETAIL_SAID, DETAIL_ALL };

json_t *json_of_trace(const struct trace *trace, enum detail detail);
json_t *json_of_traces(const struct runs_asked *asked, int64_t job, enum detail detail);
void traces_ask(struct ask *ask, bool notes, void (*done)(struct op *op));
void traces_of_job(struct ask *ask);

#endif
