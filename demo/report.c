// SPDX-License-Identifier: GPL-2.0
/*
 * Draws the progress bar and the summary, for a terminal of 80 columns that
 * may be a serial line.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "demo.h"
#include "format.h"
#include "promises.h"
#include "report.h"

#define PROGRESS_WIDTH 40
#define CHART_WIDTH 19

/* A redrawn line is nothing for a file, nor for a terminal without cursor. */
static bool can_redraw(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
}

static void clock_of_day(const struct workload *w, __u64 played, char text[16])
{
	__u64 minutes = played / w->scale / (60 * SECOND);

	snprintf(text, 16, "%02u:%02u", (unsigned int)(minutes / 60 % 24),
		 (unsigned int)(minutes % 60));
}

/* Draws @value in @most, to an eighth of a column. Returns the columns left. */
static int bar(__u64 value, __u64 most, unsigned int width)
{
	static const char * const eighths[] = {
		"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a",
		"\u2589",
	};
	unsigned int full = most ? (double)value / most * width * 8 : 0;
	unsigned int i;

	if (value && !full)
		full = 1;
	if (full > width * 8)
		full = width * 8;
	for (i = 0; i < full / 8; i++)
		fputs("\u2588", stdout);
	fputs(eighths[full % 8], stdout);
	return width - (full + 7) / 8;
}

void report_start(const struct workload *w, __u64 tick)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct utsname uts;

	uname(&uts);
	printf("\n%s connections and %s periodic timers on one file descriptor\n",
	       number(w->nr_connections), number(w->nr_timers));
	printf("%s: a day of %.4g h is played in %s\n", w->path,
	       (double)w->day / (3600 * SECOND), duration(w->run));
	printf("Linux %s, %ld processor%s, a tick of %s\n\n", uts.release,
	       processors, processors == 1 ? "" : "s", duration(tick));
	fflush(stdout);
}

void report_progress(const struct workload *w, const struct tally *t,
		     __u64 now, __u64 end)
{
	static unsigned int last_tenth;
	unsigned int tenth;
	char time[16];
	int left;

	if (now > end)
		now = end;
	clock_of_day(w, now, time);
	tenth = end ? now * 10 / end : 10;
	if (can_redraw()) {
		printf("\r  %s [", time);
		left = bar(now, end, PROGRESS_WIDTH);
		printf("%*s] %3u%%  %10s pending", left, "",
		       (unsigned int)(now * 100 / end), number(t->pending));
		if (now == end)
			putchar('\n');
	} else if (tenth != last_tenth) {
		printf("  %s  %3u%%  %10s pending\n", time, tenth * 10,
		       number(t->pending));
		last_tenth = tenth;
	}
	fflush(stdout);
}

static void show_timers(const struct workload *w, const struct tally *t)
{
	char time[16];

	clock_of_day(w, t->peak_time, time);
	printf("\nTimers\n");
	printf("  armed       %12s   one for each connection, and %s periodic\n",
	       number(t->armed), number(w->nr_timers));
	printf("  re-armed    %12s   the connection was used: timeout pushed ahead\n",
	       number(t->rearmed));
	printf("  cancelled   %12s   the connection was closed%s\n",
	       number(t->cancelled),
	       w->nr_timers ? "; periodic: at the end" : "");
	printf("  expired     %12s   the connection was idle for too long\n",
	       number(t->expired));
	if (t->lapsed)
		printf("   of these   %12s   re-armed too late: too much for this machine\n",
		       number(t->lapsed));
	printf("  periods     %12s   of periodic timers; %s more missed and counted\n",
	       number(t->periods), number(t->overruns));
	printf("  at once     %12s   pending at %s, when most were\n",
	       number(t->peak_pending), time);
}

/* Elements @from to @to - 1. */
static __u64 sum(const __u64 *buckets, unsigned int from, unsigned int to)
{
	__u64 sum = 0;

	for (; from < to; from++)
		sum += buckets[from];
	return sum;
}

