// SPDX-License-Identifier: GPL-2.0
/*
 * The options: from the command line, or else from the configuration file.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/alarm.h"
#include "base/util.h"
#include "jobs/protocol.h"
#include "server/options.h"

#define DEFAULT_DIR "/var/lib/twheeld"
#define DEFAULT_FILE "/etc/twheeld.conf"
#define WRONG_OPTION 5
#define TIMES_OF_CHECK 1000

/* Bytes of a unix socket's path, with its 0 */
#define SUN_PATH_MOST sizeof(((struct sockaddr_un *)0)->sun_path)

/* Options without a letter */
enum { TIMES = 256, JSON };

/* What the command line says of settings, which goes before what the file says */
static struct {
	const char *store, *user;
	int sync;			/* enum sync; below 0: nothing */
	int64_t sync_ns, job_size;	/* bytes; below 0: nothing */
} line = { .sync = -1, .job_size = -1 };

static const char help[] =
"Usage: twheeld [OPTIONS]\n"
"Keeps jobs, and gives them out when they are due, to clients of beanstalkd. A job\n"
"that was acknowledged is on the disk.\n"
"\n"
"  -b DIR    keep the jobs in this folder (default: $STATE_DIRECTORY,\n"
"            or " DEFAULT_DIR ")\n"
"            --store=postgresql://...: in a database, which other servers may share\n"
"  -c FILE   read the configuration there (default: " DEFAULT_FILE ",\n"
"            if it is there). Options go before it\n"
"  -f MS     sync the disk at most once every MS milliseconds. Jobs acknowledged\n"
"            since may be lost when the power fails (default: -f0, at each commit)\n"
"  -F        never sync the disk\n"
"  -l ADDR   listen on this address, or on unix:PATH (default: all addresses)\n"
"  -p PORT   listen on this port (default: 11300)\n"
"  -u USER   become this user and its group\n"
"  -z BYTES  the longest body of a job (default: 65535)\n"
"  -t FILE   say what is wrong in a file of schedules, and when they fire, and end\n"
"            --times=N: N times of each (default: 5). --json: as JSON\n"
"  -s BYTES  accepted and without effect, as there is one log\n"
"  -V        say more\n"
"  -v        print the version\n"
"  -h        print this\n"
"\n"
"See twheeld(8).\n";

/* Say what is wrong with the command line, and end. */
#define wrong(...) ({ complain(__VA_ARGS__); exit(WRONG_OPTION); })

static unsigned long options_number(const char *text, char option)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		wrong("-%c %s: this takes digits alone, see twheeld -h", option, text);
	return value;
}

static void set_sync(const char *text)
{
	unsigned long ms = options_number(text, 'f');

	if (ms > 3600000)
		wrong("-f %s: 3600000 milliseconds are the most", text);
	line.sync = ms ? SYNC_SOMETIMES : SYNC_ALWAYS;
	line.sync_ns = ms * MILLISECOND;
}

static void set_job_size(const char *text)
{
	unsigned long bytes = options_number(text, 'z');

	if (bytes > JOB_SIZE_MOST)
		complain("-z %s: %d bytes are the most, and are taken", text, JOB_SIZE_MOST);
	line.job_size = bytes > JOB_SIZE_MOST ? JOB_SIZE_MOST : bytes;
}

static void set_times(struct options *options, const char *text)
{
	unsigned long times = options_number(text, 't');

	if (!times || times > TIMES_OF_CHECK)
		wrong("--times=%s: from 1 to %d", text, TIMES_OF_CHECK);
	options->check_times = times;
}

static void set_port(struct options *options, const char *text)
{
	if (!address_is_port(text))
		wrong("-p %s: a port is a whole number from 1 to 65535", text);
	options->port = text;
}

