// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: lines and bodies come in, replies go out.
 *
 * A client's commands are done one after the other. While one waits, for a job or for the
 * store, or while the client does not read its replies, no further one is looked at, and no
 * more than INPUT_MOST bytes are read. Only puts follow each other before they are written, so
 * that all that a client has sent is one transaction. The committer answers in order, and so the
 * replies to puts are in order; any other reply waits for them.
 *
 * A client from elsewhere is a stranger until it has said a token: it has little time for that, and
 * where there are many, or there is no room, the one that has been there for the longest goes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/util.h"
#include "jobs/conn.h"
#include "jobs/job_end.h"

#define INPUT_MOST (32 << 10)
#define OUTPUT_MOST (64 << 10)
/* Bytes of a large body that a fast reader gets before other clients have their turn */
#define FLUSH_MOST (1 << 20)
#define SAFETY_MARGIN SECOND
/* Commands of a client, before others have their turn */
#define COMMANDS_MOST 50
/*
 * Where this many puts, or bytes of them, are being written, a client with a put among them has no
 * further one: a client that sends a single put waits for these alone, however many others send
 * more.
 */
#define PUTS_MOST 1000
#define PUT_BYTES_MOST (256 << 10)
/* What strangers have of time and places. A place of TLS takes some 40 KB. */
#define STRANGER_TIME (10 * SECOND)
#define STRANGERS_MOST 256
/* Bytes of a record of TLS */
#define RECORD_MOST (16 << 10)
/* How long clients have their turns before the loop looks for all else */
#define TURNS (10 * MILLISECOND)

struct conn_counts conn_counts;

static struct event_base *loop;
static struct event *run_event;
static struct conn *runnable;
static struct guest *strangers, *known;
static unsigned int stranger_count;
/* The puts of all clients that are being written: their number, and their bodies' bytes */
static unsigned int puts_now;
static uint64_t bytes_now;
static void (*on_command)(struct conn *conn, const struct command *cmd);
static void (*on_body)(struct conn *conn);
static void (*on_late)(struct conn *conn);

/** conn_go_on - look at a client again, soon */
void conn_go_on(struct conn *conn)
{
	if (conn->queued)
		return;
	conn->queued = true;
	if (!runnable)
		event_active(run_event, EV_TIMEOUT, 0);
	DL_APPEND(runnable, conn);
}

/* Replies */

static void end_command(struct conn *conn)
{
	if (conn->late_at)
		alarm_stop(&conn->timer);
	conn->late_at = 0;
	conn->op = NULL;
	conn->state = WANT_LINE;
	conn_go_on(conn);
}

void conn_reply(struct conn *conn, const char *line)
{
	if (conn->state == DEAD)
		return;
	evbuffer_add_printf(conn->out, "%s\r\n", line);
	end_command(conn);
}

void conn_printf(struct conn *conn, const char *format, ...)
{
	va_list args;

	if (conn->state == DEAD)
		return;
	va_start(args, format);
	evbuffer_add_vprintf(conn->out, format, args);
	va_end(args);
	end_command(conn);
}

/** conn_text - reply with a text; @text is freed */
void conn_text(struct conn *conn, struct evbuffer *text)
{
	if (conn->state != DEAD) {
		conn_printf(conn, "OK %zu\r\n", evbuffer_get_length(text));
		evbuffer_add_buffer(conn->out, text);
		evbuffer_add(conn->out, "\r\n", 2);
	}
	evbuffer_free(text);
}

/** conn_job - reply with a job, whose body is there: job_need_body() */
void conn_job(struct conn *conn, const char *word, struct job *job)
{
	if (conn->state == DEAD)
		return;
	conn_printf(conn, "%s %lld %u\r\n", word, (long long)job->row.id, job->row.size);
	evbuffer_add(conn->out, job->row.body, job->row.size);
	evbuffer_add(conn->out, "\r\n", 2);
}

