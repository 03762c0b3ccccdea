/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Questions to a shared store that may take long, or are in no hurry.
 */
#ifndef TWHEELD_POSTGRES_ASK_H
#define TWHEELD_POSTGRES_ASK_H

struct op;
struct runs_asked;

void pg_ask_start(void);
void pg_ask(struct op *op);
void pg_ask_runs(struct runs_asked *asked);

#endif
