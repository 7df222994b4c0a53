/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a connection of the box, from the moment it is accepted to its end.
 *
 * How it works: the client is hostile, and so is the server. Where the client dialled is known from the kernel, whom it wants from its
 * first bytes (a TLS hello, an HTTP request) or, if they name nobody, from the names that led to that address. These bytes are looked at
 * and stay with the kernel until a verdict has been reached; then the server is dialled while the keeper writes the audit, and when both
 * are done the very bytes that were read go out. A server that asks a TLS client for a second hello gets one that was read as well. After
 * that bytes pass unseen. Every state but the last two has an end in time. */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "gateway/gateway.h"
#include "net/httprefusal.h"

#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST */
#define ACCEPTS_PER_TURN 64
#define REST_MAX 32

/* "access denied", of TLS: what a client reads before it has begun to speak in secret. */
static const uint8_t tls_refusal[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31};

static struct flow *of_client(struct loop_source *s)
{
    return (struct flow *)((char *)s - offsetof(struct flow, client));
}

static struct flow *of_server(struct loop_source *s)
{
    return (struct flow *)((char *)s - offsetof(struct flow, server));
}

socklen_t flow_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
    memset(ret, 0, sizeof(*ret));
    if (a->family == ADDRESS_V4) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, a->byte, 4);
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    memcpy(&six->sin6_addr, a->byte, 16);
    return sizeof(*six);
}

/* --- slots --- */

static struct flow *take_slot(struct gateway *g)
{
    struct flow *f = NULL;
    if (g->free_flow) {
        f = &g->flows[g->free_flow - 1];
        g->free_flow = f->next;
    } else if (g->flow_top < g->flow_max) {
        f = &g->flows[g->flow_top++];
    } else {
        return NULL;
    }
    *f = (struct flow){.g = g,
                       .generation = ++g->generation,
                       .host = -1,
                       .client = {.fd = -1},
                       .server = {.fd = -1},
                       .up = {.pipe = -1},
                       .down = {.pipe = -1}};
    g->meters->open++;
    return f;
}

static void close_source(struct flow *f, struct loop_source *s)
{
    if (s->fd < 0)
        return;
    if (s->events)
        loop_remove(&f->g->loop, s);
    own_close(&s->fd);
}

/* A rule has no bytes left for it. */
static void exhaust(struct flow *f)
{
    const struct refusal r = {.kind = GATE_TCP,
                              .name = f->name.len ? f->name.text : NULL,
                              .address = &f->at,
                              .port = f->port,
                              .rule = "network.egress",
                              .why = "the bytes that its rule allows are used up; the connection was cut"};
    liaison_deny(f->g, &r);
    flow_reset(f);
}

/* What has passed since this was last done. */
static void count_bytes(struct flow *f)
{
    struct gate_meters *m = f->g->meters;
    uint64_t in = f->down.passed + f->down.held - f->counted_in, out = f->up.passed + f->up.held - f->counted_out;
    if (f->host < 0 || !(in | out))
        return;
    verdict_spend(f, in, out);
    m->in += in;
    m->out += out;
    m->host[f->host].in += in;
    m->host[f->host].out += out;
    f->counted_in += in;
    f->counted_out += out;
}

bool flow_count(struct flow *f)
{
    count_bytes(f);
    if (!f->is_counted || (verdict_left(f, QUOTA_BYTES_OUT) && verdict_left(f, QUOTA_BYTES_IN)))
        return true;
    exhaust(f);
    return false;
}

void flow_drop(struct flow *f)
{
    struct gateway *g = f->g;
    count_bytes(f);
    verdict_give_back(f);
    crossing_withdraw(f);
    if (f->audited)
        liaison_end(g, f);
    close_source(f, &f->client);
    close_source(f, &f->server);
    relay_release(g, &f->up);
    relay_release(g, &f->down);
    plain_end(f);
    g->meters->open--;
    f->state = FLOW_FREE;
    f->next = g->free_flow;
    g->free_flow = flow_index(f) + 1;
}

