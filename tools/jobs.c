// SPDX-License-Identifier: GPL-2.0
/*
 * twheel jobs: the schedules of twheeld, and what they did.
 */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/nearest.h"
#include "jobs.h"

static const struct {
	const char *name, *arguments;
	int words;		/* that follow it; -1: one or more */
	int (*run)(const struct jobs *jobs);
} commands[] = {
	{ "list", "", 0, jobs_list },
	{ "show", " NAME", 1, jobs_show },
	{ "history", " NAME", 1, jobs_history },
	{ "tries", " JOB", 1, jobs_tries },
	{ "pause", " NAME", 1, jobs_do },
	{ "resume", " NAME", 1, jobs_do },
	{ "run", " NAME", 1, jobs_do },
	{ "backfill", " NAME FROM TO", 3, jobs_backfill },
	{ "check", " FILE", 1, jobs_check },
	{ "push", " FOLDER", 1, jobs_push },
	{ "import", " FILE...", -1, jobs_import },
};

/* What others call them */
static const char *const other_words[][2] = {
	{ "disable", "pause" }, { "stop", "pause" }, { "suspend", "pause" }, { "enable", "resume" },
	{ "start", "run" }, { "trigger", "run" }, { "ls", "list" }, { "log", "history" },
	{ "output", "tries" }, { "runs", "history" },
	{ "status", "show" }, { "validate", "check" },
};

enum { KEY_USER = 256, KEY_SYSTEM, KEY_SECONDS, KEY_DEBIAN, KEY_CRONIE, KEY_UTC, KEY_HOW };

static const char *const hows[] = { "failed", "missed", "late", "paused", "fine" };

static struct jobs jobs;
static char **words;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j':
		jobs.json = true;
		return 0;
	case 's':
		ask_socket = arg;
		return 0;
	case KEY_USER:
	case KEY_SYSTEM:
		jobs.users = key == KEY_USER ? "--user" : "--system";
		return 0;
	case KEY_DEBIAN:
	case KEY_CRONIE:
		jobs.cron = key == KEY_DEBIAN ? "--debian" : "--cronie";
		return 0;
	case KEY_UTC:
	case 'z':
		jobs.clock = key == 'z' ? CLOCK_ZONE : CLOCK_UTC;
		return 0;
	case 'o':
		jobs.output = true;
		return 0;
	case KEY_HOW:
		for (size_t i = 0; i < ARRAY_SIZE(hows); i++)
			if (!strcmp(arg, hows[i]))
				jobs.how = hows[i];
		if (!jobs.how)
			argp_error(state, "a schedule is failed, missed, late, paused or fine, not "
				   "'%s'", arg);
		return 0;
	case KEY_SECONDS:
		jobs.seconds = "--seconds";
		return 0;
	case 'n':
		if (!*arg || arg[strspn(arg, "0123456789")] || atoi(arg) < 1 || atoi(arg) > 1000)
			argp_error(state, "'%s' is no number from 1 to 1000", arg);
		jobs.count = arg;
		return 0;
	case ARGP_KEY_ARG:
		words[jobs.nr_words++] = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "list, show, history, tries, pause, resume, run, backfill, "
			   "check, push or import?");
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	OPTION_JSON,
	OPTION_SOCKET,
	{ "how", KEY_HOW, "HOW", 0, "list: only those that are failed, missed, late, paused or "
	  "fine", 0 },
	{ "utc", KEY_UTC, NULL, 0, "list, show, history, tries: times are of UTC, not of your "
	  "zone", 0 },
	{ "zone", 'z', NULL, 0, "... but of the zone of each schedule", 0 },
	{ "count", 'n', "NUMBER", 0, "history: how many runs, the last first (20); check: how many "
	  "times (5)", 0 },
	{ "output", 'o', NULL, 0, "history: each try of the runs, and the end of its output", 0 },
	{ "user", KEY_USER, NULL, 0, "import: crontabs have no user before the command", 1 },
	{ "system", KEY_SYSTEM, NULL, 0, "import: crontabs have a user before the command, as "
	  "/etc/crontab has", 1 },
	{ "seconds", KEY_SECONDS, NULL, 0, "import: crontabs have six fields, of which the first "
	  "is that of seconds", 1 },
	{ "debian", KEY_DEBIAN, NULL, 0, "import: crontabs were Debian's cron's", 1 },
	{ "cronie", KEY_CRONIE, NULL, 0, "import: crontabs were cronie's", 1 },
	{}
};

static const struct argp argp = {
	options, parse,
	"list\nshow NAME\nhistory NAME\ntries JOB\npause NAME\nresume NAME\nrun NAME\n"
	"backfill NAME FROM TO\ncheck FILE\npush FOLDER\nimport FILE...",
	"Says which schedules twheeld has, and what they did, and what became of a job that was "
	"kept; stops one, has it go on, has it "
	"make its jobs now, or those of a time that is over.\v"
	"push keeps the tabs of a folder in the store, for all of its servers, in place of those that "
	"were pushed before; if one has a line that is wrong, none is taken. "
	"check needs no server that runs: twheeld -t says what is wrong in a tab, and when its "
	"schedules fire next. Nor does import, which prints a tab made of crontabs, of timers "
	"of systemd, whose names end with .timer, of .xml of Quartz, of .yaml of Kubernetes, and of "
	".yaml, .properties and Spring's .xml of Elastic-Job; it says what it took a file for, and "
	"names what is left out. FROM and TO are times like 2027-01-01T00:00Z; without Z, they are "
	"of the schedule's zone. See twheeld.tab(5).",
	NULL, NULL, NULL
};

static int no_such(const char *word)
{
	const char *meant = NULL;
	unsigned int distance = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (nearer(word, commands[i].name, &distance))
			meant = commands[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(other_words); i++)
		if (!strcmp(word, other_words[i][0]))
			meant = other_words[i][1];
	if (meant)
		return fail(STATUS_USAGE, "there is no '%s': did you mean twheel jobs %s?", word,
			    meant);
	return fail(STATUS_USAGE, "there is no '%s': see twheel jobs --help", word);
}

int cmd_jobs(int argc, char **argv)
{
	size_t i;

	words = need(calloc(argc, sizeof(*words)));
	jobs.words = words;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(words[0], commands[i].name))
			continue;
		if (jobs.nr_words - 1 == commands[i].words ||
		    (commands[i].words < 0 && jobs.nr_words > 1))
			return commands[i].run(&jobs);
		return fail(STATUS_USAGE, "%s has too %s words: write twheel jobs %s%s", words[0],
			    jobs.nr_words - 1 < abs(commands[i].words) ? "few" : "many",
			    words[0], commands[i].arguments);
	}
	return no_such(words[0]);
}
