/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of tubes: up to 200 of the characters that beanstalkd allows. Pure.
 */
#ifndef TWHEELD_TUBE_NAME_H
#define TWHEELD_TUBE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define TUBE_NAME_MAX 200
#define TUBE_NAME_CHARS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

bool tube_name_ok(const char *name, size_t length);

#endif
