// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of tabs: its files *.tab are read when the server starts, at SIGHUP, and soon
 * after one of them has changed.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cron/holidays.h"
#include "cron/pushed.h"
#include "cron/schedule.h"
#include "cron/tabs_dir.h"
#include "cron/tabs_reader.h"
#include "when/tab.h"

#define EVENTS (IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB)

static const char *folder;
static struct event *soon;
static int watch_fd = -1;
static bool shared;		/* the store is a database */
static struct stat was_read;	/* the folder */
static bool again;		/* read once more after the reading that is under way */
static void (*on_read)(void);	/* called when a reading that was asked for is in force */

static void watch(void)
{
	if (inotify_add_watch(watch_fd, folder, EVENTS | IN_ONLYDIR) < 0)
		complain("%s can't be watched: %s. Its files are read at SIGHUP alone", folder,
			 strerror(errno));
}

/* Wait a little: an editor does several things at once, and clients have to be served, too. */
static void read_soon(void)
{
	int64_t took = tabs_reader_took(), delay = 10 * took > SECOND / 5 ? 10 * took : SECOND / 5;
	struct timeval tv = { delay / SECOND, delay % SECOND / 1000 };

	if (soon && !event_pending(soon, EV_TIMEOUT, NULL))
		event_add(soon, &tv);
}

/* inotify is silent where another folder gets the name. And calendars run out. */
static void dir_look(evutil_socket_t fd, short what, void *arg)
{
	struct stat st;

	if (stat(folder, &st) == 0 &&
	    (st.st_ino != was_read.st_ino || st.st_dev != was_read.st_dev))
		read_soon();
	if (!tabs_reader_goes_on())
		holidays_look();
	if (!shared)
		pushed_look();
}

/* Gives false if the folder can't be read. */
static bool dir_read_all(void (*done)(bool stays))
{
	/* Watch first, so that no change during the reading is missed. */
	watch();
	if (stat(folder, &was_read))
		was_read.st_ino = 0;
	return tabs_reader_begin(done);
}

static void say_read(void)
{
	struct schedule_counts counts = schedule_count();

	inform("%s was read again: %zu schedules, %zu lines are wrong", folder,
	       counts.active + counts.paused, tabs_reader_wrong());
}

static void dir_begin(void);

static void dir_end(void)
{
	void (*tell)(void) = on_read;

	if (again) {
		dir_begin();
		return;
	}
	on_read = NULL;
	if (tell)
		tell();
}

static void read_again(bool stays)
{
	say_read();
	if (!stays)
		read_soon();
	dir_end();
}

static void dir_begin(void)
{
	again = tabs_reader_goes_on();
	if (!again && !dir_read_all(read_again))
		dir_end();
}

/**
 * tabs_dir_read_again - read all files once more, and say so
 * @done: called when all is in force
 */
void tabs_dir_read_again(void (*done)(void))
{
	if (!folder) {
		done();
		return;
	}
	on_read = done;
	dir_begin();
}

static void changed_before(evutil_socket_t fd, short what, void *arg)
{
	dir_begin();
}

/* A new file counts once it is written and closed; a new link counts at once. */
static bool counts_now(const struct inotify_event *event)
{
	char path[4096];
	struct stat st;

	if (!(event->mask & IN_CREATE))
		return true;
	snprintf(path, sizeof(path), "%s/%s", folder, event->name);
	return lstat(path, &st) == 0 && (S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

/* Is it a tab, or a file that a tab names as CALENDAR=? */
static bool is_of_tabs(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return tabs_reader_is_tab(name) || holidays_named(path);
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

	for (ssize_t at = 0; at < got;) {
		struct inotify_event *event = (struct inotify_event *)(events + at);

		now |= matters(event);
		at += sizeof(*event) + event->len;
	}
	if (now)
		read_soon();
}

static void read_first(bool stays)
{
	if (!stays)
		read_soon();
}

/**
 * tabs_dir_start - read the schedules, and do so again when a file changes
 * @base: the loop
 * @path: the folder
 * @host: this machine's names
 */
void tabs_dir_start(struct event_base *base, const char *path, const struct tab_host *host)
{
	static const struct timeval each_so_often = { 5, 0 };

	folder = must(strdup(path));
	shared = host->shared;
	watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch_fd < 0)
		die("%s can't be watched: %s", path, strerror(errno));
	soon = must(evtimer_new(base, changed_before, NULL));
	event_add(must(event_new(base, -1, EV_PERSIST, dir_look, NULL)), &each_so_often);
	event_add(must(event_new(base, watch_fd, EV_READ | EV_PERSIST, changed, NULL)), NULL);
	tabs_reader_start(base, folder, host);
	pushed_start(read_soon);
	dir_read_all(read_first);
	tabs_reader_in_slices();
}
