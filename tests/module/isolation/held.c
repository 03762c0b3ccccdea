// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile user tries to keep the processor: by interrupts, by long holds of a lock,
 * and by calls that don't end when he is killed.
 *
 * For a guest in which one instruction takes 1 ns (scripts/vm -i).
 * module parameters: max_user_timers=33554432
 * Environment: TIMES=N for N times as long.
 */
#include "cgroup.h"
#include "shared.h"

#include <limits.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#define MALLORY 1000

/* Five thousand wheels, in as many processes as that needs */
#define PROCESSES 5
#define WHEELS 1000

/*
 * Beside what as many timerfds would do: how much more of the processor another program
 * may lose, and the interrupts of timers, both in %
 */
#define SHARE 12.5
#define INTERRUPTS 130

/* Threads that take a lock in turn, with as many operations as it allows */
#define THREADS 8
#define BATCH 256

/* Most time for which somebody with a real-time priority waits, and of a run, in ns */
#define LATE (250 * USEC)
#define RUN_MOST (110 * USEC)

/* A killed call is at it for so long, and may take so long to end, in ns */
#define INSIDE (5 * MSEC)
#define ENDED (25 * MSEC)

/* A lot of timers, of which no call is through before it is killed */
#define MANY 1000000

/**
 * struct shared - what processes know of each other
 * @ready: those that have prepared what they will use
 * @over: they are to end
 * @inside: the call to be killed has begun
 * @done: it ended by itself
 */
struct shared {
	int ready;
	bool over;
	bool inside;
	bool done;
};

static struct shared *shared;
static struct twheel_op ops[BATCH * THREADS];
static struct twheel_event events[BATCH];
static double alone;	/* what another program counts in an ns */

static __u64 duration(void)
{
	return number_of("TIMES", 1) * 500 * MSEC;
}

/* ---- interrupts ---- */

/* With a period of a microsecond; the next begins when it is read, as with a timerfd */
static int periodic_wheel(void)
{
	struct twheel_op op = op_arm(0, USEC, 0);
	int fd = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);

	op.interval = USEC;
	arm_op(fd, op);
	return fd;
}

static int periodic_timerfd(void)
{
	struct itimerspec every = { { 0, USEC }, { 0, USEC } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL))
		tap_bail("timerfd: %s", strerror(errno));
	return fd;
}

static int (*periodic)(void);

static void interrupts_child(void)
{
	static int fds[WHEELS];
	int i;

	allow_descriptors(WHEELS);
	become(MALLORY);
	for (i = 0; i < WHEELS; i++)
		fds[i] = periodic();
	count_up(&shared->ready);
	while (!is_set(&shared->over))
		for (i = 0; i < WHEELS; i++)
			if (read(fds[i], events, sizeof(events)) < 0 && errno != EAGAIN)
				tap_bail("read: %s", strerror(errno));
}

/* Nobody, where @opens is NULL */
static struct measured measure_beside(const char *what, int (*opens)(void))
{
	int i, nr = opens ? PROCESSES : 0;
	pid_t pids[PROCESSES];
	struct measured m;

	memset(shared, 0, sizeof(*shared));
	periodic = opens;
	for (i = 0; i < nr; i++) {
		pids[i] = tap_fork(interrupts_child);
		cgroup_move("hostile", pids[i]);
	}
	EXPECT_TRUE(all_ready(&shared->ready, nr));
	m = measure(1, "hostile", 50 * MSEC, duration());
	tap_diag("beside %s: another program keeps %.1f %%, their own time is %.1f %%",
		 what, 100 * m.count / (alone ?: m.count), 100 * m.own);
	tap_diag("beside %s: %llu interrupts in a second", what, m.interrupts);
	set(&shared->over);
	for (i = 0; i < nr; i++)
		tap_join(pids[i]);
	return m;
}

