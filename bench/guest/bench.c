// SPDX-License-Identifier: GPL-2.0
/*
 * What is done with every kind of timer, in the same order, and counted.
 *
 * usage: PEER uniform|connections|memory TIMERS...
 */
#define _GNU_SOURCE
#include "bench.h"
#include "../random.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A jiffy of Debian's kernels, and how many timers expire in each. */
#define TICK (4 * MS)
#define DENSITY 256

/* Ticks between two times of collecting, so that buffers are full. */
#define SLICE (64 * TICK)

/* Timers that stand for all, where all would take hours. */
#define SAMPLE 2048

/* Everything is done with a small number of timers as often as makes this many. */
#define REPEAT 16384

/*
 * What a timer's expiry costs depends on where its deadline lies in the slots of a wheel, the
 * widest of which, but for those that come hours later, is this long. So timers expire that
 * many times, at times that are evenly spread over it: often where they are few, as what
 * else a kernel does weighs most there.
 */
#define TURN (256 * TICK)
#define TURNS_OF_FEW 64
#define TURNS_OF_MANY 4
#define MANY 100000

/* Full batches that are enough to know what one costs. */
#define BATCHES 1024

/* How far ahead timers are armed that are to expire. */
#define LEAD SECOND

/* A connection: what its timeout is, how often and how often again it is pushed. */
#define TIMEOUT (60 * SECOND)
#define PUSHES 20
#define PUSH_EVERY (5 * SECOND)
#define EXPIRES_ONE_IN 20	/* the others are cancelled */

uint64_t *handle;

static const struct peer *peer;
static uint32_t *order;
static uint64_t *deadline;
static bool *waiting;
static size_t timers, left;
static double base;
static uint64_t reading;	/* what it takes to look at the clock */
/* How many of the instructions that were measured were a program's own */
static double submitting, collecting;
/* What full batches took of a program's own. */
static int64_t batches[BATCHES];
static size_t nr_batches;

uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/*
 * Run for @ns, which is at least that long by the clock: what interrupts and
 * others take comes on top, and that is how it is seen. Of instructions that do
 * nothing, because the emulator skips them in no time. Returns how many.
 */
static uint64_t spin(uint64_t ns)
{
	uint64_t turns = ns / 512;
	uint64_t spun = turns * 512;

	if (turns)
		asm volatile("1: .rept 510\n\tnop\n\t.endr\n\tdec %0\n\tjnz 1b"
			     : "+r"(turns) : : "cc");
	return spun;
}

/* How much longer than its instructions a program runs without any timer, for @ns. */
static void measure_base(uint64_t ns)
{
	uint64_t start = now();
	uint64_t spun = spin(ns);

	base = (double)(now() - start) / spun;
}

static void calibrate(void)
{
	uint64_t start, spun;
	int i;

	/* What is left of whoever ran before. */
	spin(2 * SECOND);
	measure_base(64 * SECOND);

	reading = UINT64_MAX;
	for (i = 0; i < 100; i++) {
		start = now();
		spin(0);
		spun = now() - start;
		reading = spun < reading ? spun : reading;
	}
}

static void spin_until(uint64_t when)
{
	uint64_t at;

	while ((at = now()) < when)
		spin(when - at);
}

/*
 * Begin within a tick: each measurement at the same time after it, or those that have one
 * interrupt of the kernel's clock more would differ.
 */
static void spin_into_tick(void)
{
	spin_until(now() / TICK * TICK + TICK + TICK / 4);
}

/* Spin; returns the instructions that others took, beyond those without timers. */
static double taken(uint64_t ns)
{
	uint64_t start = now();
	uint64_t spun = spin(ns);

	return (now() - start - reading) / base - spun;
}

static void print(const char *operation, const char *metric, double value)
{
	printf("{\"peer\":\"%s\",\"operation\":\"%s\",\"timers\":%zu,\"batch\":%u,",
	       peer->name, operation, timers, peer->batch);
	printf("\"metric\":\"%s\",\"value\":%.*f}\n", metric, value < 10 ? 2 : 1, value);
}

static unsigned int batch_at(size_t i, size_t n)
{
	return n - i < BATCH ? n - i : BATCH;
}

static __attribute__((noinline)) uint64_t clocked(void (*act)(unsigned int n), unsigned int n)
{
	uint64_t start = now();

	act(n);
	return now() - start;
}

/*
 * What a program does around @n operations: once for all of them, as is seen when
 * there are none, and for each.
 */
static int64_t clocked_around(unsigned int n)
{
	return clocked(peer->submit, 0) + clocked(peer->submit_nothing, n) -
	       clocked(peer->submit_nothing, 0);
}

/* Twice, as an interrupt that falls into it is not to be taken off. */
static int64_t around(unsigned int n)
{
	int64_t first = clocked_around(n), second = clocked_around(n);

	return first < second ? first : second;
}

