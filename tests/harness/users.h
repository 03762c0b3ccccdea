/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs that are several users.
 */
#ifndef USERS_H
#define USERS_H

#include "device.h"

#include <grp.h>

static inline void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		tap_bail("user %u: %s", uid, strerror(errno));
}

/*
 * The device for everybody; the root of an initramfs may be closed to others. Gives the
 * mode that it had.
 */
static inline mode_t open_to_all(void)
{
	struct stat st;

	if (stat(DEVICE, &st) || chmod(DEVICE, 0666) || chmod("/", 0755))
		tap_bail("%s: %s", DEVICE, strerror(errno));
	return st.st_mode & 0777;
}

#endif
