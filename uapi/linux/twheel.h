/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * twheel: one file descriptor holding millions of timers.
 *
 * This header is the whole contract between /dev/twheel and a program. It
 * stands alone, has one layout for 32-bit and 64-bit programs, and what is
 * published in it never changes its meaning.
 *
 * Rules for every structure:
 *
 * - An argument of an ioctl, and the head of the shared area, starts with @size,
 *   the size of the structure as the caller, or for the area the kernel, knows it.
 *   A later kernel takes a smaller, older argument; an older kernel takes a larger
 *   one as long as all that it does not know is zero.
 * - An element of an array is the beginning of one layout, and the size of all
 *   elements stands beside the array: an operation is 16, 32 or 64 bytes long,
 *   an event 16 or 32. What an operation is too short for is zero.
 * - Reserved fields and unknown flags must be zero.
 * - All times are nanoseconds of the wheel's clock, from 0 to 2^63 - 1
 *   (KTIME_MAX). Sums saturate there. In a time namespace, that is the clock
 *   as the namespace sees it that the wheel was opened in; a time before the
 *   host's boot counts as the host's boot.
 *
 * Errors, of every call unless its description says otherwise:
 *
 * ============= ============================================================
 * %ENOTTY       unknown ioctl
 * %EINVAL       malformed: @size too small, a time of more than KTIME_MAX,
 *               a reserved field set, an unknown flag or opcode
 * %E2BIG        @size larger than this kernel knows, and the rest is not
 *               zero (or @size larger than a page)
 * %EOPNOTSUPP   a known field with a value that this build does not do
 * %ENOENT       no such live timer
 * %ENOSPC       the limit of this wheel or of this user is reached
 * %EBUSY        set up twice, or after the first timer
 * %EFAULT       a bad address; nothing was changed by the operation
 * %ENOMEM       no memory; nothing was changed by the operation
 * ============= ============================================================
 *
 * read(2) adds %EAGAIN (nothing ready, and not to wait), %EINTR (a signal
 * came while it waited, or tried to write to memory that is taken away again
 * and again) and gives %EINVAL for a buffer without room for one event. What
 * lies in the buffer behind the events that it gives may be written over.
 *
 * When the time of a timer has come, its wheel is *due*: who waits is woken, and
 * the next read makes ready what is due by then, in the caller's own time; any
 * other call does a piece of it, DRAIN and the doorbell all, STATS nothing. Until
 * then it counts as pending. Only where a program is notified without
 * a call, by an eventfd or in shared memory, the kernel does that by itself, as
 * far as it may: a small part of a processor's time, for all users together.
 */
#ifndef _UAPI_LINUX_TWHEEL_H
#define _UAPI_LINUX_TWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/** TWHEEL_TICK_MIN_NS: the shortest tick, in ns */
#define TWHEEL_TICK_MIN_NS 1000
/** TWHEEL_TICK_MAX_NS: the longest tick, in ns */
#define TWHEEL_TICK_MAX_NS 1000000000

/*
 * Clocks of a wheel: the numbers of clock_gettime(2) and 0x100, so that 0 is no
 * clock, and no number of clock_gettime(2) is taken for another's.
 */
/** TWHEEL_CLOCK_REALTIME: the wall clock; timers follow it when it is set */
#define TWHEEL_CLOCK_REALTIME 0x100
/** TWHEEL_CLOCK_MONOTONIC: time since boot without suspend */
#define TWHEEL_CLOCK_MONOTONIC 0x101
/** TWHEEL_CLOCK_BOOTTIME: time since boot with suspend */
#define TWHEEL_CLOCK_BOOTTIME 0x107
/** TWHEEL_CLOCK_TAI: international atomic time */
#define TWHEEL_CLOCK_TAI 0x10b

/** TWHEEL_SETUP_COUNT: read(2) gives a count, as an eventfd does, no events */
#define TWHEEL_SETUP_COUNT (1U << 0)
/** TWHEEL_SETUP_SHARED: the wheel has shared timers, see &struct twheel_shared */
#define TWHEEL_SETUP_SHARED (1U << 1)

