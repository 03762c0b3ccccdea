// SPDX-License-Identifier: GPL-2.0
/*
 * What "twheel jobs" asks the server: a line of words over its admin socket, answered by
 * lines of JSON, of which the last has "ok" or "error".
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "jobs.h"

static int cant_connect(const char *path)
{
	if (errno == EACCES)
		return fail(STATUS_NOT_ALLOWED, "%s: you may not speak to the server; as root: "
			    "sudo twheel jobs ...", path);
	return fail(STATUS_FAILED, "no server answers at %s: %s. Has it the setting 'schedules', "
		    "and is this its 'admin'? Another one is said by -s or TWHEELD_ADMIN; see "
		    "twheeld.conf(5)", path, strerror(errno));
}

/* Gives NULL, having said why, and what the command is to end with. */
static FILE *connect_to(const char *path, int *status)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		*status = fail(STATUS_USAGE, "%s: this path is too long for a socket", path);
		return NULL;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		*status = cant_connect(path);
		return NULL;
	}
	return need(fdopen(fd, "r+"));
}

/* All objects of an answer; the last one, which ends it, is taken from the array. */
static int read_answer(FILE *server, json_t *array, json_t **last)
{
	char *line = NULL;
	size_t room = 0;

	*last = NULL;
	while (!*last && getline(&line, &room, server) > 0) {
		json_t *object = json_loads(line, 0, NULL);

		if (!json_is_object(object))
			break;
		if (json_object_get(object, "ok") || json_object_get(object, "error"))
			*last = object;
		else
			json_array_append_new(array, object);
	}
	free(line);
	if (!*last)
		return fail(STATUS_FAILED, "the server's answer ends in the middle: has it ended?");
	if (!json_object_get(*last, "error"))
		return STATUS_OK;
	return fail(STATUS_FAILED, "%s", json_string_value(json_object_get(*last, "error")));
}

/* Ask for a request, and have the objects of the answer. */
static int ask(const struct jobs *jobs, const char *request, json_t **array, json_t **last)
{
	int status = STATUS_FAILED;
	FILE *server = connect_to(jobs->socket, &status);

	if (!server)
		return status;
	*array = need(json_array());
	fprintf(server, "%s\n", request);
	fflush(server);
	status = read_answer(server, *array, last);
	fclose(server);
	return status;
}

static const char *member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "-";
}

static long long number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

int jobs_list(const struct jobs *jobs)
{
	json_t *array, *last, *one;
	size_t i;
	int status = ask(jobs, "list", &array, &last);

	if (status)
		return status;
	if (number(last, "wrong"))
		say("wrong lines of the tabs, which are left out: %lld. The server's log names "
		    "them, and so does twheel jobs check FILE", number(last, "wrong"));
	if (json_string_length(json_object_get(last, "differ")))
		say("these servers have other tabs than the one that was asked: %s. Have the same "
		    "files on all", member(last, "differ"));
	if (jobs->json)
		return print_json(array);
	printf("%-32s %-20s %-20s %-8s %s\n", "NAME", "NEXT", "LAST", "RESULT", "WHEN");
	json_array_foreach(array, i, one) {
		const json_t *run = json_object_get(one, "last");

		printf("%-32s %-20s %-20s %-8s %s\n", member(one, "name"),
		       json_is_true(json_object_get(one, "paused")) ? "paused" :
		       member(one, "next"), member(run, "time"), member(run, "result"),
		       member(one, "when"));
	}
	return finish_output(STATUS_OK);
}

/* A body may have control sequences of a terminal in it. */
static void print_line(const char *text)
{
	for (; *text; text++)
		putchar(iscntrl((unsigned char)*text) ? '?' : *text);
	putchar('\n');
}

static void print_member(const char *name, const json_t *value)
{
	const json_t *one;
	size_t i;

	if (json_is_array(value)) {
		json_array_foreach(value, i, one)
			print_member(i ? "" : name, one);
		return;
	}
	if (json_is_null(value))
		return;
	printf("%-14s ", name);
	if (json_is_string(value))
		print_line(json_string_value(value));
	else if (json_is_integer(value))
		printf("%lld\n", (long long)json_integer_value(value));
	else if (json_is_boolean(value))
		puts(json_is_true(value) ? "yes" : "no");
	else
		printf("%s, %s\n", member(value, "time"), member(value, "result"));
}

