/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Texts of UTF-8, of any bytes.
 */
#ifndef TWHEELD_UTF8_H
#define TWHEELD_UTF8_H

#include <stddef.h>

char *utf8_text(const char *bytes, size_t length, size_t *size);

#endif
