// SPDX-License-Identifier: GPL-2.0
/*
 * A peer beside the wheel, in one program, in turns: how many times as long it
 * takes for an operation, as the median of the rounds. (Of its thread's own time,
 * which is the wall-clock's without what others on the machine took: nothing here
 * waits.)
 *
 * usage: PEER [-a] [-c] [-r ROUNDS] [-w uniform|connections] TIMERS
 *
 * Time stands still unless the program moves it: clock_gettime() is its own, for
 * the libraries as well, and says what was set. So what expires, and when, is the
 * same on every run, and nobody pays for reading the clock. (Peers for which that
 * can't be done say so in their files.) Likewise epoll_wait() is its own: no
 * descriptor is ever ready, and nobody pays for asking.
 *
 * With -c the peer works alone, once, for callgrind, which is told when an
 * operation begins and ends; bench/native/run puts its figures together.
 * With -w only this workload. With -a the peer works alone when a line of the input
 * says so, for bench/pools: "uniform", of which it gives the ns of each operation,
 * or "memory", of which it gives the bytes for each timer.
 */
#include <err.h>
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "bench.h"

/* Everything is done with a small number of timers as often as makes this many. */
#define REPEAT 20000

#define MOST_ROUNDS 15

static const char *const operations[OPERATIONS] = {
	[ARM] = "arm",
	[MODIFY_LATER] = "modify_later",
	[MODIFY_EARLIER] = "modify_earlier",
	[CANCEL] = "cancel",
	[EXPIRE_READ] = "expire_read",
	[CONNECTION] = "connection",
};

uint64_t now = 1000 * SECOND;
uint32_t *order;

static size_t timers;
static unsigned int rounds = 5;
static bool counting;
static const char *only;
static uint64_t seed, began;
static double spent[OPERATIONS], ratio[OPERATIONS][MOST_ROUNDS];

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = now / SECOND;
	ts->tv_nsec = now % SECOND;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	(void)zone;
	tv->tv_sec = now / SECOND;
	tv->tv_usec = now % SECOND / 1000;
	return 0;
}

int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	(void)epfd;
	(void)events;
	(void)maxevents;
	(void)timeout;
	return 0;
}

int epoll_pwait(int epfd, struct epoll_event *events, int maxevents, int timeout,
		const sigset_t *sigmask)
{
	(void)sigmask;
	return epoll_wait(epfd, events, maxevents, timeout);
}

static uint64_t time_used(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/**
 * begin() - the peer begins with an operation
 */
void begin(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
	else
		began = time_used();
}

static void dump(enum operation op)
{
	char name[64];

	snprintf(name, sizeof(name), "%s %zu", operations[op], timers);
	CALLGRIND_DUMP_STATS_AT(name);
}

/**
 * end() - the peer has ended with an operation
 * @op: which one it was
 */
void end(enum operation op)
{
	if (!counting) {
		spent[op] += time_used() - began;
		return;
	}
	CALLGRIND_TOGGLE_COLLECT;
	if (op != CONNECTION)
		dump(op);
}

/**
 * spend() - the peer took its own time
 * @op: for which operation
 * @ns: how long, for all timers
 */
void spend(enum operation op, double ns)
{
	spent[op] += ns;
}

/* xorshift64*, so that no library matters. */
uint64_t rnd(uint64_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (__uint128_t)(seed * 0x2545f4914f6cdd1dULL) * below >> 64;
}

void shuffle(void)
{
	size_t i;

	for (i = timers - 1; i; i--) {
		size_t j = rnd(i + 1);
		uint32_t timer = order[i];

		order[i] = order[j];
		order[j] = timer;
	}
}

/* Zeroed memory that is there already, in pages as large as can be had. */
void *array(size_t n, size_t size)
{
	void *p = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "memory for %zu timers", n);
	madvise(p, n * size, MADV_HUGEPAGE);
	return memset(p, 0, n * size);
}

