// SPDX-License-Identifier: GPL-2.0
/*
 * What the library does itself, without a kernel: callbacks, batches and the
 * passing on of errors. The system calls that it makes end up in a small
 * stand-in (by the linker's --wrap) in which events become ready when a test
 * says so, and every error can be had.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <twheel.h>

#include "tap.h"

#define MAX 256

/* The stand-in: timers by id, the queue of events, errors to give */
static struct fake_timer {
	bool live;
	bool periodic;
	__u64 user_data;
} timers[MAX];
static __u64 last_id;
static struct twheel_event queue[MAX];
static unsigned int queued;
static int ioctl_error;
static int poll_error;
static unsigned int polls;
static unsigned int submit_most;
static __u32 submit_op_size;
static unsigned int submits;
static unsigned int signals;
static __u32 event_size;

static void withdraw(__u64 id)
{
	unsigned int i, kept = 0;

	for (i = 0; i < queued; i++)
		if (queue[i].id != id)
			queue[kept++] = queue[i];
	queued = kept;
}

static int operation(struct twheel_op *op)
{
	if (op->opcode == TWHEEL_OP_ARM) {
		if (op->id)
			return -EINVAL;
		op->id = ++last_id;
	} else if (op->id >= MAX || !timers[op->id].live) {
		return -ENOENT;
	}
	if (op->opcode == TWHEEL_OP_QUERY) {
		op->user_data = timers[op->id].user_data;
		return 0;
	}
	if (op->opcode == TWHEEL_OP_CANCEL && (op->deadline || op->user_data))
		return -EINVAL;
	withdraw(op->id);
	timers[op->id] = (struct fake_timer){
		.live = op->opcode != TWHEEL_OP_CANCEL,
		.periodic = op->interval,
		.user_data = op->user_data,
	};
	return 0;
}

static int submit(struct twheel_submit *submit)
{
	char *at = (void *)(uintptr_t)submit->ops;
	unsigned int i;

	submits++;
	submit_op_size = submit->op_size;
	if (signals) {
		signals--;
		return -EINTR;
	}
	for (i = 0; i < submit->nr && i < submit_most; i++, at += submit->op_size) {
		struct twheel_op op = { 0 };

		memcpy(&op, at, submit->op_size);
		op.result = operation(&op);
		memcpy(at, &op, submit->op_size);
	}
	return i ? (int)i : -EINTR;
}

static int request(unsigned long request, void *arg)
{
	struct twheel_info *info = arg;
	struct twheel_setup *setup = arg;

	if (ioctl_error)
		return ioctl_error;
	switch (request) {
	case TWHEEL_IOC_INFO:
		info->event_size = event_size;
		return 0;
	case TWHEEL_IOC_SETUP:
		event_size = setup->flags & TWHEEL_SETUP_COUNT ? sizeof(__u64) :
			     setup->event_size ? setup->event_size :
			     TWHEEL_EVENT_SIZE_FULL;
		return 0;
	case TWHEEL_IOC_SUBMIT:
		return submit(arg);
	}
	return -ENOTTY;
}

int __wrap_ioctl(int fd, unsigned long cmd, ...)
{
	va_list ap;
	int ret;

	(void)fd;
	va_start(ap, cmd);
	ret = request(cmd, va_arg(ap, void *));
	va_end(ap);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	unsigned int i, n = size / event_size;

	(void)fd;
	/* Nobody reads a count here: it would be lost */
	EXPECT_TRUE(event_size != sizeof(__u64));
	if (!queued) {
		errno = EAGAIN;
		return -1;
	}
	if (n > queued)
		n = queued;
	for (i = 0; i < n; i++) {
		memcpy((char *)buf + i * event_size, &queue[i], event_size);
		if (!timers[queue[i].id].periodic)
			timers[queue[i].id].live = false;
	}
	queued -= n;
	memmove(queue, queue + n, queued * sizeof(queue[0]));
	return n * event_size;
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int nr, off64_t pos,
			  int flags)
{
	EXPECT_EQ(nr, 1);
	EXPECT_EQ(pos, -1);
	EXPECT_EQ(flags, RWF_NOWAIT);
	return __wrap_read(fd, iov->iov_base, iov->iov_len);
}

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout)
{
	(void)fds;
	(void)nr;
	(void)timeout;
	polls++;
	if (poll_error) {
		errno = poll_error;
		return -1;
	}
	return queued ? 1 : 0;
}

