// SPDX-License-Identifier: GPL-2.0
/*
 * Shared timers without a kernel: what the library's header does to the shared
 * memory, beside a small stand-in that does the kernel's side of twheel(7) in the
 * plainest way. It looks when its next_wake has come or the doorbell rings, and at
 * no other time, so that what should have rung and did not is found; time is a
 * number that the tests set.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <twheel.h>
#include <twheel_shared.h>

#include "tap.h"

/* Two words of groups, of which the second is hardly used; five of small groups */
#define NR 17000
#define RING 32768
#define WORDS ((NR + 63) / 64)
#define GROUP 256
#define LEAST_GROUP 64
#define GROUPS ((WORDS + 63) / 64)
#ifdef __SANITIZE_THREAD__
#define STEPS 10000
#else
#define STEPS 60000
#endif

/* Or those of the environment */
static unsigned int steps;

/* Expiries that are taken together, at most */
#define BATCH 64

#define FOREVER (~0ULL)

static struct memory {
	struct twheel_shared head;
	__u64 groups[GROUPS];
	__u64 dirty[WORDS];
	__u32 ring[RING];
	__u64 words[NR];
	/* Of a BPF program: up to where what is polled was seen, and was written */
	alignas(4096) unsigned long seen;
	alignas(4096) unsigned long written;
} memory;

/* The stand-in: where it has each timer, and where that was last in the ring */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool placed[NR];
static __u64 place[NR];
static __u32 position[NR];
static __u32 tail;
static __u64 now;
static unsigned int doorbells;
static __u32 used;

static int doorbell_error;
static int map_error;
static __u32 group = GROUP;
static __u32 shared_timers;

static struct twheel *tw;
static struct twheel_area area;

#define load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define store(p, value) __atomic_store_n(p, value, __ATOMIC_SEQ_CST)
#define exchange(p, value) __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST)

