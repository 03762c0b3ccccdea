// SPDX-License-Identifier: GPL-2.0
/*
 * twheel list: which wheels are there, and who has them open? Descriptors of the same
 * wheel, in one process or in several, stand together.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "list.h"
#include "module.h"
#include "tool.h"
#include "wheels.h"

static bool as_json;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	as_json = true;
	return 0;
}

static const struct argp_option options[] = { OPTION_JSON, {} };

static const struct argp argp = {
	options, parse, NULL,
	"Lists the wheels that processes have open in the kernel: your own, or for root all.\v"
	"A line for each descriptor; those of one wheel have the same number. LATE is the "
	"largest lateness until now. Wheels that the library has in a program itself are not "
	"seen.",
	NULL, NULL, NULL
};

/* Numbers of a wheel, which its descriptors have in common. Also for stats. */
json_t *wheel_json(const struct wheel *wheel)
{
	return need(json_pack("{s:I, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:I, "
			      "s:I, s:I}",
			      "wheel", (json_int_t)wheel->nr, "uid", (int)wheel->uid,
			      "clock", wheel->clock, "tick", (json_int_t)wheel->tick,
			      "pending", (json_int_t)wheel->pending,
			      "ready", (json_int_t)wheel->ready,
			      "limit", (json_int_t)wheel->limit,
			      "next_expiry", (json_int_t)wheel->next_expiry,
			      "shared", (int)wheel->shared,
			      "armed", (json_int_t)wheel->armed,
			      "expired", (json_int_t)wheel->expired,
			      "overruns", (json_int_t)wheel->overruns,
			      "refused", (json_int_t)wheel->refused,
			      "max_lateness", (json_int_t)wheel->max_lateness));
}

/* All descriptors of the wheel whose first is @i */
json_t *wheel_json_holders(const struct wheels *wheels, size_t i)
{
	json_t *holders = need(json_array());
	const struct wheel *wheel;

	do {
		wheel = &wheels->at[i];
		json_array_append_new(holders,
				      json_pack("{s:i, s:i, s:s}", "pid", (int)wheel->pid,
						"fd", wheel->fd, "program", wheel->program));
		i++;
	} while (i < wheels->nr && !wheel_first(wheels, i));
	return holders;
}

static int print_as_json(const struct wheels *wheels)
{
	json_t *array = need(json_array());
	size_t i;

	for (i = 0; i < wheels->nr; i++) {
		json_t *wheel;

		if (!wheel_first(wheels, i))
			continue;
		wheel = wheel_json(&wheels->at[i]);
		json_object_set_new(wheel, "holders", wheel_json_holders(wheels, i));
		json_array_append_new(array, wheel);
	}
	return print_json(array);
}

static void print_wheel(const struct wheel *wheel)
{
	printf("%6llu %7d %4d %-15s %-8s %-9s %8s %11s %9s %11s %9s\n", wheel->nr,
	       wheel->pid, wheel->fd, wheel->program, text_user(wheel->uid).s, wheel->clock,
	       text_ns(wheel->tick).s, text_count(wheel->pending).s,
	       text_count(wheel->ready).s, text_count(wheel->expired).s,
	       text_ns(wheel->max_lateness).s);
}

static void print_again(const struct wheel *wheel)
{
	printf("%6llu %7d %4d %-15s the same wheel\n", wheel->nr, wheel->pid, wheel->fd,
	       wheel->program);
}

static int print(const struct wheels *wheels)
{
	size_t i;

	printf("%6s %7s %4s %-15s %-8s %-9s %8s %11s %9s %11s %9s\n", "WHEEL", "PID", "FD",
	       "PROGRAM", "USER", "CLOCK", "TICK", "PENDING", "READY", "EXPIRED", "LATE");
	for (i = 0; i < wheels->nr; i++)
		if (wheel_first(wheels, i))
			print_wheel(&wheels->at[i]);
		else
			print_again(&wheels->at[i]);
	return finish_output(STATUS_OK);
}

int cmd_list(int argc, char **argv)
{
	struct wheels wheels;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	status = module_missing();
	if (status)
		return status;
	status = wheels_find(&wheels, 0, -1);
	if (status)
		return fail(STATUS_FAILED, "/proc: %s", strerror(-status));
	status = as_json ? print_as_json(&wheels) : print(&wheels);
	if (!wheels.nr && !as_json && wheels.hidden)
		say("you have no wheels open; those of others only root can see: sudo twheel "
		    "list");
	wheels_free(&wheels);
	return status;
}