static struct twheel *fresh(void)
{
	struct twheel *tw;

	memset(timers, 0, sizeof(timers));
	last_id = 0;
	queued = 0;
	polls = 0;
	submits = 0;
	ioctl_error = 0;
	poll_error = 0;
	submit_most = MAX;
	signals = 0;
	event_size = TWHEEL_EVENT_SIZE_FULL;
	/* Closed by the library at the end, so it has to be a descriptor */
	if (twheel_from_fd(open("/dev/null", O_RDWR), &tw))
		tap_bail("twheel_from_fd");
	return tw;
}

/* The timer expires: the event is there to be read */
static void expire(const struct twheel_timer *timer)
{
	queue[queued++] = (struct twheel_event){
		.id = timer->id,
		.user_data = timers[timer->id].user_data,
		.deadline = 1,
		.flags = timers[timer->id].periodic ? TWHEEL_EVENT_PERIODIC : 0,
	};
}

/* A timer that does one thing when it is called, and counts */
struct subject {
	struct twheel_timer timer;
	int called;
	struct subject *other;
	int ret;
};

#define subject_of(timer) ((struct subject *)(timer))

static struct subject *subject(struct twheel *tw, __u64 interval,
			       void (*fn)(struct twheel *tw,
					  struct twheel_timer *timer,
					  const struct twheel_event *event))
{
	struct subject *s = calloc(1, sizeof(*s));

	twheel_timer_init(&s->timer, fn, s);
	EXPECT_EQ(twheel_timer_arm(tw, &s->timer, 0, 1, interval), 0);
	EXPECT_TRUE(s->timer.id);
	return s;
}

static void only_count(struct twheel *tw, struct twheel_timer *timer,
		       const struct twheel_event *event)
{
	(void)tw;
	(void)event;
	subject_of(timer)->called++;
}

static void cancel_other(struct twheel *tw, struct twheel_timer *timer,
			 const struct twheel_event *event)
{
	struct subject *s = subject_of(timer);

	(void)event;
	s->called++;
	s->ret = twheel_timer_cancel(tw, &s->other->timer);
}

static void cancel_and_free_other(struct twheel *tw, struct twheel_timer *timer,
				  const struct twheel_event *event)
{
	cancel_other(tw, timer, event);
	free(subject_of(timer)->other);
}

static void arm_other(struct twheel *tw, struct twheel_timer *timer,
		      const struct twheel_event *event)
{
	struct subject *s = subject_of(timer);

	(void)event;
	s->called++;
	s->ret = twheel_timer_arm(tw, &s->other->timer, 0, 1, 0);
}

static void free_itself(struct twheel *tw, struct twheel_timer *timer,
			const struct twheel_event *event)
{
	(void)tw;
	(void)event;
	free(timer);
}

static void run_loop(struct twheel *tw, struct twheel_timer *timer,
		     const struct twheel_event *event)
{
	struct subject *s = subject_of(timer);

	(void)event;
	s->called++;
	s->ret = twheel_run_once(tw, 0);
}

static void check_event(struct twheel *tw, struct twheel_timer *timer,
			const struct twheel_event *event)
{
	struct subject *s = subject_of(timer);

	(void)tw;
	s->called++;
	EXPECT_TRUE(timer->arg == s);
	EXPECT_EQ(timer->id, 0);
	EXPECT_EQ(event->id, 1);
}

