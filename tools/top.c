// SPDX-License-Identifier: GPL-2.0
/*
 * twheel top: the wheels that there are, as they change. Here is what is seen and what
 * keys do; top_rows.c has the rows.
 */
#include <curses.h>
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
#include "top_rows.h"

#define COLUMNS "%6s %7s %-15s %-8s %-9s %8s %11s %9s %9s %9s"

static __u64 delay = SEC;

/* The signal that ends top; and the signals that come through only while it waits */
static atomic_int ended_by;
static sigset_t waiting;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'd')
		return ARGP_ERR_UNKNOWN;
	if (!parse_duration(arg, &delay) || delay < 100 * MSEC || delay > 3600 * SEC)
		argp_error(state, "'%s' is no time from 100ms to 1h: 20 (seconds), "
			   DURATION_EXAMPLES, arg);
	return 0;
}

static const struct argp_option options[] = {
	{ "delay", 'd', "TIME", 0, "How long until it is looked at again (1s)", 0 },
	{}
};

static const struct argp argp = {
	options, parse, NULL,
	"Shows the wheels that processes have open in the kernel, as they change: your own, "
	"or for root all.\v"
	"Keys: p, r, e and l sort by pending, ready, expiries a second and lateness; w by "
	"number; q ends.",
	NULL, NULL, NULL
};

/* A line of the screen, cut where it ends */
static void put_line(int y, int attributes, const char *line)
{
	attrset(attributes);
	mvaddnstr(y, 0, line, COLS);
	attrset(A_NORMAL);
}

static void put_row(int y, const struct row *row)
{
	const struct wheel *wheel = &row->wheel;
	char nr[24], pid[16], line[512], rate[24];

	snprintf(nr, sizeof(nr), "%llu", wheel->nr);
	snprintf(pid, sizeof(pid), "%d", wheel->pid);
	snprintf(rate, sizeof(rate), "%.0f", row->rate);
	snprintf(line, sizeof(line), COLUMNS, nr, pid, wheel->program,
		 text_user(wheel->uid).s, wheel->clock, text_ns(wheel->tick).s,
		 text_count(wheel->pending).s, text_count(wheel->ready).s, rate,
		 text_ns(wheel->max_lateness).s);
	put_line(y, A_NORMAL, line);
}

static void put_head(const struct rows *rows)
{
	struct wheel sum = {};
	double rate = 0;
	char line[256];
	size_t i;

	for (i = 0; i < rows->nr; i++) {
		sum.pending += rows->at[i].wheel.pending;
		sum.ready += rows->at[i].wheel.ready;
		rate += rows->at[i].rate;
	}
	snprintf(line, sizeof(line), "twheel: %zu wheels, %s pending, %s ready, %.0f expiries "
				     "a second",
		 rows->nr, text_count(sum.pending).s, text_count(sum.ready).s, rate);
	put_line(0, A_BOLD, line);
	snprintf(line, sizeof(line), "sorted by %s (p r e l w)   q ends%s", rows_order(rows),
		 rows->hidden && geteuid() ? "   only your own: root sees all" : "");
	put_line(1, A_NORMAL, line);
	snprintf(line, sizeof(line), COLUMNS, "WHEEL", "PID", "PROGRAM", "USER", "CLOCK", "TICK",
		 "PENDING", "READY", "EXP/S", "LATE");
	put_line(2, A_REVERSE, line);
}

static void draw(const struct rows *rows)
{
	int y;

	erase();
	put_head(rows);
	for (y = 3; y < LINES && (size_t)(y - 3) < rows->nr; y++)
		put_row(y, &rows->at[y - 3]);
	if (!rows->nr)
		put_line(4, A_NORMAL, "no wheels are open");
	refresh();
}

/* Wait for a key, a signal, or @ns; false: there is no terminal any more. */
static bool wait_for_key(__u64 ns)
{
	struct timespec time = { .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return ppoll(&in, 1, &time, &waiting) <= 0 || !(in.revents & (POLLHUP | POLLERR));
}

/* Takes keys for a time. False if it is to end. (A new size of the screen is a key, too.) */
static bool take_keys(struct rows *rows)
{
	struct timespec start, now;
	__u64 gone = 0;
	int key;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (gone < delay) {
		if (!wait_for_key(delay - gone) || ended_by)
			return false;
		while ((key = getch()) != ERR) {
			if (key == 'q')
				return false;
			rows_sort_by(rows, key);
			draw(rows);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		gone = (now.tv_sec - start.tv_sec) * SEC + now.tv_nsec - start.tv_nsec;
	}
	return true;
}

static int show(void)
{
	struct rows rows = {};
	int ret;

	do {
		ret = rows_update(&rows);
		if (!ret)
			draw(&rows);
	} while (!ret && take_keys(&rows));
	rows_free(&rows);
	return ret;
}

static void end(int nr)
{
	ended_by = nr;
}

/* Ctrl-C is a way to end it, too: with the screen as it was, so not in the middle of a line. */
static void take_signals(void)
{
	struct sigaction action = { .sa_handler = end };
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_BLOCK, &mask, &waiting);
	sigdelset(&waiting, SIGINT);
	sigdelset(&waiting, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int cmd_top(int argc, char **argv)
{
	int status, ret;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	status = module_missing();
	if (status)
		return status;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail(STATUS_USAGE, "top needs a terminal; for programs there is: "
					  "twheel list --json");
	/*
	 * The terminal knows its size, also when it changes; an exported COLUMNS stays as it was.
	 */
	unsetenv("COLUMNS");
	unsetenv("LINES");
	if (!newterm(NULL, stdout, stdin))
		return fail(STATUS_FAILED, "this terminal is not known; try: TERM=vt100 "
					   "twheel top");
	take_signals();
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	ret = show();
	endwin();
	if (ended_by)
		return 128 + ended_by;
	if (ret == -ENODEV)
		return fail(STATUS_NO_MODULE, "the module was unloaded");
	return ret ? fail(STATUS_FAILED, "/proc: %s", strerror(-ret)) : STATUS_OK;
}
