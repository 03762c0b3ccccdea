// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a workload file.
 *
 * Whoever writes one should get it right from the messages alone, so each of
 * them names file and line, what was found, and what was expected.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "demo.h"
#include "workload.h"

#define MAX_WORDS 64
#define MAX_LINE 4096
#define MILLION 1000000U
#define MAX_CONNECTIONS 50000000U
#define MAX_RUN (3600 * SECOND)

struct parser {
	struct workload *w;
	unsigned int line;
	bool seeded;
	const char *usage;	/* of the line's keyword */
	unsigned int nr;
	char *words[MAX_WORDS];
};

static void __attribute__((noreturn))
complain(const struct parser *p, unsigned int line, const char *fmt, va_list args)
{
	fprintf(stderr, "%s:%u: ", p->w->path, line);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	exit(EXIT_CANNOT_RUN);
}

/* In the line that is being read */
static void __attribute__((format(printf, 2, 3), noreturn))
wrong(const struct parser *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	complain(p, p->line, fmt, args);
}

/* In a line before */
static void __attribute__((format(printf, 3, 4), noreturn))
wrong_at(const struct parser *p, unsigned int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	complain(p, line, fmt, args);
}

static __u64 duration_of(const struct parser *p, const char *word)
{
	int64_t ns;

	if (!duration_parse(word, 0, &ns))
		wrong(p, "'%s' is no duration: write it like " DURATION_EXAMPLES, word);
	if (ns > 1000LL * 24 * 3600 * (int64_t)SECOND)
		wrong(p, "'%s' is more than 1000 days", word);
	return ns;
}

/* A duration that isn't 0. */
static __u64 length_of_time(const struct parser *p, const char *word)
{
	__u64 ns = duration_of(p, word);

	if (!ns)
		wrong(p, "'%s' must be more than 0", word);
	return ns;
}

static __u32 share_of(const struct parser *p, const char *word)
{
	char *end;
	double percent = strtod(word, &end);

	if (!isdigit((unsigned char)*word) || strcmp(end, "%") || percent > 100)
		wrong(p, "'%s' is no share: write it like 88%% or 99.9%%", word);
	return percent * (MILLION / 100) + .5;
}

static __u64 number_of(const struct parser *p, const char *word, __u64 most)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(word, &end, 10);
	if (!isdigit((unsigned char)*word) || *end || errno || value > most)
		wrong(p, "'%s' is no whole number from 0 to %llu", word, most);
	return value;
}

/* HH:MM or HH:MM:SS. 24:00 and later are fine: the file says how long a day is. */
static __u64 time_of_day(const struct parser *p, const char *word)
{
	unsigned int h, m, s = 0;
	int end = 0;

	if (sscanf(word, "%3u:%2u%n:%2u%n", &h, &m, &end, &s, &end) < 2 ||
	    word[end] || m > 59 || s > 59 ||
	    strspn(word, "0123456789:") != strlen(word))
		wrong(p, "'%s' is no time of the day: write HH:MM or HH:MM:SS", word);
	return (h * 3600ULL + m * 60 + s) * SECOND;
}

/* Room for one more element of an array; zeroed. */
static void *one_more(void *array, unsigned int *nr, size_t size)
{
	array = realloc(array, (*nr + 1) * size);
	if (!array)
		die("no memory for the workload");
	memset((char *)array + *nr * size, 0, size);
	++*nr;
	return array;
}

static void __attribute__((noreturn)) misused(const struct parser *p)
{
	wrong(p, "write this line as: %s", p->usage);
}

static void want_words(const struct parser *p, unsigned int nr)
{
	if (p->nr != nr)
		misused(p);
}

static struct kind *this_kind(const struct parser *p)
{
	if (!p->w->nr_kinds)
		wrong(p, "'%s' needs a line 'connection NAME' above it", p->words[0]);
	return &p->w->kinds[p->w->nr_kinds - 1];
}

static void once(const struct parser *p, bool was_there)
{
	if (was_there)
		wrong(p, "a second line with '%s'", p->words[0]);
}

static void parse_play(struct parser *p)
{
	once(p, p->w->day);
	want_words(p, 4);
	if (strcmp(p->words[2], "in"))
		misused(p);
	p->w->day = length_of_time(p, p->words[1]);
	p->w->run = length_of_time(p, p->words[3]);
	if (p->w->run > MAX_RUN)
		wrong(p, "a day can be played in at most an hour, not in %s",
		      p->words[3]);
}

static void parse_seed(struct parser *p)
{
	once(p, p->seeded);
	want_words(p, 2);
	p->w->seed = number_of(p, p->words[1], UINT64_MAX);
	p->seeded = true;
}

