// SPDX-License-Identifier: GPL-2.0
/*
 * The server's one interface for programs and people: HTTP, and JSON. docs/openapi.yaml says what
 * each path takes and gives.
 *
 * Over TCP, who may connect may see, and can change nothing. That must not let in the pages of
 * strangers which a browser has open: no header allows them to read the answers. A stranger's name
 * that is made to lead to this address (DNS rebinding) would get around that, so all but the
 * metrics is given to those alone who ask by an address, or by a name that is this machine's.
 *
 * No browser opens a unix socket, but something may forward one. So nothing is done for who says
 * that a page asks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/util.h"
#include "jobs/access.h"
#include "web/act.h"
#include "web/files.h"
#include "web/html.h"
#include "web/http.h"
#include "web/http_limit.h"
#include "web/jobs.h"
#include "web/json.h"
#include "web/login.h"
#include "web/metrics.h"
#include "web/page.h"
#include "web/schedules.h"
#include "web/status.h"
#include "web/traces.h"

#define HEADERS_MOST 8192
#define HTTP_SEEOTHER 303
/* To parse more keeps clients waiting */
#define JSON_MOST (256 << 10)
/*
 * A request over TCP that would change something is read up to this many bytes: a client that is
 * still sending would not read the refusal.
 */
#define REFUSED_MOST 8192

#define LOOK (EVHTTP_REQ_GET | EVHTTP_REQ_HEAD)
#define POST EVHTTP_REQ_POST
#define DELETE EVHTTP_REQ_DELETE
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define ROUTE(does, where, how, ...) { .methods = does, .path = where, .answer = how,	\
	##__VA_ARGS__ }
#define PAGE(does, where, how, ...) ROUTE(does, where, how, .type = html_type, ##__VA_ARGS__)
#define FILE_AT(where, what, kind) {					\
	.methods = LOOK, .path = where, .file = &what, .type = kind, .open = true }

static const char html_type[] = "text/html; charset=utf-8";

static const struct route {
	const char *path;	/* {} stands for any part of it */
	int methods;
	void (*answer)(struct ask *ask);
	const struct file *file;
	const char *type;	/* NULL: JSON */
	bool local;		/* what it gives is for those who may read bodies */
	bool open;		/* also to who has not logged in */
	bool operates;		/* only to who has logged in, and may do something */
	bool by_page;		/* there is a page for it, too, without /v1: make_routes() */
} routes[] = {
	PAGE(LOOK, "/", page_home),
	PAGE(LOOK, "/schedules/{}", page_schedule),
	PAGE(LOOK, "/tubes/{}", page_tube),
	PAGE(LOOK, "/tubes/{}/jobs", page_jobs),
	PAGE(LOOK, "/servers/{}", page_server),
	PAGE(LOOK, "/jobs/{}", page_job),
	PAGE(LOOK, "/login", login_page, .open = true),
	PAGE(POST, "/login", login_enter, .open = true),
	PAGE(POST, "/logout", login_leave),
	PAGE(POST, "/jobs/{}/delete", jobs_delete, .operates = true),
	PAGE(LOOK, "/jobs/{}/delete", act_ask, .operates = true),
	FILE_AT("/status.css", file_status_css, "text/css; charset=utf-8"),
	FILE_AT("/status.js", file_status_js, "text/javascript; charset=utf-8"),
	ROUTE(LOOK, "/metrics", metrics_answer, .type = METRICS_TYPE, .open = true),
	ROUTE(LOOK, "/v1/status", status_answer),
	ROUTE(LOOK, "/v1/servers", status_servers),
	ROUTE(LOOK, "/v1/schedules", schedules_list),
	ROUTE(LOOK, "/v1/schedules/{}", schedules_one),
	ROUTE(LOOK, "/v1/schedules/{}/runs", schedules_runs),
	ROUTE(LOOK, "/v1/tubes", metrics_tubes),
	ROUTE(POST, "/v1/schedules/{}/pause", schedules_pause, .by_page = true),
	ROUTE(POST, "/v1/schedules/{}/resume", schedules_resume, .by_page = true),
	ROUTE(POST, "/v1/schedules/{}/run", schedules_run, .by_page = true),
	ROUTE(POST, "/v1/schedules/{}/backfill", schedules_backfill, .by_page = true),
	ROUTE(POST, "/v1/tubes/{}/kick", jobs_kick_tube, .by_page = true),
	ROUTE(POST, "/v1/tubes/{}/back", jobs_back_tube, .by_page = true),
	ROUTE(POST, "/v1/jobs/{}/kick", jobs_kick, .by_page = true),
	ROUTE(POST, "/v1/jobs/{}/back", jobs_back, .by_page = true),
	ROUTE(LOOK, "/v1/tubes/{}/jobs", jobs_peek_tube, .local = true),
	ROUTE(POST, "/v1/tubes/{}/jobs", jobs_put),
	ROUTE(DELETE, "/v1/tubes/{}/jobs", jobs_delete_key),
	ROUTE(LOOK, "/v1/jobs/{}", jobs_peek, .local = true),
	ROUTE(LOOK, "/v1/jobs/{}/tries", traces_of_job, .local = true),
	ROUTE(DELETE, "/v1/jobs/{}", jobs_delete),
};

