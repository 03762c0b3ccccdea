// SPDX-License-Identifier: GPL-2.0
/*
 * What the server says of a tab that was made: lines that it does not take become comments, and
 * are named as lines of the file that they come from.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import.h"

struct lines {
	const struct import *import;
	char **text;
	size_t count;
	bool wrong;
};

static void split(struct lines *lines, char *tab)
{
	for (char *line; (line = strsep(&tab, "\n"));) {
		lines->text = need(realloc(lines->text, (lines->count + 1) * sizeof(*lines->text)));
		lines->text[lines->count++] = line;
	}
	/* No line begins after the last end of a line. */
	lines->count--;
}

static void print_lines(FILE *to, const struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		fprintf(to, "%s\n", lines->text[i]);
}

/* The server's messages of a file */
static FILE *check(int tab, pid_t *pid)
{
	char path[40];
	int ends[2];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", tab);
	if (pipe(ends) < 0)
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		char *const command[] = { "twheeld", "-t", path, "--times=1", NULL };

		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		jobs_run_server(command);
		_exit(127);
	}
	close(ends[1]);
	return fdopen(ends[0], "r");
}

static void comment_out(struct lines *lines, size_t number, const char *why)
{
	const struct origin *origin = &lines->import->origins[number];
	char *comment;

	if (origin->line)
		say("%s:%u: %s", origin->path, origin->line, why);
	else
		say("%s: %s: %s", origin->path, why, lines->text[number]);
	if (asprintf(&comment, "# left out: %s: %s", why, lines->text[number]) < 0)
		need(NULL);
	lines->text[number] = comment;
	lines->wrong = true;
}

/* PATH:LINE:COLUMN: WHY. Gives whether a line became a comment. */
static bool take_message(struct lines *lines, char *message)
{
	unsigned int line;
	int begin = 0;
	bool zone;

	message[strcspn(message, "\n")] = 0;
	if (sscanf(message, "/proc/self/fd/%*u:%u:%*u: %n", &line, &begin) != 1 || !begin ||
	    !line || line > lines->count || *lines->text[line - 1] == '#' ||
	    !strncmp(message + begin, "the lines after it", strlen("the lines after it")))
		return false;
	zone = !strncmp(lines->text[line - 1], "CRON_TZ", 7);
	comment_out(lines, line - 1, message + begin);
	/* What comes after it would go by the zone of this machine. */
	for (; zone && line < lines->count && strncmp(lines->text[line], "CRON_TZ", 7); line++)
		if (strchr("0123456789*@", *lines->text[line]) && *lines->text[line])
			comment_out(lines, line, "its zone is not known");
	return true;
}

/* Gives the status of the server, and whether there may be more that is wrong. */
static int check_once(struct lines *lines, bool *more)
{
	int fd = memfd_create("tab", 0), status = -1;
	FILE *tab = need(fdopen(fd, "w")), *said;
	char *message = NULL;
	size_t room = 0;
	pid_t pid = -1;

	print_lines(tab, lines);
	fflush(tab);
	said = need(check(fd, &pid));
	*more = false;
	while (getline(&message, &room, said) > 0)
		*more = take_message(lines, message) || *more;
	free(message);
	fclose(said);
	fclose(tab);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/** import_finish - print the tab, without what the server does not take; gives the status */
int import_finish(struct import *import)
{
	struct lines lines = { .import = import };
	bool more = true;
	int status = 0;

	import_place(import);
	fclose(import->tab);
	split(&lines, import->text);
	while (more)
		status = check_once(&lines, &more);
	if (status)
		return fail(STATUS_FAILED, "twheeld, which knows what a tab can have, %s",
			    status == 127 ? "can't be run" : "has failed");
	print_lines(stdout, &lines);
	return finish_output(lines.wrong || import->wrong ? STATUS_FAILED : STATUS_OK);
}
