/* SPDX-License-Identifier: GPL-2.0 */
/* How a schedule is: does it need somebody? */
#ifndef TWHEELD_HOW_H
#define TWHEELD_HOW_H

#include "cron/schedule.h"

/* From bad to good */
enum how { HOW_FAILED, HOW_MISSED, HOW_LATE, HOW_PAUSED, HOW_FINE, HOWS };

extern const char *const how_words[HOWS];

int64_t how_next(const struct schedule *schedule);
enum how how_is(const struct schedule *schedule, int64_t now);
void how_take(struct schedule *const *schedules, const struct runs_asked *asked);

#endif
