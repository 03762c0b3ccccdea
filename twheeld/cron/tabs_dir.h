/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The folder of tabs.
 */
#ifndef TWHEELD_TABS_DIR_H
#define TWHEELD_TABS_DIR_H

struct event_base;
struct tab_host;

void tabs_dir_start(struct event_base *base, const char *path, const struct tab_host *host);
void tabs_dir_read_again(void (*done)(void));

#endif
