/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP connections: requests in, answers out, one at a time on each.
 *
 * How it works: every byte is a stranger's until net/httphead has read it; where that reader finds fault the connection ends with the
 * status it says. A request becomes a call of an operation (rest/route), whose answer is written as it comes. Everything is bounded: the
 * head, a JSON body, what waits to be sent; a client that does not read stops whoever writes for it, and nobody else. */
#pragma once

#include "base/buf.h"
#include "net/chunks.h"
#include "net/httphead.h"
#include "ops/call.h"
#include "rest/server.h"

#define REST_BODY_MAX (1u << 20)     /* of JSON: an exec request carries a whole argument list */
#define REST_OUT_HIGH (256u << 10)   /* unsent bytes at which whoever writes is asked to wait */
#define REST_OUT_MAX (16u << 20)     /* a whole answer may be longer than that, but not without end */
#define REST_HEAD_WAIT_MS 10000      /* for the rest of a request once it has begun */
#define REST_STALL_MS 30000          /* for a client to take some of its answer */
#define REST_UNSENT_MAX (256u << 20) /* that all clients together have not taken */
#define REST_IDLE_MS 120000          /* between requests */
#define REST_LINGER_MS 2000          /* for a body that nobody wants, after the answer */
#define REST_CALLS_PER_TOKEN 512u

enum conn_state {
    CONN_HEAD,
    CONN_BODY,
    CONN_CALL,
    CONN_SOCKET,
    CONN_WIRE, /* bytes pass unread */
    CONN_LEAVING,
};

struct conn {
    struct server *server;
    struct conn *next, **link;
    struct loop_source source;
    struct loop_timer timer;
    int64_t deadline_ms;
    int64_t sent_ms; /* when the client last took something, while there is something to take */
    bool local;      /* over the unix socket, by our own user */
    enum conn_state state;
    struct buf in, out;
    struct call *call;
    enum http_body body;
    uint64_t body_left;
    struct chunks chunks;
    struct buf json; /* a body that is collected */
    bool wants;      /* the operation takes pieces */
    bool body_done;
    bool begun, chunked, close, ended, busy, dead;
    bool bare;          /* of a HEAD: an answer has no body, though its head tells of one */
    uint64_t promised;  /* bytes of an answer whose length was told, that are still to come */
    bool left;          /* the client has closed its end */
    bool lingers;       /* the client may be sending when it is answered last */
    bool waits_room;    /* a write was told to wait */
    struct buf message; /* of a WebSocket, in several frames */
    bool message_text, message_open;
};

/* Takes the descriptor. False if there is no memory for it. */
bool conn_add(struct server *s, int fd, bool local);
void conn_cut(struct conn *c);

void conn_send(struct conn *c, const void *p, size_t n);
void conn_flush(struct conn *c);

/* Around whatever may cut a connection that somebody up the stack still uses. Leave is told what enter said; the connection may be gone
 * afterwards. */
bool conn_enter(struct conn *c);
void conn_leave(struct conn *c, bool was);

/* Leaves after something was sent. False: whoever writes is to wait until the call's room is called. */
bool conn_leave_sent(struct conn *c, bool was);

/* --- connections that left HTTP behind --- */
/* socket.c: takes what it can of c->in; and the functions of the port. */
int socket_accept(const struct http_head *h, struct buf *ret_headers, struct pale_err *e) MUST_CHECK;
void socket_take(struct conn *c);
/* passing.c: the same for bytes that nobody here reads. */
int passing_accept(const struct http_head *h, struct buf *ret_headers, struct pale_err *e) MUST_CHECK;
void passing_take(struct conn *c);
void passing_left(struct conn *c);
bool socket_message(struct call *call, bool text, const void *p, size_t n);
void socket_hang_up(struct call *call, unsigned status, const char *reason);
