/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each command does.
 */
#ifndef TWHEELD_COMMAND_H
#define TWHEELD_COMMAND_H

#include "jobs/conn.h"

void command_start(struct event_base *base, uint32_t max_size);
void command_drain(void);
bool command_draining(void);
uint32_t command_max_size(void);
uint64_t command_count(enum command_kind kind);

/* For the commands of an engine */
void command_sorry(struct conn *conn, enum found found);
void command_write(struct conn *conn, struct job *job, enum op_kind kind,
		   const struct row *row, void (*done)(struct op *op));
void command_deleted(struct op *op);
const char *command_take_back(struct op *op);
void command_answer(struct op *op, const char *reply);
void command_again(struct conn *conn, const struct command *cmd);
void command_put_again(struct op *op);
void command_changed(struct op *op, const char *reply);
void command_delete(struct conn *conn, const struct command *cmd);
void command_touched(struct op *op);

#endif
