// SPDX-License-Identifier: GPL-2.0
/*
 * The timers that the kernel itself uses, mod_timer() and hrtimers, measured as
 * bench.c measures those of programs: the same operations in the same order with
 * the same times. It is all done when the module is loaded; results go to the
 * kernel's log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#define BATCH 256
#define DENSITY 256
#define REPEAT 16384
#define LEAD NSEC_PER_SEC
#define TIMEOUT (60 * NSEC_PER_SEC)
#define PUSHES 20
#define PUSH_EVERY (5 * NSEC_PER_SEC)
#define EXPIRES_ONE_IN 20

/* A jiffy, between two of which others may run. */
#define SLICE (NSEC_PER_SEC / HZ)

/* Figures are printed with one digit after the point. */
#define FRACTION 10

/**
 * struct kind - a kind of timer
 * @name: as printed
 * @size: bytes of a timer
 * @unit: what it counts time in, in ns
 * @setup: initialise a timer
 * @arm: arm or modify the timers of a batch, so many units ahead
 * @cancel: cancel those of a batch, which must be pending
 */
struct kind {
	const char *name;
	size_t size;
	u32 unit;
	void (*setup)(size_t timer);
	void (*arm)(const u32 *list, const u64 *time, unsigned int n);
	void (*cancel)(const u32 *list, unsigned int n);
};

static unsigned long sizes[16];
static int nr_sizes;
module_param_array(sizes, ulong, &nr_sizes, 0);
MODULE_PARM_DESC(sizes, "Numbers of timers to measure with");

static const struct kind *kind;
static size_t timers, left, early, not_pending;
static bool too_slow;
static u32 *order;
static u64 base_spun, base_took;
static struct rnd_state rnd_state;
static void *memory;

/* The times of a batch, in units. */
static u64 times[BATCH];

static struct timer_list *timer_of(size_t i)
{
	return (struct timer_list *)memory + i;
}

static struct hrtimer *hrtimer_of(size_t i)
{
	return (struct hrtimer *)memory + i;
}

static void timer_expired(struct timer_list *timer)
{
	early += time_before(jiffies, timer->expires);
	left--;
}

static void timer_setup_one(size_t i)
{
	timer_setup(timer_of(i), timer_expired, 0);
}

static void timer_arm(const u32 *list, const u64 *time, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		mod_timer(timer_of(list[i]), jiffies + time[i] + 1);
}

static void timer_cancel(const u32 *list, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		not_pending += !timer_delete(timer_of(list[i]));
}

static enum hrtimer_restart hrtimer_expired(struct hrtimer *timer)
{
	left--;
	return HRTIMER_NORESTART;
}

