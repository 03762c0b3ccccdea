// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of tabs: its files *.tab are read when the server starts, at SIGHUP, and soon
 * after one of them has changed.
 */
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "folder.h"
#include "schedule.h"
#include "util.h"

#define FILE_MOST (64 << 20)
#define SCHEDULES_MOST 1000000
/* Of all files, so many lines are named that are wrong. */
#define COMPLAINTS 1000
#define EVENTS (IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB)

/* A file's path, as long as the server runs */
struct path {
	char *text;
	UT_hash_handle hash;
};

struct reading {
	struct tab_reader reader;
	const char *path;
};

static const char *folder;
static struct tab_host host;
static struct path *paths;
static struct event *soon;
static int watch_fd = -1;
static size_t wrong_count, count;
static struct stat was_read;	/* the folder */
static int64_t took;		/* the last reading, in ns */

static void set_wrong(const char *path, unsigned int line, size_t column, const char *why)
{
	wrong_count++;
	if (wrong_count <= COMPLAINTS)
		complain("%s:%u:%zu: %s", path, line, column, why);
	if (wrong_count == COMPLAINTS)
		complain("further lines that are wrong are not named");
}

static void wrong(struct tab_reader *reader, unsigned int line, size_t column, const char *why)
{
	set_wrong(((struct reading *)reader)->path, line, column, why);
}

static bool get_excluded(const char *path, struct definition *definition,
			 struct excluded **excluded)
{
	const char *name = definition->exclusion;
	char why[1500], *whole;

	*excluded = NULL;
	if (!name)
		return true;
	if (asprintf(&whole, "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/",
		     name) < 0)
		must(NULL);
	*excluded = excluded_get(whole, definition->zone, why, sizeof(why));
	if (!*excluded)
		set_wrong(path, definition->line, 1, why);
	free(whole);
	return *excluded;
}

static void name_taken(const char *path, const struct definition *definition)
{
	const struct schedule *other = schedule_find(definition->name);
	char why[800];

	if (other->definition)
		snprintf(why, sizeof(why), "line %u of %s is called %s, too",
			 other->definition->line, other->file, definition->name);
	else
		snprintf(why, sizeof(why), "another line is called %s, too", definition->name);
	set_wrong(path, definition->line, 1, why);
}

static bool take(struct definition *definition, struct excluded *excluded, const char *path)
{
	if (excluded_always(excluded, definition->calendar, alarm_wall() / SECOND)) {
		set_wrong(path, definition->line, 1, "CALENDAR= leaves out all of its times");
		return false;
	}
	if (schedule_adopt(definition, excluded, path))
		return true;
	name_taken(path, definition);
	return false;
}

static void each(struct tab_reader *reader, struct definition *definition)
{
	const char *path = ((struct reading *)reader)->path;
	struct excluded *excluded;

	if (++count > SCHEDULES_MOST) {
		if (count == SCHEDULES_MOST + 1)
			set_wrong(path, definition->line, 1,
				  "there are a million schedules before it, which are the most");
		definition_free(definition);
		return;
	}
	if (!get_excluded(path, definition, &excluded)) {
		schedule_keep(definition->name);
		definition_free(definition);
		return;
	}
	if (take(definition, excluded, path))
		return;
	definition_free(definition);
	excluded_put(excluded);
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

/* The whole of a file, to be freed; NULL with a reason if it can't be read */
static char *read_whole(int fd, size_t *length, const char **why)
{
	struct stat st;
	char *text;
	ssize_t got = 0;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MOST) {
		*why = "this is no file of 64 MiB at most";
		return NULL;
	}
	text = malloc(st.st_size + 1);
	*length = 0;
	while (text && *length < (size_t)st.st_size &&
	       (got = read(fd, text + *length, st.st_size - *length)) > 0)
		*length += got;
	if (text && got >= 0)
		return text;
	*why = strerror(text ? errno : ENOMEM);
	free(text);
	return NULL;
}

static void parse(const char *path, const char *text, size_t length)
{
	struct reading reading = { { each, wrong }, path };
	const char *slash = strrchr(path, '/');
	char *name = must(strdup(slash ? slash + 1 : path));

	name[strlen(name) - strlen(".tab")] = 0;
	host.body_most = command_max_size();
	tab_parse(text, length, name, &host, &reading.reader);
	free(name);
}

/* A link to nothing is no tab. What was there just now has another name, perhaps. */
static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Gives false if the file is there and can't be read, or is not there any more. */
static bool read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why;
	size_t length;
	char *text;

	if (fd < 0 && errno == ENOENT && is_link(path))
		return true;
	if (fd < 0) {
		complain("%s: %s", path, strerror(errno));
		return false;
	}
	text = read_whole(fd, &length, &why);
	close(fd);
	if (!text) {
		complain("%s: %s", path, why);
		return false;
	}
	parse(path, text, length);
	free(text);
	return true;
}

static bool is_tab(const char *name)
{
	size_t length = strlen(name);

	return *name != '.' && length > 4 && !strcmp(name + length - 4, ".tab");
}

