// SPDX-License-Identifier: GPL-2.0
/*
 * load SOCKET put CLIENTS SECONDS: jobs put in a second, each client waiting for its reply
 * load SOCKET wait CLIENTS SECONDS: how long each of these puts waits for its reply
 * load SOCKET pipe PUTS SECONDS: one client sends PUTS, and then waits for all replies
 * load SOCKET cycle CLIENTS SECONDS: put, reserve, delete
 * load SOCKET fill JOBS DELAY: JOBS delayed jobs, 50 of them under way
 * load SOCKET late JOBS DELAY: JOBS of them, 2,000 in a second, with 8 clients that put and 16
 *	that reserve and delete; how late they come
 * load SOCKET fired CLIENTS SECONDS: how late the jobs of schedules come to clients that
 *	reserve; the body of each is %t
 * load FILE bare KIB SECONDS: how late it is when a timer has expired, and KIB are written
 *	and synced: once a second, in the middle of it, when schedules do nothing
 *
 * Prints one line of figures. Any reply but the right one ends it.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BODY 100
#define TTR 600
#define AHEAD 50
#define CLIENTS_MOST 1000
#define PUTS_PER_SECOND 2000

enum role { PUTS, CYCLES, PUTS_LATER, TAKES, TAKES_FIRED };

/* How many are measured in a run: no more come, or the first of them */
#define MEASURED_MOST 1000000

struct client {
	int fd;
	enum role role;
	int step;
	long job;		/* that it puts */
	bool idle;		/* its next put has a time that is yet to come */
	double asked;		/* when it sent its last put */
	char in[4096];
	size_t filled;
};

static struct client clients[CLIENTS_MOST];
static int count, poller;
static const char *path;
static char body[BODY + 1];
static long done, jobs, given, taken, delay;
static double begun, listening;
static double *sent, *acked, *late, *late_acked;

static double time_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static double now(void)
{
	return time_of(CLOCK_MONOTONIC);
}

static void say(struct client *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say(struct client *c, const char *format, ...)
{
	char text[512];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(c->fd, text, length) != length)
		err(1, "write");
}

static struct client *add(enum role role)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct client *c = &clients[count++];
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	if (count > CLIENTS_MOST)
		errx(2, "at most %d clients", CLIENTS_MOST);
	strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) ||
	    epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event))
		err(1, "%s", path);
	c->role = role;
	return c;
}

static void give(struct client *c, long seconds)
{
	c->asked = now();
	say(c, "put 1 %ld %d %d\r\n%s\r\n", seconds, TTR, BODY, body);
}

static void put_later(struct client *c)
{
	c->idle = given == jobs || now() < begun + (double)given / PUTS_PER_SECOND;
	if (c->idle)
		return;
	c->job = given++;
	snprintf(body, sizeof(body), "%0*ld", BODY, c->job);
	sent[c->job] = now();
	give(c, delay);
}

static void begin(struct client *c, int number)
{
	switch (c->role) {
	case PUTS:
		give(c, 0);
		break;
	case CYCLES:
		/* A tube of its own, so that each gets what it put */
		say(c, "use t%d\r\n", number);
		break;
	case PUTS_LATER:
		put_later(c);
		break;
	case TAKES:
	case TAKES_FIRED:
		say(c, "reserve\r\n");
		break;
	}
}

static void expect(const char *line, const char *word)
{
	if (strncmp(line, word, strlen(word)))
		errx(1, "'%.40s' instead of '%s'", line, word);
}

/* In order: USING, WATCHING, then INSERTED, RESERVED, DELETED over and over */
static void cycle(struct client *c, const char *line, int number)
{
	static const char *const words[] = {
		"USING", "WATCHING", "INSERTED", "RESERVED", "DELETED"
	};

	expect(line, words[c->step]);
	switch (c->step++) {
	case 0:
		say(c, "watch t%d\r\n", number);
		break;
	case 1:
		give(c, 0);
		break;
	case 2:
		say(c, "reserve\r\n");
		break;
	case 3:
		say(c, "delete %ld\r\n", strtol(line + strlen("RESERVED "), NULL, 10));
		break;
	case 4:
		done++;
		c->step = 2;
		give(c, 0);
		break;
	}
}

static void took(const char *line, const char *text)
{
	long job = strtol(text, NULL, 10);

	if (job < 0 || job >= jobs || late[job])
		errx(1, "job %ld: %s", job, line);
	late[job] = now() - sent[job] - delay;
	/* Its reply may be on the way. */
	late_acked[job] = acked[job] ? now() - acked[job] - delay : late[job];
	if (late[job] < 0)
		errx(1, "job %ld came %.6f s early", job, -late[job]);
	taken++;
}

