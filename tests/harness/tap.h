/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TAP for the test programs: a test is a function, and passes when all was as
 * expected.
 */
#ifndef TAP_H
#define TAP_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define fallthrough __attribute__((__fallthrough__))

/* How many complaints of one test are printed; a bad loop can have millions */
#define TAP_MAX_DIAG 20

static int tap_tests;
static int tap_failed;
static int tap_bad;
static const char *tap_name = "(start)";
static char tap_skipped[128];

#define tap_diag(...) ({						\
	char tap_line[512];						\
									\
	snprintf(tap_line, sizeof(tap_line), __VA_ARGS__);		\
	printf("# %s\n", tap_line); })

/* The rest of the program makes no sense: say so and stop */
#define tap_bail(...) ({						\
	char tap_line[512];						\
									\
	snprintf(tap_line, sizeof(tap_line), __VA_ARGS__);		\
	printf("Bail out! %s: %s\n", tap_name, tap_line);		\
	_exit(1); })

/* The test can't be run here: the reason */
static inline void tap_skip(const char *why)
{
	snprintf(tap_skipped, sizeof(tap_skipped), "%s", why);
}

/* Is there room for one more complaint of this test? */
static inline bool tap_complain(void)
{
	return __atomic_add_fetch(&tap_bad, 1, __ATOMIC_RELAXED) <=
	       TAP_MAX_DIAG;
}

/*
 * As in the kernel's kselftest_harness.h, a test goes on after these. A printf format with
 * its arguments may follow, to say what was tried.
 */
#define EXPECT_TRUE(cond, ...) ({					\
	bool tap_good = (cond);						\
									\
	if (!tap_good && tap_complain()) {				\
		char tap_what[256];					\
									\
		snprintf(tap_what, sizeof(tap_what), " " __VA_ARGS__);	\
		tap_diag("line %d: not so: %s;%s", __LINE__, #cond,	\
			 tap_what);					\
	}								\
	tap_good; })

#define EXPECT_EQ(got, want, ...) ({					\
	long long tap_got = (got), tap_want = (want);			\
	bool tap_same = tap_got == tap_want;				\
									\
	if (!tap_same && tap_complain()) {				\
		char tap_what[256];					\
									\
		snprintf(tap_what, sizeof(tap_what), " " __VA_ARGS__);	\
		tap_diag("line %d: %s: got %lld want %lld;%s", __LINE__, \
			 #got, tap_got, tap_want, tap_what);		\
	}								\
	tap_same; })

static inline void tap_timeout(int sig)
{
	static const char text[] = "Bail out! timed out in: ";

	(void)sig;
	if (write(1, text, sizeof(text) - 1) < 0 ||
	    write(1, tap_name, strlen(tap_name)) < 0 || write(1, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

/* What the environment says, or else @preset */
static inline unsigned long long number_of(const char *name, unsigned long long preset)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : preset;
}

/*
 * A program that hangs ends after @seconds and says in which test. The
 * environment's PATIENCE says how many times as slow a machine is.
 */
static inline void tap_start(unsigned int seconds)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, tap_timeout);
	alarm(seconds * number_of("PATIENCE", 1));
	printf("TAP version 13\n");
}

/*
 * Is a test none here? The environment's EXCEPT has a line for each of these, or for all
 * whose names begin with a text that ends in "*": name, tab, reason.
 */
static inline bool tap_excepted(const char *name)
{
	const char *line = getenv("EXCEPT"), *end;

	for (; line && *line; line = *end ? end + 1 : end) {
		const char *tab = strchr(line, '\t');
		size_t length = tab ? tab - line : 0;

		end = strchrnul(line, '\n');
		if (!length || tab > end)
			continue;
		if (tab[-1] == '*' ? strncmp(name, line, length - 1) :
		    strncmp(name, line, length) || name[length])
			continue;
		return true;
	}
	return false;
}

/* Is the test of that name, which begins here, to be run? */
static inline bool tap_begin(const char *name)
{
	if (tap_excepted(name))
		return false;
	tap_name = name;
	tap_bad = 0;
	tap_skipped[0] = 0;
	return true;
}

static inline void tap_report(void)
{
	tap_tests++;
	if (tap_bad > TAP_MAX_DIAG)
		tap_diag("%d checks failed", tap_bad);
	if (tap_bad)
		tap_failed++;
	printf("%s %d - %s%s%s\n", tap_bad ? "not ok" : "ok", tap_tests, tap_name,
	       tap_skipped[0] ? " # SKIP " : "", tap_skipped);
}

/* A test is a call of a function, or the function if that has no arguments */
#define RUN_CALL(call, name) do {					\
	if (tap_begin(name)) {						\
		call;							\
		tap_report();						\
	}								\
} while (0)

#define RUN(test, name) RUN_CALL(test(), name)

static inline int tap_end(void)
{
	printf("1..%d\n", tap_tests);
	return tap_failed ? 1 : 0;
}

/* Run checks in a process of its own; their failures count here */
static inline pid_t tap_fork(void (*child)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork failed");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	tap_bad = 0;
	child();
	fflush(stdout);
	_exit(tap_bad ? 1 : 0);
}

static inline void tap_join(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid failed");
	EXPECT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status), "child's status %#x",
		    status);
}

#endif