static void one_shot(void)
{
	struct twheel *tw = fresh();
	struct subject *s = subject(tw, 0, check_event);

	expire(&s->timer);
	EXPECT_EQ(twheel_run_once(tw, -1), 1);
	EXPECT_EQ(s->called, 1);
	EXPECT_EQ(polls, 0, "nothing to wait for");
	EXPECT_EQ(twheel_timer_cancel(tw, &s->timer), -ENOENT);
	free(s);
	twheel_close(tw);
}

static void periodic(void)
{
	struct twheel *tw = fresh();
	struct subject *s = subject(tw, 1, only_count);
	int i;

	for (i = 1; i <= 3; i++) {
		expire(&s->timer);
		EXPECT_EQ(twheel_run_once(tw, 0), 1);
		EXPECT_EQ(s->called, i);
		EXPECT_EQ(s->timer.id, 1);
	}
	EXPECT_EQ(twheel_timer_cancel(tw, &s->timer), 0);
	EXPECT_EQ(s->timer.id, 0);
	EXPECT_TRUE(!timers[1].live);
	free(s);
	twheel_close(tw);
}

static void cancel_read_already(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, cancel_and_free_other);
	struct subject *b = subject(tw, 0, only_count);
	struct subject *c = subject(tw, 0, only_count);

	a->other = b;
	expire(&a->timer);
	expire(&b->timer);
	expire(&c->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 2);
	EXPECT_EQ(a->ret, 0);
	EXPECT_EQ(c->called, 1);
	free(a);
	free(c);
	twheel_close(tw);
}

static void cancel_read_periodic(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, cancel_other);
	struct subject *b = subject(tw, 1, only_count);

	a->other = b;
	expire(&a->timer);
	expire(&b->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(a->ret, 0);
	EXPECT_EQ(b->called, 0);
	EXPECT_TRUE(!timers[2].live, "it goes on in the kernel");
	EXPECT_EQ(twheel_timer_cancel(tw, &b->timer), -ENOENT);
	free(a);
	free(b);
	twheel_close(tw);
}

static void cancel_called_already(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, only_count);
	struct subject *b = subject(tw, 0, cancel_other);

	b->other = a;
	expire(&a->timer);
	expire(&b->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 2);
	EXPECT_EQ(a->called, 1);
	EXPECT_EQ(b->ret, -ENOENT);
	free(a);
	free(b);
	twheel_close(tw);
}

static void cancel_fails(void)
{
	struct twheel *tw = fresh();
	struct subject *s = subject(tw, 0, only_count);

	ioctl_error = -EFAULT;
	EXPECT_EQ(twheel_timer_cancel(tw, &s->timer), -EFAULT);
	EXPECT_EQ(s->timer.id, 1, "still armed");
	ioctl_error = 0;
	EXPECT_EQ(twheel_timer_cancel(tw, &s->timer), 0);
	free(s);
	twheel_close(tw);
}

