/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The zones that a calendar in the .ics format names.
 */
#ifndef TWHEELD_ICS_ZONES_H
#define TWHEELD_ICS_ZONES_H

#include <libical/ical.h>
#include <stdbool.h>
#include <stdint.h>

#include "when/zone.h"

struct ics_zones;

struct ics_zones *ics_zones_new(void);
void ics_zones_define(struct ics_zones *zones, icalcomponent *component, int64_t *left);
const char *ics_zones_wrong(const struct ics_zones *zones, const char *name);
const struct zone *ics_zones_find(struct ics_zones *zones, const char *name);
const char *ics_misunderstood(icalcomponent *component);
void ics_zones_free(struct ics_zones *zones);

#endif
