// SPDX-License-Identifier: GPL-2.0
/*
 * twheel jobs import: a tab, made of crontabs and of timers of systemd. It is printed, and
 * nothing is written.
 *
 * What can't be said in a tab is a comment there, and is named. That also the server takes
 * what is left, it says itself.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs.h"
#include "jobs_import.h"

#define BLANKS " \t"

/* import_fields - have the times of the lines that follow five fields, or seven */
void import_fields(struct import *import, bool seven)
{
	if (seven != import->fields)
		fprintf(import->tab, "FIELDS=%d\n", seven ? 7 : 5);
	import->fields = seven;
}

/* import_leave_out - a line can't be said in a tab */
void import_leave_out(struct import *import, const char *text, const char *format, ...)
{
	char why[400];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	import->wrong = true;
	say("%s:%u: %s", import->path, import->line, why);
	fprintf(import->tab, "# left out: %s: %s\n", why, text);
}

/* import_percent - a text in which a percent sign means nothing */
void import_percent(struct import *import, const char *text)
{
	for (; *text; text++) {
		if (*text == '%')
			putc('%', import->tab);
		putc(*text, import->tab);
	}
}

/* Crontabs */

/* A word is taken from the line; what follows it is there after blanks. */
static char *take_word(char **line)
{
	char *word = *line + strspn(*line, BLANKS);

	*line = word + strcspn(word, BLANKS);
	if (**line)
		*(*line)++ = 0;
	*line += strspn(*line, BLANKS);
	return word;
}

/* Cron gives what follows a percent sign to the command. */
static bool has_input(const char *command)
{
	for (; *command; command++) {
		if (*command == '\\' && command[1] == '%')
			command++;
		else if (*command == '%')
			return true;
	}
	return false;
}

static void print_command(struct import *import, const char *command)
{
	size_t word = strcspn(command, BLANKS);

	/* The body is not to begin with what is an option, or one more field of the time. */
	if (memchr(command, '=', word) || !strncmp(command, "--", 2) ||
	    (word == 1 && strchr("*?", *command)))
		fputs("-- ", import->tab);
	for (; *command; command++) {
		if (*command == '\\' && command[1] == '%') {
			fputs("%%", import->tab);
			command++;
		} else {
			putc(*command, import->tab);
		}
	}
}

static void import_job(struct import *import, const char *text, bool has_user)
{
	char *copy = need(strdup(text)), *rest = copy, *when[5], *user = NULL;
	int words = *rest == '@' ? 1 : 5;

	for (int i = 0; i < words; i++)
		when[i] = take_word(&rest);
	if (has_user)
		user = take_word(&rest);
	if (!*rest) {
		import_leave_out(import, text, "there is no command");
	} else if (!strcmp(when[0], "@reboot")) {
		import_leave_out(import, text, "@reboot is no time: let a service do it");
	} else if (has_input(rest)) {
		import_leave_out(import, text, "what follows %% is input: jobs have none");
	} else {
		import_fields(import, false);
		for (int i = 0; i < words; i++)
			fprintf(import->tab, "%s ", when[i]);
		if (user)
			fprintf(import->tab, "TUBE=%s ", user);
		print_command(import, rest);
		putc('\n', import->tab);
	}
	free(copy);
}

static bool is_taken(const char *text)
{
	static const char * const names[] = {
		"SHELL", "PATH", "MAILTO", "HOME", "LOGNAME", "CRON_TZ",
	};
	size_t length = strcspn(text, " \t=");

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == length && !memcmp(text, names[i], length))
			return true;
	return false;
}

static void import_crontab(struct import *import, FILE *file, bool has_user)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, file) > 0) {
		char *text = line + strspn(line, BLANKS);

		import->line++;
		text[strcspn(text, "\r\n")] = 0;
		import->zone = import->zone || !strncmp(text, "CRON_TZ", 7);
		if (!*text || *text == '#' || is_taken(text))
			fprintf(import->tab, "%s\n", text);
		else if (strchr("0123456789*@", *text))
			import_job(import, text, has_user);
		else if (strchr(text, '='))
			import_leave_out(import, text,
					 "jobs have no environment: the worker has one");
		else
			import_leave_out(import, text, "this is no line of a crontab");
	}
	free(line);
}

/* What the server says of it */

/* Lines of a tab, which are comments once they were found wrong */
struct lines {
	char **text;
	size_t count;
	bool wrong;
};

static struct lines split(char *tab)
{
	struct lines lines = { NULL, 0, false };

	for (char *line; (line = strsep(&tab, "\n"));) {
		lines.text = need(realloc(lines.text, (lines.count + 1) * sizeof(*lines.text)));
		lines.text[lines.count++] = line;
	}
	/* What is after the last end of a line is no line. */
	lines.count--;
	return lines;
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
		char *const command[] = { "twheeld", "-t", path, NULL };

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
	char *comment;

	say("%s: %s", why, lines->text[number]);
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
	    strstr(message, "the others are not named") ||
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

static int check_and_print(char *tab)
{
	struct lines lines = split(tab);
	bool more = true;
	int status = 0;

	while (more)
		status = check_once(&lines, &more);
	if (status)
		return fail(STATUS_FAILED, "twheeld, which knows what a tab can have, %s",
			    status == 127 ? "can't be run" : "has failed");
	print_lines(stdout, &lines);
	return finish_output(lines.wrong ? STATUS_FAILED : STATUS_OK);
}

/* Files */

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* It is a line of the tab. */
static bool has_control(const char *path)
{
	for (; *path; path++)
		if (iscntrl((unsigned char)*path))
			return true;
	return false;
}

/* In those of the system, the user comes before the command. */
static bool is_of_system(const char *path)
{
	char *whole = realpath(path, NULL);
	bool is = strstr(path, "cron.d/") || ends_with(path, "/crontab") ||
		(whole && (strstr(whole, "cron.d/") || ends_with(whole, "/crontab")));

	free(whole);
	return is;
}

static bool import_file(struct import *import, const char *path)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;

	if (!file)
		return false;
	import->path = path;
	import->line = 0;
	fprintf(import->tab, "# %s\n", path);
	if (import->zone)
		fputs("CRON_TZ=\n", import->tab);
	import->zone = false;
	if (ends_with(path, ".timer"))
		import_timer(import, file);
	else
		import_crontab(import, file, is_of_system(path));
	if (file != stdin)
		fclose(file);
	return true;
}

int jobs_import(const struct jobs *jobs)
{
	struct import import = { .wrong = false };
	size_t size;
	char *tab;
	int status;

	import.tab = need(open_memstream(&tab, &size));
	/* Cron makes up for nothing, nor does a timer that is not Persistent. */
	fputs("MISFIRE=skip\n", import.tab);
	for (int i = 1; i < jobs->nr_words; i++) {
		if (has_control(jobs->words[i]))
			return fail(STATUS_FAILED, "file %d has a control character in its name:"
				    " rename it", i);
		if (!import_file(&import, jobs->words[i]))
			return fail(STATUS_FAILED, "%s: %s", jobs->words[i], strerror(errno));
	}
	fclose(import.tab);
	status = check_and_print(tab);
	free(tab);
	return import.wrong ? STATUS_FAILED : status;
}
