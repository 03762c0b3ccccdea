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

static void golden_number(void (*each)(const struct golden *),
			  const char *name, unsigned long long is,
			  unsigned long long was)
{
	const struct golden g = { name, GOLDEN_NUMBER, is, was, NULL, 0 };

	each(&g);
}

static void golden_struct(void (*each)(const struct golden *),
			  const char *name, const void *at, unsigned int is,
			  unsigned int was)
{
	const struct golden g = { name, GOLDEN_STRUCT, is, was, at, 0 };

	each(&g);
}

static void golden_field(void (*each)(const struct golden *), const char *name,
			 const void *at, unsigned int is, unsigned int was_at,
			 unsigned int was)
{
	const struct golden g = { name, GOLDEN_FIELD, is, was, at, was_at };

	each(&g);
}

#define NUMBER(name, value) golden_number(each, #name, name, value)
#define STRUCT(name, size) golden_struct(each, #name, &(name), sizeof(name), size)
#define FIELD(name, at, size) \
	golden_field(each, #name, &(name), sizeof(name), at, size)

/* All of it, one by one */
static void golden_each(void (*each)(const struct golden *))
{
	static struct twheel_info info;
	static struct twheel_setup setup;
	static struct twheel_op op;
	static struct twheel_submit submit;
	static struct twheel_drain drain;
	static struct twheel_eventfd eventfd;
	static struct twheel_stats stats;
	static struct twheel_event event;
	static struct twheel_shared shared;
	static struct twheel_doorbell doorbell;

	NUMBER(TWHEEL_VERSION, 1);
	NUMBER(TWHEEL_TICK_MIN_NS, 1000);
	NUMBER(TWHEEL_TICK_MAX_NS, 1000000000);
	NUMBER(TWHEEL_CLOCK_REALTIME, 0);
	NUMBER(TWHEEL_CLOCK_MONOTONIC, 1);
	NUMBER(TWHEEL_CLOCK_BOOTTIME, 7);
	NUMBER(TWHEEL_CLOCK_TAI, 11);
	NUMBER(TWHEEL_SETUP_COUNT, 1);
	NUMBER(TWHEEL_SETUP_SHARED, 2);
	NUMBER(TWHEEL_FEATURE_COUNT, 1);
	NUMBER(TWHEEL_FEATURE_EVENTFD, 2);
	NUMBER(TWHEEL_FEATURE_DRAIN, 4);
	NUMBER(TWHEEL_FEATURE_SHARED, 8);
	NUMBER(TWHEEL_OP_ARM, 1);
	NUMBER(TWHEEL_OP_MODIFY, 2);
	NUMBER(TWHEEL_OP_CANCEL, 3);
	NUMBER(TWHEEL_OP_QUERY, 4);
	NUMBER(TWHEEL_ABS, 1);
	NUMBER(TWHEEL_STATE_NONE, 0);
	NUMBER(TWHEEL_STATE_PENDING, 1);
	NUMBER(TWHEEL_STATE_READY, 2);
	NUMBER(TWHEEL_EVENT_PERIODIC, 1);
	NUMBER(TWHEEL_EVENT_SHARED, 2);
	NUMBER(TWHEEL_LATENESS_BUCKETS, 64);
	NUMBER(TWHEEL_SHARED_VERSION, 1);
	NUMBER(TWHEEL_SHARED_MAX, 16777216);
	NUMBER(TWHEEL_WORD_ARMED, 1);
	NUMBER(TWHEEL_GROUP, 256);
	NUMBER(TWHEEL_WORD_IDLE, 1ULL << 63);
	NUMBER(TWHEEL_WORD_FIRED, 1ULL << 62);
	NUMBER(TWHEEL_WORD_NEVER, (1ULL << 62) - 1);
	NUMBER(TWHEEL_IOC_TYPE, 0xf7);
	NUMBER(TWHEEL_IOC_INFO, 0xf700);
	NUMBER(TWHEEL_IOC_SETUP, 0xf701);
	NUMBER(TWHEEL_IOC_SUBMIT, 0xf702);
	NUMBER(TWHEEL_IOC_ARM, 0xf703);
	NUMBER(TWHEEL_IOC_MODIFY, 0xf704);
	NUMBER(TWHEEL_IOC_CANCEL, 0xf705);
	NUMBER(TWHEEL_IOC_QUERY, 0xf706);
	NUMBER(TWHEEL_IOC_DRAIN, 0xf707);
	NUMBER(TWHEEL_IOC_EVENTFD, 0xf708);
	NUMBER(TWHEEL_IOC_STATS, 0xf709);
	NUMBER(TWHEEL_IOC_DOORBELL, 0xf70a);

	STRUCT(info, 120);
	FIELD(info.size, 0, 4);
	FIELD(info.version, 4, 4);
	FIELD(info.features, 8, 8);
	FIELD(info.hz, 16, 4);
	FIELD(info.clock, 20, 4);
	FIELD(info.flags, 24, 4);
	FIELD(info.__reserved, 28, 4);
	FIELD(info.tick_min, 32, 8);
	FIELD(info.tick_max, 40, 8);
	FIELD(info.tick, 48, 8);
	FIELD(info.wheel_limit, 56, 8);
	FIELD(info.user_limit, 64, 8);
	FIELD(info.limit, 72, 8);
	FIELD(info.pending, 80, 8);
	FIELD(info.ready, 88, 8);
	FIELD(info.next_expiry, 96, 8);
	FIELD(info.shared, 104, 4);
	FIELD(info.shared_version, 108, 4);
	FIELD(info.shared_size, 112, 8);

	STRUCT(setup, 32);
	FIELD(setup.size, 0, 4);
	FIELD(setup.flags, 4, 4);
	FIELD(setup.clock, 8, 4);
	FIELD(setup.shared, 12, 4);
	FIELD(setup.tick, 16, 8);
	FIELD(setup.limit, 24, 8);

	STRUCT(op, 64);
	FIELD(op.size, 0, 4);
	FIELD(op.opcode, 4, 2);
	FIELD(op.flags, 6, 2);
	FIELD(op.result, 8, 4);
	FIELD(op.state, 12, 4);
	FIELD(op.id, 16, 8);
	FIELD(op.deadline, 24, 8);
	FIELD(op.interval, 32, 8);
	FIELD(op.slack, 40, 8);
	FIELD(op.jitter, 48, 8);
	FIELD(op.user_data, 56, 8);

	STRUCT(submit, 24);
	FIELD(submit.size, 0, 4);
	FIELD(submit.flags, 4, 4);
	FIELD(submit.ops, 8, 8);
	FIELD(submit.nr, 16, 4);
	FIELD(submit.op_size, 20, 4);

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

	STRUCT(stats, 632);
	FIELD(stats.size, 0, 4);
	FIELD(stats.__reserved, 4, 4);
	FIELD(stats.armed, 8, 8);
	FIELD(stats.modified, 16, 8);
	FIELD(stats.cancelled, 24, 8);
	FIELD(stats.expired, 32, 8);
	FIELD(stats.overruns, 40, 8);
	FIELD(stats.delivered, 48, 8);
	FIELD(stats.drained, 56, 8);
	FIELD(stats.limited, 64, 8);
	FIELD(stats.wakeups, 72, 8);
	FIELD(stats.deferred, 80, 8);
	FIELD(stats.brought_down, 88, 8);
	FIELD(stats.longest_run, 96, 8);
	FIELD(stats.largest_run, 104, 8);
	FIELD(stats.max_lateness, 112, 8);
	FIELD(stats.lateness, 120, 512);

	STRUCT(event, 48);
	FIELD(event.id, 0, 8);
	FIELD(event.user_data, 8, 8);
	FIELD(event.deadline, 16, 8);
	FIELD(event.expired, 24, 8);
	FIELD(event.overrun, 32, 8);
	FIELD(event.flags, 40, 4);
	FIELD(event.__reserved, 44, 4);

	STRUCT(shared, 192);
	FIELD(shared.version, 0, 4);
	FIELD(shared.nr, 4, 4);
	FIELD(shared.ring_mask, 8, 4);
	FIELD(shared.__reserved0, 12, 4);
	FIELD(shared.words, 16, 8);
	FIELD(shared.ring, 24, 8);
	FIELD(shared.dirty, 32, 8);
	FIELD(shared.groups, 40, 8);
	FIELD(shared.__reserved, 48, 16);
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
