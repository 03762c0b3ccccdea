// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as a configuration file: it is refused with a sentence that has a line
 * of the file, or what comes out of it is within the limits.
 */
#include <stdarg.h>

#include "fuzz_input.h"
#include "../../../../twheeld/jobs/protocol.h"
#include "../../../../twheeld/jobs/settings.h"
#include "../../../../twheeld/base/util.h"

#define SECOND 1000000000LL

static const char *text;
static unsigned int complaints;

static unsigned int lines(void)
{
	unsigned int count = 1;

	for (const char *at = text; *at; at++)
		count += *at == '\n';
	return count;
}

void complain(const char *format, ...)
{
	unsigned int line = 0;
	char said[3000];
	va_list args;

	va_start(args, format);
	EXPECT(vsnprintf(said, sizeof(said), format, args) > 10);
	va_end(args);
	EXPECT(!strncmp(said, "NAME:", 5));
	EXPECT(strstr(text, "@include") ||
	       (sscanf(said, "NAME:%u: ", &line) == 1 && line >= 1 && line <= lines()));
	complaints++;
}

void *must(void *memory)
{
	EXPECT(memory);
	return memory;
}

void *zalloc(size_t size)
{
	return must(calloc(1, size));
}

static void check_tube(const struct tube_settings *tube)
{
	EXPECT(*tube->pattern && strlen(tube->pattern) <= TUBE_NAME_MAX);
	EXPECT(tube->tries >= 0 && tube->tries <= INT32_MAX);
	EXPECT(tube->unit >= SECOND / 1000 && tube->unit <= SECOND);
	EXPECT(tube->backoff >= 0 && tube->backoff <= tube->backoff_most);
	if (tube->dead_letter)
		EXPECT(tube_name_ok(tube->dead_letter, strlen(tube->dead_letter)));
}

static void check(const struct settings *settings)
{
	for (size_t i = 0; i < settings->listens; i++)
		EXPECT(settings->listen[i]);
	EXPECT(settings->job_size >= -1 && settings->job_size <= JOB_SIZE_MOST);
	EXPECT(settings->connections == -1 ||
	       (settings->connections >= 1 && settings->connections <= INT32_MAX));
	EXPECT(settings->sync >= -1 && settings->sync <= SYNC_NEVER);
	EXPECT((settings->sync == SYNC_SOMETIMES) == (settings->sync_ns > 0));
	for (size_t i = 0; i < settings->tube_count; i++)
		check_tube(&settings->tubes[i]);
}

int fuzz_one_input(const uint8_t *data, size_t size)
{
	struct settings *settings;
	char *copy;

	/* A file with a byte of 0 is refused before. */
	if (memchr(data, 0, size))
		return 0;
	copy = must(malloc(size + 1));
	memcpy(copy, data, size);
	copy[size] = 0;
	text = copy;
	complaints = 0;
	settings = settings_parse(copy, "NAME");
	EXPECT(!settings == !!complaints);
	if (settings) {
		check(settings);
		settings_use(settings);
		EXPECT(settings_tube("default")->unit);
	}
	settings_use(NULL);
	free(copy);
	return 0;
}
