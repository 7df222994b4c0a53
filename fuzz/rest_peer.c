/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a client's view of its connection: every byte it gets is part of a well-formed answer, there are as many as it made requests, and
 * what says that it is JSON is. */
#include <assert.h>
#include <stdio.h>

#include "base/jsonread.h"
#include "base/quote.h"
#include "net/wsframe.h"
#include "rest_rig.h"

/* --- what it sent --- */

/* False if there is nothing more to be understood yet. */
UNSEEN static bool next_request(struct rig_requests *r)
{
    struct http_head h;
    size_t used = 0, n = 0;
    const char *at = NULL, *p = (const char *)r->bytes.data;
    if (r->body == HTTP_BODY_LENGTH) {
        used = r->left < r->bytes.len ? (size_t)r->left : r->bytes.len;
        r->left -= used;
        r->body = r->left ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    } else if (r->body == HTTP_BODY_CHUNKED) {
        int got = r->bytes.len ? chunks_take(&r->chunks, p, r->bytes.len, &used, &at, &n) : 0;
        r->lost = got < 0;
        r->body = got == 1 ? HTTP_BODY_NONE : HTTP_BODY_CHUNKED;
    } else {
        while (r->bytes.len >= 2 && memcmp(r->bytes.data, "\r\n", 2) == 0)
            buf_consume(&r->bytes, 2);
        int got = r->bytes.len ? http_head_parse((const char *)r->bytes.data, r->bytes.len, HTTP_REQUEST, &h, &used) : 0;
        if (got == 0)
            return false;
        uint64_t bit = 1ull << r->heads++ % 64;
        r->bare = got == 1 && http_is(&h.method, "HEAD") ? r->bare | bit : r->bare & ~bit;
        r->lost = got < 0;
        if (got == 1) {
            r->body = h.body;
            r->left = h.length;
            r->chunks = (struct chunks){0};
        }
    }
    if (r->lost)
        return false;
    buf_consume(&r->bytes, used);
    return used > 0;
}

UNSEEN void peer_sent(struct rig_conn *c, const void *p, size_t n)
{
    struct rig_requests *r = &c->requests;
    if (r->lost)
        return;
    buf_add(&r->bytes, p, n);
    while (next_request(r))
        ;
}

/* --- what it got --- */

/* Long ones take most of the time and are all alike. */
#define JSON_MOST 16384u

UNSEEN static void check_json(const uint8_t *p, size_t n)
{
    struct jsonread v;
    if (n > JSON_MOST)
        return;
    assert(jsonread_parse((const char *)p, n, &v) && v.kind == JSONREAD_OBJECT);
}

/* Lines of JSON; or of events, whose data is. */
UNSEEN static void check_lines(const uint8_t *p, size_t n, bool events)
{
    for (const uint8_t *end; n > 0; n -= (size_t)(end + 1 - p), p = end + 1) {
        end = memchr(p, '\n', n);
        assert(end);
        size_t len = (size_t)(end - p);
        if (!events)
            check_json(p, len);
        else if (len > 6 && memcmp(p, "data: ", 6) == 0)
            check_json(p + 6, len - 6);
        else
            assert(len == 0 || p[0] == ':' || memcmp(p, "event: ", 7) == 0 || memcmp(p, "id: ", 4) == 0);
    }
}

UNSEEN static void check_body(const struct rig_answers *a)
{
    const struct buf *b = &a->text;
    if (strcmp(a->type, "application/json") == 0 || strcmp(a->type, "application/problem+json") == 0)
        check_json(b->data, b->len);
    else if (strcmp(a->type, "application/x-ndjson") == 0)
        check_lines(b->data, b->len, false);
    else if (strcmp(a->type, "text/event-stream") == 0)
        check_lines(b->data, b->len, true);
    else
        assert(a->status == 204 || a->status == 202 ? b->len == 0 : a->type[0] != 0);
    /* MCP says what is wrong in its own form. */
    bool is_rpc = b->len && memmem(b->data, b->len, "{\"jsonrpc\":\"2.0\",", 17) == b->data;
    assert(a->status < 400 || strcmp(a->type, is_rpc ? "application/json" : "application/problem+json") == 0);
}

