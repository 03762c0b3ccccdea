// SPDX-License-Identifier: GPL-2.0
/*
 * Tokens in a file: each has rights, of all tubes or of some, and a name. Only their digests are
 * kept. An address that has said wrong tokens has to wait.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/util.h"
#include "jobs/access.h"
#include "store/commit.h"

#define TOKENS_MOST 100
#define TOKEN_LEAST 16
#define FILE_MOST 65536
#define LINE_MOST 500
/* So many wrong tokens of an address, and then it waits */
#define TRIES 5
#define WAIT (10 * SECOND)
/* Addresses that are known for that; a further one takes the place of the oldest */
#define ADDRESSES 64

static struct token tokens[TOKENS_MOST], before[TOKENS_MOST];
static size_t token_count;
static bool wanted;
static struct failing {
	uint8_t address[8];	/* all 0: nobody */
	int tries;
	int64_t last;
} failing[ADDRESSES];

/* The file */

static void digest_of(const char *text, uint8_t *digest)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(text), (const uint8_t *)text);
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, digest);
}

/* Words with commas between them; 0: one of them is no right */
static unsigned int rights_of(char *words)
{
	static const char *const names[] = { "read", "put", "work", "operate" };
	unsigned int rights = 0, at;
	char *word;

	while ((word = strsep(&words, ","))) {
		for (at = 0; at < ARRAY_SIZE(names) && strcmp(word, names[at]); at++)
			;
		if (at == ARRAY_SIZE(names))
			return 0;
		rights |= 1 << at;
	}
	return rights & RIGHT_OPERATE ? rights | RIGHT_READ : rights;
}

static char *next_word(char **rest)
{
	char *word;

	do
		word = strsep(rest, " \t");
	while (word && !*word);
	return word;
}

/* Gives what is wrong with the tubes of a line, or NULL. */
static const char *take_token_tubes(char *rest, struct token *token)
{
	char all[LINE_MOST + 1] = "", *word;

	while ((word = next_word(&rest))) {
		if (strlen(word) > TUBE_NAME_MAX || word[strspn(word, TUBE_NAME_CHARS "*?[]!^")])
			return "after the name come names of tubes, or patterns like mail.*";
		strcat(strcat(all, word), " ");
	}
	token->tubes = *all ? must(strdup(all)) : NULL;
	return NULL;
}

/* Gives what is wrong with a line, or NULL. */
static const char *take_token(char *line, size_t number, struct token *all, size_t *count)
{
	char *rest = line, *rights, *said, *name;
	struct token *token = &all[*count];

	line[strcspn(line, "#\r\n")] = '\0';
	rights = next_word(&rest);
	said = next_word(&rest);
	name = next_word(&rest);
	if (!rights)
		return NULL;
	if (*count == TOKENS_MOST)
		return "there are a hundred tokens before it, which are the most";
	token->rights = rights_of(rights);
	if (!said || !token->rights)
		return "a line is: RIGHTS TOKEN [NAME [TUBE...]]; rights: read, put, work, operate";
	if (strlen(said) < TOKEN_LEAST || strlen(said) > TOKEN_MOST)
		return "a token has 16 to 200 characters: openssl rand -hex 16 makes one";
	if (name && (strlen(name) > ACCESS_NAME_MOST || name[strspn(name, TUBE_NAME_CHARS "@")]))
		return "a name has up to 39 letters, digits and -+/;.$_()@";
	digest_of(said, token->digest);
	if (name)
		strcpy(token->name, name);
	else
		snprintf(token->name, sizeof(token->name), "the token of line %zu", number);
	++*count;
	return take_token_tubes(rest, token);
}

static const char *refuse_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST)
		return "this is no file of 64 KiB at most";
	return token_refuse_mode(&st);
}

static void forget_tokens(struct token *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(all[i].tubes);
	memset(all, 0, count * sizeof(*all));
}

/**
 * access_read - read the tokens, or read them again
 * @path: the file; NULL: nobody needs one, nor has one
 * @changed: is called once they are in force, and may ask access_same(); or NULL
 *
 * Return: false, having complained: then those from before are in force.
 */
