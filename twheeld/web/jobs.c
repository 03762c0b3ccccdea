// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs by HTTP: put one or many, peek, kick, delete.
 *
 * A request becomes a client of the server for a moment: by a pair of sockets, it sends the
 * commands of beanstalkd's protocol. So both engines do what they do for any client, and no
 * command is written twice.
 */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "jobs/conn.h"
#include "web/html.h"
#include "web/jobs.h"
#include "web/json.h"

#define PUTS_MOST 1000
/* A put that names neither priority nor time to run has these; seconds */
#define PRI 1024
#define TTR 120

struct reply {
	char *line;		/* without CR LF */
	char *body;		/* that followed the line, and a 0; or NULL */
	size_t length;
};

struct talk {
	struct ask *ask;
	struct bufferevent *bev;
	struct evbuffer *out;	/* commands that are sent first */
	struct reply reply;	/* the part that has come */
	/* Gives false when it has answered the request: then there is no talk any more */
	bool (*take)(struct talk *talk, const struct reply *reply);
	size_t left;		/* of a put: replies that are still to come */
	int64_t tries;		/* of the puts that were said last */
	struct put {		/* what a job has that names nothing else */
		int64_t pri, delay, ttr, unique_for, tries;
		const char *key, *how;
	} put;
	json_t *answer;
	void (*got)(struct ask *ask, const json_t *answer);	/* of a page, or NULL */
};

static void end_talk(struct talk *talk)
{
	if (talk->bev)
		bufferevent_free(talk->bev);
	evbuffer_free(talk->out);
	free(talk->reply.line);
	json_decref(talk->answer);
}

/* The request has gone, and so does its client. Jobs whose command was written stay. */
static void gave_up(struct ask *ask)
{
	end_talk(ask->more);
	http_end(ask);
}

/* answer() and refuse() give false, as the end of take() does. */
static bool answer(struct talk *talk, int code, json_t *json)
{
	void (*got)(struct ask *ask, const json_t *answer) = talk->got;
	struct ask *ask = talk->ask;

	ask->go_on = NULL;
	end_talk(talk);
	if (got) {
		got(ask, json);
		json_decref(json);
	} else {
		http_json(ask, code, json);
	}
	return false;
}

static bool refuse(struct talk *talk, int code, const char *why)
{
	struct ask *ask = talk->ask;

	end_talk(talk);
	http_fail(ask, code, "%s", why);
	return false;
}

/* The sentence and status for a reply that refuses the command */
static const char *sorry(const char *line, int *code)
{
	static const struct {
		const char *line;
		int code;
		const char *why;
	} all[] = {
		{ "DRAINING", HTTP_SERVUNAVAIL, "the server takes no new jobs: it drains" },
		{ "JOB_TOO_BIG", HTTP_ENTITYTOOLARGE, "a body has more bytes than job-size" },
		{ "OUT_OF_MEMORY", HTTP_SERVUNAVAIL, "the store has no room, or can't be written" },
		{ "INTERNAL_ERROR", HTTP_SERVUNAVAIL, "the store can't be read or written" },
		{ "", HTTP_INTERNAL, "the server did not understand itself" },
	};
	size_t i = 0;

	while (*all[i].line && strcmp(line, all[i].line))
		i++;
	*code = all[i].code;
	return all[i].why;
}

static bool refuse_line(struct talk *talk, const char *line)
{
	int code;
	const char *why = sorry(line, &code);

	return refuse(talk, code, why);
}

/* Gives false if there is no whole reply yet. */
static bool read_reply(struct evbuffer *in, struct reply *reply)
{
	long long id, length = 0;
	bool body;

	if (!reply->line)
		reply->line = evbuffer_readln(in, NULL, EVBUFFER_EOL_CRLF_STRICT);
	if (!reply->line)
		return false;
	body = sscanf(reply->line, "OK %lld", &length) == 1 ||
		sscanf(reply->line, "FOUND %lld %lld", &id, &length) == 2;
	if (!body)
		return true;
	if (evbuffer_get_length(in) < (size_t)length + 2)
		return false;
	reply->body = must(malloc(length + 2));
	reply->length = length;
	evbuffer_remove(in, reply->body, length + 2);
	reply->body[length] = 0;
	return true;
}

