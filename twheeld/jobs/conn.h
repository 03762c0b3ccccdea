/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients: their connections, and what each is doing.
 */
#ifndef TWHEELD_CONN_H
#define TWHEELD_CONN_H

#include <event2/buffer.h>
#include <event2/event.h>

#include "jobs/access.h"
#include "jobs/job.h"
#include "jobs/protocol.h"
#include "jobs/tls.h"
#include "jobs/tube.h"
#include "store/tube_counts.h"

enum conn_state {
	HANDSHAKE,	/* of TLS */
	WANT_LINE,	/* a command */
	SKIP_LINE,	/* the rest of a line that is too long */
	WANT_BODY,
	SKIP_BODY,	/* of a put that was refused; then comes the reply */
	WAITING,	/* for a job */
	COMMITTING,	/* until its operation is in the store */
	CLOSING,	/* once all is sent */
	DEAD,
};

/* A client from elsewhere, which has to say a token */
struct guest {
	struct conn *conn;
	struct peer peer;
	const struct token *token;	/* NULL: it has said none yet */
	struct guest *prev, *next;
};

struct conn {
	int fd;
	enum conn_state state;
	bool eof;		/* the client sends no more */
	bool producer, worker;
	bool queued;
	bool hung;		/* and part of its input is not read yet */
	struct tls *tls;	/* or NULL */
	struct guest *guest;	/* NULL: it may do all */
	struct event *read, *write, *hang;
	struct evbuffer *in, *out;
	struct tube *use;
	struct watch **watches;
	size_t watch_count, watch_room;
	uint32_t tries;		/* of the jobs that it puts; 0: as their tube says */
	struct job *new_job;	/* WANT_BODY: of a put; or: */
	char *note;		/* and its end; of the job @note_job */
	uint64_t note_job;
	size_t size, have;	/* WANT_BODY: bytes of the body, and those that are there */
	uint64_t skip;		/* SKIP_BODY: bytes */
	const char *skip_reply;
	struct reserver reserver;
	struct twheel_timer timer;	/* WAITING, COMMITTING */
	int64_t until;		/* of a reserve: when it gives up, by alarm_now() */
	int64_t late_at;	/* COMMITTING: when the client gets an error; 0: never */
	struct op *op;		/* COMMITTING: for that, if it is one */
	unsigned int pending;	/* operations that are being written */
	unsigned int puts;	/* of @pending, puts after which further commands came */
	struct counts_asker counts;	/* COMMITTING: counts that it waits for */
	uint32_t kick_left, kicked;
	bool kick_buried, kick_failed;
	struct cursor kick_from;
	char *name, *who;	/* the name that the client gave; that and its address, or NULL */
	int64_t back_every;	/* ns between two jobs that are sent back */
	struct conn *prev, *next;	/* the list of clients that can go on */
};

struct conn_counts {
	unsigned int now, producers, workers, waiting;
	uint64_t total;
};

extern struct conn_counts conn_counts;

void conn_start(struct event_base *base, void (*command)(struct conn *, const struct command *),
		void (*body)(struct conn *), void (*late)(struct conn *));
void conn_new(int fd);
void conn_accept(int fd, bool tls);
bool conn_make_room(void);
void conn_auth(struct conn *conn, const char *said);
void conn_tokens_changed(void);
void conn_go_on(struct conn *conn);
void conn_commit(struct conn *conn, struct op *op, int64_t late_at);
void conn_put(struct conn *conn, uint32_t bytes);
void conn_put_done(struct conn *conn, uint32_t bytes, const char *reply);
void conn_op_done(struct conn *conn);
int64_t conn_wait_until(struct conn *conn, int64_t until);
int64_t conn_back_wait(const struct conn *conn, uint32_t before);

void conn_reply(struct conn *conn, const char *line);
__attribute__((format(printf, 2, 3)))
void conn_printf(struct conn *conn, const char *format, ...);
void conn_text(struct conn *conn, struct evbuffer *text);
void conn_job(struct conn *conn, const char *word, struct job *job);
void conn_skip(struct conn *conn, uint64_t bytes, const char *reply);
void conn_close(struct conn *conn);

void conn_watch(struct conn *conn, struct tube *tube);
void conn_ignore(struct conn *conn, size_t at);
void conn_wait(struct conn *conn, int64_t until);
void conn_stop_waiting(struct conn *conn);
bool conn_deadline_soon(struct conn *conn);
void conn_set_worker(struct conn *conn);
void conn_want(struct conn *conn, size_t size);
void conn_set_name(struct conn *conn, const char *name);
const char *conn_who(struct conn *conn);

#endif