static void test_interrupts(void)
{
	struct measured timerfds, wheels;

	cgroup_write("", "cgroup.subtree_control", "+cpu");
	cgroup_make("other");
	cgroup_make("hostile");
	alone = measure_beside("nobody", NULL).count;
	timerfds = measure_beside("timerfds", periodic_timerfd);
	wheels = measure_beside("wheels", periodic_wheel);
	EXPECT_TRUE(wheels.count >= timerfds.count - SHARE / 100 * alone);
	EXPECT_TRUE(100 * wheels.interrupts <= INTERRUPTS * timerfds.interrupts);
}

/* ---- holds of a lock ---- */

static int wheel;

/* Each with operations of its own, some of which are refused */
static void *holding_thread(void *arg)
{
	struct twheel_op *own = arg;
	__u64 seed = 1 + (own - ops), i;

	while (!is_set(&shared->over)) {
		for (i = 0; i < BATCH; i++) {
			own[i].opcode = 1 + random_next(&seed) % 3;
			own[i].deadline = 0;
			own[i].interval = 0;
			own[i].user_data = 0;
			if (own[i].opcode == TWHEEL_OP_CANCEL)
				continue;
			own[i].deadline = random_next(&seed) % (20 * MSEC);
			if (random_next(&seed) % 2)
				own[i].interval = MSEC;
		}
		submit(wheel, own, BATCH);
		read_events(wheel, events, BATCH);
	}
	return NULL;
}

static void holding_child(void)
{
	pthread_t threads[THREADS];
	int i;

	become(MALLORY);
	wheel = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
	for (i = 0; i < BATCH * THREADS; i++)
		ops[i] = op_arm(0, MSEC, 0);
	count_up(&shared->ready);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, holding_thread, &ops[i * BATCH]))
			tap_bail("pthread_create");
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_TRUE(wheel_stats(wheel).armed > 1000);
}

static void test_holds(void)
{
	pid_t holding, beating;

	memset(shared, 0, sizeof(*shared));
	holding = tap_fork(holding_child);
	EXPECT_TRUE(all_ready(&shared->ready, 1));
	beating = beats_begin();
	sleep_ns(duration());
	set(&shared->over);
	beats_end(beating);
	tap_join(holding);
	tap_diag("%s: the latest of %llu beats came after %llu ns; the longest run took %llu ns",
		 tap_name, beats->nr, beats->latest, module_counter("longest_run"));
	/* (Of the wheels of all tests until now) */
	EXPECT_TRUE(module_counter("longest_run") <= RUN_MOST);
	EXPECT_TRUE(beats->nr > 100);
	EXPECT_TRUE(beats->latest <= LATE, "%llu ns", beats->latest);
}

/* ---- scans of shared timers ---- */

static struct client client;

static void dirty_each(__u32 step, __u64 deadline)
{
	__u32 i;

	for (i = 0; i < MANY; i += step) {
		client.words[i] = deadline | ARMED;
		shared_push(&client, i);
	}
	EXPECT_EQ(doorbell_ring(client.fd), 0);
}

/* One timer in each group; then all of them: far away, earlier, due. */
static void test_scans(void)
{
	__u64 from = now(CLOCK_MONOTONIC) / 2 * 2;

	client_open(&client, TWHEEL_CLOCK_MONOTONIC, 0, MANY);
	dirty_each(client.group, from);
	dirty_each(1, from + HOUR);
	EXPECT_EQ(wheel_info(client.fd).pending, MANY);
	dirty_each(1, from + HOUR / 2);
	dirty_each(1, from);
	EXPECT_EQ(wheel_info(client.fd).pending, 0);
	client_close(&client);
	tap_diag("%s: the longest run took %llu ns", tap_name, module_counter("longest_run"));
	/* (Of the wheels of all tests until now) */
	EXPECT_TRUE(module_counter("longest_run") <= RUN_MOST);
}

/* ---- calls that are killed ---- */

static void *large;

static void submit_call(void)
{
	/* The array is not as long, but nobody gets to its end. */
	submit(wheel, large, INT_MAX);
}