static int select_tabs(const struct dirent *entry)
{
	return is_tab(entry->d_name);
}

static bool read_files(struct dirent **entries, int length)
{
	bool complete = true;

	for (int i = 0; i < length; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0)
			must(NULL);
		if (tab_name(entries[i]->d_name)) {
			complete = read_file(keep_path(path)) && complete;
		} else {
			complain("%s: the name of this file can't be that of a tab", path);
			free(path);
		}
	}
	return complete;
}

static void watch(void)
{
	if (inotify_add_watch(watch_fd, folder, EVENTS | IN_ONLYDIR) < 0)
		complain("%s can't be watched: %s. Its files are read at SIGHUP alone", folder,
			 strerror(errno));
}

/* When a file came or went, or 0 */
static int64_t folder_time(void)
{
	struct stat st;

	return stat(folder, &st) ? 0 : st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec;
}

/* An editor does several things at once. And clients are to be served, too. */
static void read_soon(void)
{
	int64_t delay = 10 * took > SECOND / 5 ? 10 * took : SECOND / 5;
	struct timeval tv = { delay / SECOND, delay % SECOND / 1000 };

	if (soon && !event_pending(soon, EV_TIMEOUT, NULL))
		event_add(soon, &tv);
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* Another folder may have its name now, of which inotify says nothing. */
static void look(evutil_socket_t fd, short what, void *arg)
{
	struct stat st;

	(void)fd;
	(void)what;
	(void)arg;
	if (stat(folder, &st) == 0 &&
	    (st.st_ino != was_read.st_ino || st.st_dev != was_read.st_dev))
		read_soon();
}

static void read_all(void)
{
	int64_t before = folder_time(), begun = cpu_ns();
	struct dirent **entries;
	bool complete, same;
	int length;

	/* What changes from now on is seen. */
	watch();
	wrong_count = 0;
	count = 0;
	if (stat(folder, &was_read))
		was_read.st_ino = 0;
	length = scandir(folder, &entries, select_tabs, alphasort);
	if (length < 0) {
		complain("%s: %s. Schedules stay as they were", folder, strerror(errno));
		return;
	}
	schedule_reading_begins();
	complete = read_files(entries, length);
	if (!complete)
		complain("as a file of %s can't be read, no schedule is taken away", folder);
	/* A file that was renamed meanwhile may have been seen by neither of its names. */
	same = folder_time() == before;
	schedule_reading_ends(complete && same);
	took = cpu_ns() - begun;
	if (!same)
		read_soon();
	while (length--)
		free(entries[length]);
	free(entries);
}

/** folder_wrong - how many lines were wrong */
size_t folder_wrong(void)
{
	return wrong_count;
}

/** folder_read_again - the same, once more, and say so */
void folder_read_again(void)
{
	struct schedule_counts counts;

	if (!folder)
		return;
	read_all();
	counts = schedule_count();
	inform("%s was read again: %zu schedules, %zu lines are wrong", folder,
	       counts.active + counts.paused, wrong_count);
}

static void changed_before(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	folder_read_again();
}

/* A file that was just made is being written, unless it is only a link to another one. */
static bool counts_now(const struct inotify_event *event)
{
	char path[4096];
	struct stat st;

	if (!(event->mask & IN_CREATE))
		return true;
	snprintf(path, sizeof(path), "%s/%s", folder, event->name);
	return lstat(path, &st) == 0 && (S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

/* Is it a tab, or what one of them has as CALENDAR=? */
static bool is_of_tabs(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return is_tab(name) || excluded_named(path);
}

static bool matters(const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	return event->len && is_of_tabs(event->name) && counts_now(event);
}

static void changed(evutil_socket_t fd, short what, void *arg)
{
	static char events[1 << 16] __attribute__((aligned(8)));
	ssize_t got = read(fd, events, sizeof(events));
	bool now = false;

	(void)what;
	(void)arg;
	for (ssize_t at = 0; at < got;) {
		struct inotify_event *event = (struct inotify_event *)(events + at);

		now |= matters(event);
		at += sizeof(*event) + event->len;
	}
	if (now)
		read_soon();
}

/**
 * folder_start - read the schedules, and do so again when a file changes
 * @base: the loop
 * @path: the folder
 * @node: what this machine is called
 * @site: where it is, or NULL
 */
void folder_start(struct event_base *base, const char *path, const char *node, const char *site)
{
	static const struct timeval each_so_often = { 5, 0 };

	folder = must(strdup(path));
	host.zone = "";
	host.node = must(strdup(node));
	host.site = site ? must(strdup(site)) : NULL;
	watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch_fd < 0)
		die("%s can't be watched: %s", path, strerror(errno));
	soon = must(evtimer_new(base, changed_before, NULL));
	event_add(must(event_new(base, -1, EV_PERSIST, look, NULL)), &each_so_often);
	event_add(must(event_new(base, watch_fd, EV_READ | EV_PERSIST, changed, NULL)), NULL);
	read_all();
}
