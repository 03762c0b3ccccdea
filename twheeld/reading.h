/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reading of all tabs.
 */
#ifndef TWHEELD_READING_H
#define TWHEELD_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct tab_host;

void reading_start(struct event_base *base, const char *path, const struct tab_host *for_host);
void reading_in_slices(void);
bool reading_begin(void (*done)(bool stays));
bool reading_goes_on(void);
bool reading_is_tab(const char *name);
int64_t reading_took(void);
size_t reading_wrong(void);

#endif
