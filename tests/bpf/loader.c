// SPDX-License-Identifier: GPL-2.0
/*
 * twheel-loader gives each user wheels within limits, and no client keeps others from theirs: not
 * one that says nothing, half of it, too much, garbage, or that asks for very many.
 *
 * most seconds: 300
 */
#include "bpf.h"
#include "users.h"

#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "loader.h"

#define USER 1000
#define OTHER 1001

/* What a user may have here, as each wheel takes its time */
#define MOST_WHEELS 6
#define WHEELS "6"
#define MOST_MB 8
#define MB "8"
/* A wheel of which there are several in that memory, but not as many */
#define LARGE (1 << 16)

/* Connections of a user at a time */
#define MOST_AT_A_TIME 4

static pid_t loader;

/* It gives all together that many wheels. */
static void start(const char *all)
{
	struct stat st;

	mkdir("/run/twheel", 0755);
	unlink(TW_LOADER_SOCKET);
	loader = fork();
	if (!loader) {
		execl("/bin/twheel-loader", "twheel-loader", "-l", "-w", WHEELS, "-m", MB, "-W",
		      all, NULL);
		_exit(127);
	}
	if (!WAIT_FOR(!stat(TW_LOADER_SOCKET, &st)))
		tap_bail("no loader");
	chmod("/", 0755);
	chmod("/run", 0755);
	chmod(TW_LOADER_SOCKET, 0666);
}

static void stop(int sig)
{
	int status;

	kill(loader, sig);
	waitpid(loader, &status, 0);
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == sig, "status %x", status);
}

static int connected(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = TW_LOADER_SOCKET };
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		tap_bail("connect: %s", strerror(errno));
	return fd;
}

/* What comes: the error that it says, or -ECONNRESET if it is closed without a word */
static int answered(int fd, int fds[TWHEEL_BPF_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(16 * sizeof(int))];
	} control = {};
	struct tw_loader_answer answer = {};
	struct iovec data = { &answer, sizeof(answer) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t ret = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

	if (ret <= 0)
		return ret && errno != ECONNRESET ? -errno : -ECONNRESET;
	EXPECT_EQ(ret, sizeof(answer));
	EXPECT_EQ(control.head.cmsg_len, answer.error ? 0 :
		  CMSG_LEN(TWHEEL_BPF_FDS * sizeof(int)));
	if (!answer.error)
		memcpy(fds, CMSG_DATA(&control.head), TWHEEL_BPF_FDS * sizeof(int));
	return answer.error;
}

static int ask_with(uint32_t size, uint32_t timers, uint64_t tick, int fds[TWHEEL_BPF_FDS])
{
	struct tw_loader_ask ask = { .size = size, .timers = timers, .tick = tick };
	int fd = connected(), ret;

	send(fd, &ask, sizeof(ask), MSG_NOSIGNAL);
	ret = answered(fd, fds);
	close(fd);
	return ret;
}

static int ask(uint32_t timers, int fds[TWHEEL_BPF_FDS])
{
	return ask_with(sizeof(struct tw_loader_ask), timers, TICK, fds);
}

static void close_all(int *fds)
{
	int i;

	for (i = 0; i < TWHEEL_BPF_FDS; i++)
		close(fds[i]);
}

/* It serves: a wheel of its, in which a timer expires */
static void works(void)
{
	unsigned int timer = 0;
	struct wheel wheel;

	if (!EXPECT_EQ(ask(300, wheel.fds), 0))
		return;
	EXPECT_EQ(twheel_bpf_map(wheel.fds, &wheel.area), 0);
	EXPECT_TRUE(twheel_shared_arm(&wheel.area, 7, now(CLOCK_MONOTONIC) + 10 * MSEC) >= 0);
	EXPECT_TRUE(wakes(&wheel, PATIENCE_MS));
	EXPECT_EQ(twheel_shared_take(&wheel.area, &timer, 1), 1);
	EXPECT_EQ(timer, 7);
	EXPECT_EQ(twheel_shared_take(&wheel.area, &timer, 1), 0);
	EXPECT_TRUE(!wakes(&wheel, 0), "readable though there is nothing");
	wheel_end(&wheel);
}

static void as_user(void)
{
	become(USER);
	works();
}

static void test_serves(void)
{
	start("100");
	tap_join(tap_fork(as_user));
	stop(SIGTERM);
}

