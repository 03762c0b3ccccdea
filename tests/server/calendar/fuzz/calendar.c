// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as a zone, a time and an expression: that is refused with a sentence and
 * a place in it, or the times of the calendar agree with each other.
 */
#include "fuzz_input.h"
#include "consistent.h"

#define HEAD 9		/* a byte for the zone, eight for the time */

static const char * const zones[] = {
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
	"America/Sao_Paulo", "Africa/Monrovia", "Europe/Dublin", "UTC",
};

#define ZONES (sizeof(zones) / sizeof(*zones))

static void check_error(const struct calendar_error *error, size_t length)
{
	EXPECT(error->column <= length);
	EXPECT(strlen(error->text) > 10 && strlen(error->text) < sizeof(error->text) - 1);
	for (const char *at = error->text; *at; at++)
		EXPECT(*at >= ' ' && *at <= '~');
}

static void check(const struct calendar *calendar, int64_t time)
{
	const char *broken = inconsistent(calendar, time);

	if (!broken)
		broken = inconsistent(calendar, (uint64_t)time % 7258118400);
	if (broken)
		fprintf(stderr, "%s\n", broken);
	EXPECT(!broken);
}

int fuzz_one_input(const uint8_t *data, size_t size)
{
	struct calendar_error error;
	struct calendar *calendar;
	int64_t time;
	char *exact;

	if (size < HEAD)
		return 0;
	memcpy(&time, data + 1, sizeof(time));
	exact = exact_copy(data + HEAD, size - HEAD);
	calendar = calendar_parse(exact, size - HEAD, zones[*data % ZONES], &error);
	if (calendar)
		check(calendar, time);
	else
		check_error(&error, size - HEAD);
	calendar_free(calendar);
	free(exact);
	return 0;
}
