// SPDX-License-Identifier: GPL-2.0
/*
 * The calls: each is made up from a struct call, made, and told to the model.
 */
#include "calls.h"

#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Most operations of an array, most events of a read */
#define MOST 320

/* A call that is being made */
struct making {
	struct call *call;
	__u64 seed;
	int fd;
	struct model *model;	/* NULL for WHEEL_CHAOS */
};

static bool is_one_of(long ret, const int *errors, size_t n)
{
	while (n--)
		if (ret == -errors[n])
			return true;
	return false;
}

#define ONE_OF(ret, ...) \
	is_one_of(ret, (const int []){ __VA_ARGS__ }, \
		  sizeof((int []){ __VA_ARGS__ }) / sizeof(int))

/* What any call may give when nothing is known of its arguments */
static void check_contract(const char *what, long ret)
{
	if (ret < 0 && !ONE_OF(ret, ENOTTY, EINVAL, E2BIG, EOPNOTSUPP, ENOENT,
			       ENOSPC, EBUSY, EFAULT, EBADF, EINTR, EAGAIN))
		broken("%s gave %ld", what, ret);
}

/* An array of operations while it is done */
struct array {
	struct twheel_op ops[MOST];
	struct attempt tries[MOST];
	struct piece piece;
	__u32 nr, op_size;
};

static void fill_array(struct making *mk, struct array *a)
{
	__u32 i;

	for (i = 0; i < a->nr; i++) {
		model_try(mk->model, &mk->seed, mk->call->pick, a->op_size,
			  &a->tries[i], &a->ops[i]);
		if (one_in(&mk->seed, 12))
			model_spoil(&mk->seed, &a->tries[i], &a->ops[i]);
		if (a->piece.kept)
			memcpy(a->piece.kept + i * a->op_size, &a->ops[i],
			       a->op_size);
	}
}

/*
 * What must not be changed by an operation that was done. Of QUERY these fields are out, and
 * are written in parts where they lie in two pages: if the timer ends before the second part
 * can be written, the operation fails, and the first part has been written.
 */
static void check_inputs(const struct twheel_op *was, const struct twheel_op *is,
			 __u32 op_size)
{
	size_t inputs = op_size - TWHEEL_OP_SIZE_ID;

	if (was->opcode != is->opcode || was->flags != is->flags ||
	    (was->opcode != TWHEEL_OP_ARM && was->id != is->id) ||
	    (was->opcode != TWHEEL_OP_QUERY &&
	     memcmp(&was->deadline, &is->deadline, inputs)))
		broken("opcode %u: its input was changed", was->opcode);
}

static void check_array(struct making *mk, struct array *a, __u32 done)
{
	struct twheel_op op = { 0 };
	__u32 i;

	for (i = 0; i < done; i++) {
		memcpy(&op, a->piece.kept + i * a->op_size, a->op_size);
		check_inputs(&a->ops[i], &op, a->op_size);
		op.opcode = a->ops[i].opcode;
		model_result(mk->model, &a->tries[i], &op, op.result);
	}
	for (; i < a->nr; i++) {
		model_undone(&a->tries[i]);
		if ((i + 1) * a->op_size > a->piece.usable)
			continue;
		/* That of the next may have been tried. */
		if (i == done && a->ops[i].opcode == TWHEEL_OP_ARM)
			memcpy(a->piece.kept + i * a->op_size + offsetof(struct twheel_op, id),
			       &a->ops[i].id, sizeof(a->ops[i].id));
		if (i == done && a->ops[i].opcode == TWHEEL_OP_QUERY)
			continue;
		if (memcmp(a->piece.kept + i * a->op_size, &a->ops[i], a->op_size))
			broken("operation %u was changed, of %u that were done", i,
			       done);
	}
}

static __u32 some_op_size(struct making *mk)
{
	static const __u32 sizes[] = {
		TWHEEL_OP_SIZE_ID, TWHEEL_OP_SIZE_ONCE, TWHEEL_OP_SIZE_ONCE,
		TWHEEL_OP_SIZE_FULL, TWHEEL_OP_SIZE_FULL,
	};

	return sizes[below(&mk->seed, ARRAY_SIZE(sizes))];
}

