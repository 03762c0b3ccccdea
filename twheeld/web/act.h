/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is done by pages: a question first, and then what came of it.
 */
#ifndef TWHEELD_ACT_H
#define TWHEELD_ACT_H

#include <jansson.h>

#include "web/http.h"

struct evbuffer;

void act_link(struct ask *ask, struct evbuffer *out, const char *kind, const char *name,
	      const char *act, const char *tube);
bool act_may(struct ask *ask);
void act_ask(struct ask *ask);
void act_log(struct ask *ask);
void act_done(struct ask *ask, const json_t *json);
void act_say(struct ask *ask, struct evbuffer *out);

#endif