/*
 * All paths but the metrics have these: a page loads nothing from elsewhere, and nobody frames
 * it.
 */
static const char *const headers[][2] = {
	{ "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self';"
	  " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Referrer-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
};

/* All that there are: those above; and of what is done by pages the question, and its end */
static struct route all[3 * ARRAY_SIZE(routes)];
static size_t route_count;

static void make_routes(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		struct route page = routes[i];

		all[route_count++] = page;
		if (!page.by_page)
			continue;
		page.path += strlen("/v1");
		page.type = html_type;
		page.operates = true;
		all[route_count++] = page;
		page.methods = LOOK;
		page.answer = act_ask;
		all[route_count++] = page;
	}
}

static struct event_base *loop;
static struct http_limit over_tcp = { .most = 64, .patience = 10 };
/* Clients of the unix socket have longer, and have it anew for each piece of an answer. */
static struct http_limit at_socket = { .most = 32, .patience = 60, .old_programs = true };

static void say(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

/* The end of an answer */

static void answer_ended(struct ask *ask)
{
	if (ask->form)
		evhttp_clear_headers(ask->form);
	free(ask->form);
	free(ask->name);
	free(ask->more);
	free(ask);
}

/* From here on the client may go away before it is answered. */
static struct evhttp_request *parted(struct ask *ask)
{
	if (ask->request)
		evhttp_connection_set_closecb(evhttp_request_get_connection(ask->request), NULL,
					      NULL);
	return ask->request;
}

static void send_all(struct ask *ask, int code, struct evbuffer *out)
{
	struct evhttp_request *request = parted(ask);

	if (request)
		evhttp_send_reply(request, code, NULL, out);
	answer_ended(ask);
}

/** http_text - answer with a text of the path's type; that ends it */
void http_text(struct ask *ask, int code, struct evbuffer *out)
{
	send_all(ask, code, out);
}

/** http_redirect - have the browser look at another page; that ends it */
void http_redirect(struct ask *ask, const char *to)
{
	struct evbuffer *out = must(evbuffer_new());

	if (ask->request)
		say(ask->request, "Location", to);
	send_all(ask, HTTP_SEEOTHER, out);
	evbuffer_free(out);
}

/** http_json - answer with JSON, which is freed; that ends it */
void http_json(struct ask *ask, int code, json_t *json)
{
	struct evbuffer *out;

	if (ask->request && ask->page) {
		act_done(ask, json);
		json_decref(json);
		return;
	}
	out = must(evbuffer_new());
	json_add(out, json, "");
	evbuffer_add(out, "\n", 1);
	send_all(ask, code, out);
	evbuffer_free(out);
}

/** http_fail - answer with a sentence that says what is wrong; that ends it */
void http_fail(struct ask *ask, int code, const char *format, ...)
{
	va_list args;
	char *text;
	int ret;

	va_start(args, format);
	ret = vasprintf(&text, format, args);
	va_end(args);
	if (ret < 0)
		must(NULL);
	if (ask->request && ask->page) {
		html_fail(ask, code, text);
		free(text);
		return;
	}
	if (ask->request) {
		evhttp_remove_header(evhttp_request_get_output_headers(ask->request),
				     "Content-Type");
		say(ask->request, "Content-Type", "application/json");
	}
	http_json(ask, code, json_pack("{s:o}", "error", json_of_text(text)));
	free(text);
}

static void sent(struct evhttp_connection *connection, void *arg)
{
	struct ask *ask = arg;
	void (*go_on)(struct ask *ask) = ask->go_on;

	if (ask->local)
		http_limit_renew(&at_socket, evhttp_connection_get_bufferevent(connection));
	ask->go_on = NULL;
	go_on(ask);
}

/**
 * http_piece - send a piece of an answer
 * @ask: whose client may have gone
 * @out: the piece
 * @go_on: is called once the piece was sent, or the client has gone
 */
void http_piece(struct ask *ask, struct evbuffer *out, void (*go_on)(struct ask *ask))
{
	if (!ask->request) {
		go_on(ask);
		return;
	}
	if (!ask->chunks)
		evhttp_send_reply_start(ask->request, HTTP_OK, NULL);
	ask->chunks = true;
	ask->go_on = go_on;
	evhttp_send_reply_chunk_with_cb(ask->request, out, sent, ask);
}

/** http_end - the last piece was sent, or there is nobody to be answered */
void http_end(struct ask *ask)
{
	struct evhttp_request *request = parted(ask);

	if (request)
		evhttp_send_reply_end(request);
	answer_ended(ask);
}

/* The client has gone before all was sent. */
static void client_gone(struct evhttp_connection *connection, void *arg)
{
	struct ask *ask = arg;
	void (*go_on)(struct ask *ask) = ask->go_on;

	(void)connection;
	/* A request that is being answered is parted from its connection before, and is ours. */
	if (!evhttp_request_get_connection(ask->request))
		evhttp_request_free(ask->request);
	ask->request = NULL;
	ask->go_on = NULL;
	if (go_on)
		go_on(ask);
}

/* The request's words and body */

/** http_query - a word that follows the path, decoded; NULL: there is none of that name */
char *http_query(struct ask *ask, const char *name)
{
	const char *query =
		evhttp_uri_get_query(evhttp_request_get_evhttp_uri(ask->request));
	struct evkeyvalq words;
	const char *value;
	char *copy = NULL;

	if (ask->form) {
		value = evhttp_find_header(ask->form, name);
		return value ? must(strdup(value)) : NULL;
	}
	if (!query || evhttp_parse_query_str(query, &words) < 0)
		return NULL;
	value = evhttp_find_header(&words, name);
	if (value)
		copy = must(strdup(value));
	evhttp_clear_headers(&words);
	return copy;
}

/**
 * http_number - a number that follows the path
 * @ask: the request; if it is wrong it is answered
 * @name: the word before it
 * @most: that it may be; 0 is the least
 * @value: stays as it is if it is not said
 *
 * Return: false: it is wrong.
 */
bool http_number(struct ask *ask, const char *name, int64_t most, int64_t *value)
{
	char *text = http_query(ask, name), *rest = text;
	bool right = true;

	/* A field of a form that nobody has filled in */
	if (text && (*text || !ask->form)) {
		errno = 0;
		*value = strtoll(text, &rest, 10);
		right = !errno && *text >= '0' && *text <= '9' && !*rest && *value <= most;
	}
	free(text);
	if (!right)
		http_fail(ask, HTTP_BADREQUEST, "%s is a whole number up to %lld", name,
			  (long long)most);
	return right;
}

/** http_bytes - the body, and whether it is said to be JSON */
struct evbuffer *http_bytes(struct ask *ask, bool *is_json)
{
	const char *type = evhttp_find_header(evhttp_request_get_input_headers(ask->request),
					      "Content-Type");

	*is_json = type && !strncasecmp(type, "application/json", 16);
	return evhttp_request_get_input_buffer(ask->request);
}

/* The fields of a form, as members that are texts */
static json_t *form_json(const struct evkeyvalq *form)
{
	json_t *json = must(json_object());
	const struct evkeyval *field;

	for (field = form->tqh_first; field; field = field->next.tqe_next)
		json_object_set_new(json, field->key, json_of_text(field->value));
	return json;
}

/** http_body - the body as JSON; NULL: it is no JSON, and the client has an error for that */
json_t *http_body(struct ask *ask)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(ask->request);
	size_t length = evbuffer_get_length(in);
	json_error_t error;
	json_t *json;

	if (ask->form)
		return form_json(ask->form);
	if (length > JSON_MOST) {
		http_fail(ask, HTTP_ENTITYTOOLARGE, "a body of JSON has %d bytes at most",
			  JSON_MOST);
		return NULL;
	}
	json = json_loadb(length ? (const char *)evbuffer_pullup(in, -1) : "", length,
			  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!json)
		http_fail(ask, HTTP_BADREQUEST, "the body is no JSON: line %d: %s", error.line,
			  error.text);
	return json;
}