static void set_option(struct options *options, int option)
{
	switch (option) {
	case 'b':
		line.store = optarg;
		break;
	case 'c':
		options->file = optarg;
		break;
	case 'f':
		set_sync(optarg);
		break;
	case 'F':
		line.sync = SYNC_NEVER;
		line.sync_ns = 0;
		break;
	case 'l':
		options->address = optarg;
		break;
	case 'p':
		set_port(options, optarg);
		break;
	case 'u':
		line.user = optarg;
		break;
	case 'z':
		set_job_size(optarg);
		break;
	case 't':
		options->check = optarg;
		break;
	case TIMES:
		set_times(options, optarg);
		break;
	case JSON:
		options->check_json = true;
		break;
	case 's':
		options->log_size = options_number(optarg, 's');
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
		exit(WRONG_OPTION);
	}
}

static void read_line(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "store", required_argument, NULL, 'b' },
		{ "times", required_argument, NULL, TIMES },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "b:c:f:Fl:p:u:z:s:t:Vvh", long_options,
				     NULL)) >= 0)
		set_option(options, option);
	if (optind < argc)
		wrong("%s: there are only options, see twheeld -h", argv[optind]);
}

static void read_file(struct options *options)
{
	if (!options->file && access(DEFAULT_FILE, F_OK) == 0)
		options->file = DEFAULT_FILE;
	options->settings = options->file ? settings_read(options->file) : settings_parse("", "");
	if (!options->settings)
		die("%s must be put right first", options->file);
}

/* The host's name; characters that a tube's name can't have become hyphens. */
static const char *host_name(void)
{
	static char name[65];

	if (gethostname(name, sizeof(name) - 1) < 0 || !*name)
		return "node";
	for (char *at = name; *at; at++)
		if (!strchr(TUBE_NAME_CHARS, *at))
			*at = '-';
	if (*name == '-')
		*name = 'n';
	return name;
}

/** options_shared - is it the address of a database, which servers can share? */
bool options_shared(const char *where)
{
	return !strncmp(where, "postgresql://", 13) || !strncmp(where, "postgres://", 11);
}

/* The default: in systemd's RuntimeDirectory=, or else beside the jobs */
static const char *admin_path(const struct settings *settings)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");
	char *path;

	if (!dir && options_shared(settings->store)) {
		if (!settings->schedules)
			return NULL;
		die("with a database there is no folder for its socket: set admin = \"/...\"");
	}
	if (asprintf(&path, "%s/admin", dir ? dir : settings->store) < 0)
		must(NULL);
	/* Too long a path is an error only where there are schedules. */
	return settings->schedules || strlen(path) < SUN_PATH_MOST ? path : NULL;
}

/* An empty name would be the root folder. */
static void check_store(const char *store)
{
	if (!*store)
		die("-b and --store want a folder or a database, and got an empty word");
	if (strstr(store, "://") && !options_shared(store))
		die("%s: the only databases are postgresql://...", store);
}

static void complete(struct settings *settings, bool check)
{
	if (line.store && settings->store && strcmp(line.store, settings->store) && !check)
		/* (The address of a database may have a password.) */
		inform("the jobs are where the command line says, not in the file's store");
	if (line.store)
		settings->store = line.store;
	if (line.user)
		settings->user = line.user;
	if (line.job_size >= 0)
		settings->job_size = line.job_size;
	if (line.sync >= 0) {
		settings->sync = line.sync;
		settings->sync_ns = line.sync_ns;
	}
	if (!settings->store)
		settings->store = getenv("STATE_DIRECTORY");
	if (!settings->store)
		settings->store = DEFAULT_DIR;
	check_store(settings->store);
	if (!settings->admin && !check)
		settings->admin = admin_path(settings);
	if (!settings->node)
		settings->node = host_name();
}

/** options_read - read the command line and the file; ends the program if one is wrong */
void options_read(struct options *options, int argc, char **argv)
{
	*options = (struct options){ .log_size = 10485760, .check_times = 5 };
	read_line(options, argc, argv);
	read_file(options);
	complete(options->settings, options->check);
}