/** TWHEEL_FEATURE_COUNT: %TWHEEL_SETUP_COUNT is understood */
#define TWHEEL_FEATURE_COUNT (1U << 0)
/** TWHEEL_FEATURE_EVENTFD: %TWHEEL_IOC_EVENTFD is understood */
#define TWHEEL_FEATURE_EVENTFD (1U << 1)
/** TWHEEL_FEATURE_DRAIN: %TWHEEL_IOC_DRAIN is understood */
#define TWHEEL_FEATURE_DRAIN (1U << 2)
/** TWHEEL_FEATURE_SHARED: %TWHEEL_SETUP_SHARED is understood */
#define TWHEEL_FEATURE_SHARED (1U << 3)
/** TWHEEL_FEATURE_URING: io_uring takes &struct twheel_uring_submit */
#define TWHEEL_FEATURE_URING (1U << 4)

/** TWHEEL_OP_ARM: start a new timer; its id is handed back */
#define TWHEEL_OP_ARM 1
/** TWHEEL_OP_MODIFY: give a live timer new times and user data */
#define TWHEEL_OP_MODIFY 2
/** TWHEEL_OP_CANCEL: end a live timer; no event of it is read afterwards */
#define TWHEEL_OP_CANCEL 3
/** TWHEEL_OP_QUERY: look at a live timer */
#define TWHEEL_OP_QUERY 4

/** TWHEEL_OP_SIZE_ID: length of an operation that ends with its id */
#define TWHEEL_OP_SIZE_ID 16
/** TWHEEL_OP_SIZE_ONCE: length of one that ends with its user data */
#define TWHEEL_OP_SIZE_ONCE 32
/** TWHEEL_OP_SIZE_FULL: length of a whole one */
#define TWHEEL_OP_SIZE_FULL 64

/** TWHEEL_EVENT_SIZE_ID: length of an event that ends with its id */
#define TWHEEL_EVENT_SIZE_ID 16
/** TWHEEL_EVENT_SIZE_FULL: length of a whole one */
#define TWHEEL_EVENT_SIZE_FULL 32

/** TWHEEL_ABS: @deadline is a time of the wheel's clock, not a delay */
#define TWHEEL_ABS (1U << 0)

/** TWHEEL_STATE_NONE: there was no such timer before the operation */
#define TWHEEL_STATE_NONE 0
/** TWHEEL_STATE_PENDING: armed, not expired */
#define TWHEEL_STATE_PENDING 1
/** TWHEEL_STATE_READY: expired, its event not yet read */
#define TWHEEL_STATE_READY 2

/** TWHEEL_EVENT_PERIODIC: the timer goes on; its id stays valid */
#define TWHEEL_EVENT_PERIODIC (1U << 0)
/** TWHEEL_EVENT_SHARED: a shared timer: no id, and its number as user data */
#define TWHEEL_EVENT_SHARED (1U << 1)

/** TWHEEL_LATENESS_BUCKETS: length of the histogram in &struct twheel_stats */
#define TWHEEL_LATENESS_BUCKETS 64

/**
 * struct twheel_info - what this kernel and this wheel can do and hold
 * @size: in: sizeof(struct twheel_info)
 * @clock: out: this wheel's clock, TWHEEL_CLOCK_*
 * @features: out: TWHEEL_FEATURE_* bits
 * @tick_min: out: the shortest tick that a wheel can have, in ns: %TWHEEL_TICK_MIN_NS, or a
 *	jiffy where timers have no high resolution (highres=off)
 * @tick_max: out: the longest tick that a wheel can have, in ns
 * @tick: out: this wheel's tick, in ns
 * @wheel_limit: out: most timers of any wheel (module parameter)
 * @user_limit: out: most memory of all wheels of one user, in timers of 40 bytes
 *	(module parameter). A wheel counts as 2 KB, and 40 KB more from its first timer
 *	on; its timers pieces of 16 KB, for 512 of them; what periodic ones have
 *	besides, as large pieces of its own; shared timers up to 29 bytes each and
 *	160 KB
 * @limit: out: most timers of this wheel
 * @pending: out: timers of this wheel that are armed and not expired
 * @ready: out: timers of this wheel that are expired and not read
 * @next_expiry: out: no pending timer expires before this time; 0 without
 *	pending timers
 * @flags: out: TWHEEL_SETUP_* flags of this wheel
 * @event_size: out: length of the events that read(2) gives, in bytes; 8 in count
 *	mode
 * @shared: out: shared timers of this wheel
 * @__reserved: out: 0
 * @shared_size: out: bytes of the area that they are in, to be mapped as a whole
 * @now: out: the time that it is on this wheel's clock, in ns. In another time namespace
 *	than that which the wheel was opened in, clock_gettime(2) gives another
 *
 * Argument of %TWHEEL_IOC_INFO. Fields that are only handed out are ignored
 * on the way in. Of shared timers, @pending counts those that a scan of
 * the kernel has found, and @next_expiry knows of no others.
 */
