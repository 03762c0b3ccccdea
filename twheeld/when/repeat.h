/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On which days a rule of RFC 5545 falls, by days, weeks, months or years.
 */
#ifndef TWHEELD_REPEAT_H
#define TWHEELD_REPEAT_H

#include <libical/ical.h>
#include <stdbool.h>
#include <stdint.h>

/* The most days that are looked at, for all rules of a file: about a second */
#define REPEAT_DAYS_MOST 20000000

const char *repeat_check(const struct icalrecurrencetype *rule);
bool repeat_each(const struct icalrecurrencetype *rule, int64_t start, int64_t last,
		 int64_t *left, bool (*each)(void *arg, int64_t day), void *arg);

#endif