static void arm_again(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, arm_other);
	struct subject *b = subject(tw, 0, only_count);
	struct subject *c = subject(tw, 1, only_count);

	EXPECT_EQ(twheel_timer_arm(tw, &a->timer, 0, 2, 0), 0);
	EXPECT_EQ(a->timer.id, 1, "modified, not armed a second time");

	a->other = b;
	expire(&a->timer);
	expire(&b->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(a->ret, 0);
	EXPECT_EQ(b->called, 0, "the expiry before was withdrawn");
	EXPECT_EQ(b->timer.id, 4);
	expire(&b->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(b->called, 1);

	EXPECT_EQ(twheel_timer_arm(tw, &a->timer, 0, 1, 0), 0);
	a->other = c;
	expire(&a->timer);
	expire(&c->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(c->called, 0, "nor this one, of a periodic timer");
	EXPECT_EQ(c->timer.id, 3);

	/* Somebody else took the event of it: there is nothing to modify */
	timers[3].live = false;
	EXPECT_EQ(twheel_timer_arm(tw, &c->timer, 0, 1, 0), 0);
	EXPECT_EQ(c->timer.id, last_id);
	free(a);
	free(b);
	free(c);
	twheel_close(tw);
}

static void arm_other_badly(struct twheel *tw, struct twheel_timer *timer,
			    const struct twheel_event *event)
{
	ioctl_error = -ENOSPC;
	arm_other(tw, timer, event);
	ioctl_error = 0;
}

static void arm_fails(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, arm_other_badly);
	struct subject *b = subject(tw, 0, only_count);

	a->other = b;
	expire(&a->timer);
	expire(&b->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 2);
	EXPECT_EQ(a->ret, -ENOSPC);
	EXPECT_EQ(b->called, 1, "the expiry before stays");
	EXPECT_EQ(b->timer.id, 0);
	free(a);
	free(b);
	twheel_close(tw);
}

static void frees_itself(void)
{
	struct twheel *tw = fresh();
	struct subject *s = subject(tw, 0, free_itself);

	expire(&s->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	twheel_close(tw);
}

static void loop_in_loop(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, run_loop);
	struct subject *b = subject(tw, 0, run_loop);
	struct subject *c = subject(tw, 0, only_count);

	expire(&a->timer);
	expire(&b->timer);
	expire(&c->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1, "the others were called within");
	EXPECT_EQ(a->called, 1);
	EXPECT_EQ(b->called, 1);
	EXPECT_EQ(c->called, 1);
	EXPECT_EQ(a->ret, 1);
	EXPECT_EQ(b->ret, 1);
	EXPECT_EQ(twheel_run_once(tw, 0), 0);
	free(a);
	free(b);
	free(c);
	twheel_close(tw);
}

static void cancel_then_loop(struct twheel *tw, struct twheel_timer *timer,
			     const struct twheel_event *event)
{
	struct subject *s = subject_of(timer);

	cancel_other(tw, timer, event);
	EXPECT_EQ(s->ret, 0);
	/* Becomes ready while what was read is worthless: it has to be found */
	expire(&s->other->other->timer);
	s->ret = twheel_run_once(tw, 0);
}

static void withdrawn_is_not_timeout(void)
{
	struct twheel *tw = fresh();
	struct subject *a = subject(tw, 0, cancel_then_loop);
	struct subject *b = subject(tw, 0, only_count);
	struct subject *c = subject(tw, 0, only_count);

	a->other = b;
	b->other = c;
	expire(&a->timer);
	expire(&b->timer);
	EXPECT_EQ(twheel_run_once(tw, 0), 1);
	EXPECT_EQ(a->ret, 1);
	EXPECT_EQ(b->called, 0);
	EXPECT_EQ(c->called, 1);
	free(a);
	free(b);
	free(c);
	twheel_close(tw);
}

static void waiting(void)
{
	struct twheel *tw = fresh();

	EXPECT_EQ(twheel_run_once(tw, 0), 0);
	EXPECT_EQ(polls, 0, "not to wait");
	EXPECT_EQ(twheel_run_once(tw, 10), 0);
	EXPECT_EQ(polls, 1);
	poll_error = EINTR;
	EXPECT_EQ(twheel_run_once(tw, 10), -EINTR);
	twheel_close(tw);
}

static struct twheel *fresh_with(__u32 flags, __u32 size)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.flags = flags,
		.clock = TWHEEL_CLOCK_MONOTONIC,
		.event_size = size,
	};
	struct twheel *tw = fresh();

	EXPECT_EQ(twheel_setup(tw, &setup), 0);
	return tw;
}

static void other_events(void)
{
	struct twheel *tw = fresh_with(TWHEEL_SETUP_COUNT, 0);
	struct twheel_event event;

	EXPECT_EQ(twheel_read(tw, &event, 1), -EINVAL, "and the count is there");
	EXPECT_EQ(twheel_run_once(tw, 10), -EINVAL);
	twheel_close(tw);
	tw = fresh_with(0, TWHEEL_EVENT_SIZE_ID);
	EXPECT_EQ(twheel_run_once(tw, 10), -EINVAL, "which of them are periodic?");
	twheel_close(tw);
}