static void note_batch(unsigned int n, int64_t took)
{
	if (n == BATCH && nr_batches < BATCHES)
		batches[nr_batches++] = took;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * What @n cost of which the batches were noted, or @all where none was full: in the
 * median, as an interrupt of the timer takes more than a batch does, is not the
 * program's own, and falls into some of them.
 */
static double own(size_t n, double all)
{
	if (!nr_batches)
		return all;
	qsort(batches, nr_batches, sizeof(*batches), compare);
	return (double)batches[nr_batches / 2] * n / BATCH;
}

/* Do an operation on up to BATCH timers; returns the instructions of all. */
static int64_t submit(enum operation op, const uint32_t *list, const uint64_t *time,
		      bool absolute, unsigned int n, bool measured)
{
	int64_t took;

	peer->prepare(op, list, time, absolute, n);
	took = clocked(measured || !peer->rest ? peer->submit : peer->rest, n);
	if (measured && peer->submit_nothing)
		took -= around(n);
	peer->check(n);
	return took;
}

/*
 * Do an operation on @n timers, with times uniform from @from to twice that;
 * returns the instructions of each.
 */
static double run(enum operation op, const uint32_t *list, size_t n, uint64_t from,
		  bool measured)
{
	uint64_t time[BATCH];
	unsigned int batch, j;
	int64_t took, all = 0;
	size_t i;

	nr_batches = 0;
	for (i = 0; i < n; i += batch) {
		batch = batch_at(i, n);
		for (j = 0; j < batch; j++)
			time[j] = from + rnd(from);
		took = submit(op, list + i, time, false, batch, measured);
		if (peer->submit_nothing)
			note_batch(batch, took);
		all += took;
	}
	return own(n, all) / n;
}

/*
 * Create or destroy all timers; returns the instructions of each, with those that
 * the kernel puts off.
 */
static double each(void (*act)(size_t first, unsigned int n))
{
	uint64_t start = now(), took;
	unsigned int batch;
	size_t i;

	if (!act)
		return 0;
	for (i = 0; i < timers; i += batch) {
		batch = batch_at(i, timers);
		act(i, batch);
	}
	took = now() - start;
	return (took + taken(SECOND)) / timers;
}

/* Once unmeasured, so that all memory is there, where it is not from the start. */
static void warm_up(void)
{
	if (peer->submit_nothing)
		return;
	run(ARM, order, timers, 100 * SECOND, false);
	run(CANCEL, order, timers, 0, false);
}

void note_expiry(size_t timer, uint64_t when)
{
	if (timer >= timers || !waiting[timer])
		errx(1, "timer %zu expired unasked", timer);
	if (when < deadline[timer])
		errx(1, "timer %zu expired %lu ns early", timer, deadline[timer] - when);
	waiting[timer] = false;
	left--;
}

static int64_t collect(void)
{
	int64_t took = 0, batch;
	uint64_t start;
	unsigned int n;

	do {
		start = now();
		n = peer->collect();
		batch = now() - start;
		if (peer->collect_nothing)
			batch -= clocked(peer->collect_nothing, n);
		note_batch(n, batch);
		took += batch;
		peer->check_collected(n);
	} while (n == BATCH);
	collecting += took;
	return took;
}

/*
 * Run until all timers that are waited for have expired, from @begin to soon after
 * @end, and are collected; returns the instructions of all of that.
 */
static double collect_all(uint64_t begin, uint64_t end)
{
	double cost = taken(begin - now());

	while (left) {
		uint64_t start = now(), slice = TICK;

		if (start + slice < end)
			slice = end - start < SLICE ? end - start : SLICE;
		else if (start > end + SECOND)
			errx(1, "%zu of %zu timers did not expire", left, timers);
		cost += taken(slice);
		cost += collect();
	}
	return cost;
}

/*
 * Let all timers expire, some of them in each tick, @phase after the turn of a wheel; returns
 * the instructions of all. What the kernel does without timers is measured just before, as it
 * becomes less in the first minutes of a machine.
 */
static double expire(uint64_t phase)
{
	uint64_t range = timers * TICK / DENSITY, from;
	uint64_t time[BATCH];
	unsigned int batch, j;
	size_t i;

	spin_until(now() / TURN * TURN + TURN + phase);
	spin_into_tick();
	measure_base(TURN);
	from = (now() + LEAD + timers * 6000) / TICK * TICK;
	for (i = 0; i < timers; i += batch) {
		batch = batch_at(i, timers);
		for (j = 0; j < batch; j++) {
			time[j] = from + rnd(range);
			deadline[order[i + j]] = time[j];
			waiting[order[i + j]] = true;
		}
		left += batch;
		submit(ARM, order + i, time, true, batch, false);
	}
	if (now() > from)
		errx(1, "arming took longer than expected");
	spin_into_tick();
	return collect_all(from, from + range + 2 * TICK);
}

/* What the operations cost, in instructions; added up over the rounds. */
struct costs {
	double create, arm, later, earlier, cancel, destroy;
};

/* All operations once, with @n of the timers to stand for all. */
static void add_costs(struct costs *sum, size_t n)
{
	uint32_t *sample = order + timers - n;

	sum->create += each(peer->create);
	run(ARM, order, timers - n, 100 * SECOND, false);
	sum->arm += run(ARM, sample, n, 100 * SECOND, true);
	/* Each time others, so that none has a place of its own in some list. */
	shuffle(order, timers);
	sum->later += run(MODIFY, sample, n, 200 * SECOND, true);
	shuffle(order, timers);
	sum->earlier += run(MODIFY, sample, n, 50 * SECOND, true);
	shuffle(order, timers);
	sum->cancel += run(CANCEL, sample, n, 0, true);
	sum->destroy += each(peer->destroy);
}

static size_t repetitions(void)
{
	return timers < REPEAT ? REPEAT / timers : 1;
}

static void operations(void)
{
	size_t n = timers <= peer->whole ? timers : SAMPLE;
	size_t i, rounds = repetitions();
	struct costs sum = { 0 };

	peer->open(timers, false);
	each(peer->create);
	warm_up();
	each(peer->destroy);
	for (i = 0; i < rounds; i++)
		add_costs(&sum, n);
	peer->close();

	if (peer->create) {
		print("create", "instructions", sum.create / rounds);
		print("close", "instructions", sum.destroy / rounds);
	}
	print("arm", "instructions", sum.arm / rounds);
	print("modify_later", "instructions", sum.later / rounds);
	print("modify_earlier", "instructions", sum.earlier / rounds);
	print("cancel", "instructions", sum.cancel / rounds);
}

static void expiry(void)
{
	size_t i, rounds = timers > MANY ? 1 : timers > REPEAT ? TURNS_OF_MANY : TURNS_OF_FEW;
	double sum = 0;

	peer->open(timers, true);
	each(peer->create);
	warm_up();
	collecting = 0;
	nr_batches = 0;
	for (i = 0; i < rounds; i++)
		sum += expire(TURN / rounds * i);
	each(peer->destroy);
	peer->close();
	print("expire_read", "instructions", sum / rounds / timers);
	if (peer->collect_nothing)
		print("take", "instructions",
		      own(1, collecting / rounds / timers));
}

static void uniform(void)
{
	operations();
	if (peer->collect)
		expiry();
}

static uint64_t calls_took(void)
{
	return peer->inside ? *peer->inside : 0;
}

/*
 * One operation for each connection, spread over the time until the next one;
 * returns the instructions, and those of what happened in between.
 */
static double push_all(enum operation op, const uint32_t *list, size_t n)
{
	uint64_t begin = now(), time[BATCH];
	double cost = 0, all = 0;
	unsigned int batch, j;
	size_t i;

	nr_batches = 0;
	for (i = 0; i < BATCH; i++)
		time[i] = TIMEOUT;
	for (i = 0; i < n; i += batch) {
		uint64_t due = begin + PUSH_EVERY * i / n, inside, end;
		int64_t took;

		if (now() < due)
			cost += taken(due - now());
		batch = batch_at(i, n);
		end = now() + TIMEOUT;
		for (j = 0; j < batch; j++)
			deadline[list[i + j]] = end;
		inside = calls_took();
		took = submit(op, list + i, time, false, batch, true);
		cost += took;
		took -= calls_took() - inside;
		note_batch(batch, took);
		all += took;
	}
	/* The last batch may meet an interrupt. */
	if (now() > begin + PUSH_EVERY + TICK)
		errx(1, "%s with %zu timers: slower than the connections", peer->name, n);
	if (now() < begin + PUSH_EVERY)
		cost += taken(begin + PUSH_EVERY - now());
	submitting += own(n, all);
	return cost;
}

/* Move timers that are cancelled to the front; returns how many. */
static size_t choose_cancelled(void)
{
	size_t i, n = 0;

	for (i = 0; i < timers; i++) {
		uint32_t timer = order[i];

		if (timer % EXPIRES_ONE_IN) {
			order[i] = order[n];
			order[n++] = timer;
		} else {
			waiting[timer] = true;
			left++;
		}
	}
	return n;
}

/* Every connection lives once; returns the instructions of a life. */
static double lives(void)
{
	double cost;
	uint64_t begin;
	size_t i, n;

	cost = push_all(ARM, order, timers);
	for (i = 0; i < PUSHES; i++) {
		shuffle(order, timers);
		begin = now();
		cost += push_all(MODIFY, order, timers);
	}
	n = choose_cancelled();
	cost += push_all(CANCEL, order, n);
	collecting = 0;
	nr_batches = 0;
	cost += collect_all(begin + TIMEOUT, now() + TIMEOUT);
	collecting = own(timers - n, collecting);
	return cost / timers;
}

/* What of all that was the application's own, where it is not all system calls. */
static void print_parts(double cost, uint64_t calls)
{
	double part = (submitting + collecting) / timers;
	double ops = timers * (PUSHES + 2.0) - timers / EXPIRES_ONE_IN;

	print("connection", "own_instructions", part);
	print("connection", "kernel_instructions", cost - part);
	print("connection", "calls_per_10000", calls * 10000 / ops);
}

static void connections(void)
{
	uint64_t calls = 0;
	double cost;

	peer->open(timers, true);
	each(peer->create);
	warm_up();
	submitting = 0;
	if (peer->calls)
		calls = *peer->calls;
	cost = lives();
	if (peer->calls)
		calls = *peer->calls - calls;
	each(peer->destroy);
	peer->close();
	print("connection", "instructions", cost);
	if (peer->calls)
		print_parts(cost, calls);
}

/* The sum of a field's values, where it stands alone at the start of a line. */
static uint64_t sum_of(const char *file, const char *field)
{
	uint64_t sum = 0, value;
	char line[256], format[64];
	FILE *f = fopen(file, "r");

	if (!f)
		err(1, "%s", file);
	snprintf(format, sizeof(format), " %s: %%lu", field);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, format, &value) == 1)
			sum += value;
	fclose(f);
	return sum;
}