static void show_lateness(const struct tally *t, const struct twheel_stats *stats)
{
	/* Row i ends with bucket ends[i] - 1, at 2^(ends[i] - 1) ns. */
	static const struct {
		const char *name;
		unsigned int end;
	} rows[] = {
		{ "under 16 us", 15 }, { "16 - 66 us", 17 },
		{ "66 - 260 us", 19 }, { "260 us - 1 ms", 21 },
		{ "1 - 4 ms", 23 }, { "4 - 17 ms", 25 },
		{ "17 - 67 ms", 27 }, { "67 - 270 ms", 29 },
		{ "270 ms - 1 s", 31 }, { "over 1 s", TWHEEL_LATENESS_BUCKETS },
	};
	__u64 wheel[ARRAY_SIZE(rows)], program[ARRAY_SIZE(rows)];
	__u64 most_wheel = 0, most_program = 0;
	unsigned int first = ARRAY_SIZE(rows), last = 0;
	unsigned int from = 0;
	unsigned int i;
	int left;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		wheel[i] = sum(stats->lateness, from, rows[i].end);
		program[i] = sum(t->read.buckets, from, rows[i].end);
		from = rows[i].end;
		if (wheel[i] > most_wheel)
			most_wheel = wheel[i];
		if (program[i] > most_program)
			most_program = program[i];
		if (wheel[i] || program[i]) {
			last = i;
			if (first > i)
				first = i;
		}
	}

	printf("\nHow late            from its tick to ready         from its deadline to read\n");
	printf("                    (counted by the wheel)         (by the program's oracle)\n");
	for (i = first; i <= last; i++) {
		printf("  %-13s %10s ", rows[i].name, number(wheel[i]));
		left = bar(wheel[i], most_wheel, CHART_WIDTH);
		printf("%*s %10s ", left, "", number(program[i]));
		bar(program[i], most_program, CHART_WIDTH);
		putchar('\n');
	}
	printf("  %-13s %10s %*s %10s\n", "at most", duration(stats->max_lateness),
	       CHART_WIDTH, "", duration(t->read.most));
}

static void show_memory(const struct tally *t, int where)
{
	bool in_kernel = where == TWHEEL_KERNEL;

	if (where == TWHEEL_BPF) {
		printf("  bytes a timer  not measured: the loader's cgroup has them\n");
		return;
	}
	if (!is_measured(t)) {
		printf("  bytes a timer  unknown   that takes %s timers at once\n",
		       number(LEAST_MEASURED));
		return;
	}
	printf("  bytes a timer  %7.1f   %.1f MB %s, while\n",
	       (double)t->memory / t->memory_pending, t->memory / 1e6,
	       in_kernel ? "charged to the program's cgroup" : "more of the program's memory");
	printf("  %25s%s timers were pending\n", "", number(t->memory_pending));
}

static void show_holds(const struct holds *holds)
{
	if (!holds->known) {
		printf("  longest hold   unknown   the kernel's debugfs is not there\n");
		return;
	}
	printf("  longest hold   %7s   for which the module kept a processor, by the clock;\n",
	       duration(holds->longest_run));
	printf("  %25sno run touched more than %s timers\n", "",
	       number(holds->largest_run));
}

static void show_cost(const struct result *r)
{
	const struct tally *t = &r->tally;
	bool in_kernel = r->backend->where == TWHEEL_KERNEL;

	printf("\nCost\n");
	show_memory(t, r->backend->where);
	if (in_kernel)
		show_holds(&r->holds);
	printf("  this machine   %7s   for which a busy loop without any timers stood still:\n",
	       duration(t->machine_stop));
	printf("  %25sthis much of the above may be the machine's own doing\n", "");
}

unsigned int report_summary(const struct workload *w, const struct result *r)
{
	const struct tally *t = &r->tally;
	struct promise promises[NR_PROMISES];
	unsigned int broken = 0;
	unsigned int i;

	show_timers(w, t);
	show_lateness(t, &r->stats);
	show_cost(r);

	printf("\nPromises\n");
	promises_check(r, promises);
	for (i = 0; i < NR_PROMISES; i++) {
		if (!promises[i].name)
			continue;
		printf("  %-34s %10s   %s\n", promises[i].name,
		       number(promises[i].broken),
		       promises[i].broken ? "BROKEN" : "kept");
		broken += promises[i].broken != 0;
	}
	promises_explain(r);

	if (broken)
		printf("\n%u of the promises above DID NOT HOLD, after %s.\n\n", broken,
		       duration(t->elapsed));
	else
		printf("\nAll promises were kept. The day took %s.\n\n",
		       duration(t->elapsed));
	return broken;
}