/** conn_skip - throw bytes away that the client is going to send, then reply */
void conn_skip(struct conn *conn, uint64_t bytes, const char *reply)
{
	conn->skip = bytes;
	conn->skip_reply = reply;
	conn->state = SKIP_BODY;
}

/** conn_deadline_soon - is one of its jobs about to be taken from the client? */
bool conn_deadline_soon(struct conn *conn)
{
	struct job *job = job_soonest(&conn->reserver);

	return job && alarm_now() >= job->deadline - SAFETY_MARGIN;
}

/* Waiting */

/** conn_stop_waiting - a client that may be waiting for a job waits no more */
void conn_stop_waiting(struct conn *conn)
{
	if (conn->state != WAITING)
		return;
	alarm_stop(&conn->timer);
	for (size_t i = 0; i < conn->watch_count; i++)
		tube_unwait(conn->watches[i]);
	conn_counts.waiting--;
	conn->state = WANT_LINE;
}

static void waited(struct twheel *tw, struct twheel_timer *timer,
		   const struct twheel_event *event)
{
	struct conn *conn = container_of(timer, struct conn, timer);

	if (conn->guest && !conn->guest->token) {
		conn_close(conn);
		return;
	}
	if (conn->state == COMMITTING) {
		on_late(conn);
		return;
	}
	conn_stop_waiting(conn);
	conn_reply(conn, conn_deadline_soon(conn) ? "DEADLINE_SOON" : "TIMED_OUT");
}

/** conn_wait_until - when a wait ends: @until, or shortly before a reserved job's time is over */
int64_t conn_wait_until(struct conn *conn, int64_t until)
{
	struct job *job = job_soonest(&conn->reserver);

	return job && job->deadline - SAFETY_MARGIN < until ? job->deadline - SAFETY_MARGIN : until;
}

/**
 * conn_back_wait - how long a job waits that is sent back, in ns; no longer than a delay can be
 * @conn: the client that has said how long after each other
 * @before: jobs that are sent back before it
 */
int64_t conn_back_wait(const struct conn *conn, uint32_t before)
{
	int64_t most = UINT32_MAX * SECOND, every = conn->back_every;

	return every && before > most / every ? most : before * every;
}

/** conn_wait - wait for a job until then, by alarm_now(); INT64_MAX: for ever */
void conn_wait(struct conn *conn, int64_t until)
{
	until = conn_wait_until(conn, until);
	conn->late_at = 0;
	conn->op = NULL;
	alarm_stop(&conn->timer);
	for (size_t i = 0; i < conn->watch_count; i++)
		tube_wait(conn->watches[i]);
	conn_counts.waiting++;
	conn->state = WAITING;
	if (until != INT64_MAX)
		alarm_set(&conn->timer, until);
}

/* Watching */

void conn_watch(struct conn *conn, struct tube *tube)
{
	struct watch *watch = zalloc(sizeof(*watch));

	watch->tube = tube;
	watch->conn = conn;
	tube->users++;
	tube->watching++;
	if (conn->watch_count == conn->watch_room) {
		conn->watch_room = conn->watch_room ? 2 * conn->watch_room : 2;
		conn->watches = must(realloc(conn->watches,
					     conn->watch_room * sizeof(struct watch *)));
	}
	conn->watches[conn->watch_count++] = watch;
}

void conn_ignore(struct conn *conn, size_t at)
{
	struct watch *watch = conn->watches[at];

	conn->watches[at] = conn->watches[--conn->watch_count];
	watch->tube->watching--;
	tube_put(watch->tube);
	free(watch);
}

void conn_set_worker(struct conn *conn)
{
	conn_counts.workers += !conn->worker;
	conn->worker = true;
}

/** conn_want - @size bytes of a body come now, and CR LF; there is room for all */
void conn_want(struct conn *conn, size_t size)
{
	conn->size = size;
	conn->have = 0;
	conn->state = WANT_BODY;
}

/**
 * conn_set_name - what a client is called from now on, in what is kept of its jobs
 *
 * One that has said a token has that one's name before its own, so that it can't be another one.
 */
