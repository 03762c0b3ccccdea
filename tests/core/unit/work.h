/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much work was done: basic blocks that ran, as the compiler reports them
 * with -fsanitize-coverage=trace-pc.
 */
#ifndef WORK_H
#define WORK_H

#include <linux/types.h>

/* What the compiler puts into each block */
void __sanitizer_cov_trace_pc(void);

u64 work_done(void);

#endif /* WORK_H */
