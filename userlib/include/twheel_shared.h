/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared timers: arm, re-arm, cancel and take expiries without a system call.
 *
 * A wheel that was set up with %TWHEEL_SETUP_SHARED has timers that the program
 * numbers itself, and whose deadlines are words of memory that it shares with
 * the kernel. twheel(7) has the protocol, and the reasons for every memory order
 * here. For C11 and C++11, with the atomic builtins that gcc and clang have for
 * both.
 *
 * Threads: one at a time arms or cancels a timer; any number do so with
 * different timers. Any number take expiries, also with read(2), and while the
 * timers that expire are being armed and cancelled.
 *
 * A timer's number is not checked, as an array's index is not.
 */
#ifndef TWHEEL_SHARED_H
#define TWHEEL_SHARED_H

#include <linux/twheel.h>
#include <stdint.h>

/* In libtwheel-ffi, which has them for other languages, they are real functions. */
#ifndef TWHEEL_INLINE
#define TWHEEL_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct twheel;

/*
 * In @features of an area whose kernel's side is a BPF program, which the doorbell runs. Not for
 * programs.
 */
#define TWHEEL_AREA_BPF 0x8000000000000000ULL

/**
 * struct twheel_area - the shared timers of a wheel, where they are mapped
 * @shared: the head of the area
 * @words: a word for each timer: its deadline and its state
 * @ring: numbers of timers that expired
 * @dirty: a bit for each timer that the kernel has to look at
 * @groups: a bit for each group of timers of which one is dirty
 * @size: bytes of the area
 * @ring_mask: entries of @ring, less one
 * @nr: how many timers, numbered from 0
 * @group_shift: what a timer's number is shifted by to give its group's
 * @fd: the wheel's descriptor
 *
 * Filled by twheel_shared_map(), constant after that, and free to be copied.
 */
struct twheel_area {
	struct twheel_shared *shared;
	uint64_t *words;
	uint32_t *ring;
	uint64_t *dirty;
	uint64_t *groups;
	uint64_t size;
	uint32_t ring_mask;
	uint32_t nr;
	uint32_t group_shift;
	int fd;
};

/**
 * twheel_shared_map - map the shared timers of a wheel
 * @tw: the wheel, set up with %TWHEEL_SETUP_SHARED; must outlive @area
 * @area: out: where they are
 *
 * The same timers may be mapped any number of times, by any process that has the
 * wheel's descriptor: they are as they were left.
 *
 * Return: 0; -%EINVAL when the wheel has no shared timers; -%ENOMEM; another
 * error of mmap(2).
 */
int twheel_shared_map(struct twheel *tw, struct twheel_area *area);

/**
 * twheel_shared_unmap - end a mapping
 * @area: the mapping, and all copies
 *
 * The timers go on, until the wheel is closed.
 */
void twheel_shared_unmap(struct twheel_area *area);

/**
 * twheel_shared_recover - take over from a process that died
 * @area: the timers, which nobody else arms, cancels or takes meanwhile
 *
 * A timer that it was about to arm when it died may be unknown to the kernel, and
 * expiries that it was about to take may be lost. This has the kernel look at all
 * that are not idle; what it had taken is over. Whoever keeps the descriptor of a
 * wheel, so that its timers outlive a crash, calls this before using them.
 *
 * Return: 0; -%EBADF when the wheel was closed, or another error of ioctl(2).
 */
int twheel_shared_recover(const struct twheel_area *area);

/*
 * What is to do at times when a timer's dirty bit was set, out of the way of the
 * rest. Not for programs, as all that is called internal.
 */
int twheel_internal_push(struct twheel_shared *shared, int fd, unsigned long group,
			 uint64_t word);

/* Of a BPF program's area: what was polled is seen, if it is not yet. Returns 1 if it was not. */
int twheel_internal_seen(const struct twheel_area *area);

static inline int twheel_internal_marked(const uint64_t *word, unsigned long bit)
{
	uint64_t marked = __atomic_load_n(word, __ATOMIC_SEQ_CST) >> bit & 1;

	return __builtin_expect(!!marked, 1);
}

/* Take the expiry of the timer with that word, if it is there to be taken */
static inline int twheel_internal_fired(uint64_t *word)
{
	uint64_t old = __atomic_fetch_and(word, ~TWHEEL_WORD_FIRED, __ATOMIC_SEQ_CST);

	return __builtin_expect(!!(old & TWHEEL_WORD_FIRED), 1);
}

/**
 * twheel_shared_arm - start a shared timer, or give it a new deadline
 * @area: the timers
 * @n: which
 * @deadline: when to expire: a time of the wheel's clock in ns, less than 2^63;
 *	from %TWHEEL_WORD_NEVER on, it does not
 *
 * It never expires early. An expiry that nobody took yet is withdrawn. A system
 * call is made when the kernel would else look too late.
 *
 * Return: the state that the timer was in: %TWHEEL_STATE_NONE,
 * %TWHEEL_STATE_PENDING, or %TWHEEL_STATE_READY when its expiry was withdrawn.
 * -%EBADF when the wheel was closed, or another error of that system call: then
 * it is armed, but may expire late.
 */
