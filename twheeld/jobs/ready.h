/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs of a tube that are ready, of a store that is this server's alone.
 */
#ifndef TWHEELD_READY_H
#define TWHEELD_READY_H

#include "jobs/tube.h"

void ready_load(const struct store_tube *stored);
struct job *ready_first(struct tube *tube);
bool ready_unsure(const struct tube *tube);
void ready_add(struct tube *tube, struct job *job);
void ready_remove(struct tube *tube, struct job *job);

#endif
