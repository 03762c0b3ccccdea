/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The texts of the stats commands.
 */
#ifndef TWHEELD_STATS_H
#define TWHEELD_STATS_H

#include <event2/buffer.h>

#include "tube.h"

void stats_start(int log_size);
void stats_put(void);
struct evbuffer *stats_server(void);
struct evbuffer *stats_tube(const struct tube *tube);
struct evbuffer *stats_job(const struct job *job);

#endif
