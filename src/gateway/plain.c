/* SPDX-License-Identifier: Apache-2.0 */
/* Owns plain HTTP on a connection: each request is read, judged and written anew; responses pass as they come.
 *
 * Whose turn it is, net/httpflow knows. Here is what it takes its bytes from and gives them to: heads are looked at while the kernel holds
 * them, what we write to the server waits in a slot of a fixed table, and bodies that need no reading go through a pipe. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "confine/weaken.h"
#include "gateway/gateway.h"
#include "net/httprefusal.h"

#define STEPS_MAX 64 /* after which others have their turn */

static uint8_t scratch[HTTP_HEAD_MAX + 1];

static struct http_slot *slot_of(const struct flow *f)
{
    return &f->g->http[f->http - 1];
}

static bool begin(struct flow *f)
{
    for (uint16_t i = 0; i < HTTP_FLOWS_MAX; i++) {
        struct http_slot *s = &f->g->http[i];
        if (s->used)
            continue;
        memset(s, 0, offsetof(struct http_slot, out));
        s->used = true;
        f->http = (uint16_t)(i + 1);
        return true;
    }
    return false;
}

void plain_end(struct flow *f)
{
    if (f->http)
        slot_of(f)->used = false;
    f->http = 0;
}

static void skip(int fd, size_t n)
{
    (void)!recv(fd, NULL, n, MSG_TRUNC | MSG_DONTWAIT);
}

/* --- requests --- */

static void refuse(struct flow *f, unsigned status, const char *why)
{
    char text[HTTPREFUSAL_BYTES_MAX], address[ADDRESS_TEXT_MAX], what[GATE_TEXT_MAX];
    const struct refusal r = {
        .kind = GATE_TCP, .name = f->name.len ? f->name.text : NULL, .address = &f->to, .port = f->port, .rule = "HTTP", .why = why};
    liaison_deny(f->g, &r);
    snprintf(what, sizeof(what), "a request to %s port %u", f->name.len ? f->name.text : address_text(&f->to, address), f->port);
    const struct httprefusal no = {.status = status, .what = what, .why = why};
    flow_say(f, text, httprefusal_write(&no, text));
}

static bool is_same_address(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->byte, b->byte, sizeof(a->byte)) == 0;
}

/* The Host is none that may pass, and the request is refused. */
static int refuse_host(struct flow *f, unsigned status, const char *why)
{
    if (is_weak(f->g->weaken, WEAKEN_GATE_STRICT))
        return 1;
    refuse(f, status, why);
    return 0;
}

/* Whom the request names. 1: ret is set, or it is the address that was dialled; 0: it was refused. */
static int read_host(struct flow *f, const struct httprequest *q, struct hostname *ret)
{
    struct address literal;
    ret->len = 0;
    ret->text[0] = 0;
    if (q->host.port && q->host.port != f->port)
        return refuse_host(f, 421, "Host names another port than the connection goes to");
    if (address_parse(q->host.name.at, q->host.name.len, &literal)) {
        if (is_same_address(&literal, &f->to) || is_weak(f->g->weaken, WEAKEN_GATE_MATCH))
            return 1;
        return refuse_host(f, 421, "Host names another address than the connection goes to");
    }
    enum hostname_trouble t = hostname_canon(q->host.name.at, q->host.name.len, false, ret);
    if (t == HOSTNAME_GOOD)
        return 1;
    return refuse_host(f, 400, "Host is no name of a host");
}

void plain_first(struct flow *f, const uint8_t *p, size_t n, bool ended)
{
    static struct httprequest q;
    struct httpflow trial = {0};
    struct hostname name;
    size_t used;
    f->is_http = true;
    n = n < HTTP_HEAD_MAX ? n : HTTP_HEAD_MAX;
    int r = httpflow_ask(&trial, (const char *)p, n, &q, &used);
    if (r == 0 && !ended) {
        flow_wait_for(&f->client, n);
        return;
    }
    if (r <= 0 && is_weak(f->g->weaken, WEAKEN_GATE_STRICT)) {
        opening_other(f);
        return;
    }
    if (r <= 0) {
        refuse(f, r < 0 ? httprequest_status(q.wrong) : 400,
               r < 0 ? httprequest_say(q.wrong) : "the connection ended within its first request");
        return;
    }
    struct hostname before = f->name;
    if (!read_host(f, &q, &name))
        return;
    if (!f->http && !begin(f)) {
        refuse(f, 503, "too many connections with plain HTTP at once");
        return;
    }
    f->name = name;
    if (f->state != FLOW_GREET) {
        crossing_decide(f);
        return;
    }
    /* The server was dialled before the client had spoken. */
    if (strcmp(before.text, name.text) != 0) {
        refuse(f, 421, "Host is not the name that the connection was made for");
        return;
    }
    f->state = FLOW_HTTP;
    f->silent = false;
    flow_wait_for(&f->client, 0);
    plain_step(f);
}

