/* SPDX-License-Identifier: Apache-2.0 */
/* Owns WebSockets: the handshake, messages in and out. Frames are read by net/wsframe.
 *
 * A message in several frames is put together up to a bound. Pings are answered; a close is answered and ends the call. */
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "net/wsframe.h"
#include "rest/reply.h"

int socket_accept(const struct http_head *h, struct buf *ret_headers, struct pale_err *e)
{
    const struct http_text *up = http_find(h, "upgrade"), *version = http_find(h, "sec-websocket-version"),
                           *key = http_find(h, "sec-websocket-key");
    char accept[WS_ACCEPT_BYTES];
    if (!h->upgrade || !up || !http_is(up, "websocket") || !version || !http_is(version, "13") || !key || !ws_accept(key, accept))
        return err_set(e, PALE_BAD_INPUT, "this path speaks WebSocket, version 13");
    buf_addf(ret_headers, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n", accept);
    return 0;
}

static void send_frame(struct conn *c, enum ws_op op, const void *p, size_t n)
{
    uint8_t head[WS_HEAD_MAX];
    size_t used = ws_put_head(head, op, true, n, NULL);
    conn_send(c, head, used);
    if (!c->dead && n > 0)
        conn_send(c, p, n);
}

bool socket_message(struct call *call, bool text, const void *p, size_t n)
{
    struct conn *c = call->bringer;
    bool was = conn_enter(c);
    send_frame(c, text ? WS_TEXT : WS_BINARY, p, n);
    return conn_leave_sent(c, was);
}

static void say_close(struct conn *c, unsigned status, const char *reason)
{
    uint8_t body[WS_CONTROL_MAX];
    size_t n = 0, most = strnlen(reason, sizeof(body) - 2);
    unsigned point;
    /* It may be foreign text, and cut: a reason is whole characters. */
    for (size_t step = 1; step > 0; n += step)
        step = quote_utf8((const unsigned char *)reason + n, most - n, &point);
    body[0] = (uint8_t)(status >> 8);
    body[1] = (uint8_t)status;
    memcpy(body + 2, reason, n);
    send_frame(c, WS_CLOSE, body, n + 2);
}

void socket_hang_up(struct call *call, unsigned status, const char *reason)
{
    struct conn *c = call->bringer;
    bool was = conn_enter(c);
    say_close(c, status, reason);
    if (!c->dead) {
        c->close = true;
        c->body_done = false; /* it may be sending still, and is to read this first */
        reply_done(c);
    }
    conn_leave(c, was);
}

static void fail(struct conn *c, unsigned status, const char *reason)
{
    say_close(c, status, reason);
    if (!c->dead)
        conn_flush(c);
    if (!c->dead)
        conn_cut(c);
}

static void give(struct conn *c, bool text, const uint8_t *p, size_t n)
{
    struct call *call = c->call;
    if (!call || !call->heard)
        return;
    call_hold(call);
    call->heard(call, text, p, n);
    call_drop(call);
}

static void take_data(struct conn *c, const struct ws_frame *f, uint8_t *data)
{
    bool begins = f->op != WS_MORE, open = c->message_open;
    if (begins == open)
        return fail(c, WS_PROTOCOL, "a frame out of order");
    if (begins)
        c->message_text = f->op == WS_TEXT;
    if (begins && f->fin)
        return give(c, c->message_text, data, f->len);
    c->message_open = !f->fin;
    buf_add(&c->message, data, f->len);
    if (c->message.failed)
        return fail(c, WS_TOO_BIG, "a message is too long");
    if (f->fin) {
        give(c, c->message_text, c->message.data, c->message.len);
        if (!c->dead)
            buf_clear(&c->message);
    }
}

static void take_frame(struct conn *c, struct ws_frame *f)
{
    uint8_t *data = (uint8_t *)f->data; /* our own buffer */
    ws_unmask(f, data);
    switch (f->op) {
    case WS_PING:
        send_frame(c, WS_PONG, data, f->len);
        break;
    case WS_PONG:
        break;
    case WS_CLOSE:
        fail(c, WS_NORMAL, "");
        break;
    case WS_MORE:
    case WS_TEXT:
    case WS_BINARY:
        take_data(c, f, data);
        break;
    }
}

void socket_take(struct conn *c)
{
    size_t at = 0;
    while (!c->dead && c->wants && c->state == CONN_SOCKET && c->out.len < REST_OUT_MAX / 2) {
        struct ws_frame f;
        size_t used = 0;
        int got = ws_parse(c->in.data + at, c->in.len - at, HTTP_REQUEST, &f, &used);
        if (got < 0)
            return fail(c, (unsigned)-got, "no frame that can be understood");
        if (got == 0)
            break;
        at += used;
        take_frame(c, &f);
    }
    if (!c->dead)
        buf_consume(&c->in, at);
}
