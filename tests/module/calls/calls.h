/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the fuzzer of the system calls share, see calls.c. What is in
 * struct shared is in memory that all processes see; the rest each has its own.
 */
#ifndef CALLS_H
#define CALLS_H

#include "device.h"

#include <pthread.h>

/* Processes that share wheels, and threads of each that make calls */
#define PROCESSES 2
#define THREADS 2
#define WORKERS (PROCESSES * THREADS)

/* In a round each worker goes through so many programs of so many calls at most */
#define PROGRAMS 8
#define CALLS 16

/*
 * Of the wheels of a round, the first are known to the model, which holds for
 * all that is done to them. What is done to the last can't be known, as memory
 * changes meanwhile: there only the kernel must stay whole, and the errors be
 * those of the contract.
 */
enum { WHEEL_A, WHEEL_B, WHEEL_COUNT, WHEEL_CHAOS, WHEELS };
#define MODELS WHEEL_CHAOS

#define TIMERS 4000		/* most in a model, so that a round ends */
#define VERSIONS 4		/* times that a timer can be armed or modified */
#define CORPUS 1024

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

/* What a timer was armed or modified with. Its events tell it by user data. */
struct version {
	__u32 state;		/* VERSION_* */
	__u32 seen;		/* an event or a query told of it */
	__u32 flags;
	__u64 deadline, interval, slack, jitter;
	__u64 before, after;	/* time of the wheel's clock around the call */
	__u64 begin, done;	/* moments around the call; done is 0 until then */
};

enum { VERSION_NONE, VERSION_TRIED, VERSION_GOOD, VERSION_FAILED };

/* What is known of a timer. Ended: read, cancelled or drained. */
struct timer {
	__u64 id;		/* as handed out, or 0 */
	__u64 seen;		/* as an event told it, or 0 */
	__u32 nr_versions;
	__u32 reads, cancels, drains;
	__u64 ending, ended;	/* moments around the call that ended it, or 0 */
	__u64 missed;		/* first moment at which there was no such timer */
	struct version versions[VERSIONS];
};

/* A drained timer of which only the id was told, and the moments around that */
struct drained {
	__u64 id, begin, end;
};

struct model {
	__u32 clock;		/* of clock_gettime(2) */
	__u32 flags;
	__u32 event_size;
	__u64 tick, limit;
	__u32 nr;		/* of the timers */
	__u32 periodic;		/* of them, ever */
	__u32 untold;		/* an event had more overruns than can be told */
	/* what the wheel's counters must say */
	__u64 armed, modified, cancelled, drained, refused, events, overruns;
	__u64 counted;		/* sum of what was read in count mode */
	__u32 nr_drained;	/* of the ids */
	struct drained ids[TIMERS];
	struct timer timers[TIMERS];
};

struct shared {
	pthread_barrier_t begin, end;
	__u32 over;		/* the last round was */
	__u32 halt;		/* end the round, a promise is broken */
	char broken[400];	/* which one */
	__u64 moment;		/* counts beginnings and ends, to order them */
	__u64 calls, rounds;
	__u64 seed;		/* of the round */
	struct program programs[WORKERS][PROGRAMS];
	const struct call *at[WORKERS];	/* where each is */
	struct model models[MODELS];

	/* what is known of programs that are worth changing */
	__u32 corpus_lock, nr_corpus;
	struct program corpus[CORPUS];
	__u8 edges[1 << 16];
	__u8 points[1 << 20];	/* those of the module that were reached */
};

extern struct shared *shared;
extern int wheels[WHEELS];	/* as this process has them */

/* calls.c */
void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool halted(void);
bool interrupted(__u32 since);
__u32 interruptions(void);
void expect_signal(bool on);
bool notified(__u32 since);
void expect_notice(void);
void signal_somebody(__u64 *seed);

static inline __u64 moment(void)
{
	return __atomic_add_fetch(&shared->moment, 1, __ATOMIC_SEQ_CST);
}

/* A number below @n, or 0 */
static inline __u64 below(__u64 *seed, __u64 n)
{
	return n ? (random_next(seed) >> 11) % n : 0;
}

static inline bool one_in(__u64 *seed, __u64 n)
{
	return !below(seed, n);
}

/* calls_model.c */

/* One operation while it is done */
struct attempt {
	struct timer *timer;	/* NULL if it is of none */
	struct version *version;
	__u64 id;		/* of the timer as it was asked for */
	__u64 begin;
	__u32 op_size;		/* how much of the operation there is */
	long error;		/* that it must give, or 0 */
};

void model_reset(struct model *m);
void model_try(struct model *m, __u64 *seed, __u32 pick, __u32 op_size,
	       struct attempt *try, struct twheel_op *op);
void model_spoil(__u64 *seed, struct attempt *try, struct twheel_op *op);
void model_result(struct model *m, struct attempt *try,
		  const struct twheel_op *op, long result);
void model_undone(struct attempt *try);
void model_read(struct model *m, const char *from, long bytes, __u64 begin);
void model_drained(struct model *m, const struct twheel_op *op, __u32 op_size,
		   __u64 begin);
void model_finish(int w);

/* calls_memory.c */

/* A piece of memory, of which the kernel can use a part at least */
struct piece {
	char *at;
	char *kept;		/* the same, or NULL if there is no memory */
	size_t size;
	size_t usable;		/* from the beginning */
	size_t page;		/* from which on it is not */
	bool readable;		/* all of it can be read at least */
	int kind, arena;
};

void memory_init(void);
struct piece memory_piece(__u64 *seed, __u8 shape, size_t size);
void memory_hide(const struct piece *piece);
void memory_show(const struct piece *piece);
void memory_check(const struct piece *piece);

void chaos_init(void);
void *chaos_place(__u64 *seed);
void *chaos_alias(void *place);
__u64 chaos_value(__u64 *seed);
void chaos_step(__u64 *seed);

/* calls_make.c */
void call_make(struct call *call);
const char *call_name(const struct call *call);

/* calls_uring.c */
void uring_read(struct model *m, int fd, __u64 *seed);
bool uring_submit(int fd, const struct twheel_submit *arg, long *ret);
void uring_leave(int fd, void *place, __u64 *seed);

/* calls_guide.c */
bool guide_init(void);
void guide_thread(void);
void guide_begin(void);
void guide_end(const struct program *program);
void guide_program(struct program *program, __u64 *seed);
void guide_report(void);

#endif
