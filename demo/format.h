/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers and durations as people read them. What is given back is good until the
 * eighth call after it.
 */
#ifndef DEMO_FORMAT_H
#define DEMO_FORMAT_H

#include <linux/types.h>

/* 1234567 as "1,234,567" */
const char *number(__u64 value);

/* 1234567 as "1.2 ms" */
const char *duration(__u64 ns);

#endif