static void events_of(struct twheel *tw, __u64 deadline)
{
	struct twheel_event events[4];
	struct twheel_op op;
	__u64 i;

	for (i = 0; i < 6; i++) {
		op = twheel_op_arm(0, 1, 0, 100 + i);
		EXPECT_EQ(twheel_arm(tw, &op), 0);
		expire(&(struct twheel_timer){ .id = op.id });
	}
	memset(events, 0xff, sizeof(events));
	EXPECT_EQ(twheel_read(tw, events, 4), 4);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(events[i].user_data, 100 + i);
		EXPECT_EQ(events[i].id, 1 + i);
		EXPECT_EQ(events[i].deadline, deadline);
		EXPECT_EQ(events[i].overrun, 0);
		EXPECT_EQ(events[i].flags, 0);
	}
	EXPECT_EQ(twheel_read(tw, events, 4), 2);
	EXPECT_EQ(events[1].user_data, 105);
	EXPECT_EQ(twheel_read(tw, events, 4), -EAGAIN);
	twheel_close(tw);
}

static void reading(void)
{
	struct twheel *tw, *other;

	events_of(fresh(), 1);
	events_of(fresh_with(0, TWHEEL_EVENT_SIZE_ID), 0);
	/* Set up before the library had it */
	tw = fresh_with(0, TWHEEL_EVENT_SIZE_ID);
	EXPECT_EQ(twheel_from_fd(dup(twheel_fd(tw)), &other), 0);
	twheel_close(tw);
	events_of(other, 0);
}

static void many(void)
{
	struct twheel *tw = fresh();
	struct subject *s[200];
	int i, ret, runs = 0, called = 0;

	for (i = 0; i < 200; i++)
		s[i] = subject(tw, 0, only_count);
	for (i = 0; i < 200; i++)
		expire(&s[i]->timer);
	while ((ret = twheel_run_once(tw, 0)) > 0) {
		called += ret;
		runs++;
	}
	EXPECT_EQ(ret, 0);
	EXPECT_EQ(called, 200);
	EXPECT_TRUE(runs > 1, "a limited number of callbacks in each run");
	for (i = 0; i < 200; i++) {
		EXPECT_EQ(s[i]->called, 1);
		free(s[i]);
	}
	twheel_close(tw);
}

static void single(void)
{
	struct twheel *tw = fresh();
	struct twheel_op op = twheel_op_arm(0, 1, 0, 7), query;

	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_EQ(op.id, 1);
	EXPECT_EQ(op.opcode, TWHEEL_OP_ARM, "as it was given");
	EXPECT_EQ(twheel_modify(tw, &op), -EINVAL, "another operation");
	query = twheel_op_query(op.id);
	EXPECT_EQ(twheel_arm(tw, &query), -EINVAL, "another operation");
	EXPECT_EQ(twheel_query(tw, &query), 0);
	EXPECT_EQ(query.user_data, 7);
	op = twheel_op_modify(op.id, 0, 1, 0, 8);
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(timers[1].user_data, 8);
	EXPECT_EQ(twheel_cancel(tw, op.id), 0);
	EXPECT_EQ(twheel_cancel(tw, op.id), -ENOENT);
	signals = 2;
	op = twheel_op_arm(0, 1, 0, 9);
	EXPECT_EQ(twheel_arm(tw, &op), 0, "whatever signals there were");
	EXPECT_EQ(signals, 0);
	twheel_close(tw);
	twheel_close(NULL);
}

