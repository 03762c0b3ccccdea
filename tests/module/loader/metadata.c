// SPDX-License-Identifier: GPL-2.0
/*
 * What the module says of itself, in its file and once it is loaded.
 */
#include "loader.h"

#include <linux/major.h>
#include <sys/sysmacros.h>

static struct kmod_list *info;

static void get_info(void)
{
	struct kmod_module *mod = module_of(kmod, NAME);

	if (kmod_module_get_info(mod, &info) <= 0)
		tap_bail("kmod_module_get_info");
	kmod_module_unref(mod);
}

static unsigned int info_count(const char *key)
{
	struct kmod_list *i;
	unsigned int n = 0;

	kmod_list_foreach(i, info)
		n += !strcmp(kmod_module_info_get_key(i), key);
	return n;
}

/* The value of a key that can be there more than once, by how it begins */
static const char *info_like(const char *key, const char *start)
{
	struct kmod_list *i;

	kmod_list_foreach(i, info) {
		const char *value = kmod_module_info_get_value(i);

		if (!strcmp(kmod_module_info_get_key(i), key) &&
		    !strncmp(value, start, strlen(start)))
			return value;
	}
	return "";
}

static const char *info_value(const char *key)
{
	EXPECT_EQ(info_count(key), 1, "%s", key);
	return info_like(key, "");
}

static void test_info(void)
{
	EXPECT_TRUE(!strcmp(info_value("name"), NAME), "%s", info_value("name"));
	EXPECT_TRUE(!strcmp(info_value("license"), "GPL"), "%s",
		    info_value("license"));
	EXPECT_TRUE(strstr(info_value("description"), "timers"), "%s",
		    info_value("description"));
	EXPECT_TRUE(*info_value("author"), "no author");
}

/* The module is loaded by nobody's guess: not by a device, not on opening its file */
static void test_no_more(void)
{
	static const char *const keys[] = {
		"alias", "softdep", "firmware", "import_ns", "intree",
		"staging",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		EXPECT_EQ(info_count(keys[i]), 0, "%s: %s", keys[i],
			  info_like(keys[i], ""));
}

/* Type, and in the description: range, default, what it counts */
static void test_parameters(void)
{
	size_t i;

	EXPECT_EQ(info_count("parmtype"), ARRAY_SIZE(parameters));
	EXPECT_EQ(info_count("parm"), ARRAY_SIZE(parameters));
	for (i = 0; i < ARRAY_SIZE(parameters); i++) {
		const struct parameter *p = &parameters[i];
		char start[64], range[96];
		const char *parm;

		snprintf(start, sizeof(start), "%s:uint", p->name);
		EXPECT_TRUE(!strcmp(info_like("parmtype", start), start), "%s",
			    p->name);
		snprintf(start, sizeof(start), "%s:", p->name);
		parm = info_like("parm", start);
		snprintf(range, sizeof(range), "; %u to %u, default ", p->min,
			 p->max);
		if (p->preset)
			snprintf(range + strlen(range), sizeof(range) - strlen(range),
				 "%u", p->preset);
		EXPECT_TRUE(strstr(parm, range), "'%s' has no '%s'", parm, range);
		EXPECT_TRUE(strstr(parm, "imers"), "'%s' has no unit", parm);
	}
}

static void test_needs_nothing(void)
{
	struct kmod_module *mod = module_of(kmod, NAME);
	struct kmod_list *list = NULL;

	EXPECT_TRUE(!strcmp(info_value("depends"), ""), "%s", info_value("depends"));
	EXPECT_TRUE(!kmod_module_get_dependencies(mod), "it depends on something");
	/* The module offers none either: nobody can come to depend on it. */
	EXPECT_TRUE(kmod_module_get_symbols(mod, &list) <= 0, "it has symbols");
	kmod_module_symbols_free_list(list);
	kmod_module_unref(mod);
}

/* So does udev find it */
static void test_device(void)
{
	unsigned int major_nr, minor_nr;
	struct stat st;
	char text[512];

	must_load("");
	read_text("/sys/class/" NAME "/" NAME "/dev", text, sizeof(text));
	if (sscanf(text, "%u:%u", &major_nr, &minor_nr) != 2)
		tap_bail("dev is %s", text);
	/* Whose devices are opened one at a time: a throttled opener would hold up all others. */
	EXPECT_TRUE(major_nr != MISC_MAJOR);
	EXPECT_TRUE(!stat(DEVICE, &st) && st.st_mode == (S_IFCHR | 0600) &&
		    !st.st_uid && !st.st_gid, "mode %o", st.st_mode);
	EXPECT_EQ(st.st_rdev, makedev(major_nr, minor_nr));
	read_text("/sys/class/" NAME "/" NAME "/uevent", text, sizeof(text));
	EXPECT_TRUE(strstr(text, "DEVNAME=" NAME "\n"), "%s", text);
	must_unload();
}

int main(void)
{
	loader_start(60);
	get_info();
	RUN(test_info, "name, licence, description, author");
	RUN(test_no_more, "no alias, nor anything else that it does not need");
	RUN(test_parameters, "parameters with type, unit, range and default");
	RUN(test_needs_nothing, "it depends on nothing and exports nothing");
	RUN(test_device, "its device node");
	kmod_module_info_free_list(info);
	return tap_end();
}
