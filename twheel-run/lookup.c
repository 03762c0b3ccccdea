// SPDX-License-Identifier: GPL-2.0
/*
 * The addresses of the server.
 *
 * A name server that is away lets getaddrinfo() wait for half a minute, and commands have to
 * be looked after meanwhile. So a child asks. A thread would read the environment while a
 * job's number is written to it, and libevent's own resolver knows DNS alone.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lookup.h"
#include "loop.h"
#include "options.h"

/* ms for which an answer serves all connections */
#define FRESH 1000

static struct lookup found;
static long long fresh_until;
static int answer = -1;		/* a pipe from the child */

static_assert(sizeof(found) <= PIPE_BUF, "it is written as a whole");

static void resolve(struct lookup *lookup, int flags)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct addrinfo *all = NULL;

	memset(lookup, 0, sizeof(*lookup));
	lookup->error = getaddrinfo(options.server, options.port, &hints, &all);
	for (struct addrinfo *one = all; one && lookup->count < LOOKUP_MOST; one = one->ai_next) {
		struct address *address = &lookup->addresses[lookup->count++];

		address->size = one->ai_addrlen;
		memcpy(&address->addr, one->ai_addr, one->ai_addrlen);
	}
	if (all)
		freeaddrinfo(all);
}

/* The child holds no connection of its parent, and does not outlive that. */
__attribute__((noreturn)) static void child(int to)
{
	struct lookup lookup;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	dup2(to, STDIN_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	resolve(&lookup, 0);
	_exit(write(STDIN_FILENO, &lookup, sizeof(lookup)) != sizeof(lookup));
}

static void fail(void)
{
	found = (struct lookup){ .error = EAI_AGAIN };
}

static void begin(void)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		fail();
		return;
	}
	pid = fork();
	if (pid == 0)
		child(ends[1]);
	close(ends[1]);
	answer = ends[0];
}

/* Gives false when there is nothing yet. Of a child that could not be there is an end. */
static bool take(void)
{
	ssize_t got = read(answer, &found, sizeof(found));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got != sizeof(found))
		fail();
	close(answer);
	answer = -1;
	return true;
}

/** lookup_server - where the server is; NULL: it is being asked, and so ask again soon */
const struct lookup *lookup_server(void)
{
	if (loop_now() < fresh_until)
		return &found;
	if (answer < 0) {
		resolve(&found, AI_NUMERICHOST);
		if (!found.error)
			return &found;
		begin();
	}
	if (answer >= 0 && !take())
		return NULL;
	fresh_until = loop_now() + FRESH;
	return &found;
}