void array_free(void *p, size_t n, size_t size)
{
	munmap(p, n * size);
}

static unsigned int repetitions(void)
{
	return timers < REPEAT && !counting ? REPEAT / timers : 1;
}

static bool wanted(const char *workload)
{
	return !only || !strcmp(only, workload);
}

/* The same deadlines in the same order for both. */
static void work(const struct peer *who, uint64_t from)
{
	unsigned int i;

	seed = from;
	memset(spent, 0, sizeof(spent));
	for (i = 0; i < repetitions(); i++) {
		if (who->uniform && wanted("uniform"))
			who->uniform();
		if (wanted("connections"))
			who->connections();
	}
}

static void run_round(unsigned int round)
{
	double wheel[OPERATIONS];
	enum operation op;

	work(&wheel_peer, round + 1);
	memcpy(wheel, spent, sizeof(wheel));
	work(&peer, round + 1);
	for (op = 0; op < OPERATIONS; op++) {
		if (!spent[op])
			continue;
		ratio[op][round] = spent[op] / wheel[op];
		fprintf(stderr, "%s %zu %s: %.1f ns, wheel %.1f ns\n", peer.name,
			timers, operations[op],
			spent[op] / timers / repetitions(),
			wheel[op] / timers / repetitions());
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_ratio(enum operation op)
{
	qsort(ratio[op], rounds, sizeof(ratio[op][0]), compare);
	printf("{\"suite\":\"native\",\"workload\":\"%s\",",
	       op == CONNECTION ? "connections" : "uniform");
	printf("\"peer\":\"%s\",\"operation\":\"%s\",\"timers\":%zu,\"batch\":1,",
	       peer.name, operations[op], timers);
	printf("\"metric\":\"ns_ratio\",\"value\":%.2f}\n", ratio[op][rounds / 2]);
}

static void compare_with_wheel(void)
{
	enum operation op;
	unsigned int i;

	wheel_peer.open(timers);
	peer.open(timers);
	for (i = 0; i < rounds; i++)
		run_round(i);
	for (op = 0; op < OPERATIONS; op++)
		if (ratio[op][0])
			print_ratio(op);
	peer.close();
	wheel_peer.close();
}

static void count_alone(void)
{
	counting = true;
	peer.open(timers);
	work(&peer, 1);
	if (wanted("connections"))
		dump(CONNECTION);
	peer.close();
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void answer(void)
{
	size_t before = allocated();
	enum operation op;
	char line[32];

	peer.open(timers);
	while (fgets(line, sizeof(line), stdin)) {
		memset(spent, 0, sizeof(spent));
		peer.uniform();
		if (!strcmp(line, "memory\n"))
			printf("%.1f", peer.bytes + (double)(allocated() - before) / timers);
		else
			for (op = ARM; op <= EXPIRE_READ; op++)
				printf("%.0f ", spent[op]);
		putchar('\n');
		fflush(stdout);
	}
	peer.close();
}

int main(int argc, char **argv)
{
	bool alone = false, asked = false;
	size_t i;
	int c;

	while ((c = getopt(argc, argv, "acr:w:")) != -1) {
		if (c == 'a')
			asked = true;
		else if (c == 'c')
			alone = true;
		else if (c == 'r')
			rounds = strtoul(optarg, NULL, 0);
		else if (c == 'w')
			only = optarg;
		else
			exit(2);
	}
	if (optind + 1 != argc || rounds < 1 || rounds > MOST_ROUNDS)
		errx(2, "usage: %s [-a] [-c] [-r ROUNDS] [-w uniform|connections] TIMERS", argv[0]);
	timers = strtoul(argv[optind], NULL, 0);
	order = array(timers, sizeof(*order));
	for (i = 0; i < timers; i++)
		order[i] = i;
	if (asked)
		answer();
	else if (alone)
		count_alone();
	else
		compare_with_wheel();
	return 0;
}
