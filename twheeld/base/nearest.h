/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Did you mean: which of some words is so near to an unknown one that it was meant?
 */
#ifndef TWHEELD_NEAREST_H
#define TWHEELD_NEAREST_H

#include <stdbool.h>

bool nearer(const char *word, const char *known, unsigned int *distance);

#endif
