// SPDX-License-Identifier: GPL-2.0
/*
 * Every function of the library on the real device: that each reaches the
 * kernel and hands back what it says, and that callbacks come exactly when they
 * may. What the module promises itself is tested in tests/module/contract.
 */

#include "device.h"

#include <limits.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <twheel.h>
#include <twheel_shared.h>

/* Far enough away never to come, and a time that is over */
#define NEVER HOUR
#define PAST 1

static struct twheel *tw;

static void fresh(int flags)
{
	int ret;

	twheel_close(tw);
	ret = twheel_open(flags, &tw);
	if (ret)
		tap_bail("twheel_open: %s", strerror(-ret));
}

static __u64 armed(__u8 flags, __u64 deadline, __u64 user_data)
{
	struct twheel_op op = twheel_op_arm(flags, deadline, 0, user_data);

	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_TRUE(op.id);
	return op.id;
}

static struct twheel_info info(void)
{
	struct twheel_info info = { .size = sizeof(info) };

	EXPECT_EQ(twheel_info(tw, &info), 0);
	return info;
}

static void opening(void)
{
	struct twheel *other;

	fresh(0);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFL) & O_NONBLOCK, 0);
	fresh(O_NONBLOCK);
	EXPECT_EQ(fcntl(twheel_fd(tw), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	EXPECT_EQ(twheel_open(O_CREAT, &other), -EINVAL);
}

static void adopting(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct twheel *other;
	int fd;

	fresh(0);
	armed(0, NEVER, 0);
	fd = fcntl(twheel_fd(tw), F_DUPFD_CLOEXEC, 0);
	EXPECT_EQ(twheel_from_fd(fd, &other), 0);
	EXPECT_EQ(twheel_fd(other), fd);
	twheel_close(tw);
	tw = other;
	EXPECT_EQ(info().pending, 1, "the same wheel");
	twheel_close(tw);
	tw = NULL;
	EXPECT_EQ(fcntl(fd, F_GETFD), -1, "closed");

	EXPECT_EQ(twheel_from_fd(null, &other), -ENOTTY);
	EXPECT_EQ(fcntl(null, F_GETFD), FD_CLOEXEC, "still open");
	EXPECT_EQ(twheel_from_fd(-1, &other), -EBADF);
	close(null);
}

static void looking(void)
{
	struct twheel_info small = { .size = 1 };
	struct twheel_info i;

	fresh(0);
	EXPECT_EQ(twheel_info(tw, &small), -EINVAL);
	armed(0, NEVER, 0);
	armed(TWHEEL_ABS, PAST, 0);
	i = info();
	EXPECT_TRUE(i.features & TWHEEL_FEATURE_DRAIN);
	EXPECT_EQ(i.clock, TWHEEL_CLOCK_MONOTONIC);
	EXPECT_EQ(i.event_size, TWHEEL_EVENT_SIZE_FULL);
	EXPECT_EQ(i.pending, 1);
	EXPECT_EQ(i.ready, 1);
	EXPECT_TRUE(i.next_expiry > now(CLOCK_MONOTONIC));
}

static void setting_up(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_BOOTTIME,
		.tick = 100 * USEC,
		.limit = 1,
	};
	struct twheel_op op = twheel_op_arm(0, NEVER, 0, 0);

	fresh(0);
	setup.clock = CLOCK_BOOTTIME;
	EXPECT_EQ(twheel_setup(tw, &setup), -EINVAL, "not a clock of clock_gettime()");
	setup.clock = 0;
	EXPECT_EQ(twheel_setup(tw, &setup), -EINVAL, "it is always said");
	setup.clock = TWHEEL_CLOCK_BOOTTIME;
	EXPECT_EQ(twheel_setup(tw, &setup), 0);
	EXPECT_EQ(twheel_setup(tw, &setup), -EBUSY);
	EXPECT_EQ(info().clock, TWHEEL_CLOCK_BOOTTIME);
	EXPECT_EQ(info().tick, 100 * USEC);
	EXPECT_EQ(info().limit, 1);
	EXPECT_EQ(twheel_arm(tw, &op), 0);
	op = twheel_op_arm(0, NEVER, 0, 0);
	EXPECT_EQ(twheel_arm(tw, &op), -ENOSPC);
}

