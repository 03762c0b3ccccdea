/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory without which there is no way on. What is reserved goes back to the server when
 * this ends.
 */
#ifndef TWHEEL_RUN_MUST_H
#define TWHEEL_RUN_MUST_H

#include <err.h>
#include <stdlib.h>

static inline void *must(void *memory)
{
	if (!memory)
		errx(1, "out of memory");
	return memory;
}

#endif