static __u32 some_number(struct making *mk, __u32 size)
{
	__u32 most = 36 * PAGE / size;
	__u32 nr = mk->call->nr;

	if (nr > 200)
		nr = (nr - 200) * 8;
	if (nr > MOST)
		nr = MOST;
	return nr < most ? nr : most;
}

/* An array that lies as it may, by one of the two ways there are */
static void submit_some(struct making *mk, __u32 op_size, __u32 nr)
{
	static __thread struct array a;
	struct twheel_submit arg;
	__u32 since = interruptions(), most;
	long ret;

	a.op_size = op_size;
	a.nr = nr;
	a.piece = memory_piece(&mk->seed, mk->call->shape, a.nr * a.op_size);
	fill_array(mk, &a);
	arg = (struct twheel_submit){
		.size = sizeof(arg),
		.ops = (unsigned long)a.piece.at,
		.nr = a.nr,
		.op_size = a.op_size,
	};
	memory_hide(&a.piece);
	if (!one_in(&mk->seed, 8) || !uring_submit(mk->fd, &arg, &ret))
		ret = wheel_ioctl(mk->fd, TWHEEL_IOC_SUBMIT, &arg);
	memory_show(&a.piece);
	most = a.piece.usable / a.op_size;
	if (most > a.nr)
		most = a.nr;
	/* One more when it can be read, and what is told of it can be written. */
	if (most < a.nr && ret == most + 1L && a.piece.readable &&
	    most * a.op_size + sizeof(__u64) <= a.piece.usable)
		most++;
	if (ret < 0 && ret != -EINTR && (ret != -EFAULT || most))
		broken("submit of %u, %u usable, gave %ld", a.nr, most, ret);
	else if (ret == -EFAULT ? !a.nr : ret < most && !notified(since))
		broken("submit of %u, %u usable, gave %ld", a.nr, most, ret);
	else if (ret > (long)most)
		broken("submit of %u, %u usable, did %ld", a.nr, most, ret);
	else
		check_array(mk, &a, ret > 0 ? ret : 0);
	memory_check(&a.piece);
}

static void make_submit(struct making *mk)
{
	__u32 op_size = some_op_size(mk);

	submit_some(mk, op_size, some_number(mk, op_size));
}

static void make_one(struct making *mk)
{
	submit_some(mk, some_op_size(mk), 1);
}

static void make_drain(struct making *mk)
{
	__u32 op_size = some_op_size(mk);
	__u32 nr = some_number(mk, op_size), most, since = interruptions();
	struct piece piece = memory_piece(&mk->seed, mk->call->shape,
					  nr * op_size);
	struct twheel_drain arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)piece.at,
		.nr = nr,
		.op_size = op_size,
	};
	__u64 begin = moment();
	long ret, i;

	memory_hide(&piece);
	ret = wheel_ioctl(mk->fd, TWHEEL_IOC_DRAIN, &arg);
	memory_show(&piece);
	most = piece.usable / op_size;
	if (most > nr)
		most = nr;
	if ((ret < 0 && ret != -EFAULT && ret != -EINTR) || ret > (long)most ||
	    (ret == -EFAULT && (most || !nr)) ||
	    (ret == -EINTR && !interrupted(since)))
		return broken("drain of %u, %u usable, gave %ld", nr, most, ret);
	for (i = 0; i < ret; i++) {
		struct twheel_op op = { 0 };

		memcpy(&op, piece.kept + i * op_size, op_size);
		model_drained(mk->model, &op, op_size, begin);
	}
	memory_check(&piece);
}

/* Read by one of the calls there are for it, into several pieces of the piece */
static long some_read(struct making *mk, const struct piece *piece)
{
	size_t left = piece->size;
	struct iovec iov[6];
	int n = 0, how;
	long ret;

	while (left && n < 5 && one_in(&mk->seed, 2)) {
		size_t len = below(&mk->seed, left + 1);

		iov[n++] = (struct iovec){ piece->at + piece->size - left, len };
		left -= len;
	}
	iov[n++] = (struct iovec){ piece->at + piece->size - left, left };
	how = below(&mk->seed, 4);
	if (how < 2)
		expect_signal(true);
	if (how == 0)
		ret = n == 1 ? read(mk->fd, iov[0].iov_base, left) :
			       readv(mk->fd, iov, n);
	else
		ret = preadv2(mk->fd, iov, n, -1, how == 1 ? 0 : RWF_NOWAIT);
	ret = ret < 0 ? -errno : ret;
	if (how < 2)
		expect_signal(false);
	return ret;
}

