// SPDX-License-Identifier: GPL-2.0
/*
 * A BPF token, as a container's manager gives it: who has capabilities in a user namespace of his
 * own alone loads a wheel with it, and none without.
 *
 * libbpf before 1.4 knows nothing of tokens. So the token is put into its calls of bpf(2) here.
 */
#include "bpf.h"

#include <dlfcn.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdarg.h>

/* Newer than the headers of some distributions */
#define TOKEN_CREATE 36
#define WITH_TOKEN (1U << 16)

static int token = -1;

/* Where the attributes of these commands have their flags and the token, in words */
static const struct {
	unsigned int flags;
	unsigned int fd;
} places[] = {
	[BPF_MAP_CREATE] = { 4, 19 },
	[BPF_PROG_LOAD] = { 11, 36 },
	[BPF_BTF_LOAD] = { 8, 9 },
};

/* libbpf's calls come by here, and go on to the C library. */
long syscall(long nr, ...)
{
	static long (*next)(long nr, ...);
	__u32 words[64] = {};
	size_t least;
	va_list list;
	long a[5];
	int i;

	if (!next)
		next = dlsym(RTLD_NEXT, "syscall");
	va_start(list, nr);
	for (i = 0; i < 5; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (nr == SYS_bpf && token >= 0 && a[0] <= BPF_BTF_LOAD && places[a[0]].fd) {
		least = (places[a[0]].fd + 1) * sizeof(words[0]);
		if ((size_t)a[2] > sizeof(words))
			tap_bail("command %ld of bpf(2) is longer", a[0]);
		memcpy(words, (void *)a[1], a[2]);
		words[places[a[0]].flags] |= WITH_TOKEN;
		words[places[a[0]].fd] = token;
		a[1] = (long)words;
		a[2] = (size_t)a[2] > least ? a[2] : (long)least;
	}
	return next(nr, a[0], a[1], a[2], a[3], a[4]);
}

static int asks[2], answers[2];

/* Mounted by the manager, for the container: its descriptor is a number there. */
static int get_token(void)
{
	int fs = syscall(SYS_fsopen, "bpf", 0);
	__u32 attr[2] = {};
	char done;

	if (fs < 0 || write(asks[1], &fs, sizeof(fs)) != sizeof(fs) ||
	    read(answers[0], &done, 1) != 1)
		tap_bail("no file system: %s", strerror(errno));
	attr[1] = openat(syscall(SYS_fsmount, fs, 0, 0), ".", O_RDONLY | O_DIRECTORY);
	return syscall(SYS_bpf, TOKEN_CREATE, attr, sizeof(attr));
}

static void in_container(void)
{
	struct twheel_bpf_setup setup = { .timers = 1, .accounts = -1 };
	int fds[TWHEEL_BPF_FDS];
	struct wheel wheel;
	unsigned int timer;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		tap_bail("unshare: %s", strerror(errno));
	EXPECT_EQ(twheel_bpf_load(&setup, fds), -EPERM);
	token = get_token();
	EXPECT_TRUE(token >= 0, "no token: %s", strerror(errno));
	wheel_load(&wheel, 1024, TICK, -1, 0);
	twheel_shared_arm(&wheel.area, 5, now(CLOCK_MONOTONIC) + 20 * MSEC);
	EXPECT_TRUE(wakes(&wheel, 2000));
	EXPECT_EQ(twheel_shared_take(&wheel.area, &timer, 1), 1);
	EXPECT_EQ(timer, 5);
	wheel_end(&wheel);
}

static void test_token(void)
{
	static const char *const delegated[] = {
		"delegate_cmds", "delegate_maps", "delegate_progs", "delegate_attachs",
	};
	unsigned int i;
	pid_t child;
	int fs;

	EXPECT_EQ(pipe(asks) | pipe(answers), 0);
	child = tap_fork(in_container);
	EXPECT_EQ(read(asks[0], &fs, sizeof(fs)), sizeof(fs));
	fs = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), fs, 0);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, delegated[i], "any", 0),
			  0);
	EXPECT_EQ(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), 0);
	EXPECT_EQ(write(answers[1], "", 1), 1);
	tap_join(child);
}

int main(void)
{
	tap_start(60);
	RUN(test_token, "who has a token of his container's manager loads a wheel");
	return tap_end();
}
