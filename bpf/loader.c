// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * twheel-loader: loads shared timers for who may not load BPF programs, and hands their descriptors
 * over. It has CAP_BPF and CAP_PERFMON, and everybody of its socket's group may ask it: nothing of
 * what comes from there is believed but what is checked here, and a client waits for nobody but
 * for those who asked before.
 *
 * It keeps nothing of a wheel. How many a user has, the kernel says, each time: so a wheel is
 * counted as long as it is there, also after this program was started anew.
 */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "loader.h"
#include "twheel_bpf.h"

/* Connections that are accepted together, at most; more than wait at the socket */
#define MOST_WAITING 1024

/* Connections, of all and of a user, and how long one may say nothing, in ns */
#define MOST_CLIENTS 64
#define MOST_OF_USER 4
#define PATIENCE 2000000000ULL

/*
 * The kernel takes a moment to free a wheel that is closed: how long one waits for that, who has no
 * more left, and how often it is looked for, in ns
 */
#define WAIT 400000000ULL
#define LOOK 20000000ULL

/* Users that have wheels at a time. Each has an account. */
#define MOST_USERS 256

#define LEAST_TICK 1000
#define MOST_TICK 1000000000

/* The first descriptor that systemd passes */
#define LISTEN_FD 3

#define GROUP "twheel"
#define NEW_SOCKET TW_LOADER_SOCKET ".new"

/**
 * struct client - a connection
 * @fd: its socket
 * @uid: who it is
 * @until: when it has to have asked, or to get an answer, in ns
 * @asked: @ask is what for
 * @next: when there may be more left, in ns
 */
struct client {
	int fd;
	uid_t uid;
	uint64_t until;
	bool asked;
	uint64_t next;
	struct tw_loader_ask ask;
};

/**
 * struct user - whose account it is
 * @used: it is somebody's
 * @uid: whose
 * @served: when that user was served last: the larger, the later
 */
struct user {
	bool used;
	uid_t uid;
	uint64_t served;
};

/* Limits of a user, and of all; in bytes and wheels */
static struct twheel_bpf_held user_limit = { .wheels = 32, .bytes = 64 << 20 };
static struct twheel_bpf_held all_limit = { .wheels = 512, .bytes = 512 << 20 };

static struct client clients[MOST_CLIENTS];
static unsigned int nr_clients;
static struct user users[MOST_USERS];
static uint64_t nr_served;
static int accounts;
/* Why this kernel does not take the program, or 0 */
static int refused;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("twheel-loader: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/*
 * It fits into the socket's buffer; who is not there any more gets nothing. The kernel has a bound
 * for descriptors that are under way, which one line tells of.
 */
static void answer(int fd, int error, const int *fds)
{
	static bool full;
	struct tw_loader_answer what = { .error = error, .time = now() };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(TWHEEL_BPF_FDS * sizeof(int))];
	} control = {};
	struct iovec data = { &what, sizeof(what) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (!error) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(TWHEEL_BPF_FDS * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, TWHEEL_BPF_FDS * sizeof(int));
	}
	if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == ETOOMANYREFS &&
	    !full) {
		full = true;
		say("users don't take the descriptors that they asked for, and others get none "
		    "meanwhile: raise LimitNOFILE, see twheel-loader(8)");
	}
}

static bool has_wheels(uid_t uid)
{
	struct twheel_bpf_held of_user, of_all;

	return twheel_bpf_held(uid, &of_user, &of_all) || of_user.wheels;
}

/* The account of a user, or -1 while all are those of others that have wheels */
static int account_of(uid_t uid)
{
	int i, free = -1;

	for (i = 0; i < MOST_USERS; i++) {
		if (users[i].used && users[i].uid == uid)
			return i;
		if (!users[i].used && free < 0)
			free = i;
	}
	for (i = 0; i < MOST_USERS && free < 0; i++)
		if (!has_wheels(users[i].uid))
			free = i;
	if (free >= 0)
		users[free] = (struct user){ .used = true, .uid = uid };
	return free;
}

static bool is_over(const struct twheel_bpf_held *held, const struct twheel_bpf_held *limit,
		    uint64_t bytes)
{
	return held->wheels >= limit->wheels || held->bytes >= limit->bytes ||
	       bytes > limit->bytes - held->bytes;
}

