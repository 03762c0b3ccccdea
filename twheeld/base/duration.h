/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Times that people write: 100ms, 2s, 5min, 1h, 1d. Pure.
 */
#ifndef TWHEELD_DURATION_H
#define TWHEELD_DURATION_H

#include <stdbool.h>
#include <stdint.h>

bool duration_parse(const char *text, int64_t *ns);
bool duration_range(const char *text, int64_t *first, int64_t *last);

#endif