struct twheel_info {
	__u32 size;
	__u32 clock;
	__aligned_u64 features;
	__aligned_u64 tick_min;
	__aligned_u64 tick_max;
	__aligned_u64 tick;
	__aligned_u64 wheel_limit;
	__aligned_u64 user_limit;
	__aligned_u64 limit;
	__aligned_u64 pending;
	__aligned_u64 ready;
	__aligned_u64 next_expiry;
	__u32 flags;
	__u32 event_size;
	__u32 shared;
	__u32 __reserved;
	__aligned_u64 shared_size;
	__aligned_u64 now;
};

/**
 * struct twheel_setup - what a wheel shall be
 * @size: in: sizeof(struct twheel_setup)
 * @flags: in: TWHEEL_SETUP_*
 * @clock: in: TWHEEL_CLOCK_*, which is always said; %EINVAL for any other
 * @event_size: in: length of the events that read(2) gives:
 *	%TWHEEL_EVENT_SIZE_ID, %TWHEEL_EVENT_SIZE_FULL, or 0 for the latter; 0 with
 *	%TWHEEL_SETUP_COUNT
 * @tick: in: length of a tick in ns, %TWHEEL_TICK_MIN_NS to
 *	%TWHEEL_TICK_MAX_NS, or 0 for one jiffy; %EOPNOTSUPP for any other. Raised to
 *	@tick_min of INFO, whose @tick says what it is
 * @limit: in: most timers that this wheel may hold, pending and ready, or 0
 *	for the module's limit; %ENOSPC for more than the module's limit without
 *	%CAP_SYS_RESOURCE
 * @shared: in: with %TWHEEL_SETUP_SHARED, how many shared timers, 1 to
 *	%TWHEEL_SHARED_MAX; else 0. They count as held, from now on and for good:
 *	%ENOSPC if @limit or the user's limit has no room for them, %EOPNOTSUPP
 *	where the kernel has none
 * @__reserved: in: 0
 *
 * Argument of %TWHEEL_IOC_SETUP: once, and before the first timer, else
 * %EBUSY. %TWHEEL_SETUP_COUNT and %TWHEEL_SETUP_SHARED exclude each other
 * (%EINVAL). A wheel that is not set up uses %TWHEEL_CLOCK_MONOTONIC and zeros.
 */
struct twheel_setup {
	__u32 size;
	__u32 flags;
	__u32 clock;
	__u32 event_size;
	__aligned_u64 tick;
	__aligned_u64 limit;
	__u32 shared;
	__u32 __reserved;
};

/**
 * struct twheel_op - one operation on one timer
 * @opcode: in: TWHEEL_OP_*
 * @flags: in: %TWHEEL_ABS or 0; 0 for CANCEL and QUERY
 * @state: out: TWHEEL_STATE_* in which the operation found the timer
 * @result: out: 0, or a negative error of this operation
 * @id: ARM: out; else in: the timer. Never 0; %ENOENT for one that is used up
 *	or was never given out
 * @deadline: ARM, MODIFY: in: when to expire: the delay from now, or with
 *	%TWHEEL_ABS the time. Rounded up to the next tick; a time in the past is
 *	ready at once. A delay becomes a time at once: where the wheel's clock is set
 *	(REALTIME, TAI), the timer moves, unlike one of timerfd. QUERY: out: the time
 * @user_data: ARM, MODIFY: in: handed back with each event. QUERY: out
 * @interval: ARM, MODIFY: in: period of a periodic timer, or 0 for one that
 *	expires once. The next period begins when the event is read; what was
 *	missed is counted. QUERY: out
 * @slack: ARM, MODIFY: in: may be ready up to this much later, so that
 *	neighbours share a wake-up. QUERY: out: as much of it as the wheel uses
 * @jitter: ARM, MODIFY: in: each expiry is put off by a fresh random part of
 *	this. Not more than @interval in a periodic timer (%EINVAL). QUERY: out
 * @__reserved: in: 0. QUERY: out: 0
 *
 * Element of the arrays of %TWHEEL_IOC_SUBMIT and %TWHEEL_IOC_DRAIN, which may hold
 * the beginning of it only: %TWHEEL_OP_SIZE_ID is enough for CANCEL, and for QUERY of
 * nothing but @state; %TWHEEL_OP_SIZE_ONCE for ARM and MODIFY of a timer that expires
 * once. What is missing is 0; ARM and MODIFY need a @deadline (%EINVAL).
 *
 * MODIFY replaces all that ARM sets; a timer that had expired and whose event was not
 * read is pending again, and that event is withdrawn. CANCEL takes @id alone: the
 * fields after it must be 0. The kernel writes what is "out", and nothing else. Where
 * @result is an error, what is "out" after it has no meaning.
 */
