// SPDX-License-Identifier: GPL-2.0
/*
 * What a peer takes for each operation, as lines of JSON.
 *
 * usage: PEER ns|instructions TIMERS [uniform]
 *
 * It is the time that the thread itself has used: nothing here waits. In a machine in which
 * one instruction takes 1 ns (scripts/vm -i), it is a number of instructions, and the first
 * word says so: then what the loop around the operations takes is taken off. With a third
 * word, there are no connections.
 *
 * The clock stands still unless the program moves it: clock_gettime() is its own, for the
 * libraries as well, and says what was set. So what expires, and when, is the same on every
 * run, and nobody pays for reading the clock. epoll_wait() is its own, too: no descriptor
 * is ever ready, and nobody pays for asking.
 */
#include <err.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

/* Everything is done with a small number of timers as often as makes this many. */
#define REPEAT 20000

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
bool counting;

static size_t timers;
static uint64_t seed, began;
static double spent[OPERATIONS];

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
	began = time_used();
}

/**
 * end() - the peer has ended with an operation
 * @op: which one it was
 */
void end(enum operation op)
{
	spent[op] += time_used() - began;
}

/**
 * take_off() - the program has ended with what it does around an operation
 * @op: which one it is
 */
void take_off(enum operation op)
{
	spent[op] -= time_used() - began;
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

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Once for all: the same deadlines in the same order for all peers. */
static void work(bool connections)
{
	seed = 1;
	memset(spent, 0, sizeof(spent));
	if (peer.uniform)
		peer.uniform();
	if (connections)
		peer.connections();
}

static void print(const char *operation, const char *metric, double value)
{
	printf("{\"peer\":\"%s\",\"operation\":\"%s\",\"timers\":%zu,\"batch\":1,",
	       peer.name, operation, timers);
	printf("\"metric\":\"%s\",\"value\":%.1f}\n", metric, value);
}

int main(int argc, char **argv)
{
	double sum[OPERATIONS] = { 0 };
	size_t i, rounds, before;
	enum operation op;

	if (argc < 3 || argc > 4)
		errx(2, "usage: %s ns|instructions TIMERS [uniform]", argv[0]);
	counting = !strcmp(argv[1], "instructions");
	timers = strtoul(argv[2], NULL, 0);
	order = array(timers, sizeof(*order));
	for (i = 0; i < timers; i++)
		order[i] = i;
	before = allocated();
	peer.open(timers);
	/* So that all memory is there */
	work(false);
	rounds = timers < REPEAT ? REPEAT / timers : 1;
	for (i = 0; i < rounds; i++) {
		work(argc == 3);
		for (op = 0; op < OPERATIONS; op++)
			sum[op] += spent[op];
	}
	for (op = 0; op < OPERATIONS; op++)
		if (sum[op])
			print(operations[op], argv[1], sum[op] / rounds / timers);
	if (peer.bytes && peer.uniform)
		print("pending", "bytes",
		      peer.bytes + (double)(allocated() - before) / timers);
	return 0;
}
