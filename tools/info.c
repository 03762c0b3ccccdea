// SPDX-License-Identifier: GPL-2.0
/*
 * twheel info: is the module loaded, who may use it, what can it do, and where would a
 * wheel of the library be, and its shared timers?
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <twheel.h>

#include "module.h"
#include "tool.h"

static const struct {
	const char *name;
	__u64 bit;
} features[] = {
	{ "count", TWHEEL_FEATURE_COUNT },
	{ "eventfd", TWHEEL_FEATURE_EVENTFD },
	{ "drain", TWHEEL_FEATURE_DRAIN },
	{ "shared", TWHEEL_FEATURE_SHARED },
	{ "uring", TWHEEL_FEATURE_URING },
};

static bool as_json;

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	as_json = true;
	return 0;
}

static const struct argp_option options[] = { OPTION_JSON, {} };

static const struct argp argp = {
	options, parse, NULL,
	"Says whether the module is loaded, who may use it, what it can do, and where a wheel "
	"of the library would be, and its shared timers.\v"
	"Status: 0 if a wheel in the kernel can be had, 3 if the module is not loaded, 4 if "
	"you may not open the device.",
	NULL, NULL, NULL
};

/* Where a wheel of the library would be, and what such a one can do */
static const char *backend(struct twheel_info *info, int *error)
{
	const char *name = NULL;
	struct twheel *tw;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	*error = twheel_open(0, &tw);
	if (*error)
		return NULL;
	*error = twheel_info(tw, info);
	if (!*error)
		name = twheel_backend(tw) == TWHEEL_KERNEL ? "kernel" :
		       twheel_backend(tw) == TWHEEL_BPF ? "bpf" : "user";
	twheel_close(tw);
	return name;
}

/*
 * Would a wheel in the program have its shared timers in a BPF program? One is made, and ended.
 * Returns NULL, or why not.
 */
static const char *no_bpf(void)
{
	struct twheel_setup setup = {
		.size = sizeof(setup), .flags = TWHEEL_SETUP_SHARED,
		.clock = TWHEEL_CLOCK_MONOTONIC, .shared = 1,
	};
	struct twheel *tw;
	int ret = twheel_open(TWHEEL_BPF, &tw);

	if (!ret) {
		ret = twheel_setup(tw, &setup);
		twheel_close(tw);
	}
	switch (ret) {
	case 0:
		return NULL;
	case -ENOENT:
	case -ENOTDIR:
		return "no twheel-loader; install the package twheel-loader, or as root: "
		       "systemctl enable --now twheel-loader.socket";
	case -EACCES:
		return "you may not ask twheel-loader; let a user do it, as root: "
		       "adduser USER twheel; then the user logs in anew";
	case -ECONNREFUSED:
		return "twheel-loader does not run; as root: systemctl restart "
		       "twheel-loader.socket";
	case -ENODEV:
		return "this kernel does not take the BPF program, as those before 6.12 do "
		       "not, nor those with PREEMPT_RT; journalctl -u twheel-loader says more";
	case -ENOSPC:
		return "you, or all users, have as many as twheel-loader gives: its options "
		       "-w, -m, -W, -M";
	case -EOPNOTSUPP:
		return "you are in a time namespace, whose clock they do not have";
	default:
		return strerror(-ret);
	}
}

static json_t *json_features(__u64 bits)
{
	json_t *array = need(json_array());
	size_t i;

	for (i = 0; i < ARRAY_SIZE(features); i++)
		if (bits & features[i].bit)
			json_array_append_new(array, json_string(features[i].name));
	return array;
}

static json_t *json_device(const struct module *m)
{
	char mode[8];

	if (!m->node)
		return json_null();
	snprintf(mode, sizeof(mode), "%04o", m->mode);
	return json_pack("{s:s, s:i, s:i, s:s, s:b}", "path", DEVICE, "uid", (int)m->uid,
			 "gid", (int)m->gid, "mode", mode, "usable", !m->error);
}

