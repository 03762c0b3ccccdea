/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A trace of twheel's events, beside any other that somebody takes.
 */
#ifndef TRACEFS_H
#define TRACEFS_H

#include <linux/types.h>

int tracefs_open(__u64 wheel);
void tracefs_close(void);

#endif /* TRACEFS_H */
