/* SPDX-License-Identifier: Apache-2.0 */
/* Answers over HTTP. */
#pragma once

#include "rest/conn.h"

/* By which the operation of a call answers; the call's bringer is the connection. */
extern const struct call_port reply_port;

/* The answer to a request that became no call. */
void reply_refuse(struct conn *c, unsigned status, const struct pale_err *e, const char *headers);

/* The answer is complete: the next request, unless there is a body still that nobody reads. */
void reply_done(struct conn *c);
