/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The times of the events of a calendar in the .ics format, RFC 5545.
 */
#ifndef TWHEELD_ICS_H
#define TWHEELD_ICS_H

#include "when/dates_error.h"
#include "when/spans.h"
#include "when/zone.h"

bool ics_read(struct spans *times, const char *text, const struct zone *zone,
	      struct dates_error *error);

#endif
