/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the loader tests share: the module by way of libkmod, and its traces in the
 * system.
 *
 * Each test finds the module unloaded, and leaves it so.
 */
#ifndef LOADER_H
#define LOADER_H

/* First, as it says what the C library shall offer */
#include "device.h"

#include <libkmod.h>

/* What is only to be looked at may be cut off */
#pragma GCC diagnostic ignored "-Wformat-truncation"

#define NAME "twheel"
#define MODULE "/sys/module/" NAME
#define COUNTERS "/sys/kernel/debug/" NAME "/counters"

/*
 * As kmod/main.c has it; the metadata test compares what the module says. A preset of 0
 * is computed: some percent of the memory, in timers of 40 bytes.
 */
static const struct parameter {
	const char *name;
	unsigned int min;
	unsigned int max;
	unsigned int preset;
	unsigned int percent;
} parameters[] = {
	{ "max_timers", 1, 1U << 30, 1U << 24, 0 },
	{ "max_user_timers", 1, 1U << 30, 0, 4 },
	{ "budget", 16, 1U << 16, 256, 0 },
	{ "max_unprivileged_timers", 1, 1U << 30, 0, 12 },
};

static struct kmod_ctx *kmod;

static inline struct kmod_module *module_of(struct kmod_ctx *ctx,
					    const char *name)
{
	struct kmod_list *list = NULL;
	struct kmod_module *mod;
	int ret = kmod_module_new_from_lookup(ctx, name, &list);

	if (ret || !list)
		tap_bail("looking up %s: %d", name, ret);
	mod = kmod_module_get_module(list);
	kmod_module_unref_list(list);
	return mod;
}

/* 0, or the negative error */
static inline int load(const char *options)
{
	struct kmod_module *mod = module_of(kmod, NAME);
	int ret = kmod_module_insert_module(mod, 0, options);

	kmod_module_unref(mod);
	return ret;
}

static inline int unload(void)
{
	struct kmod_module *mod = module_of(kmod, NAME);
	int ret = kmod_module_remove_module(mod, 0);

	kmod_module_unref(mod);
	return ret;
}

/* -ENOENT while not loaded */
static inline int module_state(const char *name)
{
	struct kmod_module *mod;
	int ret;

	if (kmod_module_new_from_name(kmod, name, &mod))
		tap_bail("kmod_module_new_from_name");
	ret = kmod_module_get_initstate(mod);
	kmod_module_unref(mod);
	return ret;
}

/* An open wheel holds the module twice: by its character device, and by its operations. */
#define USES_OF_WHEEL 2

static inline int users(const char *name)
{
	struct kmod_module *mod;
	int ret;

	if (kmod_module_new_from_name(kmod, name, &mod))
		tap_bail("kmod_module_new_from_name");
	ret = kmod_module_get_refcnt(mod);
	kmod_module_unref(mod);
	return ret;
}

static inline void must_load(const char *options)
{
	int ret = load(options);

	if (ret)
		tap_bail("loading with '%s': %s", options, strerror(-ret));
}

static inline bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* Does a file of the kernel's have such a text in it? */
static inline bool mentions(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	bool found = false;
	char line[1024];

	if (!file)
		tap_bail("%s: %s", path, strerror(errno));
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, text);
	fclose(file);
	return found;
}

/* All that shows that the module is there */
static const char *const places[] = {
	MODULE, DEVICE, "/sys/class/" NAME, "/sys/class/" NAME "/" NAME, COUNTERS,
	"/sys/kernel/tracing/events/" NAME,
};

static const struct {
	const char *path;
	const char *text;
} listings[] = {
	{ "/proc/modules", NAME " " },
	{ "/proc/devices", " " NAME "\n" },
};

static inline void check_loaded(void)
{
	size_t i;

	EXPECT_EQ(module_state(NAME), KMOD_MODULE_LIVE);
	for (i = 0; i < ARRAY_SIZE(places); i++)
		EXPECT_TRUE(exists(places[i]), "%s", places[i]);
	for (i = 0; i < ARRAY_SIZE(listings); i++)
		EXPECT_TRUE(mentions(listings[i].path, listings[i].text), "%s",
			    listings[i].path);
}

static inline void check_gone(void)
{
	size_t i;

	EXPECT_EQ(module_state(NAME), -ENOENT);
	for (i = 0; i < ARRAY_SIZE(places); i++)
		EXPECT_TRUE(!exists(places[i]), "%s", places[i]);
	for (i = 0; i < ARRAY_SIZE(listings); i++)
		EXPECT_TRUE(!mentions(listings[i].path, listings[i].text), "%s",
			    listings[i].path);
	EXPECT_TRUE(!mentions("/proc/timer_list", "tw_timer_fn"));
}

/* The end of a test */
static inline void must_unload(void)
{
	EXPECT_EQ(users(NAME), 0);
	EXPECT_EQ(unload(), 0);
	check_gone();
}

/* -1 if there is no such parameter */
static inline long long parameter_value(const char *name)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	if (!exists(path))
		return -1;
	read_text(path, text, sizeof(text));
	return strtoll(text, NULL, 10);
}

static inline void loader_start(unsigned int seconds)
{
	const char *no_config = NULL;

	tap_start(seconds);
	/* Without configuration files: the machine's may not matter */
	kmod = kmod_new(NULL, &no_config);
	if (!kmod)
		tap_bail("kmod_new");
	kmod_set_log_priority(kmod, 0);
}

#endif
