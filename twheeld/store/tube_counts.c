// SPDX-License-Identifier: GPL-2.0
/*
 * How many jobs a shared store has.
 *
 * To count takes the database long. So all that ask the same while the question waits for its turn
 * have one answer, and any number of them costs the same. A question that comes once the database
 * has begun gets the next answer: a client finds counted what it did before it asked.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/postgres_ask.h"
#include "store/tube_counts.h"

/* How long an answer is handed out at a time; then other clients are served. */
#define TURN MILLISECOND

/* The last unanswered question about each tube */
static struct counts *questions;

static void remove_question(struct counts *counts)
{
	HASH_DELETE(hash, questions, counts);
	counts->hash.tbl = NULL;
}

/* Have a copy for the askers that are left, as the committer's loop frees the answer. */
static void tell_others_later(const struct counts *counts)
{
	struct counts *rest = must(malloc(sizeof(*rest)));
	struct counts_asker *asker;

	*rest = *counts;
	DL_FOREACH(rest->askers, asker)
		asker->asks = rest;
	commit_answered(&rest->op);
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
		asker->answered(asker, counts);
		if (counts->askers && commit_now() >= until) {
			tell_others_later(counts);
			return;
		}
	}
	free(counts->figures);
}

/* The question about a tube that nobody has begun to answer; or a new one */
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
 * @asker: its answered() is called
 * @tube: its name; NULL: all
 */
void tube_counts_ask(struct counts_asker *asker, const char *tube)
{
	asker->asks = question(tube ? tube : "");
	DL_APPEND(asker->asks->askers, asker);
}

/** tube_counts_forget - drop the question of an asker, if it has one */
void tube_counts_forget(struct counts_asker *asker)
{
	if (asker->asks)
		DL_DELETE(asker->asks->askers, asker);
	asker->asks = NULL;
}