struct twheel_op {
	__u8 opcode;
	__u8 flags;
	__u16 state;
	__s32 result;
	__aligned_u64 id;

	__aligned_u64 deadline;
	__aligned_u64 user_data;

	__aligned_u64 interval;
	__aligned_u64 slack;
	__aligned_u64 jitter;
	__aligned_u64 __reserved;
};

/**
 * struct twheel_submit - a batch of operations
 * @size: in: sizeof(struct twheel_submit)
 * @flags: in: 0
 * @ops: in: address of an array of &struct twheel_op, read and written
 * @nr: in: number of elements, 0 to 2^31 - 1
 * @op_size: in: length of each: %TWHEEL_OP_SIZE_ID, %TWHEEL_OP_SIZE_ONCE or
 *	%TWHEEL_OP_SIZE_FULL; else %EINVAL
 *
 * Argument of %TWHEEL_IOC_SUBMIT, which returns how many operations were
 * done, in order, from the first. A bad operation has its error in its own
 * result, counts as done, and does not stop the others. Less than @nr are
 * done when a signal comes or when the array can't be read and written
 * further on; with none done the call fails with %EINTR or %EFAULT. (To a thread
 * that uses io_uring, its work for that looks like a signal.) Of an operation that
 * was not done, @result and what is "in" stay as they were. An array that is aligned
 * to @op_size costs the least.
 */
struct twheel_submit {
	__u32 size;
	__u32 flags;
	__aligned_u64 ops;
	__u32 nr;
	__u32 op_size;
};

/**
 * struct twheel_uring_submit - the same by way of io_uring
 * @ops: in: as in &struct twheel_submit
 * @nr: in: as there
 * @op_size: in: as there
 *
 * The command (&io_uring_sqe.cmd) of %IORING_OP_URING_CMD with
 * &io_uring_sqe.cmd_op %TWHEEL_IOC_SUBMIT, for several wheels in one
 * io_uring_enter(2). &io_uring_cqe.res is what the ioctl would return, or the
 * negative error. %TWHEEL_FEATURE_URING says that there is it.
 */
struct twheel_uring_submit {
	__aligned_u64 ops;
	__u32 nr;
	__u32 op_size;
};

/**
 * struct twheel_drain - take pending timers out
 * @size: in: sizeof(struct twheel_drain)
 * @flags: in: 0
 * @ops: in: address of an array of &struct twheel_op, written only
 * @nr: in: number of elements, 0 to 2^31 - 1
 * @op_size: in: length of each, as in &struct twheel_submit; %TWHEEL_OP_SIZE_FULL
 *	tells everything
 *
 * Argument of %TWHEEL_IOC_DRAIN, which returns how many timers were taken
 * out: 0 when none is pending. They come in no particular order, each as the
 * %TWHEEL_OP_ARM operation that would arm it again with its absolute deadline,
 * @id being its id until now; of a shared timer, @id is 0 and @user_data its
 * number. What is due is made ready first, and what is ready stays, for read(2).
 * Less than @nr with more pending are taken when a signal comes or when the
 * array can't be written further on; with none taken the call then fails
 * with %EINTR or %EFAULT. Elements behind those that it gives may be written
 * over.
 */
struct twheel_drain {
	__u32 size;
	__u32 flags;
	__aligned_u64 ops;
	__u32 nr;
	__u32 op_size;
};

