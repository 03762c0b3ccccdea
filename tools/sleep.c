// SPDX-License-Identifier: GPL-2.0
/*
 * twheel sleep: waits as sleep(1) does, by a timer of a wheel.
 */
#include <string.h>

#include "tool.h"
#include "waiter.h"

static __u64 total;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	__u64 ns;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!parse_duration(arg, &ns))
			argp_error(state, NO_DURATION, arg);
		if (__builtin_add_overflow(total, ns, &total))
			total = ~0ULL;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "how long?");
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	NULL, parse, "TIME...",
	"Waits for TIME, or for the sum of several: 20 (seconds), " DURATION_EXAMPLES ", or inf.\v"
	"The timer is one of a wheel in the kernel, or where the module is not loaded in this "
	"program.",
	NULL, NULL, NULL
};

int cmd_sleep(int argc, char **argv)
{
	struct twheel *tw;
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	ret = waiter_open(&tw);
	if (ret)
		return STATUS_FAILED;
	ret = waiter_arm(tw, total);
	while (!ret && !waiter_expired(tw))
		waiter_wait(tw, -1);
	twheel_close(tw);
	return ret ? fail(STATUS_FAILED, "can't wait: %s", strerror(-ret)) : STATUS_OK;
}
