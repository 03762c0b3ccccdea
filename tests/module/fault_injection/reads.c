// SPDX-License-Identifier: GPL-2.0
/*
 * A read that waits while copies fail, and one whose copies never succeed. (Those that
 * fail once: arrays.c.)
 */
#include "scene.h"

#define N 60
#define EVENT sizeof(struct twheel_event)

static char *buffer;
static bool *in_read;

/* Timers that expire while it waits */
static void test_wait(void)
{
	struct faults f = {};

	while (faults_next(&f, COPY, 0)) {
		struct twheel_event ev = {};
		struct twheel_op op = op_arm(TWHEEL_ABS, now(CLOCK_MONOTONIC) + 3 * MSEC, f.n);
		long ret;

		wheel = wheel_open(0);
		op.id = arm_op(wheel, op);
		ret = WITH_FAULT(&f, NEG(read(wheel, &ev, EVENT)));
		EXPECT_TRUE(now(CLOCK_MONOTONIC) >= op.deadline, "early");
		EXPECT_EQ(ret, EVENT);
		EXPECT_TRUE(ev.id == op.id && ev.user_data == f.n && ev.deadline == op.deadline);
		EXPECT_EQ(wheel_stats(wheel).delivered, 1);
		EXPECT_EQ(cancel(wheel, op.id), -ENOENT);
		close(wheel);
	}
}

/*
 * Where no copy without faults ever succeeds, though the memory is there, a read goes on
 * until a signal comes, which need not kill. (Before faults_start(), so that none of
 * these faults is for this process.)
 */
static void endless_child(void)
{
	if (write_text("/proc/thread-self/make-it-fail", "1"))
		tap_bail("make-it-fail: %s", strerror(errno));
	*in_read = true;
	syscall(SYS_read, wheel, buffer, N * EVENT);
}

static void endless(__u32 flags)
{
	const char *copies = fault_dirs[INJECTED_KINDS - 1];
	clockid_t clock;
	__u64 start;
	int status;
	pid_t pid;

	in_read = map_shared(sizeof(*in_read));
	buffer = map_pages(1, PROT_READ | PROT_WRITE);
	wheel = wheel_open(O_NONBLOCK);
	EXPECT_EQ(wheel_setup(wheel, TWHEEL_CLOCK_MONOTONIC, 0, 0, flags), 0);
	scene_adopt(wheel, N, "P");
	fault_write(copies, "times", "-1");
	fault_write(copies, "task-filter", "Y");
	fault_write(copies, "verbose", "0");
	fault_write(copies, "probability", "100");
	pid = tap_fork(endless_child);
	if (clock_getcpuclockid(pid, &clock))
		tap_bail("clock_getcpuclockid failed");
	EXPECT_TRUE(WAIT_FOR(__atomic_load_n(in_read, __ATOMIC_ACQUIRE)));
	start = now(clock);
	EXPECT_TRUE(WAIT_FOR(now(clock) > start + 100 * MSEC), "it does not go on");
	kill(pid, SIGSTOP);
	EXPECT_TRUE(WAIT_FOR(waitpid(pid, &status, WUNTRACED | WNOHANG) == pid));
	fault_write(copies, "probability", "0");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	scene_check();
	model_finish(&model, wheel);
	/* One more was armed in the end. */
	EXPECT_EQ(flags ? model.counted : model.events, N + 1);
	close(wheel);
}

static void test_endless(void)
{
	endless(0);
}

static void test_endless_count(void)
{
	endless(TWHEEL_SETUP_COUNT);
}

int main(void)
{
	tap_start(PATIENCE_S);
	memory_init();
	RUN(test_endless, "copies that never succeed");
	RUN(test_endless_count, "copies that never succeed, of a count");
	faults_start();
	RUN(test_wait, "read that waits");
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
