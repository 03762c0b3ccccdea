// SPDX-License-Identifier: GPL-2.0
/*
 * main [-r ROUNDS] [-d DENSITY] SIZE NAME=CORE.so...: the same operations, in the same order, on
 * each of the cores, in batches, as lines of JSON: the time of each operation, in ns. SIZE
 * timers are armed, in random order; DENSITY of them expire in each tick.
 *
 * The cores take turns in each round. The memory of all is of huge pages, as that of the
 * kernel is.
 */
#include <dlfcn.h>
#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <stdio.h>

#include "edition.h"

#define MOST_CORES 8

/* Ticks before the first deadline */
#define LEAD 250

#define HUGE_PAGE (2UL << 20)

static char *arena, *arena_at, *arena_end;
static struct edition *cores[MOST_CORES];
static const char *names[MOST_CORES];
static unsigned int nr_cores, density = 256;
static struct bench_op *ops, *others;
static size_t size;
static uint64_t random_state;

static void *reserve(size_t bytes)
{
	void *at;

	bytes = (bytes + HUGE_PAGE - 1) & -HUGE_PAGE;
	at = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		err(1, "mmap");
	at = (void *)(((uintptr_t)at + HUGE_PAGE - 1) & -HUGE_PAGE);
	madvise(at, bytes, MADV_HUGEPAGE);
	memset(at, 0, bytes);
	return at;
}

static void *arena_alloc(size_t bytes, size_t align)
{
	char *at = (char *)(((uintptr_t)arena_at + align - 1) & -align);

	if (at + bytes > arena_end)
		errx(1, "there is too little memory");
	arena_at = at + bytes;
	memset(at, 0, bytes);
	return at;
}

/* splitmix64 */
static uint64_t any(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (__uint128_t)z * below >> 64;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int64_t span(void)
{
	return (int64_t)(size / density + 1) * TICK_NS;
}

static int64_t any_deadline(void)
{
	return LEAD * TICK_NS + 1 + any(span());
}

static void shuffle(void)
{
	size_t i;

	for (i = size; i > 1; i--) {
		size_t j = any(i);
		struct bench_op op = ops[i - 1];

		ops[i - 1] = ops[j];
		ops[j] = op;
	}
}

/* The first @nr operations. Returns the time of each. */
static double batches(void (*call)(struct bench_op *ops, unsigned int nr), size_t nr)
{
	int64_t start = now_ns();
	size_t i;

	for (i = 0; i < nr; i += BATCH)
		call(&ops[i], nr - i < BATCH ? nr - i : BATCH);
	return (now_ns() - start) / (double)nr;
}

static double arm_first(struct edition *core, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		ops[i].deadline = any_deadline();
		ops[i].user_data = i;
	}
	return batches(core->arm, nr);
}

static double later(struct edition *core)
{
	size_t i;

	shuffle();
	for (i = 0; i < size; i++)
		ops[i].deadline += 1 + any(span());
	return batches(core->modify, size);
}

static double earlier(struct edition *core)
{
	size_t i;

	shuffle();
	for (i = 0; i < size; i++)
		ops[i].deadline = 1 + any(ops[i].deadline);
	return batches(core->modify, size);
}

/* Both halves of it: each batch is cancelled, and as many others are armed. */
static double replace(struct edition *core)
{
	int64_t start;
	size_t i;

	shuffle();
	for (i = 0; i < size; i++) {
		others[i].deadline = any_deadline();
		others[i].user_data = i;
	}
	start = now_ns();
	for (i = 0; i < size; i += BATCH) {
		unsigned int nr = size - i < BATCH ? size - i : BATCH;

		core->cancel(&ops[i], nr);
		core->arm(&others[i], nr);
	}
	start = now_ns() - start;
	memcpy(ops, others, size * sizeof(*ops));
	return start / (double)size;
}

/* Not all of them, so that memory stays what it was: nodes that were in use. */
static size_t some(void)
{
	return size / 8 * 7;
}

static double cancel_some(struct edition *core)
{
	shuffle();
	return batches(core->cancel, some());
}

static double expire_all(struct edition *core)
{
	int64_t start = now_ns(), now = 0;
	size_t expired = 0;

	while (expired < size) {
		now += TICK_NS;
		expired += core->expire(now);
		if (now > 2 * span() + 2 * LEAD * TICK_NS)
			errx(1, "%s: %zu of %zu expired", core->name, expired, size);
	}
	return (now_ns() - start) / (double)size;
}

static void say(const char *name, const char *operation, double ns)
{
	printf("{\"peer\":\"%s\",\"operation\":\"%s\",\"timers\":%zu,\"batch\":%d,",
	       name, operation, size, BATCH);
	printf("\"metric\":\"ns\",\"value\":%.3f}\n", ns);
}

static void one(const char *name, struct edition *core, unsigned int round)
{
	random_state = round + 1;
	arena_at = arena;
	core->alloc = arena_alloc;
	core->open(size);
	say(name, "arm", arm_first(core, size));
	say(name, "later", later(core));
	say(name, "earlier", earlier(core));
	say(name, "replace", replace(core));
	say(name, "cancel", cancel_some(core));
	say(name, "re-arm", arm_first(core, some()));
	say(name, "expire", expire_all(core));
	if (core->close)
		core->close();
}

static void load(char *name)
{
	char *path = strchr(name, '=');
	struct edition *(*get)(void);
	void *object;

	if (!path || nr_cores == MOST_CORES)
		errx(2, "'%s' is not NAME=CORE.so, or one too many", name);
	*path++ = '\0';
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		errx(1, "%s", dlerror());
	get = (struct edition *(*)(void))dlsym(object, "bench_edition");
	if (!get)
		errx(1, "%s: %s", path, dlerror());
	names[nr_cores] = name;
	cores[nr_cores++] = get();
}

int main(int argc, char **argv)
{
	unsigned int rounds = 3, round, i;
	size_t bytes;
	int option;

	while ((option = getopt(argc, argv, "r:d:")) != -1) {
		if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'd')
			density = atoi(optarg);
		else
			return 2;
	}
	if (argc - optind < 2 || !rounds || !density)
		errx(2, "use: [-r ROUNDS] [-d DENSITY] SIZE NAME=CORE.so...");
	size = strtoull(argv[optind++], NULL, 0);
	for (; optind < argc; optind++)
		load(argv[optind]);
	ops = reserve(size * sizeof(*ops));
	others = reserve(size * sizeof(*others));
	bytes = size * 80 + (8UL << 20);
	arena = reserve(bytes);
	arena_end = arena + bytes;
	for (round = 0; round < rounds; round++)
		for (i = 0; i < nr_cores; i++)
			one(names[i], cores[i], round);
	return 0;
}