static void one_timer(void)
{
	struct twheel_op op = twheel_op_arm(TWHEEL_ABS, NEVER, 1, 42);
	struct twheel_op query;
	__u64 id;

	fresh(O_NONBLOCK);
	op.deadline += now(CLOCK_MONOTONIC);
	EXPECT_EQ(twheel_arm(tw, &op), 0);
	id = op.id;
	EXPECT_EQ(op.opcode, TWHEEL_OP_ARM);
	EXPECT_EQ(op.state, TWHEEL_STATE_NONE);

	query = twheel_op_query(id);
	EXPECT_EQ(twheel_query(tw, &query), 0);
	EXPECT_EQ(query.state, TWHEEL_STATE_PENDING);
	EXPECT_TRUE(query.deadline >= op.deadline);
	EXPECT_EQ(query.interval, 1);
	EXPECT_EQ(query.user_data, 42);

	op = twheel_op_modify(id, TWHEEL_ABS, PAST, 0, 43);
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(op.state, TWHEEL_STATE_PENDING);
	EXPECT_EQ(op.id, id);
	query = twheel_op_query(id);
	EXPECT_EQ(twheel_query(tw, &query), 0);
	EXPECT_EQ(query.state, TWHEEL_STATE_READY);
	EXPECT_EQ(query.user_data, 43);

	EXPECT_EQ(twheel_cancel(tw, id), 0);
	EXPECT_EQ(twheel_cancel(tw, id), -ENOENT);
	EXPECT_EQ(twheel_modify(tw, &op), -ENOENT);
	query = twheel_op_query(id);
	EXPECT_EQ(twheel_query(tw, &query), -ENOENT);
	EXPECT_EQ(twheel_arm(tw, &query), -EINVAL, "another operation");
	op = twheel_op_arm(0, KTIME_MAX + 1, 0, 0);
	EXPECT_EQ(twheel_arm(tw, &op), -EINVAL);
}

static void reading(void)
{
	struct twheel_event event[4];
	uint64_t count, id;

	fresh(O_NONBLOCK);
	EXPECT_EQ(twheel_read(tw, event, 4), -EAGAIN);
	EXPECT_EQ(twheel_read(tw, event, 0), -EINVAL);
	id = armed(TWHEEL_ABS, PAST, 42);
	armed(TWHEEL_ABS, PAST, 43);
	EXPECT_EQ(twheel_read_count(tw, &count), -EINVAL, "not in count mode");
	EXPECT_EQ(twheel_read(tw, event, 4), 2);
	EXPECT_EQ(event[0].id, id);
	EXPECT_EQ(event[0].user_data, 42);
	EXPECT_EQ(event[1].user_data, 43);

	fresh(0);
	armed(0, 20 * MSEC, 44);
	EXPECT_EQ(twheel_read(tw, event, 4), 1, "it waits");
	EXPECT_EQ(event[0].user_data, 44);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event[0].deadline);
}

static void short_events(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = TWHEEL_EVENT_SIZE_ID,
	};
	struct twheel_event event[4];
	__u64 id[3];
	int i;

	fresh(O_NONBLOCK);
	EXPECT_EQ(twheel_setup(tw, &setup), 0);
	EXPECT_EQ(info().event_size, TWHEEL_EVENT_SIZE_ID);
	EXPECT_EQ(twheel_read(tw, event, 4), -EAGAIN);
	EXPECT_EQ(twheel_read(tw, event, 0), -EINVAL);
	for (i = 0; i < 3; i++)
		id[i] = armed(TWHEEL_ABS, PAST, 42 + i);
	memset(event, 0xff, sizeof(event));
	EXPECT_EQ(twheel_read(tw, event, 2), 2);
	EXPECT_EQ(twheel_read(tw, event + 2, 2), 1);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(event[i].id, id[i]);
		EXPECT_EQ(event[i].user_data, 42 + i);
		EXPECT_EQ(event[i].deadline, 0, "not told");
		EXPECT_EQ(event[i].flags, 0);
	}
	EXPECT_EQ(twheel_run_once(tw, 0), -EINVAL);
}

static void counting(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = TWHEEL_SETUP_COUNT,
		.clock = TWHEEL_CLOCK_MONOTONIC,
	};
	struct twheel_event event;
	uint64_t count = 0;

	fresh(O_NONBLOCK);
	EXPECT_EQ(twheel_setup(tw, &setup), 0);
	EXPECT_EQ(twheel_read_count(tw, &count), -EAGAIN);
	armed(TWHEEL_ABS, PAST, 0);
	armed(TWHEEL_ABS, PAST, 0);
	EXPECT_EQ(twheel_read_count(tw, &count), 0);
	EXPECT_EQ(count, 2);
	armed(TWHEEL_ABS, PAST, 0);
	EXPECT_EQ(twheel_read(tw, &event, 1), -EINVAL);
	EXPECT_EQ(twheel_run_once(tw, 0), -EINVAL);
	EXPECT_EQ(twheel_read_count(tw, &count), 0);
	EXPECT_EQ(count, 1, "not lost");
}

