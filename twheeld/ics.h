/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The times of the events of a calendar in the .ics format, RFC 5545.
 */
#ifndef TWHEELD_ICS_H
#define TWHEELD_ICS_H

#include "exclusion.h"
#include "times.h"
#include "zone.h"

bool ics_read(struct times *times, const char *text, const struct zone *zone,
	      struct exclusion_error *error);

#endif