void conn_set_name(struct conn *conn, const char *name)
{
	const char *token = conn->guest ? conn->guest->token->name : "";

	free(conn->name);
	free(conn->who);
	if (asprintf(&conn->name, "%s%s%s", token, *token && *name ? ": " : "", name) < 0)
		must(NULL);
	conn->who = NULL;
}

/* Of the server's own ends of what is asked by HTTP there is no address. */
static void add_address(char *text, size_t room, int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "", port[6] = "";
	struct ucred peer = { .pid = getpid() };

	if (getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
	    address.ss_family != AF_UNIX &&
	    getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
		snprintf(text, room, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
			 port);
		return;
	}
	size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid != getpid())
		snprintf(text, room, "uid %u, pid %d", peer.uid, peer.pid);
}

/** conn_who - what a client is called, and from where it comes, while it is connected */
const char *conn_who(struct conn *conn)
{
	const char *name = conn->name ? conn->name : "";
	char address[80] = "";

	if (conn->who)
		return conn->who;
	if (conn->state != DEAD)
		add_address(address, sizeof(address), conn->fd);
	if (asprintf(&conn->who, "%s%s%s%s", name, *name && *address ? " (" : "", address,
		     *name && *address ? ")" : "") < 0)
		must(NULL);
	return conn->who;
}

/* The end */

static void give_back(struct conn *conn)
{
	while (conn->reserver.jobs) {
		struct job *job = conn->reserver.jobs;

		job_detach(job);
		job_end_try(job);
	}
}

static void forget_guest(struct guest *guest)
{
	if (guest->token) {
		DL_DELETE(known, guest);
		return;
	}
	DL_DELETE(strangers, guest);
	stranger_count--;
}

/** conn_close - close a connection. It is freed later, and must not be used any more. */
void conn_close(struct conn *conn)
{
	if (conn->state == DEAD)
		return;
	conn_stop_waiting(conn);
	alarm_stop(&conn->timer);
	tube_counts_forget(&conn->counts);
	conn->state = DEAD;
	if (conn->guest)
		forget_guest(conn->guest);
	event_free(conn->read);
	event_free(conn->write);
	event_free(conn->hang);
	tls_free(conn->tls);
	close(conn->fd);
	if (conn->new_job)
		job_free(conn->new_job);
	free(conn->note);
	give_back(conn);
	while (conn->watch_count)
		conn_ignore(conn, conn->watch_count - 1);
	free(conn->watches);
	conn->use->using--;
	tube_put(conn->use);
	evbuffer_free(conn->in);
	evbuffer_free(conn->out);
	conn_counts.now--;
	conn_counts.producers -= conn->producer;
	conn_counts.workers -= conn->worker;
	conn_go_on(conn);
}

/**
 * conn_commit - have a client wait for an operation
 * @conn: the client
 * @op: the operation, which calls conn_op_done() when it is over
 * @late_at: when the client is answered that it took too long, by alarm_now(), unless that is set
 *	already by another operation of the same command; 0: it waits on
 */
void conn_commit(struct conn *conn, struct op *op, int64_t late_at)
{
	conn->state = COMMITTING;
	conn->op = op;
	conn->pending++;
	if (conn->late_at || !late_at)
		return;
	conn->late_at = late_at;
	alarm_set(&conn->timer, late_at);
}

/** conn_put - count a put of @bytes that is being written; further ones may follow it */
void conn_put(struct conn *conn, uint32_t bytes)
{
	conn->state = WANT_LINE;
	conn->pending++;
	conn->puts++;
	puts_now++;
	bytes_now += bytes;
}

/** conn_put_done - reply to a put that was written, or failed; other commands may have followed */
void conn_put_done(struct conn *conn, uint32_t bytes, const char *reply)
{
	conn->puts--;
	puts_now--;
	bytes_now -= bytes;
	if (conn->state != DEAD) {
		evbuffer_add_printf(conn->out, "%s\r\n", reply);
		conn_go_on(conn);
	}
	conn_op_done(conn);
}

