/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a connection of plain HTTP through a gateway. The first byte chooses: requests with their bodies, written anew; a response,
 * followed; authorities.
 * The verdict on the same bytes is the same in any pieces; what is written anew reads back to the same request, and is written so again;
 * its body is the one that came. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "input.h"
#include "net/authority.h"
#include "net/httpflow.h"

#define BYTES_MAX 16384u
#define ROUNDS_MAX 4096

/* What came of a connection: how many requests, their heads as they were written, their bodies' data, where and how it ended. */
struct seen {
    int requests, verdict;
    enum httprequest_wrong wrong;
    size_t used, heads, data;
    char head[BYTES_MAX], body[BYTES_MAX];
};

UNSEEN static bool is_same(const struct http_text *a, const struct http_text *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->at, b->at, a->len) == 0);
}

UNSEEN static void check_anew(const struct httprequest *r, const char *head, size_t n)
{
    static struct httprequest back;
    static char twice[BYTES_MAX];
    size_t used = 0;
    assert(httprequest_parse(head, n, &back, &used) == 1 && used == n);
    assert(is_same(&r->head.method, &back.head.method) && is_same(&r->path, &back.path) && is_same(&r->query, &back.query));
    assert(is_same(&r->host.name, &back.host.name) && r->form == back.form && r->host.is_six == back.host.is_six);
    assert((r->host.port ? r->host.port : 80) == (back.host.port ? back.host.port : 80));
    assert(r->head.body == back.head.body && r->head.length == back.head.length && r->head.minor == back.head.minor);
    assert(r->is_plain == back.is_plain && r->has_websocket == back.has_websocket && r->has_override == back.has_override);
    assert(!back.head.expects && !http_find(&back.head, "te") && !http_find(&back.head, "proxy-authorization"));
    assert(httprequest_write(&back, &back.host.name, back.head.close, twice, sizeof(twice)) == n && memcmp(twice, head, n) == 0);
}

/* What the server's reader makes of the body that it gets. */
UNSEEN static void collect(struct seen *s, struct chunks *back, enum http_body kind, const uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t used = n - at, data = used;
        const char *d = (const char *)p + at;
        if (kind == HTTP_BODY_CHUNKED)
            assert(chunks_take(back, (const char *)p + at, n - at, &used, &d, &data) >= 0);
        assert(s->data + data <= sizeof(s->body));
        memcpy(s->body + s->data, d, data);
        s->data += data;
        at += used;
    }
}

static int pass_body(struct httpflow *f, struct chunks *back, const uint8_t *p, size_t n, struct seen *s)
{
    uint8_t room[64];
    enum http_body kind = f->body;
    struct pieces x = {.in = p, .in_len = n, .out = room, .room = sizeof(room)};
    int end = httpflow_body(f, &x);
    assert(x.used <= n && x.made <= sizeof(room));
    if (end >= 0)
        collect(s, back, kind, room, x.made);
    if (end == 1 && kind == HTTP_BODY_CHUNKED)
        assert(back->state == CHUNKS_DONE);
    s->used += x.used;
    return end;
}

/* The whole connection in pieces of that size; the server answers each request with nothing. */
static void run(const char *p, size_t n, size_t piece, struct seen *s)
{
    static struct httprequest r;
    static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
    struct httpflow f = {0};
    struct chunks back = {0};
    size_t here = piece < n ? piece : n;
    for (int rounds = 0; rounds < ROUNDS_MAX && s->verdict >= 0 && !httpflow_is_over(&f) && f.state != HTTPFLOW_OPEN; rounds++) {
        size_t used = 0, before = s->used, pass = 0, left = here - s->used;
        if (f.state == HTTPFLOW_ASK && (s->verdict = httpflow_ask(&f, p + s->used, left, &r, &used)) == 1) {
            if (r.form == HTTPREQUEST_CONNECT)
                break;
            size_t len = httpflow_forward(&f, &r, &r.host.name, s->head + s->heads, sizeof(s->head) - s->heads);
            assert(len > 0 && httpflow_ask(&f, p, n, &r, &used) == 0);
            httprequest_parse(p + s->used, left, &r, &used);
            check_anew(&r, s->head + s->heads, len);
            s->heads += len;
            s->used += used;
            s->requests++;
            back = (struct chunks){0};
        } else if (f.state == HTTPFLOW_BODY) {
            s->verdict = pass_body(&f, &back, (const uint8_t *)p + s->used, left, s);
        }
        if (f.state == HTTPFLOW_WAIT)
            assert(httpflow_answer(&f, answer, strlen(answer), &pass) == 1 && pass == strlen(answer));
        if (s->used == before && here == n)
            break;
        here = here + piece < n ? here + piece : n;
    }
    s->wrong = s->verdict < 0 ? r.wrong : HTTPREQUEST_GOOD;
}

