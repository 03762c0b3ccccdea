// SPDX-License-Identifier: GPL-2.0
/*
 * The calls: each is made up from a struct call, made, and reported to the model.
 */
#include "calls.h"
#include "wheel_calls.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>

/* For each thread that makes calls */
void calls_thread(void)
{
	memory_init();
	signals_init();
}

/* Work of io_uring for this thread may come from now on. */
void expect_notice(void)
{
	notice_end = now(CLOCK_MONOTONIC) + 3 * SEC;
}

/* What any call may give when nothing is known of its arguments */
static void check_contract(const char *what, long ret)
{
	static const int errors[] = {
		ENOTTY, EINVAL, E2BIG, EOPNOTSUPP, ENOENT, ENOSPC, EBUSY, EFAULT, EBADF, EINTR,
		EAGAIN,
	};
	size_t i;

	for (i = 0; ret < 0 && i < ARRAY_SIZE(errors); i++)
		if (ret == -errors[i])
			return;
	if (ret < 0)
		broken("%s gave %ld", what, ret);
}

static bool sometimes_uring(int fd, const struct twheel_submit *arg, long *ret)
{
	__u64 seed = (arg->ops * 0x9e3779b9 + arg->nr) | 1;

	return one_in(&seed, 8) && uring_submit(fd, arg, ret);
}

static void make_submit(struct making *mk)
{
	submit_array(mk, sometimes_uring);
}

static void make_one(struct making *mk)
{
	mk->nr = 1;
	make_submit(mk);
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
	*piece = memory_piece(&mk->seed, mk->shape, want < size ? size : want);
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
	if (!memory_check(&piece))
		broken("%s wrote around its structure", stats ? "stats" : "info");
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

/* From now on, reads wait or don't, for all that have the wheel. */
static void make_flags(struct making *mk)
{
	int flags = one_in(&mk->seed, 4) ? O_NONBLOCK : 0;

	fcntl(mk->fd, F_SETFL, flags | (one_in(&mk->seed, 4) ? O_ASYNC : 0));
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
	check_contract("setup", ret);
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
		.nr = one_in(&mk->seed, 9) ? INT_MAX : mk->nr * 4,
		.op_size = some_op_size(&mk->seed),
	};

	check_contract(drains ? "drain" : "submit",
		       wheel_ioctl(mk->fd, drains ? TWHEEL_IOC_DRAIN :
						    TWHEEL_IOC_SUBMIT, &arg));
}

static void chaos_arm(struct making *mk)
{
	struct twheel_op ops[16];
	__u32 i, n = 1 + mk->nr % 16;

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
		signals_after(3 * MSEC);
	ret = preadv2(mk->fd, iov, n, -1, waits ? 0 : RWF_NOWAIT);
	check_contract("read", ret < 0 ? -errno : ret);
	if (waits)
		signals_after(0);
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
	for (i = 0; i < mk->nr; i++) {
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
	{ "flags", make_flags, 3 },
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
		.seed = call->seed | 1,
		.fd = wheels[w],
		.model = w == WHEEL_CHAOS ? NULL : &shared->models[w],
		.shape = call->shape,
		.nr = call->nr <= 200 ? call->nr : (call->nr - 200) * 8,
		.waits = true,
		.parts = true,
	};

	kind_of(call)->make(&mk);
}