static void sizes(void)
{
	struct twheel *tw = fresh();
	struct twheel_op op = twheel_op_arm(0, 1, 0, 7);

	EXPECT_EQ(twheel_arm(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_ONCE);
	op = twheel_op_modify(op.id, 0, 1, 5, 8);
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL);
	EXPECT_TRUE(timers[1].periodic);
	op = twheel_op_modify(op.id, 0, 1, 0, 8);
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_ONCE);
	EXPECT_TRUE(!timers[1].periodic);
	op.slack = 1;
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL);
	op.slack = 0;
	op.jitter = 1;
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL);
	op.jitter = 0;
	op.__reserved = 1;
	EXPECT_EQ(twheel_modify(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL, "the kernel has to see it");
	op = twheel_op_query(op.id);
	EXPECT_EQ(twheel_query(tw, &op), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL);
	EXPECT_EQ(twheel_cancel(tw, op.id), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_ID);
	EXPECT_EQ(twheel_submit(tw, &op, 1), 1);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL, "the distance in an array");
	twheel_close(tw);
}

/* What a batch said was done */
struct record {
	struct twheel_batch *batch;
	struct twheel_op op[MAX];
	unsigned int nr;
};

static void record(const struct twheel_op *op, void *arg)
{
	struct record *record = arg;

	EXPECT_EQ(twheel_batch_add(record->batch, op), -EBUSY);
	EXPECT_EQ(twheel_batch_flush(record->batch), -EBUSY);
	record->op[record->nr++] = *op;
}

static void add(struct record *record, __u64 user_data, int want)
{
	struct twheel_op op = twheel_op_arm(0, 1, 0, user_data);

	EXPECT_EQ(twheel_batch_add(record->batch, &op), want);
}

static void check_record(const struct record *record, unsigned int nr)
{
	unsigned int i;

	EXPECT_EQ(record->nr, nr);
	for (i = 0; i < record->nr; i++) {
		EXPECT_EQ(record->op[i].user_data, i, "in order");
		EXPECT_EQ(record->op[i].id, i + 1);
		EXPECT_EQ(record->op[i].result, 0);
	}
}

static void batch(void)
{
	struct twheel *tw = fresh();
	struct record r = { 0 };
	struct twheel_op op;
	unsigned int i;

	EXPECT_EQ(twheel_batch_new(tw, 0, record, &r, &r.batch), -EINVAL);
	EXPECT_EQ(twheel_batch_new(tw, 4, NULL, &r, &r.batch), -EINVAL);
	EXPECT_EQ(twheel_batch_new(tw, 4, record, &r, &r.batch), 0);
	for (i = 0; i < 4; i++)
		add(&r, i, 0);
	EXPECT_EQ(submits, 0);
	add(&r, 4, 0);
	EXPECT_EQ(submits, 1, "it was full");
	check_record(&r, 4);
	EXPECT_EQ(twheel_batch_flush(r.batch), 0);
	EXPECT_EQ(twheel_batch_flush(r.batch), 0);
	EXPECT_EQ(submits, 2, "nothing waited");
	check_record(&r, 5);

	op = twheel_op_cancel(77);
	EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	EXPECT_EQ(twheel_batch_flush(r.batch), 0);
	EXPECT_EQ(r.op[5].result, -ENOENT);
	twheel_batch_free(r.batch);
	twheel_batch_free(NULL);
	twheel_close(tw);
}

