/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which schedule comes after which: AFTER= of a tab. Pure.
 */
#ifndef TWHEELD_AFTER_H
#define TWHEELD_AFTER_H

#include <stdbool.h>
#include <stddef.h>

bool after_circle(const char *name, const char *after,
		  const char *(*after_of)(void *arg, const char *name), void *arg, char *why,
		  size_t room);

#endif
