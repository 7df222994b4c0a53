/* SPDX-License-Identifier: Apache-2.0 */
/* Owns HTTP connections. */
#include "rest/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/own.h"
#include "net/wsframe.h"
#include "ops/world.h"
#include "rest/access.h"
#include "rest/route.h"
#include "wire/message.h"

#define IN_MAX (WS_HEAD_MAX + WS_PAYLOAD_MAX + 65536u)
#define IN_HIGH 65536u /* bytes read ahead of what is served; a frame of a socket is read whole */
#define READ_STEP 16384u

static void process(struct conn *c);

/* Around whatever may cut a connection that somebody up the stack still uses. */
static bool enter(struct conn *c)
{
    bool was = c->busy;
    c->busy = true;
    return was;
}

static void release(struct conn *c);

void conn_leave(struct conn *c, bool was)
{
    if (was)
        return;
    if (!c->dead)
        process(c);
    c->busy = false;
    if (c->dead)
        release(c);
}

static struct conn *of_source(struct loop_source *s)
{
    return (struct conn *)((char *)s - offsetof(struct conn, source));
}

/* --- ending --- */

static void listen_again(struct server *s)
{
    s->full = false;
    if (s->local.fd >= 0)
        loop_want(s->loop, &s->local, EPOLLIN);
    if (s->tcp.fd >= 0)
        loop_want(s->loop, &s->tcp, EPOLLIN);
}

/* Whoever comes waits in the kernel: until somebody leaves, or for a moment, if what is short is not ours to count. */
static void stop_listening(struct server *s, struct loop_source *source)
{
    s->full = true;
    loop_want(s->loop, source, 0);
    loop_arm(s->loop, &s->again, clock_ms() + REST_AGAIN_MS);
}

static void on_again(struct loop_timer *t)
{
    listen_again((struct server *)((char *)t - offsetof(struct server, again)));
}

static void release(struct conn *c)
{
    buf_done(&c->in);
    buf_done(&c->out);
    buf_done(&c->json);
    buf_done(&c->message);
    free(c);
}

void conn_cut(struct conn *c)
{
    struct server *s = c->server;
    if (c->dead)
        return;
    c->dead = true;
    loop_remove(s->loop, &c->source);
    loop_disarm(s->loop, &c->timer);
    close(c->source.fd);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    s->unsent -= c->out.len;
    s->world->counts.connections = --s->count;
    struct call *call = c->call;
    c->call = NULL;
    if (call) {
        call->bringer = NULL;
        call_leave(call);
    }
    if (s->full)
        listen_again(s);
    if (s->draining && s->count == 0)
        s->loop->stop = true;
    if (!c->busy)
        release(c);
}

/* --- sending --- */

static void set_events(struct conn *c)
{
    bool reads = c->state != CONN_WIRE || c->wants;
    /* A client that sends more while it is served is not read on, but it is noticed if it leaves. */
    if (c->in.len >= (c->state == CONN_SOCKET ? WS_HEAD_MAX + WS_PAYLOAD_MAX : IN_HIGH) || c->left ||
        (c->state != CONN_SOCKET && c->state != CONN_WIRE && c->out.len > REST_OUT_HIGH))
        reads = false;
    reads = reads || c->state == CONN_LEAVING;
    loop_want(c->server->loop, &c->source,
              (c->left ? 0 : EPOLLRDHUP) | (reads ? EPOLLIN : 0) | (c->out.len > 0 || c->waits_room ? EPOLLOUT : 0));
}

/* A client that is still sending when it is answered would have the answer torn from its hands by a reset: what it sends is taken and
 * thrown away for a while. */
static void linger(struct conn *c)
{
    c->state = CONN_LEAVING;
    c->deadline_ms = clock_ms() + REST_LINGER_MS;
    loop_arm(c->server->loop, &c->timer, c->deadline_ms);
    (void)shutdown(c->source.fd, SHUT_WR);
}

