/* SPDX-License-Identifier: Apache-2.0 */
/* A session: one command in a box with this process's standard streams, or with buffers of the caller's. */
#pragma once

#include "box/reach.h"
#include "wire/message.h"

struct session {
    struct reach *reach;
    struct msg_exec *request; /* NULL: attach is there */
    struct msg_attach attach; /* … to a command that runs or ran already */
    bool forward_input;       /* our standard input goes to the command */
    bool in_pieces;           /* … in pieces (wire/fileline.h), the last of which says so; an input that cannot be read has none */
    bool lasts;               /* the command goes on without us */
    uint64_t skip;            /* bytes of output before those that were asked for */
    bool terminal;            /* raw mode, resize, signals by keyboard */
    /* Where output goes: NULL means our own streams. */
    struct buf *out, *err;
    int (*sink)(void *to, const void *p, size_t n, struct pale_err *e); /* if set, standard output is handed to this */
    void *sink_to;
    int out_fd;          /* if >= 0 and out is NULL, standard output goes here */
    int in_fd;           /* where input comes from */
    bool shows_progress; /* on our standard error, a terminal: the bytes moved, if it takes long */
    uint64_t moved_bytes;
    int64_t began_ms, shown_ms;
    bool heard;        /* something has come from the keeper */
    bool fed;          /* some of our input has gone */
    bool turned_away;  /* the keeper said first of all that it was ending: nothing was done */
    char message[512]; /* filled from the result */
};

void session_init(struct session *s, struct reach *r, struct msg_exec *m);

/* Sends the request and carries bytes until the result comes. */
int session_run(struct session *s, struct msg_result *ret, struct pale_err *e) MUST_CHECK;

/* Only sends the request. */
int session_ask(struct session *s, struct pale_err *e) MUST_CHECK;

/* What TELL_OFFSET says where output from a byte on was asked for: so many bytes come before it. */
uint64_t session_skip(const struct frame *f, uint64_t wanted);

/* The rest of a piece of output, once what comes before the wanted byte is left out. */
struct frame session_rest(const struct frame *f, uint64_t *skip);

/* A gap in a command's output, which TELL_MISSED tells of: a line on our standard error. */
void session_missed(const struct frame *f);