static void parse_connection(struct parser *p)
{
	struct workload *w = p->w;
	struct kind *kind;
	unsigned int i;

	want_words(p, 2);
	if (strlen(p->words[1]) >= sizeof(kind->name))
		wrong(p, "the name '%s' is too long: at most %zu letters",
		      p->words[1], sizeof(kind->name) - 1);
	for (i = 0; i < w->nr_kinds; i++)
		if (!strcmp(w->kinds[i].name, p->words[1]))
			wrong(p, "there is a connection '%s' already, in line %u",
			      p->words[1], w->kinds[i].line);
	if (w->nr_kinds == UINT8_MAX)
		wrong(p, "no more than %u kinds of connections", UINT8_MAX);
	w->kinds = one_more(w->kinds, &w->nr_kinds, sizeof(*w->kinds));
	kind = this_kind(p);
	strcpy(kind->name, p->words[1]);
	kind->line = p->line;
	kind->close = UINT32_MAX;
}

static void parse_timeout(struct parser *p)
{
	struct kind *kind = this_kind(p);

	once(p, kind->timeout);
	want_words(p, 2);
	kind->timeout = length_of_time(p, p->words[1]);
}

static void parse_push(struct parser *p)
{
	struct kind *kind = this_kind(p);

	once(p, kind->push_max);
	want_words(p, 3);
	kind->push_min = length_of_time(p, p->words[1]);
	kind->push_max = length_of_time(p, p->words[2]);
	if (kind->push_min > kind->push_max)
		wrong(p, "the shortest time, %s, is longer than the longest, %s",
		      p->words[1], p->words[2]);
}

static void parse_close(struct parser *p)
{
	struct kind *kind = this_kind(p);

	once(p, kind->close != UINT32_MAX);
	want_words(p, 2);
	kind->close = share_of(p, p->words[1]);
}

static void parse_lasts(struct parser *p)
{
	struct kind *kind = this_kind(p);
	struct quantile *q;
	unsigned int i;

	once(p, kind->nr_lasts);
	if (p->nr < 5 || p->nr % 2 == 0)
		misused(p);
	for (i = 1; i < p->nr; i += 2) {
		kind->lasts = one_more(kind->lasts, &kind->nr_lasts,
				       sizeof(*kind->lasts));
		q = &kind->lasts[kind->nr_lasts - 1];
		q->share = share_of(p, p->words[i]);
		q->time = duration_of(p, p->words[i + 1]);
		if (i == 1)
			continue;
		if (q->share <= q[-1].share)
			wrong(p, "the share %s must be more than the one before it",
			      p->words[i]);
		if (q->time < q[-1].time)
			wrong(p, "%s must not be shorter than %s before it",
			      p->words[i + 1], p->words[i - 1]);
	}
	if (kind->lasts[0].share || q->share != MILLION)
		wrong(p, "the shares of 'lasts' must begin with 0%% and end with 100%%");
}

static void parse_arrive(struct parser *p)
{
	struct kind *kind = this_kind(p);
	struct arrivals *a;

	want_words(p, 4);
	kind->arrivals = one_more(kind->arrivals, &kind->nr_arrivals,
				  sizeof(*kind->arrivals));
	a = &kind->arrivals[kind->nr_arrivals - 1];
	a->line = p->line;
	a->from = time_of_day(p, p->words[1]);
	a->to = time_of_day(p, p->words[2]);
	a->count = number_of(p, p->words[3], MAX_CONNECTIONS);
	if (a->from >= a->to)
		wrong(p, "%s is not before %s (midnight at the end of the day is 24:00)",
		      p->words[1], p->words[2]);
	if (a->count > MAX_CONNECTIONS - p->w->nr_connections)
		wrong(p, "more than %u connections in all", MAX_CONNECTIONS);
	p->w->nr_connections += a->count;
}

static void parse_periodic(struct parser *p)
{
	struct workload *w = p->w;
	struct periodic *periodic;

	want_words(p, 4);
	if (strcmp(p->words[2], "every"))
		misused(p);
	w->periodic = one_more(w->periodic, &w->nr_periodic, sizeof(*periodic));
	periodic = &w->periodic[w->nr_periodic - 1];
	periodic->line = p->line;
	periodic->count = number_of(p, p->words[1], MAX_CONNECTIONS);
	periodic->period = length_of_time(p, p->words[3]);
	if (periodic->count > MAX_CONNECTIONS - w->nr_timers)
		wrong(p, "more than %u periodic timers in all", MAX_CONNECTIONS);
	w->nr_timers += periodic->count;
}