/**
 * struct twheel_eventfd - an eventfd to signal
 * @size: in: sizeof(struct twheel_eventfd)
 * @flags: in: 0
 * @fd: in: an eventfd(2), to which 1 is added whenever timers become ready;
 *	-1 to end that. %EBADF or %EINVAL for what is no eventfd, %EBUSY when
 *	one is set, %ENOENT when none is there to end
 * @__reserved: in: 0
 *
 * Argument of %TWHEEL_IOC_EVENTFD. Timers that are ready already when the
 * eventfd is set signal it at once. Who waits for it makes no call that does what
 * is due: the kernel does, with a small part of a processor for all such wheels.
 */
struct twheel_eventfd {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 __reserved;
};

/**
 * struct twheel_stats - counters of a wheel since it was opened
 * @size: in: sizeof(struct twheel_stats)
 * @__reserved: out: 0
 * @armed: out: timers armed
 * @modified: out: timers given new times
 * @cancelled: out: timers cancelled
 * @expired: out: expiries, without overruns
 * @overruns: out: periods that went by before their timer's event was read
 * @delivered: out: events read (in count mode: expiries counted)
 * @drained: out: timers drained
 * @refused: out: times that a limit refused a timer
 * @wakeups: out: times that the hrtimer ran
 * @max_lateness: out: the largest lateness, in ns
 * @lateness: out: expiries by lateness, which is the time from the tick at
 *	which a timer was due to when it was made ready, mostly by the next call
 *	for the wheel: element 0 counts 0 ns, element i counts 2^(i-1) to
 *	2^i - 1 ns. 0 ns of one that was due when it was armed, or, shared, when
 *	the kernel's scan found it
 *
 * Argument of %TWHEEL_IOC_STATS. Fields that are only handed out are ignored
 * on the way in. (How the module works inside is in debugfs and in tracepoints.)
 */
struct twheel_stats {
	__u32 size;
	__u32 __reserved;
	__aligned_u64 armed;
	__aligned_u64 modified;
	__aligned_u64 cancelled;
	__aligned_u64 expired;
	__aligned_u64 overruns;
	__aligned_u64 delivered;
	__aligned_u64 drained;
	__aligned_u64 refused;
	__aligned_u64 wakeups;
	__aligned_u64 max_lateness;
	__aligned_u64 lateness[TWHEEL_LATENESS_BUCKETS];
};

/**
 * struct twheel_event - what read(2) gives, one for each expired timer
 * @user_data: as given when it was armed or last modified; the number of a shared
 *	timer
 * @id: the timer; used up with this event, unless it is periodic. 0 for a shared
 *	timer
 * @deadline: when it was to expire, its jitter included
 * @overrun: whole periods from @deadline to this read; 0 if not periodic. It stays
 *	at 2^32 - 1 where there were more
 * @flags: TWHEEL_EVENT_*
 *
 * Of what is ready, events come in the order of the ticks of their deadlines. Those of
 * timers with slack come in between; so do those that were armed for a time that was
 * over, in the order in which they were armed. When the clock was set back while any
 * was ready, they come in turn, whatever their ticks, until none is. read(2) gives
 * whole events only, or the beginning of each, see &twheel_setup.event_size. In count
 * mode it gives 8 bytes instead: the number of expiries, overruns included, since the
 * last read.
 */
struct twheel_event {
	__aligned_u64 user_data;
	__aligned_u64 id;

	__aligned_u64 deadline;
	__u32 overrun;
	__u32 flags;
};

/** TWHEEL_SHARED_MAX: most shared timers of a wheel */
#define TWHEEL_SHARED_MAX (1U << 24)

/*
 * The word of a shared timer: its deadline, in ns of the wheel's clock, with its
 * state in the bits that no deadline needs. (An odd deadline counts as the even one before
 * it. But nobody sees its expiry within that ns.)
 */
/** TWHEEL_WORD_ARMED: an expiry is to come */
#define TWHEEL_WORD_ARMED 0x1ULL
/** TWHEEL_WORD_IDLE: the kernel has nothing for this timer */
#define TWHEEL_WORD_IDLE 0x8000000000000000ULL
/** TWHEEL_WORD_FIRED: it expired, and nobody has taken that yet */
#define TWHEEL_WORD_FIRED 0x4000000000000000ULL
/** TWHEEL_WORD_NEVER: the latest deadline, in ns; stands for all after it */
#define TWHEEL_WORD_NEVER 0x3fffffffffffffffULL