/** http_who - who asks, by the token or at the unix socket; until somebody else does */
const char *http_who(const struct ask *ask)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(ask->request);
	struct bufferevent *bev = evhttp_connection_get_bufferevent(connection);
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	static char text[60];

	if (ask->who) {
		snprintf(text, sizeof(text), "%s, by the page", ask->who);
		return text;
	}
	if (getsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return "somebody at the socket";
	snprintf(text, sizeof(text), "uid %u, pid %d, at the socket", peer.uid, peer.pid);
	return text;
}

/* Routes */

/* What stands for {} is decoded; it is NULL if it is empty, or can't be a name. */
static bool matches(const char *path, const char *pattern, char **name)
{
	const char *hole = strstr(pattern, "{}");
	size_t before = hole ? hole - pattern : 0, length, decoded;
	char *text;

	if (!hole)
		return !strcmp(path, pattern);
	if (strncmp(path, pattern, before))
		return false;
	length = strcspn(path + before, "/");
	if (!length || strcmp(path + before + length, hole + 2))
		return false;
	if (!name)
		return true;
	text = must(strndup(path + before, length));
	*name = must(evhttp_uridecode(text, 0, &decoded));
	free(text);
	if (strlen(*name) == decoded)
		return true;
	free(*name);
	*name = NULL;
	return false;
}

