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
 * @is_at: where the structure or field is in memory
 * @was_at: offset of the field
 */
struct golden {
	const char *name;
	enum golden_kind kind;
	unsigned long long is;
	unsigned long long was;
	const char *is_at;
	unsigned int was_at;
};

#define GOLDEN(...) do {						\
	const struct golden golden = { __VA_ARGS__ };			\
									\
	each(&golden); } while (0)

#define NUMBER(name, value) \
	GOLDEN(#name, GOLDEN_NUMBER, name, value, NULL, 0)
#define STRUCT(name, size) \
	GOLDEN(#name, GOLDEN_STRUCT, sizeof(name), size, (const char *)&(name), 0)
#define FIELD(name, at, size) \
	GOLDEN(#name, GOLDEN_FIELD, sizeof(name), size, (const char *)&(name), at)

/* All of it, one by one */
static void golden_each(void (*each)(const struct golden *))
{
	static struct twheel_info info;
	static struct twheel_setup setup;
	static struct twheel_op op;
	static struct twheel_submit submit;
	static struct twheel_uring_submit uring;
	static struct twheel_drain drain;
	static struct twheel_eventfd eventfd;
	static struct twheel_stats stats;
	static struct twheel_event event;
	static struct twheel_shared shared;
	static struct twheel_doorbell doorbell;

	NUMBER(TWHEEL_TICK_MIN_NS, 1000);
	NUMBER(TWHEEL_TICK_MAX_NS, 1000000000);
	NUMBER(TWHEEL_CLOCK_REALTIME, 0x100);
	NUMBER(TWHEEL_CLOCK_MONOTONIC, 0x101);
	NUMBER(TWHEEL_CLOCK_BOOTTIME, 0x107);
	NUMBER(TWHEEL_CLOCK_TAI, 0x10b);
	NUMBER(TWHEEL_SETUP_COUNT, 1);
	NUMBER(TWHEEL_SETUP_SHARED, 2);
	NUMBER(TWHEEL_FEATURE_COUNT, 1);
	NUMBER(TWHEEL_FEATURE_EVENTFD, 2);
	NUMBER(TWHEEL_FEATURE_DRAIN, 4);
	NUMBER(TWHEEL_FEATURE_SHARED, 8);
	NUMBER(TWHEEL_FEATURE_URING, 16);
	NUMBER(TWHEEL_OP_ARM, 1);
	NUMBER(TWHEEL_OP_MODIFY, 2);
	NUMBER(TWHEEL_OP_CANCEL, 3);
	NUMBER(TWHEEL_OP_QUERY, 4);
	NUMBER(TWHEEL_OP_SIZE_ID, 16);
	NUMBER(TWHEEL_OP_SIZE_ONCE, 32);
	NUMBER(TWHEEL_OP_SIZE_FULL, 64);
	NUMBER(TWHEEL_EVENT_SIZE_ID, 16);
	NUMBER(TWHEEL_EVENT_SIZE_FULL, 32);
	NUMBER(TWHEEL_ABS, 1);
	NUMBER(TWHEEL_STATE_NONE, 0);
	NUMBER(TWHEEL_STATE_PENDING, 1);
	NUMBER(TWHEEL_STATE_READY, 2);
	NUMBER(TWHEEL_EVENT_PERIODIC, 1);
	NUMBER(TWHEEL_EVENT_SHARED, 2);
	NUMBER(TWHEEL_LATENESS_BUCKETS, 64);
	NUMBER(TWHEEL_SHARED_MAX, 16777216);
	NUMBER(TWHEEL_WORD_ARMED, 1);
	NUMBER(TWHEEL_WORD_IDLE, 1ULL << 63);
	NUMBER(TWHEEL_WORD_FIRED, 1ULL << 62);
	NUMBER(TWHEEL_WORD_NEVER, (1ULL << 62) - 1);
	NUMBER(TWHEEL_IOC_TYPE, 0xf7);
	NUMBER(TWHEEL_IOC_INFO, 0xf700);
	NUMBER(TWHEEL_IOC_SETUP, 0xf701);
	NUMBER(TWHEEL_IOC_SUBMIT, 0xf702);
	NUMBER(TWHEEL_IOC_DRAIN, 0xf703);
	NUMBER(TWHEEL_IOC_EVENTFD, 0xf704);
	NUMBER(TWHEEL_IOC_STATS, 0xf705);
	NUMBER(TWHEEL_IOC_DOORBELL, 0xf706);

	STRUCT(info, 112);
	FIELD(info.size, 0, 4);
	FIELD(info.clock, 4, 4);
	FIELD(info.features, 8, 8);
	FIELD(info.tick_min, 16, 8);
	FIELD(info.tick_max, 24, 8);
	FIELD(info.tick, 32, 8);
	FIELD(info.wheel_limit, 40, 8);
	FIELD(info.user_limit, 48, 8);
	FIELD(info.limit, 56, 8);
	FIELD(info.pending, 64, 8);
	FIELD(info.ready, 72, 8);
	FIELD(info.next_expiry, 80, 8);
	FIELD(info.flags, 88, 4);
	FIELD(info.event_size, 92, 4);
	FIELD(info.shared, 96, 4);
	FIELD(info.__reserved, 100, 4);
	FIELD(info.shared_size, 104, 8);

	STRUCT(setup, 40);
	FIELD(setup.size, 0, 4);
	FIELD(setup.flags, 4, 4);
	FIELD(setup.clock, 8, 4);
	FIELD(setup.event_size, 12, 4);
	FIELD(setup.tick, 16, 8);
	FIELD(setup.limit, 24, 8);
	FIELD(setup.shared, 32, 4);
	FIELD(setup.__reserved, 36, 4);

	STRUCT(op, 64);
	FIELD(op.opcode, 0, 1);
	FIELD(op.flags, 1, 1);
	FIELD(op.state, 2, 2);
	FIELD(op.result, 4, 4);
	FIELD(op.id, 8, 8);
	FIELD(op.deadline, 16, 8);
	FIELD(op.user_data, 24, 8);
	FIELD(op.interval, 32, 8);
	FIELD(op.slack, 40, 8);
	FIELD(op.jitter, 48, 8);
	FIELD(op.__reserved, 56, 8);

	STRUCT(submit, 24);
	FIELD(submit.size, 0, 4);
	FIELD(submit.flags, 4, 4);
	FIELD(submit.ops, 8, 8);
	FIELD(submit.nr, 16, 4);
	FIELD(submit.op_size, 20, 4);

	STRUCT(uring, 16);
	FIELD(uring.ops, 0, 8);
	FIELD(uring.nr, 8, 4);
	FIELD(uring.op_size, 12, 4);

	STRUCT(drain, 24);
	FIELD(drain.size, 0, 4);
	FIELD(drain.flags, 4, 4);
	FIELD(drain.ops, 8, 8);
	FIELD(drain.nr, 16, 4);
	FIELD(drain.op_size, 20, 4);

	STRUCT(eventfd, 16);
	FIELD(eventfd.size, 0, 4);
	FIELD(eventfd.flags, 4, 4);
	FIELD(eventfd.fd, 8, 4);
	FIELD(eventfd.__reserved, 12, 4);

	STRUCT(stats, 600);
	FIELD(stats.size, 0, 4);
	FIELD(stats.__reserved, 4, 4);
	FIELD(stats.armed, 8, 8);
	FIELD(stats.modified, 16, 8);
	FIELD(stats.cancelled, 24, 8);
	FIELD(stats.expired, 32, 8);
	FIELD(stats.overruns, 40, 8);
	FIELD(stats.delivered, 48, 8);
	FIELD(stats.drained, 56, 8);
	FIELD(stats.refused, 64, 8);
	FIELD(stats.wakeups, 72, 8);
	FIELD(stats.max_lateness, 80, 8);
	FIELD(stats.lateness, 88, 512);

	STRUCT(event, 32);
	FIELD(event.user_data, 0, 8);
	FIELD(event.id, 8, 8);
	FIELD(event.deadline, 16, 8);
	FIELD(event.overrun, 24, 4);
	FIELD(event.flags, 28, 4);

	STRUCT(shared, 192);
	FIELD(shared.size, 0, 4);
	FIELD(shared.nr, 4, 4);
	FIELD(shared.features, 8, 8);
	FIELD(shared.ring_mask, 16, 4);
	FIELD(shared.group, 20, 4);
	FIELD(shared.words, 24, 8);
	FIELD(shared.ring, 32, 8);
	FIELD(shared.dirty, 40, 8);
	FIELD(shared.groups, 48, 8);
	FIELD(shared.__reserved, 56, 8);
	FIELD(shared.next_wake, 64, 8);
	FIELD(shared.tail, 72, 4);
	FIELD(shared.__reserved_kernel, 76, 52);
	FIELD(shared.head, 128, 4);
	FIELD(shared.__reserved_program, 132, 60);

	STRUCT(doorbell, 8);
	FIELD(doorbell.size, 0, 4);
	FIELD(doorbell.flags, 4, 4);
}

#endif
