// SPDX-License-Identifier: GPL-2.0
/*
 * The commands of "twheel jobs" about schedules: requests to the server, and their output.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "jobs.h"

/* Of a file of tabs */
#define NAME_MOST 200
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+;.$_()"

/* A time from the server's answer, by the user's clock, or that of the schedule's zone */
static struct text when(const struct jobs *jobs, const char *said, const char *zone)
{
	static const char *own_zone;
	static bool known;
	struct text text;
	struct tm tm = { 0 };
	time_t seconds;

	snprintf(text.s, sizeof(text.s), "%s", said);
	if (jobs->clock == CLOCK_UTC || !strptime(said, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return text;
	if (!known)
		own_zone = getenv("TZ");
	known = true;
	if (jobs->clock == CLOCK_OWN)
		zone = own_zone;
	if (zone && *zone != '-' && *zone)
		setenv("TZ", zone, 1);
	else
		unsetenv("TZ");
	seconds = timegm(&tm);
	localtime_r(&seconds, &tm);
	strftime(text.s, sizeof(text.s), "%F %T %z", &tm);
	return text;
}

static int width(const struct jobs *jobs)
{
	return jobs->clock == CLOCK_UTC ? 20 : 25;
}

int jobs_list(const struct jobs *jobs)
{
	json_t *answer, *schedules, *one;
	size_t i;
	int status = ask_json("GET", "schedules", NULL, &answer), wide = width(jobs);

	if (status)
		return status;
	if (number(answer, "wrong"))
		say("wrong lines of the tabs, which are left out: %lld. The server's log names "
		    "them, and so does twheel jobs check FILE", number(answer, "wrong"));
	if (json_string_length(json_object_get(answer, "differ")))
		say("these servers have other tabs than the one that was asked: %s. Have the same "
		    "files on all", member(answer, "differ"));
	schedules = json_object_get(answer, "schedules");
	for (i = jobs->how ? json_array_size(schedules) : 0; i--; )
		if (strcmp(member(json_array_get(schedules, i), "how"), jobs->how))
			json_array_remove(schedules, i);
	if (jobs->json)
		return print_json(schedules);
	printf("%-32s %-*s %-*s %-8s %-8s %s\n",
	       "NAME", wide, "NEXT", wide, "LAST", "RESULT", "HOW", "WHEN");
	json_array_foreach(schedules, i, one) {
		const json_t *run = json_object_get(one, "last");
		const char *zone = member(one, "zone");

		printf("%-32s %-*s %-*s %-8s %-8s %s\n", member(one, "name"), wide,
		       json_is_true(json_object_get(one, "paused")) ? "paused" :
		       when(jobs, member(one, "next"), zone).s, wide,
		       when(jobs, member(run, "time"), zone).s, member(run, "result"),
		       member(one, "how"), member(one, "when"));
	}
	return finish_output(STATUS_OK);
}

static void print_member(const struct jobs *jobs, const char *name, const json_t *value,
			 const char *zone)
{
	const json_t *one;
	size_t i;

	if (json_is_array(value)) {
		json_array_foreach(value, i, one)
			print_member(jobs, i ? "" : name, one, zone);
		return;
	}
	if (json_is_null(value))
		return;
	if (json_is_object(value))
		printf("%-14s %s, %s\n", name, when(jobs, member(value, "time"), zone).s,
		       member(value, "result"));
	else if (json_is_string(value) &&
		 (!*name || !strcmp(name, "times") || !strcmp(name, "next")))
		printf("%-14s %s\n", name, when(jobs, json_string_value(value), zone).s);
	else
		print_value(name, value);
}

int jobs_show(const struct jobs *jobs)
{
	json_t *answer, *value;
	const char *name;
	int status = ask_json("GET", ask_path("schedules/%s", jobs->words[1]), NULL, &answer);

	if (status)
		return status;
	if (jobs->json)
		return print_json(answer);
	json_object_foreach(answer, name, value)
		print_member(jobs, name, value, member(answer, "zone"));
	return finish_output(STATUS_OK);
}

/* What is kept of a try, or of what somebody did */
static void print_try(const struct jobs *jobs, const json_t *one, const char *zone,
		      const char *before)
{
	const char *said = json_string_value(json_object_get(one, "said"));
	const char *output = json_string_value(json_object_get(one, "output"));

	printf("%s%s ", before, when(jobs, member(one, "ended"), zone).s);
	if (json_object_get(one, "begun"))
		printf("try %lld, %s after %.3f s", number(one, "try"), member(one, "what"),
		       json_real_value(json_object_get(one, "seconds")));
	else
		printf("%s", member(one, "what"));
	printf(" by ");
	print_text(member(one, "by"), NULL);
	if (said)
		printf(": ");
	print_text(said ? said : "", NULL);
	if (output && *output) {
		printf("\n%s  | ", before);
		print_text(output, before[0] ? "    | " : "  | ");
	}
	putchar('\n');
}

static void print_tries(const struct jobs *jobs, const json_t *tries, const char *zone,
			const char *before)
{
	const json_t *one;
	size_t i;

	json_array_foreach(tries, i, one)
		print_try(jobs, one, zone, before);
}

/* The last try of a run, and how many there were */
static const json_t *last_try(const json_t *tries, long long *count)
{
	const json_t *one, *last = NULL;
	size_t i;

	*count = 0;
	json_array_foreach(tries, i, one) {
		if (!json_object_get(one, "begun"))
			continue;
		last = last ? last : one;
		if (number(one, "try") > *count)
			*count = number(one, "try");
	}
	return last;
}

static void print_run(const struct jobs *jobs, const json_t *run, const char *zone)
{
	long long count;
	const json_t *last = last_try(json_object_get(run, "tries"), &count);
	char result[40], seconds[40] = "-";
	int wide = width(jobs);

	snprintf(result, sizeof(result), "%s", member(run, "result"));
	if (number(run, "count") > 1)
		snprintf(result, sizeof(result), "%s %lld", member(run, "result"),
			 number(run, "count"));
	if (last)
		snprintf(seconds, sizeof(seconds), "%.3f",
			 json_real_value(json_object_get(last, "seconds")));
	printf("%-*s %-4s %5lld %10lld %-8s %-*s %-*s %5lld %9s ", wide,
	       when(jobs, member(run, "time"), zone).s,
	       json_is_true(json_object_get(run, "asked")) ? "run" : "time",
	       number(run, "shard"), number(run, "job"), result, wide,
	       when(jobs, member(run, "created"), zone).s, wide,
	       when(jobs, member(run, "ended"), zone).s, count, seconds);
	print_text(last ? member(last, "said") : "-", NULL);
	putchar('\n');
	if (jobs->output)
		print_tries(jobs, json_object_get(run, "tries"), zone, "  ");
}

int jobs_history(const struct jobs *jobs)
{
	json_t *answer, *one;
	const char *zone;
	char *path;
	int status, wide = width(jobs);
	size_t i;

	if (asprintf(&path, "%s?count=%s%s", ask_path("schedules/%s/runs", jobs->words[1]),
		     jobs->count ? jobs->count : "20", jobs->output ? "&output=1" : "") < 0)
		need(NULL);
	status = ask_json("GET", path, NULL, &answer);
	if (status)
		return status;
	if (jobs->json)
		return print_json(json_object_get(answer, "runs"));
	zone = member(answer, "zone");
	printf("%-*s %-4s %5s %10s %-8s %-*s %-*s %5s %9s %s\n", wide, "TIME", "BY", "SHARD", "JOB",
	       "RESULT", wide, "MADE", wide, "ENDED", "TRIES", "SECONDS", "SAID");
	json_array_foreach(json_object_get(answer, "runs"), i, one)
		print_run(jobs, one, zone);
	print_tries(jobs, json_object_get(answer, "acts"), zone, "");
	return finish_output(STATUS_OK);
}

int jobs_tries(const struct jobs *jobs)
{
	json_t *answer;
	int status = ask_json("GET", ask_path("jobs/%s/tries", jobs->words[1]), NULL, &answer);

	if (status)
		return status;
	if (jobs->json)
		return print_json(answer);
	print_value("tube", json_object_get(answer, "tube"));
	printf("%-14s %s\n", "made", when(jobs, member(answer, "created"), NULL).s);
	print_tries(jobs, json_object_get(answer, "tries"), NULL, "");
	return finish_output(STATUS_OK);
}

static int act(const struct jobs *jobs, json_t *body)
{
	char *path, *format;
	json_t *answer;
	int status;

	if (asprintf(&format, "schedules/%%s/%s", jobs->words[0]) < 0)
		need(NULL);
	path = ask_path(format, jobs->words[1]);
	status = ask_json("POST", path, body, &answer);
	if (status)
		return status;
	if (jobs->json)
		return print_json(answer);
	if (json_object_get(answer, "made"))
		printf("jobs made: %lld; left out, as an earlier one is not done: %lld; waiting "
		       "for that: %lld; there before: %lld\n", number(answer, "made"),
		       number(answer, "skipped"), number(answer, "waiting"),
		       number(answer, "there"));
	return finish_output(STATUS_OK);
}

/* pause, resume, run */
int jobs_do(const struct jobs *jobs)
{
	return act(jobs, NULL);
}

/* The server knows in which zone a time is. Digits alone are seconds since 1970. */
static json_t *time_of(const char *text)
{
	bool digits = *text && !text[strspn(text, "0123456789")];

	return digits ? json_integer(strtoll(text, NULL, 10)) : json_string(text);
}

int jobs_backfill(const struct jobs *jobs)
{
	return act(jobs, json_pack("{s:o, s:o}", "from", time_of(jobs->words[2]),
				   "to", time_of(jobs->words[3])));
}

/* The path of what was built or installed with this program, which ends with its name */
static char *own_path(const char *from_here)
{
	char here[PATH_MAX], *path;
	ssize_t length = readlink("/proc/self/exe", here, sizeof(here));

	while (length > 0 && here[length - 1] != '/')
		length--;
	if (asprintf(&path, "%.*s%s", length > 0 ? (int)length : 0, here, from_here) < 0)
		need(NULL);
	return path;
}

/* Become the server, or return as there is none. */
static void run_server(char *const *command)
{
	execv(own_path("../twheeld/twheeld"), command);
	execv(own_path("../sbin/twheeld"), command);
	execvp(command[0], command);
}

/* Run twheeld -t: only the server's own reader knows what is wrong in a tab. */
int jobs_check(const struct jobs *jobs)
{
	char times[40], *command[] = { "twheeld", "-t", jobs->words[1], times, NULL, NULL };

	snprintf(times, sizeof(times), "--times=%s", jobs->count ? jobs->count : "5");
	if (jobs->json)
		command[4] = "--json";
	run_server(command);
	return fail(STATUS_FAILED, "the program twheeld, which reads the file, can't be run: %s",
		    strerror(errno));
}

/* Push */

/* Gives false if a line is wrong, which the program has said, or the file can't be read. */
static bool is_right(const char *path)
{
	char *const command[] = { "twheeld", "-t", (char *)path, "--times=1", NULL };
	int status = 0;
	pid_t child = fork();

	if (!child) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(STATUS_FAILED);
		run_server(command);
		fail(STATUS_FAILED, "the program twheeld, which reads the files, can't be run: %s",
		     strerror(errno));
		_exit(STATUS_FAILED);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		!WEXITSTATUS(status);
}

static int is_tab(const struct dirent *one)
{
	size_t length = strlen(one->d_name);

	return *one->d_name != '.' && length > 4 && !strcmp(one->d_name + length - 4, ".tab");
}

/* The server takes none of the files, where the name of one is another. */
static bool has_right_name(const char *path, const char *name)
{
	if (strlen(name) <= NAME_MOST && !name[strspn(name, NAME_CHARS)])
		return true;
	fail(STATUS_FAILED, "%s: a tab's name has up to %d letters, digits and -+;.$_()", path,
	     NAME_MOST);
	return false;
}

/* The text of a file, as it was when it was right; NULL, having said why */
static json_t *text_of(const char *path)
{
	char *text = NULL, piece[4096];
	size_t length, got;
	FILE *file = fopen(path, "re"), *whole = need(open_memstream(&text, &length));
	json_t *json = NULL;

	while (file && (got = fread(piece, 1, sizeof(piece), file)) > 0)
		fwrite(piece, 1, got, whole);
	fclose(whole);
	if (file && !ferror(file))
		json = json_stringn(need(text), length);
	if (!file || ferror(file))
		fail(STATUS_FAILED, "%s can't be read: %s", path, strerror(errno));
	else if (!json)
		fail(STATUS_FAILED, "%s: this is no text of UTF-8", path);
	if (file)
		fclose(file);
	free(text);
	return json;
}

static char *who_is_it(void)
{
	char host[65] = "", *text;
	const struct passwd *user = getpwuid(getuid());

	gethostname(host, sizeof(host) - 1);
	if (asprintf(&text, "%s on %s", user ? user->pw_name : "somebody", host) < 0)
		need(NULL);
	return text;
}

/* All tabs are the body of one job, which takes the place of the one before. */
int jobs_push(const struct jobs *jobs)
{
	static const char path[] = "tubes/twheeld.tabs/jobs?key=tabs&how=replace&delay=4294967295";
	json_t *files = need(json_object()), *answer, *text;
	const char *folder = jobs->words[1];
	time_t now = time(NULL);
	struct dirent **all;
	int count = scandir(folder, &all, is_tab, alphasort), status;
	bool right = true;
	char *body, *file, at[40];

	if (count < 0)
		return fail(STATUS_FAILED, "%s: %s", folder, strerror(errno));
	if (!count)
		return fail(STATUS_FAILED, "%s has no files *.tab", folder);
	for (int i = 0; i < count; i++) {
		if (asprintf(&file, "%s/%s", folder, all[i]->d_name) < 0)
			need(NULL);
		text = has_right_name(file, all[i]->d_name) && is_right(file) ?
			text_of(file) : NULL;
		right = right && text;
		json_object_set_new(files, all[i]->d_name, text ? text : json_null());
	}
	if (!right)
		return fail(STATUS_FAILED, "no tab was pushed: the server has those of before");
	strftime(at, sizeof(at), "%FT%TZ", gmtime(&now));
	body = need(json_dumps(json_pack("{s:s, s:s, s:o}", "by", who_is_it(), "at", at, "files",
					 files), JSON_SORT_KEYS));
	status = ask("POST", path, "application/octet-stream", body, strlen(body), &answer);
	if (!status)
		printf("tabs pushed: %d, as the body of job %lld\n", count, (long long)
		       json_integer_value(json_array_get(json_object_get(answer, "ids"), 0)));
	return status ? status : finish_output(STATUS_OK);
}

/* The files of other schedulers are read by a program in Python: import/__main__.py. */
int jobs_import(const struct jobs *jobs)
{
	char *built = own_path("import"), *folder = built;
	char *const said[] = { jobs->users, jobs->cron, jobs->seconds, "--" };
	char **command = need(calloc(jobs->nr_words + 10, sizeof(*command))), **to = command;

	if (access(built, F_OK) < 0)
		folder = own_path("../share/twheel/import");
	/* Python finds its modules by this path. */
	*to++ = "/usr/bin/python3";
	*to++ = "-IBXutf8";
	*to++ = folder;
	for (size_t i = 0; i < ARRAY_SIZE(said); i++)
		if (said[i])
			*to++ = said[i];
	for (int i = 1; i < jobs->nr_words; i++)
		*to++ = jobs->words[i];
	setenv("TWHEEL", own_path("twheel"), 1);
	execv(command[0], command);
	command[0] = "python3";
	execvp(command[0], command);
	return fail(STATUS_FAILED, "python3, which reads the files, can't be run: %s",
		    strerror(errno));
}