void conn_flush(struct conn *c)
{
    while (!c->dead && c->out.len > 0) {
        ssize_t n = send(c->source.fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return conn_cut(c);
        if (n < 0)
            break;
        buf_consume(&c->out, (size_t)n);
        c->server->unsent -= (size_t)n;
        c->sent_ms = clock_ms();
    }
    /* What a long answer needed is given back. */
    if (!c->dead && c->out.len == 0 && c->out.cap > REST_OUT_HIGH) {
        buf_done(&c->out);
        buf_init(&c->out, REST_OUT_MAX);
    }
    if (!c->dead && c->out.len == 0 && c->ended && c->close && c->state != CONN_LEAVING) {
        if ((c->body_done && !c->lingers) || c->left)
            return conn_cut(c);
        linger(c);
    }
    if (!c->dead)
        set_events(c);
}

void conn_send(struct conn *c, const void *p, size_t n)
{
    if (c->dead)
        return;
    if (c->out.len == 0)
        c->sent_ms = clock_ms();
    buf_add(&c->out, p, n);
    if (!c->out.failed)
        c->server->unsent += n;
    /* All that clients have asked for and do not take has a bound, and so has each. */
    if (c->out.failed || c->server->unsent > REST_UNSENT_MAX)
        conn_cut(c);
}

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

/* The answer is complete: the next request, unless there is a body still that nobody reads. */
void conn_answered(struct conn *c)
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

void conn_refuse(struct conn *c, unsigned status, const struct pale_err *e, const char *headers)
{
    if (!c->body_done || status == 401) /* a stranger does not stay */
        c->close = true;
    send_problem(c, status, e, headers);
    if (!c->dead)
        conn_answered(c);
}

/* --- the port of calls --- */

static void port_whole(struct call *call, unsigned status, const char *type, const void *p, size_t n)
{
    struct conn *c = call->bringer;
    bool was = enter(c);
    if (!c->body_done)
        c->close = true;
    send_head(c, type ? status : 204, type, (long long)n, "");
    if (!c->dead && n > 0)
        conn_send(c, p, n);
    if (!c->dead)
        conn_answered(c);
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
    bool was = enter(c);
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
    send_head(c, strstr(headers, "Content-Range:") ? 206 : status, type, c->chunked ? UNKNOWN : SAID, headers);
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
    bool was = enter(c);
    if (c->chunked)
        conn_send(c, head, chunks_put_head(head, n));
    if (!c->dead)
        conn_send(c, p, n);
    if (c->chunked && !c->dead)
        conn_send(c, "\r\n", 2);
    if (!c->dead)
        conn_flush(c);
    bool room = !c->dead && c->out.len < REST_OUT_HIGH;
    c->waits_room = c->waits_room || !room;
    conn_leave(c, was);
    return room;
}

static void port_end(struct call *call, bool whole)
{
    struct conn *c = call->bringer;
    bool was = enter(c);
    if (!whole || (!c->chunked && c->promised > 0))
        c->close = true; /* the missing end tells that there was more to come */
    else if (c->chunked)
        conn_send(c, "0\r\n\r\n", 5);
    if (!c->dead)
        conn_answered(c);
    conn_leave(c, was);
}

static void port_fail(struct call *call, const struct pale_err *e)
{
    struct conn *c = call->bringer;
    if (c->state == CONN_SOCKET)
        return socket_hang_up(call, WS_FAILED, e->text);
    if (c->begun)
        return port_end(call, false);
    bool was = enter(c);
    conn_refuse(c, err_http_status(e->code), e, "");
    conn_leave(c, was);
}

static void port_want(struct call *call, bool on)
{
    struct conn *c = call->bringer;
    if (!c || c->wants == on)
        return;
    bool was = enter(c);
    c->wants = on;
    conn_leave(c, was);
}

const struct call_port conn_port = {
    .whole = port_whole,
    .begin = port_begin,
    .write = port_write,
    .end = port_end,
    .fail = port_fail,
    .want = port_want,
    .message = socket_message,
    .hang_up = socket_hang_up,
};

/* --- requests --- */

static int find_op(struct conn *c, const struct http_head *h, struct call *call)
{
    struct pale_err e;
    unsigned status = 0;
    char allow[128], header[160] = "";
    if (!target_parse(&h->target, &call->target)) {
        err_set(&e, PALE_BAD_INPUT, "the path or query is malformed");
        return conn_refuse(c, 400, &e, ""), -1;
    }
    call->op = route_find(&h->method, &call->target, &status, allow, sizeof(allow));
    if (call->op)
        return 0;
    err_set(&e, status == 405 ? PALE_BAD_INPUT : PALE_NOT_FOUND,
            status == 405 ? "this path takes %s" : "there is no such path; GET /openapi.json lists them%s", status == 405 ? allow : "");
    if (status == 405)
        snprintf(header, sizeof(header), "Allow: %s\r\n", allow);
    return conn_refuse(c, status, &e, header), -1;
}

static int check_body(struct conn *c, const struct http_head *h, const struct op *o)
{
    struct pale_err e;
    c->body = h->body;
    c->body_left = h->length;
    if (!c->body_done && o->input == INPUT_NONE) {
        err_set(&e, PALE_BAD_INPUT, "%s takes no body", o->name);
        return conn_refuse(c, 400, &e, ""), -1;
    }
    if (o->input == INPUT_JSON && h->body == HTTP_BODY_LENGTH && h->length > REST_BODY_MAX) {
        err_set(&e, PALE_LIMIT, "a body is at most %u bytes", REST_BODY_MAX);
        return conn_refuse(c, 413, &e, ""), -1;
    }
    const struct http_text *type = http_find(h, "content-type");
    size_t n = type ? type->len : 0;
    const char *semi = type ? memchr(type->at, ';', n) : NULL;
    struct http_text bare = {type ? type->at : "", semi ? (size_t)(semi - type->at) : n};
    if (!c->body_done && o->input == INPUT_JSON && !http_is(&bare, "application/json")) {
        err_set(&e, PALE_BAD_INPUT, "the body must be application/json");
        return conn_refuse(c, 415, &e, ""), -1;
    }
    return 0;
}

static void copy_header(const struct http_head *h, const char *name, char *ret, size_t cap)
{
    const struct http_text *t = http_find(h, name);
    snprintf(ret, cap, "%.*s", t ? (int)t->len : 0, t ? t->at : "");
}

static int check_share(struct conn *c, const struct caller *who)
{
    struct pale_err e;
    size_t n = 0;
    for (const struct conn *x = c->server->conns; x && who->token[0]; x = x->next)
        n += x->call && strcmp(x->call->who.token, who->token) == 0;
    if (n <= REST_CALLS_PER_TOKEN)
        return 0;
    err_set(&e, PALE_BUSY, "this token has %u requests under way; try again when one has ended", REST_CALLS_PER_TOKEN);
    return conn_refuse(c, 429, &e, ""), -1;
}

static int check_call(struct conn *c, const struct http_head *h, struct call *call)
{
    struct pale_err e;
    unsigned status = 0;
    char accept[256];
    const struct http_text *key = http_find(h, "idempotency-key");
    if (access_check_host(c->server, c->local, h, &e) < 0)
        return conn_refuse(c, 403, &e, ""), -1;
    if (access_caller(c->server, c->local, h, &call->who, &status, &e) < 0)
        return conn_refuse(c, e.code == PALE_DENIED ? status : err_http_status(e.code), &e, ""), -1;
    if (check_share(c, &call->who) < 0 || find_op(c, h, call) < 0)
        return -1;
    if (!access_may(&call->who, call->op)) {
        err_set(&e, PALE_DENIED, "this token has no right to %s", call->op->name);
        return conn_refuse(c, 403, &e, ""), -1;
    }
    if (key && (key->len == 0 || key->len >= sizeof(call->key))) {
        err_set(&e, PALE_BAD_INPUT, "an Idempotency-Key is 1 to %zu bytes", sizeof(call->key) - 1);
        return conn_refuse(c, 400, &e, ""), -1;
    }
    copy_header(h, "idempotency-key", call->key, sizeof(call->key));
    copy_header(h, "accept", accept, sizeof(accept));
    copy_header(h, "range", call->range, sizeof(call->range));
    copy_header(h, "last-event-id", call->last_event, sizeof(call->last_event));
    call->wants_events = strstr(accept, "text/event-stream") != NULL;
    call->wants_stream = call->wants_events || strstr(accept, "application/x-ndjson") != NULL;
    if (check_body(c, h, call->op) < 0)
        return -1;
    if (route_query(call, &e) < 0)
        return conn_refuse(c, 400, &e, ""), -1;
    return 0;
}

/* All of the request is here, or all that its operation waits for. */
static void run_call(struct conn *c)
{
    struct pale_err e;
    struct call *call = c->call;
    c->state = CONN_CALL;
    call->bytes_done = c->body_done;
    if (route_body(call, (const char *)c->json.data, c->json.len, &e) < 0)
        return conn_refuse(c, 400, &e, "");
    call_hold(call); /* the operation may look at it after it has answered */
    call->op->run(call);
    call_drop(call);
}

/* An operation whose answer is another protocol hears that the client speaks it before it runs. */
static int upgrade(struct conn *c, const struct http_head *h)
{
    struct pale_err e;
    own_buf headers = {0};
    buf_init(&headers, 1024);
    switch (c->call->op->output) {
    case OUTPUT_SOCKET:
        if (socket_accept(h, &headers, &e) < 0)
            return conn_refuse(c, 426, &e, "Upgrade: websocket\r\n"), -1;
        break;
    case OUTPUT_WIRE:
        if (passing_accept(h, &headers, &e) < 0)
            return conn_refuse(c, 426, &e, "Upgrade: pale-wire\r\nPale-Wire-Version: " WIRE_VERSION_TEXT "\r\n"), -1;
        break;
    default:
        return 0;
    }
    snprintf(c->call->accept, sizeof(c->call->accept), "%s", buf_text(&headers));
    return 0;
}

static void begin_request(struct conn *c, const struct http_head *h)
{
    struct pale_err e;
    c->begun = c->chunked = c->ended = c->wants = c->waits_room = false;
    c->close = h->close;
    c->bare = http_is(&h->method, "HEAD");
    c->body_done = h->body == HTTP_BODY_NONE || (h->body == HTTP_BODY_LENGTH && h->length == 0);
    c->chunks = (struct chunks){0};
    struct call *call = call_new(c->server->world);
    if (!call) {
        err_nomem(&e);
        return conn_refuse(c, 503, &e, "");
    }
    call->port = &conn_port;
    call->bringer = c;
    c->call = call;
    c->state = CONN_CALL; /* while it is looked at */
    if (check_call(c, h, call) < 0 || upgrade(c, h) < 0)
        return;
    if (h->expects && !c->body_done)
        conn_send(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (c->dead)
        return;
    if (call->op->input == INPUT_JSON && !c->body_done) {
        c->state = CONN_BODY;
        c->deadline_ms = clock_ms() + REST_HEAD_WAIT_MS;
        return;
    }
    run_call(c);
}

/* A piece of the body, which may be JSON to collect or bytes for the operation. */
static void give_piece(struct conn *c, const char *p, size_t n)
{
    struct pale_err e;
    struct call *call = c->call;
    if (c->state == CONN_BODY) {
        buf_add(&c->json, p, n);
        if (c->json.failed) {
            err_set(&e, PALE_LIMIT, "a body is at most %u bytes", REST_BODY_MAX);
            return conn_refuse(c, 413, &e, "");
        }
        if (c->body_done)
            run_call(c);
    } else if (call && call->piece && (n > 0 || c->body_done)) {
        call_hold(call);
        call->bytes_done = c->body_done;
        call->piece(call, p, n, c->body_done);
        call_drop(call);
    }
}

/* Takes what there is of the body. False if there is nothing to do before more comes. */
static bool take_body(struct conn *c)
{
    size_t used = c->in.len, n = c->in.len;
    const char *at = (const char *)c->in.data;
    if (c->body_done || (c->in.len == 0 && c->body == HTTP_BODY_LENGTH))
        return false;
    if (c->body == HTTP_BODY_LENGTH) {
        used = n = c->body_left < n ? (size_t)c->body_left : n;
        c->body_left -= n;
        c->body_done = c->body_left == 0;
    } else {
        int got = chunks_take(&c->chunks, at, c->in.len, &used, &at, &n);
        if (got < 0) {
            struct pale_err e;
            err_set(&e, PALE_BAD_INPUT, "the chunked body is malformed");
            conn_refuse(c, 400, &e, "");
            return false;
        }
        c->body_done = got == 1;
        if (used == 0 && got == 0)
            return false;
    }
    /* What the operation does with it may change everything, but not the bytes. */
    own_mem char *piece = n > 0 ? malloc(n) : NULL;
    if (n > 0 && !piece) {
        conn_cut(c);
        return false;
    }
    if (n > 0)
        memcpy(piece, at, n);
    buf_consume(&c->in, used);
    give_piece(c, piece ? piece : "", n);
    return !c->dead;
}

static bool take_head(struct conn *c)
{
    struct http_head h;
    struct pale_err e;
    size_t used = 0;
    /* Empty lines before a request are forgiven by all servers. */
    size_t empty = 0;
    while (c->in.len - empty >= 2 && memcmp(c->in.data + empty, "\r\n", 2) == 0)
        empty += 2;
    if (empty > 0)
        buf_consume(&c->in, empty);
    if (c->in.len == 0 || (c->ended && c->close) || c->out.len > REST_OUT_HIGH)
        return false;
    int got = http_head_parse((const char *)c->in.data, c->in.len, HTTP_REQUEST, &h, &used);
    if (got == 0) {
        if (c->deadline_ms > clock_ms() + REST_HEAD_WAIT_MS)
            c->deadline_ms = clock_ms() + REST_HEAD_WAIT_MS;
        return false;
    }
    c->close = got < 0;
    c->server->world->counts.requests++;
    if (got < 0) {
        c->bare = false; /* what the one before it was says nothing of this one */
        err_set(&e, PALE_BAD_INPUT, "this is no request that can be understood");
        conn_refuse(c, (unsigned)-got, &e, "");
        return false;
    }
    begin_request(c, &h);
    if (!c->dead)
        buf_consume(&c->in, used);
    return !c->dead;
}

/* What can be done now. False if there is nothing before more comes. */
static bool advance(struct conn *c)
{
    switch (c->state) {
    case CONN_HEAD:
        return take_head(c);
    case CONN_BODY:
        return take_body(c);
    case CONN_CALL:
        return c->wants && take_body(c);
    case CONN_SOCKET:
        socket_take(c);
        return false;
    case CONN_WIRE:
        passing_take(c);
        return false;
    case CONN_LEAVING:
        return false;
    }
    return false;
}

static void process(struct conn *c)
{
    bool more = true;
    while (more && !c->dead) {
        while (!c->dead && advance(c))
            ;
        size_t waited = c->out.len;
        if (!c->dead)
            conn_flush(c);
        /* What was put off because too much waited to be sent must not wait for the client to say more. */
        more = waited > REST_OUT_HIGH && c->out.len <= REST_OUT_HIGH;
    }
}

/* --- events --- */

static void client_left(struct conn *c)
{
    c->left = c->close = true;
    if (c->state == CONN_WIRE && c->call)
        return passing_left(c);
    /* Nobody waits for an answer any more, unless it stands there ready to be sent. */
    if (c->call || c->out.len == 0)
        conn_cut(c);
    else
        set_events(c);
}

static void take_bytes(struct conn *c)
{
    if (c->state == CONN_LEAVING)
        buf_clear(&c->in);
    if (!buf_reserve(&c->in, READ_STEP))
        return conn_cut(c);
    ssize_t n = recv(c->source.fd, c->in.data + c->in.len, c->in.cap - c->in.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        return conn_cut(c);
    if (n == 0)
        return client_left(c);
    c->in.len += (size_t)n;
    process(c);
}

static void on_ready(struct loop_source *s, uint32_t events)
{
    struct conn *c = of_source(s);
    c->busy = true;
    /* One that leaves while the keeper takes nothing from it is gone, as it is for a keeper. */
    if (events & (EPOLLERR | EPOLLHUP) || (c->state == CONN_WIRE && !c->wants && !c->left && (events & EPOLLRDHUP)))
        conn_cut(c);
    if (!c->dead && (events & EPOLLOUT) && c->state == CONN_SOCKET)
        process(c); /* it may have waited for room to answer */
    if (!c->dead && (events & EPOLLOUT)) {
        conn_flush(c);
        if (!c->dead && c->waits_room && c->out.len < REST_OUT_HIGH / 2) {
            c->waits_room = false;
            if (c->call && c->call->room)
                c->call->room(c->call);
        }
        if (!c->dead)
            process(c);
    }
    if (!c->dead && (events & EPOLLIN))
        take_bytes(c);
    else if (!c->dead && (events & EPOLLRDHUP))
        client_left(c); /* one that has sent more ahead than we read */
    if (!c->dead)
        conn_flush(c);
    c->busy = false;
    if (c->dead)
        release(c);
}

/* Whoever calls with a token that has expired meanwhile, or takes nothing of what he asked for, is not waited for. */
static bool is_over(const struct conn *c, int64_t now)
{
    struct timespec t;
    if (c->out.len > 0 && now - c->sent_ms > REST_STALL_MS)
        return true;
    clock_gettime(CLOCK_REALTIME, &t);
    return c->call && c->call->who.expires_unix_ms && (int64_t)t.tv_sec * 1000 > c->call->who.expires_unix_ms;
}

static void on_timer(struct loop_timer *t)
{
    struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, timer));
    int64_t now = clock_ms();
    if (is_over(c, now))
        return conn_cut(c);
    bool waits = c->state == CONN_HEAD || c->state == CONN_BODY || c->state == CONN_LEAVING;
    if (!waits)
        c->deadline_ms = now + REST_STALL_MS;
    if (c->deadline_ms > now)
        return loop_arm(c->server->loop, t, c->deadline_ms);
    conn_cut(c);
}

static void add_conn(struct server *s, int fd, bool local)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        close(fd);
        return;
    }
    *c =
        (struct conn){.server = s, .source = {.fd = fd, .ready = on_ready}, .timer = {.fire = on_timer}, .local = local, .body_done = true};
    buf_init(&c->in, IN_MAX);
    buf_init(&c->out, REST_OUT_MAX);
    buf_init(&c->json, REST_BODY_MAX);
    buf_init(&c->message, REST_BODY_MAX);
    if (loop_add(s->loop, &c->source, EPOLLIN, NULL) < 0) {
        close(fd);
        return release(c);
    }
    c->next = s->conns;
    c->link = &s->conns;
    if (c->next)
        c->next->link = &c->next;
    s->conns = c;
    s->world->counts.connections = ++s->count;
    c->deadline_ms = clock_ms() + REST_HEAD_WAIT_MS;
    loop_arm(s->loop, &c->timer, c->deadline_ms);
}

