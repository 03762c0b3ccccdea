/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A failure reaches somebody: what became of jobs of a tube, or of a schedule, is a job of another
 * tube, of which a worker makes a mail, or whatever it likes.
 */
#ifndef TWHEELD_NOTICE_H
#define TWHEELD_NOTICE_H

#include "base/news.h"
#include "jobs/job.h"

/* A schedule, and the tubes that learn of it, each a name or NULL */
struct notice_schedule {
	const char *name, *tube, *mailto;
	const char *tells[NEWS_KINDS];
};

/* Set by those who know schedules: finds the one of a number; false: no tab has it */
extern bool (*notice_find)(int64_t id, struct notice_schedule *found);

void notice_submit(struct op *op);
struct op *notice_missed(const struct notice_schedule *schedule, int64_t time, int64_t count,
			 unsigned int *told);
void notice_missed_later(const struct notice_schedule *schedule, int64_t time, int64_t count,
			 unsigned int told);
void notice_end(struct op *put, bool failed);
void notice_late(const struct notice_schedule *schedule, int64_t id, int64_t time, int64_t count);
void notice_tick(bool ending);

#endif