static void write_to(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		err(1, "%s", file);
}

/*
 * Bytes of the machine's memory that are neither free nor only a cache: of slab,
 * page tables and all else. Pages that a processor keeps for its next allocation
 * count as free.
 */
static uint64_t used(void)
{
	static const char info[] = "/proc/meminfo";
	uint64_t kept;

	write_to("/proc/sys/vm/drop_caches", "3");
	/* For what is freed after a grace period, or by a worker. */
	sleep(3);
	write_to("/proc/sys/vm/stat_refresh", "1");
	kept = sum_of("/proc/zoneinfo", "count") * getpagesize();
	return (sum_of(info, "MemTotal") - sum_of(info, "MemFree") -
		sum_of(info, "Buffers") - sum_of(info, "Cached")) * 1024 - kept;
}

static void memory(void)
{
	uint64_t before, pending, after;

	before = used();
	peer->open(timers, true);
	each(peer->create);
	run(ARM, order, timers, 10000 * SECOND, false);
	pending = used();
	if (!peer->destroy)
		run(CANCEL, order, timers, 0, false);
	each(peer->destroy);
	after = used();
	peer->close();
	print("pending", "bytes", (double)(pending - before) / timers);
	print("after", "bytes", (double)after - before);
}

/* For what is allocated once and for all, however many timers there are. */
static void once(void)
{
	peer->open(timers, true);
	each(peer->create);
	warm_up();
	each(peer->destroy);
	peer->close();
	used();
}

