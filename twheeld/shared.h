/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands, and all that happens by itself, with a store that other servers share: there, the
 * database says which job comes next, and what is due.
 *
 * In memory are only the jobs that clients of this server have reserved.
 */
#ifndef TWHEELD_SHARED_H
#define TWHEELD_SHARED_H

#include "conn.h"

void shared_start(struct event_base *base);
bool shared_command(struct conn *conn, const struct command *cmd);
void shared_serve(struct tube *tube);
void shared_follow(struct tube *tube);
void shared_ready(const char *name);
void shared_due(int64_t when);
void shared_tick(void);
bool shared_drain(void);
const struct histogram *shared_lateness(void);

#endif
