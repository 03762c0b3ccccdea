/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An edition of the core that is measured: what each of them, in a shared object of its
 * own, shows to main.c. Calls are of a batch each, so that what is between costs nothing.
 *
 * What earlier commits have in the place of twheel.c is compiled with this header, too: so
 * no field goes.
 */
#ifndef EDITION_H
#define EDITION_H

#include <stddef.h>
#include <stdint.h>

/* Length of a tick, in ns */
#define TICK_NS 4000000LL

/* Operations in a batch, and events that are taken out at a time */
#define BATCH 256
#define EVENTS 24

/**
 * struct bench_op - an operation, with the fields of the module's where these are
 * @what: what an operation of the module has besides
 * @id: in, of arm() out: the timer
 * @deadline: in ns
 * @user_data: handed back with its event
 */
struct bench_op {
	uint64_t what;
	uint64_t id;
	int64_t deadline;
	uint64_t user_data;
};

/**
 * struct bench_event - an event, as long as the module's, which nobody reads
 * @user_data: of the timer
 * @id: of the timer
 * @deadline: of the timer
 * @rest: 0
 */
struct bench_event {
	uint64_t user_data;
	uint64_t id;
	int64_t deadline;
	uint64_t rest;
};

/**
 * struct edition - what main.c calls
 * @name: where something failed
 * @open: make it, for this many timers, at time 0
 * @arm: arm timers
 * @modify: give them other deadlines
 * @cancel: end them
 * @expire: it is so late now, in ns: let expire what is due, take out all of it, and
 *	return how much that was
 * @close: what has to be done before its memory is used anew; NULL: nothing
 *
 * All memory comes from @alloc, which is main.c's: huge pages, and zeros.
 */
struct edition {
	const char *name;
	void (*open)(size_t timers);
	void (*arm)(struct bench_op *ops, unsigned int nr);
	void (*modify)(struct bench_op *ops, unsigned int nr);
	void (*cancel)(struct bench_op *ops, unsigned int nr);
	size_t (*expire)(int64_t now);
	void (*close)(void);
	void *(*alloc)(size_t bytes, size_t align);
};

__attribute__((visibility("default"))) struct edition *bench_edition(void);

#endif /* EDITION_H */
