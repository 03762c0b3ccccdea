// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-run: takes jobs from a server, and runs a command for each.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "child.h"
#include "loop.h"
#include "must.h"
#include "options.h"
#include "slot.h"

/* ms for the server to hear what became of commands that were ended */
#define LAST_WORDS 5000
/* ms for all else until it has ended */
#define TO_END 5000

static struct slot **slots;
static struct event *grace, *last;
static char *systemd;
static bool stopping;
static int status;

static void for_each(void (*fn)(struct slot *slot))
{
	for (unsigned int i = 0; i < options.at_a_time; i++)
		fn(slots[i]);
}

static void no_grace(evutil_socket_t fd, short what, void *arg)
{
	for_each(slot_give_up);
	loop_set(last, options.kill_after + LAST_WORDS);
}

static void too_late(evutil_socket_t fd, short what, void *arg)
{
	for (unsigned int i = 0; i < options.at_a_time; i++)
		if (slot_forsake(slots[i]))
			status = 1;
}

/* Where systemd listens is not for commands to know: it takes no word of theirs. */
static void hide_systemd(void)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (!name)
		return;
	systemd = must(strdup(name));
	unsetenv("NOTIFY_SOCKET");
}

/* systemd would kill all after TimeoutStopSec=. */
static void ask_for_time(void)
{
	if (systemd && setenv("NOTIFY_SOCKET", systemd, 1) == 0)
		sd_notifyf(1, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld",
			   (options.grace + options.kill_after + LAST_WORDS + TO_END) * 1000);
}

/* The second signal is one of somebody who does not want to wait. */
static void stop(evutil_socket_t fd, short what, void *arg)
{
	if (stopping) {
		no_grace(fd, what, NULL);
		return;
	}
	stopping = true;
	ask_for_time();
	loop_set(grace, options.grace);
	for_each(slot_stop);
}

static void child_changed(evutil_socket_t fd, short what, void *arg)
{
	child_reap();
}

static void on_signal(int number, event_callback_fn fn)
{
	event_add(must(evsignal_new(loop, number, fn, NULL)), NULL);
}

int main(int argc, char **argv)
{
	options_parse(argc, argv);
	hide_systemd();
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	loop = must(event_base_new());
	grace = loop_timer(no_grace, NULL);
	last = loop_timer(too_late, NULL);
	on_signal(SIGTERM, stop);
	on_signal(SIGINT, stop);
	on_signal(SIGCHLD, child_changed);
	slots = must(calloc(options.at_a_time, sizeof(*slots)));
	for (unsigned int i = 0; i < options.at_a_time; i++)
		slots[i] = slot_new();
	event_base_dispatch(loop);
	return status;
}
