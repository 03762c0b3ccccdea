/* SPDX-License-Identifier: GPL-2.0 */
/*
 * twheeld -t: a tab is read without a server.
 */
#ifndef TWHEELD_CHECK_H
#define TWHEELD_CHECK_H

#include <stdbool.h>

struct tab_host;

int check_tab(const char *path, const struct tab_host *host, int times, bool json);

#endif
