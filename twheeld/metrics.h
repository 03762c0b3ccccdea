/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the server does, over HTTP, in the text format of Prometheus.
 */
#ifndef TWHEELD_METRICS_H
#define TWHEELD_METRICS_H

struct event_base;

void metrics_start(struct event_base *base);
void metrics_add(int fd);

#endif
