/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The folder of tabs: what schedules there are.
 */
#ifndef TWHEELD_FOLDER_H
#define TWHEELD_FOLDER_H

struct event_base;

void folder_start(struct event_base *base, const char *path, const char *node,
		  const char *site);
void folder_read_again(void (*done)(void));

#endif
