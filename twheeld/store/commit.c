// SPDX-License-Identifier: GPL-2.0
/*
 * The committer: a thread that writes the event loop's operations. All that came while a
 * transaction ran are the next one. Once that is in the store, the loop runs their done(), and only
 * then does a client see its reply.
 */
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/commit.h"

struct queue {
	struct op *first;
	struct op **end;
	size_t length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static struct queue todo = { NULL, &todo.first, 0 }, finished = { NULL, &finished.first, 0 };
static size_t wanted;		/* the number of operations that wakes the committer */
static unsigned int holding;	/* how many callers have more operations to come: commit_hold() */
static enum { APART, FIRST, JOINED } joining;	/* commit_join() */
static bool stopping;
static uint64_t written, failed;
static int64_t busy_since;	/* when the transaction under way began; 0: none is */
static int64_t fine_at;		/* when a transaction was written last */
static struct histogram times;
static pthread_t thread;
static int done_fd;
static int64_t sync_every;	/* the committer's own */

static void push(struct queue *queue, struct op *op)
{
	op->next = NULL;
	*queue->end = op;
	queue->end = &op->next;
	queue->length++;
}

static struct op *take_all(struct queue *queue)
{
	struct op *first = queue->first;

	queue->first = NULL;
	queue->end = &queue->first;
	queue->length = 0;
	return first;
}

/* Takes more than @most rather than a part of operations that come together. */
static struct op *take_some(struct queue *queue, size_t most)
{
	struct op *first = queue->first, *last = first;
	size_t count = 1;

	if (queue->length <= most)
		return take_all(queue);
	for (; last->next && (count < most || last->next->joined); count++)
		last = last->next;
	queue->first = last->next;
	if (!last->next)
		queue->end = &queue->first;
	queue->length -= count;
	last->next = NULL;
	return first;
}

/** commit_now - CLOCK_MONOTONIC, in ns */
int64_t commit_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void wake_loop(void)
{
	uint64_t one = 1;

	if (write(done_fd, &one, sizeof(one)) != sizeof(one))
		die("an eventfd can't be written");
}

/* Gives how many clients may have further ones soon: those of these, and those who wait. */
static size_t finish(struct op *ops, int64_t took)
{
	const struct op *first = NULL;
	size_t clients;

	pthread_mutex_lock(&lock);
	clients = todo.length;
	while (ops) {
		struct op *op = ops;

		ops = op->next;
		first = op->joined ? first : op;
		op->moot = first->failed || first->gone;
		push(&finished, op);
		clients++;
		written++;
		if (!op->failed)
			fine_at = commit_now();
		else if (!op->left_out)
			failed++;
	}
	busy_since = 0;
	histogram_add(&times, took);
	pthread_mutex_unlock(&lock);
	wake_loop();
	return clients;
}

/* Counts as busy, as the disk may hang here, too. */
static void tidy(void)
{
	bool did;

	if (!store->tidy)
		return;
	pthread_mutex_lock(&lock);
	busy_since = commit_now();
	pthread_mutex_unlock(&lock);
	did = store->tidy();
	pthread_mutex_lock(&lock);
	busy_since = 0;
	if (did)
		fine_at = commit_now();
	pthread_mutex_unlock(&lock);
}

/** commit_answered - have the loop run done() of a question that another thread has answered */
void commit_answered(struct op *op)
{
	pthread_mutex_lock(&lock);
	push(&finished, op);
	pthread_mutex_unlock(&lock);
	wake_loop();
}

/* Waits until @count operations are there, or @until is over; 0: without such an end */
static void wait_for(size_t count, int64_t until)
{
	struct timespec ts = { until / SECOND, until % SECOND };

	wanted = count;
	while (todo.length < count && !stopping) {
		if (!until)
			pthread_cond_wait(&wake, &lock);
		else if (pthread_cond_timedwait(&wake, &lock, &ts))
			break;
	}
}

/*
 * The clients whose operations were just written send their next ones now. Without a short
 * wait, these would miss the next transaction, and each transaction would have half of the clients.
 */
static void gather(size_t expected, int64_t took)
{
	int64_t most = took / 4 < MILLISECOND ? took / 4 : MILLISECOND;

	if (todo.length && todo.length < expected)
		wait_for(expected, commit_now() + most);
}

static struct op *next_ops(size_t clients, int64_t took, int64_t sync_at)
{
	int64_t idle_since = commit_now();
	struct op *ops;