static void parse_line(struct parser *p, char *line)
{
	static const struct {
		const char *name;
		void (*parse)(struct parser *p);
		const char *usage;
	} keywords[] = {
		{ "play", parse_play,
		  "play DAY in TIME, like: play 24h in 40s" },
		{ "seed", parse_seed,
		  "seed NUMBER, like: seed 1" },
		{ "connection", parse_connection,
		  "connection NAME, like: connection browser" },
		{ "timeout", parse_timeout,
		  "timeout TIME, like: timeout 90s" },
		{ "push", parse_push,
		  "push SHORTEST LONGEST, like: push 20s 60s" },
		{ "close", parse_close,
		  "close SHARE, like: close 88%" },
		{ "lasts", parse_lasts,
		  "lasts SHARE TIME SHARE TIME ..., like: lasts 0% 1s 50% 5m 100% 2h" },
		{ "arrive", parse_arrive,
		  "arrive FROM TO COUNT, like: arrive 08:00 09:00 50000" },
		{ "periodic", parse_periodic,
		  "periodic COUNT every TIME, like: periodic 1000 every 5m" },
	};
	char *save;
	char *word;
	size_t i;

	line[strcspn(line, "#")] = '\0';
	p->nr = 0;
	for (word = strtok_r(line, " \t\r\n", &save); word;
	     word = strtok_r(NULL, " \t\r\n", &save)) {
		if (p->nr == MAX_WORDS)
			wrong(p, "more than %u words in a line", MAX_WORDS);
		p->words[p->nr++] = word;
	}
	if (!p->nr)
		return;
	for (i = 0; i < ARRAY_SIZE(keywords); i++) {
		if (!strcmp(p->words[0], keywords[i].name)) {
			p->usage = keywords[i].usage;
			keywords[i].parse(p);
			return;
		}
	}
	wrong(p, "no line begins with '%s'; see demo/README.md for those that do",
	      p->words[0]);
}

/* Times of the file become times as they are played. */
static __u64 played(const struct parser *p, unsigned int line, const char *what, __u64 time)
{
	__u64 ns = time * p->w->scale;

	if (ns < MS)
		wrong_at(p, line, "%s takes less than 1 ms of the time that 'play' allows", what);
	return ns;
}

static void finish_kind(const struct parser *p, struct kind *kind)
{
	unsigned int i;

	if (!kind->timeout || !kind->push_max || kind->close == UINT32_MAX ||
	    !kind->nr_lasts || !kind->nr_arrivals)
		wrong_at(p, kind->line, "connection '%s' has no '%s' line", kind->name,
			 !kind->timeout ? "timeout" :
			 !kind->push_max ? "push" :
			 kind->close == UINT32_MAX ? "close" :
			 !kind->nr_lasts ? "lasts" : "arrive");
	if (kind->push_max >= kind->timeout)
		wrong_at(p, kind->line, "connection '%s' needs a timeout above its longest push",
			 kind->name);

	kind->timeout = played(p, kind->line, "the timeout", kind->timeout);
	kind->push_min = played(p, kind->line, "the shortest push", kind->push_min);
	kind->push_max = played(p, kind->line, "the longest push", kind->push_max);
	for (i = 0; i < kind->nr_lasts; i++)
		kind->lasts[i].time *= p->w->scale;
	for (i = 0; i < kind->nr_arrivals; i++) {
		struct arrivals *a = &kind->arrivals[i];

		if (a->to > p->w->day)
			wrong_at(p, a->line, "this is after the end of the day that 'play' sets");
		a->from *= p->w->scale;
		a->to *= p->w->scale;
	}
}

void workload_read(struct workload *w, const char *path)
{
	struct parser p = { .w = w };
	char line[MAX_LINE];
	unsigned int i;
	FILE *f;

	*w = (struct workload){ .path = path };
	f = fopen(path, "r");
	if (!f)
		die("can't open the workload file %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		p.line++;
		if (strlen(line) == sizeof(line) - 1)
			wrong(&p, "a line of more than %u characters", MAX_LINE - 2);
		parse_line(&p, line);
	}
	if (ferror(f))
		die("can't read the workload file %s: %s", path, strerror(errno));
	fclose(f);

	if (!w->day)
		die("%s has no line like: play 24h in 40s", path);
	if (!w->nr_connections)
		die("%s has no connections that arrive", path);
	w->scale = (double)w->run / w->day;
	for (i = 0; i < w->nr_kinds; i++)
		finish_kind(&p, &w->kinds[i]);
	for (i = 0; i < w->nr_periodic; i++)
		w->periodic[i].period = played(&p, w->periodic[i].line,
					       "the period",
					       w->periodic[i].period);
}