static void hrtimer_setup_one(size_t i)
{
	hrtimer_init(hrtimer_of(i), CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	hrtimer_of(i)->function = hrtimer_expired;
}

static void hrtimer_arm(const u32 *list, const u64 *time, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		hrtimer_start(hrtimer_of(list[i]), ns_to_ktime(time[i]), HRTIMER_MODE_REL);
}

static void hrtimer_cancel_batch(const u32 *list, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		not_pending += !hrtimer_cancel(hrtimer_of(list[i]));
}

static const struct kind kinds[] = {
	{
		.name = "mod_timer",
		.size = sizeof(struct timer_list),
		.unit = SLICE,
		.setup = timer_setup_one,
		.arm = timer_arm,
		.cancel = timer_cancel,
	}, {
		.name = "hrtimer",
		.size = sizeof(struct hrtimer),
		.unit = 1,
		.setup = hrtimer_setup_one,
		.arm = hrtimer_arm,
		.cancel = hrtimer_cancel_batch,
	},
};

static u64 rnd(u64 below)
{
	return mul_u64_u32_shr(below, prandom_u32_state(&rnd_state), 32);
}

static void shuffle(void)
{
	size_t i, j;

	for (i = timers - 1; i; i--) {
		j = rnd(i + 1);
		swap(order[i], order[j]);
	}
}

/* As in bench.c: returns the instructions of its own. */
static u64 spin(u64 ns)
{
	u64 spun = 0;

	while (spun + 512 <= ns) {
		u64 turns = min_t(u64, ns - spun, SLICE) / 512;

		spun += turns * 512;
		asm volatile("1: .rept 510\n\tnop\n\t.endr\n\tdec %0\n\tjnz 1b"
			     : "+r"(turns) : : "cc");
		cond_resched();
	}
	return spun;
}

static void calibrate(void)
{
	u64 start;

	/* What is left of whoever ran before. */
	spin(2 * NSEC_PER_SEC);
	start = ktime_get_ns();
	base_spun = spin(64 * NSEC_PER_SEC);
	base_took = ktime_get_ns() - start;
}

/* Spin; returns the instructions that others took, and not without any timer. */
static s64 taken(u64 ns)
{
	u64 start = ktime_get_ns();
	u64 spun = spin(ns);

	return mul_u64_u64_div_u64(ktime_get_ns() - start, base_spun, base_took) - spun;
}

static void print(const char *workload, const char *operation, s64 total, u64 count)
{
	u64 value;
	u32 rest;

	value = div_u64_rem(div64_u64(max_t(s64, total, 0) * FRACTION, count), FRACTION,
			    &rest);
	pr_info("{\"suite\":\"guest\",\"workload\":\"%s\",\"peer\":\"%s\",\"operation\":\"%s\",\"timers\":%zu,\"batch\":1,\"metric\":\"instructions\",\"value\":%llu.%u}\n",
		workload, kind->name, operation, timers, value, rest);
}

static unsigned int batch_at(size_t i, size_t n)
{
	return min_t(size_t, n - i, BATCH);
}

/* Arm or modify all, uniform from @from to twice that; returns instructions. */
static u64 arm_all(u64 from)
{
	u64 start, took = 0;
	unsigned int batch, j;
	size_t i;

	for (i = 0; i < timers; i += batch) {
		batch = batch_at(i, timers);
		for (j = 0; j < batch; j++)
			times[j] = div_u64(from + rnd(from), kind->unit);
		start = ktime_get_ns();
		kind->arm(order + i, times, batch);
		took += ktime_get_ns() - start;
		cond_resched();
	}
	return took;
}

static u64 cancel_all(void)
{
	unsigned int batch;
	u64 start, took = 0;
	size_t i;

	for (i = 0; i < timers; i += batch) {
		batch = batch_at(i, timers);
		start = ktime_get_ns();
		kind->cancel(order + i, batch);
		took += ktime_get_ns() - start;
		cond_resched();
	}
	return took;
}

/* Spin until all have expired, some time after @end; returns instructions. */
static s64 wait_all(u64 end)
{
	s64 cost = 0;

	while (READ_ONCE(left)) {
		u64 start = ktime_get_ns();

		/* The wheel of mod_timer() may be late by an eighth of the delay. */
		if (start > end + 60 * NSEC_PER_SEC) {
			pr_err("%zu of %zu timers did not expire\n", left, timers);
			break;
		}
		cost += taken(start < end ? end - start : SLICE);
	}
	return cost;
}

static s64 expire(void)
{
	u64 lead = LEAD + timers * 6000;
	u64 end = ktime_get_ns() + lead;
	u64 range = timers * SLICE / DENSITY;
	u64 start;
	unsigned int batch, j;
	size_t i;

	left = timers;
	for (i = 0; i < timers; i += batch) {
		batch = batch_at(i, timers);
		start = ktime_get_ns();
		for (j = 0; j < batch; j++)
			times[j] = div_u64(end - start + rnd(range), kind->unit);
		kind->arm(order + i, times, batch);
		cond_resched();
	}
	return wait_all(end + range);
}

static void uniform(void)
{
	size_t i, rounds = timers < REPEAT ? REPEAT / timers : 1;
	s64 arm = 0, later = 0, earlier = 0, cancel = 0, expiry = 0;

	for (i = 0; i < rounds; i++) {
		arm += arm_all(100 * NSEC_PER_SEC);
		shuffle();
		later += arm_all(200 * NSEC_PER_SEC);
		shuffle();
		earlier += arm_all(50 * NSEC_PER_SEC);
		shuffle();
		cancel += cancel_all();
		expiry += expire();
	}
	print("uniform", "arm", arm, rounds * timers);
	print("uniform", "modify_later", later, rounds * timers);
	print("uniform", "modify_earlier", earlier, rounds * timers);
	print("uniform", "cancel", cancel, rounds * timers);
	print("uniform", "expire_read", expiry, rounds * timers);
}

/* As push_all() of bench.c: arm, with the times that are there, or cancel. */
static s64 push_all(const u32 *list, size_t n, bool arm)
{
	u64 begin = ktime_get_ns();
	unsigned int batch;
	s64 cost = 0;
	size_t i;

	for (i = 0; i < n; i += batch) {
		u64 start = ktime_get_ns(), due = begin + div_u64(PUSH_EVERY * i, n);

		if (start < due)
			cost += taken(due - start);
		batch = batch_at(i, n);
		start = ktime_get_ns();
		if (arm)
			kind->arm(list + i, times, batch);
		else
			kind->cancel(list + i, batch);
		cost += ktime_get_ns() - start;
	}
	if (ktime_get_ns() > begin + PUSH_EVERY) {
		too_slow = true;
		return 0;
	}
	return cost + taken(begin + PUSH_EVERY - ktime_get_ns());
}

static void connections(void)
{
	size_t i, n = 0;
	s64 cost;

	too_slow = false;
	for (i = 0; i < BATCH; i++)
		times[i] = div_u64(TIMEOUT, kind->unit);
	cost = push_all(order, timers, true);
	for (i = 0; i < PUSHES; i++) {
		shuffle();
		cost += push_all(order, timers, true);
	}
	for (i = 0; i < timers; i++) {
		if (order[i] % EXPIRES_ONE_IN) {
			swap(order[i], order[n]);
			n++;
		}
	}
	left = timers - n;
	cost += push_all(order, n, false);
	cost += wait_all(ktime_get_ns() + TIMEOUT);
	if (too_slow)
		pr_warn("%s: too slow to do that with %zu timers\n", kind->name, timers);
	else
		print("connections", "connection", cost, timers);
}

static int measure(void)
{
	size_t i;
	int ret = 0;

	memory = vmalloc(array_size(timers, kind->size));
	order = vmalloc(array_size(timers, sizeof(*order)));
	if (memory && order) {
		for (i = 0; i < timers; i++) {
			kind->setup(i);
			order[i] = i;
		}
		shuffle();
		uniform();
		connections();
		if (early || not_pending || left) {
			pr_err("early: %zu, not pending: %zu\n", early, not_pending);
			ret = -EIO;
			/* Their memory is given back. */
			cancel_all();
		}
	} else {
		ret = -ENOMEM;
	}
	vfree(order);
	vfree(memory);
	return ret;
}

static int __init kernel_timers_init(void)
{
	int i, ret = 0;

	prandom_seed_state(&rnd_state, 1);
	calibrate();
	for (i = 0; i < nr_sizes && !ret; i++) {
		timers = max(sizes[i], 2UL);
		for (kind = kinds; kind < kinds + ARRAY_SIZE(kinds) && !ret; kind++)
			ret = measure();
	}
	return ret;
}
module_init(kernel_timers_init);

static void __exit kernel_timers_exit(void)
{
}
module_exit(kernel_timers_exit);

MODULE_DESCRIPTION("What the kernel's own timers cost");
MODULE_AUTHOR("The twheel authors");
MODULE_LICENSE("GPL");