static void test_refuses(void)
{
	const struct { uint32_t size, timers; uint64_t tick; } wrong[] = {
		{ 0, 1, TICK }, { 15, 1, TICK }, { 17, 1, TICK }, { ~0U, 1, TICK },
		{ 16, 0, TICK }, { 16, TWHEEL_SHARED_MAX + 1, TICK }, { 16, ~0U, TICK },
		{ 16, 1, 0 }, { 16, 1, 999 }, { 16, 1, 1000000001 }, { 16, 1, ~0ULL },
	};
	int fds[TWHEEL_BPF_FDS];
	unsigned int i;

	start("100");
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		EXPECT_EQ(ask_with(wrong[i].size, wrong[i].timers, wrong[i].tick, fds), -EINVAL,
			  "%u", i);
	EXPECT_EQ(ask(TWHEEL_SHARED_MAX, fds), -ENOSPC);
	works();
	stop(SIGTERM);
}

static unsigned int had(uint32_t timers)
{
	int fds[TWHEEL_BPF_FDS];
	unsigned int nr = 0;

	while (nr <= MOST_WHEELS && !ask(timers, fds))
		nr++;
	return nr;
}

/*
 * What is left of each is one descriptor, or none but a mapping. There are two kinds of memory, and
 * each counts by itself: so no more than twice as many of such.
 */
static void some_of_each(void)
{
	int fds[TWHEEL_BPF_FDS];
	struct twheel_area area;
	unsigned int nr = 0, i;

	become(USER);
	while (nr <= 2 * MOST_WHEELS && !ask(256, fds)) {
		EXPECT_EQ(twheel_bpf_map(fds, &area), 0);
		for (i = 0; i < TWHEEL_BPF_FDS; i++)
			if (i != nr % (TWHEEL_BPF_FDS + 1))
				close(fds[i]);
		if (nr++ % (TWHEEL_BPF_FDS + 1) != TWHEEL_BPF_FDS)
			twheel_shared_unmap(&area);
	}
	EXPECT_TRUE(nr >= MOST_WHEELS && nr <= 2 * MOST_WHEELS, "%u", nr);
}

static void large(void)
{
	become(USER);
	EXPECT_EQ(had(LARGE), (MOST_MB << 20) / twheel_bpf_bytes(LARGE));
}

static void all_of_his(void)
{
	become(USER);
	EXPECT_EQ(had(1), MOST_WHEELS);
}

static int told[2];

static void holds_all(void)
{
	all_of_his();
	close(told[0]);
	write(told[1], "", 1);
	pause();
}

static void other(void)
{
	become(OTHER);
	works();
}

/* What one user has is none of another's, and what he gave back he can have again. */
static void test_limits(void)
{
	pid_t holder;
	char byte;

	start("100");
	tap_join(tap_fork(some_of_each));
	tap_join(tap_fork(large));
	if (pipe(told))
		tap_bail("pipe");
	holder = fork();
	if (!holder) {
		holds_all();
		_exit(1);
	}
	close(told[1]);
	EXPECT_EQ(read(told[0], &byte, 1), 1);
	tap_join(tap_fork(other));
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	tap_join(tap_fork(all_of_his));
	stop(SIGTERM);
}

/* A wheel counts, and goes on, whoever loaded it, and whatever became of him. */
static void test_started_anew(void)
{
	int fds[2][TWHEEL_BPF_FDS], more[TWHEEL_BPF_FDS];
	struct wheel wheel;

	start("3");
	EXPECT_EQ(ask(1, wheel.fds), 0);
	EXPECT_EQ(ask(1, fds[0]), 0);
	stop(SIGKILL);
	start("3");
	tap_join(tap_fork(other));
	EXPECT_EQ(ask(1, fds[1]), 0);
	EXPECT_EQ(ask(1, more), -ENOSPC);
	EXPECT_EQ(twheel_bpf_map(wheel.fds, &wheel.area), 0);
	EXPECT_TRUE(twheel_shared_arm(&wheel.area, 7, now(CLOCK_MONOTONIC) + 10 * MSEC) >= 0);
	EXPECT_TRUE(wakes(&wheel, PATIENCE_MS));
	stop(SIGTERM);
	close_all(fds[0]);
	close_all(fds[1]);
	wheel_end(&wheel);
}

