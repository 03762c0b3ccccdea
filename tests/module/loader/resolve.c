// SPDX-License-Identifier: GPL-2.0
/*
 * Loading by name: depmod's tree, dependencies, and what an administrator can
 * write into modprobe.d.
 *
 * The module needs nothing and nothing can need its symbols; so it is in the
 * middle of dependencies of two test modules, see modules/loader_user.c.
 */
#include "loader.h"

#define TREE "/tmp/tree"
#define CONFIG "/tmp/modprobe.conf"
#define MODPROBE "modprobe -d " TREE " -C " CONFIG " "

static char tree_modules[256];
static char out[8192];

static void configure(const char *text)
{
	FILE *file = fopen(CONFIG, "w");

	if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file))
		tap_bail("%s: %s", CONFIG, strerror(errno));
}

/* A context that sees the tree and a configuration of this text */
static struct kmod_ctx *tree_open(const char *config)
{
	configure(config);
	return kmod_open(tree_modules, CONFIG);
}

static int probe(const char *config, const char *name, unsigned int flags,
		 const char *options)
{
	struct kmod_ctx *ctx = tree_open(config);
	struct kmod_module *mod = module_of(ctx, name);
	int ret = kmod_module_probe_insert_module(mod, flags, options, NULL,
						  NULL, NULL);

	kmod_module_unref(mod);
	kmod_unref(ctx);
	return ret;
}

static bool loaded(const char *name)
{
	return module_state(name) == KMOD_MODULE_LIVE;
}

static void remove_module(const char *name, int want)
{
	struct kmod_module *mod;

	if (kmod_module_new_from_name(kmod, name, &mod))
		tap_bail("kmod_module_new_from_name");
	EXPECT_EQ(kmod_module_remove_module(mod, 0), want, "%s", name);
	kmod_module_unref(mod);
}

/* The line of one of depmod's files about a module, by how it begins */
static const char *tree_line(const char *file, const char *start)
{
	static char line[512];
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", tree_modules, file);
	f = fopen(path, "r");
	if (!f)
		tap_bail("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, start, strlen(start)))
			continue;
		fclose(f);
		line[strcspn(line, "\n")] = 0;
		return line;
	}
	fclose(f);
	return "";
}

static void make_tree(void)
{
	snprintf(tree_modules, sizeof(tree_modules), TREE "/lib/modules/%s",
		 release());
	if (command(out, sizeof(out),
		    "set -e; rm -rf " TREE "; mkdir -p %s/extra %s/updates/dkms;"
		    "cp /lib/modules/%s/modules.* %s;"
		    "cp /lib/modules/%s/extra/" NAME ".ko /tests/modules/*.ko %s/extra",
		    tree_modules, tree_modules, release(), tree_modules,
		    release(), tree_modules))
		tap_bail("making a tree: %s", out);
}

static void index_tree(void)
{
	EXPECT_EQ(command(out, sizeof(out), "depmod -b " TREE " %s", release()),
		  0, "%s", out);
	EXPECT_TRUE(!*out, "depmod says: %s", out);
}

static void test_depmod(void)
{
	const char *line;

	index_tree();
	line = tree_line("modules.dep", "extra/" NAME ".ko:");
	EXPECT_TRUE(!strcmp(line, "extra/" NAME ".ko:"), "'%s'", line);
	line = tree_line("modules.dep", "extra/loader_user.ko:");
	EXPECT_TRUE(!strcmp(line, "extra/loader_user.ko: extra/loader_base.ko"),
		    "'%s'", line);
	line = tree_line("modules.softdep", "softdep loader_user");
	EXPECT_TRUE(!strcmp(line, "softdep loader_user pre: " NAME), "'%s'", line);
	EXPECT_TRUE(*tree_line("modules.symbols", "alias symbol:loader_base_answer"),
		    "what is looked for next can be found");
	snprintf(out, sizeof(out), "%s/modules.symbols", tree_modules);
	EXPECT_TRUE(!mentions(out, NAME), "a symbol of twheel");
	snprintf(out, sizeof(out), "%s/modules.alias", tree_modules);
	EXPECT_TRUE(!mentions(out, NAME), "an alias of twheel");
	snprintf(out, sizeof(out), "%s/modules.devname", tree_modules);
	EXPECT_TRUE(!mentions(out, NAME), "a device name of twheel");
}

static void test_by_name(void)
{
	EXPECT_EQ(probe("", NAME, 0, NULL), 0);
	check_loaded();
	EXPECT_EQ(probe("", NAME, 0, NULL), 0, "is there already");
	EXPECT_EQ(probe("", NAME, KMOD_PROBE_FAIL_ON_LOADED, NULL), -EEXIST);
	must_unload();
	EXPECT_EQ(probe("", NAME, 0, "budget=0"), -EINVAL);
	check_gone();
}

static void test_dependencies(void)
{
	struct kmod_module *base;
	struct kmod_list *holders;
	int fd;

	EXPECT_EQ(probe("", "loader_user", 0, NULL), 0);
	check_loaded();
	EXPECT_TRUE(loaded("loader_base") && loaded("loader_user"), "not all");
	EXPECT_EQ(users("loader_base"), 1);
	EXPECT_EQ(users(NAME), 0);
	if (kmod_module_new_from_name(kmod, "loader_base", &base))
		tap_bail("kmod_module_new_from_name");
	holders = kmod_module_get_holders(base);
	EXPECT_TRUE(holders, "nobody holds it");
	kmod_module_unref_list(holders);
	kmod_module_unref(base);

	fd = wheel_open(0);
	remove_module("loader_base", -EAGAIN);
	remove_module("loader_user", 0);
	remove_module("loader_base", 0);
	check_loaded();
	EXPECT_EQ(users(NAME), USES_OF_WHEEL);
	close(fd);
	must_unload();
}

