// SPDX-License-Identifier: GPL-2.0
/*
 * A file of CALENDAR= is read by a child, one at a time.
 *
 * libical may take a third of a millisecond for each month of a repeating event, and seconds to
 * find that an event never repeats. Clients are served meanwhile, and a limit that the kernel
 * keeps ends a child that would take for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/util.h"
#include "cron/holidays_child.h"
#include "when/dates.h"
#include "when/spans.h"

#define SECOND 1000000000LL
#define PIECE (1 << 20)

/* The beginning of the child's answer; then come the spans */
struct head {
	bool fine;
	struct dates_error error;
	int64_t digest;
	size_t count;
};

static pid_t pid;
static int answer = -1;		/* a pipe from the child */
static struct head head;
static struct time_span *spans;
static size_t got;		/* bytes of head and spans */
static unsigned int limit;	/* seconds */

static bool write_all(int fd, const void *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t done = write(fd, (const char *)data + at, size - at);

		if (done < 0)
			return false;
		at += done;
	}
	return true;
}

/*
 * The child keeps no descriptor of its parent, and so no locks or clients, and does not outlive
 * it.
 */
__attribute__((noreturn)) static void child(const char *path, const char *zone, int to,
					    pid_t parent)
{
	const struct rlimit cpu = { limit, limit }, core = { 0, 0 };
	const struct spans *times = NULL;
	struct dates *dates;
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The parent may have ended before prctl(). */
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &core);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(to, STDIN_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	dates = dates_read(path, *zone ? zone : NULL, &head.error);
	head.fine = dates;
	if (dates) {
		times = dates_times(dates);
		head.count = times->count;
		head.digest = digest_numbers(times->spans,
					     times->count * sizeof(*times->spans));
	}
	_exit(!write_all(STDIN_FILENO, &head, sizeof(head)) ||
	      (times && !write_all(STDIN_FILENO, times->spans, times->count * sizeof(*spans))));
}

/**
 * holidays_child_start - have a file read; none may be being read
 * @path: the file
 * @zone: of its days; "": the machine's
 * @seconds: of a processor that the child may take
 *
 * Return: a descriptor, which is readable when holidays_child_take() is to be called; -1 if that is
 *	to be called at once.
 */
int holidays_child_start(const char *path, const char *zone, unsigned int seconds)
{
	const pid_t parent = getpid();
	sigset_t all, old;
	int ends[2];

	head = (struct head){ .fine = false };
	got = 0;
	limit = seconds;
	pid = -1;
	/* No descriptor may be left, with many clients. */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	/* A handler of the parent's, run in the child, would write to the parent's loop. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0)
		child(path, zone, ends[1], parent);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	answer = ends[0];
	return answer;
}

/** holidays_child_stop - the child takes too long: holidays_child_take() says so soon */
void holidays_child_stop(void)
{
	if (pid > 0)
		kill(pid, SIGKILL);
}

static size_t size_of_spans(void)
{
	return head.count * sizeof(*spans);
}

/* As read(); 0 when the answer is all there */
static ssize_t read_more(void)
{
	size_t at = got - sizeof(head), left = sizeof(head) + size_of_spans() - got;

	if (got < sizeof(head))
		return read(answer, (char *)&head + got, sizeof(head) - got);
	if (!spans)
		spans = must(malloc(size_of_spans() + 1));
	return left ? read(answer, (char *)spans + at, left < PIECE ? left : PIECE) : 0;
}

/* Wait for the child's end; gives what was wrong with it, or NULL. */
static const char *reap(int64_t *took)
{
	struct rusage usage = { 0 };
	int status = -1;

	*took = 0;
	if (pid < 0)
		return "no process could be made to read it";
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	*took = usage.ru_utime.tv_sec * SECOND + usage.ru_utime.tv_usec * 1000LL +
		usage.ru_stime.tv_sec * SECOND + usage.ru_stime.tv_usec * 1000LL;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return "it takes too long to be understood, or too much memory";
	return status ? "the process that reads it has failed" : NULL;
}

/**
 * holidays_child_take - take what has come from the child
 * @aside: out, at the end; the error is where the caller says
 *
 * Return: false if there is more to come.
 */
bool holidays_child_take(struct aside *aside)
{
	ssize_t more = read_more();
	const char *why;

	if (more > 0)
		got += more;
	if (more > 0 || (more < 0 && (errno == EAGAIN || errno == EINTR)))
		return false;
	if (answer >= 0)
		close(answer);
	answer = -1;
	why = reap(&aside->took);
	if (why)
		dates_wrong(&head.error, 0, "%s", why);
	*aside->error = head.error;
	aside->digest = head.digest;
	aside->dates = why || !head.fine ? NULL : must(dates_of(spans, head.count));
	if (!aside->dates)
		free(spans);
	spans = NULL;
	return true;
}
