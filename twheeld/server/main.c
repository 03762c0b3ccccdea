// SPDX-License-Identifier: GPL-2.0
/*
 * twheeld: delayed jobs that survive, for clients of beanstalkd.
 */
#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/util.h"
#include "cron/schedule.h"
#include "cron/tabs_dir.h"
#include "jobs/access.h"
#include "jobs/command.h"
#include "jobs/conn.h"
#include "jobs/engine.h"
#include "jobs/notice.h"
#include "jobs/stats.h"
#include "jobs/tls.h"
#include "jobs/trace.h"
#include "server/listen.h"
#include "server/check.h"
#include "server/options.h"
#include "server/systemd.h"
#include "store/commit.h"
#include "web/http.h"
#include "web/login.h"
#include "web/page.h"
#include "web/schedules.h"
#include "web/status.h"

#define DEFAULT_PORT "11300"
/* A transaction that takes longer than this is reported to the administrator. */
#define STUCK (10 * SECOND)

static struct options options;
static const struct settings *settings;	/* with which it started */
static int exit_status;
static bool tls_listens;

const struct store *store = &store_sqlite;
const struct engine *engine = &engine_local;
int64_t store_lease;
struct limit (*store_limit)(const char *tube) = settings_limit;
const char *store_node, *store_site;
int64_t store_job_size, store_history, store_tabs;
bool store_refuses;

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
	__atomic_store_n(&store_refuses, true, __ATOMIC_RELAXED);
	command_drain();
}

static void end_server(evutil_socket_t fd, short what, void *arg)
{
	/*
	 * Where other servers go on, clients keep their jobs until they are done; a second signal
	 * ends.
	 */
	if (!engine->drain || !engine->drain()) {
		event_base_loopbreak(arg);
		return;
	}
	systemd_stopping();
	command_drain();
	listen_no_more();
}

/* The file's settings of tubes are in force at once, all others at the next start. */
static void reload(evutil_socket_t fd, short what, void *arg)
{
	struct settings *new;

	systemd_reloading();
	new = options.file ? settings_read(options.file) : NULL;
	if (new) {
		access_read(new->tokens, conn_tokens_changed);
		if (tls_listens && new->certificate && new->key)
			tls_use(new->certificate, new->key);
		settings_use(new);
		tube_settings_changed();
		inform("%s was read again, and its settings of tubes are in force", options.file);
	} else if (options.file) {
		complain("%s must be put right first: all stays as it was", options.file);
	} else {
		complain("there is no configuration file to be read again: see -c");
	}
	tabs_dir_read_again(systemd_ready);
}

/* A signal during the start, which may wait for a disk or database, or remake tables for hours. */
static void end_at_once(int number)
{
	_exit(0);
}

/* From now on, these signals don't end the server; they are handled once it serves. */
static void take_signals(struct event_base *base)
{
	signal(SIGTERM, end_at_once);
	signal(SIGINT, end_at_once);
	event_add(must(evsignal_new(base, SIGUSR1, drain, NULL)), NULL);
	event_add(must(evsignal_new(base, SIGHUP, reload, NULL)), NULL);
}

/* From now on, the server leaves the store in order before it ends. */
static void take_ends(struct event_base *base)
{
	event_add(must(evsignal_new(base, SIGTERM, end_server, base)), NULL);
	event_add(must(evsignal_new(base, SIGINT, end_server, base)), NULL);
}

/* Each second */

static void check_store(struct event_base *base)
{
	if (!store->gone || !store->gone())
		return;
	exit_status = 1;
	event_base_loopbreak(base);
}

static void check_committer(void)
{
	static int64_t stuck;	/* since when the store is stuck; 0: it is not */
	int64_t waits = commit_waits();

	if (waits > STUCK && !stuck) {
		complain("%s has not answered for %d s: is it broken?", engine->disk,
			 (int)(waits / SECOND));
		systemd_status("%c%s does not answer", toupper(*engine->disk), engine->disk + 1);
		stuck = commit_now();
	} else if (stuck && commit_fine_since(stuck)) {
		inform("%s answers again", engine->disk);
		systemd_status("Serving");
		stuck = 0;
	}
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
	check_store(arg);
	check_committer();
	if (settings->schedules)
		schedule_tick();
	engine->tick();
	trace_tick();
	notice_tick(false);
}