/* Ends it so that the client's next call says that it was reset. */
void flow_reset(struct flow *f)
{
    static const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(f->client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    flow_drop(f);
}

/* --- what is watched --- */

static void want(struct flow *f, struct loop_source *s, uint32_t events)
{
    struct pale_err e;
    if (s->fd < 0)
        return;
    if (!events) {
        /* Not at all: a side that has hung up would be told of for ever. */
        if (s->events)
            loop_remove(&f->g->loop, s);
    } else if (s->events) {
        loop_want(&f->g->loop, s, events);
    } else if (loop_add(&f->g->loop, s, events, &e) < 0) {
        f->due_ms = 1; /* the next tick ends it */
    }
}

static bool takes(const struct half *h)
{
    return h->may_pass && !h->held && !h->ended && !h->starved;
}

/* For time, or for a pipe. */
static bool waits(const struct flow *f)
{
    return f->due_ms != INT64_MAX || f->up.starved || f->down.starved;
}

void flow_watch(struct flow *f)
{
    uint32_t client = 0, server = 0;
    bool looks = f->state == FLOW_FIRST || f->state == FLOW_GREET || f->state == FLOW_AGAIN;
    switch (f->state) {
    case FLOW_FREE:
        return;
    case FLOW_NAME:
    case FLOW_ASK:
    case FLOW_DIAL:
        client = EPOLLRDHUP; /* … and that it is reset */
        server = f->server.fd >= 0 && !f->dialled ? EPOLLOUT : 0;
        break;
    case FLOW_LINGER:
        client = EPOLLIN;
        break;
    default:
        client = (looks || takes(&f->up) ? EPOLLIN : 0) | (looks ? EPOLLRDHUP : 0) | (f->down.held ? EPOLLOUT : 0);
        server = (f->state == FLOW_HELLO || takes(&f->down) ? EPOLLIN : 0) | (f->up.held ? EPOLLOUT : 0);
        break;
    }
    if (f->state == FLOW_HTTP)
        plain_want(f, &client, &server);
    want(f, &f->client, client);
    want(f, &f->server, server);
    if (waits(f))
        gateway_wake(f->g);
}

ssize_t flow_peek(struct flow *f, struct loop_source *from, uint8_t *to, size_t cap)
{
    ssize_t n;
    (void)f;
    while ((n = recv(from->fd, to, cap, MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EINTR)
        ;
    return n < 0 ? errno == EAGAIN ? -1 : 0 : n;
}

/* Wakes us when there is more than that. */
void flow_wait_for(const struct loop_source *s, size_t n)
{
    int most = n < INT_MAX ? (int)n + 1 : INT_MAX;
    setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &most, sizeof(most));
}

/* --- refusing --- */

/* The client is told something, and has a while to read it. */
void flow_say(struct flow *f, const void *p, size_t n)
{
    char rest[4096];
    /* What is left unread would reset the connection, and the client would not hear us. Who sends faster than this is not waited for. */
    for (int i = 0; i < REST_MAX && recv(f->client.fd, rest, sizeof(rest), MSG_DONTWAIT) > 0; i++)
        ;
    flow_wait_for(&f->client, 0);
    (void)!send(f->client.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(f->client.fd, SHUT_WR);
    close_source(f, &f->server);
    relay_release(f->g, &f->up);
    relay_release(f->g, &f->down);
    plain_end(f);
    f->state = FLOW_LINGER;
    f->due_ms = clock_ms() + LINGER_MS;
    flow_watch(f);
}

void flow_refuse(struct flow *f, const char *rule, const char *why)
{
    char text[HTTPREFUSAL_BYTES_MAX], what[GATE_TEXT_MAX], address[ADDRESS_TEXT_MAX], reason[2 * GATE_TEXT_MAX];
    const struct refusal r = {
        .kind = GATE_TCP, .name = f->name.len ? f->name.text : NULL, .address = &f->to, .port = f->port, .rule = rule, .why = why};
    crossing_withdraw(f);
    liaison_deny(f->g, &r);
    if (f->is_http) {
        snprintf(what, sizeof(what), "http://%s:%u", f->name.len ? f->name.text : address_text(&f->to, address), f->port);
        snprintf(reason, sizeof(reason), "%s (%s)", why, rule);
        const struct httprefusal no = {
            .status = 403, .what = what, .why = reason, .remedy = "the operator can allow it in the box's policy"};
        flow_say(f, text, httprefusal_write(&no, text));
    } else if (f->is_tls) {
        flow_say(f, tls_refusal, sizeof(tls_refusal));
    } else {
        flow_reset(f);
    }
}

/* It was allowed, but the server cannot be had. */
void flow_fail(struct flow *f, const char *why)
{
    char text[HTTPREFUSAL_BYTES_MAX];
    if (!f->is_http) {
        flow_reset(f);
        return;
    }
    const struct httprefusal no = {.status = 502, .what = f->name.text, .why = why};
    flow_say(f, text, httprefusal_write(&no, text));
}

/* --- bytes --- */

static void move(struct flow *f)
{
    if (!flow_count(f))
        return;
    if (f->is_counted && f->state == FLOW_OPEN) {
        f->up.may_pass = verdict_left(f, QUOTA_BYTES_OUT);
        f->down.may_pass = verdict_left(f, QUOTA_BYTES_IN);
    }
    enum relay up = relay_move(f->g, &f->up, f->client.fd, f->server.fd);
    enum relay down = up == RELAY_BROKEN ? up : relay_move(f->g, &f->down, f->server.fd, f->client.fd);
    count_bytes(f);
    if (up == RELAY_BROKEN || down == RELAY_BROKEN)
        flow_reset(f);
    else if (up == RELAY_ENDED && down == RELAY_ENDED)
        flow_drop(f);
    else
        flow_watch(f);
}

static void on_client(struct loop_source *s, uint32_t events)
{
    struct flow *f = of_client(s);
    bool ended = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    char rest[4096];
    ssize_t n;
    switch (f->state) {
    case FLOW_GREET:
        if (events & EPOLLOUT) {
            move(f);
            return;
        }
        opening_first(f, ended);
        return;
    case FLOW_FIRST:
        opening_first(f, ended);
        return;
    case FLOW_AGAIN:
        if (events & EPOLLOUT)
            move(f);
        else
            opening_again(f, ended);
        return;
    case FLOW_HTTP:
        plain_step(f);
        return;
    case FLOW_LINGER:
        n = recv(s->fd, rest, sizeof(rest), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            flow_drop(f);
        return;
    case FLOW_HELLO:
    case FLOW_OPEN:
        move(f);
        return;
    case FLOW_ASK:
        /* It may only have said all it wants to say, but most who hang up are gone, and then a person is asked for nobody. */
        flow_drop(f);
        return;
    default:
        /* It waits for us. A client that has said all it wants to say may wait for the answer; one that is gone does not. */
        if (events & (EPOLLHUP | EPOLLERR))
            flow_drop(f);
        else
            want(f, &f->client, 0);
        return;
    }
}

void flow_on_server(struct loop_source *s, uint32_t events)
{
    struct flow *f = of_server(s);
    switch (f->state) {
    case FLOW_DIAL:
        crossing_dialled(f);
        return;
    case FLOW_HTTP:
        plain_step(f);
        return;
    case FLOW_HELLO:
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            opening_greeting(f);
        move(f);
        return;
    default:
        move(f);
        return;
    }
}

/* --- accepting --- */

/* Where the client dialled, before it was led here. */
static bool original(int fd, bool six, struct flow *f)
{
    struct sockaddr_in a4 = {0};
    struct sockaddr_in6 a6 = {0};
    socklen_t n = six ? sizeof(a6) : sizeof(a4);
    if (getsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DST, six ? (void *)&a6 : (void *)&a4, &n) < 0)
        return false;
    f->to.family = six ? ADDRESS_V6 : ADDRESS_V4;
    memcpy(f->to.byte, six ? (void *)&a6.sin6_addr : (void *)&a4.sin_addr, six ? 16 : 4);
    f->port = ntohs(six ? a6.sin6_port : a4.sin_port);
    return true;
}

static void accept_one(struct listener *l, int fd)
{
    static const int on = 1;
    struct flow *f = take_slot(l->g);
    struct pale_err e;
    if (!f) {
        const struct refusal r = {.kind = GATE_TCP, .rule = "limits", .why = "too many connections at once"};
        liaison_deny(l->g, &r);
        close(fd);
        return;
    }
    f->client = (struct loop_source){.fd = fd, .ready = on_client};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    f->state = FLOW_FIRST;
    f->due_ms = clock_ms() + SILENT_MS;
    if (!original(fd, l->which == DETOUR_TCP6, f) || address_class(&f->to) == ADDRESS_LOOPBACK) {
        flow_refuse(f, "gateway", "this port is the gateway's own");
        return;
    }
    if (f->g->is_cut || !f->g->has_policy) {
        struct judgement j;
        verdict_flow(f, false, &j);
        flow_refuse(f, j.rule, j.why);
        return;
    }
    if (loop_add(&f->g->loop, &f->client, EPOLLIN | EPOLLRDHUP, &e) < 0)
        flow_reset(f);
}

void flow_accept(struct loop_source *s, uint32_t events)
{
    struct listener *l = (struct listener *)((char *)s - offsetof(struct listener, source));
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
            loop_want(&l->g->loop, s, 0); /* until the next tick */
        if (fd < 0)
            return;
        accept_one(l, fd);
    }
}

/* --- time and change --- */
static void on_due(struct flow *f)
{
    if (f->state == FLOW_FIRST && f->seen == 0 && !f->waited) {
        f->waited = true;
        opening_silence(f);
    } else if (f->state == FLOW_FIRST) {
        flow_refuse(f, "time", "it did not say whom it wants");
    } else if (f->state == FLOW_ASK) {
        flow_refuse(f, "ask", "nobody answered the question in time; `pale approvals watch` shows questions as they come");
    } else if (f->state == FLOW_NAME) {
        flow_fail(f, "the host's name servers do not answer");
    } else if (f->state == FLOW_DIAL) {
        flow_fail(f, "the server does not answer");
    } else {
        flow_drop(f);
    }
}

bool flow_tick(struct gateway *g, int64_t now)
{
    bool any = false;
    for (uint32_t i = 0; i < g->flow_top; i++) {
        struct flow *f = &g->flows[i];
        if (f->state == FLOW_FREE)
            continue;
        if (f->due_ms <= now) {
            on_due(f);
        } else if (f->up.starved || f->down.starved) {
            f->up.starved = f->down.starved = false;
            if (f->state == FLOW_HTTP)
                plain_step(f);
            else
                move(f);
        }
        any |= f->state != FLOW_FREE && waits(f);
    }
    for (int i = 0; i < DETOUR_SOCKETS; i++)
        if (i == DETOUR_TCP4 || (i == DETOUR_TCP6 && g->sockets[i] >= 0))
            loop_want(&g->loop, &g->listeners[i].source, EPOLLIN);
    return any;
}

void flow_uncount_all(struct gateway *g)
{
    for (uint32_t i = 0; i < g->flow_top; i++) {
        if (g->flows[i].state == FLOW_FREE)
            continue;
        count_bytes(&g->flows[i]);
        verdict_give_back(&g->flows[i]);
    }
}

void flow_judge_all(struct gateway *g)
{
    struct judgement j;
    for (uint32_t i = 0; i < g->flow_top; i++) {
        struct flow *f = &g->flows[i];
        if (f->state == FLOW_FREE || f->state == FLOW_LINGER)
            continue;
        verdict_flow(f, f->at.family != 0, &j);
        if (!g->is_cut && (j.verdict == VERDICT_ALLOW || f->state == FLOW_FIRST) && f->state != FLOW_ASK) {
            if (f->server.fd >= 0 && !f->is_counted)
                verdict_count(f, &j);
            continue;
        }
        if (!g->is_cut && f->state == FLOW_ASK) {
            if (j.verdict != VERDICT_ASK) {
                crossing_withdraw(f);
                crossing_decide(f);
            }
            continue;
        }
        const struct refusal r = {
            .kind = GATE_TCP, .name = f->name.len ? f->name.text : NULL, .address = &f->to, .port = f->port, .rule = j.rule, .why = j.why};
        liaison_deny(g, &r);
        flow_reset(f);
    }
}