static void try_requests(const char *p, size_t n, size_t piece)
{
    static struct seen whole, pieces;
    whole.requests = pieces.requests = whole.verdict = pieces.verdict = 0;
    whole.used = pieces.used = whole.heads = pieces.heads = whole.data = pieces.data = 0;
    run(p, n, n, &whole);
    run(p, n, piece, &pieces);
    assert(whole.requests == pieces.requests && whole.verdict == pieces.verdict && whole.wrong == pieces.wrong);
    assert(whole.heads == pieces.heads && memcmp(whole.head, pieces.head, whole.heads) == 0);
    if (whole.verdict >= 0)
        assert(whole.used == pieces.used && whole.data == pieces.data && memcmp(whole.body, pieces.body, whole.data) == 0);
}

/* Where a response ends, or how far it went. */
static size_t follow(const char *p, size_t n, size_t piece, struct httpreply *r, int *ret_end)
{
    size_t passed = 0, here = 0;
    *ret_end = 0;
    while (*ret_end == 0 && here < n) {
        size_t pass = 0;
        here = here + piece < n ? here + piece : n;
        *ret_end = httpreply_take(r, p + passed, here - passed, &pass);
        assert(*ret_end >= 0 && pass <= here - passed);
        passed += pass;
        uint64_t unseen = httpreply_unseen(r);
        size_t skip = unseen < n - here && passed == here && *ret_end == 0 ? (size_t)unseen / 2 : 0;
        if (skip) {
            assert(httpreply_passed(r, skip) == 0);
            passed += skip;
            here += skip;
        }
    }
    return passed;
}

static void try_response(const char *p, size_t n, size_t piece, unsigned how)
{
    struct httpreply whole, pieces;
    int end[2];
    httpreply_await(&whole, how & 1, how & 2);
    pieces = whole;
    size_t a = follow(p, n, n ? n : 1, &whole, &end[0]), b = follow(p, n, piece, &pieces, &end[1]);
    assert(a == b && end[0] == end[1] && whole.state == pieces.state && whole.is_last == pieces.is_last && whole.left == pieces.left);
    assert(whole.state != HTTPREPLY_SWITCHED || how & 2);
    assert(whole.state != HTTPREPLY_TO_END || a == n);
}

static void try_authority(const char *p, size_t n)
{
    struct authority a;
    if (!authority_parse(&(struct http_text){p, n}, &a))
        return;
    assert(a.name.len > 0 && a.name.len <= AUTHORITY_NAME_MAX && a.name.at >= p && a.name.at + a.name.len <= p + n);
    assert(!memchr(a.name.at, 0, a.name.len) && !memchr(a.name.at, '@', a.name.len) && (a.is_six || !memchr(a.name.at, ':', a.name.len)));
    assert(authority_is_same(&a, &a, 80));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t n = size - 2, piece = data[1] % 64 + 1u;
    char *p = malloc(n ? n : 1);
    assert(p);
    memcpy(p, data + 2, n);
    if (data[0] % 8 < 5)
        try_requests(p, n, piece);
    else if (data[0] % 8 < 7)
        try_response(p, n, piece, data[0] >> 3);
    else
        try_authority(p, n);
    free(p);
    return 0;
}
