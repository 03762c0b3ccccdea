// SPDX-License-Identifier: GPL-2.0
/*
 * Loading and unloading the module with each allocation and each copy failing in
 * turn: it is loaded and works, or nothing of it is left.
 */
#include "faults.h"

#include <sys/utsname.h>

#define MODULE "/sys/module/twheel"

static int module_file;

static void open_module(void)
{
	struct utsname name;
	char path[256];

	uname(&name);
	snprintf(path, sizeof(path), "/lib/modules/%s/extra/twheel.ko",
		 name.release);
	module_file = open(path, O_RDONLY | O_CLOEXEC);
	if (module_file < 0)
		tap_bail("%s: %s", path, strerror(errno));
}

static long load(void)
{
	return NEG(syscall(SYS_finit_module, module_file, "budget=300", 0));
}

static long unload(void)
{
	return NEG(syscall(SYS_delete_module, "twheel", O_NONBLOCK));
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* Loaded, of what could be had: nobody has to have counters in debugfs */
static void check_loaded(bool fault)
{
	char text[16];

	EXPECT_TRUE(exists(MODULE));
	EXPECT_TRUE(fault || exists(DEBUGFS "twheel/counters"));
	EXPECT_TRUE(fault || exists(PARAMETERS "budget"));
	EXPECT_TRUE(fault || exists(DEVICE));
	if (exists(PARAMETERS "budget")) {
		read_text(PARAMETERS "budget", text, sizeof(text));
		EXPECT_EQ(atoi(text), 300);
	}
	if (exists(DEVICE)) {
		int fd = wheel_open(O_NONBLOCK);

		arm_past(fd, 1);
		EXPECT_TRUE(readable(fd, 0));
		arm(fd, 0, HOUR, 1);
		close(fd);
	}
}

static void check_unloaded(void)
{
	char text[4096];

	EXPECT_TRUE(WAIT_FOR(!exists(MODULE)));
	EXPECT_TRUE(WAIT_FOR(!exists(DEVICE)));
	EXPECT_TRUE(!exists(DEBUGFS "twheel"));
	EXPECT_TRUE(!exists("/sys/class/twheel"));
	EXPECT_TRUE(!exists("/sys/kernel/tracing/events/twheel"));
	read_text("/proc/modules", text, sizeof(text));
	EXPECT_TRUE(!strstr(text, "twheel"), "%.200s", text);
	read_text("/proc/devices", text, sizeof(text));
	EXPECT_TRUE(!strstr(text, "twheel"), "%.200s", text);
}

/* How many places are there that can fail? */
static unsigned int count_places(void)
{
	long left;

	fault_arm(PLENTY);
	EXPECT_EQ(load(), 0);
	left = fault_distance();
	EXPECT_EQ(pwrite(fault_nth, "0", 1, 0), 1);
	EXPECT_EQ(unload(), 0);
	return PLENTY - left;
}

static void test_load(void)
{
	unsigned int places = count_places(), step = 1;
	struct faults f = {};

	if (quick())
		step = 1 + places / 30;
	while (faults_next(&f, step > 1 ? SLAB : SLAB | PAGES | COPY, 1)) {
		long ret = WITH_FAULT(&f, load());

		if (ret)
			EXPECT_TRUE(ret == -ENOMEM || ret == -EFAULT, "%ld at %u, %#x",
				    -ret, f.n, f.kind);
		if (!f.kind)
			EXPECT_EQ(ret, 0);
		if (!ret) {
			check_loaded(f.kind);
			EXPECT_EQ(unload(), 0);
		}
		check_unloaded();
		if (f.kind)
			f.n += step - 1;
	}
	tap_diag("%u places", places);
}

static void test_unload(void)
{
	struct faults f = {};

	while (faults_next(&f, COPY, 1)) {
		long ret;

		EXPECT_EQ(load(), 0);
		ret = WITH_FAULT(&f, unload());
		if (ret) {
			EXPECT_EXPLAINED(&f, ret);
			check_loaded(false);
			EXPECT_EQ(unload(), 0);
		}
		check_unloaded();
	}
}

int main(void)
{
	tap_start(PATIENCE_S);
	faults_start();
	open_module();
	EXPECT_EQ(unload(), 0);
	check_unloaded();
	RUN(test_load, "load");
	RUN(test_unload, "unload");
	EXPECT_EQ(load(), 0);
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
