/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the fuzzer of the system calls share, see calls.c. What is in
 * struct shared is in memory that all processes see; the rest each has its own.
 */
#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>

void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool halted(void);

#define MODEL_BROKEN
#include "model.h"
#include "random_ops.h"

#include <pthread.h>

/* Processes that share wheels, and threads of each that make calls */
#define PROCESSES 2
#define THREADS 2
#define WORKERS (PROCESSES * THREADS)

/* The most programs that a worker goes through in a round, and calls of each */
#define PROGRAMS 8
#define CALLS 16

/*
 * The model knows the first wheels of a round, which holds for
 * all that is done to them. What is done to the last can't be known, as memory
 * changes meanwhile: there only the kernel must stay whole, and the errors be
 * those of the contract.
 */
enum { WHEEL_A, WHEEL_B, WHEEL_COUNT, WHEEL_CHAOS, WHEELS };
#define MODELS WHEEL_CHAOS

/* One call: what to do, and from what to make it up */
struct call {
	__u8 kind;
	__u8 wheel;
	__u8 shape;		/* how its memory lies */
	__u8 nr;		/* how many elements */
	__u32 pick;		/* which timers */
	__u64 seed;		/* for all else */
};

struct program {
	__u32 nr;
	struct call calls[CALLS];
};

struct shared {
	pthread_barrier_t begin, end;
	__u32 over;		/* the last round was */
	__u32 halt;		/* end the round, a promise is broken */
	char broken[400];	/* which one */
	__u64 calls, rounds;
	__u64 seed;		/* of the round */
	struct program programs[WORKERS][PROGRAMS];
	const struct call *at[WORKERS];	/* where each is */
	struct model models[MODELS];
	__u8 points[1 << 20];	/* trace points of the module that were reached */
};

extern struct shared *shared;
extern int wheels[WHEELS];	/* as this process has them */

/* calls.c */
void signal_somebody(__u64 *seed);

/* calls_memory.c */
void chaos_init(void);
void *chaos_place(__u64 *seed);
void *chaos_alias(void *place);
__u64 chaos_value(__u64 *seed);
void chaos_step(__u64 *seed);

/* calls_make.c */
void calls_thread(void);
void expect_notice(void);
void call_make(struct call *call);
const char *call_name(const struct call *call);

/* calls_uring.c */
void uring_read(struct model *m, int fd, __u64 *seed);
bool uring_submit(int fd, const struct twheel_submit *arg, long *ret);
void uring_leave(int fd, void *place, __u64 *seed);

/* calls_reach.c */
void reach_init(void);
void reach_thread(void);
void reach_begin(void);
void reach_end(void);
void reach_report(void);

#endif