/* @methods: the methods that the path takes; 0: no such path, or no name can stand in it so */
static const struct route *find(const char *path, int method, int *methods, char **name)
{
	const struct route *found = NULL;

	*methods = 0;
	for (size_t i = 0; path && i < route_count; i++) {
		if (!matches(path, all[i].path, NULL))
			continue;
		*methods |= all[i].methods;
		if (all[i].methods & method)
			found = &all[i];
	}
	if (!found || matches(path, found->path, name))
		return found;
	*methods = 0;
	return NULL;
}

/* Is the host an address, or a name of this machine that no stranger gave it? */
static bool is_own(const char *host)
{
	char name[256] = "";
	struct in_addr address;

	gethostname(name, sizeof(name) - 1);
	return *host == '[' || inet_pton(AF_INET, host, &address) == 1 ||
		!strcasecmp(host, "localhost") || (*name && !strcasecmp(host, name));
}

/*
 * Was this machine asked? Only the Host header counts, which a browser writes by itself: a page may
 * put another name into the request's line, as //localhost/, which libevent would take.
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

static bool page_asks(struct evhttp_request *request)
{
	struct evkeyvalq *said = evhttp_request_get_input_headers(request);

	return evhttp_find_header(said, "Origin") || evhttp_find_header(said, "Sec-Fetch-Site");
}

/*
 * A query whose words are no name=value is refused: without them the answer would be another one.
 */
