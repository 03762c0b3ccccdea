/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where clients connect.
 */
#ifndef TWHEELD_LISTEN_H
#define TWHEELD_LISTEN_H

#include <stdbool.h>

struct event_base;

void listen_start(struct event_base *base, unsigned int most);
void listen_add(int fd, bool tls);
void listen_no_more(void);

#endif