bool access_read(const char *path, void (*changed)(void))
{
	static struct token read[TOKENS_MOST];
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	const char *why = path && fd < 0 ? strerror(errno) : path ? refuse_file(fd) : NULL;
	FILE *file = fd >= 0 ? must(fdopen(fd, "r")) : NULL;
	size_t count = 0, number = 0, count_before = token_count;
	char line[LINE_MOST];

	while (!why && file && fgets(line, sizeof(line), file)) {
		number++;
		why = strchr(line, '\n') || feof(file) ? take_token(line, number, read, &count) :
			"a line has up to 498 characters, and no NUL";
	}
	if (file)
		fclose(file);
	explicit_bzero(line, sizeof(line));
	if (why && number)
		complain("%s:%zu: %s", path, number, why);
	else if (why)
		complain("%s: %s", path, why);
	if (why) {
		forget_tokens(read, count);
		return false;
	}
	wanted = path;
	memcpy(before, tokens, sizeof(before));
	memcpy(tokens, read, sizeof(tokens));
	memset(read, 0, sizeof(read));
	token_count = count;
	if (changed)
		changed();
	forget_tokens(before, count_before);
	return true;
}

/** access_wanted - has who comes from elsewhere to say a token? */
bool access_wanted(void)
{
	return wanted;
}

/** access_each - the token at that place, for who goes through all; NULL: there is none */
const struct token *access_each(size_t at)
{
	return at < token_count ? &tokens[at] : NULL;
}

/* Addresses */