/** conn_op_done - an operation of the client has been written, or could not be */
void conn_op_done(struct conn *conn)
{
	conn->pending--;
	if (conn->state == DEAD)
		conn_go_on(conn);
}

/* Input */

/* May a line be looked at, while puts are being written? */
static bool more_puts(struct evbuffer_ptr end)
{
	return end.pos >= 0 && end.pos + 2 <= LINE_MAX_BYTES && puts_now < PUTS_MOST &&
		bytes_now < PUT_BYTES_MOST;
}

static bool take_line(struct conn *conn)
{
	size_t length = evbuffer_get_length(conn->in), size;
	struct evbuffer_ptr end = evbuffer_search_eol(conn->in, NULL, &size,
						      EVBUFFER_EOL_CRLF_STRICT);
	char line[LINE_MAX_BYTES];
	struct command cmd;

	if (conn->puts && !more_puts(end))
		return false;
	if (end.pos >= 0 && end.pos + 2 <= LINE_MAX_BYTES && conn->state == WANT_LINE) {
		evbuffer_copyout(conn->in, line, end.pos);
		protocol_parse(line, end.pos, &cmd);
		if (conn->puts && (cmd.kind != CMD_PUT || cmd.bad || cmd.trailing))
			return false;
		evbuffer_drain(conn->in, end.pos + 2);
		on_command(conn, &cmd);
		return true;
	}
	if (end.pos >= 0) {
		evbuffer_drain(conn->in, end.pos + 2);
		conn_reply(conn, "BAD_FORMAT");
		return true;
	}
	/* The last byte may be a CR */
	if (length >= LINE_MAX_BYTES || (conn->state == SKIP_LINE && length > 1)) {
		evbuffer_drain(conn->in, length - 1);
		conn->state = SKIP_LINE;
	}
	return false;
}

static bool take_body(struct conn *conn)
{
	char *body = conn->note ? conn->note : conn->new_job->row.body;
	size_t size = conn->size + 2;
	int got = evbuffer_remove(conn->in, body + conn->have, size - conn->have);

	if (got > 0)
		conn->have += got;
	if (conn->have < size)
		return false;
	on_body(conn);
	return true;
}

static bool skip_body(struct conn *conn)
{
	size_t length = evbuffer_get_length(conn->in);

	if (length > conn->skip)
		length = conn->skip;
	evbuffer_drain(conn->in, length);
	conn->skip -= length;
	if (conn->skip || conn->puts)
		return false;
	conn_reply(conn, conn->skip_reply);
	return true;
}

/*
 * Takes a command or a body. Gives false when input is missing, or another thing must happen
 * first.
 */
static bool take_input(struct conn *conn)
{
	switch (conn->state) {
	case WANT_LINE:
	case SKIP_LINE:
		return take_line(conn);
	case WANT_BODY:
		return take_body(conn);
	case SKIP_BODY:
		return skip_body(conn);
	case WAITING:
		/* A client that sends no more waits for no job either. */
		if (!conn->eof && !conn->hung)
			return false;
		conn_stop_waiting(conn);
		conn_reply(conn, "TIMED_OUT");
		return true;
	default:
		return false;
	}
}

static ssize_t send_some(struct conn *conn)
{
	size_t length = evbuffer_get_length(conn->out);
	ssize_t sent;

	if (!conn->tls)
		return evbuffer_write(conn->out, conn->fd);
	if (length > RECORD_MOST)
		length = RECORD_MOST;
	sent = tls_write(conn->tls, must(evbuffer_pullup(conn->out, length)), length);
	if (sent > 0)
		evbuffer_drain(conn->out, sent);
	return sent;
}

static bool flush(struct conn *conn)
{
	size_t left = evbuffer_get_length(conn->out), until = left - FLUSH_MOST;

	if (left < FLUSH_MOST)
		until = 0;
	while (left > until) {
		if (send_some(conn) < 0 && errno != EINTR)
			break;
		left = evbuffer_get_length(conn->out);
	}
	if (!left)
		return true;
	if (left > until && errno != EAGAIN)
		return false;
	event_add(conn->write, NULL);
	return true;
}

