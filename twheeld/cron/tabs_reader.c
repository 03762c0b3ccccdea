// SPDX-License-Identifier: GPL-2.0
/*
 * A reading of all tabs, in slices, between which clients are served.
 *
 * First all files are read, while the earlier schedules go on. Then the new ones are taken, and
 * nothing fires until all are: no time sees half of an edit.
 */
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "base/util.h"
#include "cron/holidays.h"
#include "cron/pushed.h"
#include "cron/schedule.h"
#include "cron/tabs_reader.h"

#define FILE_MOST (64 << 20)
#define FILE_PIECE (1 << 20)
#define SCHEDULES_MOST 1000000
/* How many wrong lines of all files are named */
#define COMPLAINTS 1000
/* How many of them are kept for the page */
#define KEPT 100
#define SLICE (2 * MILLISECOND)
/* While files come and go, all are read this many times at most before they are taken. */
#define SCANS_MOST 4

/* A file's path, which is kept as long as the server runs */
struct path {
	char *text;
	UT_hash_handle hash;
};

/* A schedule that was read; once it was taken, its earlier definition */
struct line {
	struct definition *definition;
	struct holidays *holidays;
	int64_t digest;
	const char *path;
	bool kept;		/* its calendar can't be read: it stays as it was */
	struct line *next;
};

/* The file that is being read */
struct file {
	struct tab_reader reader;
	const char *path;
	int fd;
	char *text;
	size_t size, have;
	struct tab *tab;	/* NULL: the text is not all there yet */
	bool done;		/* the rest of the file is left out */
};

static struct event_base *loop;
static const char *folder;
static struct tab_host host;
static struct path *paths;
static struct event *next_slice;
static size_t wrong_last;	/* wrong lines of the last reading that came to its end */
static char *kept[KEPT], *keeping[KEPT];	/* their texts; those of the reading under way */
static int64_t took;		/* ns of a processor that it took */

/* The reading under way, and when a file last came or went before it */
static bool (*step)(void);	/* its next step; gives false to wait. NULL: no reading */
static void (*at_end)(bool complete);
static struct dirent **entries;
static int entry, entry_count, scans;
static size_t pushed_at;
static struct file file;
static struct line *lines, **lines_end, *at;
static size_t count, wrong_count;
static bool complete, stays, in_loop, been_read;
static int64_t cost, modified;

/* Messages */

static void set_wrong(const char *path, unsigned int line, size_t column, const char *why)
{
	if (wrong_count < KEPT && asprintf(&keeping[wrong_count], "%s:%u:%zu: %s", path, line,
					   column, why) < 0)
		must(NULL);
	wrong_count++;
	if (wrong_count <= COMPLAINTS)
		complain("%s:%u:%zu: %s", path, line, column, why);
	if (wrong_count == COMPLAINTS)
		complain("further lines that are wrong are not named");
}

static void tabs_wrong(struct tab_reader *reader, unsigned int line, size_t column, const char *why)
{
	set_wrong(file.path, line, column, why);
}

static void name_taken(const struct line *one)
{
	const struct schedule *other = schedule_find(one->definition->name);
	char why[800];

	if (other->definition)
		snprintf(why, sizeof(why), "line %u of %s is called %s, too",
			 other->definition->line, other->file, one->definition->name);
	else
		snprintf(why, sizeof(why), "another line is called %s, too",
			 one->definition->name);
	set_wrong(one->path, one->definition->line, 1, why);
}

/* Files */

/* When a file last came or went, or 0 */
static int64_t tabs_dir_time(void)
{
	struct stat st;

	return stat(folder, &st) ? 0 : st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec;
}

static void tabs_each(struct tab_reader *reader, struct definition *definition)
{
	struct line *one;

	if (count++ >= SCHEDULES_MOST) {
		if (count == SCHEDULES_MOST + 1)
			set_wrong(file.path, definition->line, 1,
				  "there are a million schedules before it, which are the most");
		definition_free(definition);
		return;
	}
	one = zalloc(sizeof(*one));
	one->definition = definition;
	one->path = file.path;
	*lines_end = one;
	lines_end = &one->next;
}

static const char *keep_path(char *text)
{
	struct path *path;

	HASH_FIND(hash, paths, text, strlen(text), path);
	if (path) {
		free(text);
		return path->text;
	}
	path = zalloc(sizeof(*path));
	path->text = text;
	HASH_ADD_KEYPTR(hash, paths, path->text, strlen(path->text), path);
	return path->text;
}

static void unreadable(const char *path, const char *why)
{
	complain("%s: %s", path, why);
	complete = false;
}

static void close_file(void)
{
	if (file.tab)
		tab_end(file.tab);
	if (file.fd >= 0)
		close(file.fd);
	free(file.text);
	file.path = NULL;
}