static bool change(__u32 i, __u64 old, __u64 new)
{
	return __atomic_compare_exchange_n(&memory.words[i], &old, new, 0,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void deliver(__u32 i)
{
	__u32 head = load(&memory.head.head), mask = memory.head.ring_mask;

	if (position[i] - head < tail - head && memory.ring[position[i] & mask] == i)
		return;
	EXPECT_TRUE(tail - head <= mask, "the ring is full");
	position[i] = tail;
	__atomic_store_n(&memory.ring[tail & mask], i, __ATOMIC_RELAXED);
	store(&memory.head.tail, ++tail);
	/* As a BPF program does: what is polled already is not announced again. */
	if (load(&memory.seen) == load(&memory.written))
		store(&memory.written, memory.written + 16);
}

/* Settle a timer, or place it: true unless the program changed it meanwhile */
static bool settle(__u32 i)
{
	__u64 word = load(&memory.words[i]);

	placed[i] = false;
	if (word & (TWHEEL_WORD_IDLE | TWHEEL_WORD_FIRED))
		return true;
	if (!(word & TWHEEL_WORD_ARMED))
		return change(i, word, word | TWHEEL_WORD_IDLE);
	if (word > load(&now)) {
		placed[i] = true;
		place[i] = word;
		return true;
	}
	if (!change(i, word, (word & ~TWHEEL_WORD_ARMED) | TWHEEL_WORD_IDLE |
			     TWHEEL_WORD_FIRED))
		return false;
	deliver(i);
	return true;
}

static void take_up_one(__u32 i)
{
	__u64 word = load(&memory.words[i]);

	if (placed[i] && word & TWHEEL_WORD_ARMED && word >= place[i])
		return;
	while (!settle(i))
		;
}

static void take_up_words(unsigned int word, unsigned int end)
{
	__u64 dirty;

	for (; word < end && word < WORDS; word++)
		for (dirty = exchange(&memory.dirty[word], 0); dirty; dirty &= dirty - 1)
			take_up_one(word * 64 + __builtin_ctzll(dirty));
}

/* True when there was something */
static bool take_up(void)
{
	unsigned int i, word;
	__u64 groups;
	bool some = false;

	for (i = 0; i < GROUPS; i++) {
		groups = exchange(&memory.groups[i], 0);
		for (some |= groups; groups; groups &= groups - 1) {
			word = (i * 64 + __builtin_ctzll(groups)) * (group / 64);
			take_up_words(word, word + group / 64);
		}
	}
	return some;
}

static void kernel_runs(void)
{
	__u64 next;
	__u32 i;

	take_up();
	do {
		next = FOREVER;
		for (i = 0; i < used; i++) {
			while (placed[i] && place[i] <= load(&now) && !settle(i))
				placed[i] = true;
			if (placed[i] && place[i] < next)
				next = place[i];
		}
		store(&memory.head.next_wake, next);
	} while (take_up());
}

/* Time goes on, and the stand-in looks when it said that it would */
static void until(__u64 time)
{
	pthread_mutex_lock(&lock);
	while (load(&memory.head.next_wake) <= time) {
		if (load(&memory.head.next_wake) > load(&now))
			store(&now, load(&memory.head.next_wake));
		kernel_runs();
	}
	/* Another thread may have been further */
	if (time > load(&now))
		store(&now, time);
	pthread_mutex_unlock(&lock);
}

static int doorbell(const struct twheel_doorbell *arg)
{
	EXPECT_EQ(arg->size, sizeof(*arg));
	EXPECT_EQ(arg->flags, 0);
	if (doorbell_error)
		return doorbell_error;
	pthread_mutex_lock(&lock);
	doorbells++;
	kernel_runs();
	pthread_mutex_unlock(&lock);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long cmd, ...)
{
	struct twheel_info *info;
	va_list ap;
	void *arg;
	int ret = -ENOTTY;

	(void)fd;
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd == TWHEEL_IOC_INFO) {
		info = arg;
		info->shared = shared_timers;
		info->shared_size = sizeof(memory);
		ret = 0;
	} else if (cmd == TWHEEL_IOC_DOORBELL) {
		ret = doorbell(arg);
	}
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

void *__wrap_mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
	EXPECT_TRUE(!addr);
	EXPECT_EQ(size, sizeof(memory));
	EXPECT_EQ(prot, PROT_READ | PROT_WRITE);
	EXPECT_EQ(flags, MAP_SHARED);
	EXPECT_EQ(fd, twheel_fd(tw));
	EXPECT_EQ(offset, 0);
	errno = map_error;
	return map_error ? MAP_FAILED : &memory;
}

int __wrap_munmap(void *addr, size_t size)
{
	EXPECT_TRUE(addr == &memory);
	EXPECT_EQ(size, sizeof(memory));
	return 0;
}

static void fresh(void)
{
	unsigned int i;

	memset(&memory, 0, sizeof(memory));
	memory.head = (struct twheel_shared){
		.size = sizeof(memory.head),
		.nr = NR,
		.ring_mask = RING - 1,
		.group = group,
		.words = offsetof(struct memory, words),
		.ring = offsetof(struct memory, ring),
		.dirty = offsetof(struct memory, dirty),
		.groups = offsetof(struct memory, groups),
		.next_wake = FOREVER,
		/* Soon the ring begins again, and the count */
		.tail = -BATCH * 20,
		.head = -BATCH * 20,
	};
	for (i = 0; i < NR; i++)
		memory.words[i] = TWHEEL_WORD_IDLE;
	memset(placed, 0, sizeof(placed));
	memset(position, 0, sizeof(position));
	tail = memory.head.tail;
	now = 1000;
	used = NR;
	doorbells = 0;
	doorbell_error = 0;
	map_error = 0;
	shared_timers = NR;
	if (!tw && twheel_from_fd(open("/dev/null", O_RDWR), &tw))
		tap_bail("twheel_from_fd");
	if (twheel_shared_map(tw, &area))
		tap_bail("twheel_shared_map");
}

static void mapping(void)
{
	struct twheel_area other;

	fresh();
	EXPECT_TRUE((void *)area.words == memory.words);
	EXPECT_EQ(area.nr, NR);
	twheel_shared_unmap(&area);
	shared_timers = 0;
	EXPECT_EQ(twheel_shared_map(tw, &other), -EINVAL);
	shared_timers = NR;
	map_error = ENOMEM;
	EXPECT_EQ(twheel_shared_map(tw, &other), -ENOMEM);
}

static bool takes_one(unsigned int *n)
{
	return twheel_shared_take(&area, n, 1);
}

static void ringing(void)
{
	fresh();
	EXPECT_EQ(twheel_shared_arm(&area, 7, 5000), TWHEEL_STATE_NONE);
	EXPECT_EQ(doorbells, 1, "the kernel slept for ever");
	EXPECT_EQ(twheel_shared_arm(&area, 8, 6000), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_arm(&area, NR - 1, 5000), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_arm(&area, 7, 9000), TWHEEL_STATE_PENDING);
	EXPECT_EQ(twheel_shared_arm(&area, 8, 5500), TWHEEL_STATE_PENDING);
	EXPECT_EQ(doorbells, 1, "it looks soon enough");
	EXPECT_EQ(twheel_shared_arm(&area, 8, 4000), TWHEEL_STATE_PENDING);
	EXPECT_EQ(doorbells, 2);

	doorbell_error = -EBADF;
	EXPECT_EQ(twheel_shared_arm(&area, 8, 2000), -EBADF);
}

/* Another thread has stopped between two of its steps: we don't wait for it */
static void others_halfway(void)
{
	unsigned int n = NR;

	fresh();
	EXPECT_EQ(twheel_shared_arm(&area, 1, 2000), TWHEEL_STATE_NONE);
	memory.dirty[1] = 1;
	EXPECT_EQ(twheel_shared_arm(&area, 66, 2500), TWHEEL_STATE_NONE);
	until(2501);
	EXPECT_TRUE(takes_one(&n));
	EXPECT_EQ(n, 1);
	EXPECT_TRUE(takes_one(&n));
	EXPECT_EQ(n, 66);
}

static __u32 entry(__u32 i)
{
	return memory.ring[(memory.head.head + i) & area.ring_mask];
}

/* One process died in the middle of its steps, another goes on */
static void taken_over(void)
{
	unsigned int timers[10], n, i, first, seen = 0;

	fresh();
	for (i = 1; i < 7; i++)
		EXPECT_EQ(twheel_shared_arm(&area, i, 2000), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_arm(&area, 7, 9000), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_cancel(&area, 7), TWHEEL_STATE_PENDING);
	until(2001);
	/*
	 * In the middle of a batch of four: one taken, three but for the word. Two not
	 * at all, and one armed but for the bits.
	 */
	first = entry(0);
	memory.words[first] &= ~TWHEEL_WORD_FIRED;
	memory.head.head += 4;
	memory.words[NR - 1] = 2500 | TWHEEL_WORD_ARMED;
	EXPECT_EQ(twheel_shared_recover(&area), 0);
	n = twheel_shared_take(&area, timers, 10);
	EXPECT_EQ(n, 5);
	for (i = 0; i < n; i++)
		seen |= 1U << timers[i];
	EXPECT_EQ(seen, 0x7e & ~(1U << first));
	EXPECT_TRUE(!takes_one(&n), "%u", n);
	until(2501);
	EXPECT_TRUE(takes_one(&n));
	EXPECT_EQ(n, NR - 1);
	until(10000);
	EXPECT_TRUE(!takes_one(&n), "%u", n);
	doorbell_error = -EBADF;
	EXPECT_EQ(twheel_shared_recover(&area), -EBADF);
}

static __u64 seed = 88172645463325252ULL;

static __u64 pick(__u64 *state, __u64 below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* What the timers must be, by the promises alone */
static struct {
	int state;
	__u64 deadline;
} model[NR];

static void model_until(__u64 time)
{
	unsigned int i;

	until(time);
	for (i = 0; i < NR; i++)
		if (model[i].state == TWHEEL_STATE_PENDING &&
		    (model[i].deadline | 1) <= time)
			model[i].state = TWHEEL_STATE_READY;
}

static void model_take(unsigned int max)
{
	unsigned int timers[BATCH + 1], i, n;

	timers[max] = NR;
	n = twheel_shared_take(&area, timers, max);
	EXPECT_TRUE(n <= max && timers[max] == NR, "%u", n);
	for (i = 0; i < n; i++) {
		if (!EXPECT_TRUE(timers[i] < NR, "%u", timers[i]))
			return;
		EXPECT_EQ(model[timers[i]].state, TWHEEL_STATE_READY, "timer %u", timers[i]);
		model[timers[i]].state = TWHEEL_STATE_NONE;
	}
	if (n || !max)
		return;
	for (i = 0; i < NR; i++)
		EXPECT_TRUE(model[i].state != TWHEEL_STATE_READY, "timer %u is lost", i);
}

static void model_arm(unsigned int n, __u64 deadline)
{
	EXPECT_EQ(twheel_shared_arm(&area, n, deadline), model[n].state, "timer %u", n);
	/* What is due is ready as soon as the kernel has looked */
	until(now);
	model[n].state = (deadline | 1) <= now ? TWHEEL_STATE_READY :
						 TWHEEL_STATE_PENDING;
	model[n].deadline = deadline;
}

static void beside_model(void)
{
	static const __u64 never[] = {
		TWHEEL_WORD_NEVER, TWHEEL_WORD_NEVER + 1, INT64_MAX, UINT64_MAX
	};
	unsigned int step, n;

	fresh();
	memset(model, 0, sizeof(model));
	for (step = 0; step < steps; step++) {
		/* Mostly few, so that each meets all that there is */
		n = pick(&seed, 4) ? pick(&seed, 8) * 2400 : pick(&seed, NR);
		switch (pick(&seed, 8)) {
		case 0:
			model_until(now + pick(&seed, 300));
			break;
		case 1:
		case 2:
			model_take(pick(&seed, BATCH + 1));
			break;
		case 3:
			EXPECT_EQ(twheel_shared_cancel(&area, n), model[n].state,
				  "timer %u", n);
			model[n].state = TWHEEL_STATE_NONE;
			break;
		case 4:
			if (!pick(&seed, 16)) {
				model_arm(n, never[pick(&seed, 4)]);
				break;
			}
			fallthrough;
		default:
			model_arm(n, now + pick(&seed, 2000) - pick(&seed, 100));
		}
		if (tap_bad)
			tap_bail("step %u", step);
	}
	EXPECT_TRUE(doorbells > steps / 200 && doorbells < steps / 4, "%u doorbells", doorbells);
}

/* What the kernel says about groups is what counts */
static void other_groups(void)
{
	for (group = LEAST_GROUP; group <= 64 * GROUP; group *= 16) {
		ringing();
		taken_over();
		beside_model();
	}
	group = GROUP;
}

#define OWNERS 2
#define THREADS_USE (4 * OWNERS)

static __u64 armed, ended;
static bool several;
static bool over;

/* Until there is none: how many */
static unsigned int take_all(__u64 *state)
{
	unsigned int timers[BATCH], n, i, all = 0;

	do {
		n = twheel_shared_take(&area, timers, 1 + pick(state, BATCH));
		for (i = 0; i < n; i++)
			EXPECT_TRUE(timers[i] < THREADS_USE, "%u", timers[i]);
		all += n;
	} while (n);
	return all;
}

static void *own(void *arg)
{
	__u64 self = (uintptr_t)arg, state = seed + self, arms = 0, ends = 0;
	__u64 deadline[THREADS_USE] = { 0 }, time = 0;
	unsigned int step, n;
	bool late;
	int ret;

	for (step = 0; step < steps; step++) {
		/* Not by a thread of its own, which may seldom have a processor */
		if (!pick(&state, 4)) {
			time = load(&now) + 10;
			until(time);
		}
		/* What takes is here as well where it may be, for the same reason */
		if (several)
			ends += take_all(&state);
		else if (!pick(&state, 256))
			sched_yield();
		n = pick(&state, THREADS_USE / OWNERS) * OWNERS + self;
		late = deadline[n] < time;
		if (pick(&state, 4)) {
			deadline[n] = load(&now) + pick(&state, 50);
			ret = twheel_shared_arm(&area, n, deadline[n]);
			arms++;
		} else {
			ret = twheel_shared_cancel(&area, n);
		}
		if (!EXPECT_TRUE(ret >= 0, "%d", ret) ||
		    !EXPECT_TRUE(ret != TWHEEL_STATE_PENDING || !late, "timer %u is lost", n))
			break;
		ends += ret != TWHEEL_STATE_NONE;
	}
	__atomic_fetch_add(&armed, arms, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ended, ends, __ATOMIC_RELAXED);
	return NULL;
}

static void *take(void *arg)
{
	__u64 ends = 0, state = seed;
	bool last;

	(void)arg;
	do {
		last = load(&over);
		ends += take_all(&state);
		sched_yield();
	} while (!last);
	__atomic_fetch_add(&ended, ends, __ATOMIC_RELAXED);
	return NULL;
}

static pthread_t thread(void *(*fn)(void *), uintptr_t arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, (void *)arg))
		tap_bail("pthread_create");
	return t;
}

