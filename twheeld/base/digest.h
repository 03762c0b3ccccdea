/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Digests that servers which share a database compare: the same with every byte order. Pure.
 */
#ifndef TWHEELD_DIGEST_H
#define TWHEELD_DIGEST_H

#include <stddef.h>
#include <stdint.h>

int64_t digest_text(const char *text, int64_t more);
int64_t digest_numbers(const void *numbers, size_t bytes);

#endif
