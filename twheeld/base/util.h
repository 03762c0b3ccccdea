/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages, memory without which there is no way on, and what all rooms count with.
 */
#ifndef TWHEELD_UTIL_H
#define TWHEELD_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

__attribute__((format(printf, 1, 2))) void inform(const char *format, ...);
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
void *must(void *memory);
void *zalloc(size_t size);

#endif
