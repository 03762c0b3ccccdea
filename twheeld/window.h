/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window: delayed jobs that are due soon are in memory, all others in the store alone.
 */
#ifndef TWHEELD_WINDOW_H
#define TWHEELD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

void window_start(void);
bool window_holds(int64_t due);
struct cursor window_end(void);
void window_grew(void);
void window_shrank(void);

#endif