/* Over the unix socket only our own user speaks to us; the folder keeps others out already. */
static bool is_own_user(int fd)
{
    struct ucred who;
    socklen_t n = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid();
}

static void accept_from(struct server *s, struct loop_source *source, bool local)
{
    /* Who needs no token cannot be kept out by those who have none. */
    if (s->count >= s->most - (local ? 0 : s->most / 8))
        return stop_listening(s, source);
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), on = 1;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
        return stop_listening(s, source); /* it would be told of the same one again at once */
    if (fd < 0)
        return;
    if (local && !is_own_user(fd)) {
        close(fd);
        return;
    }
    if (!local) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    add_conn(s, fd, local);
}

static void on_local(struct loop_source *source, uint32_t events)
{
    (void)events;
    accept_from((struct server *)((char *)source - offsetof(struct server, local)), source, true);
}

static void on_tcp(struct loop_source *source, uint32_t events)
{
    (void)events;
    accept_from((struct server *)((char *)source - offsetof(struct server, tcp)), source, false);
}

/* Streams have no end of their own. Commands whose clients are cut off now go on: the next daemon has them. */
static void on_last(struct loop_timer *t)
{
    struct server *s = (struct server *)((char *)t - offsetof(struct server, last));
    s->world->ending = true;
    s->loop->stop = true;
}