static void submitting(void)
{
	struct twheel_op ops[4];

	fresh(0);
	EXPECT_EQ(twheel_submit(tw, ops, 0), 0);
	ops[0] = twheel_op_arm(0, NEVER, 0, 0);
	ops[1] = twheel_op_arm(0, KTIME_MAX + 1, 0, 1);
	ops[2] = twheel_op_cancel(77);
	ops[3] = twheel_op_arm(0, NEVER, 0, 3);
	EXPECT_EQ(twheel_submit(tw, ops, 4), 4);
	EXPECT_EQ(ops[0].result, 0);
	EXPECT_EQ(ops[1].result, -EINVAL);
	EXPECT_EQ(ops[2].result, -ENOENT);
	EXPECT_EQ(ops[3].result, 0);
	EXPECT_EQ(info().pending, 2);
	ops[0] = twheel_op_modify(ops[0].id, 0, NEVER, 0, 0);
	ops[1] = twheel_op_query(ops[3].id);
	ops[2] = twheel_op_cancel(ops[3].id);
	EXPECT_EQ(twheel_submit(tw, ops, 3), 3);
	EXPECT_EQ(ops[0].result, 0);
	EXPECT_EQ(ops[1].user_data, 3);
	EXPECT_EQ(ops[2].result, 0);
	EXPECT_EQ(info().pending, 1);
	EXPECT_EQ(twheel_submit(tw, ops, UINT_MAX), -EINVAL);
	ops[0] = twheel_op_query(77);
	ops[0].flags = 0xff;
	EXPECT_EQ(twheel_submit(tw, ops, 1), 1);
	EXPECT_EQ(ops[0].result, -EINVAL);
}

static void draining(void)
{
	struct twheel_op ops[4];
	__u64 id, deadline = now(CLOCK_MONOTONIC) + NEVER;

	fresh(0);
	id = armed(TWHEEL_ABS, deadline, 42);
	armed(TWHEEL_ABS, PAST, 43);
	EXPECT_EQ(twheel_drain(tw, ops, 4), 1, "not what is ready");
	EXPECT_EQ(ops[0].id, id);
	EXPECT_EQ(ops[0].user_data, 42);
	EXPECT_TRUE(ops[0].deadline >= deadline);
	EXPECT_EQ(twheel_drain(tw, ops, 4), 0);
	EXPECT_EQ(twheel_submit(tw, ops, 1), 1);
	EXPECT_EQ(ops[0].result, 0);
	EXPECT_EQ(info().pending, 1, "armed again");
}

static void eventfds(void)
{
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int wheel;
	eventfd_t count;

	fresh(0);
	wheel = twheel_fd(tw);
	EXPECT_EQ(twheel_set_eventfd(tw, -1), -ENOENT);
	EXPECT_EQ(twheel_set_eventfd(tw, INT_MAX), -EBADF);
	EXPECT_EQ(twheel_set_eventfd(tw, wheel), -EINVAL);
	EXPECT_EQ(twheel_set_eventfd(tw, efd), 0);
	EXPECT_EQ(twheel_set_eventfd(tw, efd), -EBUSY);
	armed(0, 20 * MSEC, 0);
	EXPECT_TRUE(readable(efd, PATIENCE_MS));
	EXPECT_EQ(eventfd_read(efd, &count), 0);
	EXPECT_EQ(twheel_set_eventfd(tw, -1), 0);
	armed(TWHEEL_ABS, PAST, 0);
	EXPECT_EQ(eventfd_read(efd, &count), -1, "not any more");
	close(efd);
}

/* As docs/threads.md advises: a timer that says to end, which each reader arms anew */
#define READERS 4
#define END_OF_READERS (~0ULL)

static unsigned int read_by_readers;

static void *reader(void *arg)
{
	struct twheel_op stop = twheel_op_arm(TWHEEL_ABS, PAST, 0, END_OF_READERS);
	struct twheel_event event;

	do {
		EXPECT_EQ(twheel_read(tw, &event, 1), 1);
		if (event.user_data != END_OF_READERS)
			__atomic_fetch_add(&read_by_readers, 1, __ATOMIC_RELAXED);
	} while (event.user_data != END_OF_READERS);
	EXPECT_EQ(twheel_arm(tw, &stop), 0);
	return arg;
}