static void check_read(struct making *mk, const struct piece *piece, long ret,
		       bool stopped)
{
	bool count = mk->model->flags & TWHEEL_SETUP_COUNT;
	size_t unit = mk->model->event_size;

	if (!piece->size && (!ret || ret == -EINVAL || ret == -EFAULT))
		return;
	if (ret < 0 && (ret != -EAGAIN) && (ret != -EINTR || !stopped) &&
	    (ret != -EINVAL || piece->size >= unit) &&
	    (ret != -EFAULT || piece->usable >= unit))
		broken("read of %zu, %zu usable, gave %ld", piece->size,
		       piece->usable, ret);
	if (ret >= 0 && (ret < (long)unit || ret % unit ||
			 ret > (long)piece->usable || (count && ret != sizeof(__u64))))
		broken("read of %zu, %zu usable, gave %ld", piece->size,
		       piece->usable, ret);
}

static void make_read(struct making *mk)
{
	__u32 nr = some_number(mk, sizeof(struct twheel_event));
	size_t size = nr * sizeof(struct twheel_event) +
		      (one_in(&mk->seed, 3) ? below(&mk->seed, 48) : 0);
	struct piece piece = memory_piece(&mk->seed, mk->call->shape, size);
	__u32 since = interruptions();
	__u64 begin = moment();
	long ret;

	memory_hide(&piece);
	ret = some_read(mk, &piece);
	memory_show(&piece);
	check_read(mk, &piece, ret, interrupted(since));
	model_read(mk->model, piece.kept, ret, begin);
	memory_check(&piece);
}

static void poll_by_epoll(struct making *mk, int ms)
{
	struct epoll_event event = {
		.events = EPOLLIN | (one_in(&mk->seed, 2) ? EPOLLET : 0) |
			  (one_in(&mk->seed, 4) ? EPOLLONESHOT : 0),
	}, out;
	int fd = epoll_create1(EPOLL_CLOEXEC), i;

	if (fd < 0)
		return;
	if (epoll_ctl(fd, EPOLL_CTL_ADD, mk->fd, &event))
		broken("epoll_ctl: %s", strerror(errno));
	for (i = 0; i < 2; i++)
		if (epoll_wait(fd, &out, 1, ms) > 0 && out.events != EPOLLIN)
			broken("epoll gave %x", out.events);
	close(fd);
}

static void make_poll(struct making *mk)
{
	struct pollfd p = { .fd = mk->fd, .events = below(&mk->seed, 64) };
	int ms = below(&mk->seed, 4);
	fd_set set;

	switch (below(&mk->seed, 3)) {
	case 0:
		poll(&p, 1, ms);
		if (p.revents & ~(POLLIN | POLLRDNORM))
			broken("poll gave %x", p.revents);
		break;
	case 1:
		FD_ZERO(&set);
		FD_SET(mk->fd, &set);
		select(mk->fd + 1, &set, NULL, NULL,
		       &(struct timeval){ .tv_usec = ms * 1000 });
		break;
	default:
		poll_by_epoll(mk, ms);
		break;
	}
}

/* A structure that is longer or shorter than known. Returns what that must give. */
static long some_size(struct making *mk, struct piece *piece, __u32 size)
{
	__u32 want = size, tail;

	if (one_in(&mk->seed, 2))
		want = below(&mk->seed, 3) ? size + below(&mk->seed, 100) :
					     below(&mk->seed, PAGE + 100);
	*piece = memory_piece(&mk->seed, mk->call->shape,
			      want < size ? size : want);
	if (!piece->kept)
		return -EFAULT;
	memset(piece->kept, 0, piece->size);
	if (one_in(&mk->seed, 2))
		memset(piece->kept, 0xff, size);
	memcpy(piece->kept, &want, sizeof(want));
	if (want < size)
		return -EINVAL;
	if (want > PAGE)
		return -E2BIG;
	if (want == size || !one_in(&mk->seed, 4))
		return 0;
	tail = want - size;
	piece->kept[size + below(&mk->seed, tail)] = 1;
	return -E2BIG;
}