static bool has_right_words(struct evhttp_request *request)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	struct evkeyvalq words;

	if (!query)
		return true;
	if (evhttp_parse_query_str(query, &words) < 0)
		return false;
	evhttp_clear_headers(&words);
	return true;
}

static void give(struct ask *ask, const struct route *route, int method)
{
	bool whole = method != EVHTTP_REQ_HEAD;
	struct evbuffer *out;

	if (!(method & LOOK) && route->operates)
		act_log(ask);
	if (whole && !route->file) {
		route->answer(ask);
		return;
	}
	out = must(evbuffer_new());
	if (whole)
		evbuffer_add_reference(out, route->file->text, route->file->length, NULL, NULL);
	send_all(ask, HTTP_OK, out);
	evbuffer_free(out);
}

static void refuse_method(struct ask *ask, int methods)
{
	static const char *const allow[] = { "GET, HEAD", "GET, HEAD, POST", "GET, HEAD, DELETE" };
	int at = !!(methods & POST) + 2 * !!(methods & DELETE);

	ask->page = false;
	say(ask->request, "Allow", methods & LOOK ? allow[at] : allow[at] + strlen("GET, HEAD, "));
	http_fail(ask, HTTP_BADMETHOD, ask->local ? "this path takes other methods" :
		  "nothing can be changed here, only over the server's unix socket");
}

static void begin_answer(struct ask *ask, const struct route *route)
{
	bool metrics = route && route->answer == metrics_answer;

	ask->page = route && route->type == html_type;
	say(ask->request, "Content-Type", route && route->type ? route->type : "application/json");
	for (size_t i = 0; !metrics && i < ARRAY_SIZE(headers); i++)
		say(ask->request, headers[i][0], headers[i][1]);
}

/*
 * Browsers say by themselves from where a form is: without TLS, and beyond this machine, as Origin
 * alone.
 */
static bool is_from_us(struct evhttp_request *request)
{
	struct evkeyvalq *said = evhttp_request_get_input_headers(request);
	const char *site = evhttp_find_header(said, "Sec-Fetch-Site");
	const char *origin = evhttp_find_header(said, "Origin");
	const char *host = evhttp_find_header(said, "Host");

	if (site)
		return !strcmp(site, "same-origin") || !strcmp(site, "none");
	return !origin || (host && !strncmp(origin, "http://", 7) && !strcmp(origin + 7, host));
}

/* What a page sends must come from a page of ours. */
static bool take_form(struct ask *ask, const struct route *route)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(ask->request);
	size_t length = evbuffer_get_length(in);
	char *text = zalloc(length + 1);

	evbuffer_copyout(in, text, length);
	ask->form = zalloc(sizeof(*ask->form));
	if (evhttp_parse_query_str(text, ask->form) < 0) {
		free(ask->form);
		ask->form = NULL;
	}
	free(text);
	if (!ask->form)
		http_fail(ask, HTTP_BADREQUEST, "this is no form");
	else if (!is_from_us(ask->request) || (!route->open && !login_is_form(ask)))
		http_fail(ask, 403, "this does not come from a page of this server that you had"
			  " open: go back, and do it there");
	else
		return true;
	return false;
}

static void refuse_stranger(struct ask *ask)
{
	say(ask->request, "WWW-Authenticate", "Bearer");
	http_fail(ask, 401, "log in, or send Authorization: Bearer TOKEN");
}