static void ending_readers(void)
{
	struct twheel_op stop = twheel_op_arm(TWHEEL_ABS, PAST, 0, END_OF_READERS);
	pthread_t threads[READERS];
	int i;

	fresh(0);
	read_by_readers = 0;
	armed(0, NEVER, 0);
	for (i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	for (i = 0; i < 100; i++)
		armed(TWHEEL_ABS, PAST, i);
	EXPECT_EQ(twheel_arm(tw, &stop), 0);
	for (i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(read_by_readers, 100, "what was ready before was read");
	EXPECT_EQ(info().pending, 1);
	EXPECT_EQ(info().ready, 1, "the last one's");
}

static void the_time(void)
{
	uint64_t before = now(CLOCK_MONOTONIC), time;

	fresh(0);
	time = twheel_now(tw);
	EXPECT_TRUE(time >= before);
	EXPECT_TRUE(time <= now(CLOCK_MONOTONIC));
}

static void set_clock_ahead(__u64 ns)
{
	__u64 time = now(CLOCK_REALTIME) + ns;
	struct timespec ts = { time / SEC, time % SEC };

	EXPECT_EQ(clock_settime(CLOCK_REALTIME, &ts), 0);
}

/* As twheel(4) advises: the same lines */
static void clock_that_is_set(void)
{
	struct itimerspec never = { .it_value.tv_sec = LONG_MAX };
	int clock = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = clock };
	int i, epoll = epoll_create1(EPOLL_CLOEXEC);
	__u64 count;

	fresh(O_NONBLOCK);
	timerfd_settime(clock, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
	epoll_ctl(epoll, EPOLL_CTL_ADD, clock, &event);
	event.data.fd = twheel_fd(tw);
	epoll_ctl(epoll, EPOLL_CTL_ADD, twheel_fd(tw), &event);
	EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	for (i = 0; i < 2; i++) {
		set_clock_ahead(HOUR);
		EXPECT_EQ(epoll_wait(epoll, &event, 1, PATIENCE_MS), 1);
		EXPECT_EQ(event.data.fd, clock);
		EXPECT_EQ(read(clock, &count, sizeof(count)), -1);
		EXPECT_EQ(errno, ECANCELED);
		EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	}
	close(epoll);
	close(clock);
}

static void counters(void)
{
	struct twheel_stats stats = { .size = sizeof(stats) };
	struct twheel_stats small = { .size = 1 };
	struct twheel_event event;

	fresh(0);
	EXPECT_EQ(twheel_stats(tw, &small), -EINVAL);
	armed(TWHEEL_ABS, PAST, 0);
	EXPECT_EQ(twheel_cancel(tw, armed(0, NEVER, 0)), 0);
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(twheel_stats(tw, &stats), 0);
	EXPECT_EQ(stats.armed, 2);
	EXPECT_EQ(stats.cancelled, 1);
	EXPECT_EQ(stats.expired, 1);
	EXPECT_EQ(stats.delivered, 1);
}

#define BATCHED 1000

static __u64 ids[BATCHED];
static int results;

static void done(const struct twheel_op *op, void *arg)
{
	EXPECT_TRUE(arg == ids);
	EXPECT_EQ(op->result, 0);
	if (op->opcode == TWHEEL_OP_ARM) {
		EXPECT_EQ(op->user_data, results, "in order");
		ids[op->user_data] = op->id;
	}
	results++;
}

static void batches(void)
{
	struct twheel_batch *batch;
	struct twheel_op op;
	int i;

	fresh(0);
	results = 0;
	EXPECT_EQ(twheel_batch_new(tw, 0, done, ids, &batch), -EINVAL);
	if (!EXPECT_EQ(twheel_batch_new(tw, 256, done, ids, &batch), 0))
		return;
	for (i = 0; i < BATCHED; i++) {
		op = twheel_op_arm(0, NEVER, 0, i);
		EXPECT_EQ(twheel_batch_add(batch, &op), 0);
	}
	EXPECT_EQ(results, 3 * 256, "the full ones");
	EXPECT_EQ(twheel_batch_flush(batch), 0);
	EXPECT_EQ(results, BATCHED);
	EXPECT_EQ(info().pending, BATCHED);
	for (i = 0; i < BATCHED; i++) {
		op = twheel_op_cancel(ids[i]);
		EXPECT_EQ(twheel_batch_add(batch, &op), 0);
	}
	EXPECT_EQ(twheel_batch_flush(batch), 0);
	EXPECT_EQ(results, 2 * BATCHED);
	EXPECT_EQ(info().pending, 0);
	op = twheel_op_arm(0, NEVER, 0, 0);
	EXPECT_EQ(twheel_batch_add(batch, &op), 0);
	twheel_batch_free(batch);
	EXPECT_EQ(info().pending, 0, "dropped");
}

/* Shorter and longer operations in one batch: each arrives as it was added */
static void mixed_batch(void)
{
	struct twheel_batch *batch;
	struct twheel_op op;
	int i;

	fresh(0);
	results = 0;
	if (!EXPECT_EQ(twheel_batch_new(tw, 256, done, ids, &batch), 0))
		return;
	op = twheel_op_cancel(armed(0, NEVER, 0));
	EXPECT_EQ(twheel_batch_add(batch, &op), 0);
	for (i = 1; i < 4; i++) {
		op = twheel_op_arm(0, NEVER, i == 3 ? HOUR : 0, i);
		op.slack = i == 3 ? SEC : 0;
		EXPECT_EQ(twheel_batch_add(batch, &op), 0);
	}
	EXPECT_EQ(twheel_batch_flush(batch), 0);
	EXPECT_EQ(results, 4);
	EXPECT_EQ(info().pending, 3);
	for (i = 1; i < 4; i++) {
		op = twheel_op_query(ids[i]);
		EXPECT_EQ(twheel_query(tw, &op), 0);
		EXPECT_EQ(op.user_data, i);
		EXPECT_EQ(op.interval, i == 3 ? HOUR : 0);
		EXPECT_TRUE(i == 3 ? op.slack : !op.slack);
	}
	twheel_batch_free(batch);
}

/* A timer that counts its calls, and what it is to do */
struct subject {
	struct twheel_timer timer;
	struct subject *other;
	int called;
	int ret;
	__u64 overrun;
};

static void call(struct twheel *wheel, struct twheel_timer *timer,
		 const struct twheel_event *event)
{
	struct subject *s = timer->arg;

	EXPECT_TRUE(wheel == tw);
	EXPECT_TRUE(&s->timer == timer);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event->deadline);
	EXPECT_EQ(timer->id, event->flags & TWHEEL_EVENT_PERIODIC ? event->id : 0);
	s->called++;
	s->overrun += event->overrun;
}

static void call_and_cancel(struct twheel *wheel, struct twheel_timer *timer,
			    const struct twheel_event *event)
{
	struct subject *s = timer->arg;

	call(wheel, timer, event);
	s->ret = twheel_timer_cancel(wheel, &s->other->timer);
}

static void call_and_arm(struct twheel *wheel, struct twheel_timer *timer,
			 const struct twheel_event *event)
{
	struct subject *s = timer->arg;

	call(wheel, timer, event);
	s->ret = twheel_timer_arm(wheel, &s->other->timer, 0, NEVER, 0);
}

static void call_and_run(struct twheel *wheel, struct twheel_timer *timer,
			 const struct twheel_event *event)
{
	struct subject *s = timer->arg;

	call(wheel, timer, event);
	s->ret = twheel_run_once(wheel, 0);
}

static void start(struct subject *s, __u8 flags, __u64 deadline, __u64 interval,
		  void (*fn)(struct twheel *wheel, struct twheel_timer *timer,
			     const struct twheel_event *event))
{
	memset(s, 0, sizeof(*s));
	twheel_timer_init(&s->timer, fn, s);
	EXPECT_EQ(twheel_timer_arm(tw, &s->timer, flags, deadline, interval), 0);
	EXPECT_TRUE(s->timer.id);
}

static void callback(void)
{
	struct subject s;

	fresh(0);
	EXPECT_EQ(twheel_run_once(tw, 0), 0, "a descriptor that waits");
	EXPECT_EQ(twheel_run_once(tw, 10), 0);
	start(&s, 0, 20 * MSEC, 0, call);
	EXPECT_EQ(twheel_run_once(tw, -1), 1);
	EXPECT_EQ(s.called, 1);
	EXPECT_EQ(twheel_timer_cancel(tw, &s.timer), -ENOENT);
	EXPECT_EQ(twheel_timer_arm(tw, &s.timer, 0, 20 * MSEC, 0), 0);
	EXPECT_EQ(twheel_run_once(tw, PATIENCE_MS), 1);
	EXPECT_EQ(s.called, 2);
	EXPECT_EQ(twheel_timer_arm(tw, &s.timer, 0, KTIME_MAX + 1, 0), -EINVAL);
}

static void periodic_callback(void)
{
	__u64 begin = now(CLOCK_MONOTONIC);
	struct subject s;

	fresh(0);
	start(&s, TWHEEL_ABS, begin + 10 * MSEC, 10 * MSEC, call);
	while (s.called < 5)
		if (!EXPECT_EQ(twheel_run_once(tw, PATIENCE_MS), 1))
			break;
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= begin + (s.called + s.overrun) * 10 * MSEC);
	EXPECT_EQ(twheel_timer_cancel(tw, &s.timer), 0);
	EXPECT_EQ(info().pending + info().ready, 0);
	EXPECT_EQ(twheel_run_once(tw, 0), 0);
}