/*
 * While nothing is read from a client, this event says when it is gone: edge-triggered, as there
 * may be unread input all the time. It is added anew each time, as libevent forgets the edge when
 * another event of the descriptor comes or goes.
 */
static void listen_on(struct conn *conn)
{
	bool full = evbuffer_get_length(conn->in) >= INPUT_MOST;

	if (full || conn->eof)
		event_del(conn->read);
	event_del(conn->hang);
	if (full && !conn->hung)
		event_add(conn->hang, NULL);
	if (!full && !conn->eof)
		event_add(conn->read, NULL);
}

/* Gives false if it is not over, or has failed: then the connection is closed. */
static bool shake_hands(struct conn *conn)
{
	switch (tls_handshake(conn->tls)) {
	case TLS_DONE:
		conn->state = WANT_LINE;
		return true;
	case TLS_WANTS_READ:
		event_add(conn->read, NULL);
		return false;
	case TLS_WANTS_WRITE:
		event_add(conn->write, NULL);
		return false;
	default:
		conn_close(conn);
		return false;
	}
}

static void run(struct conn *conn)
{
	bool more = true;

	if (conn->state == HANDSHAKE && !shake_hands(conn))
		return;
	commit_hold(true);
	for (int i = 0; more && i < COMMANDS_MOST && evbuffer_get_length(conn->out) < OUTPUT_MOST;
	     i++) {
		more = take_input(conn);
		if (conn->state == DEAD)
			break;
	}
	commit_hold(false);
	if (conn->state == DEAD)
		return;
	if (!flush(conn)) {
		conn_close(conn);
		return;
	}
	if (more && evbuffer_get_length(conn->out) < OUTPUT_MOST)
		conn_go_on(conn);
	if (conn->eof && !more && !conn->puts && conn->state != WAITING &&
	    conn->state != COMMITTING)
		conn->state = CLOSING;
	if (conn->state == CLOSING && !evbuffer_get_length(conn->out))
		conn_close(conn);
	else
		listen_on(conn);
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
	/* evbuffer_read() would ask the system first how much there is. */
	static char piece[INPUT_MOST];
	struct conn *conn = arg;
	ssize_t got;

	/* Handshakes take long: they have their turns among clients. */
	if (conn->state == HANDSHAKE) {
		event_del(conn->read);
		conn_go_on(conn);
		return;
	}
	do {
		got = conn->tls ? tls_read(conn->tls, piece, sizeof(piece)) :
			read(fd, piece, sizeof(piece));
		if (got > 0 && evbuffer_add(conn->in, piece, got) < 0)
			must(NULL);
	} while (got > 0 && conn->tls && tls_has_more(conn->tls));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got < 0) {
		conn_close(conn);
		return;
	}
	conn->eof = got == 0;
	run(conn);
}

static void hung(evutil_socket_t fd, short what, void *arg)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLRDHUP };
	struct conn *conn = arg;

	conn->hung = poll(&poll_fd, 1, 0) > 0 && poll_fd.revents;
	if (conn->hung)
		run(conn);
}

static void writable(evutil_socket_t fd, short what, void *arg)
{
	run(arg);
}

static void free_conn(struct conn *conn)
{
	free(conn->name);
	free(conn->who);
	free(conn->guest);
	free(conn);
}

static void run_all(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval next_time;
	int64_t until = alarm_now() + TURNS;

	/* Clients that are added meanwhile come after the others were served. */
	while (runnable) {
		struct conn *conn = runnable;

		DL_DELETE(runnable, conn);
		conn->queued = false;
		if (conn->state != DEAD)
			run(conn);
		else if (!conn->pending)
			free_conn(conn);
		if (runnable && alarm_now() >= until) {
			event_add(run_event, &next_time);
			return;
		}
	}
}

/**
 * conn_start - be ready for connections
 * @base: the loop
 * @command: does a command of a client
 * @body: takes the body of conn->new_job, which is there
 * @late: answers a client whose operation takes too long
 */
