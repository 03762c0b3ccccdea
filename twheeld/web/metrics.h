/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the server does, in the text format of Prometheus; and all tubes as JSON.
 */
#ifndef TWHEELD_METRICS_H
#define TWHEELD_METRICS_H

#include "web/http.h"

void metrics_answer(struct ask *ask);
void metrics_tubes(struct ask *ask);

#endif