/* Make what a client asked for. Returns 0, and then there are descriptors, or the error. */
static int make(const struct client *client, int fds[TWHEEL_BPF_FDS])
{
	const struct tw_loader_ask *ask = &client->ask;
	struct twheel_bpf_setup setup = {
		.timers = ask->timers, .tick = ask->tick, .accounts = accounts,
		.owner = client->uid,
	};
	struct twheel_bpf_held of_user, of_all;
	int account, ret;
	uint64_t bytes;

	if (ask->size != sizeof(*ask) || !ask->timers || ask->timers > TWHEEL_SHARED_MAX ||
	    ask->tick < LEAST_TICK || ask->tick > MOST_TICK)
		return -EINVAL;
	if (refused)
		return -ENODEV;
	ret = twheel_bpf_held(client->uid, &of_user, &of_all);
	if (ret) {
		say("can't find out what wheels there are: %s", strerror(-ret));
		return -ENODEV;
	}
	bytes = twheel_bpf_bytes(ask->timers);
	if (is_over(&of_user, &user_limit, bytes) || is_over(&of_all, &all_limit, bytes))
		return -ENOSPC;
	account = account_of(client->uid);
	if (account < 0)
		return -ENOSPC;
	users[account].served = ++nr_served;
	setup.account = account;
	ret = twheel_bpf_load(&setup, fds);
	if (ret && ret != -ENOMEM) {
		say("can't load a wheel of %u timers: %s", ask->timers, strerror(-ret));
		ret = -ENODEV;
	}
	return ret;
}

static void end(struct client *client)
{
	close(client->fd);
	*client = clients[--nr_clients];
}

static void serve(struct client *client)
{
	int fds[TWHEEL_BPF_FDS], ret = make(client, fds), i;

	if (ret == -ENOSPC && now() < client->until) {
		client->next = now() + LOOK;
		return;
	}
	answer(client->fd, ret, fds);
	for (i = 0; !ret && i < TWHEEL_BPF_FDS; i++)
		close(fds[i]);
	end(client);
}

static uint64_t last_served(uid_t uid)
{
	int i;

	for (i = 0; i < MOST_USERS; i++)
		if (users[i].used && users[i].uid == uid)
			return users[i].served;
	return 0;
}

/* Users take turns, however much one of them asks for. */
static void serve_next(void)
{
	struct client *next = NULL;
	uint64_t time = now();
	unsigned int i;

	for (i = 0; i < nr_clients; i++)
		if (clients[i].asked && clients[i].next <= time &&
		    (!next || last_served(clients[i].uid) < last_served(next->uid)))
			next = &clients[i];
	if (next)
		serve(next);
}

/* Returns false where there is no connection to begin with. */
static bool begin(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	socklen_t size = sizeof(struct ucred);
	struct ucred who;
	unsigned int i, nr = 0;

	if (fd < 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
		close(fd);
		return true;
	}
	for (i = 0; i < nr_clients; i++)
		nr += clients[i].uid == who.uid;
	/* It may come again. */
	if (nr >= MOST_OF_USER) {
		close(fd);
		return true;
	}
	clients[nr_clients++] = (struct client){
		.fd = fd, .uid = who.uid, .until = now() + PATIENCE,
	};
	return true;
}