static void check_info(struct making *mk, const struct twheel_info *info)
{
	struct model *m = mk->model;

	if (info->size != sizeof(*info) || info->__reserved || info->shared ||
	    info->clock != wheel_clock(m->clock) || info->tick != m->tick ||
	    info->flags != m->flags || info->limit != m->limit ||
	    info->event_size != m->event_size)
		broken("info: size %u, clock %x, tick %llu, flags %x, limit %llu, events of %u",
		       info->size, info->clock, info->tick, info->flags,
		       info->limit, info->event_size);
	if (info->pending + info->ready > m->limit ||
	    !info->pending != !info->next_expiry)
		broken("info: %llu pending, %llu ready, limit %llu, next at %llu",
		       info->pending, info->ready, info->limit, info->next_expiry);
}

static void look_info(struct making *mk, bool stats)
{
	__u32 size = stats ? sizeof(struct twheel_stats) :
			     sizeof(struct twheel_info);
	struct twheel_info info;
	struct piece piece;
	long want = some_size(mk, &piece, size), ret;

	memory_hide(&piece);
	ret = wheel_ioctl(mk->fd, stats ? TWHEEL_IOC_STATS : TWHEEL_IOC_INFO,
			  piece.at);
	memory_show(&piece);
	if (ret == -EFAULT && piece.usable < piece.size)
		return;
	if (ret != want || (!ret && piece.usable < size && !piece.readable))
		return broken("%s of %zu, %zu usable, gave %ld instead of %ld",
			      stats ? "stats" : "info", piece.size, piece.usable,
			      ret, want);
	memory_check(&piece);
	if (ret || stats)
		return;
	memcpy(&info, piece.kept, sizeof(info));
	info.size = sizeof(info);
	check_info(mk, &info);
}

static void look_fdinfo(struct making *mk)
{
	unsigned long long tick, pending, ready, limit;
	char path[64], text[512], *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", mk->fd);
	read_text(path, text, sizeof(text));
	at = strstr(text, "tick:\t");
	if (!at || sscanf(at, "tick: %llu pending: %llu ready: %llu limit: %llu",
			  &tick, &pending, &ready, &limit) != 4)
		return broken("fdinfo: %s", text);
	if (tick != mk->model->tick || limit != mk->model->limit ||
	    pending + ready > limit)
		broken("fdinfo: %s", text);
}

static void make_look(struct making *mk)
{
	int what = below(&mk->seed, 3);

	if (what < 2)
		look_info(mk, what);
	else
		look_fdinfo(mk);
}

static void make_eventfd(struct making *mk)
{
	static __thread int own = -1;
	struct twheel_eventfd arg = { .size = sizeof(arg), .fd = -1 };
	__u64 count;
	long ret;

	if (own < 0)
		own = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	switch (below(&mk->seed, 6)) {
	case 0:
		arg.fd = 1000 + below(&mk->seed, 1000);
		break;
	case 1:
		arg.fd = mk->fd;
		break;
	case 2:
		arg.flags = 1;
		break;
	case 3:
		arg.fd = own;
		break;
	}
	ret = wheel_ioctl(mk->fd, TWHEEL_IOC_EVENTFD, &arg);
	if (arg.flags ? ret != -EINVAL :
	    arg.fd == -1 ? ret && ret != -ENOENT :
	    arg.fd == own ? ret && ret != -EBUSY :
	    arg.fd == mk->fd ? ret != -EINVAL : ret != -EBADF)
		broken("eventfd %d gave %ld", arg.fd, ret);
	if (read(own, &count, sizeof(count)) < 0 && errno != EAGAIN)
		broken("reading the eventfd gave %s", strerror(errno));
}

/* What no wheel can be set up as, or else what this one can't be any more */
static bool spoil_setup(__u64 *seed, struct twheel_setup *setup)
{
	switch (below(seed, 6)) {
	case 0:
		setup->tick = KTIME_MAX + 1;
		return true;
	case 1:
		setup->clock = one_in(seed, 2) ? 0 : CLOCK_MONOTONIC;
		return true;
	case 2:
		setup->event_size = 1 + below(seed, TWHEEL_EVENT_SIZE_ID - 1);
		return true;
	case 3:
		setup->__reserved = 1U << below(seed, 32);
		return true;
	}
	return false;
}