static void readable(struct bufferevent *bev, void *arg)
{
	struct talk *talk = arg;
	bool more = true;

	while (more && read_reply(bufferevent_get_input(bev), &talk->reply)) {
		struct reply reply = talk->reply;

		talk->reply = (struct reply){ NULL };
		if (strncmp(reply.line, "USING ", 6) && strncmp(reply.line, "TRIES ", 6) &&
		    strcmp(reply.line, "NAMED"))
			more = talk->take(talk, &reply);
		free(reply.line);
		free(reply.body);
	}
}

static void closed(struct bufferevent *bev, short what, void *arg)
{
	refuse(arg, HTTP_SERVUNAVAIL, "the server ends");
}

static struct talk *begin_talk(struct ask *ask)
{
	struct talk *talk = ask->more = zalloc(sizeof(*talk));

	talk->ask = ask;
	talk->out = must(evbuffer_new());
	return talk;
}

/* Send the commands in talk->out, and take the replies one by one. */
static void go(struct talk *talk, bool (*take)(struct talk *talk, const struct reply *reply))
{
	struct evhttp_connection *from = evhttp_request_get_connection(talk->ask->request);
	struct event_base *base = bufferevent_get_base(evhttp_connection_get_bufferevent(from));
	char name[80];
	int ends[2];

	snprintf(name, sizeof(name), "client %s\r\n", http_who(talk->ask));
	evbuffer_prepend(talk->out, name, strlen(name));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0) {
		refuse(talk, HTTP_SERVUNAVAIL, "there is no descriptor left");
		return;
	}
	conn_new(ends[1]);
	talk->bev = must(bufferevent_socket_new(base, ends[0], BEV_OPT_CLOSE_ON_FREE));
	talk->take = take;
	talk->ask->go_on = gave_up;
	bufferevent_setcb(talk->bev, readable, NULL, closed, talk);
	bufferevent_enable(talk->bev, EV_READ | EV_WRITE);
	bufferevent_write_buffer(talk->bev, talk->out);
}

/* The tube, or the job's number, in the path */

static bool is_tube(struct ask *ask)
{
	if (tube_name_ok(ask->name, strlen(ask->name)))
		return true;
	http_fail(ask, HTTP_BADREQUEST, "a tube's name has up to %d letters, digits and"
		  " -+/;.$_(), and no hyphen first", TUBE_NAME_MAX);
	return false;
}

/** jobs_is_one - is the name that of a job? If not, that is answered */
bool jobs_is_one(struct ask *ask)
{
	size_t length = strlen(ask->name);

	if (length < 20 && strspn(ask->name, "0123456789") == length)
		return true;
	http_fail(ask, HTTP_BADREQUEST, "a job is called by its number");
	return false;
}

/* Put */

static bool put_done(struct talk *talk, const struct reply *reply)
{
	json_t *ids = json_object_get(talk->answer, "ids");
	int code = 201, failed;
	long long id;

	if (sscanf(reply->line, "INSERTED %lld", &id) == 1) {
		json_array_append_new(ids, json_integer(id));
	} else {
		json_array_append_new(ids, json_null());
		json_object_set_new(talk->answer, "error",
				    json_string(sorry(reply->line, &failed)));
		json_object_set_new(talk->answer, "code", json_integer(failed));
	}
	if (--talk->left)
		return true;
	if (json_object_get(talk->answer, "code"))
		code = json_integer_value(json_object_get(talk->answer, "code"));
	json_object_del(talk->answer, "code");
	return answer(talk, code, json_incref(talk->answer));
}