/* It may pass if it is for whom the connection was allowed, and is still. */
static bool may_pass(struct flow *f, const struct httprequest *q)
{
    struct hostname name;
    struct judgement j;
    if (!read_host(f, q, &name))
        return false;
    if (strcmp(name.text, f->name.text) != 0) {
        refuse(f, 421, "Host is not the name that the connection was made for");
        return false;
    }
    struct egress_question e = {.name = f->name.len ? f->name.text : NULL,
                                .address = f->host_port ? NULL : &f->at,
                                .port = f->port,
                                .flow = EGRESS_HTTP,
                                .method = q->has_override ? (struct http_text){0} : q->head.method,
                                .path = q->is_plain ? q->path : (struct http_text){0}};
    verdict_judge(f->g, &e, f->granted, &j);
    if (j.verdict == VERDICT_ALLOW)
        return true;
    flow_refuse(f, j.rule, j.why);
    return false;
}

/* The next request. 1: there was one; 0: not yet; -1: the connection is over, one way or another. */
static int take_request(struct flow *f, struct http_slot *s)
{
    static struct httprequest q;
    char address[ADDRESS_TEXT_MAX];
    size_t used;
    ssize_t n = flow_peek(f, &f->client, scratch, HTTP_HEAD_MAX);
    if (n < 0)
        return 0;
    if (n == 0) {
        flow_drop(f);
        return -1;
    }
    int r = httpflow_ask(&s->flow, (const char *)scratch, (size_t)n, &q, &used);
    if (r == 0) {
        flow_wait_for(&f->client, (size_t)n);
        return 0;
    }
    if (r < 0 && q.wrong != HTTPREQUEST_OVER) {
        refuse(f, httprequest_status(q.wrong), httprequest_say(q.wrong));
        return -1;
    }
    if (r < 0) {
        flow_say(f, "", 0);
        return -1;
    }
    if (!may_pass(f, &q))
        return -1;
    struct http_text name = {f->name.text, f->name.len};
    if (!name.len)
        name = (struct http_text){address_text(&f->to, address), strlen(address_text(&f->to, address))};
    s->at = 0;
    s->len = httpflow_forward(&s->flow, &q, &name, (char *)s->out, sizeof(s->out));
    if (!s->len) {
        refuse(f, 400, "the request cannot be passed on");
        return -1;
    }
    skip(f->client.fd, used);
    flow_wait_for(&f->client, 0);
    if (q.wants_continue)
        (void)!send(f->client.fd, HTTPREQUEST_CONTINUE, sizeof(HTTPREQUEST_CONTINUE) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    return 1;
}

/* --- bodies --- */

/* So many bytes at most go through the pipe; returns how many were taken, -1 if a side is broken. */
static int64_t pass(struct flow *f, struct half *h, uint64_t most)
{
    bool up = h == &f->up;
    uint64_t before = h->passed + h->held;
    h->may_pass = most;
    enum relay r = relay_move(f->g, h, up ? f->client.fd : f->server.fd, up ? f->server.fd : f->client.fd);
    h->may_pass = 0;
    return r == RELAY_BROKEN ? -1 : (int64_t)(h->passed + h->held - before);
}

static int take_chunks(struct flow *f, struct http_slot *s)
{
    ssize_t n = flow_peek(f, &f->client, scratch, sizeof(scratch));
    if (n < 0)
        return 0;
    struct pieces p = {.in = scratch, .in_len = (size_t)(n > 0 ? n : 0), .last = n == 0, .out = s->out, .room = sizeof(s->out)};
    int r = httpflow_body(&s->flow, &p);
    if (r < 0 || (n == 0 && r == 0)) {
        refuse(f, 400, "the request's body is not well formed");
        return -1;
    }
    skip(f->client.fd, p.used);
    s->at = 0;
    s->len = p.made;
    if (!p.used && !p.made)
        flow_wait_for(&f->client, (size_t)n);
    else
        flow_wait_for(&f->client, 0);
    return p.used || p.made || r == 1;
}

static int take_body(struct flow *f, struct http_slot *s)
{
    uint64_t unseen = httpflow_unseen(&s->flow);
    if (!unseen && !f->up.held)
        return take_chunks(f, s);
    int64_t n = pass(f, &f->up, unseen);
    if (n < 0 || (f->up.ended && !f->up.held)) {
        flow_drop(f); /* the body ended early */
        return -1;
    }
    if (n)
        httpflow_passed(&s->flow, (uint64_t)n);
    return n > 0;
}

/* --- the two sides --- */

/* What was written goes to the server. 1: all of it has; 0: it waits; -1: broken. */
static int send_out(struct flow *f, struct http_slot *s)
{
    while (s->at < s->len) {
        ssize_t n = send(f->server.fd, s->out + s->at, s->len - s->at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        s->at += (size_t)n;
        f->up.passed += (uint64_t)n;
    }
    s->at = s->len = 0;
    return 1;
}

static int from_client(struct flow *f, struct http_slot *s)
{
    int r = send_out(f, s);
    if (r < 0) {
        flow_drop(f);
        return -1;
    }
    if (r == 0)
        return 0;
    if (s->flow.state == HTTPFLOW_BODY || f->up.held)
        return take_body(f, s);
    return s->flow.state == HTTPFLOW_ASK && !f->down.held && !s->granted ? take_request(f, s) : 0;
}

static int pass_granted(struct flow *f, struct http_slot *s)
{
    int64_t n = pass(f, &f->down, s->granted);
    if (n < 0) {
        flow_drop(f);
        return -1;
    }
    s->granted -= (uint64_t)n;
    return n > 0;
}

static int take_answer(struct flow *f, struct http_slot *s)
{
    size_t may = 0;
    ssize_t n = flow_peek(f, &f->server, scratch, sizeof(scratch));
    if (n < 0)
        return 0;
    if (n == 0) {
        flow_say(f, "", 0); /* the server is done */
        return -1;
    }
    int r = httpflow_answer(&s->flow, (const char *)scratch, (size_t)n, &may);
    if (r < 0) {
        const struct refusal no = {.kind = GATE_TCP,
                                   .name = f->name.text,
                                   .address = &f->at,
                                   .port = f->port,
                                   .rule = "HTTP",
                                   .why = "the server answered a request that nobody made; the connection was cut"};
        liaison_deny(f->g, &no);
        flow_drop(f);
        return -1;
    }
    flow_wait_for(&f->server, may ? 0 : (size_t)n);
    s->granted = may;
    return may > 0;
}

static int from_server(struct flow *f, struct http_slot *s)
{
    if (s->granted || f->down.held)
        return pass_granted(f, s);
    uint64_t unseen = httpreply_unseen(&s->flow.reply);
    if (!unseen)
        return take_answer(f, s);
    int64_t n = pass(f, &f->down, unseen);
    if (n < 0) {
        flow_drop(f);
        return -1;
    }
    if (f->down.ended && !f->down.held) {
        flow_say(f, "", 0);
        return -1;
    }
    if (n)
        (void)httpflow_answered(&s->flow, (uint64_t)n);
    return n > 0;
}

void plain_want(const struct flow *f, uint32_t *client, uint32_t *server)
{
    const struct http_slot *s = slot_of(f);
    bool writes = s->at < s->len || f->up.held;
    bool reads = s->flow.state == HTTPFLOW_BODY || (s->flow.state == HTTPFLOW_ASK && !f->down.held && !s->granted);
    *client = (reads && !writes ? EPOLLIN : 0) | (f->down.held ? EPOLLOUT : 0);
    *server = (f->down.held ? 0 : EPOLLIN) | (writes ? EPOLLOUT : 0);
}

void plain_step(struct flow *f)
{
    struct http_slot *s = slot_of(f);
    for (int i = 0; i < STEPS_MAX; i++) {
        int up = from_client(f, s), down = up < 0 ? -1 : from_server(f, s);
        if (up < 0 || down < 0)
            return;
        if (s->flow.state == HTTPFLOW_OPEN && !s->granted && s->at == s->len && !f->down.held) {
            plain_end(f);
            f->state = FLOW_OPEN;
            f->up.may_pass = f->down.may_pass = UINT64_MAX;
            flow_wait_for(&f->client, 0);
            flow_wait_for(&f->server, 0);
            break;
        }
        if (httpflow_is_over(&s->flow) && !s->granted && !f->down.held && s->at == s->len) {
            flow_say(f, "", 0);
            return;
        }
        if (!up && !down)
            break;
    }
    if (flow_count(f))
        flow_watch(f);
}
