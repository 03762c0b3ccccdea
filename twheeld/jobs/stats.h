/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The texts of the stats commands.
 */
#ifndef TWHEELD_STATS_H
#define TWHEELD_STATS_H

#include <event2/buffer.h>

#include "jobs/protocol.h"
#include "jobs/tube.h"
#include "store/tube_counts.h"

/* Commands that are counted, in beanstalkd's order */
#define STATS_COMMANDS 22

struct stats_command {
	const char *key;
	enum command_kind kind;
};

extern const struct stats_command stats_commands[STATS_COMMANDS];

void stats_start(int log_size);
int64_t stats_started(void);
struct evbuffer *stats_server(const int64_t *count, int64_t urgent, size_t tubes);
struct evbuffer *stats_tube(const struct tube *tube, const struct tube_counts *counts);
struct evbuffer *stats_job(const struct job *job);

#endif