static void read_call(void)
{
	if (read(wheel, large, 1UL << 30) < 0)
		tap_diag("read: %s", strerror(errno));
}

static void drain_call(void)
{
	drain(wheel, large, INT_MAX);
}

static void doorbell_call(void)
{
	doorbell_ring(wheel);
}

static void shared_read_call(void)
{
	if (read(wheel, large, sizeof(struct twheel_event)) < 0)
		tap_diag("read: %s", strerror(errno));
}

static void setup_call(void)
{
	shared_setup(wheel, TWHEEL_CLOCK_MONOTONIC, 0, 0, 4 * MANY);
}

static void (*call)(void);

static void called_child(void)
{
	set(&shared->inside);
	call();
	set(&shared->done);
	for (;;)
		pause();
}

static void killed_in(void (*calls)(void), __u64 most)
{
	pid_t pid;
	__u64 from, took;
	int status;

	call = calls;
	shared->inside = false;
	shared->done = false;
	pid = tap_fork(called_child);
	while (!is_set(&shared->inside))
		sleep_ns(10 * USEC);
	sleep_ns(INSIDE);
	EXPECT_TRUE(!is_set(&shared->done), "it was through before");
	from = now(CLOCK_MONOTONIC);
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	took = now(CLOCK_MONOTONIC) - from;
	EXPECT_TRUE(WIFSIGNALED(status) && !is_set(&shared->done));
	tap_diag("%s: gone after %llu us", tap_name, took / USEC);
	EXPECT_TRUE(took <= most, "%llu us", took / USEC);
}

