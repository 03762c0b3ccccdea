// SPDX-License-Identifier: GPL-2.0
/*
 * The files of CALENDAR=: times that schedules leave out.
 */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "calendar.h"
#include "excluded.h"
#include "exclusion.h"
#include "util.h"

/* A schedule that fires only within what is left out is looked at so often, and no more. */
#define TRIES 20000

/* Those of this reading */
static struct excluded *all;

static bool digest_file(const char *path, int64_t *digest)
{
	static uint8_t piece[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct sha256_ctx ctx;
	ssize_t got;

	if (fd < 0)
		return false;
	sha256_init(&ctx);
	while ((got = read(fd, piece, sizeof(piece))) > 0)
		sha256_update(&ctx, got, piece);
	sha256_digest(&ctx, sizeof(*digest), (uint8_t *)digest);
	close(fd);
	return got == 0;
}

static struct excluded *find(const char *path, const char *zone)
{
	struct excluded *one;

	DL_FOREACH(all, one)
		if (!strcmp(one->path, path) && !strcmp(one->zone, zone))
			return one;
	return NULL;
}

static struct excluded *read_one(const char *path, const char *zone, char *why, size_t room)
{
	struct exclusion_error error = { .line = 0 };
	struct exclusion *exclusion;
	struct excluded *one;
	int64_t digest;

	if (!digest_file(path, &digest)) {
		snprintf(why, room, "CALENDAR=%s: %s", path, strerror(errno));
		return NULL;
	}
	exclusion = exclusion_read(path, *zone ? zone : NULL, &error);
	if (!exclusion) {
		snprintf(why, room, "CALENDAR=%s:%zu: %s", path, error.line, error.text);
		return NULL;
	}
	one = zalloc(sizeof(*one));
	one->path = must(strdup(path));
	one->zone = must(strdup(zone));
	one->exclusion = exclusion;
	one->digest = digest;
	one->users = 1;
	DL_APPEND(all, one);
	return one;
}

/**
 * excluded_get - what a file leaves out; it is there until excluded_put()
 * @path: the file
 * @zone: of its days
 * @why: out: why it gives NULL
 * @room: bytes of that
 */
struct excluded *excluded_get(const char *path, const char *zone, char *why, size_t room)
{
	struct excluded *one = find(path, zone);

	if (!one)
		one = read_one(path, zone, why, room);
	if (one)
		one->users++;
	return one;
}

void excluded_put(struct excluded *one)
{
	if (!one || --one->users)
		return;
	exclusion_free(one->exclusion);
	free(one->path);
	free(one->zone);
	free(one);
}

/** excluded_forget - read all files anew when they are asked for next */
void excluded_forget(void)
{
	struct excluded *one, *next;

	DL_FOREACH_SAFE(all, one, next) {
		DL_DELETE(all, one);
		excluded_put(one);
	}
}

/** excluded_next - the first time after one that is not left out; @excluded may be NULL */
int64_t excluded_next(const struct excluded *excluded, const struct calendar *calendar,
		      int64_t after)
{
	int64_t time = calendar_next(calendar, after), until;

	for (int i = 0; excluded && i < TRIES && time != CALENDAR_NEVER; i++) {
		if (!exclusion_covers(excluded->exclusion, time, &until))
			return time;
		time = calendar_next(calendar, until - 1);
	}
	return excluded ? CALENDAR_NEVER : time;
}

/** excluded_prev - the last time before one that is not left out */
int64_t excluded_prev(const struct excluded *excluded, const struct calendar *calendar,
		      int64_t before)
{
	int64_t time = calendar_prev(calendar, before), from;

	for (int i = 0; excluded && i < TRIES && time != CALENDAR_NEVER; i++) {
		if (!exclusion_since(excluded->exclusion, time, &from))
			return time;
		time = calendar_prev(calendar, from);
	}
	return excluded ? CALENDAR_NEVER : time;
}
