// SPDX-License-Identifier: GPL-2.0
/*
 * What the unit tests share. See host.h.
 */
#include <linux/math64.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

/* Much longer than any of them takes: it runs in circles. */
#define MOST_SECONDS 240

void (*host_print_trace)(void);

/* See shim/linux/timekeeping.h, hrtimer.h and time_namespace.h. */
ktime_t host_monotonic, host_boottime, host_real, host_tai;
unsigned int hrtimer_resolution = 1;
struct timespec64 host_monotonic_offset, host_boottime_offset;

static unsigned int tests, failed;
static u64 random_seed, random_state;
static bool random_used;

/* Sanitizers shall end a test as its own checks do. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "abort_on_error=1:handle_abort=0:handle_segv=0";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1";
}

__attribute__((noreturn))
static void die(void)
{
	if (random_used)
		printf("# to repeat: SEED=%llu\n", random_seed);
	if (host_print_trace)
		host_print_trace();
	fflush(stdout);
	_exit(1);
}

/* A stray pointer is no reason to lose the trace: that is kept elsewhere. */
static void die_by_signal(int sig)
{
	signal(sig, SIG_DFL);
	printf("# ended by signal %d, %s\n", sig, strsignal(sig));
	die();
}

/**
 * host_fail() - end the test, which has failed
 * @file: where it found out
 * @line: the line there
 * @fmt: what was wrong, for printf()
 */
void host_fail(const char *file, int line, const char *fmt, ...)
{
	const char *name = strrchr(file, '/');
	va_list ap;

	printf("# %s:%d: ", name ? name + 1 : file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	die();
}

/**
 * host_note() - say something that is no result
 * @fmt: one line, for printf()
 */
void host_note(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/**
 * host_plan() - say how many tests there will be, before the first
 * @tests: how many
 */
void host_plan(unsigned int tests)
{
	printf("TAP version 13\n1..%u\n", tests);
}

/**
 * host_test() - run a test
 * @name: its name
 * @test: it returns when it has passed
 *
 * It runs in a process of its own, so that whatever it breaks is its own.
 */
void host_test(const char *name, void (*test)(void))
{
	const char *seconds = getenv("SECONDS_EACH");
	const struct itimerval most = {
		.it_value.tv_sec = seconds ? atol(seconds) : MOST_SECONDS,
	};
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		signal(SIGABRT, die_by_signal);
		signal(SIGSEGV, die_by_signal);
		signal(SIGBUS, die_by_signal);
		signal(SIGILL, die_by_signal);
		signal(SIGFPE, die_by_signal);
		/* Processor time, as others may have the machine meanwhile: nothing waits here. */
		signal(SIGPROF, die_by_signal);
		setitimer(ITIMER_PROF, &most, NULL);
		test();
		/* Not _exit(): now leaks are looked for. */
		exit(0);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	failed += !!status;
	printf("%sok %u - %s\n", status ? "not " : "", ++tests, name);
}

/* What @look prints, in a process of its own */
static void host_said(void (*look)(void), char *said, size_t size)
{
	size_t length;
	FILE *from;
	int ends[2];

	fflush(stdout);
	ASSERT_TRUE(!pipe(ends));
	if (!fork()) {
		dup2(ends[1], STDOUT_FILENO);
		look();
		_exit(0);
	}
	close(ends[1]);
	from = fdopen(ends[0], "r");
	length = fread(said, 1, size - 1, from);
	said[length] = 0;
	fclose(from);
	ASSERT_TRUE(wait(NULL) > 0);
}

/**
 * host_breaks() - each thing that can be wrong is to be said
 * @make: makes something in which all is right
 * @look: prints what is wrong in it
 * @break_one: makes one thing of it wrong, by its number. Returns what has to be said, or NULL
 *	after the last.
 */
void host_breaks(void (*make)(void), void (*look)(void),
		 const char *(*break_one)(unsigned int thing))
{
	char said[512], text[160];
	unsigned int thing;

	for (thing = 0;; thing++) {
		const char *wrong;

		make();
		host_said(look, said, sizeof(said));
		if (*said)
			host_fail(__FILE__, __LINE__, "thing %u: %s", thing, said);
		wrong = break_one(thing);
		if (!wrong)
			break;
		host_said(look, said, sizeof(said));
		snprintf(text, sizeof(text), ": not so: %s", wrong);
		if (!strstr(said, text))
			host_fail(__FILE__, __LINE__, "not '%s', but: %s", text, said);
	}
	host_note("%u things", thing);
}

/**
 * host_end() - the tests are over
 *
 * Return: what main() returns.
 */
int host_end(void)
{
	return failed ? 1 : 0;
}

/**
 * host_first_seed() - where random tests begin
 *
 * Return: what the variable SEED of the environment says, or else FRESH_SEED, which
 * scripts/check sets so that it can do the same again, or else a new one.
 */
u64 host_first_seed(void)
{
	const char *seed = getenv("SEED");
	struct timespec ts;

	if (!seed)
		seed = getenv("FRESH_SEED");
	if (seed)
		return strtoull(seed, NULL, 0);
	clock_gettime(CLOCK_REALTIME, &ts);
	return ((u64)ts.tv_sec << 10 ^ ts.tv_nsec) % 1000000000;
}

/**
 * host_part() - how much of what is random is to be done
 * @whole: all of it
 *
 * Return: that, or one in so many as the environment's PART says.
 */
u64 host_part(u64 whole)
{
	const char *part = getenv("PART");

	return part ? whole / strtoull(part, NULL, 0) : whole;
}

/**
 * host_seed() - begin a series of random numbers
 * @seed: which one
 */
void host_seed(u64 seed)
{
	random_used = true;
	random_seed = seed;
	random_state = seed;
}

/* splitmix64: all seeds are equally good. */
u64 host_random(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/**
 * host_below() - a random number
 * @limit: what it is less than
 *
 * Return: the number.
 */
u64 host_below(u64 limit)
{
	return mul_u64_u64_shr(host_random(), limit, 64);
}

/**
 * host_chance() - a random decision
 * @in: how rarely it is yes
 *
 * Return: true once in @in times.
 */
bool host_chance(unsigned int in)
{
	return !host_below(in);
}