/* All three are read together: the first to be called stops the second */
static void cancel_within(void)
{
	struct subject a, b, c;
	int periodic;

	for (periodic = 0; periodic < 2; periodic++) {
		fresh(0);
		start(&a, TWHEEL_ABS, PAST, 0, call_and_cancel);
		start(&b, TWHEEL_ABS, PAST, periodic ? NEVER : 0, call);
		start(&c, TWHEEL_ABS, PAST, 0, call_and_cancel);
		a.other = &b;
		c.other = &a;
		EXPECT_EQ(twheel_run_once(tw, 0), 2);
		EXPECT_EQ(a.called, 1);
		EXPECT_EQ(a.ret, 0);
		EXPECT_EQ(b.called, 0);
		EXPECT_EQ(b.timer.id, 0);
		EXPECT_EQ(c.called, 1);
		EXPECT_EQ(c.ret, -ENOENT, "was called already");
		EXPECT_EQ(info().pending + info().ready, 0);
		EXPECT_EQ(twheel_timer_cancel(tw, &b.timer), -ENOENT);
	}
}

static void cancel_itself(void)
{
	struct subject s;

	fresh(0);
	start(&s, TWHEEL_ABS, PAST, MSEC, call_and_cancel);
	s.other = &s;
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(s.ret, 0);
	EXPECT_EQ(info().pending + info().ready, 0);
}

