/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command that runs: its processes, and what they say.
 */
#ifndef TWHEEL_RUN_CHILD_H
#define TWHEEL_RUN_CHILD_H

/* Bytes of the output that are kept: the last ones */
#define CHILD_LAST 8192

#include <event2/buffer.h>
#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;			/* 0: none runs */
	int status;			/* as waitpid() has it, when none runs any more */
	bool ending;			/* it got a signal to end */
	bool too_long;
	unsigned long long id;			/* what its lines begin with */
	int pipe;
	struct event *output, *timer;
	struct evbuffer *text;
	char last[CHILD_LAST];		/* of what it wrote */
	size_t last_size;
	void (*ended)(struct child *child);
	struct child *next;
};

void child_init(struct child *child, void (*ended)(struct child *child));
int child_start(struct child *child, unsigned long long id, int input);
void child_end(struct child *child);
void child_kill(struct child *child);
void child_reap(void);

#endif
