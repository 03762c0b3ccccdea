// SPDX-License-Identifier: GPL-2.0
/*
 * jsnell/ratas, a wheel for programs: objects that the program holds, and no ids.
 */
#include <timer-wheel.h>

#include <new>

#include "edition.h"

static struct edition ratas;
static size_t fired;

static struct bench_event bench_events[EVENTS];

namespace {

class timer : public TimerEventInterface {
public:
	uint64_t id;
	uint64_t user_data;

	void execute() override
	{
		struct bench_event *event = &bench_events[fired++ % EVENTS];

		event->user_data = user_data;
		event->id = id;
		event->deadline = scheduled_at() * TICK_NS;
		event->rest = 0;
	}
};

} /* namespace */

static timer *timers;
static TimerWheel *wheel;
/* Timers that are not armed, to be taken from the end */
static uint32_t *unused;
static size_t nr_unused;

static void open_wheel(size_t nr)
{
	size_t i;

	timers = (timer *)ratas.alloc(nr * sizeof(timer), 64);
	unused = (uint32_t *)ratas.alloc(nr * sizeof(*unused), 64);
	wheel = new (ratas.alloc(sizeof(TimerWheel), 64)) TimerWheel();
	for (i = 0; i < nr; i++) {
		new (&timers[i]) timer();
		timers[i].id = i;
		unused[i] = nr - 1 - i;
	}
	nr_unused = nr;
}

static void schedule(timer *t, const struct bench_op *op)
{
	t->user_data = op->user_data;
	wheel->schedule(t, (op->deadline + TICK_NS - 1) / TICK_NS - wheel->now());
}

static void arm(struct bench_op *ops, unsigned int nr)
{
	struct bench_op *op;

	for (op = ops; op < ops + nr; op++) {
		op->id = unused[--nr_unused];
		schedule(&timers[op->id], op);
	}
}

static void modify(struct bench_op *ops, unsigned int nr)
{
	struct bench_op *op;

	for (op = ops; op < ops + nr; op++)
		schedule(&timers[op->id], op);
}

static void cancel(struct bench_op *ops, unsigned int nr)
{
	struct bench_op *op;

	for (op = ops; op < ops + nr; op++) {
		timers[op->id].cancel();
		unused[nr_unused++] = op->id;
	}
}

static size_t expire(int64_t now)
{
	size_t before = fired;

	wheel->advance(now / TICK_NS - wheel->now());
	return fired - before;
}

struct edition *bench_edition(void)
{
	ratas.name = "ratas";
	ratas.open = open_wheel;
	ratas.arm = arm;
	ratas.modify = modify;
	ratas.cancel = cancel;
	ratas.expire = expire;
	return &ratas;
}
