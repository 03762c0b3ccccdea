// SPDX-License-Identifier: GPL-2.0
/*
 * Who looks at the pages over TCP, and may do something there: tokens in a file.
 *
 * A browser that has logged in has a cookie, which says until when, and is signed with a secret of
 * this run and the token. So nothing is kept for it here: a token that is taken out of the file,
 * and a start of the server, end it. The cookie is sent from no page of another site, and no script
 * has it. A page of another port of this machine is no other site to a browser: so each form has a
 * signature of the cookie, which such a page can't read.
 *
 * An address that has said wrong tokens has to wait.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/tube_name.h"
#include "base/util.h"
#include "store/commit.h"
#include "web/html.h"
#include "web/login.h"

#define TOKENS_MOST 100
#define TOKEN_LEAST 16
#define TOKEN_MOST 200
#define FILE_MOST 65536
/* A cookie is good for so long. */
#define LOGIN_SECONDS (12 * 3600)
#define COOKIE "twheeld="
/* So many wrong tokens of an address, and then it waits */
#define TRIES 5
#define WAIT (10 * SECOND)
/* Addresses that are known for that; a further one takes the place of the oldest */
#define ADDRESSES 64

#define SIGNATURE (2 * SHA256_DIGEST_SIZE)

struct token {
	bool operates;
	char name[40];
	uint8_t digest[SHA256_DIGEST_SIZE];
};

struct failing {
	uint8_t address[8];	/* of IPv6, the network; all 0: nobody */
	int tries;
	int64_t last;
};

static struct token tokens[TOKENS_MOST];
static size_t token_count;
static bool wanted;
static uint8_t secret[32];
static struct failing failing[ADDRESSES];

/* The file */

static void digest_of(const char *text, uint8_t *digest)
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(text), (const uint8_t *)text);
	sha256_digest(&ctx, SHA256_DIGEST_SIZE, digest);
}

/* Gives what is wrong with a line, or NULL. */
static const char *take_line(char *line, size_t number, struct token *all, size_t *count)
{
	char *rest = line, *words[4];
	size_t found = 0;
	struct token *token = &all[*count];

	line[strcspn(line, "#\r\n")] = '\0';
	while (found < 4 && (words[found] = strsep(&rest, " \t")))
		found += *words[found] != '\0';
	if (!found)
		return NULL;
	if (found < 2 || found > 3 || (strcmp(words[0], "read") && strcmp(words[0], "operate")))
		return "a line is: read TOKEN NAME, or: operate TOKEN NAME; the NAME may be left"
			" out";
	if (strlen(words[1]) < TOKEN_LEAST || strlen(words[1]) > TOKEN_MOST)
		return "a token has 16 to 200 characters: openssl rand -hex 16 makes one";
	if (found == 3 && (strlen(words[2]) >= sizeof(token->name) ||
			   words[2][strspn(words[2], TUBE_NAME_CHARS "@")]))
		return "a name has up to 39 letters, digits and -+/;.$_()@";
	if (*count == TOKENS_MOST)
		return "there are a hundred tokens before it, which are the most";
	token->operates = !strcmp(words[0], "operate");
	digest_of(words[1], token->digest);
	if (found == 3)
		strcpy(token->name, words[2]);
	else
		snprintf(token->name, sizeof(token->name), "the token of line %zu", number);
	++*count;
	return NULL;
}

/* Whoever may read the file may log in, and whoever may write it may let others in. */
static const char *refuse_mode(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST)
		return "this is no file of 64 KiB at most";
	if (st.st_mode & 0027)
		return "others may read or write it: chmod 640";
	return NULL;
}

/**
 * login_read - read the tokens, or read them again
 * @path: the file; NULL: nobody logs in
 *
 * Return: false, having complained: then those from before are in force.
 */