int jobs_show(const struct jobs *jobs)
{
	json_t *array, *last, *value;
	char request[1100];
	const char *name;
	int status;

	snprintf(request, sizeof(request), "show %.1000s", jobs->words[1]);
	status = ask(jobs, request, &array, &last);
	if (status)
		return status;
	if (jobs->json)
		return print_json(json_incref(json_array_get(array, 0)));
	json_object_foreach(json_array_get(array, 0), name, value)
		print_member(name, value);
	return finish_output(STATUS_OK);
}

int jobs_history(const struct jobs *jobs)
{
	json_t *array, *last, *one;
	char request[1100];
	int status;
	size_t i;

	snprintf(request, sizeof(request), "history %.1000s%s%s", jobs->words[1],
		 jobs->count ? " " : "", jobs->count ? jobs->count : "");
	status = ask(jobs, request, &array, &last);
	if (status)
		return status;
	if (jobs->json)
		return print_json(array);
	printf("%-20s %-4s %5s %10s %-8s %-20s %s\n", "TIME", "BY", "SHARD", "JOB", "RESULT",
	       "MADE", "ENDED");
	json_array_foreach(array, i, one)
		printf("%-20s %-4s %5lld %10lld %-8s %-20s %s\n", member(one, "time"),
		       json_is_true(json_object_get(one, "asked")) ? "run" : "time",
		       number(one, "shard"), number(one, "job"), member(one, "result"),
		       member(one, "created"), member(one, "ended"));
	return finish_output(STATUS_OK);
}

static int print_counts(const struct jobs *jobs, json_t *last)
{
	if (jobs->json)
		return print_json(last);
	if (json_object_get(last, "made"))
		printf("jobs made: %lld; left out, as an earlier one is not done: %lld; waiting "
		       "for that: %lld; there before: %lld\n", number(last, "made"),
		       number(last, "skipped"), number(last, "waiting"), number(last, "there"));
	return finish_output(STATUS_OK);
}

/* pause, resume, run */
int jobs_do(const struct jobs *jobs)
{
	json_t *array, *last;
	char request[1100];
	int status;

	snprintf(request, sizeof(request), "%s %.1000s", jobs->words[0], jobs->words[1]);
	status = ask(jobs, request, &array, &last);
	return status ? status : print_counts(jobs, last);
}

/* The server knows in which zone the times are. */
int jobs_backfill(const struct jobs *jobs)
{
	json_t *array, *last;
	char request[1100];
	int status;

	snprintf(request, sizeof(request), "backfill %.900s %.60s %.60s", jobs->words[1],
		 jobs->words[2], jobs->words[3]);
	status = ask(jobs, request, &array, &last);
	return status ? status : print_counts(jobs, last);
}

/* Become the server that was built or installed with this program, if there is one. */
static void run_own(const char *from_here, char *const *command)
{
	char here[PATH_MAX], path[PATH_MAX + 30];
	ssize_t length = readlink("/proc/self/exe", here, sizeof(here));

	while (length > 0 && here[length - 1] != '/')
		length--;
	snprintf(path, sizeof(path), "%.*s%s", (int)length, here, from_here);
	if (length > 0)
		execv(path, command);
}

/* Become the server, or return as there is none. */
void jobs_run_server(char *const *command)
{
	run_own("../twheeld/twheeld", command);
	run_own("../sbin/twheeld", command);
	execvp(command[0], command);
}

/* The server reads tabs, so it alone says what is wrong in one. */
int jobs_check(const struct jobs *jobs)
{
	char times[40], *command[] = { "twheeld", "-t", jobs->words[1], times, NULL, NULL };

	snprintf(times, sizeof(times), "--times=%s", jobs->count ? jobs->count : "5");
	if (jobs->json)
		command[4] = "--json";
	jobs_run_server(command);
	return fail(STATUS_FAILED, "the program twheeld, which reads the file, can't be run: %s",
		    strerror(errno));
}
