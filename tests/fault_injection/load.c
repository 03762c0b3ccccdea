// SPDX-License-Identifier: GPL-2.0
/*
 * Loading and unloading the module with each allocation and each copy failing in
 * turn: it is loaded and works, or nothing of it is left.
 */
#include "model.h"

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

	CHECK(exists(MODULE));
	CHECK(fault || exists(FAULTS "twheel/counters"));
	CHECK(fault || exists(PARAMETERS "budget"));
	CHECK(fault || exists(DEVICE));
	if (exists(PARAMETERS "budget")) {
		read_text(PARAMETERS "budget", text, sizeof(text));
		CHECK_EQ(atoi(text), 300);
	}
	if (exists(DEVICE)) {
		int fd = wheel_open(O_NONBLOCK);

		arm_past(fd, 1);
		CHECK(readable(fd, 0));
		arm(fd, 0, HOUR, 1);
		close(fd);
	}
}

static void check_unloaded(void)
{
	char text[4096];

	CHECK(WAIT_FOR(!exists(MODULE)));
	CHECK(WAIT_FOR(!exists(DEVICE)));
	CHECK(!exists(FAULTS "twheel"));
	CHECK(!exists("/sys/class/misc/twheel"));
	CHECK(!exists("/sys/kernel/tracing/events/twheel"));
	read_text("/proc/modules", text, sizeof(text));
	CHECK(!strstr(text, "twheel"), "%.200s", text);
	read_text("/proc/misc", text, sizeof(text));
	CHECK(!strstr(text, "twheel"), "%.200s", text);
}

/* How many places are there that can fail? */
static unsigned int count_places(void)
{
	long left;

	fault_arm(PLENTY);
	CHECK_EQ(load(), 0);
	left = fault_distance();
	CHECK_EQ(pwrite(fault_nth, "0", 1, 0), 1);
	CHECK_EQ(unload(), 0);
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
			CHECK(ret == -ENOMEM || ret == -EFAULT, "%ld at %u, %#x",
			      -ret, f.n, f.kind);
		if (!f.kind)
			CHECK_EQ(ret, 0);
		if (!ret) {
			check_loaded(f.kind);
			CHECK_EQ(unload(), 0);
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

		CHECK_EQ(load(), 0);
		ret = WITH_FAULT(&f, unload());
		if (ret) {
			CHECK_EXPLAINED(&f, ret);
			check_loaded(false);
			CHECK_EQ(unload(), 0);
		}
		check_unloaded();
	}
}

int main(void)
{
	tap_start(PATIENCE_S);
	faults_start();
	open_module();
	CHECK_EQ(unload(), 0);
	check_unloaded();
	RUN(test_load, "load");
	RUN(test_unload, "unload");
	CHECK_EQ(load(), 0);
	RUN(test_nothing_left, "no wheel and no timer is left");
	return tap_end();
}
