// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to twheeld: HTTP over its unix socket, one connection for a request. There are
 * neither proxies nor certificates on that way, so it is a line, a body, and an answer up to the
 * end.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"

const char *ask_socket;

static int cant_connect(const char *path)
{
	if (errno == EACCES)
		return fail(STATUS_NOT_ALLOWED, "%s: you may not speak to the server; as root: "
			    "sudo twheel ...", path);
	return fail(STATUS_FAILED, "no server answers at %s: %s. Does twheeld run, and is this its "
		    "'admin'? -s or TWHEELD_ADMIN names another one: see twheeld.conf(5)",
		    path, strerror(errno));
}

/* Gives -1, having said why, and what the command is to end with. */
static int connect_to_server(int *status)
{
	const char *path = getenv("TWHEELD_ADMIN");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (ask_socket)
		path = ask_socket;
	else if (!path || !*path)
		path = ASK_SOCKET;
	if (strlen(path) >= sizeof(addr.sun_path)) {
		*status = fail(STATUS_USAGE, "%s: this path is too long for a socket", path);
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		*status = cant_connect(path);
		return -1;
	}
	return fd;
}

/* A server that takes no more may have answered by then. */
static void send_all(int server, const char *bytes, size_t length)
{
	ssize_t sent;

	for (; length; bytes += sent, length -= sent) {
		sent = send(server, bytes, length, MSG_NOSIGNAL);
		if (sent < 0)
			return;
	}
}

static char *read_all(int server)
{
	char *text = NULL, piece[4096];
	size_t length;
	ssize_t got;
	FILE *whole = need(open_memstream(&text, &length));

	while ((got = read(server, piece, sizeof(piece))) > 0)
		fwrite(piece, 1, got, whole);
	fclose(whole);
	return need(text);
}

/* What an answer says; gives the status that the command is to end with, having said why. */
static int take(const char *text, json_t **answer)
{
	const char *body = strncmp(text, "HTTP/", 5) ? NULL : strstr(text, "\r\n\r\n");
	const char *error;
	char why[61];
	int code;

	if (!body && *text == '{')
		return fail(STATUS_FAILED, "this server is of an older version, and speaks no HTTP:"
			    " use the twheel of that version, or a newer twheeld");
	*answer = body ? json_loads(body, JSON_ALLOW_NUL, NULL) : NULL;
	/* An error of HTTP itself has a page of libevent's, in HTML: take its sentence. */
	if (body && !*answer && sscanf(text, "HTTP/%*s %d %60[ -~]", &code, why) == 2 &&
	    code >= 300)
		return fail(STATUS_FAILED, "the server refuses that: %d %s", code, why);
	if (!*answer)
		return fail(STATUS_FAILED, "the server's answer ends in the middle: has it ended?");
	error = json_string_value(json_object_get(*answer, "error"));
	if (!error)
		return STATUS_OK;
	return fail(STATUS_FAILED, "%s", error);
}

/**
 * ask - ask the server, and have its answer
 * @method: "GET", ...
 * @path: what follows /v1/
 * @type: of the body
 * @body: its bytes
 * @length: how many
 * @answer: the answer, also one of "error"; NULL: there is none. It lives as long as the command,
 *	if it is not freed
 *
 * Return: the status that the command is to end with, having said why.
 */
int ask(const char *method, const char *path, const char *type, const char *body, size_t length,
	json_t **answer)
{
	int status = STATUS_FAILED;
	int server = connect_to_server(&status);
	char *text;

	*answer = NULL;
	if (server < 0)
		return status;
	if (asprintf(&text, "%s /v1/%s HTTP/1.0\r\nHost: localhost\r\nContent-Length: %zu\r\n"
		     "Content-Type: %s\r\n\r\n", method, path, length, type) < 0)
		need(NULL);
	send_all(server, text, strlen(text));
	free(text);
	send_all(server, body, length);
	text = read_all(server);
	close(server);
	status = take(text, answer);
	free(text);
	return status;
}

/** ask_json - the same, with JSON as the body, which is freed; or NULL */
int ask_json(const char *method, const char *path, json_t *body, json_t **answer)
{
	char *text = body ? need(json_dumps(body, JSON_COMPACT)) : NULL;
	int status = ask(method, path, "application/json", text,
			 text ? strlen(text) : 0, answer);

	json_decref(body);
	free(text);
	return status;
}

/** ask_path - a path of which "%s" is a name; malloc()ed */
char *ask_path(const char *format, const char *name)
{
	char *escaped = need(calloc(3, strlen(name) + 1)), *to = escaped, *path;

	for (; *name; name++) {
		if (isalnum((unsigned char)*name))
			*to++ = *name;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*name);
	}
	if (asprintf(&path, format, escaped) < 0)
		need(NULL);
	free(escaped);
	return path;
}

const char *member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "-";
}

long long number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/**
 * print_text - a text that anybody may have written: no control sequence is in what is printed
 * @text: it
 * @before: what each further line of it begins with; NULL: it is all one line
 */
void print_text(const char *text, const char *before)
{
	for (; *text; text++) {
		/* U+0080 to U+009f are control characters, too. */
		bool high = *text == '\xc2' && (unsigned char)text[1] < 0xa0;

		if (before && *text == '\n' && !text[1])
			break;
		if (before && *text == '\n')
			printf("\n%s", before);
		else if (before && *text == '\t')
			putchar('\t');
		else
			putchar(high || iscntrl((unsigned char)*text) ? '?' : *text);
		text += high;
	}
}

/** print_value - a member on a line of its own */
void print_value(const char *name, const json_t *value)
{
	printf("%-14s ", name);
	if (json_is_integer(value)) {
		printf("%lld\n", (long long)json_integer_value(value));
	} else if (json_is_boolean(value)) {
		puts(json_is_true(value) ? "yes" : "no");
	} else {
		if (json_is_string(value))
			print_text(json_string_value(value), NULL);
		putchar('\n');
	}
}
