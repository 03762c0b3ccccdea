// SPDX-License-Identifier: GPL-2.0
/*
 * A processor is taken away and given back, again and again: while the wheel's
 * hrtimer is on it, while wheels wait for their turn there, and while threads on both
 * arm and read.
 *
 * most seconds: 300
 */
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#define ONLINE "/sys/devices/system/cpu/cpu1/online"
#define ROUNDS 5
#define MOST_ROUNDS 12
#define SLOTS 4096
#define BATCH 64
#define ARMERS 2

static unsigned int seconds = 5;

static void plug(bool online)
{
	machine_file(ONLINE, online ? "1" : "0");
}

/* False when there is no such processor now */
static bool pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* On a busy host it may not have come up again after a suspend. */
static void pin_to_second(void)
{
	int tries;

	for (tries = 0; !pin(1); tries++) {
		if (tries == 3)
			tap_bail("no second processor");
		write_text(ONLINE, "1");
	}
}

/* On which processor is the hrtimer of the one wheel that has timers? */
static int timer_cpu(void)
{
	FILE *f = fopen("/proc/timer_list", "re");
	char line[256];
	int cpu = -1, found = -1;

	if (!f)
		tap_bail("/proc/timer_list: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "cpu: ", 5))
			cpu = atoi(line + 5);
		if (strstr(line, "tw_timer_fn"))
			found = cpu;
	}
	fclose(f);
	return found;
}

/*
 * One timer, whose hrtimer is on the processor that goes; nothing else wakes the
 * wheel. True when the processor was gone before the timer was due.
 */
static bool go_once(__u64 delay)
{
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);
	struct twheel_event ev;
	bool moved = false;
	__u64 due;

	pin_to_second();
	due = now(CLOCK_MONOTONIC) + delay;
	arm(fd, TWHEEL_ABS, due, delay);
	if (timer_cpu() == 1) {
		pin(0);
		plug(false);
		moved = now(CLOCK_MONOTONIC) < due;
	}
	if (collect(fd, &ev, 1)) {
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= due, "early");
		EXPECT_EQ(ev.deadline, due);
		EXPECT_EQ(ev.user_data, delay);
	}
	EXPECT_EQ(wheel_info(fd).pending, 0);
	close(fd);
	plug(true);
	return moved;
}

static void go_with_timer(void)
{
	unsigned int i, moved = 0;
	__u64 delay = 200 * MSEC;

	for (i = 0; i < MOST_ROUNDS && moved < ROUNDS; i++) {
		if (go_once(delay))
			moved++;
		else if (delay < PATIENCE_MS * MSEC / 4)
			/* The machine is slow. */
			delay *= 2;
	}
	EXPECT_TRUE(moved, "it was never tried");
	tap_diag("the hrtimer moved to another processor %u times in %u rounds",
		 moved, i);
}

/* Enough wheels that they have to wait for their turns */
#define MANY 2000

static int many[MANY], eventfds[MANY];

/* With an eventfd, the kernel turns them by itself. */
static void open_many(__u64 due)
{
	struct rlimit limit = { 3 * MANY, 3 * MANY };
	int i;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		tap_bail("RLIMIT_NOFILE: %s", strerror(errno));
	for (i = 0; i < MANY; i++) {
		many[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);
		eventfds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		EXPECT_EQ(wheel_eventfd(many[i], eventfds[i]), 0);
		arm(many[i], TWHEEL_ABS, due, i);
	}
}

/* This asks without doing their work. */
static unsigned int still_deferred(void)
{
	return module_counter("pending");
}

static void close_many(void)
{
	int i;

	if (!WAIT_FOR(!still_deferred()))
		EXPECT_EQ(still_deferred(), 0, "they have no turn");
	for (i = 0; i < MANY; i++) {
		struct twheel_event ev;

		EXPECT_TRUE(collect(many[i], &ev, 1) && ev.user_data == (__u64)i);
		close(many[i]);
		close(eventfds[i]);
	}
}

/*
 * The processor begins to go so long before their timers are due. 0 when some still waited for a
 * turn on it; more when it was gone too early, and less when too late.
 */
static int go_with_queue_once(__u64 lead)
{
	__u64 due = now(CLOCK_MONOTONIC) + SEC;
	int ret;

	pin_to_second();
	open_many(due);
	pin(0);
	if (now(CLOCK_MONOTONIC) < due - lead)
		sleep_ns(due - lead - now(CLOCK_MONOTONIC));
	plug(false);
	/* Two ticks after they were due */
	ret = now(CLOCK_MONOTONIC) <= due + 2 * MSEC ? 1 : still_deferred() ? 0 : -1;
	close_many();
	plug(true);
	return ret;
}

static void go_with_queue(void)
{
	__u64 lead = 64 * MSEC, step = 32 * MSEC;
	unsigned int i, waited = 0;

	/* How long it takes to go depends on the host. */
	for (i = 0; i < 2 * MOST_ROUNDS && waited < ROUNDS; i++) {
		int ret = go_with_queue_once(lead);

		waited += !ret;
		lead = ret < 0 ? lead + step : ret ? lead - lead / 4 : lead;
	}
	EXPECT_TRUE(waited, "it was never tried");
	tap_diag("wheels waited when it was gone %u times in %u rounds", waited, i);
}

