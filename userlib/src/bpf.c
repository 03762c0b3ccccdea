// SPDX-License-Identifier: LGPL-2.1-or-later
/* Shared timers in a BPF program: how they are had, and what is not done by twheel_shared.h. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bpf.h"
#include "loader.h"
#include "user/user.h"

/* How long the loader may take, in seconds, with others that it serves before */
#define PATIENCE 20

#define SEC 1000000000ULL

/* Expiries that are taken together */
#define TAKEN 64

int bpf_may(void)
{
	return access(TW_LOADER_SOCKET, W_OK) ? -errno : 0;
}

/* -EAGAIN where the loader has closed the connection, see loader.h */
static int ask(int fd, const struct tw_loader_ask *ask)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = TW_LOADER_SOCKET };
	const struct timeval patience = { .tv_sec = PATIENCE };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    send(fd, ask, sizeof(*ask), MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : errno == EPIPE ? -EAGAIN : -errno;
	return 0;
}

static void close_all(const int *fds)
{
	int i;

	for (i = 0; i < TWHEEL_BPF_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int receive(int fd, struct tw_loader_answer *answer, int fds[TWHEEL_BPF_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(TWHEEL_BPF_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec data = { answer, sizeof(*answer) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t ret;

	do {
		ret = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return errno == EAGAIN ? -ETIMEDOUT : errno == ECONNRESET ? -EAGAIN : -errno;
	if (!ret)
		return -EAGAIN;
	if (control.head.cmsg_level == SOL_SOCKET && control.head.cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(&control.head),
		       control.head.cmsg_len - CMSG_LEN(0));
	if (ret != sizeof(*answer) || answer->error > 0)
		return -EPROTO;
	if (answer->error)
		return answer->error;
	return fds[TWHEEL_BPF_FDS - 1] < 0 ? -EMFILE : 0;
}

static uint64_t time_here(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static int try_once(const struct tw_loader_ask *request, struct tw_loader_answer *answer,
		    int fds[TWHEEL_BPF_FDS])
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = ask(fd, request);
	if (!ret)
		ret = receive(fd, answer, fds);
	close(fd);
	return ret;
}

/* The descriptors of a wheel whose clock is that of this process: in a time namespace, it isn't. */
static int get(uint32_t nr, uint64_t tick, int fds[TWHEEL_BPF_FDS])
{
	const struct tw_loader_ask request = {
		.size = sizeof(request), .timers = nr, .tick = tick,
	};
	const struct timespec a_while = { .tv_nsec = 10000000 };
	uint64_t before = time_here();
	struct tw_loader_answer answer;
	int ret;

	while ((ret = try_once(&request, &answer, fds)) == -EAGAIN) {
		if (time_here() - before > PATIENCE * SEC)
			return -ETIMEDOUT;
		nanosleep(&a_while, NULL);
	}
	if (!ret && (answer.time < before || answer.time > time_here()))
		ret = -EOPNOTSUPP;
	return ret;
}

static int open_all(struct bpf_wheel *bpf, uint32_t nr, uint64_t tick)
{
	int ret = get(nr, tick, bpf->fds);

	if (!ret)
		ret = twheel_bpf_map(bpf->fds, &bpf->area);
	if (!ret && bpf->area.nr < nr)
		ret = -EPROTO;
	bpf->nr = nr;
	return ret;
}

/* A thread that is cancelled must leave nothing open. */
int bpf_open(uint32_t nr, uint64_t tick, struct bpf_wheel **bpfp)
{
	struct bpf_wheel *bpf = calloc(1, sizeof(*bpf));
	int ret, state;

	if (!bpf)
		return -ENOMEM;
	memset(bpf->fds, -1, sizeof(bpf->fds));
	bpf->forks = user_forks;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = open_all(bpf, nr, tick);
	if (ret)
		bpf_close(bpf);
	else
		*bpfp = bpf;
	pthread_setcancelstate(state, NULL);
	return ret;
}

void bpf_close(struct bpf_wheel *bpf)
{
	if (!bpf)
		return;
	if (bpf->area.shared)
		twheel_shared_unmap(&bpf->area);
	close_all(bpf->fds);
	free(bpf);
}

/* More than were asked for are not to be seen. */
int bpf_map(const struct bpf_wheel *bpf, struct twheel_area *area)
{
	int ret = twheel_bpf_map(bpf->fds, area);

	if (!ret)
		area->nr = bpf->nr;
	return ret;
}

/* What is known of them, in what a wheel in the program says of itself */
void bpf_info(const struct bpf_wheel *bpf, struct twheel_info *info)
{
	uint64_t next = __atomic_load_n(&bpf->area.shared->next_wake, __ATOMIC_RELAXED);

	info->shared_size = bpf->area.size;
	if (next != ~0ULL && (!info->next_expiry || next < info->next_expiry))
		info->next_expiry = next;
}

/* As the module says it: not earlier than what the timer was armed for */
static uint64_t deadline_of(uint64_t word)
{
	return (word & TWHEEL_WORD_NEVER) | TWHEEL_WORD_ARMED;
}

static void fill_event(const struct bpf_wheel *bpf, unsigned int nr, void *to, size_t size)
{
	uint64_t word = __atomic_load_n(&bpf->area.words[nr], __ATOMIC_RELAXED);
	struct twheel_event event = {
		.user_data = nr,
		.deadline = deadline_of(word),
		.flags = TWHEEL_EVENT_SHARED,
	};

	memcpy(to, &event, size);
}

ssize_t bpf_read(struct bpf_wheel *bpf, void *events, size_t bytes, size_t size)
{
	unsigned int timers[TAKEN], nr, i;
	size_t total = 0, room;

	if (bpf->forks != user_forks)
		return -EBADF;
	do {
		room = bytes / size - total;
		nr = twheel_shared_take(&bpf->area, timers, room < TAKEN ? room : TAKEN);
		for (i = 0; i < nr; i++)
			fill_event(bpf, timers[i], (char *)events + total++ * size, size);
	} while (nr && total < bytes / size);
	return total ? (ssize_t)(total * size) : -EAGAIN;
}

/* Each call goes on where the one before ended, so that all together go through them once. */
unsigned int bpf_drain(struct bpf_wheel *bpf, void *ops, unsigned int nr, unsigned int op_size)
{
	uint32_t all = bpf->area.nr, i, n, done = 0;

	/* (A power of two: so nothing is left out when the count begins at 0 again.) */
	for (i = 0; i < all && done < nr; i++) {
		struct twheel_op op;
		uint64_t word;

		n = __atomic_fetch_add(&bpf->drained, 1, __ATOMIC_RELAXED) % all;
		word = __atomic_load_n(&bpf->area.words[n], __ATOMIC_RELAXED);
		if (!(word & TWHEEL_WORD_ARMED) ||
		    !(__atomic_fetch_and(&bpf->area.words[n], ~TWHEEL_WORD_ARMED,
					 __ATOMIC_SEQ_CST) & TWHEEL_WORD_ARMED))
			continue;
		op = twheel_op_arm(TWHEEL_ABS, deadline_of(word), 0, n);
		memcpy((char *)ops + (size_t)done++ * op_size, &op, op_size);
	}
	return done;
}
