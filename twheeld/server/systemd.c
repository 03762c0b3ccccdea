// SPDX-License-Identifier: GPL-2.0
/*
 * systemd: its sockets, its watchdog, and the server's state for it.
 *
 * The watchdog is answered by the event loop alone, so that a loop that hangs is noticed.
 * The loop answers also while the committer waits for a disk that does not answer: a new process
 * would wait for the same disk, acknowledged jobs are safe either way, and jobs in memory are still
 * given out and timed. The status and the journal name the disk instead.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "server/systemd.h"

static void check_socket(int fd, const char *name)
{
	if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
		die("socket '%s' of systemd does not listen: use ListenStream=, not Accept=yes",
		    name);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		die("socket '%s' of systemd: %s", name, strerror(errno));
}

/**
 * systemd_sockets - take the sockets that systemd has opened
 * @each: called with each of them, and its FileDescriptorName=
 */
void systemd_sockets(void (*each)(int fd, const char *name))
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names);

	if (count < 0)
		die("the sockets of systemd can't be taken: %s", strerror(-count));
	for (int i = 0; i < count; i++) {
		check_socket(SD_LISTEN_FDS_START + i, names[i]);
		each(SD_LISTEN_FDS_START + i, names[i]);
		free(names[i]);
	}
	free(names);
}

static void alive(evutil_socket_t fd, short what, void *arg)
{
	sd_notify(0, "WATCHDOG=1");
}

/** systemd_start - answer the watchdog, if there is one */
void systemd_start(struct event_base *base)
{
	uint64_t us;
	struct timeval often;

	if (sd_watchdog_enabled(0, &us) <= 0)
		return;
	/* Three times as often as needed: on a busy machine, an answer may be late. */
	us /= 3;
	often = (struct timeval){ us / 1000000, us % 1000000 };
	event_add(must(event_new(base, -1, EV_PERSIST, alive, NULL)), &often);
	alive(-1, 0, NULL);
}

void systemd_ready(void)
{
	sd_notify(0, "READY=1\nSTATUS=Serving");
}

/** systemd_reloading - say that the configuration is being read again; then systemd_ready() */
void systemd_reloading(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
		   ts.tv_sec * 1000000LL + ts.tv_nsec / 1000);
}

void systemd_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=Writing what waits to be written");
}

/** systemd_may_take_long - ask for a day to stop in, beyond TimeoutStopSec= of the unit */
void systemd_may_take_long(void)
{
	sd_notify(0, "EXTEND_TIMEOUT_USEC=86400000000");
}

/** systemd_status - set the text that "systemctl status" shows */
void systemd_status(const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sd_notifyf(0, "STATUS=%s", text);
}