/* Connections that do not ask are closed after a while, and do not stand in the way before. */
static void test_silent(void)
{
	int fds[2 * MOST_AT_A_TIME], none[TWHEEL_BPF_FDS];
	__u64 start_time = now(CLOCK_MONOTONIC);
	unsigned int i;

	start("100");
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connected();
	tap_join(tap_fork(other));
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		EXPECT_EQ(answered(fds[i], none), -ECONNRESET);
		close(fds[i]);
	}
	EXPECT_TRUE(now(CLOCK_MONOTONIC) >= start_time + SEC);
	works();
	stop(SIGTERM);
}

/* A message of any length, with descriptors in it, or a good one that nobody waits for */
static void say_anything(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {
		.head = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS },
	};
	struct tw_loader_ask ask = { sizeof(ask), 1 + any(3), TICK };
	uint64_t bytes[64];
	struct iovec data = { bytes, any(sizeof(bytes)) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	int fd = connected(), i;

	for (i = 0; i < 64; i++)
		bytes[i] = any(~0ULL) >> any(64);
	if (any(2)) {
		data.iov_len = sizeof(ask) - (any(2) ? any(sizeof(ask)) : 0);
		memcpy(bytes, &ask, sizeof(ask));
	}
	memset(CMSG_DATA(&control.head), 0, 2 * sizeof(int));
	if (any(3) == 0) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_LEN(2 * sizeof(int));
	}
	if (any(8))
		sendmsg(fd, &message, MSG_NOSIGNAL);
	if (any(4) == 0)
		shutdown(fd, any(3));
	close(fd);
}

static void hostile(void)
{
	__u64 end = now(CLOCK_MONOTONIC) + 2 * SEC;

	become(USER);
	while (now(CLOCK_MONOTONIC) < end)
		say_anything();
}

/* Files that the loader has */
static unsigned int open_files(void)
{
	unsigned int nr = 0;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", loader);
	folder = opendir(path);
	while (folder && readdir(folder))
		nr++;
	if (folder)
		closedir(folder);
	return nr;
}

/* Several that say anything, very often, and meanwhile others get what they ask for */
static void test_garbage(void)
{
	unsigned int before, i;
	pid_t pids[3];

	start("100");
	works();
	before = open_files();
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = tap_fork(hostile);
		seed += 77777;
	}
	for (i = 0; i < 3; i++)
		tap_join(tap_fork(other));
	for (i = 0; i < ARRAY_SIZE(pids); i++)
		tap_join(pids[i]);
	works();
	/* Nothing stays open in it, nor of what it made. */
	EXPECT_TRUE(WAIT_FOR(open_files() == before), "%u, before %u", open_files(), before);
	EXPECT_TRUE(WAIT_FOR(({
		struct twheel_bpf_held of_user, of_all;

		!twheel_bpf_held(USER, &of_user, &of_all) && !of_user.wheels;
	})));
	stop(SIGTERM);
}

/* It dies while somebody waits for an answer: he learns that, and the next one serves. */
static void test_killed(void)
{
	int none[TWHEEL_BPF_FDS], fd, i;

	for (i = 0; i < 6; i++) {
		struct tw_loader_ask ask = { sizeof(ask), 1 << 16, TICK };
		int ret;

		start("100");
		fd = connected();
		send(fd, &ask, sizeof(ask), MSG_NOSIGNAL);
		sleep_ns(i * 8 * MSEC);
		stop(SIGKILL);
		ret = answered(fd, none);
		EXPECT_TRUE(!ret || ret == -ECONNRESET, "%d", ret);
		if (!ret)
			close_all(none);
		close(fd);
	}
	start("100");
	works();
	stop(SIGTERM);
}

int main(void)
{
	tap_start(300);
	seed = number_of("SEED", 1) * 88172645463325252ULL | 1;
	RUN(test_serves, "an ordinary user gets a wheel");
	RUN(test_refuses, "what can't be asked for is refused");
	RUN(test_limits, "a user's wheels and their memory are limited, and others have theirs");
	RUN(test_started_anew, "wheels go on, and count, when it is killed and started anew");
	RUN(test_silent, "who connects and says nothing is in nobody's way");
	RUN(test_garbage, "garbage, half requests, many requests");
	RUN(test_killed, "it is killed in the middle of a request");
	return tap_end();
}
