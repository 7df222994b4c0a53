/* SPDX-License-Identifier: Apache-2.0 */
/* Owns answers: heads, problems, and the table of functions by which an operation answers over HTTP. */
#include "rest/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "net/wsframe.h"

static const char *reason(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {{101, "Switching Protocols"},
                {200, "OK"},
                {201, "Created"},
                {202, "Accepted"},
                {204, "No Content"},
                {206, "Partial Content"},
                {400, "Bad Request"},
                {401, "Unauthorized"},
                {403, "Forbidden"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {409, "Conflict"},
                {410, "Gone"},
                {411, "Length Required"},
                {413, "Content Too Large"},
                {414, "URI Too Long"},
                {415, "Unsupported Media Type"},
                {421, "Misdirected Request"},
                {416, "Range Not Satisfiable"},
                {417, "Expectation Failed"},
                {426, "Upgrade Required"},
                {429, "Too Many Requests"},
                {431, "Request Header Fields Too Large"},
                {500, "Internal Server Error"},
                {501, "Not Implemented"},
                {502, "Bad Gateway"},
                {503, "Service Unavailable"},
                {504, "Gateway Timeout"},
                {507, "Insufficient Storage"},
                {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Unknown";
}

/* Lengths that are none. */
enum { UNKNOWN = -1, SAID = -2 };

static void send_head(struct conn *c, unsigned status, const char *type, long long length, const char *headers)
{
    char head[1024];
    own_buf b = {0};
    buf_init_lent(&b, 65536, head, sizeof(head));
    buf_addf(&b, "HTTP/1.1 %u %s\r\n", status, reason(status));
    if (type)
        buf_addf(&b, "Content-Type: %s\r\nX-Content-Type-Options: nosniff\r\n", type);
    if (status != 101)
        buf_add_text(&b, "Cache-Control: no-store\r\n");
    if (length >= 0 && status != 204 && status != 101)
        buf_addf(&b, "Content-Length: %lld\r\n", length);
    if (length == UNKNOWN)
        buf_add_text(&b, "Transfer-Encoding: chunked\r\n");
    if (c->close && status != 101)
        buf_add_text(&b, "Connection: close\r\n");
    buf_add_text(&b, headers);
    buf_add_text(&b, "\r\n");
    conn_send(c, b.data, b.len);
}

void reply_done(struct conn *c)
{
    struct call *call = c->call;
    c->call = NULL;
    c->ended = true;
    if (call) {
        call->bringer = NULL;
        if (call->answered)
            call_drop(call);
        else
            call_leave(call); /* refused while its operation is under way, which must let go of what it holds */
    }
    c->close = c->close || !c->body_done || c->server->draining || c->left;
    c->state = CONN_HEAD;
    c->deadline_ms = clock_ms() + REST_IDLE_MS;
    buf_clear(&c->json);
    if (c->json.cap > 65536) {
        buf_done(&c->json);
        buf_init(&c->json, REST_BODY_MAX);
    }
}

static void write_problem(const struct pale_err *e, unsigned status, struct buf *b)
{
    struct json j;
    json_start(&j, b);
    json_begin_object(&j, NULL);
    json_text(&j, "type", "about:blank");
    json_text(&j, "title", reason(status));
    json_u64(&j, "status", status);
    json_text(&j, "code", err_name(e->code));
    json_text(&j, "detail", e->text);
    json_end_object(&j);
    buf_add(b, "\n", 1);
}

static void send_problem(struct conn *c, unsigned status, const struct pale_err *e, const char *headers)
{
    char mem[1536], more[256];
    own_buf b = {0};
    buf_init_lent(&b, 8192, mem, sizeof(mem));
    write_problem(e, status, &b);
    snprintf(more, sizeof(more), "%s%s%s", headers, status == 429 || status == 503 ? "Retry-After: 1\r\n" : "",
             status == 401 ? "WWW-Authenticate: Bearer realm=\"pale\"\r\n" : "");
    send_head(c, status, "application/problem+json", (long long)b.len, more);
    if (!c->dead && !c->bare)
        conn_send(c, b.data, b.len);
}

void reply_refuse(struct conn *c, unsigned status, const struct pale_err *e, const char *headers)
{
    if (c->call)
        call_trace(c->call, status == 401 || status == 403, e);
    if (!c->body_done || status == 401) /* a stranger does not stay */
        c->close = true;
    send_problem(c, status, e, headers);
    if (!c->dead)
        reply_done(c);
}

/* --- the port of calls --- */

static void port_whole(struct call *call, unsigned status, const char *type, const void *p, size_t n)
{
    struct conn *c = call->bringer;
    bool was = conn_enter(c);
    if (!c->body_done)
        c->close = true;
    send_head(c, status, type, (long long)n, "");
    if (!c->dead && n > 0)
        conn_send(c, p, n);
    if (!c->dead)
        reply_done(c);
    conn_leave(c, was);
}

#define LENGTH_HEADER "Content-Length: "

/* Of a header that we wrote. */
static uint64_t read_length(const char *digit)
{
    uint64_t v = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        v = v * 10 + (uint64_t)(*digit - '0');
    return v;
}

static void port_begin(struct call *call, unsigned status, const char *type, const char *headers)
{
    struct conn *c = call->bringer;
    bool was = conn_enter(c);
    c->begun = true;
    if (call->op->output == OUTPUT_SOCKET) {
        c->state = CONN_SOCKET;
        c->wants = true;
        send_head(c, 101, NULL, SAID, call->accept);
        return conn_leave(c, was);
    }
    if (call->op->output == OUTPUT_WIRE) {
        c->state = CONN_WIRE;
        c->wants = c->lingers = c->close = true;
        c->promised = UINT64_MAX;
        send_head(c, 101, NULL, SAID, call->accept);
        return conn_leave(c, was);
    }
    if (!c->body_done && call->op->input != INPUT_BYTES)
        c->close = true;
    /* An operation that knows the length says it among its headers. It may have it from a box: we keep to it whatever comes. */
    const char *length = strstr(headers, LENGTH_HEADER);
    c->chunked = !length;
    c->promised = length ? read_length(length + sizeof(LENGTH_HEADER) - 1) : 0;
    send_head(c, status, type, c->chunked ? UNKNOWN : SAID, headers);
    conn_leave(c, was);
}

static bool port_write(struct call *call, const void *p, size_t n)
{
    struct conn *c = call->bringer;
    char head[CHUNKS_HEAD_MAX];
    if (!c->chunked) { /* more than was promised would be taken for the next answer */
        n = n < c->promised ? n : (size_t)c->promised;
        c->promised -= n;
    }
    if (n == 0)
        return true;
    bool was = conn_enter(c);
    if (c->chunked)
        conn_send(c, head, chunks_put_head(head, n));
    if (!c->dead)
        conn_send(c, p, n);
    if (c->chunked && !c->dead)
        conn_send(c, "\r\n", 2);
    return conn_leave_sent(c, was);
}

static void port_end(struct call *call, bool whole)
{
    struct conn *c = call->bringer;
    bool was = conn_enter(c);
    if (!whole || (!c->chunked && c->promised > 0))
        c->close = true; /* the missing end tells that there was more to come */
    else if (c->chunked)
        conn_send(c, "0\r\n\r\n", 5);
    if (!c->dead)
        reply_done(c);
    conn_leave(c, was);
}

static void port_fail(struct call *call, const struct pale_err *e)
{
    struct conn *c = call->bringer;
    if (c->state == CONN_SOCKET)
        return socket_hang_up(call, WS_FAILED, e->text);
    if (c->begun)
        return port_end(call, false);
    bool was = conn_enter(c);
    reply_refuse(c, call->status ? call->status : err_http_status(e->code), e, call->refusal_more);
    conn_leave(c, was);
}

static void port_want(struct call *call, bool on)
{
    struct conn *c = call->bringer;
    if (!c || c->wants == on)
        return;
    bool was = conn_enter(c);
    c->wants = on;
    conn_leave(c, was);
}

const struct call_port reply_port = {
    .whole = port_whole,
    .begin = port_begin,
    .write = port_write,
    .end = port_end,
    .fail = port_fail,
    .want = port_want,
    .message = socket_message,
    .hang_up = socket_hang_up,
};
