// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as a tab: each line that is wrong is named by a place in the text, and
 * what comes out of the others is within the limits.
 */
#include "fuzz_input.h"
#include "consistent.h"
#include "../../../../twheeld/jobs/protocol.h"
#include "../../../../twheeld/when/tab.h"
#include "../../../../twheeld/base/util.h"

#define BODY_MOST 500

static const char *text;
static size_t length;
static unsigned int complaints, definitions, last_line;

void *must(void *memory)
{
	EXPECT(memory);
	return memory;
}

void *zalloc(size_t size)
{
	return must(calloc(1, size));
}

/* How long a line is, from 1 on; there must be such a line. */
static size_t length_of(unsigned int line)
{
	const char *at = text, *end = text + length, *stop;

	for (;; at = stop + 1) {
		EXPECT(at <= end);
		stop = memchr(at, '\n', end - at);
		if (!--line)
			return (stop ? stop : end) - at;
		EXPECT(stop);
	}
}

static void wrong(struct tab_reader *reader, unsigned int line, size_t column, const char *why)
{
	(void)reader;
	/* And that nothing after it is taken, which is said at the end */
	EXPECT(++complaints <= TAB_COMPLAINTS + 1);
	EXPECT(line >= last_line && column >= 1 && column <= length_of(line) + 1);
	EXPECT(strlen(why) > 10);
	last_line = line;
}

static void check_times(const struct definition *definition)
{
	EXPECT(!inconsistent(definition->calendar, 1800000000));
	EXPECT(!inconsistent(definition->calendar, 0));
}

static void check_body(const struct definition *definition)
{
	size_t size;
	char *body = definition_body(definition, 1800000000, definition->shards - 1, &size);

	EXPECT(body && size <= BODY_MOST);
	EXPECT(strchr(definition->body, '%') || !strcmp(body, definition->body));
	free(body);
}

static void each(struct tab_reader *reader, struct definition *definition)
{
	(void)reader;
	definitions++;
	EXPECT(definition->line >= last_line && length_of(definition->line) > 0);
	last_line = definition->line;
	EXPECT(*definition->name && strlen(definition->name) <= SCHEDULE_NAME_MAX);
	EXPECT(tube_name_ok(definition->tube, strlen(definition->tube)));
	EXPECT(definition->shards >= 1 && definition->shards <= SHARDS_MOST);
	EXPECT(definition->ttr >= 1 && definition->late >= 1);
	EXPECT(definition->jitter >= 0 && definition->jitter <= 86400);
	EXPECT(definition->size && definition->size == strlen(definition->body));
	if (definition->misfire == MISFIRE_ALL)
		EXPECT(definition->most >= 1 && definition->most <= MISFIRES_MOST &&
		       definition->most * definition->shards <= FIRING_MOST);
	check_times(definition);
	check_body(definition);
	definition_free(definition);
}

/* A zone is read for the first calendar that is in it, which takes long. */
static void hold_zones(void)
{
	static struct calendar *held[2];
	struct calendar_error error;

	if (held[0])
		return;
	held[0] = calendar_parse("@daily", 6, "Europe/Berlin", &error);
	held[1] = calendar_parse("@daily", 6, "UTC", &error);
	EXPECT(held[0] && held[1]);
}

int fuzz_one_input(const uint8_t *data, size_t size)
{
	const struct tab_host host = {
		.zone = "UTC", .node = "node", .site = "site", .body_most = BODY_MOST,
	};
	struct tab_reader reader = { .each = each, .wrong = wrong };
	struct tab *tab;
	char *exact;

	hold_zones();
	exact = exact_copy(data, size);
	text = exact;
	length = size;
	complaints = 0;
	last_line = 1;
	tab = tab_begin(exact, size, "file", &host, &reader);
	while (tab_line(tab))
		;
	tab_end(tab);
	free(exact);
	return 0;
}
