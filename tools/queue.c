// SPDX-License-Identifier: GPL-2.0
/*
 * twheel put, tubes, peek, kick, back, delete: the jobs of twheeld, for a shell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"

/* Of one request; the server takes 256 KiB of JSON, and a byte may become six there */
#define JOBS_MOST 1000
#define BYTES_MOST (40 << 10)

static struct {
	bool json, lines, body;
	const char *state;
	const char *pri, *key, *how, *tries;
	__u64 delay, ttr, unique_for;	/* seconds */
	__u64 every;		/* ms */
	bool has_delay, has_ttr;
	char **words;
	int count;
	const char *path;	/* of put */
} said;

enum { KEY_DELAY = 256, KEY_TTR, KEY_BODY, KEY_EVERY, KEY_HOW, KEY_UNIQUE_FOR, KEY_TRIES };

static __u64 seconds(const char *arg, struct argp_state *state)
{
	__u64 ns;

	if (!parse_duration(arg, &ns) || ns > UINT32_MAX * SEC)
		argp_error(state, NO_DURATION, arg);
	return (ns + SEC - 1) / SEC;
}

static const char *number_of(const char *arg, struct argp_state *state)
{
	if (!*arg || arg[strspn(arg, "0123456789")])
		argp_error(state, "'%s' is no whole number", arg);
	return arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j':
		said.json = true;
		return 0;
	case 's':
		ask_socket = arg;
		return 0;
	case 'l':
		said.lines = true;
		return 0;
	case KEY_BODY:
		said.body = true;
		return 0;
	case 'S':
		said.state = arg;
		return 0;
	case 'p':
		said.pri = number_of(arg, state);
		return 0;
	case KEY_TRIES:
		said.tries = number_of(arg, state);
		return 0;
	case 'k':
		said.key = arg;
		return 0;
	case KEY_HOW:
		said.how = arg;
		return 0;
	case KEY_UNIQUE_FOR:
		said.unique_for = seconds(arg, state);
		return 0;
	case KEY_DELAY:
		said.delay = seconds(arg, state);
		said.has_delay = true;
		return 0;
	case KEY_TTR:
		said.ttr = seconds(arg, state);
		said.has_ttr = true;
		return 0;
	case KEY_EVERY:
		if (!parse_duration(arg, &said.every) || said.every / 1000000 > UINT32_MAX)
			argp_error(state, NO_DURATION, arg);
		said.every /= 1000000;
		return 0;
	case ARGP_KEY_ARG:
		said.words[said.count++] = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void read_words(int argc, char **argv, const struct argp_option *options,
		       const char *arguments, const char *what)
{
	const struct argp argp = { options, parse, arguments, what, NULL, NULL, NULL };

	said.words = need(calloc(argc, sizeof(*said.words)));
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
}

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

/* Put */

static char *put_path(void)
{
	char *path;
	size_t length;
	FILE *to = need(open_memstream(&path, &length));

	fprintf(to, "%s?pri=%s", ask_path("tubes/%s/jobs", said.words[0]),
		said.pri ? said.pri : "1024");
	if (said.has_delay)
		fprintf(to, "&delay=%llu", said.delay);
	if (said.has_ttr)
		fprintf(to, "&ttr=%llu", said.ttr);
	if (said.tries)
		fprintf(to, "&tries=%s", said.tries);
	if (said.key)
		fprintf(to, "%s", ask_path("&key=%s", said.key));
	if (said.how)
		fprintf(to, "%s", ask_path("&how=%s", said.how));
	if (said.unique_for)
		fprintf(to, "&unique_for=%llu", said.unique_for);
	fclose(to);
	return need(path);
}

/* Of several jobs, some may have been put where others were not. */
static int print_ids(json_t *answer, int status)
{
	json_t *ids = json_object_get(answer, "ids"), *id;
	size_t i;

	if (said.json && ids)
		return print_json(answer) ? STATUS_FAILED : status;
	json_array_foreach(ids, i, id)
		if (json_is_integer(id))
			printf("%lld\n", (long long)json_integer_value(id));
	json_decref(answer);
	return finish_output(status);
}

static int put_bytes(const char *bytes, size_t length)
{
	json_t *answer;
	int status = ask("POST", said.path, "application/octet-stream", bytes, length, &answer);

	return print_ids(answer, status);
}

static int cant_read(void)
{
	return fail(STATUS_FAILED, "standard input can't be read: %s", strerror(errno));
}

static int put_array(json_t **jobs)
{
	json_t *answer;
	int status = STATUS_OK;

	if (*jobs && json_array_size(*jobs)) {
		status = ask_json("POST", said.path, *jobs, &answer);
		*jobs = NULL;
		status = print_ids(answer, status);
	}
	return status;
}

/* A line that is no text, or is long, goes by itself, after those before it. */
static int put_lines(void)
{
	json_t *jobs = NULL, *text;
	char *line = NULL;
	size_t room = 0, bytes = 0;
	int status = STATUS_OK, unread;
	ssize_t length;

	while (!status && (length = getline(&line, &room, stdin)) >= 0 && !ferror(stdin)) {
		length -= length && line[length - 1] == '\n';
		text = length < BYTES_MOST ? json_stringn(line, length) : NULL;
		if (!text || bytes + length > BYTES_MOST || json_array_size(jobs) == JOBS_MOST) {
			status = put_array(&jobs);
			bytes = 0;
		}
		if (!text && !status)
			status = put_bytes(line, length);
		if (!text || status)
			continue;
		if (!jobs)
			jobs = need(json_array());
		json_array_append_new(jobs, json_pack("{s:o}", "body", text));
		bytes += length;
	}
	unread = !status && ferror(stdin) ? cant_read() : STATUS_OK;
	if (!status)
		status = put_array(&jobs);
	return status ? status : unread;
}

static int put_all(void)
{
	char *text = NULL, piece[65536];
	size_t length, got;
	FILE *whole = need(open_memstream(&text, &length));

	while ((got = fread(piece, 1, sizeof(piece), stdin)) > 0)
		fwrite(piece, 1, got, whole);
	if (ferror(stdin))
		return cant_read();
	fclose(whole);
	return put_bytes(need(text), length);
}

int cmd_put(int argc, char **argv)
{
	static const struct argp_option options[] = {
		OPTION_JSON, OPTION_SOCKET,
		{ "lines", 'l', NULL, 0, "Each line is a job, without its end", 0 },
		{ "pri", 'p', "NUMBER", 0, "The priority; the least comes first (1024)", 0 },
		{ "delay", KEY_DELAY, "TIME", 0, "It is ready after that (0)", 0 },
		{ "ttr", KEY_TTR, "TIME", 0, "A worker has so long for it (2min)", 0 },
		{ "tries", KEY_TRIES, "NUMBER", 0, "It is tried so often, and then given up; 0: as "
		  "the tube has it (0)", 0 },
		{ "key", 'k', "KEY", 0, "The tube has one job of that key at a time", 0 },
		{ "how", KEY_HOW, "HOW", 0, "What becomes of the job that has the key: it stays "
		  "with ignore, is replaced with replace, and with debounce begins its delay anew, "
		  "too (ignore)", 0 },
		{ "unique-for", KEY_UNIQUE_FOR, "TIME", 0, "With ignore: the key is taken for so "
		  "long, also when the job is done (0)", 0 },
		{}
	};

	read_words(argc, argv, options, "TUBE", "Puts a job, whose body is what standard input has,"
		   " and prints its number.");
	if (said.count != 1)
		return fail(STATUS_USAGE, "write twheel put TUBE, and give the body by a pipe");
	if ((said.how || said.unique_for) && !said.key)
		return fail(STATUS_USAGE, "--how and --unique-for are for a --key");
	if (said.lines && said.key)
		return fail(STATUS_USAGE, "--key is for one job, and not for --lines");
	said.path = put_path();
	return said.lines ? put_lines() : put_all();
}

/* Tubes */

int cmd_tubes(int argc, char **argv)
{
	static const struct argp_option options[] = { OPTION_JSON, OPTION_SOCKET, {} };
	json_t *answer, *one;
	size_t i;
	int status;

	read_words(argc, argv, options, "", "Says which tubes there are, and how many jobs they"
		   " have.");
	if (said.count)
		return fail(STATUS_USAGE, "there is nothing to be said after twheel tubes");
	status = ask_json("GET", "tubes", NULL, &answer);
	if (status)
		return status;
	if (said.json)
		return print_json(json_object_get(answer, "tubes"));
	printf("%-32s %10s %10s %10s %10s %10s\n", "TUBE", "READY", "RESERVED", "DELAYED", "BURIED",
	       "WAITING");
	json_array_foreach(json_object_get(answer, "tubes"), i, one)
		printf("%-32s %10lld %10lld %10lld %10lld %10lld%s\n", member(one, "name"),
		       number(one, "ready"), number(one, "reserved"), number(one, "delayed"),
		       number(one, "buried"), number(one, "waiting"),
		       json_is_true(json_object_get(one, "paused")) ? "  paused" : "");
	return finish_output(STATUS_OK);
}

/* Peek */

/* A body that is no text comes with a character of two bytes at most for each byte. */
static int print_bytes(const json_t *job)
{
	const json_t *body = json_object_get(job, "body");
	const unsigned char *at = (const unsigned char *)json_string_value(body);
	const unsigned char *end = at + json_string_length(body);
	bool text = strcmp(member(job, "encoding"), "latin-1");

	for (; at < end; at++) {
		if (text || *at < 0x80) {
			putchar(*at);
			continue;
		}
		putchar(*at << 6 | (at[1] & 0x3f));
		at++;
	}
	return finish_output(STATUS_OK);
}

int cmd_peek(int argc, char **argv)
{
	static const struct argp_option options[] = {
		OPTION_JSON, OPTION_SOCKET,
		{ "state", 'S', "STATE", 0, "Of a tube, the first job that is ready, delayed or "
		  "buried (ready)", 0 },
		{ "body", KEY_BODY, NULL, 0, "Only the body, byte by byte", 0 },
		{}
	};
	json_t *answer, *value;
	const char *name;
	char *path;
	int status;

	read_words(argc, argv, options, "JOB|TUBE", "Shows a job by its number, or the first one of"
		   " a tube.");
	if (said.count != 1)
		return fail(STATUS_USAGE, "write twheel peek JOB, or twheel peek TUBE");
	path = ask_path(is_number(said.words[0]) ? "jobs/%s" : "tubes/%s/jobs", said.words[0]);
	if (said.state && asprintf(&path, "%s%s", path, ask_path("?state=%s", said.state)) < 0)
		need(NULL);
	status = ask_json("GET", path, NULL, &answer);
	if (status)
		return status;
	if (said.json)
		return print_json(answer);
	if (said.body)
		return print_bytes(answer);
	json_object_foreach(answer, name, value)
		print_value(name, value);
	return finish_output(STATUS_OK);
}

/* Kick and delete */

int cmd_kick(int argc, char **argv)
{
	static const struct argp_option options[] = { OPTION_JSON, OPTION_SOCKET, {} };
	const char *count = "1";
	json_t *answer;
	char *path;
	int status;

	read_words(argc, argv, options, "JOB\nTUBE [COUNT]", "Has a job ready that is buried or"
		   " delayed, or COUNT of a tube (1).");
	if (said.count > 1)
		count = said.words[1];
	if (!said.count || said.count > 2 || !is_number(count) ||
	    (said.count > 1 && is_number(said.words[0])))
		return fail(STATUS_USAGE, "write twheel kick JOB, or twheel kick TUBE COUNT");
	if (is_number(said.words[0]))
		path = ask_path("jobs/%s/kick", said.words[0]);
	else if (asprintf(&path, "%s?count=%s", ask_path("tubes/%s/kick", said.words[0]),
			  count) < 0)
		need(NULL);
	status = ask_json("POST", path, NULL, &answer);
	if (status)
		return status;
	if (said.json)
		return print_json(answer);
	printf("jobs kicked: %lld\n", number(answer, "count"));
	return finish_output(STATUS_OK);
}

/* Back from the dead letters */

static int back_jobs(void)
{
	__u64 wait = 0;
	int status = STATUS_OK;
	json_t *answer;
	char *path;

	for (int i = 0; i < said.count; i++) {
		if (!is_number(said.words[i]))
			return fail(STATUS_USAGE, "'%s' is no job's number", said.words[i]);
		if (asprintf(&path, "%s?delay=%llu", ask_path("jobs/%s/back", said.words[i]),
			     wait) < 0)
			need(NULL);
		if (ask_json("POST", path, NULL, &answer))
			status = fail(STATUS_FAILED, "job %s is as it was", said.words[i]);
		else
			wait += said.every;
	}
	return status;
}

int cmd_back(int argc, char **argv)
{
	static const struct argp_option options[] = {
		OPTION_SOCKET,
		{ "every", KEY_EVERY, "TIME", 0, "The first is ready at once, each further one so"
		  " long after the one before (0)", 0 },
		{}
	};
	char *path, *tube;
	json_t *answer;
	int status;

	read_words(argc, argv, options, "JOB...\nTUBE [COUNT]", "Sends dead letters back to the"
		   " tube from which they came, where they have all their tries again: jobs by their"
		   " numbers, or so many of a tube (all).");
	if (said.count && is_number(said.words[0]))
		return back_jobs();
	if (!said.count || said.count > 2 || (said.count > 1 && !is_number(said.words[1])))
		return fail(STATUS_USAGE, "write twheel back JOB..., or twheel back TUBE COUNT");
	tube = ask_path("tubes/%s/back", said.words[0]);
	if (asprintf(&path, "%s?every=%llu%s%s", tube, said.every, said.count > 1 ? "&count=" : "",
		     said.count > 1 ? said.words[1] : "") < 0)
		need(NULL);
	status = ask_json("POST", path, NULL, &answer);
	if (status)
		return status;
	printf("jobs sent back: %lld\n", number(answer, "count"));
	return finish_output(STATUS_OK);
}

int cmd_delete(int argc, char **argv)
{
	static const struct argp_option options[] = { OPTION_SOCKET, {} };
	int status = STATUS_OK;
	json_t *answer;

	read_words(argc, argv, options, "JOB...", "Deletes jobs that no worker has.");
	for (int i = 0; i < said.count; i++)
		if (!is_number(said.words[i]))
			return fail(STATUS_USAGE, "'%s' is no job's number", said.words[i]);
	if (!said.count)
		return fail(STATUS_USAGE, "write twheel delete JOB...");
	for (int i = 0; i < said.count; i++)
		if (ask_json("DELETE", ask_path("jobs/%s", said.words[i]), NULL, &answer))
			status = fail(STATUS_FAILED, "job %s is as it was", said.words[i]);
	return status;
}