/* A longer operation after shorter ones lengthens these, until the next batch */
static void batch_sizes(void)
{
	struct twheel *tw = fresh();
	struct record r = { 0 };
	struct twheel_op op;
	unsigned int i;

	EXPECT_EQ(twheel_batch_new(tw, 8, record, &r, &r.batch), 0);
	for (i = 0; i < 3; i++)
		add(&r, i, 0);
	EXPECT_EQ(twheel_batch_flush(r.batch), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_ONCE);
	for (i = 1; i <= 2; i++) {
		op = twheel_op_cancel(i);
		EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	}
	EXPECT_EQ(twheel_batch_flush(r.batch), 0);
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_ID);

	op = twheel_op_cancel(3);
	EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	op = twheel_op_cancel(77);
	EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	op = twheel_op_arm(0, 9, 0, 5);
	EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	op = twheel_op_arm(0, 8, 4, 6);
	EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	submit_most = 3;
	EXPECT_EQ(twheel_batch_flush(r.batch), 0, "in two parts");
	EXPECT_EQ(submit_op_size, TWHEEL_OP_SIZE_FULL);
	EXPECT_EQ(r.nr, 9);
	for (i = 3; i < 6; i++)
		EXPECT_EQ(r.op[i].opcode, TWHEEL_OP_CANCEL);
	EXPECT_EQ(r.op[5].id, 3);
	EXPECT_EQ(r.op[5].result, 0);
	EXPECT_EQ(r.op[6].result, -ENOENT);
	EXPECT_EQ(r.op[7].user_data, 5);
	EXPECT_EQ(r.op[7].deadline, 9);
	EXPECT_EQ(r.op[7].interval, 0);
	EXPECT_EQ(r.op[8].user_data, 6);
	EXPECT_EQ(r.op[8].interval, 4);
	EXPECT_TRUE(!timers[3].live && timers[4].live && timers[5].periodic);

	op = twheel_op_cancel(4);
	op.user_data = 1;
	EXPECT_EQ(twheel_batch_add(r.batch, &op), 0);
	EXPECT_EQ(twheel_batch_flush(r.batch), 0);
	EXPECT_EQ(r.op[9].result, -EINVAL, "nothing is cut off");
	twheel_batch_free(r.batch);
	twheel_close(tw);
}

static void batch_interrupted(void)
{
	struct twheel *tw = fresh();
	struct record r = { 0 };
	unsigned int i;

	EXPECT_EQ(twheel_batch_new(tw, 8, record, &r, &r.batch), 0);
	for (i = 0; i < 8; i++)
		add(&r, i, 0);
	submit_most = 0;
	EXPECT_EQ(twheel_batch_flush(r.batch), -EINTR);
	add(&r, 8, -EINTR);
	check_record(&r, 0);

	submit_most = 3;
	EXPECT_EQ(twheel_batch_flush(r.batch), 0, "in three parts");
	check_record(&r, 8);
	twheel_batch_free(r.batch);
	twheel_close(tw);
}

static void no_wheel(void)
{
	struct twheel *tw = fresh(), *other = NULL;

	ioctl_error = -ENOTTY;
	EXPECT_EQ(twheel_from_fd(twheel_fd(tw), &other), -ENOTTY);
	EXPECT_TRUE(!other);
	EXPECT_TRUE(fcntl(twheel_fd(tw), F_GETFD) >= 0, "the caller's still");
	EXPECT_EQ(twheel_open(O_CREAT, &other), -EINVAL);
	EXPECT_TRUE(!other);
	twheel_close(tw);
}

int main(void)
{
	tap_start(60);
	RUN(one_shot, "a timer that expires once is called once");
	RUN(periodic, "a periodic timer is called until it is cancelled");
	RUN(cancel_read_already, "cancelled and freed after its event was read");
	RUN(cancel_read_periodic, "the same of a periodic timer");
	RUN(cancel_called_already, "too late to cancel");
	RUN(cancel_fails, "a cancel that fails changes nothing");
	RUN(arm_again, "arming again withdraws what was read");
	RUN(arm_fails, "an arming that fails changes nothing");
	RUN(frees_itself, "a callback frees its timer");
	RUN(loop_in_loop, "a callback runs the loop");
	RUN(withdrawn_is_not_timeout, "a withdrawn event is no end of waiting");
	RUN(waiting, "waiting and its errors");
	RUN(many, "more events than one read takes");
	RUN(other_events, "a count or short events are nothing for callbacks");
	RUN(reading, "whole and short events");
	RUN(single, "operations on one timer");
	RUN(sizes, "operations are as short as they can be");
	RUN(batch, "a batch");
	RUN(batch_sizes, "a batch of operations of different lengths");
	RUN(batch_interrupted, "a batch and signals");
	RUN(no_wheel, "what is no wheel is not taken");
	return tap_end();
}