static void take(struct client *c, const char *line, const char *text)
{
	if (c->step++ % 2 == 0) {
		expect(line, "RESERVED");
		took(line, text);
		say(c, "delete %ld\r\n", strtol(line + strlen("RESERVED "), NULL, 10));
	} else {
		expect(line, "DELETED");
		say(c, "reserve\r\n");
	}
}

/* What was due before anybody reserved is no matter. It stays reserved: no delete disturbs. */
static void take_fired(struct client *c, const char *line, const char *text)
{
	double at = time_of(CLOCK_REALTIME), due;
	struct tm tm = { 0 };

	expect(line, "RESERVED");
	if (!strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		errx(1, "'%.40s' is no time", text);
	due = timegm(&tm);
	if (at < due)
		errx(1, "a job came %.6f s early", due - at);
	if (due > listening && taken < MEASURED_MOST)
		late[taken++] = at - due;
	say(c, "reserve\r\n");
}

static void reply(struct client *c, const char *line, const char *text)
{
	switch (c->role) {
	case PUTS:
		expect(line, "INSERTED");
		if (late && taken < MEASURED_MOST)
			late[taken++] = now() - c->asked;
		done++;
		give(c, 0);
		break;
	case CYCLES:
		cycle(c, line, c - clients);
		break;
	case PUTS_LATER:
		expect(line, "INSERTED");
		acked[c->job] = now();
		put_later(c);
		break;
	case TAKES:
		take(c, line, text);
		break;
	case TAKES_FIRED:
		take_fired(c, line, text);
		break;
	}
}

/* How much of the input is a whole reply, 0 if none is; ends its line and body by a NUL. */
static size_t whole(struct client *c, char **text)
{
	char *end = memmem(c->in, c->filled, "\r\n", 2);
	size_t size;

	if (!end)
		return 0;
	size = end + 2 - c->in;
	*text = end + 2;
	if (!strncmp(c->in, "RESERVED ", 9)) {
		size += strtoul(strchr(c->in + 9, ' '), NULL, 10) + 2;
		if (c->filled < size)
			return 0;
		c->in[size - 2] = 0;
	}
	*end = 0;
	return size;
}

static void input(struct client *c)
{
	ssize_t got = read(c->fd, c->in + c->filled, sizeof(c->in) - c->filled);
	size_t size;
	char *text;

	if (got <= 0)
		errx(1, "the server closed a connection");
	c->filled += got;
	while ((size = whole(c, &text)) > 0) {
		reply(c, c->in, text);
		c->filled -= size;
		memmove(c->in, c->in + size, c->filled);
	}
}

/* Until that time, or until all jobs were taken */
static void run_until(double end)
{
	struct epoll_event events[64];
	int n;

	while (now() < end && !(jobs && taken == jobs)) {
		n = epoll_wait(poller, events, 64, jobs ? 1 : 100);
		for (int i = 0; i < n; i++)
			input(events[i].data.ptr);
		for (int i = 0; i < count; i++)
			if (clients[i].idle)
				put_later(&clients[i]);
	}
}

static double rate(enum role role, int clients_, double seconds)
{
	for (int i = 0; i < clients_; i++)
		add(role);
	begun = now();
	for (int i = 0; i < count; i++)
		begin(&clients[i], i);
	run_until(begun + seconds);
	return done / (now() - begun);
}

/* Replies to puts that have come, at least one: how many */
static long inserted(struct client *c)
{
	ssize_t got = read(c->fd, c->in + c->filled, sizeof(c->in) - c->filled);
	char *end, *at = c->in;
	long count = 0;

	if (got <= 0)
		errx(1, "the server closed a connection");
	c->filled += got;
	for (; (end = memmem(at, c->in + c->filled - at, "\r\n", 2)); at = end + 2, count++)
		expect(at, "INSERTED");
	c->filled -= at - c->in;
	memmove(c->in, at, c->filled);
	return count;
}

static void fill(long n, long seconds)
{
	struct client *c = add(PUTS);
	long answered = 0;

	begun = now();
	for (long i = 0; answered < n; answered += inserted(c))
		for (; i < n && i - answered < AHEAD; i++)
			give(c, seconds + i % 1000);
	printf("%.0f\n", n / (now() - begun));
}

static void pipeline(long puts, double seconds)
{
	struct client *c = add(PUTS);
	size_t one = snprintf(NULL, 0, "put 1 0 %d %d\r\n%s\r\n", TTR, BODY, body);
	size_t all = puts * one;
	char *text = malloc(all + 1);

	if (!text)
		err(1, "memory");
	for (long i = 0; i < puts; i++)
		sprintf(text + i * one, "put 1 0 %d %d\r\n%s\r\n", TTR, BODY, body);
	begun = now();
	while (now() - begun < seconds) {
		if (write(c->fd, text, all) != (ssize_t)all)
			err(1, "write");
		for (long answered = 0; answered < puts;)
			answered += inserted(c);
		done += puts;
	}
	printf("%.0f\n", done / (now() - begun));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_parts(double *all, long length)
{
	qsort(all, length, sizeof(*all), compare);
	printf(" %.3f %.3f %.3f", 1e3 * all[length / 2], 1e3 * all[length * 99 / 100],
	       1e3 * all[length - 1]);
}

/* Milliseconds: median, p99, longest */
static void waits(int clients_, double seconds)
{
	late = calloc(MEASURED_MOST, sizeof(*late));
	if (!late)
		err(1, "memory");
	rate(PUTS, clients_, seconds);
	print_parts(late, taken);
	putchar('\n');
}

/* Milliseconds: median, p99, longest; after put was sent, and after its reply came */
static void lateness(void)
{
	sent = calloc(jobs, sizeof(*sent));
	acked = calloc(jobs, sizeof(*acked));
	late = calloc(jobs, sizeof(*late));
	late_acked = calloc(jobs, sizeof(*late_acked));
	if (!sent || !acked || !late || !late_acked)
		err(1, "memory");
	for (int i = 0; i < 8; i++)
		add(PUTS_LATER);
	for (int i = 0; i < 16; i++)
		add(TAKES);
	begun = now();
	for (int i = 0; i < count; i++)
		begin(&clients[i], i);
	run_until(begun + 600);
	if (taken < jobs)
		errx(1, "%ld of %ld jobs came in 10 minutes", taken, jobs);
	print_parts(late, jobs);
	print_parts(late_acked, jobs);
	putchar('\n');
}

/* Milliseconds: median, p99, longest; and of how many */
static void lateness_of_fired(int clients_, double seconds)
{
	double end = now() + seconds;

	late = calloc(MEASURED_MOST, sizeof(*late));
	if (!late)
		err(1, "memory");
	listening = time_of(CLOCK_REALTIME);
	for (int i = 0; i < clients_; i++)
		begin(add(TAKES_FIRED), i);
	run_until(end);
	if (!taken)
		errx(1, "no schedule had a job in %.0f seconds", seconds);
	print_parts(late, taken);
	printf(" %ld\n", taken);
}

/* As the server writes its log: over what the file has already */
static void write_and_sync(int fd, const char *data, size_t size)
{
	if (pwrite(fd, data, size, 0) != (ssize_t)size || fdatasync(fd))
		err(1, "%s", path);
}

static void lateness_of_nothing(size_t size, double seconds)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
	struct itimerspec at = { { 1, 0 }, { (time_t)time_of(CLOCK_REALTIME) + 1, 500000000 } };
	char *data = calloc(1, size);
	uint64_t expired;

	late = calloc((size_t)seconds + 1, sizeof(*late));
	if (fd < 0 || timer < 0 || !data || !late)
		err(1, "%s", path);
	memset(data, 'j', size);
	write_and_sync(fd, data, size);
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL))
		err(1, "timerfd_settime");
	for (double due = at.it_value.tv_sec + 0.5; taken < (long)seconds; due += expired) {
		if (read(timer, &expired, sizeof(expired)) != sizeof(expired))
			err(1, "timerfd");
		write_and_sync(fd, data, size);
		late[taken++] = time_of(CLOCK_REALTIME) - due;
	}
	print_parts(late, taken);
	printf(" %ld\n", taken);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		errx(2, "usage: load SOCKET put|wait|pipe|cycle|fill|late|fired|bare N SECONDS");
	path = argv[1];
	memset(body, 'j', BODY);
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (!strcmp(argv[2], "put")) {
		printf("%.0f\n", rate(PUTS, atoi(argv[3]), atof(argv[4])));
	} else if (!strcmp(argv[2], "wait")) {
		waits(atoi(argv[3]), atof(argv[4]));
	} else if (!strcmp(argv[2], "cycle")) {
		printf("%.0f\n", rate(CYCLES, atoi(argv[3]), atof(argv[4])));
	} else if (!strcmp(argv[2], "pipe")) {
		pipeline(atol(argv[3]), atof(argv[4]));
	} else if (!strcmp(argv[2], "fill")) {
		fill(atol(argv[3]), atol(argv[4]));
	} else if (!strcmp(argv[2], "late")) {
		jobs = atol(argv[3]);
		delay = atol(argv[4]);
		lateness();
	} else if (!strcmp(argv[2], "fired")) {
		lateness_of_fired(atoi(argv[3]), atof(argv[4]));
	} else if (!strcmp(argv[2], "bare")) {
		lateness_of_nothing(1024 * atol(argv[3]), atof(argv[4]));
	} else {
		errx(2, "there is no load '%s'", argv[2]);
	}
	return 0;
}
