// SPDX-License-Identifier: GPL-2.0
/*
 * Rows of jobs.db, each of which has some traces: their format.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/util.h"
#include "store/runs.h"
#include "store/trace_rows.h"

/* A trace as it is in a row; texts follow. All numbers have their low byte first. */
struct stored {
	int64_t job, made, due, begun, ended;
	uint32_t try, size;
	uint16_t tube, by;
	uint8_t deed, unused[3];
};

static const char *tube_of(const struct op *op)
{
	return op->tube ? op->tube->name : "";
}

/** trace_size - bytes of an operation's trace in a row */
size_t trace_size(const struct op *op)
{
	return sizeof(struct stored) + strlen(tube_of(op)) + strlen(op->trace->by) +
		op->trace->size;
}

static char *put(char *to, const void *from, size_t size)
{
	if (size)
		memcpy(to, from, size);
	return to + size;
}

/** trace_put - write an operation's trace into a row; gives its end */
char *trace_put(char *to, const struct op *op)
{
	const struct trace *trace = op->trace;
	const char *tube = tube_of(op);
	const struct stored stored = {
		htole64(trace->job), htole64(trace->made), htole64(trace->due),
		htole64(trace->begun), htole64(trace->ended), htole32(trace->try),
		htole32(trace->size), htole16(strlen(tube)), htole16(strlen(trace->by)),
		trace->deed, { 0 },
	};

	to = put(to, &stored, sizeof(stored));
	to = put(to, tube, strlen(tube));
	to = put(to, trace->by, strlen(trace->by));
	return put(to, trace->note, trace->size);
}

/* Read one trace of a row; an incomplete one is left out. */
static const char *tell(struct runs_asked *asked, int64_t job, const char *from, const char *end)
{
	char tube[TUBE_NAME_MAX + 1] = "", *by;
	struct stored stored;
	struct trace trace;
	uint16_t lengths[2];

	if ((size_t)(end - from) < sizeof(stored))
		return NULL;
	memcpy(&stored, from, sizeof(stored));
	from += sizeof(stored);
	trace = (struct trace){
		.job = le64toh(stored.job), .made = le64toh(stored.made),
		.due = le64toh(stored.due), .begun = le64toh(stored.begun),
		.ended = le64toh(stored.ended), .try = le32toh(stored.try),
		.size = le32toh(stored.size), .deed = stored.deed, .tube = tube,
	};
	lengths[0] = le16toh(stored.tube);
	lengths[1] = le16toh(stored.by);
	if (lengths[0] > TUBE_NAME_MAX || trace.size > NOTE_MOST ||
	    end - from < (ptrdiff_t)lengths[0] + lengths[1] + (ptrdiff_t)trace.size)
		return NULL;
	put(tube, from, lengths[0]);
	trace.note = (char *)from + lengths[0] + lengths[1];
	if (trace.job == job && asked->traced < TRACES_TOLD) {
		by = must(strndup(from + lengths[0], lengths[1]));
		trace.by = by;
		runs_add_trace(asked, &trace);
		free(by);
	}
	return trace.note + trace.size;
}

static int last_first(const void *a, const void *b)
{
	const struct trace *one = a, *other = b;

	if (one->ended != other->ended)
		return one->ended > other->ended ? -1 : 1;
	return (one->try < other->try) - (one->try > other->try);
}

/** traces_tell - add to the answer the traces that a row has of a job, or of a schedule */
void traces_tell(struct runs_asked *asked, int64_t job, const char *row, size_t size)
{
	const char *end = row + size;

	while (row && row < end)
		row = tell(asked, job, row, end);
}

/** traces_sort - sort the answer's traces from @before on, the last first */
void traces_sort(struct runs_asked *asked, size_t before)
{
	if (asked->traced > before)
		qsort(asked->traces + before, asked->traced - before, sizeof(*asked->traces),
		      last_first);
}
