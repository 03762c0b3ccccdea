// SPDX-License-Identifier: GPL-2.0
/*
 * What is asked of a database of PostgreSQL, and may take long: to count all jobs reads all of
 * them. So it has a thread and a connection of its own, and neither clients nor the loop wait.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "alarm.h"
#include "postgres.h"
#include "postgres_ask.h"
#include "postgres_watch.h"
#include "util.h"

/* So many questions wait at most, also of those who have gone, and for so long; others fail. */
#define WAIT_MOST 1000
#define PATIENCE (5 * SECOND)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
/* By @lock: what nobody has begun to answer */
static struct op *todo, **end = &todo;
static size_t waiting;

/* The thread's own */
static struct pg_link asker;

/* Those who ask a database that is away do not wait for each other's time to be over. */
static bool connected(void)
{
	static int64_t failed_at;
	char *why;

	if (asker.db)
		return true;
	if (failed_at && commit_now() - failed_at < SECOND)
		return false;
	if (pg_open(&asker, &why))
		return true;
	failed_at = commit_now();
	free(why);
	return false;
}

static bool answer(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);

	if (op->kind == OP_RUNS) {
		asked->found = 0;
		return pg_last_runs(asked);
	}
	if (op->kind == OP_WATCH)
		return pg_overview(container_of(op, struct overview_asked, op)->overview);
	pg_forget_results(op);
	return pg_count(container_of(op, struct request, op));
}

/* The connection may be one of a database that was started anew since. */
static bool answered(struct op *op)
{
	int64_t begun = commit_now();

	for (int i = 0; i < 2 && connected(); i++) {
		asker.failure = PG_FINE;
		if (answer(op))
			return true;
		if (asker.failure != PG_BROKEN)
			return false;
		pg_close(&asker);
		/* What took long would do so again. */
		if (commit_now() - begun > SECOND)
			return false;
	}
	return false;
}

static struct op *next(void)
{
	struct op *op;

	pthread_mutex_lock(&lock);
	while (!todo)
		pthread_cond_wait(&wake, &lock);
	op = todo;
	todo = op->next;
	waiting--;
	if (!todo)
		end = &todo;
	pthread_mutex_unlock(&lock);
	return op;
}

static void *answer_all(void *unused)
{
	(void)unused;
	pg_use(&asker);
	for (;;) {
		struct op *op = next();

		op->failed = commit_now() - op->at > PATIENCE || !answered(op);
		commit_told(op);
	}
	return NULL;
}

/** pg_ask - have OP_COUNT, OP_RUNS or OP_WATCH answered; op->done() is called by the loop */
void pg_ask(struct op *op)
{
	bool full;

	op->next = NULL;
	op->at = commit_now();
	pthread_mutex_lock(&lock);
	full = waiting == WAIT_MOST;
	if (!full) {
		waiting++;
		*end = op;
		end = &op->next;
		pthread_cond_signal(&wake);
	}
	pthread_mutex_unlock(&lock);
	/* Otherwise it is the thread's by now. */
	if (full) {
		op->failed = true;
		commit_told(op);
	}
}

/** pg_ask_runs - the same, as struct store has it */
void pg_ask_runs(struct runs_asked *asked)
{
	pg_ask(&asked->op);
}

/** pg_ask_start - begin; it ends with the server */
void pg_ask_start(void)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, answer_all, NULL))
		die("no thread can be had");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_detach(thread);
}
