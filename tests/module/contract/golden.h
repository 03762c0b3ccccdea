/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface's numbers, sizes and offsets as they were published. Nothing
 * here may change; a program built with an old header must go on working.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stddef.h>

#include <linux/twheel.h>

enum golden_kind { GOLDEN_NUMBER, GOLDEN_STRUCT, GOLDEN_FIELD };

/**
 * struct golden - something published, as it is and as it was
 * @name: its name
 * @kind: what it is; the fields of a structure follow it, in order
 * @is: the number, or the size
 * @was: the same
 * @is_at: offset of the field
 * @was_at: the same
 */
struct golden {
	const char *name;
	enum golden_kind kind;
	unsigned long long is;
	unsigned long long was;
	unsigned int is_at;
	unsigned int was_at;
};

#define NUMBER(name, value) { #name, GOLDEN_NUMBER, TWHEEL_##name, value, 0, 0 }
#define STRUCT(type, size) { #type, GOLDEN_STRUCT, sizeof(struct twheel_##type), size, 0, 0 }
#define FIELD(type, name, at, size) { #type "." #name, GOLDEN_FIELD, \
	sizeof(((struct twheel_##type *)0)->name), size, offsetof(struct twheel_##type, name), at }

static const struct golden golden[] = {
	NUMBER(TICK_MIN_NS, 1000), NUMBER(TICK_MAX_NS, 1000000000), NUMBER(CLOCK_REALTIME, 0x100),
	NUMBER(CLOCK_MONOTONIC, 0x101), NUMBER(CLOCK_BOOTTIME, 0x107), NUMBER(CLOCK_TAI, 0x10b),
	NUMBER(SETUP_COUNT, 1), NUMBER(SETUP_SHARED, 2), NUMBER(FEATURE_COUNT, 1),
	NUMBER(FEATURE_EVENTFD, 2), NUMBER(FEATURE_DRAIN, 4), NUMBER(FEATURE_SHARED, 8),
	NUMBER(FEATURE_URING, 16), NUMBER(OP_ARM, 1), NUMBER(OP_MODIFY, 2), NUMBER(OP_CANCEL, 3),
	NUMBER(OP_QUERY, 4), NUMBER(OP_SIZE_ID, 16), NUMBER(OP_SIZE_ONCE, 32),
	NUMBER(OP_SIZE_FULL, 64), NUMBER(EVENT_SIZE_ID, 16), NUMBER(EVENT_SIZE_FULL, 32),
	NUMBER(ABS, 1), NUMBER(STATE_NONE, 0), NUMBER(STATE_PENDING, 1), NUMBER(STATE_READY, 2),
	NUMBER(EVENT_PERIODIC, 1), NUMBER(EVENT_SHARED, 2), NUMBER(LATENESS_BUCKETS, 64),
	NUMBER(SHARED_MAX, 16777216), NUMBER(WORD_ARMED, 1), NUMBER(WORD_IDLE, 1ULL << 63),
	NUMBER(WORD_FIRED, 1ULL << 62), NUMBER(WORD_NEVER, (1ULL << 62) - 1),
	NUMBER(IOC_TYPE, 0xf7), NUMBER(IOC_INFO, 0xf700), NUMBER(IOC_SETUP, 0xf701),
	NUMBER(IOC_SUBMIT, 0xf702), NUMBER(IOC_DRAIN, 0xf703), NUMBER(IOC_EVENTFD, 0xf704),
	NUMBER(IOC_STATS, 0xf705), NUMBER(IOC_DOORBELL, 0xf706),

	STRUCT(info, 120),
	FIELD(info, size, 0, 4), FIELD(info, clock, 4, 4), FIELD(info, features, 8, 8),
	FIELD(info, tick_min, 16, 8), FIELD(info, tick_max, 24, 8), FIELD(info, tick, 32, 8),
	FIELD(info, wheel_limit, 40, 8), FIELD(info, user_limit, 48, 8), FIELD(info, limit, 56, 8),
	FIELD(info, pending, 64, 8), FIELD(info, ready, 72, 8), FIELD(info, next_expiry, 80, 8),
	FIELD(info, flags, 88, 4), FIELD(info, event_size, 92, 4), FIELD(info, shared, 96, 4),
	FIELD(info, __reserved, 100, 4), FIELD(info, shared_size, 104, 8), FIELD(info, now, 112, 8),

	STRUCT(setup, 40),
	FIELD(setup, size, 0, 4), FIELD(setup, flags, 4, 4), FIELD(setup, clock, 8, 4),
	FIELD(setup, event_size, 12, 4), FIELD(setup, tick, 16, 8), FIELD(setup, limit, 24, 8),
	FIELD(setup, shared, 32, 4), FIELD(setup, __reserved, 36, 4),

	STRUCT(op, 64),
	FIELD(op, opcode, 0, 1), FIELD(op, flags, 1, 1), FIELD(op, state, 2, 2),
	FIELD(op, result, 4, 4), FIELD(op, id, 8, 8), FIELD(op, deadline, 16, 8),
	FIELD(op, user_data, 24, 8), FIELD(op, interval, 32, 8), FIELD(op, slack, 40, 8),
	FIELD(op, jitter, 48, 8), FIELD(op, __reserved, 56, 8),

	STRUCT(submit, 24),
	FIELD(submit, size, 0, 4), FIELD(submit, flags, 4, 4), FIELD(submit, ops, 8, 8),
	FIELD(submit, nr, 16, 4), FIELD(submit, op_size, 20, 4),

	STRUCT(uring_submit, 16),
	FIELD(uring_submit, ops, 0, 8), FIELD(uring_submit, nr, 8, 4),
	FIELD(uring_submit, op_size, 12, 4),

	STRUCT(drain, 24),
	FIELD(drain, size, 0, 4), FIELD(drain, flags, 4, 4), FIELD(drain, ops, 8, 8),
	FIELD(drain, nr, 16, 4), FIELD(drain, op_size, 20, 4),

	STRUCT(eventfd, 16),
	FIELD(eventfd, size, 0, 4), FIELD(eventfd, flags, 4, 4), FIELD(eventfd, fd, 8, 4),
	FIELD(eventfd, __reserved, 12, 4),

	STRUCT(stats, 600),
	FIELD(stats, size, 0, 4), FIELD(stats, __reserved, 4, 4), FIELD(stats, armed, 8, 8),
	FIELD(stats, modified, 16, 8), FIELD(stats, cancelled, 24, 8),
	FIELD(stats, expired, 32, 8), FIELD(stats, overruns, 40, 8),
	FIELD(stats, delivered, 48, 8), FIELD(stats, drained, 56, 8), FIELD(stats, refused, 64, 8),
	FIELD(stats, wakeups, 72, 8), FIELD(stats, max_lateness, 80, 8),
	FIELD(stats, lateness, 88, 512),

	STRUCT(event, 32),
	FIELD(event, user_data, 0, 8), FIELD(event, id, 8, 8), FIELD(event, deadline, 16, 8),
	FIELD(event, overrun, 24, 4), FIELD(event, flags, 28, 4),

	STRUCT(shared, 192),
	FIELD(shared, size, 0, 4), FIELD(shared, nr, 4, 4), FIELD(shared, features, 8, 8),
	FIELD(shared, ring_mask, 16, 4), FIELD(shared, group, 20, 4), FIELD(shared, words, 24, 8),
	FIELD(shared, ring, 32, 8), FIELD(shared, dirty, 40, 8), FIELD(shared, groups, 48, 8),
	FIELD(shared, __reserved, 56, 8), FIELD(shared, next_wake, 64, 8),
	FIELD(shared, tail, 72, 4), FIELD(shared, __reserved_kernel, 76, 52),
	FIELD(shared, head, 128, 4), FIELD(shared, __reserved_program, 132, 60),

	STRUCT(doorbell, 8),
	FIELD(doorbell, size, 0, 4), FIELD(doorbell, flags, 4, 4),
};

#define GOLDEN_LENGTH (sizeof(golden) / sizeof(golden[0]))

#endif