/* A link to nothing is no tab; a file that has just vanished may have another name now. */
static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void open_file(const char *path)
{
	struct stat st;

	file = (struct file){ .reader = { tabs_each, tabs_wrong }, .path = path };
	file.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file.fd < 0) {
		if (errno != ENOENT || !is_link(path))
			unreadable(path, strerror(errno));
		file.path = NULL;
		return;
	}
	if (fstat(file.fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MOST) {
		unreadable(path, "this is no file of 64 MiB at most");
		close_file();
		return;
	}
	file.size = st.st_size;
	file.text = malloc(file.size + 1);
	if (file.text)
		return;
	unreadable(path, strerror(ENOMEM));
	close_file();
}

static void begin_text(void)
{
	const char *slash = strrchr(file.path, '/');
	char *name = must(strdup(slash ? slash + 1 : file.path));

	name[strlen(name) - strlen(".tab")] = 0;
	file.tab = tab_begin(file.text, file.have, name, &host, &file.reader);
	free(name);
}

static void read_piece(void)
{
	size_t left = file.size - file.have;
	ssize_t got = left ? read(file.fd, file.text + file.have,
				  left < FILE_PIECE ? left : FILE_PIECE) : 0;

	if (got < 0) {
		unreadable(file.path, strerror(errno));
		close_file();
		return;
	}
	file.have += got;
	if (!got)
		begin_text();
}

/* Give memory back in pieces: 64 MiB at once take some milliseconds. False: little is left. */
static bool shrink_text(void)
{
	char *less;

	if (file.size <= FILE_PIECE)
		return false;
	file.size -= FILE_PIECE;
	less = realloc(file.text, file.size + 1);
	file.text = less ? less : file.text;
	return true;
}

static void next_file(void)
{
	const char *name = entries[entry++]->d_name;
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		must(NULL);
	if (tab_name(name)) {
		open_file(keep_path(path));
		return;
	}
	complain("%s: the name of this file can't be that of a tab", path);
	free(path);
}

/* After the files come the tabs that the store has. Gives false if there are no more. */
static bool next_pushed(void)
{
	const char *text, *name;
	size_t size;
	char *path;

	name = pushed_file(pushed_at++, &text, &size);
	if (!name)
		return false;
	if (asprintf(&path, "pushed/%s", name) < 0)
		must(NULL);
	file = (struct file){
		.reader = { tabs_each, tabs_wrong }, .path = keep_path(path), .fd = -1,
		.size = size, .have = size, .text = must(malloc(size + 1)),
	};
	memcpy(file.text, text, size);
	begin_text();
	return true;
}

/* The files of CALENDAR= */

static bool days_step(void);

static bool scan_again(void);

/*
 * Read again if files came or went: a renamed one may have been seen by neither name, or by both.
 */
static void end_files(void)
{
	stays = tabs_dir_time() == modified;
	at = lines;
	step = stays || scans == SCANS_MOST ? days_step : scan_again;
}

static bool files_step(void)
{
	if (!file.path && entry < entry_count)
		next_file();
	else if (!file.path && !next_pushed())
		end_files();
	else if (!file.tab)
		read_piece();
	else if (!file.done)
		file.done = !tab_line(file.tab);
	else if (!shrink_text())
		close_file();
	return true;
}

static void drop(struct line *one)
{
	definition_free(one->definition);
	one->definition = NULL;
}

static bool free_line(void)
{
	struct line *one = lines;

	if (!one)
		return false;
	lines = one->next;
	drop(one);
	holidays_put(one->holidays);
	free(one);
	return true;
}

static void free_entries(void)
{
	while (entry_count > 0)
		free(entries[--entry_count]);
	free(entries);
	entries = NULL;
}

static int select_tabs(const struct dirent *one)
{
	return tabs_reader_is_tab(one->d_name);
}

static void forget_wrong(char **lines_of)
{
	for (size_t i = 0; i < KEPT; i++) {
		free(lines_of[i]);
		lines_of[i] = NULL;
	}
}

/* Gives false if the folder can't be read. */
static bool scan(void)
{
	forget_wrong(keeping);
	modified = tabs_dir_time();
	entry_count = scandir(folder, &entries, select_tabs, alphasort);
	lines = NULL;
	lines_end = &lines;
	count = 0;
	wrong_count = 0;
	entry = 0;
	pushed_at = 0;
	complete = true;
	step = files_step;
	scans++;
	return entry_count >= 0;
}

static bool scan_again(void)
{
	if (free_line())
		return true;
	free_entries();
	if (scan())
		return true;
	unreadable(folder, strerror(errno));
	entry_count = 0;
	return true;
}

static bool take_step(void);
static void slice(void);

