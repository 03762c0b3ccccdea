/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What fuzzed programs of user space share: what must be so, and an input just as long as it
 * is, so that a byte beyond it is seen to be read.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(cond) do {							\
	if (!(cond)) {								\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		abort();							\
	}									\
} while (0)

static inline char *exact_copy(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);

	EXPECT(copy);
	memcpy(copy, data, size);
	return copy;
}

/* -Dfuzz_one_input=LLVMFuzzerTestOneInput gives it the name that libFuzzer calls. */
int fuzz_one_input(const uint8_t *data, size_t size);

#endif
