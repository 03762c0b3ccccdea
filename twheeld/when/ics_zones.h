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

/* The first property of a kind that a component has, and the next one; NULL: there is none */
static inline icalproperty *ics_first(icalcomponent *component, icalproperty_kind kind)
{
	return icalcomponent_get_first_property(component, kind);
}

static inline icalproperty *ics_next(icalcomponent *component, icalproperty_kind kind)
{
	return icalcomponent_get_next_property(component, kind);
}

struct ics_zones *ics_zones_new(void);
void ics_zones_define(struct ics_zones *zones, icalcomponent *component, int64_t *left);
const char *ics_zones_wrong(const struct ics_zones *zones, const char *name);
const struct zone *ics_zones_find(struct ics_zones *zones, const char *name);
int64_t ics_clock(struct icaltimetype time);
const char *ics_misunderstood(icalcomponent *component);
void ics_zones_free(struct ics_zones *zones);

#endif
