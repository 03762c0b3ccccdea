// SPDX-License-Identifier: GPL-2.0
/*
 * Who looks at the pages over TCP, and may do something there: tokens in a file.
 *
 * A browser that has logged in has a cookie, which says until when, and is signed with a secret of
 * this run and the token. So nothing is kept for it here: a token that is taken out of the file,
 * and a start of the server, end it. The cookie is sent from no page of another site, and no script
 * has it. A page of another port of this machine is no other site to a browser: so each form has a
 * signature of the cookie, which such a page can't read.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alarm.h"
#include "base/util.h"
#include "jobs/access.h"
#include "jobs/tube.h"
#include "store/commit.h"
#include "web/html.h"
#include "web/login.h"

/* A cookie is good for so long. */
#define LOGIN_SECONDS (12 * 3600)
#define COOKIE "twheeld="

/* Tubes of a token to which its first page leads */
#define LINKS_MOST 500

#define SIGNATURE (2 * SHA256_DIGEST_SIZE)

static uint8_t secret[32];

/** login_start - be ready for people who log in */
void login_start(void)
{
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		die("there are no random numbers: %s", strerror(errno));
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

static const struct token *token_of_cookie(const char *value)
{
	char text[32], signature[SIGNATURE + 1];
	int64_t until = strtoll(value, NULL, 16);
	const struct token *found = NULL, *token;

	until_text(until, text, sizeof(text));
	if (until < alarm_wall() / SECOND || strncmp(value, text, strlen(text)))
		return NULL;
	for (size_t i = 0; (token = access_each(i)); i++) {
		sign(text, token->digest, signature);
		if (is_signature(value + strlen(text), signature))
			found = token;
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

/* The token that was said, or NULL: then that was answered. */
static const struct token *try_token(struct ask *ask, const char *said)
{
	struct evhttp_connection *from = evhttp_request_get_connection(ask->request);
	struct bufferevent *bev = evhttp_connection_get_bufferevent(from);
	struct peer peer = access_peer(bufferevent_getfd(bev));
	const struct token *token;

	if (access_waits(&peer)) {
		http_fail(ask, 429, "too many wrong tokens came from there: wait for 10 s");
		return NULL;
	}
	token = access_try(&peer, said);
	if (token)
		return token;
	commit_say("web: a wrong token came from %s", peer_of(ask));
	http_fail(ask, 403, "there is no such token");
	return NULL;
}

/* Requests */

static const char *header_of(struct ask *ask, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(ask->request), name);
}

static void be(struct ask *ask, const struct token *token, const char *tube)
{
	ask->reads = access_may(token, RIGHT_READ, tube);
	ask->operates = access_may(token, RIGHT_OPERATE, tube);
	ask->some_tubes = !access_may(token, RIGHT_READ, NULL);
	ask->who = token->name;
}

/**
 * login_check - find out who asks over TCP, by cookie or by Authorization: Bearer
 * @ask: the request
 * @tube: what it is about; NULL: no tube, so that rights of some tubes alone don't do
 *
 * Return: false: a token was wrong, and that was answered.
 */
bool login_check(struct ask *ask, const char *tube)
{
	const char *bearer = header_of(ask, "Authorization"), *cookie = header_of(ask, "Cookie");
	const struct token *token;

	if (bearer && !strncasecmp(bearer, "Bearer ", 7)) {
		token = try_token(ask, bearer + 7);
		if (!token)
			return false;
		be(ask, token, tube);
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
			be(ask, token, tube);
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

static void add_link(struct evbuffer *out, const char *tube)
{
	html_add(out, "<li><a href=\"%/tubes/%u\">%s</a></li>\n", tube, tube);
}

/**
 * login_home - the first page of who may read some tubes alone: which these are
 *
 * Return: false: who asks may read none, and that is not answered.
 */
bool login_home(struct ask *ask)
{
	const struct token *token;
	struct evbuffer *out;
	struct tube **tubes;
	size_t count, shown = 0, length;

	for (size_t i = 0; (token = access_each(i)) && token->name != ask->who;)
		i++;
	if (!token || !(token->rights & RIGHT_READ) || !token->tubes)
		return false;
	out = html_begin(ask, "Tubes");
	html_add(out, "<p class=\"note\">The token of %s is for these tubes: %s</p>\n<ul>\n",
		 token->name, token->tubes);
	tubes = tube_list(&count);
	for (size_t i = 0; i < count && shown < LINKS_MOST; i++)
		if (access_may(token, RIGHT_READ, tubes[i]->name) && ++shown)
			add_link(out, tubes[i]->name);
	/* One that nobody uses has a page, too. */
	for (const char *at = token->tubes; *at; at += length + 1) {
		char name[TUBE_NAME_MAX + 1];

		length = strcspn(at, " ");
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		if (!strpbrk(name, "*?[\\") && !tube_find(name))
			add_link(out, name);
	}
	html_add(out, "</ul>\n");
	html_end(ask, HTTP_OK, out);
	return true;
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
