// SPDX-License-Identifier: GPL-2.0
/*
 * Where to listen, as it is written: so that who writes it learns at once what is wrong.
 */
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

/**
 * address_is_port - is that a number that a port may have?
 *
 * getaddrinfo(3) takes what is too large for another port, and "" for any.
 */
bool address_is_port(const char *text)
{
	unsigned long nr = strtoul(text, NULL, 10);

	return *text && !text[strspn(text, "0123456789")] && nr >= 1 && nr <= UINT16_MAX;
}

/**
 * address_wrong - what is wrong with a place to listen on, before that is tried?
 * @text: "unix:PATH", "HOST:PORT", "[HOST]:PORT" or "PORT"
 *
 * Return: a text, or NULL.
 */
const char *address_wrong(const char *text)
{
	const char *colon = strrchr(text, ':');

	if (!strncmp(text, "unix:", 5))
		return text[5] ? NULL : "the path of a socket comes after unix:";
	if (!address_is_port(colon ? colon + 1 : text))
		return "it takes unix:PATH, ADDRESS:PORT, [ADDRESS]:PORT or PORT;"
		       " a port is a whole number from 1 to 65535";
	if (colon && colon - text >= NI_MAXHOST)
		return "the address is too long";
	return NULL;
}