static int print_as_json(const struct module *m, const char *name,
			 const struct twheel_info *info, const char *bpf)
{
	struct utsname system;
	json_t *module = json_null();

	uname(&system);
	if (m->loaded)
		module = json_pack("{s:s?, s:o, s:I, s:I, s:I, s:I, s:o}", "version",
				   *m->version ? m->version : NULL,
				   "features", json_features(m->features),
				   "max_timers", (json_int_t)m->wheel_limit,
				   "max_user_timers", (json_int_t)m->user_limit,
				   "max_unprivileged_timers", (json_int_t)m->unprivileged_limit,
				   "budget", (json_int_t)m->budget, "device", json_device(m));
	return print_json(json_pack("{s:s, s:s, s:b, s:o, s:{s:b, s:s?}, s:{s:s?, s:o, s:I, s:I}}",
				    "command", VERSION, "kernel", system.release,
				    "loaded", m->loaded, "module", module,
				    "bpf", "usable", !bpf, "error", bpf,
				    "library", "backend", name,
				    "features", json_features(info->features),
				    "tick_min", (json_int_t)info->tick_min,
				    "tick_max", (json_int_t)info->tick_max));
}

static void print_features(__u64 bits)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(features); i++)
		if (bits & features[i].bit)
			printf(" %s", features[i].name);
	putchar('\n');
}

static void print_module(const struct module *m)
{
	const struct group *group;

	if (!m->loaded) {
		puts("module:     not loaded");
		return;
	}
	printf("module:     loaded, version %s\n", *m->version ? m->version : "not said");
	printf("limits:     %s timers in a wheel, memory of %s timers for a user, and of %s\n"
	       "            for all without CAP_SYS_RESOURCE\n", text_count(m->wheel_limit).s,
	       text_count(m->user_limit).s, text_count(m->unprivileged_limit).s);
	printf("budget:     %s timers and slots in a run of expiry work\n",
	       text_count(m->budget).s);
	if (!m->node) {
		puts("device:     missing");
		return;
	}
	group = getgrgid(m->gid);
	printf("device:     " DEVICE ", mode %04o, owner %s, group ", m->mode,
	       text_user(m->uid).s);
	if (group)
		printf("%s\n", group->gr_name);
	else
		printf("%u\n", m->gid);
	printf("you:        %s open it\n", m->error ? "may not" : "may");
	if (!m->error) {
		printf("features:  ");
		print_features(m->features);
	}
}

/* Where, and by what, or why there are none */
static void print_shared(const char *name, const struct twheel_info *info, const char *bpf)
{
	if (!strcmp(name, "kernel"))
		puts(info->features & TWHEEL_FEATURE_SHARED ?
		     "  shared:   in the kernel, by the module" :
		     "  shared:   none, as the kernel has no such memory for them");
	else if (bpf)
		printf("  shared:   none: %s\n", bpf);
	else if (info->features & TWHEEL_FEATURE_SHARED)
		puts("  shared:   in the kernel, by a BPF program of twheel-loader");
	else
		puts("  shared:   none, as TWHEEL_BACKEND=user says");
}

static void print_library(const char *name, const struct twheel_info *info, int error,
			  const char *bpf)
{
	const char *backend = getenv("TWHEEL_BACKEND");

	if (!name) {
		printf("library:    twheel_open() gives: %s\n", strerror(-error));
		if (backend)
			printf("            TWHEEL_BACKEND=%s %s\n", backend,
			       error == -EINVAL ? "has to be kernel, bpf or user" :
						  "allows no other wheel");
		return;
	}
	printf("library:    twheel_open() gives a wheel in %s\n",
	       strcmp(name, "kernel") ? "the program itself" : "the kernel");
	printf("  tick:     %s to ", text_ns(info->tick_min).s);
	printf("%s\n", text_ns(info->tick_max).s);
	printf("  features:");
	print_features(info->features);
	print_shared(name, info, bpf);
}

int cmd_info(int argc, char **argv)
{
	struct twheel_info info;
	struct utsname system;
	struct module module;
	const char *name, *bpf;
	int error;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	module_look(&module);
	name = backend(&info, &error);
	bpf = no_bpf();
	if (as_json) {
		error = print_as_json(&module, name, &info, bpf);
	} else {
		uname(&system);
		printf("kernel:     %s\n", system.release);
		print_module(&module);
		print_library(name, &info, error, bpf);
		error = finish_output(STATUS_OK);
	}
	return error ? error : module_explain(&module);
}