void conn_start(struct event_base *base, void (*command)(struct conn *, const struct command *),
		void (*body)(struct conn *), void (*late)(struct conn *))
{
	loop = base;
	on_command = command;
	on_body = body;
	on_late = late;
	run_event = must(event_new(base, -1, 0, run_all, NULL));
}

static struct conn *new_conn(int fd)
{
	struct conn *conn = zalloc(sizeof(*conn));

	conn->fd = fd;
	conn->read = must(event_new(loop, fd, EV_READ | EV_PERSIST, readable, conn));
	conn->write = must(event_new(loop, fd, EV_WRITE, writable, conn));
	conn->hang = must(event_new(loop, fd, EV_READ | EV_ET | EV_PERSIST, hung, conn));
	conn->in = must(evbuffer_new());
	conn->out = must(evbuffer_new());
	alarm_init(&conn->timer, waited);
	conn->use = tube_get("default");
	conn->use->using++;
	conn_watch(conn, conn->use);
	conn_counts.now++;
	conn_counts.total++;
	event_add(conn->read, NULL);
	return conn;
}

/** conn_new - have a client that may do all */
void conn_new(int fd)
{
	new_conn(fd)->state = WANT_LINE;
}

/* Guests */

/** conn_make_room - close the oldest connection that has said no token; false: there is none */
bool conn_make_room(void)
{
	if (!strangers)
		return false;
	conn_close(strangers->conn);
	return true;
}

/** conn_accept - have a client that has connected; one from elsewhere says a token first */
void conn_accept(int fd, bool tls)
{
	struct peer peer = { .here = true };
	struct conn *conn;

	if (tls || access_wanted())
		peer = access_peer(fd);
	if (stranger_count == STRANGERS_MOST)
		conn_make_room();
	conn = new_conn(fd);
	conn->state = tls ? HANDSHAKE : WANT_LINE;
	if (!tls && peer.here)
		return;
	conn->guest = zalloc(sizeof(*conn->guest));
	conn->guest->conn = conn;
	conn->guest->peer = peer;
	DL_APPEND(strangers, conn->guest);
	stranger_count++;
	alarm_set(&conn->timer, alarm_now() + STRANGER_TIME);
	if (!tls)
		return;
	conn->tls = tls_new(fd);
	if (!conn->tls)
		conn_close(conn);
}

static void let_in(struct conn *conn, const struct token *token)
{
	struct guest *guest = conn->guest;

	if (!conn->tls)
		commit_say("a token came without TLS: who is on its way from %s can read it",
			   conn_who(conn));
	forget_guest(guest);
	guest->token = token;
	DL_APPEND(known, guest);
	alarm_stop(&conn->timer);
	conn_set_name(conn, "");
	if (!access_may(token, RIGHT_WORK, conn->use->name))
		conn_ignore(conn, 0);
	conn_reply(conn, "AUTHORIZED");
}

/** conn_auth - a client says a token. Who says a wrong one, or one more, has to go. */
void conn_auth(struct conn *conn, const char *said)
{
	struct guest *guest = conn->guest;
	const struct token *token = NULL;

	if (!guest) {
		conn_reply(conn, "AUTHORIZED");
		return;
	}
	if (!guest->token && !access_waits(&guest->peer)) {
		token = access_try(&guest->peer, said);
		if (!token)
			commit_say("a wrong token came from %s", conn_who(conn));
	}
	if (token) {
		let_in(conn, token);
		return;
	}
	conn_reply(conn, "FORBIDDEN");
	conn->state = CLOSING;
}

/** conn_tokens_changed - whose token has gone, or has other rights now, has to go, too */
void conn_tokens_changed(void)
{
	struct guest *guest, *next;
	const struct token *token;

	DL_FOREACH_SAFE(known, guest, next) {
		token = access_same(guest->token);
		if (token)
			guest->token = token;
		else
			conn_close(guest->conn);
	}
}