/* What must be refused, whatever the wheel holds */
static void make_refused(struct making *mk)
{
	struct twheel_setup setup = {
		.size = sizeof(setup),
		.clock = TWHEEL_CLOCK_MONOTONIC,
	};
	struct twheel_submit sub = {
		.size = sizeof(sub),
		.ops = (unsigned long)&setup,
		.nr = 1,
		.op_size = sizeof(struct twheel_op),
	};
	unsigned long cmd = one_in(&mk->seed, 2) ? TWHEEL_IOC_SUBMIT :
						   TWHEEL_IOC_DRAIN;
	struct twheel_doorbell bell = { .size = sizeof(bell) };
	void *arg = &sub;
	long want = -EINVAL, ret;

	switch (below(&mk->seed, 10)) {
	case 0:
		cmd = _IO(TWHEEL_IOC_TYPE, 7 + below(&mk->seed, 249));
		want = -ENOTTY;
		break;
	case 1:
		/* one with a size or a direction in it, or of another type */
		cmd ^= one_in(&mk->seed, 2) ? 1 << 8 :
		       (1 + below(&mk->seed, 65535)) << 16;
		want = -ENOTTY;
		break;
	case 2:
		sub.size = below(&mk->seed, sizeof(sub));
		break;
	case 3:
		sub.flags = 1U << below(&mk->seed, 32);
		break;
	case 4:
		sub.nr = 1U << 31 | random_next(&mk->seed);
		break;
	case 5:
		sub.op_size = 1 + below(&mk->seed, TWHEEL_OP_SIZE_ID - 1) +
			      below(&mk->seed, 5) * TWHEEL_OP_SIZE_ID;
		break;
	case 6:
		sub.op_size = one_in(&mk->seed, 2) ? 0 :
			      TWHEEL_OP_SIZE_FULL + 1 + chaos_value(&mk->seed) % INT_MAX;
		break;
	case 7:
		sub.nr = 0;
		want = 0;
		break;
	case 8:
		cmd = TWHEEL_IOC_SETUP;
		arg = &setup;
		want = spoil_setup(&mk->seed, &setup) ? -EINVAL : -EBUSY;
		break;
	case 9:
		cmd = TWHEEL_IOC_DOORBELL;
		arg = &bell;
		break;
	}
	ret = wheel_ioctl(mk->fd, cmd, arg);
	if (ret != want)
		broken("ioctl %lx gave %ld instead of %ld", cmd, ret, want);
}

/* Calls that are for other files */
static void make_odd(struct making *mk)
{
	int out, flags;
	char byte = 0;
	void *p;

	switch (below(&mk->seed, 8)) {
	case 0:
		p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, mk->fd, 0);
		if (p != MAP_FAILED)
			broken("mmap does something");
		break;
	case 1:
		if (lseek(mk->fd, 0, SEEK_CUR) >= 0)
			broken("lseek does something");
		break;
	case 2:
		if (write(mk->fd, &byte, 1) >= 0)
			broken("write does something");
		break;
	case 3:
		if (pread(mk->fd, &byte, 1, 0) >= 0)
			broken("pread does something");
		break;
	case 4:
		if (ftruncate(mk->fd, 0) >= 0 || fsync(mk->fd) >= 0)
			broken("ftruncate or fsync does something");
		break;
	case 5:
		out = memfd_create("out", MFD_CLOEXEC);
		if (sendfile(out, mk->fd, NULL, 4096) > 0)
			broken("sendfile does something");
		close(out);
		break;
	default:
		flags = one_in(&mk->seed, 4) ? O_NONBLOCK : 0;
		flags |= one_in(&mk->seed, 4) ? O_ASYNC : 0;
		fcntl(mk->fd, F_SETFL, flags);
		break;
	}
}

/* The wheel by another number: a copy, or one that came in a message */
static int another_fd(struct making *mk)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2], fd = -1;

	if (one_in(&mk->seed, 2) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return fcntl(mk->fd, F_DUPFD_CLOEXEC, 0);
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int)),
	};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &mk->fd, sizeof(int));
	if (sendmsg(pair[0], &msg, 0) == 1 &&
	    (one_in(&mk->seed, 8) || recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC) < 0))
		msg.msg_controllen = 0;
	if (msg.msg_controllen && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	close(pair[0]);
	close(pair[1]);
	return fd;
}

static void make_passed(struct making *mk)
{
	struct making other = *mk;

	other.fd = another_fd(mk);
	if (other.fd < 0)
		return;
	if (one_in(&mk->seed, 2))
		make_one(&other);
	else
		make_submit(&other);
	close(other.fd);
}

