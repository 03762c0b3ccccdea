// SPDX-License-Identifier: GPL-2.0
/*
 * The decisions that both stores share: which jobs of a firing are made, and which runs are listed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "store/runs.h"

/* A time that waits is a row without a job, as a missed one is: one row for all shards. */
static bool wait(struct firing *firing, struct firing_run *run, const struct run_table *table)
{
	if (run->shard || (run->before && firing->waited))
		return true;
	return table->write(firing, run->time, 0, run->before ? -firing->after : 0, RUN_OPEN) &&
		(run->before || table->leave_out(firing, run->time));
}

static bool make(struct firing *firing, struct firing_run *run, const struct run_table *table)
{
	bool may;

	if (!table->may_run(firing, run, &may))
		return false;
	if (!may) {
		run->there = true;
		return true;
	}
	if (run->waits)
		return wait(firing, run, table);
	if (!run->shard && firing->waits && !run->skipped &&
	    !table->leave_out(firing, run->time))
		return false;
	/* One row says that all shards of a time were skipped. */
	if (run->skipped)
		return run->shard || table->write(firing, run->time, 0, 0, RUN_SKIPPED);
	run->made = true;
	if (!table->put(&run->put) || (run->put.same && !table->adopt(firing, run->put.same)))
		return false;
	return table->write(firing, run->time, run->shard,
			    run->put.same ? run->put.same : run->put.row.id, RUN_OPEN);
}

/* Is a time made, left out, or does it wait? Decides for all of its shards. */
static bool decide(const struct firing *firing, struct firing_run *run, bool over,
		   const struct run_table *table)
{
	enum before before = BEFORE_DONE;
	bool open = false;

	if (firing->after && !table->before(firing, run->time, &before))
		return false;
	run->before = before == BEFORE_OPEN && !over;
	run->waits = run->before;
	run->skipped = before != BEFORE_DONE && !run->before;
	if (run->waits || run->skipped || firing->overlap)
		return true;
	if (!table->any_open(firing, &open))
		return false;
	run->skipped = open && !firing->waits;
	run->waits = open && firing->waits;
	return true;
}

static void as_that(struct firing_run *run, const struct firing_run *that)
{
	run->before = that->before;
	run->waits = that->waits;
	run->skipped = that->skipped;
}

/**
 * runs_make - make a firing's jobs, in the transaction that moves the schedule's next time on
 * @firing: all shards of a time are made, or none, while an earlier run is open. Of several times
 *	that wait for its end, only the last stays
 * @table: where runs are kept
 *
 * Return: false if the transaction has failed.
 */
bool runs_make(struct firing *firing, const struct run_table *table)
{
	bool waits = true, before = true, over = false;

	if (firing->waited &&
	    !table->waits(firing, firing->runs->time, &waits, &before, &over))
		return false;
	/* What waits for open runs alone has its other schedule's run behind it, or needs none. */
	if (!before)
		firing->after = 0;
	if (firing->missed && !table->write(firing, firing->missed, 0, 0, RUN_MISSED))
		return false;
	for (struct op *op = firing->news; op; op = op->next)
		if (!table->put(op))
			return false;
	for (size_t i = 0; i < firing->count; i++) {
		struct firing_run *run = &firing->runs[i];

		run->made = false;
		run->there = false;
		run->skipped = false;
		run->waits = false;
		run->before = false;
		if (!waits)
			continue;
		if (i && run[-1].time == run->time)
			as_that(run, &run[-1]);
		else if (!decide(firing, run, over, table))
			return false;
		if (!make(firing, run, table))
			return false;
	}
	return true;
}

/** runs_add - add a run to the answer */
void runs_add(struct runs_asked *asked, const struct run_row *run)
{
	if (asked->found == asked->room) {
		asked->room = asked->room ? 2 * asked->room : 16;
		asked->runs = must(realloc(asked->runs, asked->room * sizeof(*run)));
	}
	asked->runs[asked->found++] = *run;
}

/** runs_add_trace - the same with a trace, of which all is copied, as long as there is room */
void runs_add_trace(struct runs_asked *asked, const struct trace *trace)
{
	struct trace *copy;

	if (asked->traced == asked->trace_room) {
		asked->trace_room = asked->trace_room ? 2 * asked->trace_room : 16;
		asked->traces = must(realloc(asked->traces, asked->trace_room * sizeof(*trace)));
	}
	copy = &asked->traces[asked->traced++];
	*copy = *trace;
	copy->tube = must(strdup(trace->tube));
	copy->by = must(strdup(trace->by));
	asked->note_bytes += trace->size;
	if (asked->note_bytes > NOTES_TOLD)
		copy->size = 0;
	copy->note = must(malloc(copy->size + 1));
	if (copy->size)
		memcpy(copy->note, trace->note, copy->size);
	copy->note[copy->size] = '\0';
}

/** runs_free - free the answer */
void runs_free(struct runs_asked *asked)
{
	for (size_t i = 0; i < asked->traced; i++) {
		free(asked->traces[i].tube);
		free(asked->traces[i].by);
		free(asked->traces[i].note);
	}
	free(asked->traces);
	free(asked->runs);
}
