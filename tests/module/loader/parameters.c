// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters: what each takes and refuses, at loading and afterwards.
 */
#include "loader.h"

#include <sys/sysinfo.h>

#define BAD_VALUES 12

static struct {
	char text[32];
	int error;
} bad_values[BAD_VALUES];

static void add_bad_value(unsigned int i, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void add_bad_value(unsigned int i, int error, const char *fmt, ...)
{
	va_list ap;

	if (i >= BAD_VALUES)
		tap_bail("more than %d bad values", BAD_VALUES);
	va_start(ap, fmt);
	vsnprintf(bad_values[i].text, sizeof(bad_values[i].text), fmt, ap);
	va_end(ap);
	bad_values[i].error = error;
}

/*
 * What each refuses: beyond its range, beyond its type (and wrapped around into
 * the range), and no numbers
 */
static void make_bad_values(const struct parameter *p)
{
	static const char *const junk[] = {
		"", "abc", "100x", "100.5", "0x", "-1",
	};
	unsigned int n = 0;
	size_t i;

	add_bad_value(n++, -EINVAL, "%u", p->min - 1);
	add_bad_value(n++, -EINVAL, "%llu", p->max + 1ULL);
	add_bad_value(n++, -ERANGE, "%llu", (1ULL << 32) + p->min);
	add_bad_value(n++, -ERANGE, "18446744073709551616%u", p->min);
	add_bad_value(n++, -EINVAL, "%lld", -1LL * p->max);
	add_bad_value(n++, -EINVAL, "%u,%u", p->min, p->max);
	for (i = 0; i < ARRAY_SIZE(junk); i++)
		add_bad_value(n++, -EINVAL, "%s", junk[i]);
	if (n != BAD_VALUES)
		tap_bail("%u bad values", n);
}

static unsigned int preset(const struct parameter *p)
{
	struct sysinfo info;

	if (p->preset)
		return p->preset;
	sysinfo(&info);
	return (__u64)info.totalram * info.mem_unit / (100 * 40) * p->percent;
}

static void check_presets(const struct parameter *but)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		if (&parameters[i] != but)
			EXPECT_EQ(parameter_value(parameters[i].name),
				  preset(&parameters[i]), "%s",
				  parameters[i].name);
}

static void test_presets(void)
{
	must_load("");
	check_loaded();
	check_presets(NULL);
	must_unload();
}

static void check_good(const struct parameter *p, const char *fmt,
		       unsigned int value)
{
	char options[96];
	int n = snprintf(options, sizeof(options), "%s=", p->name);

	snprintf(options + n, sizeof(options) - n, fmt, value);
	if (!EXPECT_EQ(load(options), 0, "%s", options))
		return;
	EXPECT_EQ(parameter_value(p->name), value, "%s", options);
	check_presets(p);
	EXPECT_EQ(unload(), 0);
}

static void test_good(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parameters); i++) {
		const struct parameter *p = &parameters[i];

		check_good(p, "%u", p->min);
		check_good(p, "%u", p->max);
		check_good(p, "%u", p->min + 1);
		check_good(p, "%#x", p->max - 1);
		check_good(p, "\"%u\"", p->min);
	}
	check_gone();
}

/* What the kernel has written to its log since the last call */
static const char *new_log(void)
{
	static int fd = -1;
	static char log[16384];
	size_t used = 0;
	ssize_t n;

	if (fd < 0) {
		fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 || lseek(fd, 0, SEEK_END) < 0)
			tap_bail("/dev/kmsg: %s", strerror(errno));
	}
	while (used < sizeof(log) - 1) {
		n = read(fd, log + used, sizeof(log) - 1 - used);
		if (n <= 0)
			break;
		used += n;
	}
	log[used] = 0;
	return log;
}

static void check_bad(const struct parameter *p, const char *value, int error)
{
	char options[96];

	snprintf(options, sizeof(options), "%s=%.32s", p->name, value);
	new_log();
	if (!EXPECT_EQ(load(options), error, "%s", options))
		unload();
	/* The other half of the message is the kernel's matter. */
	EXPECT_TRUE(strstr(new_log(), p->name), "the log does not say what was wrong");
	EXPECT_TRUE(!exists(MODULE) && !exists(DEVICE), "%s", options);
}

static void test_bad(void)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(parameters); i++) {
		make_bad_values(&parameters[i]);
		for (k = 0; k < BAD_VALUES; k++)
			check_bad(&parameters[i], bad_values[k].text,
				  bad_values[k].error);
	}
	check_gone();
}

static int set_parameter(const struct parameter *p, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), PARAMETERS "%s", p->name);
	return write_text(path, value);
}

