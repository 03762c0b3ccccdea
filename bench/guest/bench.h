/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a kind of kernel timer is measured: what a peer has to be able to do.
 *
 * The programs run in a guest in which one instruction takes 1 ns (scripts/vm -i),
 * so that a clock counts instructions, and the same number comes out on every run.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Operations between two readings of the clock, and events in a read. */
#define BATCH 256

#define MS 1000000ULL
#define SECOND 1000000000ULL

enum operation { ARM, MODIFY, CANCEL };

/**
 * struct peer - a kind of timer; timers are numbered from 0
 * @name: as printed
 * @batch: operations in a system call
 * @whole: with more timers than this, a sample of them stands for all of them
 * @open: make ready for @timers; @deliver: their expiry is to be collected
 * @create, @destroy: what a timer needs before it can be armed; NULL: nothing
 * @prepare: get up to %BATCH operations ready, with times in ns, absolute or
 *	relative; not measured
 * @submit: do what was prepared
 * @submit_nothing: the same but for the operations: where a few instructions count,
 *	this loop is taken off, and what @submit does for none; else NULL
 * @rest: the same in the quickest way, for what is not measured; NULL: no other
 * @check: end the program if one of them failed; not measured
 * @collect: get up to %BATCH expiries, without waiting; returns how many
 * @collect_nothing: nothing, with @submit_nothing: the call that is taken off
 * @check_collected: tell note_expiry() of each; not measured
 * @close: give all back
 * @calls: with @submit_nothing: how many system calls there were
 * @inside: with @submit_nothing: instructions that they took
 */
struct peer {
	const char *name;
	unsigned int batch;
	size_t whole;
	void (*open)(size_t timers, bool deliver);
	void (*create)(size_t first, unsigned int n);
	void (*destroy)(size_t first, unsigned int n);
	void (*prepare)(enum operation op, const uint32_t *timer,
			const uint64_t *time, bool absolute, unsigned int n);
	void (*submit)(unsigned int n);
	void (*submit_nothing)(unsigned int n);
	void (*rest)(unsigned int n);
	void (*check)(unsigned int n);
	unsigned int (*collect)(void);
	void (*collect_nothing)(unsigned int n);
	void (*check_collected)(unsigned int n);
	void (*close)(void);
	const uint64_t *calls;
	const uint64_t *inside;
};

/* A word for each timer, for the peer. */
extern uint64_t *handle;

uint64_t now(void);
void note_expiry(size_t timer, uint64_t when);
int bench(const struct peer *peer, int argc, char **argv);

#endif /* BENCH_H */
