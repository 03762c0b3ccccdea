// SPDX-License-Identifier: GPL-2.0
/*
 * Is the module there, and may the user open it? If not, what mends that? See module.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "module.h"
#include "tool.h"

#define SYS "/sys/module/twheel/"

/* The first word of a file, or "" */
static void read_word(const char *path, char *word, size_t size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(word, size, file))
		*word = 0;
	word[strcspn(word, "\n ")] = 0;
	if (file)
		fclose(file);
}

static __u64 parameter(const char *name)
{
	char path[64], word[32];

	snprintf(path, sizeof(path), SYS "parameters/%s", name);
	read_word(path, word, sizeof(word));
	return strtoull(word, NULL, 10);
}

/* The number of the device, which is there as long as the module is */
bool module_device(dev_t *rdev)
{
	unsigned int major, minor;
	char word[32];

	read_word("/sys/class/twheel/twheel/dev", word, sizeof(word));
	/* An older module, which stays loaded over an upgrade, has it there. */
	if (!*word)
		read_word("/sys/class/misc/twheel/dev", word, sizeof(word));
	if (sscanf(word, "%u:%u", &major, &minor) != 2)
		return false;
	*rdev = makedev(major, minor);
	return true;
}

static void try_to_open(struct module *module)
{
	struct twheel_info info = { .size = sizeof(info) };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, TWHEEL_IOC_INFO, &info))
		module->error = errno;
	module->features = info.features;
	if (fd >= 0)
		close(fd);
}

void module_look(struct module *module)
{
	struct stat st;

	memset(module, 0, sizeof(*module));
	module->loaded = module_device(&module->rdev);
	if (!module->loaded)
		return;
	read_word(SYS "version", module->version, sizeof(module->version));
	printable(module->version);
	module->wheel_limit = parameter("max_timers");
	module->user_limit = parameter("max_user_timers");
	module->unprivileged_limit = parameter("max_unprivileged_timers");
	module->budget = parameter("budget");
	module->node = !stat(DEVICE, &st);
	if (module->node) {
		module->uid = st.st_uid;
		module->gid = st.st_gid;
		module->mode = st.st_mode & 07777;
	}
	try_to_open(module);
}

/* How a user gets the right to open the device */
static void say_how_to_be_allowed(const struct module *module)
{
	const struct group *group = getgrgid(module->gid);
	const char *name = group ? group->gr_name : NULL;
	int member = group_member(module->gid);

	say("you may not open " DEVICE ": its owner is %s, its mode %04o",
	    text_user(module->uid).s, module->mode);
	if (!module->gid || !name || !(module->mode & 0060))
		say("the udev rule of twheel, which its package and make install bring, opens it "
		    "to the group twheel; as root: modprobe -r twheel; modprobe twheel");
	else if (member)
		say("you are in its group, %s, so something else forbids it: a container, or "
		    "a security module",
		    name);
	else
		say("let a user use it, as root: adduser USER %s; then the user logs in anew",
		    name);
}

/* Print what is missing, and the command that mends it; gives the exit status. */
int module_explain(const struct module *module)
{
	if (!module->loaded) {
		say("the module is not loaded; as root: modprobe twheel");
		say("(if there is no such module, install it first: make install, or the "
		    "package twheel-dkms)");
		return STATUS_NO_MODULE;
	}
	if (!module->node) {
		say("the module is loaded, but there is no " DEVICE " here; in a container, "
		    "start it with --device "
		    DEVICE);
		return STATUS_NO_MODULE;
	}
	if (module->error == EACCES || module->error == EPERM) {
		say_how_to_be_allowed(module);
		return STATUS_NOT_ALLOWED;
	}
	if (module->error)
		return fail(STATUS_FAILED, "can't open " DEVICE ": %s",
			    strerror(module->error));
	return STATUS_OK;
}

/* For commands that want no wheel of their own: only that the module is there */
int module_missing(void)
{
	struct module module;

	module_look(&module);
	return module.loaded ? STATUS_OK : module_explain(&module);
}
