/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtwheel: timers of /dev/twheel from C and C++, or of the program's own where
 * there is no such device.
 *
 * Every function gives 0 or a count, or a negative error number. errno says
 * nothing after a call. All times are nanoseconds of the wheel's clock. What the
 * operations, events and errors mean stands in <linux/twheel.h> and twheel(4).
 *
 * Functions that take only a &struct twheel may be called by any number of
 * threads at once, and, of a wheel in the kernel, in a child after fork(2). The
 * others say what they ask for. None is safe to call in a signal handler.
 *
 * Structures of <linux/twheel.h> are passed on as they are: the caller sets
 * @size in those that have one. Operations and events are whole ones in the
 * program's memory, 64 and 32 bytes, however short the library passes them on.
 */
#ifndef TWHEEL_H
#define TWHEEL_H

#include <linux/twheel.h>
#include <stdint.h>

/* In libtwheel-ffi, which has them for other languages, they are real functions. */
#ifndef TWHEEL_INLINE
#define TWHEEL_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** struct twheel - a wheel: its descriptor and a loop's state */
struct twheel;

/** struct twheel_batch - operations that wait to be submitted together */
struct twheel_batch;

/** TWHEEL_KERNEL: the wheel is in the kernel: /dev/twheel, and nothing else */
#define TWHEEL_KERNEL (1 << 30)
/** TWHEEL_USER: the wheel is in the program itself */
#define TWHEEL_USER (1 << 29)
/**
 * TWHEEL_BPF: the wheel is in the program itself, but its shared timers are in a BPF program of the
 * kernel's, which twheel-loader(8) loads for the group twheel
 */
#define TWHEEL_BPF (1 << 28)

/**
 * twheel_open - open a new wheel
 * @flags: O_NONBLOCK (<fcntl.h>) for reads that don't wait; %TWHEEL_KERNEL,
 *	%TWHEEL_BPF or %TWHEEL_USER for that one only
 * @twp: out: the wheel
 *
 * Where there is no /dev/twheel that may be opened, the wheel is in the program
 * itself; libtwheel(3) says what that can't do. Its shared timers, if twheel_setup() asks
 * for any, are in a BPF program then, where there is a loader. The descriptor is closed on
 * execve(2). The wheel works at once, with %TWHEEL_CLOCK_MONOTONIC and one jiffy a
 * tick; see twheel_setup().
 *
 * Return: 0; with %TWHEEL_KERNEL, -%ENOENT when there is no /dev/twheel, as the module
 * is not loaded; with %TWHEEL_BPF, -%ENOENT where no loader is installed, -%EACCES for who is
 * not in its group; -%EINVAL for other flags, and for what the environment's
 * TWHEEL_BACKEND may not be; -%ENOMEM; another error of open(2).
 */
int twheel_open(int flags, struct twheel **twp);

/**
 * twheel_from_fd - make a wheel of a descriptor that came from elsewhere
 * @fd: descriptor of /dev/twheel: inherited, or received from a process
 * @twp: out: the wheel, which owns @fd from now on
 *
 * Return: 0; -%ENOTTY or -%EINVAL when @fd is something else, -%EBADF when it
 * is nothing, -%ENOMEM: then @fd is still the caller's.
 */
int twheel_from_fd(int fd, struct twheel **twp);

/**
 * twheel_close - close the descriptor and free the wheel
 * @tw: the wheel, or NULL
 *
 * The timers end with the last descriptor of the wheel, which another process
 * may have. Not from a callback of the wheel's own twheel_run_once(), nor while
 * another thread uses @tw.
 */
void twheel_close(struct twheel *tw);

/**
 * twheel_fd - the descriptor, for poll(2), epoll(7) and any event loop
 * @tw: the wheel, which goes on owning it
 *
 * Return: the descriptor.
 */
int twheel_fd(const struct twheel *tw);

/**
 * twheel_backend - where the wheel is
 * @tw: the wheel
 *
 * Return: %TWHEEL_KERNEL, %TWHEEL_USER, or %TWHEEL_BPF for a wheel that has shared timers there,
 * or was opened to have no others.
 */
int twheel_backend(const struct twheel *tw);

