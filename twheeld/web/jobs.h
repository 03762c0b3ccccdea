/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs by HTTP: put one or many, peek, kick, delete.
 */
#ifndef TWHEELD_WEB_JOBS_H
#define TWHEELD_WEB_JOBS_H

#include <jansson.h>

#include "web/http.h"

bool jobs_is_one(struct ask *ask);
void jobs_put(struct ask *ask);
void jobs_peek(struct ask *ask);
void jobs_peek_tube(struct ask *ask);
void jobs_kick(struct ask *ask);
void jobs_kick_tube(struct ask *ask);
void jobs_back(struct ask *ask);
void jobs_back_tube(struct ask *ask);
void jobs_peek_for(struct ask *ask, void (*got)(struct ask *ask, const json_t *answer));
void jobs_look(struct ask *ask, void (*got)(struct ask *ask, const json_t *answer));
void jobs_delete(struct ask *ask);
void jobs_delete_key(struct ask *ask);

#endif
