/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of requests and responses on a connection. */
#include "net/httpflow.h"

#include <assert.h>
#include <string.h>

int httpflow_ask(struct httpflow *f, const char *p, size_t n, struct httprequest *ret, size_t *ret_used)
{
    if (f->state == HTTPFLOW_OVER) {
        *ret = (struct httprequest){.wrong = HTTPREQUEST_OVER};
        return -1;
    }
    if (f->state != HTTPFLOW_ASK)
        return 0;
    int r = httprequest_parse(p, n, ret, ret_used);
    if (r < 0)
        f->state = HTTPFLOW_OVER;
    return r;
}

size_t httpflow_forward(struct httpflow *f, const struct httprequest *r, const struct http_text *name, char *ret, size_t cap)
{
    bool is_last = r->head.close || r->head.body != HTTP_BODY_NONE || r->has_websocket;
    assert(f->state == HTTPFLOW_ASK);
    size_t n = httprequest_write(r, name, is_last, ret, cap);
    if (n == 0)
        return 0;
    *f = (struct httpflow){.state = r->head.body == HTTP_BODY_NONE ? HTTPFLOW_WAIT : HTTPFLOW_BODY,
                           .body = r->head.body,
                           .left = r->head.length,
                           .is_last = is_last};
    httpreply_await(&f->reply, http_is(&r->head.method, "head"), r->has_websocket);
    return n;
}

uint64_t httpflow_unseen(const struct httpflow *f)
{
    return f->state == HTTPFLOW_OPEN ? UINT64_MAX : f->state == HTTPFLOW_BODY && f->body == HTTP_BODY_LENGTH ? f->left : 0;
}

void httpflow_passed(struct httpflow *f, uint64_t n)
{
    assert(n <= httpflow_unseen(f));
    if (f->state != HTTPFLOW_BODY)
        return;
    f->left -= n;
    if (f->left == 0)
        f->state = HTTPFLOW_WAIT;
}

/* Data as a chunk of its own; there is room. */
static void put_chunk(struct pieces *p, const char *data, size_t n)
{
    char head[CHUNKS_HEAD_MAX];
    if (n == 0)
        return;
    pieces_give(p, head, chunks_put_head(head, n));
    pieces_give(p, data, n);
    pieces_give(p, "\r\n", 2);
}

static int pass_chunks(struct httpflow *f, struct pieces *p)
{
    while (p->used < p->in_len && p->room - p->made > HTTPFLOW_CHUNK_ROOM) {
        size_t room = p->room - p->made - HTTPFLOW_CHUNK_ROOM, n = p->in_len - p->used, used = 0, data = 0;
        const char *at = NULL;
        int end = chunks_take(&f->chunks, (const char *)p->in + p->used, n < room ? n : room, &used, &at, &data);
        if (end < 0) {
            f->state = HTTPFLOW_OVER;
            return -1;
        }
        p->used += used;
        put_chunk(p, at, data);
        if (end) {
            pieces_give(p, "0\r\n\r\n", 5);
            f->state = HTTPFLOW_WAIT;
            return 1;
        }
    }
    return 0;
}

int httpflow_body(struct httpflow *f, struct pieces *p)
{
    if (f->state != HTTPFLOW_BODY)
        return f->state == HTTPFLOW_OVER ? -1 : 1;
    if (f->body == HTTP_BODY_CHUNKED)
        return pass_chunks(f, p);
    httpflow_passed(f, pieces_pass(p, f->left));
    return f->state == HTTPFLOW_WAIT;
}

/* A response has ended: a body that has not will never be read as one. */
static int turn(struct httpflow *f, int end)
{
    if (end == 1 && f->reply.state == HTTPREPLY_SWITCHED)
        f->state = HTTPFLOW_OPEN;
    else if (end == 1)
        f->state = f->is_last || f->reply.is_last || f->state != HTTPFLOW_WAIT ? HTTPFLOW_OVER : HTTPFLOW_ASK;
    else if (end < 0)
        f->state = HTTPFLOW_OVER;
    return end;
}

int httpflow_answer(struct httpflow *f, const char *p, size_t n, size_t *ret_pass)
{
    if (f->state == HTTPFLOW_OPEN) {
        *ret_pass = n;
        return 0;
    }
    return turn(f, httpreply_take(&f->reply, p, n, ret_pass));
}

int httpflow_answered(struct httpflow *f, uint64_t n)
{
    return f->state == HTTPFLOW_OPEN ? 0 : turn(f, httpreply_passed(&f->reply, n));
}

bool httpflow_is_over(const struct httpflow *f)
{
    return f->state == HTTPFLOW_OVER;
}