/**
 * twheel_setup - choose clock, tick, limit and mode
 * @tw: the wheel
 * @setup: what it shall be. The clock is always said: TWHEEL_CLOCK_*, which are
 *	not the numbers of clock_gettime().
 *
 * Once, before the first timer, and before another thread uses @tw.
 *
 * Return: 0; -%EINVAL, also for a clock of 0 and any other that there is not;
 * -%E2BIG; -%EOPNOTSUPP for a tick that there is not; -%ENOSPC for a limit above
 * the module's, or that has no room for the shared timers, and for shared timers that the loader
 * has no more room for; -%ENODEV for shared timers where neither module nor loader can have
 * any; -%EOPNOTSUPP for those of a loader with another clock than
 * %TWHEEL_CLOCK_MONOTONIC, or in a time namespace, -%ETIMEDOUT where it does not answer in
 * 20 s, -%ECONNREFUSED where it has ended and nothing starts it; -%EBUSY when it is too late;
 * -%ENOMEM.
 */
int twheel_setup(struct twheel *tw, const struct twheel_setup *setup);

/**
 * twheel_now - the time that it is
 * @tw: the wheel
 *
 * Return: the time of the wheel's clock, in ns.
 */
uint64_t twheel_now(const struct twheel *tw);

/**
 * twheel_info - what the kernel and this wheel can do and hold
 * @tw: the wheel
 * @info: in: its size; out: the rest
 *
 * Return: 0; -%EINVAL or -%E2BIG for a wrong size.
 */
int twheel_info(struct twheel *tw, struct twheel_info *info);

/**
 * twheel_stats - counters and lateness of a wheel
 * @tw: the wheel
 * @stats: in: its size; out: the rest
 *
 * Return: 0; -%EINVAL or -%E2BIG for a wrong size.
 */
int twheel_stats(struct twheel *tw, struct twheel_stats *stats);

/**
 * twheel_op_arm - an operation that starts a new timer
 * @flags: 0 or %TWHEEL_ABS
 * @deadline: delay from now in ns, or with %TWHEEL_ABS the time
 * @interval: period in ns, or 0 to expire once
 * @user_data: handed back with each event
 *
 * Slack and jitter are 0: set the fields for others.
 *
 * Return: the operation.
 */
TWHEEL_INLINE struct twheel_op twheel_op_arm(uint8_t flags, uint64_t deadline,
					     uint64_t interval, uint64_t user_data)
{
	struct twheel_op op = {
		TWHEEL_OP_ARM, flags, 0, 0, 0, deadline, user_data, interval, 0, 0, 0
	};

	return op;
}

/**
 * twheel_op_modify - an operation that gives a live timer new times and data
 * @id: the timer
 * @flags: 0 or %TWHEEL_ABS
 * @deadline: delay from now in ns, or with %TWHEEL_ABS the time
 * @interval: period in ns, or 0 to expire once
 * @user_data: handed back with each event
 *
 * Slack and jitter are 0: set the fields for others.
 *
 * Return: the operation.
 */
TWHEEL_INLINE struct twheel_op twheel_op_modify(uint64_t id, uint8_t flags,
						uint64_t deadline, uint64_t interval,
						uint64_t user_data)
{
	struct twheel_op op = {
		TWHEEL_OP_MODIFY, flags, 0, 0, id, deadline, user_data, interval, 0, 0, 0
	};

	return op;
}

/**
 * twheel_op_cancel - an operation that ends a live timer
 * @id: the timer
 *
 * Return: the operation.
 */
TWHEEL_INLINE struct twheel_op twheel_op_cancel(uint64_t id)
{
	struct twheel_op op = {
		TWHEEL_OP_CANCEL, 0, 0, 0, id, 0, 0, 0, 0, 0, 0
	};

	return op;
}

/**
 * twheel_op_query - an operation that looks at a live timer
 * @id: the timer
 *
 * Return: the operation.
 */
TWHEEL_INLINE struct twheel_op twheel_op_query(uint64_t id)
{
	struct twheel_op op = {
		TWHEEL_OP_QUERY, 0, 0, 0, id, 0, 0, 0, 0, 0, 0
	};

	return op;
}

/**
 * twheel_arm - start a new timer
 * @tw: the wheel
 * @op: in: what twheel_op_arm() gives; out: id and state
 *
 * Return: 0; -%EINVAL for another operation or a bad time or flag; -%ENOSPC when
 * a limit is reached; -%ENOMEM.
 */
int twheel_arm(struct twheel *tw, struct twheel_op *op);

