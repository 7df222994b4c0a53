/* SPDX-License-Identifier: Apache-2.0 */
/* Speaking to a daemon, the user's own or one elsewhere: requests over HTTP/1.1 on one connection, blocking, each within a time.
 *
 * What comes back is a stranger's: it is read as strictly as what comes in, and bounded. A token is taken from the environment or
 * from a file, never from the command line, where others could read it, and goes over nothing that others could. */
#pragma once

#include <signal.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonread.h"
#include "box/daemon.h"
#include "net/hosturl.h"
#include "net/httphead.h"

#define REMOTE_ANSWER_MAX (64u << 20)
#define REMOTE_WAIT_MS 90000 /* for one answer, unless PALE_HOST_WAIT says otherwise; a deed of the daemon's takes less than a minute */

struct remote {
    int fd;
    bool is_far, may_start;
    char state[DAEMON_STATE_MAX]; /* of a daemon of our own: whose state folder it must serve */
    struct hosturl url;           /* if it is */
    struct buf in;
    char token[256]; /* "": none */
    uint64_t wait_ms;
    int64_t until_ms;
    /* Where a good answer goes piece by piece, of remote_stream. */
    int (*out)(void *arg, const void *p, size_t n, struct pale_err *e);
    void *out_arg;
    /* How much of a body has been sent; may be NULL. */
    void (*sent)(void *arg, uint64_t bytes);
    void *sent_arg;
    const volatile sig_atomic_t *stop; /* set once somebody interrupts; or NULL */
    /* Headers of the last answer; "" */
    char next_offset[24], audit_head[128];
};

void remote_init(struct remote *r);
void remote_close(struct remote *r);
#define own_remote CLEANUP(remote_close) struct remote

/* Connects to the daemon that host says; NULL: the user's own over its socket, started if need be and start is set. */
int remote_open(struct remote *r, const char *host, bool start, struct pale_err *e) MUST_CHECK;

/* One request and the whole of its answer. json: the body, or NULL. An answer that tells of a failure becomes the error it tells. */
int remote_call(struct remote *r, const char *method, const char *path, const char *json, struct buf *ret, struct pale_err *e) MUST_CHECK;

/* The same of GET for an answer of any length: out is called with its pieces as they come, and other than 0 of it ends everything. Each
 * piece may take as long as a whole answer else. */
int remote_stream(struct remote *r, const char *path, int (*out)(void *arg, const void *p, size_t n, struct pale_err *e), void *arg,
                  struct pale_err *e) MUST_CHECK;

/* The same of a request whose answer tells, as it comes, how far something is: json is its body, or what body_fd gives until its end (-1:
 * json is). A daemon that refuses is not sent the rest. */
struct remote_order {
    const char *method, *path, *json;
    int body_fd;
};
int remote_follow(struct remote *r, const struct remote_order *o, int (*out)(void *arg, const void *p, size_t n, struct pale_err *e),
                  void *arg, struct pale_err *e) MUST_CHECK;

/* The same, read: value points into text. */
int remote_ask(struct remote *r, const char *method, const char *path, const char *json, struct buf *text, struct jsonread *value,
               struct pale_err *e) MUST_CHECK;

/* Leaves HTTP: the connection speaks the protocol of that path from now on. What has come of it already is in r->in. */
int remote_pass(struct remote *r, const char *path, struct pale_err *e) MUST_CHECK;
