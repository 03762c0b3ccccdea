// SPDX-License-Identifier: GPL-2.0
/*
 * Linked to the keeper by --wrap: it crashes at a moment of its work that the test names. A
 * file /tmp/crash has a number: 0 is before the next batch of expiries is read, 1 is when it
 * has been read, 2 is when it has been acted upon; 3, 4, 5 are those of the batch after that,
 * and so on. The file is removed by the process that will do so. What was read and not acted
 * upon then is in /tmp/taken.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <twheel.h>
#include <unistd.h>

typeof(twheel_read) __real_twheel_read, __wrap_twheel_read;
typeof(write) __real_write, __wrap_write;

static int moments_left = -1;

/* No crash is at hand, unless the file says so. */
static void look(void)
{
	FILE *file = moments_left < 0 ? fopen("/tmp/crash", "r") : NULL;

	if (!file)
		return;
	if (fscanf(file, "%d", &moments_left) != 1)
		abort();
	fclose(file);
	unlink("/tmp/crash");
}

static void take(const struct twheel_event *events, int nr)
{
	FILE *file = fopen("/tmp/taken", "a");
	int i;

	for (i = 0; file && i < nr; i++)
		fprintf(file, "%llu\n", (unsigned long long)events[i].user_data);
	if (!file || fclose(file))
		abort();
}

static void moment(const struct twheel_event *events, int nr)
{
	if (moments_left < 0 || moments_left--)
		return;
	take(events, nr);
	kill(getpid(), SIGKILL);
}

int __wrap_twheel_read(struct twheel *tw, struct twheel_event *events, unsigned int max)
{
	int nr;

	look();
	moment(NULL, 0);
	nr = __real_twheel_read(tw, events, max);
	if (nr > 0)
		moment(events, nr);
	return nr;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	ssize_t written = __real_write(fd, bytes, size);

	moment(NULL, 0);
	return written;
}