/* May who asks have that? If not, it is answered. */
static bool is_let_in(struct ask *ask, const struct route *route, int method)
{
	bool known = !ask->local && access_wanted(), of_tube = strstr(route->path, "/tubes/{}");

	if (known && !login_check(ask, of_tube ? ask->name : NULL))
		return false;
	if (known && !route->open && !ask->who && ask->page)
		html_redirect(ask, "login");
	else if (known && !route->open && !ask->who)
		refuse_stranger(ask);
	else if (known && !ask->reads && route->answer == page_home && login_home(ask))
		return false;
	else if (known && !route->open && !ask->reads && route->answer != login_leave)
		http_fail(ask, 403, "the token of %s has no right to see that", ask->who);
	else if (route->local && !ask->reads)
		http_fail(ask, 403, "jobs are shown over the server's unix socket alone");
	else if (route->operates && !act_may(ask))
		http_fail(ask, 403, "who does this has to log in with a token that may operate");
	else
		return method & LOOK || !ask->page || take_form(ask, route);
	return false;
}

/* A request with lines of an older version has had its answer in first_bytes(). */
static void asked(struct evhttp_request *request, void *arg)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	int method = evhttp_request_get_command(request), methods;
	struct http_limit *limit = arg;
	struct ask *ask = zalloc(sizeof(*ask));
	const struct route *route;
	bool sends = !(method & LOOK);

	ask->request = request;
	ask->local = limit == &at_socket;
	ask->reads = ask->local;
	evhttp_connection_set_closecb(connection, client_gone, ask);
	http_limit_renew(limit, evhttp_connection_get_bufferevent(connection));
	/* A connection that stays would keep others out. */
	say(request, "Connection", "close");
	say(request, "Server", "twheeld/" TWHEELD_VERSION);
	route = find(path, method, &methods, &ask->name);
	begin_answer(ask, route);
	if (sends && !ask->local && !(ask->page && access_wanted()))
		refuse_method(ask, LOOK);
	else if (!methods)
		http_fail(ask, HTTP_NOTFOUND, "twheeld " TWHEELD_VERSION
			  " has no such path: see twheeld(8), INTERFACE");
	else if (!route || (sends && ask->local && ask->page))
		refuse_method(ask, methods);
	else if (route->answer != metrics_answer && !asks_us(request))
		http_fail(ask, 403, "ask by the address of this machine, or its own name");
	else if (sends && !ask->page && page_asks(request))
		http_fail(ask, 403, "a web page may change nothing here");
	else if (sends && !has_right_words(request))
		http_fail(ask, HTTP_BADREQUEST, "after ? come words like pri=10&delay=60");
	else if (is_let_in(ask, route, method))
		give(ask, route, method);
}

static struct evhttp *new_http(struct http_limit *limit, uint32_t body_most)
{
	struct evhttp *http = must(evhttp_new(loop));

	http_limit_start(limit, loop, http);
	evhttp_set_allowed_methods(http, UINT16_MAX);
	evhttp_set_max_headers_size(http, HEADERS_MOST);
	evhttp_set_max_body_size(http, body_most);
	evhttp_set_timeout(http, limit->patience);
	evhttp_set_gencb(http, asked, limit);
	return http;
}

/** http_start - be ready to answer on the sockets of http_add(); @job_size: bytes of a body */
void http_start(struct event_base *base, uint32_t job_size)
{
	loop = base;
	make_routes();
	new_http(&over_tcp, REFUSED_MOST);
	new_http(&at_socket, job_size > JSON_MOST ? job_size : JSON_MOST);
}

static void add_socket(struct http_limit *limit, int fd)
{
	struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(limit->http, fd);

	if (!bound)
		die("HTTP can't be served: out of memory");
	socket_say(fd, limit == &at_socket ? "twheel(1)" : "browsers and Prometheus");
	socket_spare(evhttp_bound_socket_get_listener(bound));
	http_limit_add(limit, evhttp_bound_socket_get_listener(bound));
}

/** http_add - answer on a socket that listens, where nothing can be changed */
void http_add(int fd)
{
	add_socket(&over_tcp, fd);
}

/** http_add_local - answer on a unix socket, where jobs and schedules can be changed */
void http_add_local(const char *path)
{
	char *address;

	if (asprintf(&address, "unix:%s", path) < 0)
		must(NULL);
	add_socket(&at_socket, socket_open(address, NULL));
	free(address);
	if (chmod(path, 0660) < 0)
		die("%s: %s", path, strerror(errno));
}