/* Gives a sentence that says what is wrong with the key, or NULL. */
static const char *key_wrong(const struct put *put)
{
	size_t length = put->key ? job_key_length(put->key) : 1;

	if (!length || length > KEY_MOST || (put->key && put->key[length]))
		return "a key has 1 to 100 characters of ASCII that can be seen, and no blank";
	if (put->how && job_key_how(put->how, strlen(put->how)) == KEY_HOWS)
		return "how is ignore, replace or debounce";
	if (put->how && !put->key)
		return "how is for a key, which is not there";
	if (put->unique_for && (!put->key || (put->how && strcmp(put->how, "ignore"))))
		return "unique_for is for a key, and for how = ignore";
	return NULL;
}

static const char *say_put(struct talk *talk, const struct put *put, size_t length)
{
	const char *why = key_wrong(put);

	if (why)
		return why;
	if (put->tries != talk->tries)
		evbuffer_add_printf(talk->out, "tries %lld\r\n", (long long)put->tries);
	talk->tries = put->tries;
	if (put->key)
		evbuffer_add_printf(talk->out, "put-unique %s %s %lld ", put->key,
				    put->how ? put->how : "ignore", (long long)put->unique_for);
	else
		evbuffer_add_printf(talk->out, "put ");
	evbuffer_add_printf(talk->out, "%lld %lld %lld %zu\r\n", (long long)put->pri,
			    (long long)put->delay, (long long)put->ttr, length);
	talk->left++;
	return NULL;
}

/* A number; without one, the value stays as it is */
static bool member_number(const json_t *object, const char *name, int64_t most, int64_t *value)
{
	const json_t *number = json_object_get(object, name);

	if (!number)
		return true;
	*value = json_integer_value(number);
	return json_is_integer(number) && *value >= 0 && *value <= most;
}

/* A text without a byte of 0; without one, the value stays as it is */
static bool member_text(const json_t *object, const char *name, const char **value)
{
	const json_t *text = json_object_get(object, name);

	if (text)
		*value = json_string_value(text);
	return !text || (*value && strlen(*value) == json_string_length(text));
}

/* Gives a sentence that says what is wrong with the job, or NULL. */
static const char *say_job(struct talk *talk, const json_t *job)
{
	const json_t *body = json_object_get(job, "body");
	struct put put = talk->put;
	const char *why;

	if (!json_is_string(body))
		return "each job is an object with a text \"body\"";
	if (!member_number(job, "pri", UINT32_MAX, &put.pri) ||
	    !member_number(job, "delay", UINT32_MAX, &put.delay) ||
	    !member_number(job, "ttr", UINT32_MAX, &put.ttr) ||
	    !member_number(job, "unique_for", UINT32_MAX, &put.unique_for))
		return "pri, delay, ttr and unique_for are whole numbers of 32 bits";
	if (!member_number(job, "tries", INT32_MAX, &put.tries))
		return "tries is a whole number up to 2147483647";
	if (!member_text(job, "key", &put.key) || !member_text(job, "how", &put.how))
		return "key and how are texts";
	why = say_put(talk, &put, json_string_length(body));
	if (why)
		return why;
	evbuffer_add(talk->out, json_string_value(body), json_string_length(body));
	evbuffer_add(talk->out, "\r\n", 2);
	return NULL;
}

/* All jobs of an array are put, or none where one of them is wrong. */
static bool say_jobs(struct talk *talk, const json_t *json)
{
	const char *why = json_is_array(json) && json_array_size(json) &&
		json_array_size(json) <= PUTS_MOST ? NULL :
		"the body is an array of 1 to 1000 jobs";
	const json_t *job;
	size_t i;

	json_array_foreach(json, i, job) {
		if (why)
			break;
		why = say_job(talk, job);
	}
	return why ? refuse(talk, HTTP_BADREQUEST, why) : true;
}

/* All bytes of the body are those of one job. */
static bool say_bytes(struct talk *talk, struct evbuffer *in)
{
	const char *why = say_put(talk, &talk->put, evbuffer_get_length(in));

	if (why)
		return refuse(talk, HTTP_BADREQUEST, why);
	evbuffer_add_buffer(talk->out, in);
	evbuffer_add(talk->out, "\r\n", 2);
	return true;
}

