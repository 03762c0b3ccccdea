// SPDX-License-Identifier: GPL-2.0
/*
 * Memory at an end: a cgroup at its limit gets ENOMEM, and its programs live on and
 * can do all that needs no memory; what is in a wheel stays right. Memory is charged
 * to the opener's cgroup.
 *
 * A killed program is found out by its parent, and by the kernel's log.
 */
#include "cgroup.h"

#include <sys/sysinfo.h>

#define BATCH 1024
#define HUNGRY_MAX "8M"

/* What processes tell each other */
struct shared {
	long armed;
	long error;
	long long before[2], after[2];
};

static struct shared *shared;
static bool cgroups;
static struct twheel_op batch[BATCH];

/* ---- cgroups ---- */

static bool cgroups_ready(void)
{
	memset(shared, 0, sizeof(*shared));
	if (!cgroups)
		tap_skip("this kernel has no memory controller in cgroup v2");
	return cgroups;
}

static long long cgroup_memory(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP "%s/memory.current", name);
	return number_after(path, "");
}

static void cgroup_end(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP "%s", name);
	/* What is charged to it may be freed a while later. */
	EXPECT_TRUE(WAIT_FOR(!rmdir(path)), "%s: %s", name, strerror(errno));
}

/* ---- a wheel that takes all memory ---- */

/* Until the memory is at an end, or @max are there; gives the number */
static long arm_batches(int fd, long max)
{
	long armed = 0, done = BATCH, i;

	for (shared->error = 0; armed < max && !shared->error;) {
		for (i = 0; i < BATCH; i++)
			batch[i] = op_arm(0, HOUR, i);
		done = submit(fd, batch, BATCH);
		shared->error = done < 0 ? done : batch[done - 1].result;
		for (i = 0; i < done; i++)
			armed += !batch[i].result;
	}
	return armed;
}

/*
 * Touches nothing new once the memory is at its end: a page fault of its own
 * would be fatal there, and would be nobody's fault.
 */
static void become_hungry(void)
{
	memset(batch, 1, sizeof(batch));
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		tap_bail("mlockall: %s", strerror(errno));
	cgroup_move("hungry", getpid());
}

/* All memory of the cgroup into one wheel */
static int eat(void)
{
	int fd = wheel_open(O_NONBLOCK);

	shared->armed = arm_batches(fd, 10000000);
	EXPECT_EQ(shared->error, -ENOMEM);
	EXPECT_TRUE(shared->armed > 10000, "%ld armed", shared->armed);
	EXPECT_TRUE(shared->armed <= (8 << 20) / 32, "%ld armed in 8 MiB", shared->armed);
	EXPECT_EQ(wheel_info(fd).pending, shared->armed);
	return fd;
}

/* All that needs no memory can be done. */
static void hungry_child(void)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	struct twheel_event ev;
	int fd, second, i;

	become_hungry();
	second = wheel_open(O_NONBLOCK);
	fd = eat();
	/* a wheel's first timer needs most */
	for (i = 0; i < 100; i++)
		EXPECT_EQ(op_single(second, &op), -ENOMEM);
	EXPECT_EQ(wheel_info(second).pending, 0);
	EXPECT_EQ(drain(fd, &op, 1), 1);
	arm(fd, 0, 10 * MSEC, 77);
	EXPECT_EQ(collect(fd, &ev, 1), 1);
	EXPECT_EQ(ev.user_data, 77);
	EXPECT_EQ(cancel(fd, arm(fd, 0, HOUR, 0)), 0);

	/* what one wheel gives back, the other may have */
	close(fd);
	EXPECT_TRUE(WAIT_FOR((op = op_arm(0, HOUR, 0), !op_single(second, &op))));
	EXPECT_EQ(wheel_info(second).pending, 1);
}

static void test_hungry(void)
{
	if (!cgroups_ready())
		return;
	cgroup_make("hungry");
	cgroup_write("hungry", "memory.max", HUNGRY_MAX);
	tap_join(tap_fork(hungry_child));
	cgroup_end("hungry");
}

/* ---- who is charged ---- */

/* Opened in one cgroup, armed in another */
static void moving_child(void)
{
	static const char *const names[] = { "opener", "armer" };
	int fd, i;

	cgroup_move("opener", getpid());
	fd = wheel_open(O_NONBLOCK);
	cgroup_move("armer", getpid());
	for (i = 0; i < 2; i++)
		shared->before[i] = cgroup_memory(names[i]);
	arm_batches(fd, 100 * BATCH);
	for (i = 0; i < 2; i++)
		shared->after[i] = cgroup_memory(names[i]);
	close(fd);
	/*
	 * The child lives on, so what goes is the wheel's. A processor may keep 64 pages of it,
	 * which newer kernels do not ask back for long.
	 */
	EXPECT_TRUE(WAIT_FOR(cgroup_memory("opener") <
			     shared->after[0] - 100 * BATCH * 32 +
			     (get_nprocs() < 4 ? get_nprocs() : 4) * 64LL * (int)PAGE),
		    "memory of a closed wheel is still there");
}

static void test_charged(void)
{
	const long long least = 100 * BATCH * 32;
	long long opener, armer;

	if (!cgroups_ready())
		return;
	cgroup_make("opener");
	cgroup_make("armer");
	tap_join(tap_fork(moving_child));
	opener = shared->after[0] - shared->before[0];
	armer = shared->after[1] - shared->before[1];
	EXPECT_EQ(shared->error, 0);
	/* The kernel charges 64 pages at a time, on each processor: some were before. */
	EXPECT_TRUE(opener >= least - 2 * 64 * 4096, "opener's cgroup grew by %lld", opener);
	EXPECT_TRUE(opener <= 8 * least, "opener's cgroup grew by %lld", opener);
	EXPECT_TRUE(armer < least / 4, "armer's cgroup grew by %lld", armer);
	cgroup_end("opener");
	cgroup_end("armer");
}

int main(void)
{
	char text[256];

	tap_start(100);
	shared = map_shared(sizeof(*shared));
	read_text(CGROUP "cgroup.controllers", text, sizeof(text));
	cgroups = strstr(text, "memory");
	if (cgroups)
		cgroup_write("", "cgroup.subtree_control", "+memory");
	RUN(test_hungry, "at its limit: what needs no memory works");
	RUN(test_charged, "memory is the opener's cgroup's");
	return tap_end();
}
