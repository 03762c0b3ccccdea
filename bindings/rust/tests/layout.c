// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sizes, offsets and numbers of the headers, for tests/layout.rs: all that src/sys.rs has. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <twheel.h>
#include <twheel_pool.h>
#include <twheel_shared.h>

#define NUMBER(n) printf("%s %llu\n", #n, (unsigned long long)(n))
#define SIZE(s) printf("sizeof %s %zu\n", #s, sizeof(struct s))
#define FIELD(s, f) printf("%s.%s %zu\n", #s, #f, offsetof(struct s, f))

static void timers(void)
{
	SIZE(twheel_setup);
	FIELD(twheel_setup, size);
	FIELD(twheel_setup, flags);
	FIELD(twheel_setup, clock);
	FIELD(twheel_setup, event_size);
	FIELD(twheel_setup, tick);
	FIELD(twheel_setup, limit);
	FIELD(twheel_setup, shared);
	FIELD(twheel_setup, __reserved);
	SIZE(twheel_op);
	FIELD(twheel_op, opcode);
	FIELD(twheel_op, flags);
	FIELD(twheel_op, state);
	FIELD(twheel_op, result);
	FIELD(twheel_op, id);
	FIELD(twheel_op, deadline);
	FIELD(twheel_op, user_data);
	FIELD(twheel_op, interval);
	FIELD(twheel_op, slack);
	FIELD(twheel_op, jitter);
	FIELD(twheel_op, __reserved);
	SIZE(twheel_event);
	FIELD(twheel_event, user_data);
	FIELD(twheel_event, id);
	FIELD(twheel_event, deadline);
	FIELD(twheel_event, overrun);
	FIELD(twheel_event, flags);
}

static void shared_timers(void)
{
	SIZE(twheel_shared);
	FIELD(twheel_shared, next_wake);
	FIELD(twheel_shared, tail);
	FIELD(twheel_shared, head);
	SIZE(twheel_area);
	FIELD(twheel_area, shared);
	FIELD(twheel_area, words);
	FIELD(twheel_area, ring);
	FIELD(twheel_area, dirty);
	FIELD(twheel_area, groups);
	FIELD(twheel_area, size);
	FIELD(twheel_area, ring_mask);
	FIELD(twheel_area, nr);
	FIELD(twheel_area, group_shift);
	FIELD(twheel_area, fd);
}

static void pools(void)
{
	SIZE(twheel_pool_options);
	FIELD(twheel_pool_options, size);
	FIELD(twheel_pool_options, flags);
	FIELD(twheel_pool_options, threads);
	FIELD(twheel_pool_options, capacity);
	FIELD(twheel_pool_options, clock);
	FIELD(twheel_pool_options, __reserved);
	FIELD(twheel_pool_options, tick);
	FIELD(twheel_pool_options, spawn);
	FIELD(twheel_pool_options, arg);
	SIZE(twheel_run);
	FIELD(twheel_run, deadline);
	FIELD(twheel_run, missed);
	SIZE(twheel_task);
	FIELD(twheel_task, run);
	FIELD(twheel_task, next);
	FIELD(twheel_task, end);
	FIELD(twheel_task, arg);
	FIELD(twheel_task, pool);
	FIELD(twheel_task, link);
	FIELD(twheel_task, id);
	FIELD(twheel_task, deadline);
	FIELD(twheel_task, period);
	FIELD(twheel_task, state);
	FIELD(twheel_task, flags);
	FIELD(twheel_task, number);
	FIELD(twheel_task, order);
}

static void numbers(void)
{
	NUMBER(TWHEEL_CLOCK_REALTIME);
	NUMBER(TWHEEL_CLOCK_MONOTONIC);
	NUMBER(TWHEEL_CLOCK_BOOTTIME);
	NUMBER(TWHEEL_CLOCK_TAI);
	NUMBER(TWHEEL_SETUP_SHARED);
	NUMBER(TWHEEL_OP_ARM);
	NUMBER(TWHEEL_OP_MODIFY);
	NUMBER(TWHEEL_OP_CANCEL);
	NUMBER(TWHEEL_OP_QUERY);
	NUMBER(TWHEEL_ABS);
	NUMBER(TWHEEL_STATE_NONE);
	NUMBER(TWHEEL_STATE_PENDING);
	NUMBER(TWHEEL_STATE_READY);
	NUMBER(TWHEEL_EVENT_PERIODIC);
	NUMBER(TWHEEL_EVENT_SHARED);
	NUMBER(TWHEEL_WORD_ARMED);
	NUMBER(TWHEEL_WORD_IDLE);
	NUMBER(TWHEEL_WORD_FIRED);
	NUMBER(TWHEEL_WORD_NEVER);
	NUMBER(TWHEEL_KERNEL);
	NUMBER(TWHEEL_USER);
	NUMBER(TWHEEL_BPF);
	NUMBER(TWHEEL_AREA_BPF);
	NUMBER(TWHEEL_FIXED_DELAY);
	NUMBER(TWHEEL_CATCH_UP);
	NUMBER(TWHEEL_RUN_ONCE);
	NUMBER(TWHEEL_RUN_PERIODIC);
	NUMBER(O_NONBLOCK);
	NUMBER(ENOENT);
	NUMBER(EIO);
	NUMBER(EDEADLK);
	NUMBER(ESHUTDOWN);
	NUMBER(EINPROGRESS);
	NUMBER(ECANCELED);
}

int main(void)
{
	timers();
	shared_timers();
	pools();
	numbers();
	return 0;
}