static void arm_within(void)
{
	struct subject a, b;

	fresh(0);
	start(&a, TWHEEL_ABS, PAST, 0, call_and_arm);
	start(&b, TWHEEL_ABS, PAST, 0, call);
	a.other = &b;
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(a.ret, 0);
	EXPECT_EQ(b.called, 0, "withdrawn");
	EXPECT_EQ(info().pending, 1);
	EXPECT_EQ(twheel_timer_arm(tw, &b.timer, TWHEEL_ABS, PAST, 0), 0);
	EXPECT_EQ(info().pending, 0, "one timer, not two");
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(b.called, 1);
}

static void run_within(void)
{
	struct subject s[3];
	int i;

	fresh(0);
	for (i = 0; i < 3; i++)
		start(&s[i], TWHEEL_ABS, PAST, 0, call_and_run);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(s[i].called, 1);
	EXPECT_EQ(s[0].ret, 1);
	EXPECT_EQ(s[1].ret, 1);
	EXPECT_EQ(s[2].ret, 0);
}

static void ignore(int sig)
{
	(void)sig;
}

static void signalled(void)
{
	struct sigaction action = { .sa_handler = ignore };
	pid_t parent = getpid();
	pid_t child;

	fresh(0);
	sigaction(SIGUSR1, &action, NULL);
	fflush(stdout);
	child = fork();
	if (!child) {
		/* One that comes before the wait is lost: go on until killed */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!kill(parent, SIGUSR1))
			sleep_ns(10 * MSEC);
		_exit(1);
	}
	EXPECT_EQ(twheel_run_once(tw, -1), -EINTR);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	signal(SIGUSR1, SIG_IGN);
}

#define TIMERS 10000

/* Callbacks that cancel and arm others at random: each life has one end */
static struct {
	struct twheel_timer timer;
	int armed;
	int ended;
} soak[TIMERS];

static __u64 seed = 88172645463325252ULL;

static void soak_call(struct twheel *wheel, struct twheel_timer *timer,
		      const struct twheel_event *event)
{
	long self = (long)timer->arg;
	long i = random_next(&seed) % TIMERS;
	int ret;

	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event->deadline);
	EXPECT_EQ(soak[self].armed, 1, "called without being armed");
	soak[self].armed = 0;
	soak[self].ended++;

	ret = twheel_timer_cancel(wheel, &soak[i].timer);
	EXPECT_EQ(ret, soak[i].armed ? 0 : -ENOENT);
	if (!ret) {
		soak[i].armed = 0;
		soak[i].ended++;
	}
	i = random_next(&seed) % TIMERS;
	if (soak[i].armed)
		EXPECT_EQ(twheel_timer_arm(wheel, &soak[i].timer, 0,
					   random_next(&seed) % (50 * MSEC), 0),
			  0);
}

static void soaking(void)
{
	int i, ret;

	fresh(0);
	for (i = 0; i < TIMERS; i++) {
		twheel_timer_init(&soak[i].timer, soak_call, (void *)(long)i);
		EXPECT_EQ(twheel_timer_arm(tw, &soak[i].timer, 0,
					   random_next(&seed) % (200 * MSEC), 0),
			  0);
		soak[i].armed = 1;
	}
	while (info().pending + info().ready) {
		ret = twheel_run_once(tw, PATIENCE_MS);
		if (!EXPECT_TRUE(ret > 0, "%d", ret))
			break;
	}
	EXPECT_EQ(twheel_run_once(tw, 0), 0);
	for (i = 0; i < TIMERS; i++)
		EXPECT_EQ(soak[i].ended, 1, "timer %d", i);
}

static void *arm_and_cancel(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 10000; i++)
		EXPECT_EQ(twheel_cancel(tw, armed(0, NEVER, i)), 0);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];
	int i;

	fresh(0);
	for (i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, arm_and_cancel, NULL))
			tap_bail("pthread_create");
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(info().pending + info().ready, 0);
}

#define SHARED 5000

static struct twheel_area area;

