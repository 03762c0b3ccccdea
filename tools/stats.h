/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The forms in which stats prints what it found.
 */
#ifndef STATS_H
#define STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "counters.h"

int stats_prometheus(bool loaded, const struct counters *counters, size_t nr);

#endif /* STATS_H */