bool login_read(const char *path)
{
	static struct token read[TOKENS_MOST];
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	const char *why = path && fd < 0 ? strerror(errno) : path ? refuse_mode(fd) : NULL;
	FILE *file = fd >= 0 ? must(fdopen(fd, "r")) : NULL;
	size_t count = 0, number = 0;
	char line[500];

	while (!why && file && fgets(line, sizeof(line), file)) {
		number++;
		why = strchr(line, '\n') || feof(file) ? take_line(line, number, read, &count) :
			"a line has up to 498 characters, and no NUL";
	}
	if (file)
		fclose(file);
	explicit_bzero(line, sizeof(line));
	if (why && number)
		complain("%s:%zu: %s", path, number, why);
	else if (why)
		complain("%s: %s", path, why);
	if (why)
		return false;
	if (!wanted && getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		die("there are no random numbers: %s", strerror(errno));
	wanted = path;
	memcpy(tokens, read, sizeof(tokens));
	token_count = count;
	return true;
}

/** login_wanted - has who looks over TCP to log in? */
bool login_wanted(void)
{
	return wanted;
}

/* Signatures */

static void sign(const char *text, const uint8_t *with, char *signature)
{
	struct hmac_sha256_ctx ctx;
	uint8_t digest[SHA256_DIGEST_SIZE];

	hmac_sha256_set_key(&ctx, sizeof(secret), secret);
	hmac_sha256_update(&ctx, SHA256_DIGEST_SIZE, with);
	hmac_sha256_update(&ctx, strlen(text), (const uint8_t *)text);
	hmac_sha256_digest(&ctx, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		sprintf(signature + 2 * i, "%02x", digest[i]);
}

static bool is_signature(const char *said, const char *signature)
{
	return strlen(said) == SIGNATURE && memeql_sec(said, signature, SIGNATURE);
}

/* What a cookie has before its signature */
static void until_text(int64_t until, char *text, size_t room)
{
	snprintf(text, room, "%llx.", (unsigned long long)until);
}

static const struct token *token_of(const char *said)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	const struct token *found = NULL;

	digest_of(said, digest);
	for (size_t i = 0; i < token_count; i++)
		if (memeql_sec(digest, tokens[i].digest, sizeof(digest)))
			found = &tokens[i];
	return found;
}

static const struct token *token_of_cookie(const char *value)
{
	char text[32], signature[SIGNATURE + 1];
	int64_t until = strtoll(value, NULL, 16);
	const struct token *found = NULL;

	until_text(until, text, sizeof(text));
	if (until < alarm_wall() / SECOND || strncmp(value, text, strlen(text)))
		return NULL;
	for (size_t i = 0; i < token_count; i++) {
		sign(text, tokens[i].digest, signature);
		if (is_signature(value + strlen(text), signature))
			found = &tokens[i];
	}
	return found;
}

/* Those who fail */

static const char *peer_of(struct ask *ask)
{
	char *text = NULL;
	uint16_t port;

	evhttp_connection_get_peer(evhttp_request_get_connection(ask->request), &text, &port);
	return text ? text : "a unix socket";
}

/* A socket of IPv6 that takes IPv4, too, has such addresses as ::ffff:192.0.2.1. */
static void address_of(struct ask *ask, uint8_t *address)
{
	const char *text = peer_of(ask);
	bool mapped = !strncmp(text, "::ffff:", 7);
	struct in6_addr six;

	memset(address, 0, 8);
	address[7] = 1;
	if (inet_pton(AF_INET, mapped ? text + 7 : text, address) != 1 &&
	    inet_pton(AF_INET6, text, &six) == 1)
		memcpy(address, &six, 8);
}

static struct failing *failing_of(struct ask *ask)
{
	struct failing *oldest = failing;
	uint8_t address[8];

	address_of(ask, address);
	for (size_t i = 0; i < ADDRESSES; i++) {
		if (!memcmp(failing[i].address, address, sizeof(address)))
			return &failing[i];
		if (failing[i].last < oldest->last)
			oldest = &failing[i];
	}
	*oldest = (struct failing){ .last = 0 };
	memcpy(oldest->address, address, sizeof(address));
	return oldest;
}

/* The token that was said, or NULL: then that was answered. */
static const struct token *try_token(struct ask *ask, const char *said)
{
	struct failing *failed = failing_of(ask);
	const struct token *token;
	int64_t now = commit_now();

	if (now - failed->last > WAIT)
		failed->tries = 0;
	if (failed->tries >= TRIES) {
		http_fail(ask, 429, "too many wrong tokens came from there: wait for 10 s");
		return NULL;
	}
	token = token_of(said);
	if (token)
		return token;
	failed->tries++;
	failed->last = now;
	commit_say("web: a wrong token came from %s", peer_of(ask));
	http_fail(ask, 403, "there is no such token");
	return NULL;
}

/* Requests */

static const char *header_of(struct ask *ask, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(ask->request), name);
}