/* A timer that one armer has at a time */
struct slot {
	__u64 least;		/* it may not be ready before */
	__u32 life;		/* how often it was armed; part of its user data */
	__u32 read;		/* the life that was read last */
};

static struct slot slots[ARMERS][SLOTS];
static __u64 armed[ARMERS], read_in_all;
static int wheel;
static bool stop;

static __u32 peek(__u32 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static bool gone(struct slot *s)
{
	return peek(&s->read) == s->life;
}

/* Soon; or in a wide slot with many others, so that one run is not enough */
static __u64 random_delay(__u64 *seed)
{
	__u64 r = random_next(seed) >> 8;

	return r % 4 ? r % (50 * MSEC) : 150 * MSEC + r % (50 * MSEC);
}

static void arm_batch(unsigned int me, __u32 first, __u64 *seed)
{
	struct twheel_op ops[BATCH];
	__u32 i, nr = 0;

	for (i = first; i < first + BATCH; i++) {
		struct slot *s = &slots[me][i];

		if (!gone(s))
			continue;
		s->life++;
		ops[nr] = op_arm(0, random_delay(seed),
				 (__u64)s->life << 32 | me << 16 | i);
		s->least = now(CLOCK_MONOTONIC) + ops[nr++].deadline;
	}
	submit_all(wheel, ops, nr);
	armed[me] += nr;
}

static void *armer(void *arg)
{
	unsigned int me = (unsigned long)arg;
	__u64 seed = 88172645463325252ULL + me;
	__u32 first = 0;

	while (!stopped()) {
		/* Back to it when it is given back */
		if (!first)
			pin(me);
		arm_batch(me, first, &seed);
		first = (first + BATCH) % SLOTS;
	}
	return NULL;
}

static void got(const struct twheel_event *ev, __u64 at)
{
	__u32 life = ev->user_data >> 32, me = ev->user_data >> 16 & 0xffff;
	struct slot *s = &slots[me][ev->user_data & (SLOTS - 1)];

	if (!EXPECT_TRUE(me < ARMERS, "user data %llx", ev->user_data))
		return;
	EXPECT_TRUE(life == s->life && peek(&s->read) != life,
		    "life %u of timer %llx, it is at %u", life, ev->id, s->life);
	EXPECT_TRUE(at >= ev->deadline && ev->deadline >= s->least,
		    "early: %llu, due %llu, at least %llu", at, ev->deadline,
		    s->least);
	__atomic_store_n(&s->read, life, __ATOMIC_RELEASE);
	__atomic_add_fetch(&read_in_all, 1, __ATOMIC_RELAXED);
}

static bool read_some(void)
{
	struct twheel_event ev[128];
	long i, n = read_events(wheel, ev, ARRAY_SIZE(ev));
	__u64 at = now(CLOCK_MONOTONIC);

	EXPECT_TRUE(n > 0 || n == -EAGAIN, "read gave %ld", n);
	for (i = 0; i < n; i++)
		got(&ev[i], at);
	return n > 0;
}

static void *reader(void *arg)
{
	(void)arg;
	while (!stopped())
		if (readable(wheel, 100))
			read_some();
	return NULL;
}

static unsigned int left(void)
{
	unsigned int me, i, n = 0;

	while (read_some())
		;
	for (me = 0; me < ARMERS; me++)
		for (i = 0; i < SLOTS; i++)
			n += !gone(&slots[me][i]);
	return n;
}

static unsigned int plug_for_a_while(void)
{
	__u64 end = now(CLOCK_MONOTONIC) + seconds * SEC;
	unsigned int times = 0;

	while (times < 3 || now(CLOCK_MONOTONIC) < end) {
		plug(false);
		sleep_ns(30 * MSEC);
		plug(true);
		sleep_ns(30 * MSEC);
		times++;
	}
	return times;
}

static void work(void)
{
	pthread_t threads[ARMERS + 1];
	unsigned long i;
	unsigned int times;
	__u64 deferred = module_counter("deferred");

	wheel = wheel_new(TWHEEL_CLOCK_MONOTONIC, MSEC);
	for (i = 0; i < ARMERS; i++)
		pthread_create(&threads[i], NULL, armer, (void *)i);
	pthread_create(&threads[i], NULL, reader, NULL);
	times = plug_for_a_while();
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	if (!WAIT_FOR(!left()))
		EXPECT_EQ(left(), 0, "lost");
	EXPECT_EQ(wheel_info(wheel).pending, 0);
	EXPECT_EQ(wheel_info(wheel).ready, 0);
	EXPECT_EQ(read_in_all, armed[0] + armed[1]);
	deferred = module_counter("deferred") - deferred;
	EXPECT_TRUE(deferred, "no run left anything");
	tap_diag("%u times, %llu timers, %llu runs that left some", times, read_in_all, deferred);
	close(wheel);
}

int main(void)
{
	if (!quick())
		seconds = 60;
	tap_start(280);
	RUN(go_with_timer, "a processor goes that has the wheel's hrtimer");
	RUN(go_with_queue, "a processor goes on which wheels wait for their turn");
	RUN(work, "a processor goes and comes under load");
	return tap_end();
}
