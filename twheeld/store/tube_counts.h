/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many jobs a shared store has. All who ask the same while nobody has begun to count have the
 * same answer.
 */
#ifndef TWHEELD_TUBE_COUNTS_H
#define TWHEELD_TUBE_COUNTS_H

#include "store/postgres_jobs.h"

/* Who asks: for one thing at a time. It is part of what is @told the answer, by the loop. */
struct counts_asker {
	void (*told)(struct counts_asker *asker, const struct counts *counts);
	struct counts *asks;		/* NULL: nothing */
	struct counts_asker *prev, *next;
};

void tube_counts_ask(struct counts_asker *asker, const char *tube);
void tube_counts_forget(struct counts_asker *asker);

#endif