UNSEEN static size_t take_head(struct rig_answers *a, struct rig_requests *r, const struct buf *in)
{
    struct http_head h;
    size_t used = 0;
    int got = http_head_parse((const char *)in->data, in->len, HTTP_RESPONSE, &h, &used);
    assert(got >= 0);
    if (got == 0)
        return 0;
    assert(!memmem(in->data, used, "Unknown\r\n", 9));
    a->status = h.status;
    if (h.status == 100)
        return used;
    a->count++;
    if (h.status == 101) {
        const struct http_text *to = http_find(&h, "upgrade");
        a->state = to && http_is(to, "websocket") ? ANSWER_SOCKET : ANSWER_WIRE;
        r->lost = true; /* what it sends is frames now */
        return used;
    }
    /* The head of an answer to HEAD tells of a body that does not come. */
    bool bare = r->bare >> (a->count - 1) % 64 & 1;
    const struct http_text *type = http_find(&h, "content-type");
    /* The log from a byte on need not begin with a line. */
    type = http_find(&h, "x-next-offset") ? &(struct http_text){"log", 3} : type;
    snprintf(a->type, sizeof(a->type), "%.*s", type ? (int)type->len : 0, type ? type->at : "");
    assert(h.status >= 200 && h.body != HTTP_BODY_CLOSE && !a->closes);
    a->closes = h.close;
    a->body = h.body;
    a->left = h.body == HTTP_BODY_LENGTH ? h.length : 0;
    a->chunks = (struct chunks){0};
    a->state = bare ? ANSWER_HEAD : ANSWER_BODY;
    buf_clear(&a->text);
    return used;
}

UNSEEN static size_t take_body(struct rig_answers *a, const struct buf *in)
{
    size_t used = a->left < in->len ? (size_t)a->left : in->len, n = used;
    const char *at = (const char *)in->data;
    bool over = false;
    if (a->body == HTTP_BODY_CHUNKED) {
        int got = in->len ? chunks_take(&a->chunks, at, in->len, &used, &at, &n) : 0;
        assert(got >= 0);
        over = got == 1;
    } else {
        a->left -= used;
        over = a->left == 0;
    }
    if (n > 0)
        buf_add(&a->text, at, n);
    assert(!a->text.failed);
    if (over) {
        check_body(a);
        a->state = ANSWER_HEAD;
    }
    return used;
}

UNSEEN static bool is_utf8(const uint8_t *p, size_t n)
{
    unsigned point;
    for (size_t i = 0, step; i < n; i += step)
        if ((step = quote_utf8(p + i, n - i, &point)) == 0)
            return false;
    return true;
}

UNSEEN static size_t take_frame(struct rig_answers *a, const struct buf *in)
{
    struct ws_frame f;
    size_t used = 0;
    int got = ws_parse(in->data, in->len, HTTP_RESPONSE, &f, &used);
    assert(got >= 0);
    if (got == 0)
        return 0;
    assert(f.fin && f.op != WS_MORE && f.op != WS_PING);
    if (f.op == WS_TEXT)
        check_json(f.data, f.len);
    if (f.op == WS_CLOSE) {
        assert(f.len >= 2 && is_utf8(f.data + 2, f.len - 2));
        a->state = ANSWER_OVER;
    }
    return used;
}

UNSEEN void peer_got(struct rig_conn *c)
{
    struct rig_answers *a = &c->answers;
    size_t used = 1;
    for (int was = -1; used > 0 || was != (int)a->state;) {
        was = (int)a->state;
        switch (a->state) {
        case ANSWER_HEAD:
            used = c->out.len ? take_head(a, &c->requests, &c->out) : 0;
            break;
        case ANSWER_BODY:
            used = take_body(a, &c->out);
            break;
        case ANSWER_SOCKET:
            used = c->out.len ? take_frame(a, &c->out) : 0;
            break;
        case ANSWER_WIRE:
            used = c->out.len;
            break;
        case ANSWER_OVER:
            assert(c->out.len == 0);
            used = 0;
        }
        buf_consume(&c->out, used);
    }
    assert(c->requests.lost || a->count <= c->requests.heads);
}

/* --- do they fit? --- */

/* Closed by the daemon: of one who reads and has not left nothing whole may be kept back. */
UNSEEN void peer_closed(struct rig_conn *c)
{
    const struct rig_answers *a = &c->answers;
    bool whole = strcmp(a->type, "application/json") == 0 || strcmp(a->type, "application/problem+json") == 0;
    if (c->gone || a->slow)
        return;
    assert(a->state != ANSWER_HEAD || c->out.len == 0);
    assert(a->state != ANSWER_BODY || !whole);
}

UNSEEN void peer_check(const struct rig_conn *c, const struct conn *d)
{
    const struct rig_answers *a = &c->answers;
    if (c->room != SIZE_MAX)
        return;
    assert(!a->closes || d->call || c->finished);
    if (d->state == CONN_HEAD)
        assert(a->state == ANSWER_HEAD && (c->requests.lost || a->count == c->requests.heads));
    else if (d->state == CONN_SOCKET)
        assert(a->state == ANSWER_SOCKET);
    else if (d->state == CONN_WIRE)
        assert(a->state == ANSWER_WIRE);
}
