/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each command does.
 */
#ifndef TWHEELD_COMMAND_H
#define TWHEELD_COMMAND_H

#include "conn.h"

void command_start(uint32_t max_size);
void command_do(struct conn *conn, const struct command *cmd);
void command_body(struct conn *conn);
void command_drain(void);
bool command_draining(void);
uint32_t command_max_size(void);
uint64_t command_count(enum command_kind kind);

#endif