/**
 * twheel_modify - give a live timer new times and user data
 * @tw: the wheel
 * @op: in: what twheel_op_modify() gives; out: state
 *
 * Return: 0; -%ENOENT when there is no such timer any more; -%EINVAL for
 * another operation or a bad time or flag.
 */
int twheel_modify(struct twheel *tw, struct twheel_op *op);

/**
 * twheel_cancel - end a live timer
 * @tw: the wheel
 * @id: the timer
 *
 * No event of the timer is read after that, by anybody.
 *
 * Return: 0; -%ENOENT when there is no such timer any more.
 */
int twheel_cancel(struct twheel *tw, uint64_t id);

/**
 * twheel_query - look at a live timer
 * @tw: the wheel
 * @op: in: what twheel_op_query() gives; out: times, user data and state
 *
 * Return: 0; -%ENOENT when there is no such timer any more; -%EINVAL for
 * another operation.
 */
int twheel_query(struct twheel *tw, struct twheel_op *op);

/**
 * twheel_submit - many operations in one system call
 * @tw: the wheel
 * @ops: array of operations, which costs the least when it is aligned to 64 bytes;
 *	out: the result, id and state of each
 * @nr: number of elements, 0 to 2^31 - 1
 *
 * Return: how many were done, in order, from the first: less than @nr when a
 * signal came. An operation that failed counts as done, with its error in its
 * result. With none done -%EINTR or -%EFAULT; -%EINVAL; -%ENOMEM.
 */
int twheel_submit(struct twheel *tw, struct twheel_op *ops, unsigned int nr);

/**
 * twheel_drain - take pending timers out of the wheel
 * @tw: the wheel
 * @ops: out: for each timer the operation that arms it again
 * @nr: room in @ops, 0 to 2^31 - 1
 *
 * Return: how many were taken, 0 when none is pending. With none taken -%EINTR
 * or -%EFAULT; -%EINVAL.
 */
int twheel_drain(struct twheel *tw, struct twheel_op *ops, unsigned int nr);

/**
 * twheel_set_eventfd - signal an eventfd when timers become ready
 * @tw: the wheel
 * @fd: the eventfd, or -1 to end that. It may be closed after the call.
 *
 * Where very much is due, it may be late: see twheel(4).
 *
 * Return: 0; -%EBADF or -%EINVAL for what is no eventfd; -%EBUSY when one is
 * set; -%ENOENT when there is none to end; -%EOPNOTSUPP of a wheel in the program
 * itself, where nobody runs who could signal it.
 */
int twheel_set_eventfd(struct twheel *tw, int fd);

/**
 * twheel_read - take the events of expired timers
 * @tw: the wheel, not in count mode
 * @events: out: the events
 * @nr: room in @events
 *
 * Waits for the first one, unless the wheel was opened with O_NONBLOCK. Of a wheel
 * with short events (%TWHEEL_EVENT_SIZE_ID), what these have not is 0.
 *
 * Return: how many, at least 1; -%EAGAIN when there are none and it does not
 * wait; -%EINTR when a signal came first; -%EINVAL when @nr is 0 or the wheel
 * is in count mode; -%EFAULT.
 */
int twheel_read(struct twheel *tw, struct twheel_event *events,
		unsigned int nr);

/**
 * twheel_read_count - take the number of expiries since the last read
 * @tw: the wheel, in count mode (%TWHEEL_SETUP_COUNT)
 * @count: out: expiries, at least 1, overruns included
 *
 * Waits for the first one, unless the wheel was opened with O_NONBLOCK.
 *
 * Return: 0; -%EAGAIN when there are none and it does not wait; -%EINTR when a
 * signal came first; -%EINVAL when the wheel is not in count mode; -%EFAULT.
 */
int twheel_read_count(struct twheel *tw, uint64_t *count);

/**
 * twheel_batch_new - make a place where operations wait for each other
 * @tw: the wheel, which must outlive the batch
 * @capacity: most operations that wait, at least 1; 256 is plenty
 * @done: called for each operation that was submitted, in order, with its
 *	result, id and state. Must not use the batch.
 * @arg: handed to @done
 * @batchp: out: the batch
 *
 * A batch may be used by one thread at a time.
 *
 * Return: 0; -%EINVAL for a capacity of 0 or without @done; -%ENOMEM.
 */
