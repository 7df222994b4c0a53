/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of a request from its head to its call: who asks, for what, with which body. */
#include "rest/asking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/weak.h"
#include "ops/world.h"
#include "rest/access.h"
#include "rest/reply.h"
#include "rest/origin.h"
#include "ops/values.h"
#include "rest/route.h"
#include "wire/message.h"

#define ALLOW_MAX 128 /* of the methods of a path */

/* What the path means, before it is known who asks: the status of the refusal, if it means nothing. */
static unsigned find_op(const struct http_head *h, struct call *call, char allow[ALLOW_MAX])
{
    unsigned status = 0;
    if (!target_parse(&h->target, &call->target))
        return 400;
    call->op = route_find(&h->method, &call->target, &status, allow, ALLOW_MAX);
    return call->op ? 0 : status;
}

static int refuse_path(struct conn *c, unsigned status, const char *allow)
{
    struct pale_err e;
    char header[ALLOW_MAX + 16] = "";
    if (status == 400)
        err_set(&e, PALE_BAD_INPUT, "the path or query is malformed");
    else if (status == 404)
        err_set(&e, PALE_NOT_FOUND, "there is no such path; GET /openapi.json lists them");
    else {
        err_set(&e, PALE_BAD_INPUT, "this path takes %s", allow);
        snprintf(header, sizeof(header), "Allow: %s\r\n", allow);
    }
    return reply_refuse(c, status, &e, header), -1;
}

static bool is_collected(const struct op *o)
{
    return o->input == INPUT_JSON || o->input == INPUT_MESSAGE;
}

static int check_body(struct conn *c, const struct http_head *h, const struct op *o)
{
    struct pale_err e;
    c->body = h->body;
    c->body_left = h->length;
    if (!c->body_done && o->input == INPUT_NONE) {
        err_set(&e, PALE_BAD_INPUT, "%s takes no body", o->name);
        return reply_refuse(c, 400, &e, ""), -1;
    }
    if (is_collected(o) && h->body == HTTP_BODY_LENGTH && h->length > REST_BODY_MAX) {
        err_set(&e, PALE_LIMIT, "a body is at most %u bytes", REST_BODY_MAX);
        return reply_refuse(c, 413, &e, ""), -1;
    }
    const struct http_text *type = http_find(h, "content-type");
    size_t n = type ? type->len : 0;
    const char *semi = type ? memchr(type->at, ';', n) : NULL;
    struct http_text bare = {type ? type->at : "", semi ? (size_t)(semi - type->at) : n};
    if (!c->body_done && is_collected(o) && !http_is(&bare, "application/json")) {
        err_set(&e, PALE_BAD_INPUT, "the body must be application/json");
        return reply_refuse(c, 415, &e, ""), -1;
    }
    return 0;
}

static void copy_header(const struct http_head *h, const char *name, char *ret, size_t cap)
{
    const struct http_text *t = http_find(h, name);
    snprintf(ret, cap, "%.*s", t ? (int)t->len : 0, t ? t->at : "");
}

/* Headers that an operation's own protocol has. */
static int take_heads(const struct http_head *h, struct call *call, struct pale_err *e)
{
    static const char *const names[HEAD_COUNT] = {
        [HEAD_MCP_VERSION] = "mcp-protocol-version", [HEAD_MCP_METHOD] = "mcp-method", [HEAD_MCP_NAME] = "mcp-name"};
    for (size_t i = 0; call->op->input == INPUT_MESSAGE && i < HEAD_COUNT; i++) {
        const struct http_text *t = http_find(h, names[i]);
        if (t && t->len > CALL_HEAD_MAX)
            return err_set(e, PALE_BAD_INPUT, "the header %s is at most %u bytes", names[i], CALL_HEAD_MAX);
        if (t && !(call->head[i] = strndup(t->at, t->len)))
            return err_nomem(e);
    }
    return 0;
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
    return reply_refuse(c, 429, &e, ""), -1;
}

/* A client of this host says which state folder it means: what it would ask for is not here if that is another. */
static int check_state(struct conn *c, const struct http_head *h)
{
    struct pale_err e;
    const struct http_text *meant = http_find(h, "pale-state");
    const struct fleet *f = &c->server->world->fleet;
    if (!meant || http_is(meant, f->state) || weak_word("own-places"))
        return 0;
    err_set(&e, PALE_CONFLICT,
            "this daemon (pid %d) serves the state folder %s, and yours is another; set XDG_RUNTIME_DIR to another folder for one of the "
            "two, or "
            "HOME and XDG_STATE_HOME as they were when it was started",
            (int)getpid(), f->state_dir);
    return reply_refuse(c, 421, &e, ""), -1;
}