	pthread_mutex_lock(&lock);
	wait_for(1, sync_at);
	/* A later operation is not from a client of the last transaction. */
	if (commit_now() - idle_since < took)
		gather(clients < COMMIT_MOST ? clients : COMMIT_MOST, took);
	while (joining)
		pthread_cond_wait(&wake, &lock);
	ops = take_some(&todo, COMMIT_MOST);
	busy_since = ops ? commit_now() : 0;
	pthread_mutex_unlock(&lock);
	return ops;
}

static bool to_stop(void)
{
	bool stop;

	pthread_mutex_lock(&lock);
	stop = stopping && !todo.first;
	pthread_mutex_unlock(&lock);
	return stop;
}

static void *committer(void *unused)
{
	int64_t took = 0, sync_at = 0;
	size_t clients = 0;

	while (!to_stop()) {
		struct op *ops = next_ops(clients, took, sync_at);
		int64_t begin_at = commit_now();

		clients = 0;
		if (ops) {
			store->write(ops);
			took = commit_now() - begin_at;
			clients = finish(ops, took);
			tidy();
			if (sync_every && !sync_at)
				sync_at = begin_at + sync_every;
		}
		if (sync_at && commit_now() >= sync_at)
			sync_at = store->sync() ? 0 : commit_now() + sync_every;
	}
	if (sync_at)
		store->sync();
	return NULL;
}

static void report(evutil_socket_t fd, short what, void *arg)
{
	struct op *ops;
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&lock);
	ops = take_all(&finished);
	pthread_mutex_unlock(&lock);
	while (ops) {
		struct op *op = ops;

		ops = op->next;
		op->done(op);
		free(op);
	}
}

/**
 * commit_start - start the thread
 * @base: the loop that runs done() of the operations
 * @sync_ns: with SYNC_SOMETIMES how often the disk is synced, else 0
 */
void commit_start(struct event_base *base, int64_t sync_ns)
{
	pthread_condattr_t attr;
	sigset_t all, old;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	sync_every = sync_ns;
	store->write_start(sync_ns);
	done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (done_fd < 0)
		die("no eventfd can be had");
	event_add(must(event_new(base, done_fd, EV_READ | EV_PERSIST, report, NULL)), NULL);
	/* Signals go to the event loop's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, committer, NULL))
		die("no thread can be had");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/**
 * commit_submit - give an operation to the committer
 * @op: malloc()ed; op->done() is called by the loop, and then it is freed
 */
void commit_submit(struct op *op)
{
	pthread_mutex_lock(&lock);
	op->joined = joining == JOINED;
	joining = joining ? JOINED : APART;
	push(&todo, op);
	if (!holding && todo.length >= wanted)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/**
 * commit_drop - let operations fail that were not begun, and that nobody waits for
 * @hopeless: is it such an operation?
 */
void commit_drop(bool (*hopeless)(const struct op *op))
{
	struct op *op, *next;
	bool any = false;

	pthread_mutex_lock(&lock);
	for (op = take_all(&todo); op; op = next) {
		next = op->next;
		op->failed = hopeless(op);
		any |= op->failed;
		push(op->failed ? &finished : &todo, op);
	}
	pthread_mutex_unlock(&lock);
	if (any)
		wake_loop();
}

/**
 * commit_hold - keep operations that come together in one transaction
 * @hold: true before the first one, false after the last
 *
 * Otherwise the first operation would be in a transaction of its own, and the others would wait
 * for that. A busy committer may take them apart all the same: see commit_join().
 */
void commit_hold(bool hold)
{
	pthread_mutex_lock(&lock);
	holding += hold ? 1 : -1;
	if (!holding && todo.length >= wanted)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/**
 * commit_join - have operations in one transaction, whatever the committer does meanwhile
 * @join: true before the first one, false after the last, at once: the committer waits for it
 */
void commit_join(bool join)
{
	pthread_mutex_lock(&lock);
	joining = join ? FIRST : APART;
	if (!join)
		pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/** commit_stop - write all operations that wait, and end the thread and the connection */
void commit_stop(void)
{
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	store->write_end();
}

static uint64_t count_of(const uint64_t *counter)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = *counter;
	pthread_mutex_unlock(&lock);
	return count;
}

/** commit_count - operations written since the start */
uint64_t commit_count(void)
{
	return count_of(&written);
}

/** commit_failures - operations that the store could not do, since the start */
uint64_t commit_failures(void)
{
	return count_of(&failed);
}

/** commit_times - how long the transactions took */
struct histogram commit_times(void)
{
	struct histogram copy;

	pthread_mutex_lock(&lock);
	copy = times;
	pthread_mutex_unlock(&lock);
	return copy;
}

/** commit_fine_since - was anything written since then, by commit_now()? */
bool commit_fine_since(int64_t when)
{
	bool fine;

	pthread_mutex_lock(&lock);
	fine = fine_at > when;
	pthread_mutex_unlock(&lock);
	return fine;
}

/** commit_waits - for how many ns the transaction that is being written has been */
int64_t commit_waits(void)
{
	int64_t since;

	pthread_mutex_lock(&lock);
	since = busy_since;
	pthread_mutex_unlock(&lock);
	return since ? commit_now() - since : 0;
}
