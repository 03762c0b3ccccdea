// SPDX-License-Identifier: GPL-2.0
/*
 * twheel watch: what happens to timers, as it happens: the tracepoints twheel:*, in lines
 * that one can read.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "module.h"
#include "tool.h"
#include "trace_line.h"
#include "tracefs.h"

/* The end is noticed so soon, in ms. */
#define PATIENCE 100

static bool as_json;
static __u64 wheel, count, duration;
static atomic_bool ended;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end;

	switch (key) {
	case 'j':
		as_json = true;
		return 0;
	case 'd':
		if (!parse_duration(arg, &duration) || !duration)
			argp_error(state, NO_DURATION, arg);
		return 0;
	case 'w':
	case 'n':
		*(key == 'w' ? &wheel : &count) = strtoull(arg, &end, 10);
		if (*end || !strtoull(arg, NULL, 10))
			argp_error(state, "'%s' is no number from 1 on", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "As JSON, an object in each line", 0 },
	{ "wheel", 'w', "NUMBER", 0, "Only this wheel: its number in twheel list", 0 },
	{ "count", 'n', "LINES", 0, "End after this many lines", 0 },
	{ "duration", 'd', "TIME", 0, "End after that time", 0 },
	{}
};

static const struct argp argp = {
	options, parse, NULL,
	"Prints what happens to timers, as it happens: arm, modify, cancel, expire, read, and "
	"what a limit refused.\v"
	"A line has the time since boot, what ran, the wheel, and what happened. Shared "
	"timers are armed and cancelled without the kernel, and so not seen.",
	NULL, NULL, NULL
};

static void end(int nr)
{
	ended = 1;
}

/*
 * The kernel's own line about events that were lost, and nothing else: a program's name can
 * have a newline in it, and so begin a line.
 */
static void take_lost(const char *text)
{
	unsigned long long nr;
	int end = 0;

	if (sscanf(text, "CPU:%*u [LOST %llu EVENTS]%n", &nr, &end) == 1 && end && !text[end])
		say("%llu events came too fast and were lost", nr);
}

/* A whole line of the trace. True if it was printed. */
static bool take_line(char *text)
{
	struct trace_line line;
	json_t *json;

	if (!trace_line_parse(&line, text)) {
		take_lost(text);
		return false;
	}
	if (!as_json) {
		trace_line_print(&line);
		return true;
	}
	json = trace_line_json(&line);
	json_dumpf(json, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(json);
	return true;
}

/* Take the whole lines that were read; the rest stays for later. */
static size_t take_lines(char *text, size_t len)
{
	char *start = text, *newline;

	while (!ended && (newline = memchr(start, '\n', text + len - start))) {
		*newline = 0;
		if (take_line(start) && count && !--count)
			ended = 1;
		start = newline + 1;
	}
	memmove(text, start, text + len - start);
	return text + len - start;
}

static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static int follow(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };
	static char text[65536];
	__u64 start = now();
	size_t len = 0;
	ssize_t got;

	while (!ended && !ferror(stdout) && (!duration || now() - start < duration)) {
		poll(&in, 1, PATIENCE);
		got = read(fd, text + len, sizeof(text) - len);
		if (got > 0)
			len = take_lines(text, len + got);
		else if (got < 0 && errno != EAGAIN && errno != EINTR)
			return fail(STATUS_FAILED, "can't read the trace: %s", strerror(errno));
		if (len == sizeof(text))
			len = 0;
		fflush(stdout);
	}
	return finish_output(STATUS_OK);
}

int cmd_watch(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = end };
	int status, fd;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	status = module_missing();
	if (status)
		return status;
	/* Whatever ends it, the trace is to end, too. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = tracefs_open(wheel);
	if (fd < 0)
		return -fd;
	status = follow(fd);
	close(fd);
	tracefs_close();
	return status;
}
