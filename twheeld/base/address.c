// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses to listen on, as people write them; a wrong one is refused at once, with the reason.
 */
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

/**
 * address_is_port - is it the number of a port?
 *
 * getaddrinfo(3) would take a number that is too large for another port, and "" for any.
 */
bool address_is_port(const char *text)
{
	unsigned long nr = strtoul(text, NULL, 10);

	return *text && !text[strspn(text, "0123456789")] && nr >= 1 && nr <= UINT16_MAX;
}

/**
 * address_wrong - what is wrong with an address to listen on, as far as its text says?
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
