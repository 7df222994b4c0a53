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
#include "confine/weaken.h"
#include "gateway/gateway.h"
#include "net/httprefusal.h"
#include "net/sniff.h"

#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST */
#define ACCEPTS_PER_TURN 64

/* "access denied", of TLS: what a client reads before it has begun to speak in secret. */
static const uint8_t tls_refusal[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x31};

static uint8_t scratch[HELLO_BYTES_MAX + 1]; /* for what is looked at; of one connection at a time */

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

/* What has passed since this was last done. */
static void count_bytes(struct flow *f)
{
    struct gate_meters *m = f->g->meters;
    uint64_t in = f->down.passed - f->counted_in, out = f->up.passed - f->counted_out;
    if (f->host < 0 || !(in | out))
        return;
    m->in += in;
    m->out += out;
    m->host[f->host].in += in;
    m->host[f->host].out += out;
    f->counted_in = f->down.passed;
    f->counted_out = f->up.passed;
}

void flow_drop(struct flow *f)
{
    struct gateway *g = f->g;
    count_bytes(f);
    if (f->question)
        talk_take_back(g, f);
    if (f->audited)
        talk_end(g, f);
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
static void reset(struct flow *f)
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
    while (recv(f->client.fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
        ; /* what is left unread would reset the connection, and the client would not hear us */
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
    talk_deny(f->g, &r);
    if (f->is_http) {
        snprintf(what, sizeof(what), "http://%s:%u", f->name.len ? f->name.text : address_text(&f->to, address), f->port);
        snprintf(reason, sizeof(reason), "%s (%s)", why, rule);
        const struct httprefusal no = {
            .status = 403, .what = what, .why = reason, .remedy = "the operator can allow it in the box's policy"};
        flow_say(f, text, httprefusal_write(&no, text));
    } else if (f->is_tls) {
        flow_say(f, tls_refusal, sizeof(tls_refusal));
    } else {
        reset(f);
    }
}

/* It was allowed, but the server cannot be had. */
static void fail(struct flow *f, const char *why)
{
    char text[HTTPREFUSAL_BYTES_MAX];
    if (!f->is_http) {
        reset(f);
        return;
    }
    const struct httprefusal no = {.status = 502, .what = f->name.text, .why = why};
    flow_say(f, text, httprefusal_write(&no, text));
}

/* --- dialling --- */

/* The server is there and the audit is written: what the client said may go. */
static void begin(struct flow *f)
{
    flow_wait_for(&f->client, 0);
    f->due_ms = INT64_MAX;
    if (f->silent) {
        f->state = FLOW_GREET;
        f->down.may_pass = UINT64_MAX;
    } else if (f->is_http) {
        f->state = FLOW_HTTP;
        plain_step(f);
        return;
    } else if (f->is_tls) {
        f->state = FLOW_HELLO;
        f->up.may_pass = f->seen;
        if (relay_move(f->g, &f->up, f->client.fd, f->server.fd) == RELAY_BROKEN) {
            reset(f);
            return;
        }
    } else {
        f->state = FLOW_OPEN;
        f->up.may_pass = f->down.may_pass = UINT64_MAX;
    }
    flow_watch(f);
}

static void on_dialled(struct flow *f)
{
    int error = 0;
    socklen_t n = sizeof(error);
    if (getsockopt(f->server.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error) {
        fail(f, error == ECONNREFUSED ? "the server refused the connection" : "the server cannot be reached");
        return;
    }
    f->dialled = true;
    if (f->audited)
        begin(f);
    else
        flow_watch(f);
}

static void on_server(struct loop_source *s, uint32_t events);

static void dial(struct flow *f, const char *rule)
{
    static const int on = 1;
    struct sockaddr_storage to;
    socklen_t n = flow_sockaddr(&f->at, f->port, &to);
    f->host = meter_row(f->g, f);
    f->server = (struct loop_source){.fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .ready = on_server};
    if (f->server.fd < 0) {
        fail(f, "the gateway has no more sockets");
        return;
    }
    setsockopt(f->server.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(f->server.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    f->state = FLOW_DIAL;
    f->due_ms = clock_ms() + DIAL_MS;
    f->g->meters->connections++;
    f->g->meters->host[f->host].connections++;
    talk_allow(f->g, f, rule);
    int r = connect(f->server.fd, (struct sockaddr *)&to, n);
    if (r < 0 && errno != EINPROGRESS) {
        fail(f, "the host has no way to the server");
        return;
    }
    f->dialled = r == 0;
    flow_watch(f);
}

void flow_go(struct gateway *g, uint64_t number)
{
    uint32_t index = (uint32_t)number;
    struct flow *f = &g->flows[index < FLOWS_MAX ? index : 0];
    if (index >= FLOWS_MAX || f->generation != number >> 32 || f->state != FLOW_DIAL || f->audited)
        return;
    f->audited = true;
    if (f->dialled)
        begin(f);
}

/* --- deciding --- */

static void ask(struct flow *f, const char *rule)
{
    struct gateway *g = f->g;
    f->state = FLOW_ASK;
    f->due_ms = clock_ms() + ASK_MS;
    /* One question for all who want the same. */
    for (uint32_t i = 0; i < g->flow_top && !f->question; i++) {
        const struct flow *o = &g->flows[i];
        if (o != f && o->state == FLOW_ASK && o->question && o->port == f->port && strcmp(o->name.text, f->name.text) == 0)
            f->question = o->question;
    }
    if (!f->question) {
        f->question = ++g->question_next;
        talk_ask(g, f, rule);
    }
    flow_watch(f);
}

void flow_verdict(struct gateway *g, uint64_t question, bool yes)
{
    for (uint32_t i = 0; i < g->flow_top; i++) {
        struct flow *f = &g->flows[i];
        if (f->state != FLOW_ASK || f->question != question)
            continue;
        f->question = 0;
        f->granted = yes;
        if (yes)
            flow_decide(f);
        else
            flow_refuse(f, "operator", "the operator said no");
    }
}

static void look_up(struct flow *f)
{
    const struct asker me = {.kind = ASKER_FLOW, .flow = flow_index(f), .generation = f->generation};
    f->state = FLOW_NAME;
    f->looked_up = true;
    f->due_ms = clock_ms() + DIAL_MS;
    flow_watch(f);
    if (!lookup_start(f->g, &f->name, &me))
        fail(f, "too many names are looked up at once");
}

void flow_found(struct gateway *g, uint32_t index, uint32_t generation, struct known *k, bool failed)
{
    struct flow *f = &g->flows[index];
    (void)k;
    if (f->generation != generation || f->state != FLOW_NAME)
        return;
    if (failed)
        fail(f, "the host's name servers do not answer");
    else
        flow_decide(f);
}

/* Where the name leads, if that is where the client dialled. 1: f->at; 0: it has to be looked up; -1: elsewhere. */
static int find_address(struct flow *f, char *why, size_t cap)
{
    struct gateway *g = f->g;
    const struct known *k = known_find(g, &f->name), *stands_for = known_made_up(g, &f->to);
    char text[ADDRESS_TEXT_MAX];
    bool fresh = k && k->fresh_ms > clock_ms();
    if (is_weak(g->weaken, WEAKEN_GATE_MATCH)) {
        f->at = f->to;
        return 1;
    }
    if (stands_for && stands_for == k) {
        if ((!fresh || !k->current) && !f->looked_up)
            return 0;
        if (!k->current) {
            snprintf(why, cap, "%s has no address", f->name.text);
            return -1;
        }
        f->at = k->address[0];
        return 1;
    }
    if (k && known_has(k, &f->to)) {
        f->at = f->to;
        return 1;
    }
    if (!f->looked_up)
        return 0;
    snprintf(why, cap, "%s does not lead to %s", f->name.text, address_text(&f->to, text));
    return -1;
}

void flow_decide(struct flow *f)
{
    struct gateway *g = f->g;
    struct judgement j;
    char why[GATE_TEXT_MAX + DOMAIN_NAME_MAX];
    const struct hostname *name = f->name.len ? &f->name : NULL;
    verdict_connect(g, name, &f->to, f->port, &j);
    if (j.verdict == VERDICT_NO) {
        flow_refuse(f, j.rule, j.why);
        return;
    }
    if (!f->is_tls && !f->is_http && name && !j.lists_port) {
        flow_refuse(f, j.rule, "only TLS and HTTP name whom they want; a rule that lists the port allows any protocol there");
        return;
    }
    if (j.verdict == VERDICT_QUESTION && !f->granted) {
        ask(f, j.rule);
        return;
    }
    int r = 1;
    if (name)
        r = find_address(f, why, sizeof(why));
    else
        f->at = f->to;
    if (r == 0)
        look_up(f);
    else if (r < 0)
        flow_refuse(f, "names and addresses agree", why);
    else if (!verdict_address(g, &f->at, &j))
        flow_refuse(f, j.rule, j.why);
    else
        dial(f, j.rule);
}

/* --- the first bytes --- */

/* A name that the bytes gave, in its one form. */
bool flow_name(struct flow *f, const char *p, size_t n)
{
    struct hostname name;
    enum hostname_trouble t = hostname_canon(p, n, false, &name);
    char why[GATE_TEXT_MAX];
    if (t == HOSTNAME_GOOD) {
        f->name = name;
        return true;
    }
    snprintf(why, sizeof(why), "the name that was asked for %s", hostname_trouble_text(t));
    flow_refuse(f, "names of hosts", why);
    return false;
}

/* The name that led the client to this address, if one that is allowed at this port did. */
static void name_by_address(struct flow *f)
{
    struct gateway *g = f->g;
    struct judgement j;
    uint32_t at = 0;
    const struct known *k = known_made_up(g, &f->to), *best = k;
    enum verdict v = VERDICT_NO;
    while ((k = known_next(g, &f->to, &at))) {
        verdict_connect(g, &k->name, &f->to, f->port, &j);
        if (!best || (v != VERDICT_YES && j.verdict != VERDICT_NO)) {
            best = k;
            v = j.verdict;
        }
    }
    if (best)
        f->name = best->name;
}

/* Is this hello one that may pass, for the name that the connection has or is to have? */
static void read_hello(struct flow *f, const uint8_t *p, size_t n, bool ended)
{
    static struct hello h; /* more than a stack should hold */
    size_t used = 0;
    int r = hello_parse(p, n, &h, &used);
    bool had_name = f->name.len > 0;
    struct hostname before = f->name;
    f->is_tls = true;
    if (r == 0 && !ended) {
        flow_wait_for(&f->client, n);
        return;
    }
    if (r <= 0) {
        flow_refuse(f, "TLS", r < 0 ? hello_say(h.wrong) : "the connection ended within its first message");
        return;
    }
    if (h.has_ech && !is_weak(f->g->weaken, WEAKEN_GATE_ECH)) {
        flow_refuse(f, "TLS", "a name that is encrypted (ECH) cannot be held to a rule; turn ECH off in this program");
        return;
    }
    if (h.name_len == 0 && f->g->policy.network < NETWORK_OPEN && !is_weak(f->g->weaken, WEAKEN_GATE_RULES)) {
        f->name.len = 0;
        f->name.text[0] = 0;
        struct judgement j;
        verdict_connect(f->g, NULL, &f->to, f->port, &j);
        if (j.verdict != VERDICT_YES) {
            flow_refuse(f, "TLS", "the program does not say whom it wants (no SNI)");
            return;
        }
    }
    if (h.name_len && !flow_name(f, h.name, h.name_len))
        return;
    f->seen = used;
    if (f->state != FLOW_GREET) {
        flow_decide(f);
        return;
    }
    /* The server has been dialled for another reason: it must be this name's all the same. */
    struct judgement j;
    const struct known *k = known_find(f->g, &f->name);
    verdict_connect(f->g, &f->name, &f->to, f->port, &j);
    if (!had_name || (strcmp(before.text, f->name.text) != 0 && (j.verdict != VERDICT_YES || !k || !known_has(k, &f->at)))) {
        flow_refuse(f, j.rule, "the name that was asked for is not the one this server was dialled for");
        return;
    }
    f->silent = false;
    begin(f);
}

static void read_other(struct flow *f)
{
    f->is_other = true;
    if (f->state == FLOW_GREET) {
        f->state = FLOW_OPEN;
        flow_wait_for(&f->client, 0);
        f->up.may_pass = UINT64_MAX;
        flow_watch(f);
        return;
    }
    name_by_address(f);
    flow_decide(f);
}

static void read_first(struct flow *f, bool ended)
{
    ssize_t n = flow_peek(f, &f->client, scratch, HELLO_BYTES_MAX);
    if (n < 0)
        return;
    if (n == 0) {
        flow_drop(f);
        return;
    }
    enum sniff s = sniff(scratch, (size_t)n);
    if (s == SNIFF_MORE && !ended) {
        flow_wait_for(&f->client, (size_t)n);
        return;
    }
    if (s == SNIFF_TLS) {
        read_hello(f, scratch, (size_t)n, ended);
    } else if (s == SNIFF_HTTP) {
        plain_first(f, scratch, (size_t)n, ended);
    } else if (s == SNIFF_HTTP2 && f->g->policy.network < NETWORK_OPEN) {
        name_by_address(f);
        flow_refuse(f, "HTTP", "HTTP/2 without TLS cannot be held to a name; use HTTP/1.1 or TLS");
    } else {
        read_other(f);
    }
}

/* The second hello, which asks for the same name as the first. */
static void read_again(struct flow *f, bool ended)
{
    static struct hello h;
    struct hostname name;
    size_t used = 0;
    ssize_t n = flow_peek(f, &f->client, scratch, HELLO_BYTES_MAX);
    if (n < 0)
        return;
    if (n == 0) {
        flow_drop(f);
        return;
    }
    int r = hello_parse_again(scratch, (size_t)n, &h, &used);
    if (r == 0 && !ended) {
        flow_wait_for(&f->client, (size_t)n);
        return;
    }
    bool same =
        r == 1 && (h.name_len ? hostname_canon(h.name, h.name_len, false, &name) == HOSTNAME_GOOD && strcmp(name.text, f->name.text) == 0
                              : f->name.len == 0);
    if (!same && !is_weak(f->g->weaken, WEAKEN_GATE_MATCH)) {
        flow_refuse(f, "TLS", "the second message of the program asks for another name");
        return;
    }
    flow_wait_for(&f->client, 0);
    f->state = FLOW_OPEN;
    f->up.may_pass = UINT64_MAX;
    flow_watch(f);
}

/* The server's first bytes: is the client asked again? */
static void read_greeting(struct flow *f)
{
    uint8_t first[512];
    ssize_t n = flow_peek(f, &f->server, first, sizeof(first));
    if (n < 0)
        return;
    int r = n > 0 ? hello_asks_again(first, (size_t)n) : 0;
    if (r < 0 && (size_t)n < sizeof(first)) {
        flow_wait_for(&f->server, (size_t)n);
        return;
    }
    flow_wait_for(&f->server, 0);
    f->down.may_pass = UINT64_MAX;
    f->state = r == 1 ? FLOW_AGAIN : FLOW_OPEN;
    if (r != 1)
        f->up.may_pass = UINT64_MAX;
}

/* --- bytes --- */

static void move(struct flow *f)
{
    enum relay up = relay_move(f->g, &f->up, f->client.fd, f->server.fd);
    enum relay down = up == RELAY_BROKEN ? up : relay_move(f->g, &f->down, f->server.fd, f->client.fd);
    count_bytes(f);
    if (up == RELAY_BROKEN || down == RELAY_BROKEN)
        reset(f);
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
    switch (f->state) {
    case FLOW_GREET:
        if (events & EPOLLOUT) {
            move(f);
            return;
        }
        read_first(f, ended);
        return;
    case FLOW_FIRST:
        read_first(f, ended);
        return;
    case FLOW_AGAIN:
        if (events & EPOLLOUT)
            move(f);
        else
            read_again(f, ended);
        return;
    case FLOW_HTTP:
        plain_step(f);
        return;
    case FLOW_LINGER:
        if (recv(s->fd, rest, sizeof(rest), MSG_DONTWAIT) <= 0 && errno != EAGAIN)
            flow_drop(f);
        return;
    case FLOW_HELLO:
    case FLOW_OPEN:
        move(f);
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

static void on_server(struct loop_source *s, uint32_t events)
{
    struct flow *f = of_server(s);
    switch (f->state) {
    case FLOW_DIAL:
        on_dialled(f);
        return;
    case FLOW_HTTP:
        plain_step(f);
        return;
    case FLOW_HELLO:
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_greeting(f);
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
        talk_deny(l->g, &r);
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
        verdict_connect(f->g, NULL, &f->to, f->port, &j);
        flow_refuse(f, j.rule, j.why);
        return;
    }
    if (loop_add(&f->g->loop, &f->client, EPOLLIN | EPOLLRDHUP, &e) < 0)
        reset(f);
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

/* It has said nothing so far. Some protocols begin with the server: it may speak, if the connection may be without a name from the
 * client. */
static void on_silence(struct flow *f)
{
    struct judgement j;
    name_by_address(f);
    verdict_connect(f->g, f->name.len ? &f->name : NULL, &f->to, f->port, &j);
    f->due_ms = clock_ms() + FIRST_BYTES_MS;
    if (f->silent || j.verdict == VERDICT_NO || (f->name.len && !j.lists_port)) {
        if (f->silent || (j.verdict == VERDICT_NO && !f->name.len))
            flow_refuse(f, j.rule, f->silent ? "it said nothing" : j.why);
        else
            f->name = (struct hostname){0};
        f->silent = f->state == FLOW_FIRST; /* once */
        return;
    }
    f->silent = true;
    flow_decide(f);
}

static void on_due(struct flow *f)
{
    if (f->state == FLOW_FIRST && f->seen == 0 && !f->waited) {
        f->waited = true;
        on_silence(f);
    } else if (f->state == FLOW_FIRST) {
        flow_refuse(f, "time", "it did not say whom it wants");
    } else if (f->state == FLOW_ASK) {
        flow_refuse(f, "ask", "nobody answered the question in time; `pale approvals` shows it");
    } else if (f->state == FLOW_NAME) {
        fail(f, "the host's name servers do not answer");
    } else if (f->state == FLOW_DIAL) {
        fail(f, "the server does not answer");
    } else {
        flow_drop(f);
    }
}

void flow_tick(struct gateway *g, int64_t now)
{
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
    }
    for (int i = 0; i < DETOUR_SOCKETS; i++)
        if (i == DETOUR_TCP4 || (i == DETOUR_TCP6 && g->sockets[i] >= 0))
            loop_want(&g->loop, &g->listeners[i].source, EPOLLIN);
}

void flow_judge_all(struct gateway *g)
{
    struct judgement j;
    for (uint32_t i = 0; i < g->flow_top; i++) {
        struct flow *f = &g->flows[i];
        if (f->state == FLOW_FREE || f->state == FLOW_LINGER)
            continue;
        verdict_connect(g, f->name.len ? &f->name : NULL, &f->to, f->port, &j);
        bool still =
            j.verdict == VERDICT_YES || (j.verdict == VERDICT_QUESTION && f->granted) || f->state == FLOW_ASK || f->state == FLOW_FIRST;
        if (still && !g->is_cut)
            continue;
        const struct refusal r = {
            .kind = GATE_TCP, .name = f->name.len ? f->name.text : NULL, .address = &f->to, .port = f->port, .rule = j.rule, .why = j.why};
        talk_deny(g, &r);
        reset(f);
    }
}
