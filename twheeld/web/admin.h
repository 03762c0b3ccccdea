/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The admin socket: what schedules there are and what they did, and pause, resume, run and
 * backfill. Who asks is twheel-jobs(1), which says what stands in the lines.
 */
#ifndef TWHEELD_ADMIN_H
#define TWHEELD_ADMIN_H

#include <stdint.h>

struct event_base;

void admin_start(struct event_base *base, const char *path, int64_t history);

#endif
