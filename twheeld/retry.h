/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What becomes of a job whose try is over, and which was not deleted.
 */
#ifndef TWHEELD_RETRY_H
#define TWHEELD_RETRY_H

#include "job.h"

void retry_start(int64_t last_burial);
int64_t retry_next_burial(void);
void retry_row(struct job *job, struct row *row);
void retry_job(struct job *job);
void retry_hand_back(struct job *job);
void retry_later(struct job *job);

#endif