static void fresh_shared(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.shared = SHARED,
		.tick = MSEC,
	};
	int ret;

	fresh(O_NONBLOCK);
	ret = twheel_setup(tw, &setup);
	if (ret)
		tap_bail("twheel_setup: %s", strerror(-ret));
	ret = twheel_shared_map(tw, &area);
	if (ret)
		tap_bail("twheel_shared_map: %s", strerror(-ret));
}

static __u64 in(__u64 ns)
{
	return now(CLOCK_MONOTONIC) + ns;
}

/* Take that timer, and no other, and not before its deadline */
static void taken(unsigned int want, __u64 deadline)
{
	unsigned int n = SHARED;
	bool got = WAIT_FOR(twheel_shared_take(&area, &n, 1));

	EXPECT_TRUE(got && now(CLOCK_MONOTONIC) >= deadline);
	EXPECT_EQ(n, want);
}

static void sharing(void)
{
	struct twheel_event event;
	unsigned int n = 0;
	__u64 deadline;

	fresh(0);
	EXPECT_EQ(twheel_shared_map(tw, &area), -EINVAL);
	fresh_shared();
	EXPECT_EQ(area.nr, SHARED);
	EXPECT_EQ(twheel_shared_take(&area, &n, 1), 0);
	EXPECT_EQ(twheel_shared_cancel(&area, 7), TWHEEL_STATE_NONE);

	deadline = in(30 * MSEC);
	EXPECT_EQ(twheel_shared_arm(&area, 7, deadline), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_arm(&area, SHARED - 1, in(NEVER)), TWHEEL_STATE_NONE);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	taken(7, deadline);
	EXPECT_EQ(twheel_shared_cancel(&area, 7), TWHEEL_STATE_NONE, "it was taken");

	deadline = in(20 * MSEC);
	EXPECT_EQ(twheel_shared_arm(&area, SHARED - 1, deadline), TWHEEL_STATE_PENDING);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	EXPECT_EQ(twheel_shared_take(&area, &n, 1), 1);
	EXPECT_EQ(n, SHARED - 1);

	deadline = in(10 * MSEC);
	EXPECT_EQ(twheel_shared_arm(&area, 8, deadline), TWHEEL_STATE_NONE);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	EXPECT_EQ(twheel_read(tw, &event, 1), 1);
	EXPECT_EQ(event.flags, TWHEEL_EVENT_SHARED);
	EXPECT_EQ(event.user_data, 8);
	EXPECT_EQ(event.deadline, deadline | TWHEEL_WORD_ARMED);
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= event.deadline);
	EXPECT_EQ(twheel_shared_take(&area, &n, 1), 0);
	twheel_shared_unmap(&area);
}

static void withdrawing(void)
{
	unsigned int n;
	__u64 deadline;

	fresh_shared();
	EXPECT_EQ(twheel_shared_arm(&area, 1, PAST), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_arm(&area, 2, PAST), TWHEEL_STATE_NONE);
	EXPECT_TRUE(readable(twheel_fd(tw), PATIENCE_MS));
	EXPECT_EQ(twheel_shared_cancel(&area, 1), TWHEEL_STATE_READY);
	deadline = in(20 * MSEC);
	EXPECT_EQ(twheel_shared_arm(&area, 2, deadline), TWHEEL_STATE_READY);
	taken(2, deadline);
	EXPECT_EQ(twheel_shared_arm(&area, 1, in(NEVER)), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_arm(&area, 1, in(2 * NEVER)), TWHEEL_STATE_PENDING);
	EXPECT_EQ(twheel_shared_arm(&area, 1, PAST), TWHEEL_STATE_PENDING);
	taken(1, PAST);
	EXPECT_EQ(twheel_shared_arm(&area, 3, in(NEVER)), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_cancel(&area, 3), TWHEEL_STATE_PENDING);
	EXPECT_EQ(twheel_shared_arm(&area, 3, in(2 * NEVER)), TWHEEL_STATE_NONE);
	EXPECT_EQ(twheel_shared_take(&area, &n, 1), 0);
	twheel_shared_unmap(&area);
}

/* The descriptor was kept; who used the timers died in the middle of two steps */
static void taking_over(void)
{
	unsigned int n, want, seen = 0;
	struct twheel_area before;

	fresh_shared();
	before = area;
	for (n = 0; n < 5; n++)
		EXPECT_EQ(twheel_shared_arm(&before, n, PAST), TWHEEL_STATE_NONE);
	EXPECT_TRUE(WAIT_FOR(info().ready == 5));
	/* A batch of four, of which one is taken; and one not armed to the end */
	before.words[before.ring[0]] &= ~TWHEEL_WORD_FIRED;
	before.shared->head += 4;
	before.words[5] = PAST;
	twheel_shared_unmap(&before);

	EXPECT_EQ(twheel_shared_map(tw, &area), 0);
	EXPECT_EQ(twheel_shared_recover(&area), 0);
	want = 0x3f & ~(1U << area.ring[0]);
	while (seen != want && WAIT_FOR(twheel_shared_take(&area, &n, 1)))
		if (EXPECT_TRUE(n < 6 && !(seen >> n & 1), "%u", n))
			seen |= 1U << n;
	EXPECT_EQ(seen, want);
	EXPECT_EQ(twheel_shared_take(&area, &n, 1), 0, "%u", n);
	twheel_shared_unmap(&area);
}

