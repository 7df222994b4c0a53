/* SPDX-License-Identifier: Apache-2.0 */
/* Who may: from a connection and the head of a request to a caller with rights. */
#pragma once

#include "net/httphead.h"
#include "ops/call.h"

struct server;

/* The caller by his bearer token; without one our own user on the unix socket is the operator. PALE_DENIED with *ret_status 401 if there
 * is no token or none that counts. */
int access_caller(struct server *s, bool local, const struct http_head *h, struct caller *ret, unsigned *ret_status,
                  struct pale_err *e) MUST_CHECK;

/* May he do this at all? Which boxes he sees is the fleet's question. */
bool access_may(const struct caller *who, const struct op *o);
