/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many jobs a shared store has. All who ask the same while nobody has begun to count have the
 * same answer.
 */
#ifndef TWHEELD_TUBE_COUNTS_H
#define TWHEELD_TUBE_COUNTS_H

#include <uthash.h>

#include "store/commit.h"

/* How many jobs a tube has in all of a shared store */
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
	char tube[TUBE_NAME_MAX + 1];	/* the one; "": all */
	bool begun;			/* by the thread that counts */
	/* Out: */
	struct tube_counts *figures;
	size_t length;
	/* The loop's own */
	struct counts_asker *askers;
	UT_hash_handle hash;
};

/* Who asks: for one thing at a time. It is part of what is @told the answer, by the loop. */
struct counts_asker {
	void (*told)(struct counts_asker *asker, const struct counts *counts);
	struct counts *asks;		/* NULL: nothing */
	struct counts_asker *prev, *next;
};

void tube_counts_ask(struct counts_asker *asker, const char *tube);
void tube_counts_forget(struct counts_asker *asker);

#endif
