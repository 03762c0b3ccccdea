// SPDX-License-Identifier: GPL-2.0
/*
 * A check of tests/core/unit that fails ends the process by a signal, by which the
 * fuzzer knows that it has found something.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host.h"
#include "input.h"

static void (*print_trace)(void);

static void print_and_abort(void)
{
	if (print_trace)
		print_trace();
	fflush(stdout);
	abort();
}

/**
 * fuzz_abort_on_failure() - let the fuzzer know of checks that fail
 *
 * After what sets host_print_trace, if anything does.
 */
void fuzz_abort_on_failure(void)
{
	if (host_print_trace != print_and_abort)
		print_trace = host_print_trace;
	host_print_trace = print_and_abort;
}
