/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rows of jobs.db, each of which has some traces.
 *
 * A row for each would cost as much as the job itself. So the traces that one transaction writes
 * are a few rows: each has those of jobs whose numbers are near each other. A row's own number says
 * the last of them, so that those of a job are found in as many rows as may begin after it and
 * reach back to it.
 */
#ifndef TWHEELD_TRACE_ROWS_H
#define TWHEELD_TRACE_ROWS_H

#include "store/commit.h"

/* Numbers of jobs that a row spans; and of its own, the bits that are not those of the last job */
#define TRACE_SPAN 64
#define TRACE_SHIFT 20

#define TRACES_TABLE "CREATE TABLE tries(id INTEGER PRIMARY KEY, first INTEGER NOT NULL," \
	" until INTEGER NOT NULL, try INTEGER NOT NULL, count INTEGER NOT NULL," \
	" traces BLOB NOT NULL);"
#define TRACE_TEXT(number) TRACE_TEXT_OF(number)
#define TRACE_TEXT_OF(number) #number
/* The rows of which the last job is ?1, or one of as many jobs as come next */
#define TRACES_BEHIND(jobs) "id >= (?1 << " TRACE_TEXT(TRACE_SHIFT) ")" \
	" AND id < ((?1 + " TRACE_TEXT(jobs) ") << " TRACE_TEXT(TRACE_SHIFT) ")"

size_t trace_size(const struct op *op);
char *trace_put(char *to, const struct op *op);
void traces_tell(struct runs_asked *asked, int64_t job, const char *row, size_t size);
void traces_sort(struct runs_asked *asked, size_t before);

#endif
