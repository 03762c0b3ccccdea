// SPDX-License-Identifier: GPL-2.0
/*
 * Hints among servers that share a database, by LISTEN and NOTIFY: a tube has ready jobs.
 *
 * Hints may be lost: a server with clients that wait looks again each second. So hints have a
 * connection and a thread of their own, and are sent after the transaction: within it, the database
 * would have commits wait for each other. While one NOTIFY is under way, further hints are
 * gathered.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/alarm.h"
#include "base/util.h"
#include "store/commit.h"
#include "store/postgres_link.h"
#include "store/postgres_listen.h"

/* The most tubes in a hint; other servers find further tubes when they look again. */
#define TUBES_MOST 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by @lock: tubes for the next hint */
static char *tubes[TUBES_MOST];
static size_t count;
static int wake_fd, hints[2];
static bool polls;

/* The committer's own: tubes in which its transaction makes jobs ready */
static char **ready;
static size_t ready_count, ready_room;

/* The thread's own */
static struct pg_link hearer;
static bool deaf;		/* the last try to connect has failed */

static bool is_there(const char *tube)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(tubes[i], tube))
			return true;
	return false;
}

/* Hand the tubes of @ready to the thread that sends hints. */
static void notify_others(void)
{
	uint64_t one = 1;

	if (pg_polls())
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ready_count && count < TUBES_MOST; i++)
		if (!is_there(ready[i]))
			tubes[count++] = must(strdup(ready[i]));
	pthread_mutex_unlock(&lock);
	if (write(wake_fd, &one, sizeof(one)) != sizeof(one))
		die("an eventfd can't be written");
}

/** pg_ready - note a tube with ready jobs, for a hint once the transaction is committed */
void pg_ready(const char *tube)
{
	for (size_t i = 0; i < ready_count; i++)
		if (!strcmp(ready[i], tube))
			return;
	if (ready_count == ready_room) {
		ready_room = ready_room ? 2 * ready_room : 16;
		ready = must(realloc(ready, ready_room * sizeof(*ready)));
	}
	ready[ready_count++] = must(strdup(tube));
}

/** pg_tell - the transaction is over: send a hint for its tubes, if it was committed */
void pg_tell(bool committed)
{
	if (committed && ready_count)
		notify_others();
	for (size_t i = 0; i < ready_count; i++)
		free(ready[i]);
	ready_count = 0;
}

/*
 * Once the database's queue of notifications was full, as a session did not read them, it stays
 * full, even after all have read them, until somebody asks how full it is.
 */
static void empty_queue(void)
{
	commit_say("other servers get no hints of jobs, and look for them each second. Does a"
		   " session that listens have a transaction that does not end?");
	pg_command("SELECT pg_notification_queue_usage()");
}

/* Names need quotes alone. While the database is away, hints are lost. */
static void tell_others(void)
{
	PG_STATEMENT(notify, "SELECT pg_notify('twheeld', tube)"
		     " FROM unnest($1::text[]) AS hint(tube)");
	static char names[TUBES_MOST * (TUBE_NAME_MAX + 3) + 3];
	char *end = names;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++) {
		end += sprintf(end, "%c\"%s\"", i ? ',' : '{', tubes[i]);
		free(tubes[i]);
	}
	count = 0;
	pthread_mutex_unlock(&lock);
	strcpy(end, "}");
	hearer.failure = PG_FINE;
	if (end > names && !pg_done(pg_do(&notify, "s", names)) && hearer.failure == PG_REFUSED)
		empty_queue();
}

/* Hints that do not fit are lost: the loop is busy then. Up to PIPE_BUF, all or nothing fits. */
static void pass_on(const char *lines, size_t length)
{
	if (length && write(hints[1], lines, length) < 0 && errno != EAGAIN)
		die("a pipe can't be written");
}

/* Read the hints that have come, and write a line for each to the loop. */
static void hear(void)
{
	PGnotify *notify;
	char lines[PIPE_BUF];
	size_t filled = 0;

	while ((notify = PQnotifies(hearer.db))) {
		size_t length = strlen(notify->extra);

		if (length <= TUBE_NAME_MAX) {
			if (filled + length + 1 > sizeof(lines)) {
				pass_on(lines, filled);
				filled = 0;
			}
			memcpy(lines + filled, notify->extra, length);
			lines[filled + length] = '\n';
			filled += length + 1;
		}
		PQfreemem(notify);
	}
	pass_on(lines, filled);
}

/* Some engines have no LISTEN: then servers look often. */
static bool connect_listener(void)
{
	PGresult *result;
	bool listens;
	char *why;

	hearer.failure = PG_FINE;
	if (!pg_open(&hearer, &why)) {
		if (!deaf)
			complain("no connection can be had for hints of other servers: %s. Their"
				 " jobs are looked for each second. (" PG_CONNECTIONS ")", why);
		deaf = true;
		free(why);
		return false;
	}
	deaf = false;
	result = pg_exec(hearer.db, "SET synchronous_commit = off; LISTEN twheeld");
	listens = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (pg_is_unknown(result) && !pg_polls()) {
		inform("the database has no LISTEN: it is asked for jobs ten times a second");
		__atomic_store_n(&polls, true, __ATOMIC_RELAXED);
	}
	PQclear(result);
	if (listens || pg_polls())
		return true;
	pg_close(&hearer);
	return false;
}

static void hints_serve(void)
{
	struct pollfd fds[] = {
		{ .fd = PQsocket(hearer.db), .events = POLLIN },
		{ .fd = wake_fd, .events = POLLIN },
	};
	uint64_t unused;

	while (hearer.failure != PG_BROKEN) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents && read(wake_fd, &unused, sizeof(unused)) > 0)
			tell_others();
		if (!PQconsumeInput(hearer.db))
			return;
		hear();
	}
}

static void *listener(void *unused)
{
	pg_use(&hearer);
	for (;;) {
		if (connect_listener()) {
			hints_serve();
			pg_close(&hearer);
		}
		usleep(200000);
	}
	return NULL;
}

/** pg_polls - has the database no hints, so that it has to be asked often? */
bool pg_polls(void)
{
	return __atomic_load_n(&polls, __ATOMIC_RELAXED);
}

/** pg_hints - the descriptor from which the loop reads hints, a line each */
int pg_hints(void)
{
	return hints[0];
}

/** pg_listen - begin to hear and send hints, until the server ends */
void pg_listen(void)
{
	sigset_t all, old;
	pthread_t thread;

	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0 || pipe2(hints, O_CLOEXEC | O_NONBLOCK) < 0)
		die("no pipe can be had");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, listener, NULL))
		die("no thread can be had");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_detach(thread);
}