static bool is_local(const struct in6_addr *address)
{
	return IN6_IS_ADDR_LOOPBACK(address) ||
		(IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/** access_peer - where the other end of a socket is; a unix socket is here */
struct peer access_peer(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
		struct sockaddr_storage room;
	} address = { .any.sa_family = AF_UNSPEC };
	socklen_t size = sizeof(address);
	struct peer peer = { .address = { [7] = 1 } };

	getpeername(fd, &address.any, &size);
	if (address.any.sa_family == AF_UNIX) {
		peer.here = true;
	} else if (address.any.sa_family == AF_INET) {
		memcpy(peer.address, &address.four.sin_addr, 4);
		peer.here = peer.address[0] == 127;
	} else if (address.any.sa_family == AF_INET6) {
		const struct in6_addr *six = &address.six.sin6_addr;

		peer.here = is_local(six);
		if (IN6_IS_ADDR_V4MAPPED(six))
			memcpy(peer.address, six->s6_addr + 12, 4);
		else
			memcpy(peer.address, six, 8);
	}
	return peer;
}

static struct failing *failing_of(const struct peer *peer)
{
	struct failing *oldest = failing;

	for (size_t i = 0; i < ADDRESSES; i++) {
		if (!memcmp(failing[i].address, peer->address, sizeof(peer->address)))
			return &failing[i];
		if (failing[i].last < oldest->last)
			oldest = &failing[i];
	}
	*oldest = (struct failing){ .last = 0 };
	memcpy(oldest->address, peer->address, sizeof(peer->address));
	return oldest;
}

/** access_waits - has the address said so many wrong tokens that it has to wait? */
bool access_waits(const struct peer *peer)
{
	struct failing *failed = failing_of(peer);

	if (commit_now() - failed->last > WAIT)
		failed->tries = 0;
	return failed->tries >= TRIES;
}

/**
 * access_try - find the token that is said
 * @peer: where from; access_waits() is false
 * @said: what may be one
 *
 * Return: NULL: there is none, which counts.
 */
const struct token *access_try(const struct peer *peer, const char *said)
{
	struct failing *failed = failing_of(peer);
	const struct token *found = NULL;
	uint8_t digest[SHA256_DIGEST_SIZE];

	digest_of(said, digest);
	for (size_t i = 0; i < token_count; i++)
		if (memeql_sec(digest, tokens[i].digest, sizeof(digest)))
			found = &tokens[i];
	if (!found) {
		failed->tries++;
		failed->last = commit_now();
	}
	return found;
}

/* Rights */

/** access_may - has the token one of the rights, of that tube, or, with NULL, of all? */
bool access_may(const struct token *token, unsigned int rights, const char *tube)
{
	char pattern[TUBE_NAME_MAX + 1];
	size_t length;

	if (!(token->rights & rights) || !token->tubes)
		return token->rights & rights;
	for (const char *at = token->tubes; tube && *at; at += length + 1) {
		length = strcspn(at, " ");
		memcpy(pattern, at, length);
		pattern[length] = '\0';
		if (!fnmatch(pattern, tube, 0))
			return true;
	}
	return false;
}

/** access_same - what a token is now that was found before the last reading; NULL: it is no more */
const struct token *access_same(const struct token *found)
{
	const struct token *token = &before[found - tokens];

	for (size_t i = 0; i < token_count; i++) {
		const struct token *one = &tokens[i];

		if (one->rights == token->rights && !strcmp(one->name, token->name) &&
		    !memcmp(one->digest, token->digest, sizeof(one->digest)) &&
		    !strcmp(one->tubes ? one->tubes : "", token->tubes ? token->tubes : ""))
			return one;
	}
	return NULL;
}

/* Which right a command needs, and of which tube. A job that is the client's own needs none. */
enum of { OF_NONE, OF_ANY, OF_USED, OF_NAMED, OF_ALL };

/** access_may_do - may a command be done by who has said the token, and uses the tube @used? */
bool access_may_do(const struct token *token, const struct command *cmd, const char *used)
{
	static const struct { enum of of; unsigned int rights; } needs[CMD_KINDS] = {
		[CMD_PUT] = { OF_USED, RIGHT_PUT },
		[CMD_PUT_UNIQUE] = { OF_USED, RIGHT_PUT },
		[CMD_DELETE_KEY] = { OF_USED, RIGHT_PUT },
		[CMD_PEEK] = { OF_ALL, RIGHT_READ },
		[CMD_PEEK_READY] = { OF_USED, RIGHT_READ },
		[CMD_PEEK_DELAYED] = { OF_USED, RIGHT_READ },
		[CMD_PEEK_BURIED] = { OF_USED, RIGHT_READ },
		[CMD_RESERVE] = { OF_ANY, RIGHT_WORK },
		[CMD_RESERVE_TIMEOUT] = { OF_ANY, RIGHT_WORK },
		[CMD_RESERVE_JOB] = { OF_ALL, RIGHT_WORK },
		[CMD_DELETE] = { OF_ALL, RIGHT_OPERATE },
		[CMD_KICK] = { OF_USED, RIGHT_OPERATE },
		[CMD_KICK_JOB] = { OF_ALL, RIGHT_OPERATE },
		[CMD_BACK] = { OF_ALL, RIGHT_OPERATE },	/* to any tube */
		[CMD_BACK_JOB] = { OF_ALL, RIGHT_OPERATE },
		[CMD_STATS] = { OF_ALL, RIGHT_READ },
		[CMD_STATS_JOB] = { OF_ALL, RIGHT_READ },
		[CMD_STATS_TUBE] = { OF_NAMED, RIGHT_READ },
		[CMD_LIST_TUBES] = { OF_ALL, RIGHT_READ },
		[CMD_USE] = { OF_NAMED, RIGHT_READ | RIGHT_PUT | RIGHT_WORK | RIGHT_OPERATE },
		[CMD_WATCH] = { OF_NAMED, RIGHT_WORK },
		[CMD_PAUSE_TUBE] = { OF_NAMED, RIGHT_OPERATE },
	};
	unsigned int rights = needs[cmd->kind].rights;
	enum of of = needs[cmd->kind].of;

	if (of == OF_NONE)
		return true;
	if (of == OF_ANY)
		return token->rights & rights;
	/* It takes delayed and buried jobs, too, which else is to kick. */
	if (cmd->kind == CMD_RESERVE_JOB && !(token->rights & RIGHT_OPERATE))
		return false;
	/* What is there says what jobs all tubes get. */
	if (of == OF_USED && !strcmp(used, TABS_TUBE))
		rights = RIGHT_OPERATE;
	return access_may(token, rights,
			  of == OF_USED ? used : of == OF_NAMED ? cmd->tube : NULL);
}
