/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the test programs share: a wheel by plain ioctls, time, waiting for a
 * condition, and memory that ends where it should.
 *
 * The programs don't use the library, so that a mistake there can't hide one
 * in the module.
 */
#ifndef DEVICE_H
#define DEVICE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include <linux/capability.h>
#include <linux/twheel.h>

#include "tap.h"

#define DEVICE "/dev/twheel"
#define PARAMETERS "/sys/module/twheel/parameters/"

#define USEC 1000ULL
#define MSEC 1000000ULL
#define SEC 1000000000ULL
#define HOUR (3600 * SEC)
#define KTIME_MAX 0x7fffffffffffffffULL
#define PAGE 4096UL

/* Nothing takes so long that works; a machine under load is slow, not dead */
#define PATIENCE_MS 20000

/* Is the module one of which all constants are tiny? See core/sizes.h. */
static inline bool small_world(void)
{
	const char *world = getenv("WORLD");

	return world && !strcmp(world, "small");
}

/* Is there no time for all of it? */
static inline bool quick(void)
{
	const char *all = getenv("ALL");

	return !all || !*all;
}

/* Is it what is done before each commit? */
static inline bool brief(void)
{
	const char *text = getenv("BRIEF");

	return text && *text;
}

static inline __u64 now(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		tap_bail("clock_gettime(%d): %s", (int)clock, strerror(errno));
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static inline void sleep_ns(__u64 ns)
{
	struct timespec ts = { ns / SEC, ns % SEC };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* True as soon as the condition is; false when it was not for very long */
#define WAIT_FOR(cond) ({						\
	__u64 wait_end = now(CLOCK_MONOTONIC) + PATIENCE_MS * MSEC;	\
	bool wait_done;							\
									\
	while (!(wait_done = (cond)) && now(CLOCK_MONOTONIC) < wait_end) \
		sleep_ns(MSEC);						\
	wait_done; })

static inline int wheel_open(int flags)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | flags);

#ifdef SKIP_WITHOUT_DEVICE
	/* In the kernel's own tree, see scripts/in-tree, where this means skipped */
	if (fd < 0 && errno == ENOENT) {
		printf("1..0 # SKIP there is no %s\n", DEVICE);
		_exit(4);
	}
#endif
	if (fd < 0)
		tap_bail("open %s: %s", DEVICE, strerror(errno));
	return fd;
}

/* A clock of clock_gettime(2) as a wheel's, and the other way round */
static inline __u32 wheel_clock(clockid_t clock)
{
	return clock + 0x100;
}

static inline clockid_t clock_of(__u32 clock)
{
	return clock - 0x100;
}

static inline __u64 wheel_now(__u32 clock)
{
	return now(clock_of(clock));
}