static void put(struct ask *ask, const struct put *put)
{
	struct evbuffer *in;
	struct talk *talk;
	json_t *json = NULL;
	bool is_json, right;

	in = http_bytes(ask, &is_json);
	if (is_json) {
		json = http_body(ask);
		if (!json)
			return;
	}
	talk = begin_talk(ask);
	talk->put = *put;
	talk->answer = json_pack("{s:[]}", "ids");
	evbuffer_add_printf(talk->out, "use %s\r\n", ask->name);
	right = json ? say_jobs(talk, json) : say_bytes(talk, in);
	json_decref(json);
	if (right)
		go(talk, put_done);
}

/** jobs_put - put one job, or those of an array of JSON */
void jobs_put(struct ask *ask)
{
	char *key = http_query(ask, "key"), *how = http_query(ask, "how");
	struct put one = { .pri = PRI, .ttr = TTR, .key = key, .how = how };

	if (is_tube(ask) && http_number(ask, "pri", UINT32_MAX, &one.pri) &&
	    http_number(ask, "delay", UINT32_MAX, &one.delay) &&
	    http_number(ask, "ttr", UINT32_MAX, &one.ttr) &&
	    http_number(ask, "unique_for", UINT32_MAX, &one.unique_for) &&
	    http_number(ask, "tries", INT32_MAX, &one.tries))
		put(ask, &one);
	free(key);
	free(how);
}

/* Peek */

/* The lines of stats-job, as members; a number is one. A tube's name may have digits alone. */
static json_t *members(char *text)
{
	json_t *json = must(json_object());
	char *line, *colon;

	while ((line = strsep(&text, "\n"))) {
		colon = strstr(line, ": ");
		if (!colon)
			continue;
		*colon = 0;
		if (!strcmp(line, "file"))
			continue;
		colon += 2;
		if (!strcmp(line, "tube") || colon[strspn(colon, "0123456789")])
			json_object_set_new(json, line, json_of_text(colon));
		else
			json_object_set_new(json, line, json_integer(strtoll(colon, NULL, 10)));
	}
	return json;
}

/* A body that is no UTF-8 has each byte as \u0000 to \u00ff, and "encoding" names that. */
static json_t *bytes(const char *body, size_t length)
{
	char *text = must(malloc(2 * length + 1)), *to = text;
	json_t *json;

	for (size_t i = 0; i < length; i++) {
		unsigned char byte = body[i];

		if (byte >= 0x80)
			*to++ = 0xc0 | byte >> 6;
		*to++ = byte < 0x80 ? byte : 0x80 | (byte & 0x3f);
	}
	json = json_stringn_nocheck(text, to - text);
	free(text);
	return json;
}

/* Of what a page shows, only so much; the end of a text is no part of a character. */
static size_t length_shown(const struct ask *ask, const struct reply *reply)
{
	size_t length = ask->reads ? BODY_MOST : 0;

	if (reply->length <= length)
		return reply->length;
	for (int i = 0; i < 3 && length && (reply->body[length] & 0xc0) == 0x80; i++)
		length--;
	return length;
}

static void keep_body(const struct talk *talk, json_t *json, const struct reply *reply)
{
	size_t length = talk->got ? length_shown(talk->ask, reply) : reply->length;
	json_t *text = json_stringn(reply->body, length);

	json_object_set_new(json, "encoding", json_string(text ? "utf-8" : "latin-1"));
	json_object_set_new(json, "body", text ? text : bytes(reply->body, length));
	if (talk->got)
		json_object_set_new(json, "size", json_integer(reply->length));
}

