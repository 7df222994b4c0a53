/* SPDX-License-Identifier: Apache-2.0 */
/* Owns connections that left HTTP behind: the handshake, and bytes that are handed on unread.
 *
 * They come to the call as pieces, while it wants them. That the client has said its last is a piece too. */
#include "net/httphead.h"
#include "rest/conn.h"
#include "wire/message.h"

int passing_accept(const struct http_head *h, struct buf *ret_headers, struct pale_err *e)
{
    const struct http_text *up = http_find(h, "upgrade"), *version = http_find(h, "pale-wire-version");
    if (!h->upgrade || !up || !http_is(up, "pale-wire") || !version)
        return err_set(e, PALE_BAD_INPUT,
                       "this path speaks the keeper's protocol: Upgrade: pale-wire, Pale-Wire-Version: " WIRE_VERSION_TEXT);
    if (!http_is(version, WIRE_VERSION_TEXT))
        return err_set(e, PALE_UNSUPPORTED,
                       "this daemon (pale " PALE_VERSION ") speaks version " WIRE_VERSION_TEXT
                       " of the keeper's protocol; use the same version of pale on both sides");
    buf_add_text(ret_headers, "Upgrade: pale-wire\r\nConnection: Upgrade\r\nPale-Wire-Version: " WIRE_VERSION_TEXT "\r\n");
    return 0;
}

static void give(struct conn *c, const void *p, size_t n, bool last)
{
    struct call *call = c->call;
    if (!call || !call->piece)
        return;
    call_hold(call);
    call->piece(call, p, n, last);
    call_drop(call);
}

void passing_take(struct conn *c)
{
    size_t n = c->in.len;
    if (!c->wants || n == 0)
        return;
    give(c, c->in.data, n, false);
    if (!c->dead)
        buf_consume(&c->in, n < c->in.len ? n : c->in.len);
}

void passing_left(struct conn *c)
{
    passing_take(c);
    if (!c->dead)
        give(c, "", 0, true);
}
