/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many jobs a shared store has. Until the database begins to count, all equal questions become
 * one.
 */
#ifndef TWHEELD_TUBE_COUNTS_H
#define TWHEELD_TUBE_COUNTS_H

#include "store/postgres_jobs.h"

/* Part of each structure that asks, one question at a time. The loop calls @answered. */
struct counts_asker {
	void (*answered)(struct counts_asker *asker, const struct counts *counts);
	struct counts *asks;		/* the question; NULL: none */
	struct counts_asker *prev, *next;
};

void tube_counts_ask(struct counts_asker *asker, const char *tube);
void tube_counts_forget(struct counts_asker *asker);

#endif
