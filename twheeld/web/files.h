/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of this folder that are part of the program. The Makefile makes files.c of them.
 */
#ifndef TWHEELD_FILES_H
#define TWHEELD_FILES_H

#include <stddef.h>

struct file {
	const char *text;
	size_t length;
};

extern const struct file file_status_css, file_status_js;

#endif
