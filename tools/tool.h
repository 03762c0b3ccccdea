/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the commands of twheel(1) share: how they are called, how they speak to people, and
 * how they end.
 */
#ifndef TOOL_H
#define TOOL_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/duration.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define USEC 1000ULL
#define MSEC 1000000ULL
#define SEC 1000000000ULL

/* How a command ends */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_NO_MODULE = 3,
	STATUS_NOT_ALLOWED = 4,
};

/* Each command: its arguments are as for main(), and so is what it gives. */
int cmd_bench(int argc, char **argv);
int cmd_delete(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_jobs(int argc, char **argv);
int cmd_kick(int argc, char **argv);
int cmd_back(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_peek(int argc, char **argv);
int cmd_put(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_tubes(int argc, char **argv);
int cmd_watch(int argc, char **argv);

/* Options that several commands have: --json */
#define OPTION_JSON { "json", 'j', NULL, 0, "As JSON, for programs", 0 }

/* speak.c: to people on stderr, and numbers as they read them */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *need(void *memory);
int print_json(json_t *json);
int finish_output(int status);

struct text {
	char s[32];
};

struct text text_ns(__u64 ns);
struct text text_count(__u64 count);
struct text text_user(unsigned int uid);
void printable(char *s);

/* "1.5h", or "20", which is seconds; in ns, rounded up */
static inline bool parse_duration(const char *s, __u64 *ns)
{
	int64_t value = 0;
	bool fine = duration_parse(s, SEC, &value);

	*ns = value;
	return fine;
}

#define NO_DURATION "'%s' is no time; write it like 20 (seconds), " DURATION_EXAMPLES

#endif /* TOOL_H */
