/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of shared timers for the test programs, written from the protocol's text
 * alone, one line for each of its steps, so that a mistake in the library's can't
 * hide one in the module.
 */
#ifndef SHARED_H
#define SHARED_H

#include "device.h"

#define ARMED TWHEEL_WORD_ARMED
#define IDLE TWHEEL_WORD_IDLE
#define FIRED TWHEEL_WORD_FIRED
#define NEVER TWHEEL_WORD_NEVER

/* What an operation found */
enum was {
	WAS_NOTHING,		/* idle, cancelled, or expired and taken */
	WAS_ARMED,
	WAS_FIRED,		/* expired and not taken, which is withdrawn */
};

/**
 * struct client - the shared timers of a wheel, as mapped here
 * @fd: the wheel
 * @clock: its clock
 * @size: bytes of the area
 * @area: where it is, and the parts of it
 * @nr: shared timers
 * @group: how many of them have a bit in @groups together
 * @doorbells: how often the doorbell was rung
 * @stale: entries of the ring whose expiry had been withdrawn
 * @between: what to do between the steps of taking, or NULL
 */
struct client {
	int fd;
	clockid_t clock;
	size_t size;
	struct twheel_shared *area;
	__u64 *words;
	__u32 *ring;
	__u64 *dirty;
	__u64 *groups;
	__u32 nr;
	__u32 group;
	__u64 doorbells;
	__u64 stale;
	void (*between)(void);
};

/**
 * struct expiry - a shared timer that expired
 * @timer: its number
 * @deadline: its deadline
 */
struct expiry {
	__u32 timer;
	__u64 deadline;
};

static inline __u64 read64(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline __u32 read32(const __u32 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void full_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline long shared_setup(int fd, __u32 clock, __u64 tick, __u64 limit,
				__u32 nr)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = TWHEEL_SETUP_SHARED,
		.clock = clock,
		.shared = nr,
		.tick = tick,
		.limit = limit,
	};

	return wheel_ioctl(fd, TWHEEL_IOC_SETUP, &setup);
}

/* Gives MAP_FAILED, with errno, where it can't be mapped */
static inline void *shared_map_as(int fd, size_t size, int prot, int flags)
{
	return mmap(NULL, size, prot, flags, fd, 0);
}

static inline void client_map(struct client *c, int fd)
{
	struct twheel_info info = wheel_info(fd);
	char *area = shared_map_as(fd, info.shared_size, PROT_READ | PROT_WRITE,
				   MAP_SHARED);

	if (area == MAP_FAILED)
		tap_bail("mmap of %llu: %s", info.shared_size, strerror(errno));
	*c = (struct client){
		.fd = fd,
		.clock = clock_of(info.clock),
		.size = info.shared_size,
		.area = (struct twheel_shared *)area,
		.nr = info.shared,
	};
	c->words = (__u64 *)(area + c->area->words);
	c->ring = (__u32 *)(area + c->area->ring);
	c->dirty = (__u64 *)(area + c->area->dirty);
	c->groups = (__u64 *)(area + c->area->groups);
	c->group = c->area->group;
}

static inline void client_open(struct client *c, __u32 clock, __u64 tick, __u32 nr)
{
	int fd = wheel_open(O_NONBLOCK);
	long ret = shared_setup(fd, clock, tick, 0, nr);

	if (ret)
		tap_bail("setup of %u shared timers: %s", nr, strerror(-ret));
	client_map(c, fd);
}

static inline void client_close(struct client *c)
{
	if (munmap(c->area, c->size) || close(c->fd))
		tap_bail("closing: %s", strerror(errno));
}

static inline long doorbell_ring(int fd)
{
	struct twheel_doorbell bell = { .size = sizeof(bell) };

	return wheel_ioctl(fd, TWHEEL_IOC_DOORBELL, &bell);
}

static inline void doorbell(struct client *c)
{
	long ret = doorbell_ring(c->fd);

	if (ret)
		tap_bail("ringing: %s", strerror(-ret));
	__atomic_add_fetch(&c->doorbells, 1, __ATOMIC_RELAXED);
}