/* Start */

static struct tab_host tab_host(void)
{
	return (struct tab_host){
		.zone = "", .node = settings->node, .site = settings->site,
		.body_most = settings->job_size, .shared = options_shared(settings->store),
	};
}

static void load_store(struct event_base *base)
{
	struct tab_host host;

	store->open(settings->store, settings->sync);
	engine->load(base);
	if (!tube_get("default"))
		die("without a tube there is no service");
	stats_start(options.log_size);
	status_start(base);
	page_start(base);
	take_ends(base);
	commit_start(base, settings->sync_ns);
	engine->start(base);
	if (settings->admin)
		http_add_local(settings->admin);
	if (!settings->schedules)
		return;
	schedules_start(settings->history);
	schedule_start(base, settings->history, options_shared(settings->store));
	host = tab_host();
	tabs_dir_start(base, settings->schedules, &host);
}

static bool jobs_passed, metrics_passed;

static void add_passed(int fd, const char *name)
{
	if (!strcmp(name, "metrics")) {
		metrics_passed = true;
		http_add(fd);
	} else if (!strcmp(name, "tls")) {
		tls_listens = true;
		listen_add(fd, true);
	} else {
		jobs_passed = true;
		listen_add(fd, false);
	}
}

static void open_jobs(void)
{
	if (options.address || options.port || !settings->listens) {
		listen_add(socket_open(options.address,
				       options.port ? options.port : DEFAULT_PORT), false);
		return;
	}
	for (size_t i = 0; i < settings->listens; i++)
		listen_add(socket_open_text(settings->listen[i]), false);
}

/* Sockets that systemd has opened take the place of those in command line and file. */
static void open_sockets(void)
{
	systemd_sockets(add_passed);
	if (!jobs_passed)
		open_jobs();
	if (!metrics_passed && settings->metrics)
		http_add(socket_open_text(settings->metrics));
	if (tls_listens || !settings->tls)
		return;
	tls_listens = true;
	listen_add(socket_open_text(settings->tls), true);
}

/* Where tokens are not wanted, TLS would let all in. */
static bool begin_tls(void)
{
	if (settings->certificate && settings->key && settings->tokens)
		return tls_use(settings->certificate, settings->key);
	complain("clients with TLS need certificate and key in tls, and tokens: twheeld.conf(5)");
	return false;
}

static void serve(struct event_base *base)
{
	static const struct timeval second = { 1, 0 };

	event_add(must(event_new(base, -1, EV_PERSIST, tick, base)), &second);
	systemd_start(base);
	systemd_ready();
	event_base_dispatch(base);
	systemd_stopping();
	/* A store that is gone may have to be copied, which takes long. */
	if (exit_status)
		systemd_may_take_long();
}

static void event_says(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		complain("%s", text);
}

int main(int argc, char **argv)
{
	struct event_base *base;

	/* An inherited SIG_IGN would hide how a child ended. */
	signal(SIGCHLD, SIG_DFL);
	options_read(&options, argc, argv);
	settings = options.settings;
	if (options.check) {
		const struct tab_host host = tab_host();

		return check_tab(options.check, &host, options.check_times, options.check_json);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	event_set_log_callback(event_says);
	base = must(event_base_new());
	take_signals(base);
	command_start(base, settings->job_size);
	listen_start(base, settings->connections);
	http_start(base, settings->job_size);
	open_sockets();
	if (settings->user)
		become(settings->user);
	login_start();
	if (!access_read(settings->tokens, NULL))
		return 1;
	if (tls_listens && !begin_tls())
		return 1;
	settings_use(options.settings);
	if (options_shared(settings->store)) {
		store = &store_postgres;
		engine = &engine_cluster;
	}
	store_lease = settings->lease;
	store_node = settings->node;
	store_job_size = settings->job_size;
	store_history = settings->history;
	store_site = settings->site ? settings->site : "";
	load_store(base);
	if (options.verbose)
		printf("pid %d, jobs in %s\n", getpid(),
		       options_shared(settings->store) ? "a database" : settings->store);
	if (store->loaded)
		store->loaded();
	serve(base);
	notice_tick(true);
	commit_stop();
	store->close();
	return exit_status;
}