/* Replies to peek and stats-job: FOUND, then OK; either may be NOT_FOUND */
static bool peeked(struct talk *talk, const struct reply *reply)
{
	json_t *json;
	long long id;

	if (!strcmp(reply->line, "NOT_FOUND"))
		return talk->got ? answer(talk, HTTP_NOTFOUND, NULL) :
			refuse(talk, HTTP_NOTFOUND, "there is no such job");
	if (!reply->body)
		return refuse_line(talk, reply->line);
	if (!talk->answer) {
		talk->answer = must(json_object());
		keep_body(talk, talk->answer, reply);
		if (sscanf(reply->line, "FOUND %lld", &id) != 1)
			return refuse_line(talk, reply->line);
		evbuffer_add_printf(bufferevent_get_output(talk->bev), "stats-job %lld\r\n", id);
		return true;
	}
	json = members(reply->body);
	json_object_update(json, talk->answer);
	return answer(talk, HTTP_OK, json);
}

/** jobs_peek_for - find a job by its number, for a page, or NULL; or else answer what is wrong */
void jobs_peek_for(struct ask *ask, void (*got)(struct ask *ask, const json_t *answer))
{
	struct talk *talk;

	if (!jobs_is_one(ask))
		return;
	talk = begin_talk(ask);
	talk->got = got;
	evbuffer_add_printf(talk->out, "peek %s\r\n", ask->name);
	go(talk, peeked);
}

/** jobs_peek - a job by its number */
void jobs_peek(struct ask *ask)
{
	jobs_peek_for(ask, NULL);
}

static bool peeked_tube(struct talk *talk, const struct reply *reply)
{
	if (!talk->answer && !strcmp(reply->line, "NOT_FOUND"))
		return refuse(talk, HTTP_NOTFOUND, "the tube has no job in that state");
	return peeked(talk, reply);
}

/** jobs_peek_tube - the first job of a tube, in one of its states */
void jobs_peek_tube(struct ask *ask)
{
	char *state = http_query(ask, "state");
	const char *said = state ? state : "ready";
	bool known = !strcmp(said, "ready") || !strcmp(said, "delayed") || !strcmp(said, "buried");
	struct talk *talk;

	if (!known)
		http_fail(ask, HTTP_BADREQUEST, "state is ready, delayed or buried");
	if (known && is_tube(ask)) {
		talk = begin_talk(ask);
		evbuffer_add_printf(talk->out, "use %s\r\npeek-%s\r\n", ask->name, said);
		go(talk, peeked_tube);
	}
	free(state);
}

/* What a page shows of a tube: how many jobs it has, and the first one of each state */
static bool tube_looked(struct talk *talk, const struct reply *reply)
{
	json_t *jobs = json_object_get(talk->answer, "jobs"), *job, *more;
	bool about_tube = !json_object_get(talk->answer, "tube");
	long long id;
	size_t i;

	if (about_tube && !strcmp(reply->line, "NOT_FOUND"))
		return refuse(talk, HTTP_NOTFOUND, "no such tube is there: it has no jobs, and"
			      " nobody uses it");
	if (!reply->body && strcmp(reply->line, "NOT_FOUND"))
		return refuse_line(talk, reply->line);
	if (about_tube) {
		json_object_set_new(talk->answer, "tube", members(reply->body));
	} else if (sscanf(reply->line, "FOUND %lld", &id) == 1) {
		job = json_pack("{s:I}", "id", (json_int_t)id);
		keep_body(talk, job, reply);
		json_array_append_new(jobs, job);
		evbuffer_add_printf(bufferevent_get_output(talk->bev), "stats-job %lld\r\n", id);
		talk->left++;
	} else if (reply->body) {
		more = members(reply->body);
		json_array_foreach(jobs, i, job)
			if (json_equal(json_object_get(job, "id"), json_object_get(more, "id")))
				json_object_update(job, more);
		json_decref(more);
	}
	if (--talk->left)
		return true;
	return answer(talk, HTTP_OK, json_incref(talk->answer));
}

