// SPDX-License-Identifier: GPL-2.0
/*
 * Says how many thousand cycles this processor's time stamp counter makes in a second.
 * An emulated one has the same counter, and a kernel in it that measures it by itself
 * can be wrong by a factor when this machine is busy.
 */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct point {
	long long ns;
	long long cycles;
};

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* One moment by both clocks: from many tries that which took least. */
static struct point look(void)
{
	struct point best = { 0 };
	long long least = 1000000000;
	int i;

	for (i = 0; i < 1000; i++) {
		long long before = now(), cycles = __rdtsc(), after = now();

		if (after - before < least) {
			least = after - before;
			best = (struct point){ before + least / 2, cycles };
		}
	}
	return best;
}

int main(void)
{
	const struct timespec wait = { 0, 100000000 };
	struct point a = look(), b;

	nanosleep(&wait, NULL);
	b = look();
	printf("%lld\n", (b.cycles - a.cycles) * 1000000 / (b.ns - a.ns));
	return 0;
}
