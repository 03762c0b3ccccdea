/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel with a timer of each kind, and its model: what the calls with faults are made on.
 */
#ifndef SCENE_H
#define SCENE_H

#include "faults.h"

/*
 * The calls of wheel_calls.h, with the fault of the turn; or, while @fault.n is 0, with
 * none. While there is no memory, each may want some.
 */
static struct faults fault;
static bool no_memory;

#define CALL(call) WITH_FAULT(&fault, call)
#define FAULTED (fault.kind || no_memory)
#define FAULTED_COPY (fault.kind == COPY)
#define FAULT_EXPLAINS(ret) (fault.kind && fault_explains(&fault, ret))

#define MODEL_TIMERS 20000
#include "wheel_calls.h"

static struct model model;
static int wheel;

/* How the next call is made, the same each time */
static inline struct making scene_call(__u32 nr, const char *head)
{
	return (struct making){
		.model = &model,
		.fd = wheel,
		.seed = 88172645463325252ULL,
		.nr = nr,
		.far = true,
		.parts = true,
		.head = head,
		.cycle = head,
	};
}

static inline void without_fault(void (*call)(struct making *mk), struct making *mk)
{
	struct faults turn = fault;

	fault = (struct faults){};
	call(mk);
	fault = turn;
}

static inline void make_submit(struct making *mk)
{
	submit_array(mk, NULL);
}

/* Operations of these kinds, see LETTERS, with no fault */
static inline void scene_add(__u32 nr, const char *letters)
{
	struct making mk = scene_call(nr, letters);

	mk.op_size = TWHEEL_OP_SIZE_FULL;
	mk.seed += model.nr * 2;
	without_fault(make_submit, &mk);
}

/* A new wheel, whose descriptor may be there, with timers of these kinds */
static inline void scene_adopt(int fd, __u32 nr, const char *letters)
{
	wheel = fd;
	model_begin(&model, wheel, 1, true);
	snprintf(model_doing, sizeof(model_doing), "%s, fault %u", tap_name, fault.n);
	if (nr)
		scene_add(nr, letters);
}

static inline void scene_open(__u32 nr, const char *letters)
{
	scene_adopt(wheel_open(O_NONBLOCK), nr, letters);
}

/* All that the wheel says of itself and of each timer is as it should be. */
static inline void scene_check(void)
{
	struct twheel_stats stats = wheel_stats(wheel);

	if (!(model.flags & TWHEEL_SETUP_COUNT)) {
		model_check(&model, wheel);
		model_query_all(&model, wheel);
	} else if (!readable(wheel, 0)) {
		check_counters(&model, &stats);
	}
}

static inline void scene_close(void)
{
	scene_check();
	EXPECT_EQ(NEG(close(wheel)), 0);
}

/**
 * each_fault() - make a call with each of its faults, on a new wheel each time
 * @call: makes it, and sees what came of it
 * @mk: how, but for the wheel
 * @timers: of the wheel, before
 * @flags: to set it up with, if any
 * @kinds: faults that are to be there
 * @refused: how many of them are to make it fail at least
 */
static inline void each_fault(void (*call)(struct making *mk), struct making mk, __u32 timers,
			      __u32 flags, unsigned int kinds, unsigned int refused)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.flags = flags & TWHEEL_SETUP_COUNT,
		.event_size = flags & TWHEEL_EVENT_SIZE_ID,
	};

	fault = (struct faults){ .lazy = true };
	while (faults_next(&fault, kinds, refused)) {
		struct making again = mk;

		wheel = wheel_open(O_NONBLOCK);
		if (flags)
			EXPECT_EQ(wheel_ioctl(wheel, TWHEEL_IOC_SETUP, &setup), 0);
		scene_adopt(wheel, timers, "PAIJMB");
		again.fd = wheel;
		call(&again);
		scene_check();
		/* Once more without a fault: what is left is done, and no less than all. */
		again = mk;
		again.fd = wheel;
		again.seed += 2;
		without_fault(call, &again);
		if (fault.n % 8 == 1)
			model_finish(&model, wheel);
		else
			scene_check();
		EXPECT_EQ(NEG(close(wheel)), 0);
	}
	fault = (struct faults){};
}

#endif
