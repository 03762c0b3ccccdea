// SPDX-License-Identifier: GPL-2.0
/*
 * How much work was done. See work.h.
 */
#include "work.h"

#define UNCOUNTED __attribute__((no_sanitize_coverage))

static u64 blocks;

UNCOUNTED void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

/**
 * work_done() - read the count
 *
 * Return: blocks that ran since the program began.
 */
UNCOUNTED u64 work_done(void)
{
	return blocks;
}