/* All wrappers below give 0 (or a count), or the negative error */
static inline long wheel_ioctl(int fd, unsigned long cmd, void *arg)
{
	long ret = syscall(SYS_ioctl, fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

/* SETUP by its fields, those not named being 0: setup_with(fd, .clock = ..., .limit = 10) */
#define setup_with(fd, ...)						\
	wheel_ioctl(fd, TWHEEL_IOC_SETUP, &(struct twheel_setup){	\
		.size = sizeof(struct twheel_setup), __VA_ARGS__ })

static inline long wheel_setup(int fd, __u32 clock, __u64 tick, __u64 limit,
			       __u32 flags)
{
	return setup_with(fd, .clock = clock, .tick = tick, .limit = limit, .flags = flags);
}

static inline int wheel_new(__u32 clock, __u64 tick)
{
	int fd = wheel_open(O_NONBLOCK);
	long ret = wheel_setup(fd, clock, tick, 0, 0);

	if (ret)
		tap_bail("setup clock %u tick %llu: %s", clock, tick,
			 strerror(-ret));
	return fd;
}

/* Another wheel in place of @fd, which is closed if there is one */
static inline void wheel_replace(int *fd, int flags)
{
	if (*fd > 0)
		close(*fd);
	*fd = wheel_open(flags);
}

static inline void wheel_replace_new(int *fd, __u32 clock, __u64 tick)
{
	if (*fd > 0)
		close(*fd);
	*fd = wheel_new(clock, tick);
}

static inline void set_blocking(int fd, bool waits)
{
	if (fcntl(fd, F_SETFL, waits ? 0 : O_NONBLOCK))
		tap_bail("fcntl: %s", strerror(errno));
}

static inline struct twheel_info wheel_info(int fd)
{
	struct twheel_info info = { .size = sizeof(info) };
	long ret = wheel_ioctl(fd, TWHEEL_IOC_INFO, &info);

	if (ret)
		tap_bail("info: %s", strerror(-ret));
	return info;
}

static inline struct twheel_stats wheel_stats(int fd)
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	long ret = wheel_ioctl(fd, TWHEEL_IOC_STATS, &stats);

	if (ret)
		tap_bail("stats: %s", strerror(-ret));
	return stats;
}

static inline struct twheel_op op_arm(__u8 flags, __u64 deadline,
				      __u64 user_data)
{
	return (struct twheel_op){
		.opcode = TWHEEL_OP_ARM,
		.flags = flags,
		.deadline = deadline,
		.user_data = user_data,
	};
}

static inline struct twheel_op op_modify(__u64 id, __u8 flags, __u64 deadline,
					 __u64 user_data)
{
	struct twheel_op op = op_arm(flags, deadline, user_data);

	op.opcode = TWHEEL_OP_MODIFY;
	op.id = id;
	return op;
}

static inline struct twheel_op op_for(__u8 opcode, __u64 id)
{
	return (struct twheel_op){
		.opcode = opcode,
		.id = id,
	};
}

/* @ops: elements of that length */
static inline long submit_sized(int fd, void *ops, __u32 nr, __u32 op_size)
{
	struct twheel_submit arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = op_size,
	};

	return wheel_ioctl(fd, TWHEEL_IOC_SUBMIT, &arg);
}

static inline long submit(int fd, struct twheel_op *ops, __u32 nr)
{
	return submit_sized(fd, ops, nr, sizeof(*ops));
}

/* One operation, or so much of its beginning: its result */
static inline long op_prefix(int fd, struct twheel_op *op, __u32 op_size)
{
	long ret = submit_sized(fd, op, 1, op_size);

	return ret == 1 ? op->result : ret;
}

static inline long op_single(int fd, struct twheel_op *op)
{
	return op_prefix(fd, op, sizeof(*op));
}

static inline long drain(int fd, struct twheel_op *ops, __u32 nr)
{
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)ops,
		.nr = nr,
		.op_size = sizeof(*ops),
	};

	return wheel_ioctl(fd, TWHEEL_IOC_DRAIN, &arg);
}

static inline long wheel_eventfd(int fd, int efd)
{
	struct twheel_eventfd arg = { .size = sizeof(arg), .fd = efd };

	return wheel_ioctl(fd, TWHEEL_IOC_EVENTFD, &arg);
}

/* Arm what must be possible to arm; gives the id */
static inline __u64 arm_op(int fd, struct twheel_op op)
{
	long ret = op_single(fd, &op);

	if (ret)
		tap_bail("arm: %s", strerror(-ret));
	EXPECT_TRUE(op.id, "id of a new timer");
	return op.id;
}

static inline __u64 arm(int fd, __u8 flags, __u64 deadline, __u64 user_data)
{
	return arm_op(fd, op_arm(flags, deadline, user_data));
}

/* Ready before the call returns */
static inline __u64 arm_past(int fd, __u64 user_data)
{
	return arm(fd, TWHEEL_ABS, 1, user_data);
}

static inline __u64 arm_periodic(int fd, __u64 first, __u64 interval,
				 __u64 user_data)
{
	struct twheel_op op = op_arm(TWHEEL_ABS, first, user_data);

	op.interval = interval;
	return arm_op(fd, op);
}

