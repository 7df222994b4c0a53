/* SPDX-License-Identifier: Apache-2.0 */
/* flow-reader: what the parsers of flows make of bytes, for tests that set other implementations beside them. Never installed.
 *
 *     flow-reader KIND    reads cases, each four bytes of length (little-endian) and its bytes; writes a line of JSON for each
 *
 * Kinds are hello, again (a client's second message), server (its first bytes), sniff, reply and http. A reply begins with a byte that says
 * whether it answers a HEAD. With http a case is what a client sends on
 * one connection; the server answers each request with nothing. What it would get is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "net/hello.h"
#include "net/httpflow.h"
#include "net/httprefusal.h"
#include "net/sniff.h"

#define CASE_MAX 1048576u
#define LINE_MAX_BYTES (8u * CASE_MAX)

static void put_hex(struct json *j, const char *key, const void *p, size_t n)
{
    own_buf b;
    buf_init(&b, 2 * CASE_MAX + 1);
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%02x", ((const uint8_t *)p)[i]);
    json_text(j, key, buf_text(&b));
}

static void tell_hello(struct json *j, int verdict, const struct hello *h, size_t used)
{
    json_i64(j, "verdict", verdict);
    json_text(j, "why", hello_say(h->wrong));
    json_u64(j, "used", used);
    put_hex(j, "name", h->name, h->name_len);
    json_u64(j, "versions", h->versions);
    json_bool(j, "ech", h->has_ech);
    json_bool(j, "early_data", h->has_early_data);
    json_bool(j, "shared_key", h->has_shared_key);
    json_begin_list(j, "protocols");
    for (size_t i = 0; i < h->protocols; i++)
        put_hex(j, NULL, h->protocol[i].name, h->protocol[i].len);
    json_end_list(j);
}

static void read_hello(struct json *j, const uint8_t *p, size_t n)
{
    struct hello h;
    size_t used = 0;
    int verdict = hello_parse(p, n, &h, &used);
    tell_hello(j, verdict, &h, used);
}

static void read_again(struct json *j, const uint8_t *p, size_t n)
{
    struct hello h;
    size_t used = 0;
    int verdict = hello_parse_again(p, n, &h, &used);
    tell_hello(j, verdict, &h, used);
}

static void read_server(struct json *j, const uint8_t *p, size_t n)
{
    json_i64(j, "asks_again", hello_asks_again(p, n));
}

static void read_sniff(struct json *j, const uint8_t *p, size_t n)
{
    static const char *const names[] = {"more", "tls", "http", "http2", "ssh", "unknown"};
    json_text(j, "is", names[sniff(p, n)]);
}

static void tell_request(struct json *j, const struct httprequest *r)
{
    json_begin_object(j, NULL);
    json_bytes(j, "method", r->head.method.at, r->head.method.len);
    json_bytes(j, "host", r->host.name.at, r->host.name.len);
    json_bytes(j, "path", r->path.at, r->path.len);
    json_bytes(j, "query", r->query.at, r->query.len);
    json_bool(j, "plain", r->is_plain);
    json_bool(j, "connect", r->form == HTTPREQUEST_CONNECT);
    json_bool(j, "websocket", r->has_websocket);
    json_end_object(j);
}

/* All of the body that is here; false if it is none. */
static bool pass_body(struct httpflow *f, const uint8_t *p, size_t n, size_t *at, struct buf *out)
{
    uint8_t room[4096];
    int end = 0;
    while (f->state == HTTPFLOW_BODY && *at < n && end == 0) {
        struct pieces x = {.in = p + *at, .in_len = n - *at, .out = room, .room = sizeof(room)};
        if ((end = httpflow_body(f, &x)) < 0)
            return false;
        *at += x.used;
        buf_add(out, room, x.made);
    }
    return true;
}

static enum httprequest_wrong follow(struct httpflow *f, const uint8_t *p, size_t n, struct json *j, struct buf *out)
{
    static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
    static struct httprequest r;
    char head[HTTPREQUEST_BYTES_MAX];
    size_t at = 0, used = 0, pass, len;
    int got = 0;
    while (f->state == HTTPFLOW_ASK && at < n && (got = httpflow_ask(f, (const char *)p + at, n - at, &r, &used)) == 1) {
        tell_request(j, &r);
        if ((len = httpflow_forward(f, &r, &r.host.name, head, sizeof(head))) == 0)
            return HTTPREQUEST_GOOD;
        buf_add(out, head, len);
        at += used;
        if (!pass_body(f, p, n, &at, out))
            return HTTPREQUEST_CHUNKS;
        if (f->state == HTTPFLOW_WAIT && httpflow_answer(f, answer, strlen(answer), &pass) < 0)
            abort();
    }
    return got < 0 ? r.wrong : HTTPREQUEST_GOOD;
}

static void read_http(struct json *j, const uint8_t *p, size_t n)
{
    struct httpflow f = {0};
    own_buf out;
    buf_init(&out, 4 * CASE_MAX);
    json_begin_list(j, "requests");
    enum httprequest_wrong wrong = follow(&f, p, n, j, &out);
    json_end_list(j);
    json_u64(j, "status", wrong == HTTPREQUEST_GOOD ? 0 : httprequest_status(wrong));
    json_text(j, "why", httprequest_say(wrong));
    json_bool(j, "whole", f.state != HTTPFLOW_BODY);
    put_hex(j, "out", out.data, out.len);
    if (wrong != HTTPREQUEST_GOOD) {
        char text[HTTPREFUSAL_BYTES_MAX];
        put_hex(j, "refusal", text,
                httprefusal_write(&(struct httprefusal){httprequest_status(wrong), "a request", httprequest_say(wrong), NULL}, text));
    }
}

static void read_reply(struct json *j, const uint8_t *p, size_t n)
{
    struct httpreply r;
    size_t pass = 0;
    httpreply_await(&r, n > 0 && p[0] == 1, false);
    json_i64(j, "end", n > 1 ? httpreply_take(&r, (const char *)p + 1, n - 1, &pass) : 0);
    json_u64(j, "passed", pass);
    json_bool(j, "last", r.is_last);
}

static const struct {
    const char *name;
    void (*read)(struct json *j, const uint8_t *p, size_t n);
} kinds[] = {{"hello", read_hello}, {"again", read_again}, {"server", read_server},
             {"sniff", read_sniff}, {"reply", read_reply}, {"http", read_http}};

static int answer_case(void (*read)(struct json *j, const uint8_t *p, size_t n), const uint8_t *p, size_t n)
{
    struct json j;
    own_buf line;
    buf_init(&line, LINE_MAX_BYTES);
    json_start(&j, &line);
    json_begin_object(&j, NULL);
    read(&j, p, n);
    json_end_object(&j);
    buf_add_text(&line, "\n");
    return !line.failed && fd_write_full(STDOUT_FILENO, line.data, line.len) ? 0 : 1;
}

int main(int argc, char **argv)
{
    void (*read)(struct json * j, const uint8_t *p, size_t n) = NULL;
    uint32_t n;
    for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            read = kinds[i].read;
    if (!read) {
        fprintf(stderr, "usage: flow-reader hello|again|server|sniff|reply|http\n");
        return 2;
    }
    while (fd_read_full(STDIN_FILENO, &n, sizeof(n)) == (ssize_t)sizeof(n)) {
        uint8_t *p = n <= CASE_MAX ? malloc(n ? n : 1) : NULL; /* of its own, so that a sanitizer sees one byte too many */
        if (!p || fd_read_full(STDIN_FILENO, p, n) != (ssize_t)n || answer_case(read, p, n) != 0)
            return 1;
        free(p);
    }
    return 0;
}
