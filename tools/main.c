// SPDX-License-Identifier: GPL-2.0
/*
 * twheel: what an administrator and a shell want of wheels. Each command is a file of its
 * own; here is which there are.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "tool.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
	{ "info", cmd_info, "is the module loaded, who may use it, what can it do" },
	{ "list", cmd_list, "which wheels are there, and whose" },
	{ "top", cmd_top, "the same as it changes" },
	{ "stats", cmd_stats, "what wheels have counted" },
	{ "watch", cmd_watch, "what happens to timers, as it happens" },
	{ "jobs", cmd_jobs, "what the schedules of twheeld do" },
	{ "put", cmd_put, "put a job in a tube of twheeld" },
	{ "tubes", cmd_tubes, "which tubes twheeld has" },
	{ "peek", cmd_peek, "show a job" },
	{ "kick", cmd_kick, "have jobs ready that are buried or delayed" },
	{ "back", cmd_back, "send dead letters back to where they came from" },
	{ "delete", cmd_delete, "delete jobs" },
	{ "bench", cmd_bench, "what timers cost on this machine" },
};

static void usage(FILE *to)
{
	size_t i;

	fputs("Usage: twheel COMMAND [OPTION...]\n\n", to);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].what);
	fputs("\n\"twheel COMMAND --help\" says more of each; so does twheel(1).\n", to);
}

static int run(size_t command, int argc, char **argv)
{
	static char name[32];

	/* argp has the command's name from there. */
	snprintf(name, sizeof(name), "twheel %s", commands[command].name);
	argv[0] = name;
	argp_err_exit_status = STATUS_USAGE;
	return commands[command].run(argc, argv);
}

static void no_such(const char *word)
{
	const char *meant = NULL;
	unsigned int distance = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (nearer(word, commands[i].name, &distance))
			meant = commands[i].name;
	if (meant)
		say("there is no command '%s': did you mean %s?", word, meant);
	else
		say("there is no command '%s'", word);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	size_t i;

	setlocale(LC_ALL, "");
	/* Numbers have a point in them everywhere, as JSON has. */
	setlocale(LC_NUMERIC, "C");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(word, commands[i].name))
			return run(i, argc - 1, argv + 1);
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		usage(stdout);
		return finish_output(STATUS_OK);
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		puts("twheel " VERSION);
		return finish_output(STATUS_OK);
	}
	if (*word)
		no_such(word);
	usage(stderr);
	return STATUS_USAGE;
}