static int check_call(struct conn *c, const struct http_head *h, struct call *call)
{
    struct pale_err e;
    unsigned status = 0;
    char accept[256], allow[ALLOW_MAX] = "";
    const struct http_text *key = http_find(h, "idempotency-key");
    unsigned lost = find_op(h, call, allow);
    if (origin_check(c->server->port, c->local, h, &e) < 0)
        return reply_refuse(c, 403, &e, ""), -1;
    if (access_caller(c->server, c->local, h, &call->who, &status, &e) < 0)
        return reply_refuse(c, e.code == PALE_DENIED ? status : err_http_status(e.code), &e, ""), -1;
    if (check_share(c, &call->who) < 0 || (c->local && check_state(c, h) < 0))
        return -1;
    if (lost)
        return refuse_path(c, lost, allow);
    if (!access_may(&call->who, call->op)) {
        err_set(&e, PALE_DENIED, "this token has no right to %s", call->op->name);
        return reply_refuse(c, 403, &e, ""), -1;
    }
    if (key && (key->len == 0 || key->len >= sizeof(call->key))) {
        err_set(&e, PALE_BAD_INPUT, "an Idempotency-Key is 1 to %zu bytes", sizeof(call->key) - 1);
        return reply_refuse(c, 400, &e, ""), -1;
    }
    copy_header(h, "idempotency-key", call->key, sizeof(call->key));
    copy_header(h, "accept", accept, sizeof(accept));
    if (!http_find(h, "if-range")) /* whose question would have to be answered before a range counts */
        copy_header(h, "range", call->range, sizeof(call->range));
    copy_header(h, "last-event-id", call->last_event, sizeof(call->last_event));
    call->wants_events = strstr(accept, "text/event-stream") != NULL;
    call->wants_stream = call->wants_events || strstr(accept, "application/x-ndjson") != NULL;
    if (check_body(c, h, call->op) < 0)
        return -1;
    if (values_query(call, &e) < 0 || take_heads(h, call, &e) < 0)
        return reply_refuse(c, err_http_status(e.code), &e, ""), -1;
    return 0;
}

/* All of the request is here, or all that its operation waits for. */
static void run_call(struct conn *c)
{
    struct pale_err e;
    struct call *call = c->call;
    c->state = CONN_CALL;
    call->bytes_done = c->body_done;
    bool reads_itself = call->op->input == INPUT_MESSAGE;
    if (!reads_itself && values_body(call, (const char *)c->json.data, c->json.len, &e) < 0)
        return reply_refuse(c, 400, &e, "");
    call->message = c->json.len ? (const char *)c->json.data : "";
    call->message_len = c->json.len;
    call_hold(call); /* the operation may look at it after it has answered */
    call->op->run(call);
    call->message = NULL;
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
            return reply_refuse(c, 426, &e, "Upgrade: websocket\r\n"), -1;
        break;
    case OUTPUT_WIRE:
        if (passing_accept(h, &headers, &e) < 0)
            return reply_refuse(c, 426, &e, "Upgrade: pale-wire\r\nPale-Wire-Version: " WIRE_VERSION_TEXT "\r\n"), -1;
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
        return reply_refuse(c, 503, &e, "");
    }
    call->port = &reply_port;
    call->bringer = c;
    c->call = call;
    c->state = CONN_CALL; /* while it is looked at */
    if (check_call(c, h, call) < 0 || upgrade(c, h) < 0)
        return;
    if (h->expects && !c->body_done)
        conn_send(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (c->dead)
        return;
    if (is_collected(call->op) && !c->body_done) {
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
            return reply_refuse(c, 413, &e, "");
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

bool asking_body(struct conn *c)
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
            reply_refuse(c, 400, &e, "");
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

bool asking_head(struct conn *c)
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
        reply_refuse(c, (unsigned)-got, &e, "");
        return false;
    }
    begin_request(c, &h);
    if (!c->dead)
        buf_consume(&c->in, used);
    return !c->dead;
}