static void test_modprobe(void)
{
	int fd;

	configure("");
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "loader_user"), 0, "%s",
		  out);
	check_loaded();
	EXPECT_TRUE(loaded("loader_base") && loaded("loader_user"), "not all");
	EXPECT_EQ(command(out, sizeof(out), MODPROBE NAME), 0, "%s", out);
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "--first-time " NAME), 1);

	fd = wheel_open(0);
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "-r " NAME), 1);
	EXPECT_TRUE(strstr(out, "in use"), "%s", out);
	EXPECT_EQ(command(out, sizeof(out), "rmmod " NAME), 1);
	EXPECT_TRUE(strstr(out, "in use"), "%s", out);
	close(fd);
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "-r loader_user"), 0, "%s",
		  out);
	EXPECT_TRUE(!loaded("loader_user") && !loaded("loader_base"), "not all");
	check_gone();
}

static void test_options(void)
{
	static const char config[] = "options " NAME " max_timers=7 budget=99";

	EXPECT_EQ(probe(config, NAME, 0, NULL), 0);
	EXPECT_EQ(parameter_value("max_timers"), 7);
	EXPECT_EQ(parameter_value("budget"), 99);
	must_unload();
	/* What is asked for at hand goes before what is configured. */
	EXPECT_EQ(probe(config, NAME, 0, "max_timers=8"), 0);
	EXPECT_EQ(parameter_value("max_timers"), 8);
	EXPECT_EQ(parameter_value("budget"), 99);
	must_unload();
	/* As a dependency it gets them too. */
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "loader_user"), 0, "%s",
		  out);
	EXPECT_EQ(parameter_value("max_timers"), 7);
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "-r loader_user"), 0, "%s",
		  out);
	check_gone();

	EXPECT_EQ(probe("options " NAME " max_timers=0", NAME, 0, NULL),
		  -EINVAL);
	check_gone();
}

static void test_alias(void)
{
	EXPECT_EQ(probe("alias wheels " NAME, "wheels", 0, NULL), 0);
	check_loaded();
	must_unload();
}

static void test_blacklist(void)
{
	static const char config[] = "blacklist " NAME;

	EXPECT_EQ(probe(config, NAME, KMOD_PROBE_APPLY_BLACKLIST, NULL),
		  KMOD_PROBE_APPLY_BLACKLIST);
	check_gone();
	/* Who names it wants it. */
	EXPECT_EQ(probe(config, NAME, 0, NULL), 0);
	must_unload();
}

static void test_softdep(void)
{
	static const char config[] = "softdep " NAME " pre: loader_base";

	configure(config);
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "--show-depends " NAME), 0,
		  "%s", out);
	EXPECT_TRUE(strstr(out, "loader_base.ko") && strstr(out, NAME ".ko") &&
		    strstr(out, "loader_base.ko") < strstr(out, NAME ".ko"), "%s",
		    out);
	EXPECT_EQ(probe(config, NAME, 0, NULL), 0);
	check_loaded();
	EXPECT_TRUE(loaded("loader_base"), "not loaded before it");
	must_unload();
	remove_module("loader_base", 0);
}

static void test_install_command(void)
{
	configure("install " NAME " echo instead");
	EXPECT_EQ(command(out, sizeof(out), MODPROBE NAME), 0, "%s", out);
	EXPECT_TRUE(strstr(out, "instead"), "%s", out);
	check_gone();
	EXPECT_EQ(command(out, sizeof(out), MODPROBE "-i " NAME), 0, "%s", out);
	check_loaded();
	must_unload();
}

/* DKMS puts it into another folder, which goes before the others */
static void test_update(void)
{
	const char *line;

	EXPECT_EQ(command(out, sizeof(out),
			  "cp %s/extra/" NAME ".ko %s/updates/dkms",
			  tree_modules, tree_modules), 0, "%s", out);
	index_tree();
	line = tree_line("modules.dep", "updates/dkms/" NAME ".ko:");
	EXPECT_TRUE(*line, "not the one of DKMS");
	EXPECT_TRUE(!*tree_line("modules.dep", "extra/" NAME ".ko:"), "both");
	EXPECT_EQ(probe("", NAME, 0, NULL), 0);
	must_unload();
}

static void test_removed(void)
{
	EXPECT_EQ(command(out, sizeof(out), "rm %s/*/" NAME ".ko %s/*/*/" NAME
			  ".ko", tree_modules, tree_modules), 0, "%s", out);
	index_tree();
	configure("");
	EXPECT_EQ(command(out, sizeof(out), MODPROBE NAME), 1);
	EXPECT_TRUE(strstr(out, "not found"), "%s", out);
	check_gone();
}

int main(void)
{
	loader_start(60);
	make_tree();
	RUN(test_depmod, "depmod finds the dependencies");
	RUN(test_by_name, "by name");
	RUN(test_dependencies, "as a dependency, with libkmod");
	RUN(test_modprobe, "as a dependency, with modprobe");
	RUN(test_options, "options in modprobe.d");
	RUN(test_alias, "an alias in modprobe.d");
	RUN(test_blacklist, "a blacklist in modprobe.d");
	RUN(test_softdep, "a softdep in modprobe.d");
	RUN(test_install_command, "an install command in modprobe.d");
	RUN(test_update, "that of DKMS goes before another");
	RUN(test_removed, "once depmod knows that it is gone");
	return tap_end();
}
