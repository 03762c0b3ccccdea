/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The same random numbers in each run, whatever the guest's library: xorshift64*.
 */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t rnd(uint64_t below)
{
	static uint64_t seed = 1;

	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (__uint128_t)(seed * 0x2545f4914f6cdd1dULL) * below >> 64;
}

static inline void shuffle(uint32_t *list, size_t n)
{
	size_t i;

	for (i = n - 1; i; i--) {
		size_t j = rnd(i + 1);
		uint32_t item = list[i];

		list[i] = list[j];
		list[j] = item;
	}
}

#endif /* BENCH_RANDOM_H */