int twheel_batch_new(struct twheel *tw, unsigned int capacity,
		     void (*done)(const struct twheel_op *op, void *arg),
		     void *arg, struct twheel_batch **batchp);

/**
 * twheel_batch_add - put an operation into a batch
 * @batch: the batch
 * @op: what one of the twheel_op_ functions gives; it is copied
 *
 * A full batch is submitted first.
 *
 * Return: 0; -%EBUSY when called by @done; when the batch was full, an error of
 * twheel_batch_flush(). With an error the operation was not put in.
 */
int twheel_batch_add(struct twheel_batch *batch, const struct twheel_op *op);

/**
 * twheel_batch_flush - submit all operations of a batch
 * @batch: the batch
 *
 * Return: 0 when none waits any more; -%EINTR when a signal came, -%ENOMEM:
 * those that were not submitted still wait, and it may be called again;
 * -%EBUSY when called by @done.
 */
int twheel_batch_flush(struct twheel_batch *batch);

/**
 * twheel_batch_free - end a batch
 * @batch: the batch, or NULL
 *
 * Operations that still wait are dropped: flush first. Not to be called by
 * @done.
 */
void twheel_batch_free(struct twheel_batch *batch);

/**
 * struct twheel_timer - a timer with a callback, for twheel_run_once()
 * @fn: called when the timer has expired
 * @arg: for @fn, to be used as it likes
 * @id: the kernel's id while the timer is armed, else 0; not to be changed
 * @event: the library's own
 *
 * The memory is the caller's. It must stay where it is while the timer is
 * armed: until @fn is called for one that expires once, or until
 * twheel_timer_cancel() gave 0 or -%ENOENT, or twheel_close().
 *
 * @fn may arm, cancel and free this and any other timer. A timer that expires
 * once is not armed any more when @fn is called.
 *
 * A wheel that has such timers has no others, and no other reader: the event's
 * user data is the address of the timer. One thread at a time may call
 * twheel_run_once() and the twheel_timer_ functions of a wheel.
 */
struct twheel_timer {
	void (*fn)(struct twheel *tw, struct twheel_timer *timer,
		   const struct twheel_event *event);
	void *arg;
	uint64_t id;
	struct twheel_event *event;
};

/**
 * twheel_timer_init - make a timer that is not armed
 * @timer: the timer
 * @fn: called when it has expired
 * @arg: kept in @timer for @fn
 */
TWHEEL_INLINE void
twheel_timer_init(struct twheel_timer *timer,
		  void (*fn)(struct twheel *tw, struct twheel_timer *timer,
			     const struct twheel_event *event),
		  void *arg)
{
	timer->fn = fn;
	timer->arg = arg;
	timer->id = 0;
	timer->event = 0;
}

/**
 * twheel_timer_arm - start a timer, or give it new times when it is armed
 * @tw: the wheel
 * @timer: the timer
 * @flags: 0 or %TWHEEL_ABS
 * @deadline: delay from now in ns, or with %TWHEEL_ABS the time
 * @interval: period in ns, or 0 to expire once
 *
 * An expiry whose callback was not called yet is withdrawn.
 *
 * Return: 0; -%EINVAL for a bad time or flag, -%ENOSPC when a limit is
 * reached, -%ENOMEM: then the timer is as it was.
 */
int twheel_timer_arm(struct twheel *tw, struct twheel_timer *timer,
		     uint8_t flags, uint64_t deadline, uint64_t interval);

/**
 * twheel_timer_cancel - stop a timer
 * @tw: the wheel
 * @timer: the timer
 *
 * After 0 the callback is not called, also when the timer had expired already.
 *
 * Return: 0; -%ENOENT when the timer was not armed.
 */
int twheel_timer_cancel(struct twheel *tw, struct twheel_timer *timer);

/**
 * twheel_run_once - wait for expired timers and call their callbacks
 * @tw: the wheel, with whole events, with &struct twheel_timer only
 * @timeout_ms: longest wait in ms, 0 not to wait, less than 0 without end
 *
 * Reads once, and so calls a limited number of callbacks. Waits for no longer
 * than that even if the descriptor has no O_NONBLOCK. A callback may call it.
 *
 * Return: how many callbacks were called, 0 when the time was over; -%EINTR
 * when a signal came first; -%EINVAL when the wheel is in count mode or has short
 * events.
 */
int twheel_run_once(struct twheel *tw, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