/* Submit that must be done in whole, each operation without an error */
static inline void submit_all(int fd, struct twheel_op *ops, __u32 nr)
{
	__u32 done = 0, i;

	while (done < nr) {
		long ret = submit(fd, ops + done, nr - done);

		if (ret <= 0 && ret != -EINTR)
			tap_bail("submit gave %ld after %u of %u", ret, done, nr);
		if (ret > 0)
			done += ret;
	}
	for (i = 0; i < nr; i++)
		if (ops[i].result)
			tap_bail("operation %u of %u: %s", i, nr,
				 strerror(-ops[i].result));
}

/* Timers of one deadline; their user data numbers them, from @first on */
static inline void arm_numbered(int fd, __u8 flags, __u64 deadline, __u64 first, __u32 nr)
{
	struct twheel_op ops[256];
	__u32 n, i;

	for (; nr; nr -= n, first += n) {
		n = nr < ARRAY_SIZE(ops) ? nr : ARRAY_SIZE(ops);
		for (i = 0; i < n; i++)
			ops[i] = op_arm(flags, deadline, first + i);
		submit_all(fd, ops, n);
	}
}

static inline long cancel(int fd, __u64 id)
{
	struct twheel_op op = op_for(TWHEEL_OP_CANCEL, id);

	return op_prefix(fd, &op, TWHEEL_OP_SIZE_ID);
}

static inline long query(int fd, __u64 id, struct twheel_op *op)
{
	*op = op_for(TWHEEL_OP_QUERY, id);
	return op_single(fd, op);
}

/* Not read(2) of the C library: the compiler knows better than to read to NULL. */
static inline long read_raw(int fd, void *to, size_t size)
{
	long ret = syscall(SYS_read, fd, to, size);

	return ret < 0 ? -errno : ret;
}

/* Number of events, or the negative error; half an event is a failure */
static inline long read_events(int fd, struct twheel_event *ev, size_t max)
{
	ssize_t ret = read(fd, ev, max * sizeof(*ev));

	if (ret < 0)
		return -errno;
	EXPECT_EQ(ret % sizeof(*ev), 0, "read gave %zd bytes", ret);
	return ret / sizeof(*ev);
}

static inline bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret;

	do {
		ret = poll(&p, 1, ms);
	} while (ret < 0 && errno == EINTR);
	return ret == 1 && (p.revents & POLLIN);
}

/* As many events as asked for, waiting for them; fewer are a failure */
static inline size_t collect(int fd, struct twheel_event *ev, size_t want)
{
	size_t got = 0;

	while (got < want && readable(fd, PATIENCE_MS)) {
		long ret = read_events(fd, ev + got, want - got);

		if (!EXPECT_TRUE(ret > 0 || ret == -EAGAIN, "read gave %ld", ret))
			break;
		if (ret > 0)
			got += ret;
	}
	EXPECT_EQ(got, want, "events");
	return got;
}

/* Numbers below @nr were counted in @seen: each of them came once */
#define EXPECT_EACH_ONCE(seen, nr) do {					\
	size_t each_i;							\
									\
	for (each_i = 0; each_i < (nr); each_i++)			\
		EXPECT_EQ((seen)[each_i], 1, "times that number %zu came", each_i); \
} while (0)

static inline void *map_pages(size_t pages, int prot)
{
	void *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return p;
}

static inline void *map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return p;
}

/* The end of @pages pages of memory; what follows can't be touched */
static inline char *map_edge(size_t pages)
{
	char *p = map_pages(pages + 1, PROT_READ | PROT_WRITE);

	if (mprotect(p + pages * PAGE, PAGE, PROT_NONE))
		tap_bail("mprotect: %s", strerror(errno));
	return p + pages * PAGE;
}

/*
 * So many pages, and then the end of all addresses that a program can have: there the
 * kernel says no before it tries. (Where that is differs. In any case nothing follows.)
 */
