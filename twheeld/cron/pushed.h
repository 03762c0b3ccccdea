/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tabs that are kept in the store, for all of its servers.
 */
#ifndef TWHEELD_PUSHED_H
#define TWHEELD_PUSHED_H

#include <stdbool.h>
#include <stddef.h>

void pushed_start(void (*changed)(void));
void pushed_look(void);
void pushed_take(const char *text, size_t size);
const char *pushed_file(size_t at, const char **text, size_t *size);

#endif