/* Gives false while its file is being read. */
static bool get_holidays(struct line *one)
{
	struct definition *definition = one->definition;
	const char *name = definition->dates_path;
	char why[1500], *path;
	bool there;

	if (asprintf(&path, "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/",
		     name) < 0)
		must(NULL);
	there = !in_loop || holidays_begin(loop, slice, path, definition->zone);
	if (there)
		one->holidays = holidays_get(path, definition->zone, why, sizeof(why));
	free(path);
	if (!there)
		return false;
	one->kept = !one->holidays;
	if (one->kept) {
		set_wrong(one->path, definition->line, 1, why);
	} else if (holidays_always(one->holidays, definition->calendar, alarm_wall() / SECOND)) {
		set_wrong(one->path, definition->line, 1, "CALENDAR= leaves out all of its times");
		drop(one);
	}
	return true;
}

static bool days_step(void)
{
	if (!at) {
		at = lines;
		schedule_taking_begins();
		step = take_step;
		return true;
	}
	if (at->definition->dates_path && !get_holidays(at))
		return false;
	if (at->definition)
		at->digest = schedule_digest(at->definition, at->holidays);
	at = at->next;
	return true;
}

/* The end of a reading */

static bool free_step(void)
{
	if (free_line())
		return true;
	free_entries();
	wrong_last = wrong_count;
	forget_wrong(kept);
	memcpy(kept, keeping, sizeof(kept));
	memset(keeping, 0, sizeof(keeping));
	step = NULL;
	return true;
}

static bool end_step(void)
{
	if (schedule_taking_ends(complete && stays))
		step = free_step;
	return true;
}

static bool take_step(void)
{
	struct line *one = at;
	char why[800];
	bool circle;

	if (!one) {
		if (!complete)
			complain("as a file of %s can't be read, no schedule is taken away",
				 folder);
		step = end_step;
		return true;
	}
	at = one->next;
	circle = one->definition && one->definition->after &&
		schedule_circle(one->definition, why, sizeof(why));
	if (circle)
		set_wrong(one->path, one->definition->line, 1, why);
	if (one->kept)
		schedule_keep(one->definition->name);
	else if (one->definition && !circle &&
		 !schedule_adopt(&one->definition, &one->holidays, one->digest, one->path))
		name_taken(one);
	return true;
}

/* Slices */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void slice(void)
{
	static const struct timeval at_once;
	int64_t until = clock_ns(CLOCK_MONOTONIC) + SLICE;
	int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool more = true;

	while (step && more && (!in_loop || clock_ns(CLOCK_MONOTONIC) < until))
		more = step();
	cost += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	if (step && more)
		event_add(next_slice, &at_once);
	if (step)
		return;
	took = cost + holidays_took();
	at_end(stays);
}

static void due(evutil_socket_t fd, short what, void *arg)
{
	slice();
}

/** tabs_reader_is_tab - is a file of that name a tab? */
bool tabs_reader_is_tab(const char *name)
{
	size_t length = strlen(name);

	return *name != '.' && length > 4 && !strcmp(name + length - 4, ".tab");
}

/**
 * tabs_reader_begin - read all tabs; no reading may be under way
 * @done: called when all is in force; @stays: no file came or went meanwhile
 *
 * Return: false, having complained, if the folder can't be read.
 */
bool tabs_reader_begin(void (*done)(bool stays))
{
	scans = 0;
	if (!scan()) {
		complain("%s: %s. %s", folder, strerror(errno), been_read ?
			 "Schedules stay as they were" : "Until it can be read none fires");
		step = NULL;
		return false;
	}
	been_read = true;
	schedule_reading_begins();
	cost = 0;
	at_end = done;
	slice();
	return true;
}

/**
 * tabs_reader_start - set the folder
 * @base: the loop
 * @path: the folder
 * @for_host: this machine's names. @path has to stay valid
 */
void tabs_reader_start(struct event_base *base, const char *path, const struct tab_host *for_host)
{
	loop = base;
	folder = path;
	host = *for_host;
	host.node = must(strdup(host.node));
	host.site = host.site ? must(strdup(host.site)) : NULL;
	next_slice = must(evtimer_new(base, due, NULL));
}

/** tabs_reader_in_slices - read in slices from now on, as the loop runs; before, all at once */
void tabs_reader_in_slices(void)
{
	in_loop = true;
}

/** tabs_reader_goes_on - is a reading under way? */
bool tabs_reader_goes_on(void)
{
	return step;
}

/** tabs_reader_took - ns of a processor that the last reading took */
int64_t tabs_reader_took(void)
{
	return took;
}

/** tabs_reader_wrong - how many lines were wrong in the last reading */
size_t tabs_reader_wrong(void)
{
	return wrong_last;
}

/** tabs_reader_wrong_line - one of them: file, line, column, and why; NULL: there are no more */
const char *tabs_reader_wrong_line(size_t i)
{
	return i < KEPT ? kept[i] : NULL;
}
