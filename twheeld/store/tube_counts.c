// SPDX-License-Identifier: GPL-2.0
/*
 * How many jobs a shared store has.
 *
 * To count takes the database long. So all who ask the same while that waits for its turn have
 * one answer, and any number of them costs the same. Who asks once the database has begun has the
 * next one: what a client was told before it asked is counted.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/postgres_ask.h"
#include "store/tube_counts.h"

/* So long those who asked are told at a time; then other clients are served. */
#define TURN MILLISECOND

/* The last question of each tube, of those that are not answered */
static struct counts *questions;

static void remove_question(struct counts *counts)
{
	HASH_DELETE(hash, questions, counts);
	counts->hash.tbl = NULL;
}

/* What was told is freed by the committer's loop: those who are left have a copy. */
static void tell_others_later(const struct counts *counts)
{
	struct counts *rest = must(malloc(sizeof(*rest)));
	struct counts_asker *asker;

	*rest = *counts;
	DL_FOREACH(rest->askers, asker)
		asker->asks = rest;
	commit_told(&rest->op);
}

static void counted(struct op *op)
{
	struct counts *counts = container_of(op, struct counts, op);
	int64_t until = commit_now() + TURN;
	struct counts_asker *asker;

	if (counts->hash.tbl)
		remove_question(counts);
	while ((asker = counts->askers)) {
		tube_counts_forget(asker);
		asker->told(asker, counts);
		if (counts->askers && commit_now() >= until) {
			tell_others_later(counts);
			return;
		}
	}
	free(counts->figures);
}

/* One that nobody has begun to answer */
static struct counts *question(const char *tube)
{
	struct counts *counts;

	HASH_FIND(hash, questions, tube, strlen(tube), counts);
	if (counts && !__atomic_load_n(&counts->begun, __ATOMIC_SEQ_CST))
		return counts;
	if (counts)
		remove_question(counts);
	counts = zalloc(sizeof(*counts));
	counts->op.kind = OP_COUNT;
	counts->op.done = counted;
	strcpy(counts->tube, tube);
	HASH_ADD(hash, questions, tube, strlen(tube), counts);
	pg_ask(&counts->op);
	return counts;
}

/**
 * tube_counts_ask - count the jobs of a tube, or of each
 * @asker: whose told() is called
 * @tube: its name; NULL: all
 */
void tube_counts_ask(struct counts_asker *asker, const char *tube)
{
	asker->asks = question(tube ? tube : "");
	DL_APPEND(asker->asks->askers, asker);
}

/** tube_counts_forget - it is not told any more, if it asked */
void tube_counts_forget(struct counts_asker *asker)
{
	if (asker->asks)
		DL_DELETE(asker->asks->askers, asker);
	asker->asks = NULL;
}
