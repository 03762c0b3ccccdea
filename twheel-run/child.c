// SPDX-License-Identifier: GPL-2.0
/*
 * The command that runs: its processes, and what they say.
 *
 * It has a process group of its own. That ends as a whole: what is left of it when the
 * command itself has ended is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "loop.h"
#include "must.h"
#include "options.h"

/* A line that is longer is cut. */
#define MOST_LINE 8192
/* No pipe has more in it, unless somebody made it so. */
#define PIPE_SIZE 65536

static struct child *children;

static void print(struct child *child, size_t size)
{
	printf("%llu: ", child->id);
	if (size)
		fwrite(must(evbuffer_pullup(child->text, size)), 1, size, stdout);
	putchar('\n');
	evbuffer_drain(child->text, size);
}

static bool print_line(struct child *child)
{
	struct evbuffer_ptr end = evbuffer_search_eol(child->text, NULL, NULL, EVBUFFER_EOL_LF);
	ssize_t size = end.pos >= 0 ? end.pos : (ssize_t)evbuffer_get_length(child->text);
	bool whole = end.pos >= 0 && size <= MOST_LINE;

	if (end.pos < 0 && size < MOST_LINE)
		return false;
	print(child, whole ? size : MOST_LINE);
	if (whole)
		evbuffer_drain(child->text, 1);
	return true;
}

/* Keep the last bytes of the @got that have just come. */
static void keep_last(struct child *child, size_t got)
{
	size_t some = got < CHILD_LAST ? got : CHILD_LAST;
	size_t stay = child->last_size < CHILD_LAST - some ? child->last_size : CHILD_LAST - some;
	struct evbuffer_ptr at;

	memmove(child->last, child->last + child->last_size - stay, stay);
	evbuffer_ptr_set(child->text, &at, evbuffer_get_length(child->text) - some,
			 EVBUFFER_PTR_SET);
	evbuffer_copyout_from(child->text, &at, child->last + stay, some);
	child->last_size = stay + some;
}

/* Less than 0 with EAGAIN: there is nothing now; 0: there will be nothing more. */
static int take_output(struct child *child)
{
	int got = evbuffer_read(child->text, child->pipe, PIPE_SIZE);

	if (got > 0)
		keep_last(child, got);
	while (print_line(child))
		;
	return got;
}

static void output(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	if (take_output(child) == 0)
		event_del(child->output);
}

static void close_output(struct child *child)
{
	/*
	 * Read as much as the pipe holds, and no more: a process that left the group may write
	 * for ever.
	 */
	int left = fcntl(child->pipe, F_GETPIPE_SZ), got;

	for (; left > 0 && (got = take_output(child)) > 0; left -= got)
		;
	if (evbuffer_get_length(child->text))
		print(child, evbuffer_get_length(child->text));
	event_free(child->output);
	close(child->pipe);
}

static void open_output(struct child *child, int fd)
{
	child->pipe = fd;
	child->output = must(event_new(loop, fd, EV_READ | EV_PERSIST, output, child));
	event_add(child->output, NULL);
}

static int spawn(pid_t *pid, int input, int output)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t set;
	int ret;

	ret = posix_spawn_file_actions_init(&files);
	if (ret)
		return ret;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
				 POSIX_SPAWN_SETSIGMASK);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attributes, &set);
	sigaddset(&set, SIGPIPE);
	posix_spawnattr_setsigdefault(&attributes, &set);
	ret = posix_spawn_file_actions_adddup2(&files, input, 0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&files, output, 1);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&files, output, 2);
	if (!ret)
		ret = posix_spawnp(pid, options.command[0], &files, &attributes, options.command,
				   environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return ret;
}

static void timer(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	if (child->ending) {
		kill(-child->pid, SIGKILL);
		return;
	}
	child->too_long = true;
	child_end(child);
}

void child_init(struct child *child, void (*ended)(struct child *child))
{
	child->ended = ended;
	child->text = must(evbuffer_new());
	child->timer = loop_timer(timer, child);
	child->next = children;
	children = child;
}

/**
 * child_start - run the command
 * @child: of which none runs
 * @id: of the job
 * @input: a file that it reads
 *
 * Return: 0, or an error number if it can't be run.
 */
int child_start(struct child *child, unsigned long long id, int input)
{
	int ends[2];
	int ret;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	ret = spawn(&child->pid, input, ends[1]);
	close(ends[1]);
	if (ret) {
		child->pid = 0;
		close(ends[0]);
		return ret;
	}
	child->id = id;
	child->last_size = 0;
	child->ending = false;
	child->too_long = false;
	open_output(child, ends[0]);
	if (options.limit)
		loop_set(child->timer, options.limit);
	return 0;
}

/** child_end - tell the command to end; it is killed if it does not for long */
void child_end(struct child *child)
{
	if (!child->pid || child->ending)
		return;
	child->ending = true;
	kill(-child->pid, SIGTERM);
	kill(-child->pid, SIGCONT);
	loop_set(child->timer, options.kill_after);
}

void child_kill(struct child *child)
{
	if (child->pid)
		kill(-child->pid, SIGKILL);
}

static void reap(struct child *child)
{
	/* Before its number can be another's. */
	child_kill(child);
	waitpid(child->pid, &child->status, 0);
	child->pid = 0;
	event_del(child->timer);
	close_output(child);
	child->ended(child);
}

static struct child *find(pid_t pid)
{
	struct child *child = children;

	while (child && child->pid != pid)
		child = child->next;
	return child;
}

/**
 * child_reap - look for commands that have ended, on SIGCHLD
 *
 * The first process of a container has others for children, too: what commands left behind.
 */
void child_reap(void)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
		struct child *child = find(info.si_pid);

		if (child)
			reap(child);
		else
			waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
}