TWHEEL_INLINE int twheel_shared_arm(const struct twheel_area *area,
				    unsigned int n, uint64_t deadline)
{
	struct twheel_shared *shared;
	unsigned long i = n, group;
	uint64_t word, old;
	int ret;

	if (__builtin_expect(!!(deadline & (TWHEEL_WORD_NEVER + 1)), 0)) {
		deadline = TWHEEL_WORD_NEVER;
		/* No code, but keeps compilers from a longer form without a jump */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	word = deadline | TWHEEL_WORD_ARMED;
	old = __atomic_exchange_n(&area->words[i], word, __ATOMIC_SEQ_CST);
	/* To later, or armed again after a cancel: the kernel looks by then */
	if (__builtin_expect(old <= word, 1))
		return old & TWHEEL_WORD_ARMED;

	/* Set from below; a bit above may be set already, by another thread: that is as good. */
	__atomic_fetch_or(&area->dirty[i / 64], 1ULL << i % 64, __ATOMIC_SEQ_CST);
	shared = area->shared;
	group = i >> area->group_shift;
	if (!twheel_internal_marked(&area->groups[group / 64], group % 64) ||
	    __builtin_expect(word < __atomic_load_n(&shared->next_wake,
						    __ATOMIC_SEQ_CST), 0)) {
		ret = twheel_internal_push(shared, area->fd, group, word);
		if (ret < 0)
			return ret;
	}
	return old & TWHEEL_WORD_FIRED ? TWHEEL_STATE_READY : old & TWHEEL_WORD_ARMED;
}

/**
 * twheel_shared_cancel - stop a shared timer
 * @area: the timers
 * @n: which
 *
 * When it gives another state than %TWHEEL_STATE_NONE, nobody takes an expiry of
 * that timer until it is armed again.
 *
 * Return: the state that the timer was in: %TWHEEL_STATE_PENDING,
 * %TWHEEL_STATE_READY for one that had expired, which nobody took yet; or
 * %TWHEEL_STATE_NONE: there was nothing to cancel.
 */
TWHEEL_INLINE int twheel_shared_cancel(const struct twheel_area *area,
				       unsigned int n)
{
	uint64_t *word = &area->words[n];

	if (__atomic_fetch_and(word, ~TWHEEL_WORD_ARMED, __ATOMIC_SEQ_CST) &
	    TWHEEL_WORD_ARMED)
		return TWHEEL_STATE_PENDING;
	if (__atomic_fetch_and(word, ~TWHEEL_WORD_FIRED, __ATOMIC_SEQ_CST) &
	    TWHEEL_WORD_FIRED)
		return TWHEEL_STATE_READY;
	return TWHEEL_STATE_NONE;
}

/* Read entries of the ring; for nothing, if the head turns out to have moved */
static inline void twheel_internal_entries(const uint32_t *from, unsigned int *to,
					   uint32_t nr)
{
	uint32_t i;

	/* By itself no compiler does that where the loads are atomic */
#pragma GCC unroll 8
	for (i = 0; i < nr; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/**
 * twheel_shared_take - take expiries of shared timers
 * @area: the timers
 * @timers: out: which, in no particular order
 * @max: room in @timers; with more of it, each costs less
 *
 * An expiry can be withdrawn until it is taken. poll(2) and epoll(7) of the
 * wheel's descriptor say when there are any; take until there is none. (Less than
 * @max may come while there are more.)
 *
 * Return: how many, or 0 when there is none.
 */
TWHEEL_INLINE unsigned int twheel_shared_take(const struct twheel_area *area,
					      unsigned int *timers,
					      unsigned int max)
{
	struct twheel_shared *shared = area->shared;
	uint64_t *words = area->words;

	for (;;) {
		uint32_t head = __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE);
		uint32_t nr = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE) - head;
		uint32_t at = head & area->ring_mask;
		unsigned int *each = timers, *end;

		if (nr > max)
			nr = max;
		if (!nr) {
			/* What expires from then on is announced again: so look after it. */
			if (max && shared->features & TWHEEL_AREA_BPF &&
			    twheel_internal_seen(area))
				continue;
			return 0;
		}
		/* What goes on at the ring's start is for the next time */
		if (nr > area->ring_mask + 1 - at)
			nr = area->ring_mask + 1 - at;
		twheel_internal_entries(&area->ring[at], timers, nr);
		if (!__atomic_compare_exchange_n(&shared->head, &head, head + nr,
						 0, __ATOMIC_RELEASE,
						 __ATOMIC_RELAXED))
			continue;
		end = timers + nr;
		do {
			if (twheel_internal_fired(&words[*each]))
				each++;
			else
				*each = *--end;
		} while (each != end);
		if (end != timers)
			return (unsigned int)(end - timers);
	}
}

#ifdef __cplusplus
}
#endif

#endif
