/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may do what from elsewhere: tokens in a file, which clients say first, and people who look at
 * the pages.
 */
#ifndef TWHEELD_ACCESS_H
#define TWHEELD_ACCESS_H

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/token.h"
#include "jobs/protocol.h"

enum right { RIGHT_READ = 1, RIGHT_PUT = 2, RIGHT_WORK = 4, RIGHT_OPERATE = 8 };

/* Characters of a token's name */
#define ACCESS_NAME_MOST 39

struct token {
	unsigned int rights;	/* of enum right; who may operate may read */
	char name[ACCESS_NAME_MOST + 1];
	uint8_t digest[SHA256_DIGEST_SIZE];
	char *tubes;		/* patterns, with a blank after each; NULL: all */
};

/* Where a client is: of IPv4, the address, of IPv6, the network */
struct peer {
	bool here;		/* on this machine */
	uint8_t address[8];
};

bool access_read(const char *path, void (*changed)(void));
bool access_wanted(void);
const struct token *access_each(size_t at);
const struct token *access_same(const struct token *found);
struct peer access_peer(int fd);
bool access_waits(const struct peer *peer);
const struct token *access_try(const struct peer *peer, const char *said);
bool access_may(const struct token *token, unsigned int rights, const char *tube);
bool access_may_do(const struct token *token, const struct command *cmd, const char *used);

#endif