/* Each may need a second descriptor, for the keeper of its box. */
static size_t most_conns(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= 2 * REST_CONNS_MAX + REST_FDS_ELSE)
        return REST_CONNS_MAX;
    return files.rlim_cur > REST_FDS_ELSE + 32 ? (size_t)(files.rlim_cur - REST_FDS_ELSE) / 2 : 16;
}

static void cut_token(struct world *w, const char *token, const struct call *but)
{
    for (struct conn *c = w->server->conns, *next; c; c = next) {
        next = c->next;
        if (c->call && c->call != but && strcmp(c->call->who.token, token) == 0)
            conn_cut(c);
    }
}

int server_open(struct server *s, int local_fd, int tcp_fd, struct pale_err *e)
{
    s->world->server = s;
    s->world->cut_token = cut_token;
    s->local = (struct loop_source){.fd = local_fd, .ready = on_local};
    s->tcp = (struct loop_source){.fd = tcp_fd, .ready = on_tcp};
    s->most = most_conns();
    s->again = (struct loop_timer){.fire = on_again};
    s->last = (struct loop_timer){.fire = on_last};
    int r = loop_add(s->loop, &s->local, EPOLLIN, e);
    return r == 0 && tcp_fd >= 0 ? loop_add(s->loop, &s->tcp, EPOLLIN, e) : r;
}

static void close_listener(struct server *s, struct loop_source *source)
{
    if (source->fd >= 0)
        loop_remove(s->loop, source);
    own_close(&source->fd);
}

static bool is_endless(const struct call *call)
{
    return call && (call->op->output == OUTPUT_EVENTS || call->op->output == OUTPUT_SOCKET);
}

void server_drain(struct server *s)
{
    if (s->draining)
        return;
    s->draining = true;
    /* Closed, or whoever comes would wait for us, and the next daemon would not get the port. */
    close_listener(s, &s->local);
    close_listener(s, &s->tcp);
    loop_disarm(s->loop, &s->again);
    loop_arm(s->loop, &s->last, clock_ms() + REST_DRAIN_MS);
    for (struct conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (is_endless(c->call) || (!c->call && c->out.len == 0))
            conn_cut(c);
    }
    if (s->count == 0)
        s->loop->stop = true;
}

void server_close(struct server *s)
{
    while (s->conns)
        conn_cut(s->conns);
}