static inline char *map_top(size_t pages)
{
	char *p = MAP_FAILED;
	int bits;

	for (bits = 57; bits > 30 && p == MAP_FAILED; bits--)
		p = mmap((char *)(1UL << bits) - (pages + 1) * PAGE, pages * PAGE,
			 PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		tap_bail("mmap at the top: %s", strerror(errno));
	return p + pages * PAGE;
}

static inline void read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n < 0)
		tap_bail("%s: %s", path, strerror(errno));
	buf[n] = 0;
	close(fd);
}

static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Is there a module? By way of the library, there may be none. */
static inline bool has_module(void)
{
	return !access(PARAMETERS, F_OK);
}

/* What the module counts over all wheels: a sum, or the most of any */
static inline __u64 module_counter(const char *name)
{
	char text[4096], key[64], *p;

	read_text("/sys/kernel/debug/twheel/counters", text + 1, sizeof(text) - 1);
	text[0] = '\n';
	snprintf(key, sizeof(key), "\n%s ", name);
	p = strstr(text, key);
	if (!p)
		tap_bail("no counter %s", name);
	return strtoull(p + strlen(key), NULL, 10);
}

/* What /proc says of a thread of this process: nothing of one that is gone */
static inline void proc_text(pid_t tid, const char *file, char *text, size_t size)
{
	char path[64];
	int fd;

	memset(text, 0, size);
	snprintf(path, sizeof(path), "/proc/%d/%s", tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, size - 1) < 0)
		text[0] = 0;
	if (fd >= 0)
		close(fd);
}

/* Is that thread of this process asleep in that system call? */
static inline bool blocked_in(pid_t tid, long nr)
{
	char text[256], want[24], *state;

	/* User-mode Linux does not say which call it is. */
	if (access("/proc/self/syscall", F_OK)) {
		proc_text(tid, "stat", text, sizeof(text));
		state = strrchr(text, ')');
		return state && !strncmp(state, ") S", 3);
	}
	proc_text(tid, "syscall", text, sizeof(text));
	snprintf(want, sizeof(want), "%ld ", nr);
#ifdef THROUGH_H
	/* A wheel in the program itself is waited for in another way */
	if (nr == SYS_read && !strncmp(text, THROUGH_WAITS, strlen(THROUGH_WAITS)))
		return true;
#endif
	return !strncmp(text, want, strlen(want));
}

static inline void thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	if (pthread_create(thread, NULL, main, arg))
		tap_bail("pthread_create failed");
}

/**
 * struct sleeper - a thread that makes one call, and is asleep in it as the test goes on
 * @call: makes the call, and may leave what came of it in what embeds this
 */
struct sleeper {
	pthread_t thread;
	pid_t tid;
	void (*call)(struct sleeper *sleeper);
};

static inline void *sleeper_main(void *arg)
{
	struct sleeper *sleeper = arg;

	__atomic_store_n(&sleeper->tid, gettid(), __ATOMIC_RELEASE);
	sleeper->call(sleeper);
	return NULL;
}

/* @nr: the system call */
static inline void sleeper_start(struct sleeper *sleeper, long nr)
{
	sleeper->tid = 0;
	thread_start(&sleeper->thread, sleeper_main, sleeper);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&sleeper->tid, __ATOMIC_ACQUIRE)));
	EXPECT_TRUE(WAIT_FOR(blocked_in(sleeper->tid, nr)), "the thread does not sleep");
}

/* Pseudo-random numbers, the same in each run from the same seed */
static inline __u64 random_next(__u64 *state)
{
	__u64 x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* Processors that have to wait for each other are slow when they are emulated */
static inline void pin_to(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		tap_bail("sched_setaffinity: %s", strerror(errno));
}

/* Root, but without leave to go over limits */
static inline void drop_resource(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		tap_bail("capget: %s", strerror(errno));
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1U << CAP_SYS_RESOURCE);
	if (syscall(SYS_capset, &head, data))
		tap_bail("capset: %s", strerror(errno));
}

#endif
