/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a page for browsers shows of the server, as JSON: one snapshot a second at most.
 */
#ifndef TWHEELD_STATUS_H
#define TWHEELD_STATUS_H

#include "web/http.h"

struct event_base;

void status_start(struct event_base *base);
void status_wait(struct ask *ask, void (*how)(struct ask *ask));
const json_t *status_made(void);
void status_answer(struct ask *ask);
void status_servers(struct ask *ask);

#endif