/* In a process of its own, which has the wheel by inheritance */
static void make_forked(struct making *mk)
{
	int i, n = 1 + below(&mk->seed, 3), status;
	pid_t pid;

	if (!one_in(&mk->seed, 4))
		return make_one(mk);
	pid = fork();
	if (pid < 0)
		return;
	if (!pid) {
		for (i = 0; i < n; i++)
			make_one(mk);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		broken("a forked process ended with %x", status);
}

static void make_uring(struct making *mk)
{
	uring_read(mk->model, mk->fd, &mk->seed);
}

static void make_signal(struct making *mk)
{
	signal_somebody(&mk->seed);
}

static void make_settings(struct making *mk)
{
	static char text[8192];
	char value[24];

	if (one_in(&mk->seed, 2)) {
		snprintf(value, sizeof(value), "%llu",
			 one_in(&mk->seed, 2) ? 256 : 16 + below(&mk->seed, 64));
		write_text(PARAMETERS "budget", value);
	} else {
		read_text("/sys/kernel/debug/twheel/counters", text, sizeof(text));
	}
}

/* What a set-up must give, by the contract; any of several that are negative */
static bool setup_may_give(const struct twheel_setup *s, long ret)
{
	bool has = s->flags == TWHEEL_SETUP_SHARED;
	bool bad_clock = s->clock != TWHEEL_CLOCK_REALTIME &&
			 s->clock != TWHEEL_CLOCK_MONOTONIC &&
			 s->clock != TWHEEL_CLOCK_BOOTTIME &&
			 s->clock != TWHEEL_CLOCK_TAI;
	bool bad_events = s->event_size &&
			  (s->flags == TWHEEL_SETUP_COUNT ||
			   (s->event_size != TWHEEL_EVENT_SIZE_ID &&
			    s->event_size != TWHEEL_EVENT_SIZE_FULL));
	bool bad = s->flags > TWHEEL_SETUP_SHARED || !has != !s->shared ||
		   s->shared > TWHEEL_SHARED_MAX || s->tick > KTIME_MAX ||
		   s->__reserved || bad_clock || bad_events;
	bool unknown = s->tick && (s->tick < TWHEEL_TICK_MIN_NS ||
				   s->tick > TWHEEL_TICK_MAX_NS);
	bool large = s->limit > 1U << 30 || (s->limit && s->shared > s->limit);

	if (!bad && !unknown && !large)
		return !ret;
	return (bad && ret == -EINVAL) || (unknown && ret == -EOPNOTSUPP) ||
	       (large && ret == -ENOSPC);
}

static struct twheel_setup some_setup(__u64 *seed)
{
	static const __u32 clocks[] = {
		TWHEEL_CLOCK_MONOTONIC, TWHEEL_CLOCK_REALTIME, TWHEEL_CLOCK_BOOTTIME,
		TWHEEL_CLOCK_TAI, 0, CLOCK_MONOTONIC, 0x102, -1,
	};
	struct twheel_setup s = {
		.size = sizeof(s),
		.flags = one_in(seed, 3),
		.clock = clocks[below(seed, one_in(seed, 6) ? 8 : 4)],
		.event_size = below(seed, 3) * TWHEEL_EVENT_SIZE_ID,
		.tick = one_in(seed, 4) ? below(seed, 2 * SEC) :
					  below(seed, 100) * 1000 * MSEC / 100,
		.limit = one_in(seed, 4) ? random_next(seed) : below(seed, 100),
	};

	if (one_in(seed, 12))
		s.flags = chaos_value(seed);
	if (one_in(seed, 20))
		s.tick = KTIME_MAX + below(seed, 3);
	if (one_in(seed, 20))
		s.event_size = chaos_value(seed);
	if (one_in(seed, 20))
		s.__reserved = chaos_value(seed);
	if (one_in(seed, 3)) {
		s.flags = TWHEEL_SETUP_SHARED;
		s.shared = one_in(seed, 9) ? chaos_value(seed) : below(seed, 9000);
		s.limit = one_in(seed, 2) ? 0 : below(seed, 9999);
		/* much memory, for little */
		if (s.shared > 1U << 16 && s.shared <= TWHEEL_SHARED_MAX)
			s.shared >>= 8;
	}
	if (one_in(seed, 20))
		s.shared ^= 1;
	return s;
}

/* A wheel for this call alone: set up, used, closed with what is in it */
static void make_fresh(struct making *mk)
{
	struct twheel_setup setup = some_setup(&mk->seed);
	struct twheel_op ops[64];
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK), i;
	char buf[1024];
	long ret;

	if (fd < 0)
		return broken("open: %s", strerror(errno));
	ret = wheel_ioctl(fd, TWHEEL_IOC_SETUP, &setup);
	if (!setup_may_give(&setup, ret))
		broken("setup: flags %x clock %x events %u shared %u tick %llu limit %llu gave %ld",
		       setup.flags, setup.clock, setup.event_size, setup.shared,
		       setup.tick, setup.limit, ret);
	for (i = 0; i < 64; i++) {
		ops[i] = op_arm(0, below(&mk->seed, 6 * MSEC), i);
		if (i % 8 == 7)
			ops[i].interval = 1 + below(&mk->seed, MSEC);
	}
	if (one_in(&mk->seed, 8)) {
		close(fd);
		return;
	}
	ret = submit(fd, ops, 1 + below(&mk->seed, 64));
	check_contract("submit", ret);
	if (one_in(&mk->seed, 2))
		poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 3);
	if (one_in(&mk->seed, 2))
		check_contract("read", read(fd, buf, sizeof(buf)) < 0 ? -errno : 0);
	close(fd);
}