static void check_written(const struct parameter *p, const char *fmt,
			  unsigned int value)
{
	char text[32];

	snprintf(text, sizeof(text), fmt, value);
	EXPECT_EQ(set_parameter(p, text), 0, "%s=%s", p->name, text);
	EXPECT_EQ(parameter_value(p->name), value, "%s=%s", p->name, text);
}

static void test_writing(void)
{
	struct stat st;
	char path[128];
	size_t i, k;

	must_load("");
	for (i = 0; i < ARRAY_SIZE(parameters); i++) {
		const struct parameter *p = &parameters[i];

		snprintf(path, sizeof(path), PARAMETERS "%s", p->name);
		EXPECT_TRUE(!stat(path, &st) && st.st_mode == (S_IFREG | 0644) &&
			    !st.st_uid, "%s: mode %o", path, st.st_mode);

		check_written(p, "%u", p->min);
		check_written(p, "%u\n", p->max);
		check_written(p, "%#x", p->min + 1);
		make_bad_values(p);
		for (k = 0; k < BAD_VALUES; k++) {
			const char *bad = bad_values[k].text;

			/* Nothing to write is no write. */
			EXPECT_EQ(set_parameter(p, *bad ? bad : "\n"),
				  bad_values[k].error, "%s=%s", p->name, bad);
			EXPECT_EQ(parameter_value(p->name), p->min + 1,
				  "%s=%s", p->name, bad);
		}
	}
	must_unload();
	/* The value was for that life of the module only. */
	must_load("");
	check_presets(NULL);
	must_unload();
}

/* How many timers a wheel takes */
static unsigned int room(int fd, unsigned int most)
{
	struct twheel_op op = op_arm(0, HOUR, 0);
	unsigned int n;

	for (n = 0; n < most; n++)
		if (op_single(fd, &op))
			break;
	EXPECT_EQ(op_single(fd, &op), -ENOSPC, "after %u timers", n);
	return n;
}

static void test_limits(void)
{
	struct twheel_info info;
	int old, new;

	must_load("max_timers=5 max_user_timers=7777");
	old = wheel_open(0);
	info = wheel_info(old);
	EXPECT_EQ(info.wheel_limit, 5);
	EXPECT_EQ(info.limit, 5);
	EXPECT_EQ(info.user_limit, 7777);
	EXPECT_EQ(room(old, 100), 5);

	EXPECT_EQ(set_parameter(&parameters[0], "9"), 0);
	EXPECT_EQ(set_parameter(&parameters[1], "8888"), 0);
	info = wheel_info(old);
	EXPECT_EQ(info.wheel_limit, 9);
	EXPECT_EQ(info.limit, 5, "that of a wheel is fixed");
	EXPECT_EQ(info.user_limit, 8888);
	new = wheel_open(0);
	EXPECT_EQ(wheel_info(new).limit, 9);
	EXPECT_EQ(room(new, 100), 9);
	close(old);
	close(new);
	must_unload();
}

/* A thousand timers that are looked at one by one when they expire */
static void expire_thousand(__u64 lead)
{
	const __u64 deadline = now(CLOCK_REALTIME) + lead;
	int fd = wheel_new(TWHEEL_CLOCK_REALTIME, MSEC);
	static struct twheel_op ops[1000];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		ops[i] = op_arm(TWHEEL_ABS, deadline, i);
	submit_all(fd, ops, ARRAY_SIZE(ops));
	EXPECT_TRUE(WAIT_FOR(wheel_info(fd).ready == ARRAY_SIZE(ops)));
	close(fd);
}

static void test_budget(void)
{
	__u64 deferred = 0, lead;

	must_load("budget=16");
	/* A busy machine may be too late to arm all of them first. */
	for (lead = 200 * MSEC; !deferred && lead < 10 * SEC; lead *= 4) {
		expire_thousand(lead);
		deferred = module_counter("deferred");
	}
	EXPECT_TRUE(module_counter("largest_run") <= 16, "%llu", module_counter("largest_run"));
	EXPECT_TRUE(deferred, "nothing was deferred");
	EXPECT_EQ(set_parameter(&parameters[2], "65536"), 0);
	expire_thousand(200 * MSEC);
	EXPECT_TRUE(module_counter("largest_run") > 16, "%llu", module_counter("largest_run"));
	EXPECT_EQ(module_counter("deferred"), deferred);
	must_unload();
}

int main(void)
{
	loader_start(60);
	RUN(test_presets, "without parameters each has its default");
	RUN(test_good, "each takes both ends of its range");
	RUN(test_bad, "a bad value is refused, and nothing of the module stays");
	RUN(test_writing, "each can be written while loaded, within its range");
	RUN(test_limits, "max_timers and max_user_timers limit");
	RUN(test_budget, "budget is the most that one run touches");
	return tap_end();
}
