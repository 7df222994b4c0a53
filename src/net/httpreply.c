/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the following of responses. */
#include "net/httpreply.h"

#include <assert.h>

#include "base/limits.h"
#include "net/httphead.h"

void httpreply_await(struct httpreply *r, bool to_head, bool may_switch)
{
    *r = (struct httpreply){.state = HTTPREPLY_HEAD, .to_head = to_head, .may_switch = may_switch};
}

static int goes_to_end(struct httpreply *r)
{
    r->state = HTTPREPLY_TO_END;
    r->is_last = true;
    return 0;
}

static int ends(struct httpreply *r)
{
    r->state = HTTPREPLY_NONE;
    return 1;
}

/* The head of a response that counts. */
static int begin_body(struct httpreply *r, const struct http_head *h)
{
    enum http_body body = r->to_head ? HTTP_BODY_NONE : h->body;
    r->is_last = h->close;
    if (body == HTTP_BODY_CLOSE)
        return goes_to_end(r);
    if (body == HTTP_BODY_NONE)
        return ends(r);
    r->state = body == HTTP_BODY_LENGTH ? HTTPREPLY_LENGTH : HTTPREPLY_CHUNKS;
    r->left = h->length;
    return 0;
}

static int take_head(struct httpreply *r, const char *p, size_t n, size_t *ret_pass)
{
    struct http_head h;
    size_t used = 0;
    int got = http_head_parse(p, n, HTTP_PASSED_RESPONSE, &h, &used);
    if (got == 0)
        return 0;
    *ret_pass = used;
    if (got < 0)
        return goes_to_end(r);
    if (h.status >= 200)
        return begin_body(r, &h);
    if (h.status == 101 && r->may_switch && h.upgrade) {
        r->state = HTTPREPLY_SWITCHED;
        return 1;
    }
    return h.status == 101 || ++r->interim > HTTP_INTERIM_MAX ? goes_to_end(r) : 0;
}

static int take_chunks(struct httpreply *r, const char *p, size_t n, size_t *ret_pass)
{
    size_t used = 0, data;
    const char *at;
    int end = chunks_take(&r->chunks, p, n, &used, &at, &data);
    if (end < 0)
        return goes_to_end(r);
    *ret_pass = used;
    return end ? ends(r) : 0;
}

uint64_t httpreply_unseen(const struct httpreply *r)
{
    if (r->state == HTTPREPLY_TO_END || r->state == HTTPREPLY_SWITCHED)
        return UINT64_MAX;
    if (r->state == HTTPREPLY_CHUNKS && r->chunks.state == CHUNKS_DATA)
        return r->chunks.left;
    return r->state == HTTPREPLY_LENGTH ? r->left : 0;
}

int httpreply_passed(struct httpreply *r, uint64_t n)
{
    assert(n <= httpreply_unseen(r));
    if (r->state == HTTPREPLY_CHUNKS) {
        r->chunks.left -= n;
        if (r->chunks.left == 0 && n > 0)
            r->chunks.state = CHUNKS_DATA_CR;
    }
    if (r->state != HTTPREPLY_LENGTH)
        return 0;
    r->left -= n;
    return r->left == 0 ? ends(r) : 0;
}

/* One step: a head, a piece of a body. */
static int step(struct httpreply *r, const char *p, size_t n, size_t *ret_pass)
{
    uint64_t unseen = httpreply_unseen(r);
    if (unseen > 0) {
        *ret_pass = n < unseen ? n : (size_t)unseen;
        return httpreply_passed(r, *ret_pass);
    }
    return r->state == HTTPREPLY_HEAD ? take_head(r, p, n, ret_pass) : take_chunks(r, p, n, ret_pass);
}

int httpreply_take(struct httpreply *r, const char *p, size_t n, size_t *ret_pass)
{
    size_t at = 0;
    *ret_pass = 0;
    if (r->state == HTTPREPLY_NONE)
        return n > 0 ? -1 : 0;
    for (int end = 0; at < n && end == 0;) {
        enum httpreply_state before = r->state;
        size_t pass = 0;
        end = step(r, p + at, n - at, &pass);
        at += pass;
        *ret_pass = at;
        if (end)
            return 1;
        if (pass == 0 && r->state == before)
            break;
    }
    return 0;
}