/* From here on: in memory that changes meanwhile, on a wheel that may be closed */

static void chaos_fill(__u64 *seed, void *place, size_t size)
{
	char *p = chaos_alias(place);
	size_t i;

	if (!p)
		return;
	for (i = 0; i + sizeof(__u64) <= size; i += sizeof(__u64)) {
		__u64 value = one_in(seed, 2) ? 0 : chaos_value(seed);

		memcpy(p + i, &value, sizeof(value));
	}
}

static __u32 some_likely_size(__u64 *seed, int nr)
{
	static const __u32 sizes[] = {
		sizeof(struct twheel_info), sizeof(struct twheel_setup),
		sizeof(struct twheel_submit), sizeof(struct twheel_drain),
		sizeof(struct twheel_eventfd), sizeof(struct twheel_stats),
		sizeof(struct twheel_doorbell),
	};

	if (one_in(seed, 5))
		return below(seed, 5000);
	return sizes[nr] + (one_in(seed, 8) ? below(seed, 64) : 0);
}

/* Any ioctl with anything */
static void chaos_ioctl(struct making *mk)
{
	int nr = below(&mk->seed, 7);
	__u32 size = some_likely_size(&mk->seed, nr);
	char *place = chaos_place(&mk->seed), *p = chaos_alias(place);

	chaos_fill(&mk->seed, place, sizeof(struct twheel_stats));
	if (p)
		memcpy(p, &size, sizeof(size));
	check_contract("an ioctl", wheel_ioctl(mk->fd, _IO(TWHEEL_IOC_TYPE, nr),
					       place));
}

static void chaos_array(struct making *mk)
{
	bool drains = one_in(&mk->seed, 4);
	struct twheel_submit arg = {
		.size = sizeof(arg),
		.ops = (unsigned long)chaos_place(&mk->seed),
		.nr = one_in(&mk->seed, 9) ? INT_MAX : mk->call->nr * 4,
		.op_size = some_op_size(mk),
	};

	check_contract(drains ? "drain" : "submit",
		       wheel_ioctl(mk->fd, drains ? TWHEEL_IOC_DRAIN :
						    TWHEEL_IOC_SUBMIT, &arg));
}

static void chaos_arm(struct making *mk)
{
	struct twheel_op ops[16];
	__u32 i, n = 1 + mk->call->nr % 16;

	for (i = 0; i < n; i++) {
		ops[i] = op_arm(0, below(&mk->seed, 4 * MSEC), i);
		ops[i].interval = one_in(&mk->seed, 3) ? below(&mk->seed, MSEC) : 0;
	}
	check_contract("submit", submit(mk->fd, ops, n));
}

static void chaos_read(struct making *mk)
{
	bool waits = one_in(&mk->seed, 2);
	struct iovec iov[3];
	int i, n = 1 + below(&mk->seed, 3);
	long ret;

	for (i = 0; i < n; i++)
		iov[i] = (struct iovec){
			chaos_place(&mk->seed), below(&mk->seed, 8000),
		};
	if (waits)
		expect_signal(true);
	ret = preadv2(mk->fd, iov, n, -1, waits ? 0 : RWF_NOWAIT);
	check_contract("read", ret < 0 ? -errno : ret);
	if (waits)
		expect_signal(false);
}

