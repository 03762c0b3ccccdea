// SPDX-License-Identifier: GPL-2.0
/*
 * twheeld: delayed jobs that survive, for clients of beanstalkd.
 */
#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"
#include "check.h"
#include "command.h"
#include "folder.h"
#include "http.h"
#include "listen.h"
#include "notify.h"
#include "options.h"
#include "retry.h"
#include "schedule.h"
#include "shared.h"
#include "stats.h"
#include "status.h"
#include "util.h"
#include "window.h"

#define DEFAULT_PORT "11300"
/* Of a transaction: then an administrator is told */
#define STUCK (10 * SECOND)

static struct options options;

const struct store *store = &store_sqlite;
int64_t store_lease;
const char *store_node, *store_site;

static void become(const char *name)
{
	struct passwd *user = getpwnam(name);

	if (!user)
		die("user %s: there is no such user", name);
	if (initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
	    setuid(user->pw_uid) < 0)
		die("user %s: %s", name, strerror(errno));
}

/* Signals */

static void drain(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	command_drain();
}

static void end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	/* Others serve: so what clients have is not taken from them. The second time, it is. */
	if (!store->shared || !shared_drain())
		event_base_loopbreak(arg);
}

/* What the file says of tubes is in force at once, all else when the server starts next. */
static void reload(evutil_socket_t fd, short what, void *arg)
{
	struct settings *settings;

	(void)fd;
	(void)what;
	(void)arg;
	notify_reloading();
	settings = options.file ? settings_read(options.file) : NULL;
	if (settings) {
		settings_use(settings);
		tube_settings_changed();
		inform("%s was read again, and what it says of tubes is in force", options.file);
	} else if (options.file) {
		complain("%s must be put right first: all stays as it was", options.file);
	} else {
		complain("there is no configuration file to be read again: see -c");
	}
	folder_read_again(notify_ready);
}

/* Each second */

static int64_t stored_skew;

static void skew_written(struct op *op)
{
	if (!op->failed)
		stored_skew = op->row.created;
}

/* Has somebody set the wall clock? */
static void check_clock(void)
{
	int64_t skew = alarm_skew();
	struct op *op;

	if (llabs(skew - stored_skew) <= 5 * MILLISECOND)
		return;
	op = zalloc(sizeof(*op));
	op->kind = OP_SKEW;
	op->row.created = skew;
	op->done = skew_written;
	commit_submit(op);
}

static void check_committer(void)
{
	const char *what = store->shared ? "the database" : "the disk of the store";
	static bool stuck;
	int64_t waits = commit_waits();

	if (waits > STUCK && !stuck) {
		complain("%s has not answered for %d s: is it broken?", what,
			 (int)(waits / SECOND));
		notify_status(store->shared ? "The database does not answer" :
			      "The disk of the store does not answer");
		stuck = true;
	} else if (waits <= STUCK && stuck) {
		inform("%s answers again", what);
		notify_status("Serving");
		stuck = false;
	}
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (!store->shared)
		check_clock();
	check_committer();
	if (options.schedules)
		schedule_tick();
	/* The store may be readable again */
	if (store->shared)
		shared_tick();
	else
		tube_serve_all();
}

/* Start */

static int64_t last_burial(void)
{
	size_t count;
	struct tube **list = tube_list(&count);
	int64_t last = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t one = store_last_burial(list[i]->commit.id);

		last = one > last ? one : last;
	}
	return last;
}

/* Of what others share, nothing is in memory; ids are the database's. */
static void load_shared(struct event_base *base)
{
	struct alarm_past past = { 0 };

	alarm_follow(store->clock());
	alarm_start(base, 0, &past);
	job_ids_begin(INT64_MIN + 1);
}

static void load_own(struct event_base *base)
{
	struct alarm_past past;

	stored_skew = store->meta("skew", 0);
	past = (struct alarm_past){ store->meta("boot", 0), store->meta("offset", 0) };
	alarm_start(base, stored_skew, &past);
	store_keep_past(past.boot, past.offset);
	job_ids_begin(store->meta("next_id", 1));
	tube_ids_begin(store_next_tube_id());
	store_tubes(tube_load);
}

static void load(struct event_base *base)
{
	store->open(options.dir, options.sync);
	if (store->shared)
		load_shared(base);
	else
		load_own(base);
	if (!tube_get("default"))
		die("without a tube there is no service");
	command_start(options.job_size);
	retry_start(store->shared ? 0 : last_burial());
	stats_start(options.log_size);
	status_start(base);
	commit_start(base, options.sync_ns);
	if (store->shared)
		shared_start(base);
	else
		window_start();
	if (!options.schedules)
		return;
	schedule_start(base, options.history);
	folder_start(base, options.schedules, options.node, options.site);
	admin_start(base, options.admin, options.history);
}

static bool jobs_passed, metrics_passed;

static void add_passed(int fd, const char *name)
{
	if (!strcmp(name, "metrics")) {
		metrics_passed = true;
		http_add(fd);
	} else {
		jobs_passed = true;
		listen_add(fd);
	}
}

static void open_jobs(void)
{
	const struct settings *settings = options.settings;

	if (options.address || options.port || !settings || !settings->listens) {
		listen_add(listen_open(options.address,
				       options.port ? options.port : DEFAULT_PORT));
		return;
	}
	for (size_t i = 0; i < settings->listens; i++)
		listen_add(listen_open_text(settings->listen[i]));
}

/* What systemd has opened takes the place of what the command line and the file say. */
static void open_sockets(void)
{
	notify_sockets(add_passed);
	if (!jobs_passed)
		open_jobs();
	if (!metrics_passed && options.settings && options.settings->metrics)
		http_add(listen_open_text(options.settings->metrics));
}

static void serve(struct event_base *base)
{
	static const struct timeval second = { 1, 0 };

	event_add(must(evsignal_new(base, SIGUSR1, drain, NULL)), NULL);
	event_add(must(evsignal_new(base, SIGHUP, reload, NULL)), NULL);
	event_add(must(evsignal_new(base, SIGTERM, end, base)), NULL);
	event_add(must(evsignal_new(base, SIGINT, end, base)), NULL);
	event_add(must(event_new(base, -1, EV_PERSIST, tick, NULL)), &second);
	notify_start(base);
	notify_ready();
	event_base_dispatch(base);
	notify_stopping();
}

static void event_says(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		complain("%s", text);
}

int main(int argc, char **argv)
{
	struct event_base *base;

	/* Who started this may ignore it, and then nothing is known of how a child ended. */
	signal(SIGCHLD, SIG_DFL);
	options_read(&options, argc, argv);
	if (options.check)
		return check_tab(options.check, &(struct tab_host){
				.zone = "", .node = options.node, .site = options.site,
				.body_most = options.job_size,
				.shared = options_shared(options.dir) });
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(event_says);
	base = must(event_base_new());
	conn_start(base);
	listen_start(base, options.connections);
	http_start(base);
	open_sockets();
	if (options.user)
		become(options.user);
	if (options.settings)
		settings_use(options.settings);
	if (options_shared(options.dir))
		store = &store_postgres;
	store_lease = options.lease;
	store_node = options.node;
	store_site = options.site ? options.site : "";
	load(base);
	if (options.verbose)
		printf("pid %d, jobs in %s\n", getpid(),
		       store->shared ? "a database" : options.dir);
	serve(base);
	commit_stop();
	store->close();
	return 0;
}
