/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages, and memory without which there is no way on.
 */
#ifndef TWHEELD_UTIL_H
#define TWHEELD_UTIL_H

#include <stddef.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

__attribute__((format(printf, 1, 2))) void inform(const char *format, ...);
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
void *must(void *memory);
void *zalloc(size_t size);

#endif