#define OWNERS 2
#define OWN_STEPS 20000

static unsigned int shared_armed, shared_ended;
static bool shared_over;

static void *arm_and_cancel_shared(void *arg)
{
	unsigned long self = (unsigned long)arg;
	unsigned int i, n, armed = 0, ended = 0;
	__u64 state = seed + self;
	int ret;

	for (i = 0; i < OWN_STEPS; i++) {
		n = random_next(&state) % (SHARED / OWNERS) * OWNERS + self;
		if (random_next(&state) % 4) {
			ret = twheel_shared_arm(&area, n,
						in(random_next(&state) % (20 * MSEC)));
			armed++;
		} else {
			ret = twheel_shared_cancel(&area, n);
		}
		EXPECT_TRUE(ret >= 0, "%d", ret);
		ended += ret != TWHEEL_STATE_NONE;
	}
	__atomic_fetch_add(&shared_armed, armed, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&shared_ended, ended, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *take_shared(void *arg)
{
	unsigned int timers[50], n, ended = 0;

	(void)arg;
	while (!__atomic_load_n(&shared_over, __ATOMIC_SEQ_CST)) {
		readable(twheel_fd(tw), 1);
		while ((n = twheel_shared_take(&area, timers, 1 + ended % 50)))
			ended += n;
		__atomic_fetch_add(&shared_ended, ended, __ATOMIC_SEQ_CST);
		ended = 0;
	}
	return NULL;
}

/* Each arming has one end: withdrawn by the next, cancelled, or taken */
static void shared_threads(void)
{
	pthread_t owner[OWNERS], taker[2];
	unsigned long i;

	fresh_shared();
	for (i = 0; i < 2; i++)
		if (pthread_create(&taker[i], NULL, take_shared, NULL))
			tap_bail("pthread_create");
	for (i = 0; i < OWNERS; i++)
		if (pthread_create(&owner[i], NULL, arm_and_cancel_shared, (void *)i))
			tap_bail("pthread_create");
	for (i = 0; i < OWNERS; i++)
		pthread_join(owner[i], NULL);
	EXPECT_TRUE(shared_armed > OWN_STEPS);
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(&shared_ended, __ATOMIC_SEQ_CST) == shared_armed),
		    "%u of %u", shared_ended, shared_armed);
	sleep_ns(50 * MSEC);
	__atomic_store_n(&shared_over, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < 2; i++)
		pthread_join(taker[i], NULL);
	EXPECT_EQ(shared_ended, shared_armed, "not more either");
	EXPECT_EQ(info().pending, 0);
	twheel_shared_unmap(&area);
}

int main(void)
{
	tap_start(300);
	RUN(opening, "twheel_open, twheel_fd");
	RUN(adopting, "twheel_from_fd, twheel_close");
	RUN(looking, "twheel_info");
	RUN(setting_up, "twheel_setup");
	RUN(one_timer, "twheel_arm, _modify, _query, _cancel");
	RUN(reading, "twheel_read");
	RUN(short_events, "twheel_read of short events");
	RUN(counting, "twheel_read_count");
	RUN(submitting, "twheel_submit");
	RUN(draining, "twheel_drain");
	RUN(eventfds, "twheel_set_eventfd");
	RUN(ending_readers, "a timer ends all who wait in twheel_read");
	RUN(the_time, "twheel_now");
	RUN(clock_that_is_set, "a timerfd beside the wheel tells that the clock was set");
	RUN(counters, "twheel_stats");
	RUN(batches, "a batch");
	RUN(mixed_batch, "a batch of operations of different lengths");
	RUN(callback, "a callback");
	RUN(periodic_callback, "a periodic callback");
	RUN(cancel_within, "a callback cancels a timer that was read with it");
	RUN(cancel_itself, "a callback cancels its own periodic timer");
	RUN(arm_within, "a callback arms a timer that was read with it");
	RUN(run_within, "callbacks run the loop");
	RUN(signalled, "a signal ends the waiting");
	RUN(soaking, "10,000 timers that cancel and arm each other");
	RUN(threads, "four threads on one wheel");
	RUN(sharing, "twheel_shared_map, _arm, _take");
	RUN(withdrawing, "shared timers: states, and what is withdrawn");
	RUN(taking_over, "twheel_shared_recover");
	RUN(shared_threads, "shared timers: two threads arm, two take");
	return tap_end();
}
