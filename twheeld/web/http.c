// SPDX-License-Identifier: GPL-2.0
/*
 * What can be looked at over HTTP: metrics, and a page for browsers. Nothing can be changed.
 *
 * Who may connect may see it. That must not let in the pages of strangers which a browser has
 * open: no header allows them to read the answers. A stranger's name that is made to lead to
 * this address (DNS rebinding) would get around that, so what is for browsers is given to those
 * alone who ask by an address, or by a name that is this machine's.
 */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/util.h"
#include "web/files.h"
#include "web/http.h"
#include "web/http_limit.h"
#include "web/metrics.h"
#include "web/status.h"

/* Seconds */
#define PATIENCE 10

/* What is of a path: a file, or what a function says */
static const struct page {
	const char *path, *type;
	bool browsers;		/* are who asks */
	const struct file *file;
	void (*answer)(struct evhttp_request *request);
} pages[] = {
	{ "/", "text/html; charset=utf-8", true, &file_status_html, NULL },
	{ "/status.css", "text/css; charset=utf-8", true, &file_status_css, NULL },
	{ "/status.js", "text/javascript; charset=utf-8", true, &file_status_js, NULL },
	{ "/status.json", "application/json", true, NULL, status_answer },
	{ "/metrics", "text/plain; version=0.0.4; charset=utf-8", false, NULL, metrics_answer },
};

/* Of what is for browsers: nothing but these files is loaded, and nobody else has it. */
static const char *const headers[][2] = {
	{ "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self';"
	  " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cache-Control", "no-store" },
};

static struct evhttp *http;

static void say(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/**
 * http_refuse - answer that there is no answer
 * @request: what was asked
 * @code: HTTP's
 * @why: a sentence
 */
void http_refuse(struct evhttp_request *request, int code, const char *why)
{
	struct evbuffer *out = must(evbuffer_new());

	evhttp_remove_header(evhttp_request_get_output_headers(request), "Content-Type");
	say(request, "Content-Type", "text/plain; charset=utf-8");
	evbuffer_add_printf(out, "%s.\n", why);
	evhttp_send_reply(request, code, why, out);
	evbuffer_free(out);
}

/** http_lost - who asked has gone, as the connection's callback says, before all was sent */
void http_lost(struct evhttp_request *request)
{
	/* A request that is being answered is parted from its connection before, and is ours. */
	if (!evhttp_request_get_connection(request))
		evhttp_request_free(request);
}

static const struct page *find(const char *path)
{
	for (size_t i = 0; path && i < ARRAY_SIZE(pages); i++)
		if (!strcmp(path, pages[i].path))
			return &pages[i];
	return NULL;
}

/* Is it an address, or a name of this machine that no stranger gave it? */
static bool is_own(const char *host)
{
	char name[256] = "";
	struct in_addr address;

	gethostname(name, sizeof(name) - 1);
	return *host == '[' || inet_pton(AF_INET, host, &address) == 1 ||
		!strcasecmp(host, "localhost") || (*name && !strcasecmp(host, name));
}

/*
 * Who is asked, as a browser says it by itself. A page may write another name into what it asks
 * for, as //localhost/, which libevent would take.
 */
static bool asks_us(struct evhttp_request *request)
{
	const char *header = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	char host[256];

	if (evhttp_uri_get_host(evhttp_request_get_evhttp_uri(request)))
		return false;
	if (!header)
		return true;
	snprintf(host, sizeof(host), "%s", header);
	if (*host != '[')
		host[strcspn(host, ":")] = '\0';
	return is_own(host);
}

static void give_file(struct evhttp_request *request, const struct file *file)
{
	struct evbuffer *out = must(evbuffer_new());

	evbuffer_add_reference(out, file->text, file->length, NULL, NULL);
	evhttp_send_reply(request, HTTP_OK, "OK", out);
	evbuffer_free(out);
}

static void give(struct evhttp_request *request, const struct page *page)
{
	say(request, "Content-Type", page->type);
	for (size_t i = 0; page->browsers && i < ARRAY_SIZE(headers); i++)
		say(request, headers[i][0], headers[i][1]);
	if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		evhttp_send_reply(request, HTTP_OK, "OK", NULL);
	else if (page->file)
		give_file(request, page->file);
	else
		page->answer(request);
}

static void asked(struct evhttp_request *request, void *arg)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	const struct page *page = find(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request)));

	(void)arg;
	http_limit_renew(evhttp_connection_get_bufferevent(connection));
	/* Who stays would keep others out. */
	say(request, "Connection", "close");
	if (!(evhttp_request_get_command(request) & (EVHTTP_REQ_GET | EVHTTP_REQ_HEAD))) {
		say(request, "Allow", "GET, HEAD");
		http_refuse(request, HTTP_BADMETHOD, "Nothing can be changed here");
	} else if (!page) {
		http_refuse(request, HTTP_NOTFOUND, "Not Found");
	} else if (page->browsers && !asks_us(request)) {
		http_refuse(request, 403, "Ask by the address of this machine, or its own name");
	} else {
		give(request, page);
	}
}

/** http_start - be ready to answer, to those whom http_add() lets in */
void http_start(struct event_base *base)
{
	http = must(evhttp_new(base));
	http_limit_start(base, http);
	evhttp_set_allowed_methods(http, UINT16_MAX);
	evhttp_set_max_headers_size(http, 8192);
	evhttp_set_max_body_size(http, 0);
	evhttp_set_timeout(http, PATIENCE);
	evhttp_set_gencb(http, asked, NULL);
}

/** http_add - answer on a socket that listens */
void http_add(int fd)
{
	struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(http, fd);

	if (!bound)
		die("metrics can't be served: out of memory");
	socket_spare(evhttp_bound_socket_get_listener(bound));
	http_limit_add(evhttp_bound_socket_get_listener(bound));
}