static void be(struct ask *ask, const struct token *token)
{
	ask->reads = true;
	ask->operates = token->operates;
	ask->who = token->name;
}

/**
 * login_check - find out who asks over TCP, by cookie or by Authorization: Bearer
 *
 * Return: false: a token was wrong, and that was answered.
 */
bool login_check(struct ask *ask)
{
	const char *bearer = header_of(ask, "Authorization"), *cookie = header_of(ask, "Cookie");
	const struct token *token;

	if (bearer && !strncasecmp(bearer, "Bearer ", 7)) {
		token = try_token(ask, bearer + 7);
		if (!token)
			return false;
		be(ask, token);
		/* It has no form, so it is for looking. */
		ask->operates = false;
		return true;
	}
	while (cookie && strncmp(cookie, COOKIE, strlen(COOKIE))) {
		cookie = strchr(cookie, ';');
		cookie = cookie ? cookie + 1 + strspn(cookie + 1, " ") : NULL;
	}
	if (cookie) {
		char value[32 + SIGNATURE + 1];

		cookie += strlen(COOKIE);
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(cookie, "; "), cookie);
		token = token_of_cookie(value);
		if (token) {
			be(ask, token);
			sign(value, token->digest, ask->form_token);
		}
	}
	return true;
}

/** login_is_form - does what a page sends come from a form of ours? */
bool login_is_form(struct ask *ask)
{
	char *said = http_query(ask, "form");
	bool right = said && *ask->form_token && is_signature(said, ask->form_token);

	free(said);
	return right;
}

/** login_page - where a token is said */
void login_page(struct ask *ask)
{
	struct evbuffer *out = html_begin(ask, "Log in");

	html_add(out, "<form method=\"post\"><label>Token <input type=\"password\" name=\"token\""
		 " autocomplete=\"current-password\" required></label>\n<button>Log in</button>"
		 "</form>\n<p class=\"note\">Tokens are in the file that the server's configuration"
		 " names.</p>\n");
	html_end(ask, HTTP_OK, out);
}

static void set_cookie(struct ask *ask, const char *value, int seconds)
{
	char text[200];

	snprintf(text, sizeof(text), COOKIE "%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%d",
		 value, seconds);
	evhttp_add_header(evhttp_request_get_output_headers(ask->request), "Set-Cookie", text);
	http_redirect(ask, "./");
}

/** login_enter - a token was said */
void login_enter(struct ask *ask)
{
	char *said = http_query(ask, "token"), value[32 + SIGNATURE + 1];
	const struct token *token = try_token(ask, said ? said : "");

	free(said);
	if (!token)
		return;
	until_text(alarm_wall() / SECOND + LOGIN_SECONDS, value, 32);
	sign(value, token->digest, value + strlen(value));
	inform("web: %s has logged in from %s", token->name, peer_of(ask));
	set_cookie(ask, value, LOGIN_SECONDS);
}

/** login_leave - the browser forgets its cookie */
void login_leave(struct ask *ask)
{
	set_cookie(ask, "", 0);
}