/* Set a bit at @p unless it is set, with a full barrier between this and what follows */
static inline void mark(__u64 *p, __u32 bit)
{
	if (read64(p) >> bit & 1)
		return;
	__atomic_fetch_or(p, 1ULL << bit, __ATOMIC_SEQ_CST);
	full_barrier();
}

/* Tell the kernel of a timer, which will look at it by @next_wake */
static inline void shared_push(struct client *c, __u32 i)
{
	__atomic_fetch_or(&c->dirty[i / 64], 1ULL << i % 64, __ATOMIC_SEQ_CST);
	full_barrier();
	i /= c->group;
	mark(&c->groups[i / 64], i % 64);
}

static inline __u64 shared_word(__u64 deadline)
{
	return (deadline < NEVER ? deadline : NEVER) | ARMED;
}

static inline enum was shared_arm(struct client *c, __u32 i, __u64 deadline)
{
	__u64 word = shared_word(deadline);
	__u64 old = __atomic_exchange_n(&c->words[i], word, __ATOMIC_SEQ_CST);

	full_barrier();
	if (old > word) {
		shared_push(c, i);
		if (word < read64(&c->area->next_wake))
			doorbell(c);
	}
	return old & FIRED ? WAS_FIRED :
	       !(old & IDLE) && old & ARMED ? WAS_ARMED : WAS_NOTHING;
}

static inline enum was shared_cancel(struct client *c, __u32 i)
{
	if (__atomic_fetch_and(&c->words[i], ~ARMED, __ATOMIC_SEQ_CST) & ARMED)
		return WAS_ARMED;
	if (__atomic_fetch_and(&c->words[i], ~FIRED, __ATOMIC_SEQ_CST) & FIRED)
		return WAS_FIRED;
	return WAS_NOTHING;
}

static inline void shared_between(const struct client *c)
{
	if (c->between)
		c->between();
}

/* The timer of an entry that is ours; false when that was withdrawn */
static inline bool shared_take_entry(struct client *c, struct expiry *e)
{
	__u64 word;

	if (!EXPECT_TRUE(e->timer < c->nr, "an entry of the ring is %u", e->timer))
		return false;
	word = __atomic_fetch_and(&c->words[e->timer], ~FIRED, __ATOMIC_SEQ_CST);
	e->deadline = word & NEVER & ~ARMED;
	if (word & FIRED)
		return true;
	__atomic_add_fetch(&c->stale, 1, __ATOMIC_RELAXED);
	return false;
}

/* Timers that expired, in the order of the ring: how many, 0 when there is none */
static inline __u32 shared_take_some(struct client *c, struct expiry *e, __u32 most)
{
	struct twheel_shared *area = c->area;
	__u32 got = 0;

	while (!got) {
		__u32 head = __atomic_load_n(&area->head, __ATOMIC_ACQUIRE);
		__u32 nr = __atomic_load_n(&area->tail, __ATOMIC_ACQUIRE) - head, k;

		if (nr > most)
			nr = most;
		if (!nr)
			break;
		for (k = 0; k < nr; k++)
			e[k].timer = read32(&c->ring[(head + k) & area->ring_mask]);
		shared_between(c);
		if (!__atomic_compare_exchange_n(&area->head, &head, head + nr, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		full_barrier();
		for (k = 0; k < nr; k++) {
			shared_between(c);
			e[got] = e[k];
			got += shared_take_entry(c, &e[got]);
		}
	}
	return got;
}

static inline bool shared_take(struct client *c, __u32 *index)
{
	struct expiry e;

	if (!shared_take_some(c, &e, 1))
		return false;
	*index = e.timer;
	return true;
}

/* Entries of the ring that wait to be taken, withdrawn ones with them */
static inline __u32 shared_waiting(const struct client *c)
{
	__u32 tail = __atomic_load_n(&c->area->tail, __ATOMIC_ACQUIRE);

	return tail - read32(&c->area->head);
}

#endif
