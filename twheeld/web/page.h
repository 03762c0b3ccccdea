/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages for people: what needs somebody, all schedules, tubes, servers; a schedule, and a tube.
 */
#ifndef TWHEELD_PAGE_H
#define TWHEELD_PAGE_H

#include "web/http.h"

struct event_base;

void page_start(struct event_base *base);
void page_home(struct ask *ask);
void page_schedule(struct ask *ask);
void page_job(struct ask *ask);
void page_tube(struct ask *ask);

#endif
