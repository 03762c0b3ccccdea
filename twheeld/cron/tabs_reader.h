/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A reading of all tabs.
 */
#ifndef TWHEELD_TABS_READER_H
#define TWHEELD_TABS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct tab_host;

void tabs_reader_start(struct event_base *base, const char *path, const struct tab_host *for_host);
void tabs_reader_in_slices(void);
bool tabs_reader_begin(void (*done)(bool stays));
bool tabs_reader_goes_on(void);
bool tabs_reader_is_tab(const char *name);
int64_t tabs_reader_took(void);
size_t tabs_reader_wrong(void);
const char *tabs_reader_wrong_line(size_t i);

#endif
