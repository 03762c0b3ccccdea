// SPDX-License-Identifier: GPL-2.0
/*
 * What the command line says.
 */
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/duration.h"
#include "child.h"
#include "must.h"
#include "options.h"

#define WRONG_OPTION 5
/* As many as have room in a fraction of the descriptors that a process may have */
#define MOST_AT_A_TIME 200
#define SECOND 1000000000LL
#define MOST_TIME (365 * 24 * 3600 * SECOND)

static const char help[] =
"Usage: twheel-run [OPTIONS] COMMAND [ARGUMENT...]\n"
"Takes jobs from a server like twheeld, and runs the command for each, with the body of the\n"
"job on standard input. Status 0 deletes the job, 65 buries it, any other releases it.\n"
"\n"
"  -t TUBE         take jobs of this tube; may be there several times (default: default)\n"
"  -j N            run N commands at a time (default: 1)\n"
"  -s ADDR         the server's address, or unix:PATH (default: 127.0.0.1)\n"
"  -p PORT         the server's port (default: 11300)\n"
"  -a FILE         say the token in this file first, as a server asks that of clients of other\n"
"                  machines\n"
"  -n N            bury a job after N tries, 0: never (default: 5)\n"
"  -b FIRST..MOST  delay a job that failed by FIRST, twice that the next time, up to MOST\n"
"                  (default: 1s..1h)\n"
"  -l TIME         end a command that takes longer (default: no limit)\n"
"  -k TIME         kill a command that has not ended this long after SIGTERM\n"
"                  (default: 5s)\n"
"  -g TIME         on SIGTERM, wait so long for commands that run (default: 1m)\n"
"  -o BYTES        tell the server so much of the output, the last of it (default: 8192)\n"
"  -V              say more\n"
"  -v              print the version\n"
"  -h              print this\n"
"\n"
"A time is like 20 (seconds), " DURATION_EXAMPLES ".\n"
"See twheel-run(1).\n";

struct options options = {
	.server = "127.0.0.1", .port = "11300", .at_a_time = 1, .tries = 5,
	.first_delay = 1000, .most_delay = 3600000, .grace = 60000, .kill_after = 5000,
	.output = CHILD_LAST,
};

__attribute__((noreturn)) static void wrong(char option, const char *text, const char *why)
{
	errx(WRONG_OPTION, "-%c %s: %s; see twheel-run -h", option, text, why);
}

static unsigned long digits(char option, const char *text, unsigned long most)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value > most)
		errx(WRONG_OPTION, "-%c %s: this takes a whole number up to %lu; see twheel-run -h",
		     option, text, most);
	return value;
}

/* Rounded up to ms */
static long long duration(char option, const char *text)
{
	int64_t ns;

	if (!duration_parse(text, SECOND, &ns) || ns > MOST_TIME)
		wrong(option, text,
		      "this takes a time up to 365d: 20 (seconds), " DURATION_EXAMPLES);
	return (ns + 999999) / 1000000;
}

static void set_delays(const char *text)
{
	int64_t first, most;

	if (!strstr(text, "..") || !duration_range(text, SECOND, &first, &most) ||
	    most > MOST_TIME)
		wrong('b', text,
		      "this takes two times up to 365d, the longer one last, as in 1s..1h: "
		      DURATION_EXAMPLES);
	options.first_delay = (first + 999999) / 1000000;
	options.most_delay = (most + 999999) / 1000000;
}

/* Add a tube; its name has to be one of the protocol. */
static void add_tube(const char *name)
{
	static const char others[] = "-+/;.$_()";
	size_t length = strlen(name), good = 0;

	while (good < length &&
	       (isalnum((unsigned char)name[good]) || strchr(others, name[good])))
		good++;
	if (!length || length > 200 || *name == '-' || good != length)
		wrong('t', name, "no tube can have this name");
	options.tubes = must(reallocarray(options.tubes, options.tube_count + 1,
					  sizeof(*options.tubes)));
	options.tubes[options.tube_count++] = name;
}

/**
 * options_token - read the token, which may be another one by now
 *
 * Return: NULL, or what is wrong.
 */
const char *options_token(char token[OPTIONS_TOKEN])
{
	/* What is no file may keep its reader waiting, or give a token only once. */
	int fd = open(options.token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *wrong;
	struct stat st;
	ssize_t length;

	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		wrong = "this is no file";
	else
		wrong = token_refuse_mode(&st);
	length = wrong ? 0 : read(fd, token, OPTIONS_TOKEN);
	close(fd);
	while (length > 0 && isspace((unsigned char)token[length - 1]))
		length--;
	if (!wrong && (length <= 0 || length == OPTIONS_TOKEN))
		wrong = "there has to be a token alone, of 200 bytes at most";
	for (ssize_t i = 0; !wrong && i < length; i++)
		if (!isgraph((unsigned char)token[i]))
			wrong = "there has to be a token alone, without spaces";
	if (!wrong)
		token[length] = '\0';
	return wrong;
}

static void set_token(const char *path)
{
	char token[OPTIONS_TOKEN];
	const char *why;

	options.token_file = path;
	why = options_token(token);
	if (why)
		wrong('a', path, why);
}

static void set_time(char option, long long *ms)
{
	*ms = duration(option, optarg);
}

static void set_at_a_time(void)
{
	options.at_a_time = digits('j', optarg, MOST_AT_A_TIME);
	if (!options.at_a_time)
		wrong('j', optarg, "at least one at a time");
}

static void set_option(int option)
{
	switch (option) {
	case 't':
		add_tube(optarg);
		break;
	case 'j':
		set_at_a_time();
		break;
	case 'a':
		set_token(optarg);
		break;
	case 's':
		options.server = optarg;
		break;
	case 'p':
		options.port = optarg;
		digits('p', optarg, 65535);
		break;
	case 'n':
		options.tries = digits('n', optarg, 1000000);
		break;
	case 'b':
		set_delays(optarg);
		break;
	case 'l':
		set_time('l', &options.limit);
		break;
	case 'k':
		set_time('k', &options.kill_after);
		break;
	case 'g':
		set_time('g', &options.grace);
		break;
	case 'o':
		options.output = digits('o', optarg, CHILD_LAST);
		break;
	case 'V':
		options.verbose++;
		break;
	case 'v':
		puts("twheel-run " TWHEELD_VERSION);
		exit(0);
	case 'h':
		fputs(help, stdout);
		exit(0);
	default:
		fputs("See twheel-run -h\n", stderr);
		exit(WRONG_OPTION);
	}
}

/** options_parse - take the options, or end with a message that says what is wrong with them */
void options_parse(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	/* Words with a dash after the command are the command's. */
	static const char letters[] = "+a:t:j:s:p:n:b:l:k:g:o:Vvh";
	int option;

	while ((option = getopt_long(argc, argv, letters, long_options, NULL)) >= 0)
		set_option(option);
	if (optind == argc)
		errx(WRONG_OPTION, "which command? See twheel-run -h");
	options.command = argv + optind;
	if (!options.tube_count)
		add_tube("default");
}

/** options_delay - how many seconds to delay a job that has failed @tries times */
long long options_delay(unsigned long long tries)
{
	long long delay = options.first_delay;

	for (unsigned long long i = 1; i < tries && delay && delay < options.most_delay; i++)
		delay *= 2;
	if (delay > options.most_delay)
		delay = options.most_delay;
	return (delay + 999) / 1000;
}
