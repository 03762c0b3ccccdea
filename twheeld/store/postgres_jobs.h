/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations on jobs in a database of PostgreSQL.
 */
#ifndef TWHEELD_POSTGRES_JOBS_H
#define TWHEELD_POSTGRES_JOBS_H

#include <uthash.h>

#include "store/commit.h"

/* The jobs that a tube has in a shared store, of all servers */
struct tube_counts {
	char tube[TUBE_NAME_MAX + 1];
	int64_t count[STATES];
	int64_t urgent;
	int64_t pause, pause_left, pauses;	/* ns */
};

struct counts_asker;

/* A question, and its answer */
struct counts {
	struct op op;			/* op.failed: nothing is known */
	char tube[TUBE_NAME_MAX + 1];	/* the only one; "": all */
	bool begun;			/* the thread has begun to count */
	/* Out: */
	struct tube_counts *figures;
	size_t length;
	/* The loop's own */
	struct counts_asker *askers;
	UT_hash_handle hash;
};

bool pg_job_op(struct op *op);
bool pg_count(struct counts *counts);
bool pg_put(struct op *op);
bool pg_put_all(struct op **ops, size_t count);
bool pg_delete_all(struct op **ops, size_t count);
void pg_forget_results(struct op *op);

#endif
