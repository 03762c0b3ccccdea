// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of the Java world: a Java program of its own does the same when it is
 * told to, see Peers.java. NAME is the peer.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static pid_t child;
static FILE *question, *answer;

__attribute__((noreturn))
static void run_java(size_t timers)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", timers);
	execlp("java", "java", "-Xms4g", "-Xmx4g", "-cp", CLASSPATH, "Peers", NAME,
	       number, NULL);
	err(1, "java");
}

static void open_peer(size_t timers)
{
	int in[2], out[2];

	if (pipe(in) || pipe(out))
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		close(out[0]);
		run_java(timers);
	}
	close(in[0]);
	close(out[1]);
	question = fdopen(in[1], "w");
	answer = fdopen(out[0], "r");
}

static void ask(const char *what, enum operation first, enum operation last)
{
	enum operation op;
	double ns;

	fprintf(question, "%s\n", what);
	fflush(question);
	for (op = first; op <= last; op++) {
		if (fscanf(answer, "%lf", &ns) != 1)
			errx(1, NAME ": no answer");
		spend(op, ns);
	}
}

static void uniform(void)
{
	ask("uniform", ARM, EXPIRE_READ);
}

static void connections(void)
{
	ask("connections", CONNECTION, CONNECTION);
}

static void close_peer(void)
{
	int status;

	fclose(question);
	fclose(answer);
	if (waitpid(child, &status, 0) != child || status)
		errx(1, NAME ": status %d", status);
}

const struct peer peer = {
	.name = NAME,
	.open = open_peer,
	.uniform = uniform,
	.connections = connections,
	.close = close_peer,
};
