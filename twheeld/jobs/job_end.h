/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a try of a job that was not deleted.
 */
#ifndef TWHEELD_JOB_END_H
#define TWHEELD_JOB_END_H

#include "jobs/job.h"

void job_end_start(int64_t last_burial);
int64_t job_next_burial(void);
void job_end_row(struct job *job, struct row *row);
void job_end_try(struct job *job);
void job_hand_back(struct job *job);
void job_end_later(struct job *job);
void job_end_expired(struct job *job);
uint64_t job_timeouts(void);

#endif