/* Each arming has one end: withdrawn by the next, cancelled, or taken */
static void threads(void)
{
	pthread_t owner[OWNERS], taker;
	unsigned int i;

	fresh();
	used = THREADS_USE;
	/* So small that entries are written over all the time */
	memory.head.ring_mask = THREADS_USE - 1;
	area.ring_mask = THREADS_USE - 1;
	armed = 0;
	ended = 0;
	over = false;
	taker = thread(take, 0);
	for (i = 0; i < OWNERS; i++)
		owner[i] = thread(own, i);
	for (i = 0; i < OWNERS; i++)
		pthread_join(owner[i], NULL);
	until(load(&now) + 1000);
	store(&over, true);
	pthread_join(taker, NULL);
	EXPECT_TRUE(armed > steps);
	EXPECT_EQ(ended, armed);
}

/* Takes only when it is announced that there is something. */
static void *take_announced(void *arg)
{
	__u64 ends = 0, state = seed + (uintptr_t)arg;

	while (!load(&over)) {
		if (load(&memory.seen) != load(&memory.written))
			ends += take_all(&state);
		sched_yield();
	}
	__atomic_fetch_add(&ended, ends, __ATOMIC_RELAXED);
	return NULL;
}

/* The stand-in looks; and soon again, for the program, which then needs no doorbell */
static void look(__u64 time)
{
	store(&now, time);
	kernel_runs();
	store(&memory.head.next_wake, 0);
}