/* Zeroed memory that is there already. */
static void *array(size_t n, size_t size)
{
	void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		err(1, "memory for %zu timers", n);
	return p;
}

static void measure(void (*measurement)(void), size_t n)
{
	size_t i;

	timers = n;
	handle = array(n, sizeof(*handle));
	order = array(n, sizeof(*order));
	deadline = array(n, sizeof(*deadline));
	waiting = array(n, sizeof(*waiting));
	for (i = 0; i < n; i++)
		order[i] = i;
	shuffle(order, n);
	measurement();
	munmap(handle, n * sizeof(*handle));
	munmap(order, n * sizeof(*order));
	munmap(deadline, n * sizeof(*deadline));
	munmap(waiting, n * sizeof(*waiting));
}

int bench(const struct peer *whom, int argc, char **argv)
{
	void (*measurement)(void) = NULL;
	int i;

	if (argc > 2) {
		if (!strcmp(argv[1], "uniform"))
			measurement = uniform;
		else if (!strcmp(argv[1], "connections"))
			measurement = connections;
		else if (!strcmp(argv[1], "memory"))
			measurement = memory;
	}
	if (!measurement)
		errx(2, "usage: %s uniform|connections|memory TIMERS...", argv[0]);

	peer = whom;
	setvbuf(stdout, NULL, _IOLBF, 0);
	calibrate();
	for (i = 2; i < argc; i++) {
		size_t n = strtoul(argv[i], NULL, 0);

		if (!n)
			errx(2, "not a number of timers: %s", argv[i]);
		fprintf(stderr, "%s: %s, %zu timers\n", peer->name, argv[1], n);
		if (measurement == memory)
			measure(once, BATCH);
		measure(measurement, n);
	}
	return 0;
}
