/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A failure reaches somebody: what became of jobs of a tube is a job of another tube, of which a
 * worker makes a mail, or whatever it likes.
 */
#ifndef TWHEELD_NOTICE_H
#define TWHEELD_NOTICE_H

#include "jobs/job.h"

struct notices;

void notice_submit(struct op *op);
void notice_missed(const char *tube, const char *schedule, int64_t time, int64_t count);
void notice_tick(void);
void notice_free(struct notices *notices);

#endif
