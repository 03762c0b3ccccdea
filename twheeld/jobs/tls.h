/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TLS on a client's socket. Nothing here waits.
 */
#ifndef TWHEELD_TLS_H
#define TWHEELD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls;

enum tls_step { TLS_FAILED, TLS_DONE, TLS_WANTS_READ, TLS_WANTS_WRITE };

bool tls_use(const char *certificate, const char *key);
struct tls *tls_new(int fd);
void tls_free(struct tls *tls);
enum tls_step tls_handshake(struct tls *tls);
ssize_t tls_read(struct tls *tls, void *to, size_t room);
bool tls_has_more(struct tls *tls);
ssize_t tls_write(struct tls *tls, const void *bytes, size_t length);

#endif