/* One message is all that a client may say. (Descriptors in it are dropped by the kernel.) */
static void hear(struct client *client)
{
	ssize_t ret = recv(client->fd, &client->ask, sizeof(client->ask), MSG_TRUNC);

	if (ret < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (ret == sizeof(client->ask)) {
		client->asked = true;
		client->until = now() + WAIT;
		return;
	}
	if (ret > 0)
		answer(client->fd, -EINVAL, NULL);
	end(client);
}

/* When a client is to be looked at again, if it says nothing */
static uint64_t due(const struct client *client)
{
	return client->asked ? client->next : client->until;
}

/* What is to be waited for: who asked already is only to be served. Returns for how many ms. */
static int wait_for(struct pollfd *fds, int listening)
{
	uint64_t time = now(), first = ~0ULL;
	unsigned int i;

	fds[0] = (struct pollfd){
		.fd = nr_clients < MOST_CLIENTS ? listening : -1, .events = POLLIN,
	};
	for (i = 0; i < nr_clients; i++) {
		fds[i + 1] = (struct pollfd){
			.fd = clients[i].asked ? -1 : clients[i].fd, .events = POLLIN,
		};
		if (due(&clients[i]) < first)
			first = due(&clients[i]);
	}
	if (first == ~0ULL)
		return -1;
	return first <= time ? 0 : (int)((first - time) / 1000000) + 1;
}

static void turn(int listening)
{
	struct pollfd fds[MOST_CLIENTS + 1];
	unsigned int i = nr_clients;
	int ms = wait_for(fds, listening);

	if (poll(fds, i + 1, ms) < 0)
		return;
	/* From the last on, as the last gets the place of one that ends. */
	while (i--) {
		if (fds[i + 1].revents)
			hear(&clients[i]);
		else if (!clients[i].asked && clients[i].until <= now())
			end(&clients[i]);
	}
	/* All that wait, before one is served: else one user's many would keep others waiting. */
	for (i = 0; fds[0].revents && i < MOST_WAITING && nr_clients < MOST_CLIENTS; i++)
		if (!begin(listening))
			break;
	serve_next();
}

/* Does this kernel take the program? If not, there is one line about it, and all are refused. */
static void try_to_load(void)
{
	struct twheel_bpf_setup setup = { .timers = 1, .accounts = accounts };
	struct twheel_bpf_held of_user, of_all;
	int fds[TWHEEL_BPF_FDS], i;

	refused = accounts < 0 ? accounts : twheel_bpf_load(&setup, fds);
	for (i = 0; !refused && i < TWHEEL_BPF_FDS; i++)
		close(fds[i]);
	if (!refused)
		refused = twheel_bpf_held(0, &of_user, &of_all);
	/* That may pass: systemd starts it again. */
	if (refused == -ENOMEM) {
		say("there is no memory to find out whether this kernel takes the BPF program");
		exit(EXIT_FAILURE);
	}
	if (refused)
		say("this kernel does not take the BPF program, and all are refused: %s; it takes "
		    "6.12 or later without PREEMPT_RT, CAP_BPF and CAP_PERFMON",
		    strerror(-refused));
}

/* Wheels are on the host's clock, and clients are told what time it is. */
static void check_clock(void)
{
	char name[64] = "";

	if (readlink("/proc/self/ns/time", name, sizeof(name) - 1) > 0 &&
	    strcmp(name, "time:[4026531834]")) {
		say("in a time namespace it would give out the wrong clock: start it on the host");
		exit(EXIT_FAILURE);
	}
}

/* The socket, where there is no systemd to make it. It is named once it can be connected to. */
static int listen_here(void)
{
	const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = NEW_SOCKET };
	const struct group *group = getgrnam(GROUP);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	umask(0117);
	if (fd < 0 || (unlink(NEW_SOCKET) && errno != ENOENT) ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    (group && chown(NEW_SOCKET, -1, group->gr_gid)) || listen(fd, 128) ||
	    rename(NEW_SOCKET, TW_LOADER_SOCKET)) {
		say("can't listen at " TW_LOADER_SOCKET ": %s", strerror(errno));
		exit(EXIT_FAILURE);
	}
	return fd;
}

static int passed_socket(void)
{
	const char *nr = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	int type = 0;
	socklen_t size = sizeof(type);

	if (!nr || strcmp(nr, "1") || !pid || atoi(pid) != getpid() ||
	    getsockopt(LISTEN_FD, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_SEQPACKET) {
		say("it gets its socket from systemd: systemctl start twheel-loader.socket; "
		    "without systemd: twheel-loader -l");
		exit(EXIT_FAILURE);
	}
	return LISTEN_FD;
}

static uint64_t option_number(const char *text, uint64_t most)
{
	char *end;
	uint64_t number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || number > most) {
		say("'%s' has to be a whole number, %llu at most", text, (unsigned long long)most);
		exit(EXIT_FAILURE);
	}
	return number;
}

static void show_usage(void)
{
	fputs("usage: twheel-loader [-l] [-w WHEELS] [-m MB] [-W WHEELS] [-M MB]\n"
	      "Loads shared timers as BPF programs for who may not: see twheel-loader(8).\n"
	      "  -l         listen at " TW_LOADER_SOCKET " itself, where systemd does not\n"
	      "  -w WHEELS  wheels that a user may have (32)\n"
	      "  -m MB      and their memory (64)\n"
	      "  -W WHEELS  wheels that all users together may have (512)\n"
	      "  -M MB      and their memory (512)\n", stderr);
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	bool alone = false;
	int option, fd;

	while ((option = getopt(argc, argv, "lw:m:W:M:")) != -1) {
		switch (option) {
		case 'l':
			alone = true;
			break;
		case 'w':
			user_limit.wheels = option_number(optarg, UINT32_MAX);
			break;
		case 'm':
			user_limit.bytes = option_number(optarg, UINT32_MAX) << 20;
			break;
		case 'W':
			all_limit.wheels = option_number(optarg, UINT32_MAX);
			break;
		case 'M':
			all_limit.bytes = option_number(optarg, UINT32_MAX) << 20;
			break;
		default:
			show_usage();
		}
	}
	if (optind < argc)
		show_usage();
	check_clock();
	fd = alone ? listen_here() : passed_socket();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	accounts = twheel_bpf_accounts(MOST_USERS);
	try_to_load();
	for (;;)
		turn(fd);
}
