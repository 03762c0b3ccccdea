// SPDX-License-Identifier: GPL-2.0
/*
 * What people read: messages, times, counts and names. See tool.h.
 */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static void vsay(const char *format, va_list args)
{
	/* Keep the order of outputs and messages. */
	fflush(stdout);
	fputs("twheel: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(format, args);
	va_end(args);
}

/* Say what went wrong, and give the status that a command is to end with. */
int fail(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(format, args);
	va_end(args);
	return status;
}

/* Memory that there is, or the end: so little is wanted that nothing else would help. */
void *need(void *memory)
{
	if (!memory) {
		say("no memory");
		exit(STATUS_FAILED);
	}
	return memory;
}

/* To a full disk nothing is printed, and that is no success. */
int finish_output(int status)
{
	if (!ferror(stdout) && !fflush(stdout))
		return status;
	return fail(STATUS_FAILED, "can't print: %s", strerror(errno));
}

/* Prints it, and is its end */
int print_json(json_t *json)
{
	need(json);
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(json);
	return finish_output(STATUS_OK);
}

/* With three digits that count, and the unit that fits */
struct text text_ns(__u64 ns)
{
	static const struct {
		__u64 ns;
		const char *name;
	} units[] = {
		{ 86400 * SEC, "d" }, { 3600 * SEC, "h" }, { 60 * SEC, "min" },
		{ SEC, "s" }, { MSEC, "ms" }, { USEC, "us" }, { 1, "ns" },
	};
	struct text text;
	size_t i = 0;
	double value;

	if (!ns) {
		strcpy(text.s, "0");
		return text;
	}
	while (ns < units[i].ns)
		i++;
	value = (double)ns / units[i].ns;
	snprintf(text.s, sizeof(text.s), value < 100 ? "%.3g %s" : "%.0f %s", value,
		 units[i].name);
	return text;
}

/* With a comma before each three digits */
struct text text_count(__u64 count)
{
	char digits[24];
	struct text text;
	int len = snprintf(digits, sizeof(digits), "%llu", count), i;
	char *to = text.s;

	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return text;
}

struct text text_user(unsigned int uid)
{
	const struct passwd *user = getpwuid(uid);
	struct text text;

	if (user)
		snprintf(text.s, sizeof(text.s), "%s", user->pw_name);
	else
		snprintf(text.s, sizeof(text.s), "%u", uid);
	return text;
}

/* A program chooses its name, which could have control sequences of a terminal in it. */
void printable(char *s)
{
	for (; *s; s++)
		if (!isascii((unsigned char)*s) || !isprint((unsigned char)*s))
			*s = '?';
}