/**
 * struct twheel_shared - head of the area that a program and the kernel share
 * @size: bytes of this head that the kernel knows
 * @nr: shared timers, numbered from 0
 * @features: 0: bits of what else the kernel does with the area
 * @ring_mask: entries of the ring, less one; they are a power of two
 * @group: timers that have a bit in @groups together, a power of two, 64 at least
 * @words: where the words of the timers are: a 64-bit word for each
 * @ring: where the ring of expired timers is: 32-bit numbers
 * @dirty: where a bit for each timer is, in 64-bit words
 * @groups: where a bit for each @group timers is, in 64-bit words
 * @__reserved: 0
 * @next_wake: by the kernel: when it scans for dirty timers again, in ns of the
 *	wheel's clock; all ones for never
 * @tail: by the kernel: number of expiries that it put into the ring
 * @__reserved_kernel: unused
 * @head: by the program: number of expiries that were taken from the ring. It does
 *	not go back: as long as it is before where it was, there is nothing to take
 * @__reserved_program: unused
 *
 * What mmap(2) of a wheel with shared timers gives: &twheel_info.shared_size
 * bytes from offset 0, %MAP_SHARED, else %EINVAL; %EACCES for executable pages;
 * %ENODEV for a wheel without shared timers. Where something is, is said in bytes
 * from the start of the area. twheel(7) has the protocol; <twheel_shared.h>
 * speaks it.
 *
 * The kernel trusts nothing in the area: what a program does to it beyond the
 * protocol can make the expiries of this wheel wrong, late or lost, and nothing
 * else.
 */
struct twheel_shared {
	__u32 size;
	__u32 nr;
	__aligned_u64 features;
	__u32 ring_mask;
	__u32 group;
	__aligned_u64 words;
	__aligned_u64 ring;
	__aligned_u64 dirty;
	__aligned_u64 groups;
	__aligned_u64 __reserved;

	__aligned_u64 next_wake;
	__u32 tail;
	__u32 __reserved_kernel[13];

	__u32 head;
	__u32 __reserved_program[15];
};

/**
 * struct twheel_doorbell - have the kernel look at the shared timers now
 * @size: in: sizeof(struct twheel_doorbell)
 * @flags: in: 0
 *
 * Argument of %TWHEEL_IOC_DOORBELL, for a program that armed a shared timer to
 * expire before &twheel_shared.next_wake. %EINVAL for a wheel without shared
 * timers. A signal does not matter: the kernel goes on by itself.
 */
struct twheel_doorbell {
	__u32 size;
	__u32 flags;
};

/** TWHEEL_IOC_TYPE: the ioctl type of /dev/twheel */
#define TWHEEL_IOC_TYPE 0xF7

/** TWHEEL_IOC_INFO: &struct twheel_info */
#define TWHEEL_IOC_INFO _IO(TWHEEL_IOC_TYPE, 0x00)
/** TWHEEL_IOC_SETUP: &struct twheel_setup */
#define TWHEEL_IOC_SETUP _IO(TWHEEL_IOC_TYPE, 0x01)
/** TWHEEL_IOC_SUBMIT: &struct twheel_submit */
#define TWHEEL_IOC_SUBMIT _IO(TWHEEL_IOC_TYPE, 0x02)
/** TWHEEL_IOC_DRAIN: &struct twheel_drain */
#define TWHEEL_IOC_DRAIN _IO(TWHEEL_IOC_TYPE, 0x03)
/** TWHEEL_IOC_EVENTFD: &struct twheel_eventfd */
#define TWHEEL_IOC_EVENTFD _IO(TWHEEL_IOC_TYPE, 0x04)
/** TWHEEL_IOC_STATS: &struct twheel_stats */
#define TWHEEL_IOC_STATS _IO(TWHEEL_IOC_TYPE, 0x05)
/** TWHEEL_IOC_DOORBELL: &struct twheel_doorbell */
#define TWHEEL_IOC_DOORBELL _IO(TWHEEL_IOC_TYPE, 0x06)

#endif /* _UAPI_LINUX_TWHEEL_H */
