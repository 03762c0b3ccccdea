// SPDX-License-Identifier: GPL-2.0
/*
 * twheeld: delayed jobs that survive, for clients of beanstalkd.
 */
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "listen.h"
#include "retry.h"
#include "stats.h"
#include "util.h"
#include "window.h"

#define DEFAULT_DIR "/var/lib/twheeld"
/* A row of the store may not be longer than 10^9 bytes */
#define MAX_SIZE 999000000

static const char help[] =
"Usage: twheeld [OPTIONS]\n"
"Keeps jobs, and gives them out when they are due, to clients of beanstalkd. What was\n"
"acknowledged is on the disk.\n"
"\n"
"  -b DIR    keep the jobs in this folder (default: $STATE_DIRECTORY,\n"
"            or " DEFAULT_DIR ")\n"
"  -f MS     sync the disk at most once every MS milliseconds. What was acknowledged\n"
"            since may be lost when the power fails (default: -f0, at each commit)\n"
"  -F        never sync the disk\n"
"  -l ADDR   listen on this address, or on unix:PATH (default: all addresses)\n"
"  -p PORT   listen on this port (default: 11300)\n"
"  -u USER   become this user and its group\n"
"  -z BYTES  the longest body of a job (default: 65535)\n"
"  -s BYTES  accepted and without effect, as there is one log\n"
"  -V        say more\n"
"  -v        print the version\n"
"  -h        print this\n"
"\n"
"See twheeld(8).\n";

struct options {
	const char *dir, *address, *port, *user;
	enum sync sync;
	int64_t sync_ns;
	uint32_t max_size;
	int log_size;
	int verbose;
};

static unsigned long number(const char *text, char option)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		die("-%c %s: this takes digits alone, see twheeld -h", option, text);
	return value;
}

static void set_sync(struct options *options, const char *text)
{
	unsigned long ms = number(text, 'f');

	if (ms > 3600000)
		die("-f %s: 3600000 milliseconds are the most", text);
	options->sync = ms ? SYNC_SOMETIMES : SYNC_ALWAYS;
	options->sync_ns = ms * MILLISECOND;
}

static void set_max_size(struct options *options, const char *text)
{
	unsigned long bytes = number(text, 'z');

	if (bytes > MAX_SIZE)
		complain("-z %s: %d bytes are the most, and are taken", text, MAX_SIZE);
	options->max_size = bytes > MAX_SIZE ? MAX_SIZE : bytes;
}

static void set_option(struct options *options, int option)
{
	switch (option) {
	case 'b':
		options->dir = optarg;
		break;
	case 'f':
		set_sync(options, optarg);
		break;
	case 'F':
		options->sync = SYNC_NEVER;
		options->sync_ns = 0;
		break;
	case 'l':
		options->address = optarg;
		break;
	case 'p':
		options->port = optarg;
		break;
	case 'u':
		options->user = optarg;
		break;
	case 'z':
		set_max_size(options, optarg);
		break;
	case 's':
		options->log_size = number(optarg, 's');
		break;
	case 'V':
		options->verbose++;
		break;
	case 'v':
		puts("twheeld " TWHEELD_VERSION);
		exit(0);
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		fputs("See twheeld -h\n", stderr);
		exit(5);
	}
}

static void parse(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "b:f:Fl:p:u:z:s:Vvh", long_options, NULL)) >= 0)
		set_option(options, option);
	if (optind < argc)
		die("%s: there are only options, see twheeld -h", argv[optind]);
	if (!options->dir)
		options->dir = getenv("STATE_DIRECTORY");
	if (!options->dir)
		options->dir = DEFAULT_DIR;
}

static void become(const char *name)
{
	struct passwd *user = getpwnam(name);

	if (!user)
		die("-u %s: there is no such user", name);
	if (initgroups(name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
	    setuid(user->pw_uid) < 0)
		die("-u %s: %s", name, strerror(errno));
}

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
	event_base_loopbreak(arg);
}

static int64_t stored_skew;

static void skew_written(struct op *op)
{
	if (!op->failed)
		stored_skew = op->row.created;
}

/* Each second: has somebody set the wall clock? Can the store be read again? */
static void tick(evutil_socket_t fd, short what, void *arg)
{
	int64_t skew = alarm_skew();

	(void)fd;
	(void)what;
	(void)arg;
	if (llabs(skew - stored_skew) > 5 * MILLISECOND) {
		struct op *op = zalloc(sizeof(*op));

		op->kind = OP_SKEW;
		op->row.created = skew;
		op->done = skew_written;
		commit_submit(op);
	}
	tube_serve_all();
}

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

static void load(const struct options *options, struct event_base *base)
{
	store_open(options->dir, options->sync);
	stored_skew = store_meta("skew", 0);
	alarm_start(base, stored_skew);
	job_ids_begin(store_meta("next_id", 1));
	tube_ids_begin(store_next_tube_id());
	store_tubes(tube_load);
	tube_get("default");
	command_start(options->max_size);
	retry_start(last_burial());
	stats_start(options->log_size);
	commit_start(base, options->sync_ns);
	window_start();
}

static void serve(struct event_base *base)
{
	static const struct timeval second = { 1, 0 };

	event_add(must(evsignal_new(base, SIGUSR1, drain, NULL)), NULL);
	event_add(must(evsignal_new(base, SIGTERM, end, base)), NULL);
	event_add(must(evsignal_new(base, SIGINT, end, base)), NULL);
	event_add(must(event_new(base, -1, EV_PERSIST, tick, NULL)), &second);
	event_base_dispatch(base);
}

int main(int argc, char **argv)
{
	struct options options = {
		.port = "11300", .max_size = 65535, .log_size = 10485760,
	};
	struct event_base *base;
	int fd;

	parse(&options, argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	base = must(event_base_new());
	fd = listen_open(options.address, options.port);
	if (options.user)
		become(options.user);
	load(&options, base);
	conn_start(base);
	listen_start(base, fd);
	if (options.verbose)
		printf("pid %d, jobs in %s\n", getpid(), options.dir);
	serve(base);
	commit_stop();
	store_close();
	return 0;
}
