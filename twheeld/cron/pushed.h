/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tabs that are kept in the store, for all of its servers.
 */
#ifndef TWHEELD_PUSHED_H
#define TWHEELD_PUSHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pushed;

void pushed_start(void (*changed)(void));
void pushed_look(void);
int64_t pushed_version(void);
void pushed_take(const struct pushed *pushed);
const char *pushed_file(size_t at, const char **text, size_t *size);

#endif