/** jobs_look - find out what a page shows of a tube, or else answer what is wrong */
void jobs_look(struct ask *ask, void (*got)(struct ask *ask, const json_t *answer))
{
	struct talk *talk;

	if (!is_tube(ask))
		return;
	talk = begin_talk(ask);
	talk->got = got;
	talk->left = 4;
	talk->answer = json_pack("{s:[]}", "jobs");
	evbuffer_add_printf(talk->out, "stats-tube %s\r\nuse %s\r\npeek-ready\r\npeek-delayed\r\n"
			    "peek-buried\r\n", ask->name, ask->name);
	go(talk, tube_looked);
}

/* Kick and delete */

static bool done(struct talk *talk, const struct reply *reply)
{
	long long count = 1;

	if (!strcmp(reply->line, "NOT_FOUND"))
		return refuse(talk, HTTP_NOTFOUND, "there is no such job, or it is not in a state"
			      " for that: a worker's own is the worker's, only one that is buried"
			      " or delayed can be kicked, and only a dead letter sent back");
	if (strcmp(reply->line, "DELETED") && strncmp(reply->line, "KICKED", 6))
		return refuse_line(talk, reply->line);
	/* The reply for one job has no number. */
	if (sscanf(reply->line, "KICKED %lld", &count) != 1)
		count = 1;
	return answer(talk, HTTP_OK, json_pack("{s:b, s:I}", "ok", 1, "count",
					       (json_int_t)count));
}

static void do_one(struct ask *ask, const char *command, const char *after)
{
	struct talk *talk;

	if (!jobs_is_one(ask))
		return;
	talk = begin_talk(ask);
	evbuffer_add_printf(talk->out, "%s %s%s\r\n", command, ask->name, after);
	go(talk, done);
}

/** jobs_kick - have a job that is buried or delayed ready */
void jobs_kick(struct ask *ask)
{
	do_one(ask, "kick-job", "");
}

/** jobs_delete - delete a job that no worker has */
void jobs_delete(struct ask *ask)
{
	do_one(ask, "delete", "");
}

/** jobs_delete_key - delete the job that has a key, unless a worker has it */
void jobs_delete_key(struct ask *ask)
{
	char *key = http_query(ask, "key");
	const struct put one = { .key = key ? key : "", .how = "ignore" };
	const char *why = key_wrong(&one);
	struct talk *talk;

	if (why)
		http_fail(ask, HTTP_BADREQUEST, "%s", why);
	if (!why && is_tube(ask)) {
		talk = begin_talk(ask);
		evbuffer_add_printf(talk->out, "use %s\r\ndelete-key %s\r\n", ask->name, key);
		go(talk, done);
	}
	free(key);
}

/** jobs_kick_tube - make up to "jobs" buried jobs ready, or delayed ones if none is buried */
void jobs_kick_tube(struct ask *ask)
{
	struct talk *talk;
	int64_t count = 1;

	if (!is_tube(ask) || !http_number(ask, "count", UINT32_MAX, &count))
		return;
	talk = begin_talk(ask);
	evbuffer_add_printf(talk->out, "use %s\r\nkick %lld\r\n", ask->name, (long long)count);
	go(talk, done);
}

/** jobs_back - send a dead letter back to the tube from which it came, after so many ms */
void jobs_back(struct ask *ask)
{
	char after[32];
	int64_t wait = 0;

	if (!http_number(ask, "delay", UINT32_MAX, &wait))
		return;
	snprintf(after, sizeof(after), " %lld", (long long)wait);
	do_one(ask, "back-job", after);
}

/** jobs_back_tube - send dead letters back, so many at most, with so many ms between them */
void jobs_back_tube(struct ask *ask)
{
	int64_t count = UINT32_MAX, every = 0;
	struct talk *talk;

	if (!is_tube(ask) || !http_number(ask, "count", UINT32_MAX, &count) ||
	    !http_number(ask, "every", UINT32_MAX, &every))
		return;
	talk = begin_talk(ask);
	evbuffer_add_printf(talk->out, "use %s\r\nback %lld %lld\r\n", ask->name,
			    (long long)count, (long long)every);
	go(talk, done);
}
