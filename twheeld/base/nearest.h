/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Did you mean: which known word is near enough to an unknown one?
 */
#ifndef TWHEELD_NEAREST_H
#define TWHEELD_NEAREST_H

#include <stdbool.h>

bool nearer(const char *word, const char *known, unsigned int *distance);

#endif