static void map_large(void)
{
	large = mmap(NULL, 1UL << 30, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (large == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
}

static void test_submit(void)
{
	struct twheel_op *op = large;
	int i;

	wheel = wheel_open(O_NONBLOCK);
	for (i = 0; i < MANY; i++)
		op[i] = op_for(TWHEEL_OP_CANCEL, 1 + i);
	killed_in(submit_call, ENDED);
	close(wheel);
}

/* In a wheel with as many timers of that deadline */
static void test_filled(__u64 deadline, void (*calls)(void))
{
	wheel = wheel_open(O_NONBLOCK);
	arm_numbered(wheel, TWHEEL_ABS, deadline, 0, MANY);
	killed_in(calls, ENDED);
	close(wheel);
}

/* Where all were cancelled, nothing is handed over; and others have their turns meanwhile. */
static void test_drain_cancelled(void)
{
	__u64 from, took;
	pid_t beating;
	__u32 i;

	client_open(&client, TWHEEL_CLOCK_MONOTONIC, 0, MANY);
	for (i = 0; i < MANY; i++)
		client.words[i] = (HOUR * 1000) | ARMED;
	memset(client.dirty, 0xff, (MANY + 63) / 64 * sizeof(__u64));
	memset(client.groups, 0xff, (MANY + 16383) / 16384 * sizeof(__u64));
	EXPECT_EQ(doorbell_ring(client.fd), 0);
	EXPECT_EQ(wheel_info(client.fd).pending, MANY);
	for (i = 0; i < MANY; i++)
		client.words[i] &= ~ARMED;
	beating = beats_begin();
	while (!__atomic_load_n(&beats->nr, __ATOMIC_RELAXED))
		sleep_ns(BEAT);
	from = now(CLOCK_MONOTONIC);
	EXPECT_EQ(drain(client.fd, large, MANY), 0);
	took = now(CLOCK_MONOTONIC) - from;
	beats_end(beating);
	tap_diag("%s: it took %llu us; the latest beat came after %llu ns", tap_name, took / USEC,
		 beats->latest);
	EXPECT_TRUE(took > 10 * LATE, "it has shown nothing");
	EXPECT_TRUE(beats->latest <= LATE, "%llu ns", beats->latest);
	client_close(&client);
}

/* All timers due, no room for any, and all of them dirty again and again */
static void spoil(void)
{
	__u32 i;

	client_open(&client, TWHEEL_CLOCK_MONOTONIC, 0, MANY);
	wheel = client.fd;
	for (i = 0; i < MANY; i++)
		client.words[i] = ARMED;
	client.area->head = -1 - client.area->ring_mask;
}

static void dirtying_child(void)
{
	/* So that it is not this one that the killed one waits for */
	if (nice(19) < 0)
		tap_bail("nice: %s", strerror(errno));
	for (;;) {
		memset(client.dirty, 0xff, (MANY + 63) / 64 * sizeof(__u64));
		memset(client.groups, 0xff, (MANY + 16383) / 16384 * sizeof(__u64));
	}
}

static void test_doorbell(void)
{
	pid_t other;

	spoil();
	other = tap_fork(dirtying_child);
	sleep_ns(10 * MSEC);
	killed_in(doorbell_call, ENDED);
	end(other);
	client_close(&client);
}

/* A wheel looks as if something were ready, and nothing is */
static void spoiling_child(void)
{
	if (nice(19) < 0)
		tap_bail("nice: %s", strerror(errno));
	for (;;)
		client.area->head = client.area->tail - client.area->ring_mask - 1;
}

static void test_shared_read(void)
{
	pid_t other;
	__u32 i;

	client_open(&client, TWHEEL_CLOCK_MONOTONIC, 0, MANY);
	wheel = client.fd;
	fcntl(wheel, F_SETFL, 0);
	for (i = 0; i <= client.area->ring_mask; i++)
		client.ring[i] = ~0U;
	other = tap_fork(spoiling_child);
	killed_in(shared_read_call, ENDED);
	end(other);
	client_close(&client);
}

/* Wheels that an epoll looks at one after the other, each with work for several runs */
#define EPOLLED 4000
#define EPOLLED_TIMERS 512

static int epoll;

static void epoll_call(void)
{
	static struct epoll_event found[EPOLLED];

	if (epoll_wait(epoll, found, EPOLLED, -1) < 0)
		tap_diag("epoll_wait: %s", strerror(errno));
}

static void test_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	static int fds[EPOLLED];
	__u64 due;
	int i;

	allow_descriptors(EPOLLED);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < EPOLLED; i++) {
		fds[i] = wheel_new(TWHEEL_CLOCK_MONOTONIC, USEC);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event))
			tap_bail("epoll_ctl: %s", strerror(errno));
	}
	due = now(CLOCK_MONOTONIC) + 10 * SEC;
	for (i = 0; i < EPOLLED; i++)
		arm_numbered(fds[i], TWHEEL_ABS, due, 0, EPOLLED_TIMERS);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) < due, "it took too long");
	sleep_ns(due - now(CLOCK_MONOTONIC));
	killed_in(epoll_call, ENDED);
	for (i = 0; i < EPOLLED; i++)
		close(fds[i]);
	close(epoll);
}

/* Memory is had as a whole: so this takes as long as that */
static void test_setup(void)
{
	wheel = wheel_open(0);
	killed_in(setup_call, 8 * ENDED);
	close(wheel);
}

int main(void)
{
	tap_start(1000);
	open_to_all();
	shared = map_shared(sizeof(*shared));
	counter_init();
	map_large();
	RUN(test_interrupts, "five thousand wheels with ticks of a microsecond");
	RUN(test_holds, "threads with full batches against the timer");
	RUN(test_scans, "a million shared timers that are dirty");
	RUN(test_submit, "SUBMIT of as many as can be said is killed");
	RUN_CALL(test_filled(1, read_call), "read of a gigabyte is killed");
	RUN_CALL(test_filled(HOUR * 1000, drain_call), "DRAIN of all is killed");
	RUN(test_drain_cancelled, "others run while cancelled timers are drained");
	RUN(test_doorbell, "a doorbell without end is killed");
	RUN(test_shared_read, "a read without end is killed");
	RUN(test_epoll, "epoll_wait of thousands of wheels that are due is killed");
	RUN(test_setup, "SETUP of millions of shared timers is killed");
	return tap_end();
}
