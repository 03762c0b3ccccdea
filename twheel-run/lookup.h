/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The addresses of the server, looked up without waiting for them.
 */
#ifndef TWHEEL_RUN_LOOKUP_H
#define TWHEEL_RUN_LOOKUP_H

#include <stdbool.h>
#include <sys/socket.h>

#define LOOKUP_MOST 8

struct address {
	socklen_t size;
	struct sockaddr_storage addr;
};

struct lookup {
	int error;		/* of getaddrinfo(3); 0: there is an address at least */
	unsigned int count;
	struct address addresses[LOOKUP_MOST];
};

const struct lookup *lookup_server(void);

#endif
