// SPDX-License-Identifier: GPL-2.0
/*
 * TLS on a client's socket, by GnuTLS: 1.2 and 1.3, without renegotiation, tickets, or certificates
 * of clients.
 *
 * GnuTLS reads from the socket what it needs for one record, and no more. So the socket can be read
 * as long as something is there, but for the rest of a record: tls_has_more().
 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "jobs/access.h"
#include "jobs/tls.h"

/* Bytes of a message of a handshake; without client's certificates, they are short. */
#define HANDSHAKE_MOST (16 << 10)

/* The certificate, as long as a session has it */
struct identity {
	gnutls_certificate_credentials_t credentials;
	unsigned int users;
};

struct tls {
	gnutls_session_t session;
	struct identity *identity;
	bool ready;		/* the handshake is over */
	bool unsent;		/* a record that was not sent as a whole */
};

static gnutls_priority_t priority;
static struct identity *now;

static void let_go(struct identity *identity)
{
	if (!identity || --identity->users)
		return;
	gnutls_certificate_free_credentials(identity->credentials);
	free(identity);
}

static const char *refuse_key(const char *key)
{
	struct stat st;

	return stat(key, &st) < 0 ? strerror(errno) : token_refuse_mode(&st);
}

/**
 * tls_use - use a certificate from now on; clients that are there keep theirs
 * @certificate: the file of PEM with the certificate, and those that lead to its issuer
 * @key: that of its key
 *
 * Return: false, having complained: then that from before is in force.
 */
bool tls_use(const char *certificate, const char *key)
{
	struct identity *new = zalloc(sizeof(*new));
	const char *why = refuse_key(key);
	int error;

	new->users = 1;
	if (gnutls_certificate_allocate_credentials(&new->credentials) < 0 ||
	    (!priority && gnutls_priority_init2(&priority, "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
						NULL, GNUTLS_PRIORITY_INIT_DEF_APPEND) < 0))
		must(NULL);
	if (why) {
		complain("%s: %s", key, why);
	} else {
		error = gnutls_certificate_set_x509_key_file(new->credentials, certificate, key,
							     GNUTLS_X509_FMT_PEM);
		if (error < 0)
			why = gnutls_strerror(error);
		if (why)
			complain("%s, with the key %s: %s", certificate, key, why);
	}
	if (why) {
		let_go(new);
		return false;
	}
	let_go(now);
	now = new;
	return true;
}

/** tls_new - be the server on a socket that does not block; NULL: there is no memory */
struct tls *tls_new(int fd)
{
	struct tls *tls = zalloc(sizeof(*tls));

	if (gnutls_init(&tls->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
			GNUTLS_NO_TICKETS) < 0) {
		free(tls);
		return NULL;
	}
	tls->identity = now;
	now->users++;
	gnutls_priority_set(tls->session, priority);
	gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, now->credentials);
	gnutls_handshake_set_max_packet_length(tls->session, HANDSHAKE_MOST);
	/* The server has a time limit of its own. */
	gnutls_handshake_set_timeout(tls->session, 0);
	gnutls_transport_set_int(tls->session, fd);
	return tls;
}

/** tls_free - end it, before the socket is closed; NULL is allowed */
void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	if (tls->ready && !tls->unsent)
		gnutls_bye(tls->session, GNUTLS_SHUT_WR);
	gnutls_deinit(tls->session);
	let_go(tls->identity);
	free(tls);
}

/** tls_handshake - go on with the handshake as far as the socket allows */
enum tls_step tls_handshake(struct tls *tls)
{
	int ret = gnutls_handshake(tls->session);

	tls->ready = ret == GNUTLS_E_SUCCESS;
	if (tls->ready)
		return TLS_DONE;
	if (gnutls_error_is_fatal(ret))
		return TLS_FAILED;
	return gnutls_record_get_direction(tls->session) ? TLS_WANTS_WRITE : TLS_WANTS_READ;
}

/* As read() and write() have it. What would begin a handshake anew is an error. */
static ssize_t result(ssize_t ret)
{
	if (ret >= 0)
		return ret;
	errno = ret == GNUTLS_E_REHANDSHAKE || gnutls_error_is_fatal(ret) ? EPROTO : EAGAIN;
	return -1;
}

/** tls_read - as read() */
ssize_t tls_read(struct tls *tls, void *to, size_t room)
{
	return result(gnutls_record_recv(tls->session, to, room));
}

/** tls_has_more - is there a part of a record that was read from the socket already? */
bool tls_has_more(struct tls *tls)
{
	return gnutls_record_check_pending(tls->session);
}

/**
 * tls_write - as write()
 *
 * After EAGAIN, the next call is with the same bytes, or the same and more.
 */
ssize_t tls_write(struct tls *tls, const void *bytes, size_t length)
{
	ssize_t ret = tls->unsent ? gnutls_record_send(tls->session, NULL, 0) :
		gnutls_record_send(tls->session, bytes, length);

	tls->unsent = ret == GNUTLS_E_AGAIN || ret == GNUTLS_E_INTERRUPTED;
	return result(ret);
}
