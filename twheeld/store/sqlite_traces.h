/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is written to jobs.db of tries, and of what somebody did.
 */
#ifndef TWHEELD_SQLITE_TRACES_H
#define TWHEELD_SQLITE_TRACES_H

#include "store/commit.h"

struct sqlite3;

void traces_start(struct sqlite3 *db);
void traces_begin(void);
void traces_add(const struct op *op);
bool traces_write(void);
bool traces_prune(uint32_t *pruned);

#endif
