/* SPDX-License-Identifier: Apache-2.0 */
/* Speaking to a daemon: requests over HTTP/1.1 on one connection, blocking. What comes back is read as strictly as what comes in. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonread.h"
#include "net/httphead.h"

#define REMOTE_ANSWER_MAX (64u << 20)

struct remote {
    int fd;
    struct buf in;
    char host[300];  /* for the Host header */
    char token[256]; /* "": none */
};

void remote_init(struct remote *r);
void remote_close(struct remote *r);
#define own_remote CLEANUP(remote_close) struct remote

/* The user's own daemon over its socket; started if need be and start is set. */
int remote_open_local(struct remote *r, bool start, struct pale_err *e) MUST_CHECK;

/* One request and the whole of its answer. json: the body, or NULL. An answer that tells of a failure becomes the error it tells. */
int remote_call(struct remote *r, const char *method, const char *path, const char *json, struct buf *ret, struct pale_err *e) MUST_CHECK;

/* The same, read: value points into text. */
int remote_ask(struct remote *r, const char *method, const char *path, const char *json, struct buf *text, struct jsonread *value,
               struct pale_err *e) MUST_CHECK;
