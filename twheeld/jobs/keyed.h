/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs with keys, of a store that is this server's alone.
 */
#ifndef TWHEELD_KEYED_H
#define TWHEELD_KEYED_H

#include "jobs/command.h"

void keyed_replace(struct op *op);
void keyed_delete(struct conn *conn, const struct command *cmd);

#endif
