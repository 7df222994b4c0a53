/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of pale-dial: whose word counts, a connection, and the bytes over it. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define DIAL_OWN 3         /* the socket to whoever started us */
#define DIAL_WAIT_MS 30000 /* until the other end is proved; who started us may be less patient */

/* trust.c: a context that trusts the host's store and PALE_CA_FILE, all of it in memory. NULL on failure. */
SSL_CTX *trust_load(struct pale_err *e);

/* trust.c: proves over a connected socket that the other end is name. Afterwards bytes may pass. NULL on failure. */
SSL *trust_prove(SSL_CTX *ctx, int fd, const char *name, int64_t until_ms, struct pale_err *e);

/* call_out.c: a socket, not blocking, connected to one of the name's addresses. */
int call_out(const char *name, const char *port, int64_t until_ms, int *ret_fd, struct pale_err *e) MUST_CHECK;

/* carry.c: copies bytes both ways until one end is gone. */
void carry(SSL *ssl, int net_fd, int mate_fd);