static void chaos_uring(struct making *mk)
{
	uring_leave(mk->fd, chaos_place(&mk->seed), &mk->seed);
}

/* Another wheel takes its number, whoever is inside */
static void chaos_replace(struct making *mk)
{
	struct twheel_setup setup = some_setup(&mk->seed);
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return broken("open: %s", strerror(errno));
	/* (What is not set up here may be so while others are inside.) */
	if (one_in(&mk->seed, 2))
		wheel_ioctl(fd, TWHEEL_IOC_SETUP, &setup);
	dup3(fd, mk->fd, O_CLOEXEC);
	close(fd);
}

/* The area of shared timers, if this wheel has any, with anything in it */
static void chaos_shared(struct making *mk)
{
	struct twheel_info info = { .size = sizeof(info) };
	struct twheel_doorbell bell = { .size = sizeof(bell) };
	__u64 *area;
	__u32 i;

	if (wheel_ioctl(mk->fd, TWHEEL_IOC_INFO, &info) || !info.shared_size)
		return;
	area = mmap(NULL, info.shared_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		    mk->fd, 0);
	/* (It may be another wheel by now.) */
	if (area == MAP_FAILED)
		return;
	for (i = 0; i < mk->call->nr; i++) {
		__u64 at = one_in(&mk->seed, 2) ? below(&mk->seed, 64) :
						  random_next(&mk->seed);

		area[at % (info.shared_size / 8)] = chaos_value(&mk->seed);
	}
	check_contract("doorbell", wheel_ioctl(mk->fd, TWHEEL_IOC_DOORBELL, &bell));
	munmap(area, info.shared_size);
}

struct kind {
	const char *name;
	void (*make)(struct making *mk);
	unsigned int weight;
};

static const struct kind kinds[] = {
	{ "one operation", make_one, 24 },
	{ "submit", make_submit, 20 },
	{ "read", make_read, 20 },
	{ "drain", make_drain, 3 },
	{ "poll", make_poll, 6 },
	{ "info, stats or fdinfo", make_look, 8 },
	{ "eventfd", make_eventfd, 6 },
	{ "what must be refused", make_refused, 8 },
	{ "what is for other files", make_odd, 5 },
	{ "by another descriptor", make_passed, 4 },
	{ "by another process", make_forked, 3 },
	{ "io_uring", make_uring, 4 },
	{ "a signal", make_signal, 2 },
	{ "settings", make_settings, 2 },
	{ "a wheel of its own", make_fresh, 6 },
};

static const struct kind chaos_kinds[] = {
	{ "any ioctl", chaos_ioctl, 10 },
	{ "any array", chaos_array, 10 },
	{ "arm", chaos_arm, 6 },
	{ "read", chaos_read, 10 },
	{ "poll", make_poll, 3 },
	{ "io_uring", chaos_uring, 3 },
	{ "a signal", make_signal, 2 },
	{ "another wheel in its place", chaos_replace, 3 },
	{ "shared timers", chaos_shared, 6 },
};

static const struct kind *kind_in(const struct kind *list, size_t n, __u8 number)
{
	unsigned int sum = 0, i;

	for (i = 0; i < n; i++)
		sum += list[i].weight;
	number %= sum;
	for (i = 0; number >= list[i].weight; i++)
		number -= list[i].weight;
	return &list[i];
}

static const struct kind *kind_of(const struct call *call)
{
	if (call->wheel % WHEELS == WHEEL_CHAOS)
		return kind_in(chaos_kinds, ARRAY_SIZE(chaos_kinds), call->kind);
	return kind_in(kinds, ARRAY_SIZE(kinds), call->kind);
}

const char *call_name(const struct call *call)
{
	return kind_of(call)->name;
}

void call_make(struct call *call)
{
	int w = call->wheel % WHEELS;
	struct making mk = {
		.call = call,
		.seed = call->seed | 1,
		.fd = wheels[w],
		.model = w == WHEEL_CHAOS ? NULL : &shared->models[w],
	};

	kind_of(call)->make(&mk);
}
