/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a peer and main.c share: a clock that stands still, a stopwatch, and what a peer has
 * to be able to do.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS 1000000ULL
#define SECOND 1000000000ULL

enum operation {
	ARM, MODIFY_LATER, MODIFY_EARLIER, CANCEL, EXPIRE_READ, CONNECTION, OPERATIONS
};

/**
 * struct peer - a kind of timer
 * @name: as printed
 * @bytes: of a timer, where the program has it
 * @open: make ready for @timers
 * @uniform: do each operation on all of them; NULL: it can't
 * @connections: let each be the timeout of a connection
 */
struct peer {
	const char *name;
	size_t bytes;
	void (*open)(size_t timers);
	void (*uniform)(void);
	void (*connections)(void);
};

extern const struct peer peer;

/* What clock_gettime() says to everybody in the program, in ns. */
extern uint64_t now;

/* The timers in a random order, see shuffle(). */
extern uint32_t *order;

/* Is it instructions, of which those of the program's own loops are taken off? */
extern bool counting;

void begin(void);
void end(enum operation op);
void take_off(enum operation op);
uint64_t rnd(uint64_t below);
void shuffle(void);
void *array(size_t n, size_t size);

#endif /* BENCH_H */
