// SPDX-License-Identifier: GPL-2.0
/* GLib's timeout sources, for cases.h */
#include "cases.h"

#include <glib-unix.h>

static GSource *timers[TIMERS];
static int period_of[TIMERS];
static guint poller;
static GMainLoop *loop;

const char *const nevers[] = { "UINT_MAX ms", "ready time 2^63 - 1 us", NULL };
const int periods = 1;

static void version(void)
{
	printf("GLib %u.%u.%u", glib_major_version, glib_minor_version, glib_micro_version);
}

static gboolean expired(gpointer arg)
{
	GSource **timer = arg, *was = *timer;

	on_timer(timer - timers);
	return period_of[timer - timers] && *timer == was;
}

static gboolean readable(gint fd, GIOCondition what, gpointer arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	on_ready();
	return G_SOURCE_REMOVE;
}

static void stop(int i)
{
	if (!timers[i])
		return;
	g_source_destroy(timers[i]);
	g_source_unref(timers[i]);
	timers[i] = NULL;
}

static int start(int i, double delay, double period)
{
	stop(i);
	period_of[i] = period;
	timers[i] = g_timeout_source_new(delay);
	g_source_set_callback(timers[i], expired, &timers[i], NULL);
	g_source_attach(timers[i], NULL);
	return 0;
}

static int start_never(int i, int which)
{
	start(i, G_MAXUINT, 0);
	if (which)
		g_source_set_ready_time(timers[i], G_MAXINT64);
	return 0;
}

static double left(int i)
{
	return (g_source_get_ready_time(timers[i]) - g_get_monotonic_time()) / 1e3;
}

static int active(int i) { return timers[i] && !g_source_is_destroyed(timers[i]); }
static void run(void) { g_main_loop_run(loop); }
static void leave(void) { g_main_loop_quit(loop); }

static void watch(int fd)
{
	if (fd >= 0)
		poller = g_unix_fd_add(fd, G_IO_IN, readable, NULL);
}

int main(void)
{
	loop = g_main_loop_new(NULL, FALSE);
	cases();
	return 0;
}
