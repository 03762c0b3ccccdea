/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is kept of each try of a job: who had it, for how long, what became of it, and what the
 * worker said. It begins when a job is reserved, is in memory until the try is over, and is
 * written by what ends that.
 */
#ifndef TWHEELD_JOBS_TRACE_H
#define TWHEELD_JOBS_TRACE_H

#include "jobs/conn.h"

enum noted { NOTED, NOT_KEPT, NO_ROOM };

void trace_begin(struct job *job, struct conn *conn);
enum noted trace_note(struct job *job, char *note, uint32_t size);
void trace_end(struct op *op);
enum deed trace_deed(const struct op *op);
void trace_tick(void);
void trace_free(struct trace *trace);
void trace_of_schedule(struct op *op, int64_t schedule, enum deed deed, const char *by);
void trace_of_request(struct op *op, const struct tube *tube, enum deed deed);

#endif
