/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Addresses to listen on, as people write them.
 */
#ifndef TWHEELD_ADDRESS_H
#define TWHEELD_ADDRESS_H

#include <stdbool.h>

bool address_is_port(const char *text);
const char *address_wrong(const char *text);

#endif
