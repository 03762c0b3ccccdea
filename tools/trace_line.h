/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A line of the kernel's trace, taken apart, and put so that one can read it.
 */
#ifndef TRACE_LINE_H
#define TRACE_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <linux/types.h>

/**
 * struct trace_line - what happened
 * @time: when, of CLOCK_MONOTONIC, in ns
 * @program: what ran then
 * @pid: its thread
 * @event: arm, modify, cancel, expire, read or limit
 * @wheel: number of the wheel
 * @id: arm, modify, cancel: the timer
 * @deadline: arm, modify: when it expires
 * @interval: arm, modify: its period, or 0
 * @user_data: arm, modify
 * @state: cancel: TWHEEL_STATE_* in which it was
 * @count: expire: timers; read: events; limit: the limit
 * @lateness: expire: how late they are, in ns
 */
struct trace_line {
	__u64 time;
	char program[32];
	int pid;
	char event[16];
	__u64 wheel;
	__u64 id;
	__u64 deadline;
	__u64 interval;
	__u64 user_data;
	__u64 state;
	__u64 count;
	__u64 lateness;
};

bool trace_line_parse(struct trace_line *line, char *text);
void trace_line_print(const struct trace_line *line);
json_t *trace_line_json(const struct trace_line *line);

#endif /* TRACE_LINE_H */
