// SPDX-License-Identifier: MIT
/*
 * A wheel in a libevent loop, through an eventfd: the loop watches the eventfd,
 * which the wheel signals when timers become ready. (A loop can watch the
 * wheel's own descriptor as well; an eventfd serves where several wheels, or
 * other threads, are to wake the same loop.) Needs libevent.
 */

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <twheel.h>

#define MS 1000000ULL
#define TIMERS 3

static struct event_base *base;
static int expired;

static int must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
		exit(1);
	}
	return ret;
}

static void wake(evutil_socket_t fd, short what, void *arg)
{
	struct twheel_event events[TIMERS];
	struct twheel *tw = arg;
	eventfd_t count;
	int nr;

	(void)what;
	/* First the eventfd: what becomes ready from now on signals it again */
	eventfd_read(fd, &count);
	while ((nr = twheel_read(tw, events, TIMERS)) > 0) {
		for (int i = 0; i < nr; i++)
			printf("timer %llu expired\n",
			       (unsigned long long)events[i].user_data);
		expired += nr;
	}
	if (nr != -EAGAIN)
		must(nr, "twheel_read");
	if (expired == TIMERS)
		event_base_loopbreak(base);
}

int main(void)
{
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct event *event;
	struct twheel *tw;

	must(twheel_open(TWHEEL_KERNEL | O_NONBLOCK, &tw), "open (is the module loaded?)");
	must(twheel_set_eventfd(tw, efd), "twheel_set_eventfd");
	base = event_base_new();
	event = event_new(base, efd, EV_READ | EV_PERSIST, wake, tw);
	event_add(event, NULL);
	for (int i = 0; i < TIMERS; i++) {
		struct twheel_op op = twheel_op_arm(0, (i + 1) * 30 * MS, 0, i);

		must(twheel_arm(tw, &op), "twheel_arm");
	}
	event_base_dispatch(base);

	event_free(event);
	event_base_free(base);
	twheel_close(tw);
	close(efd);
	return expired != TIMERS;
}
