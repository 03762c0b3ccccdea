/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the server does, in the text format of Prometheus.
 */
#ifndef TWHEELD_METRICS_H
#define TWHEELD_METRICS_H

struct evhttp_request;

void metrics_answer(struct evhttp_request *request);

#endif
