/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window: delayed jobs that are due soon are in memory, all others in the store alone.
 */
#ifndef TWHEELD_WINDOW_H
#define TWHEELD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct job;

void window_start(void);
struct cursor window_end(void);
void window_add(struct job *job);
void window_remove(struct job *job);
size_t window_jobs(void);

#endif
