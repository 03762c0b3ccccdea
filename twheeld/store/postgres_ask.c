// SPDX-License-Identifier: GPL-2.0
/*
 * Questions to a database of PostgreSQL that may take long: to count all jobs, it reads all of
 * them. So neither clients nor the loop wait for the answer, and questions about few rows do not
 * wait for those about all rows. Each of the two kinds has a thread and a connection of its own.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/commit.h"
#include "store/postgres_ask.h"
#include "store/postgres_jobs.h"
#include "store/postgres_link.h"
#include "store/postgres_runs.h"
#include "store/postgres_watch.h"

/* The most questions in a queue, also from clients that have gone; further ones fail. */
#define WAIT_MOST 1000
#define QUEUES 2
/* How long a question waits for its turn: later, its client may have gone long since. */
#define TURN_MOST (30 * SECOND)
/* How long a question is repeated whose connection is lost, or can't be had */
#define AGAIN_MOST (3 * SECOND)
#define AGAIN_PAUSE_US 50000

struct queue {
	struct op *first, **end;
	size_t length;
};

/*
 * @lock protects the questions that nobody has begun to answer. The queues take turns, so that a
 * question waits for one of the other queue at a time, however many there are.
 */
struct asker {
	struct queue queues[QUEUES];
	unsigned int turn;
	pthread_cond_t wake;
	/* The thread's own */
	struct pg_link link;
	int64_t failed_at;		/* when the database was found to be away; 0: never */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct asker quick, thorough;

/*
 * While the database is away, a question fails at once if another one has waited in vain: else each
 * would wait in its turn.
 */
static bool is_away(const struct asker *asker, const struct op *op)
{
	return !asker->link.db && asker->failed_at &&
		(op->at < asker->failed_at || commit_now() - asker->failed_at < SECOND);
}

/* A question that took long would take as long again: it is not repeated. */
static bool is_over(int64_t begun, int64_t until)
{
	int64_t now = commit_now();

	return now - begun > SECOND || now >= until;
}

static bool ask_connected(struct asker *asker, int64_t until)
{
	int64_t begun = commit_now();
	char *why;

	if (asker->link.db || pg_open(&asker->link, &why))
		return true;
	if (is_over(begun, until)) {
		asker->failed_at = commit_now();
		commit_say("no connection can be had for questions: %s. (" PG_CONNECTIONS ")",
			   why);
	}
	free(why);
	return false;
}

static bool ask_answer(struct op *op)
{
	struct runs_asked *asked = container_of(op, struct runs_asked, op);
	struct counts *counts = container_of(op, struct counts, op);

	switch (op->kind) {
	case OP_RUNS:
		asked->found = 0;
		return pg_last_runs(asked);
	case OP_NODES:
		return pg_nodes(container_of(op, struct nodes_asked, op));
	case OP_JOBS:
		return pg_jobs(container_of(op, struct jobs_asked, op));
	case OP_TUBES:
		return pg_tubes(container_of(op, struct tubes_asked, op));
	default:
		__atomic_store_n(&counts->begun, true, __ATOMIC_SEQ_CST);
		return pg_count(counts);
	}
}

/*
 * Repeats a question: its connection may be from before the database's restart, and even a new one
 * may be ended at once.
 */
static bool answered(struct asker *asker, struct op *op)
{
	int64_t until = commit_now() + AGAIN_MOST;

	for (; !is_away(asker, op); usleep(AGAIN_PAUSE_US)) {
		int64_t begun = commit_now();

		if (!ask_connected(asker, until))
			continue;
		asker->link.failure = PG_FINE;
		if (ask_answer(op))
			return true;
		if (asker->link.failure == PG_BROKEN)
			pg_close(&asker->link);
		else if (asker->link.failure != PG_AGAIN)
			return false;
		if (is_over(begun, until)) {
			asker->failed_at = commit_now();
			return false;
		}
	}
	return false;
}

static bool any(const struct asker *asker)
{
	for (int i = 0; i < QUEUES; i++)
		if (asker->queues[i].first)
			return true;
	return false;
}

static struct op *next(struct asker *asker)
{
	struct queue *queue;
	struct op *op;

	pthread_mutex_lock(&lock);
	while (!any(asker))
		pthread_cond_wait(&asker->wake, &lock);
	do
		queue = &asker->queues[asker->turn++ % QUEUES];
	while (!queue->first);
	op = queue->first;
	queue->first = op->next;
	queue->length--;
	pthread_mutex_unlock(&lock);
	return op;
}

static void *answer_all(void *arg)
{
	struct asker *asker = arg;

	pg_use(&asker->link);
	for (;;) {
		struct op *op = next(asker);

		op->failed = commit_now() - op->at > TURN_MOST || !answered(asker, op);
		commit_answered(op);
	}
	return NULL;
}

/* Questions of single clients, of which there may be many, have a queue of their own. */
static struct queue *queue_of(const struct op *op, struct asker **asker)
{
	bool own = op->kind == OP_RUNS ||
		(op->kind == OP_COUNT && *container_of(op, struct counts, op)->tube);

	*asker = op->kind == OP_RUNS || op->kind == OP_NODES ? &quick : &thorough;
	return &(*asker)->queues[own];
}

/** pg_ask - have OP_COUNT, OP_NODES, OP_TUBES or OP_JOBS answered; the loop calls op->done() */
void pg_ask(struct op *op)
{
	struct asker *asker;
	struct queue *queue = queue_of(op, &asker);
	bool full;

	op->next = NULL;
	op->at = commit_now();
	pthread_mutex_lock(&lock);
	full = queue->length == WAIT_MOST;
	if (!full) {
		if (!queue->length++)
			queue->end = &queue->first;
		*queue->end = op;
		queue->end = &op->next;
		pthread_cond_signal(&asker->wake);
	}
	pthread_mutex_unlock(&lock);
	/* If it was taken, it is the thread's by now. */
	if (full) {
		op->failed = true;
		commit_answered(op);
	}
}

/** pg_ask_runs - have a question about runs answered; struct store's runs() */
void pg_ask_runs(struct runs_asked *asked)
{
	pg_ask(&asked->op);
}

static void ask_start(struct asker *asker)
{
	pthread_t thread;

	pthread_cond_init(&asker->wake, NULL);
	if (pthread_create(&thread, NULL, answer_all, asker))
		die("no thread can be had");
	pthread_detach(thread);
}

/** pg_ask_start - begin to answer questions, until the server ends */
void pg_ask_start(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ask_start(&quick);
	ask_start(&thorough);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