static void test_announced(void)
{
	pthread_t takers[2];
	__u64 ends = 0, state = seed;
	unsigned int step, i, drained;
	int ret;

	fresh();
	memory.head.features = TWHEEL_AREA_BPF;
	memory.head.ring_mask = THREADS_USE - 1;
	area.ring_mask = THREADS_USE - 1;
	memory.head.next_wake = 0;
	used = THREADS_USE;
	ended = 0;
	over = false;
	for (i = 0; i < 2; i++)
		takers[i] = thread(take_announced, i);
	for (step = 0; step < steps && !tap_bad; step++) {
		ret = twheel_shared_arm(&area, pick(&state, THREADS_USE), now + pick(&state, 20));
		EXPECT_TRUE(ret >= 0, "%d", ret);
		ends += ret != TWHEEL_STATE_NONE;
		if (!pick(&state, 3))
			look(now + 10);
		if (!pick(&state, 64))
			sched_yield();
	}
	look(now + 1000);
	for (drained = 0; drained < 20000 && load(&memory.head.head) != tail; drained++)
		usleep(1000);
	EXPECT_EQ(load(&memory.head.head), tail, "announced, and not taken");
	store(&over, true);
	for (i = 0; i < 2; i++)
		pthread_join(takers[i], NULL);
	EXPECT_EQ(ended + ends, step);
	EXPECT_EQ(memory.seen, memory.written);
}

/* First the owners take as well, and then only one thread */
static void test_threads(void)
{
	several = true;
	threads();
	several = false;
	threads();
}

int main(void)
{
	tap_start(400);
	steps = number_of("STEPS", STEPS);
	RUN(mapping, "mapped, or an error");
	RUN(ringing, "the doorbell rings when it has to, and only then");
	RUN(others_halfway, "no thread relies on what another has only begun");
	RUN(taken_over, "taken over from a process that died");
	RUN(beside_model, "random operations beside a model");
	RUN(other_groups, "groups of 64, 1,024 and 16,384");
	RUN(test_announced, "two threads take what a BPF program announces");
	RUN(test_threads, "two threads arm, and three take, or one");
	twheel_close(tw);
	return tap_end();
}
