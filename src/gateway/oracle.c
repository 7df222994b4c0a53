/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to a box's questions about names.
 *
 * How it works: a question is hostile, and never goes anywhere: what is allowed is looked up in our own words, what is not gets a refusal
 * at once, and everything but an address is empty. A name that the operator has to be asked about gets an address that stands for it:
 * nobody hears of the name until somebody has said yes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/quote.h"
#include "confine/weaken.h"
#include "gateway/gateway.h"
#include "policy/rule.h"

#define QUESTIONS_PER_TURN 16
#define STREAM_MS 10000
#define MADE_UP_TTL 5u
#define REFUSED_TTL 5u

static void send_back(struct gateway *g, struct asker *who, const uint8_t *p, size_t n)
{
    if (who->kind == ASKER_DATAGRAM) {
        (void)!sendto(g->sockets[who->socket], p, n, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&who->from, who->from_len);
        return;
    }
    struct stream *s = &g->streams[who->socket];
    if (!s->used || s->generation != who->generation)
        return;
    s->waits = false;
    s->due_ms = clock_ms() + STREAM_MS;
    (void)!send(s->source.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    loop_want(&g->loop, &s->source, EPOLLIN);
}

static void reply(struct gateway *g, struct asker *who, const struct dns_answer *a)
{
    uint8_t bytes[DNS_ANSWER_BYTES];
    send_back(g, who, bytes, dnsmsg_answer(&who->query, a, who->kind == ASKER_STREAM, bytes));
}

static void refuse(struct gateway *g, struct asker *who, const char *rule, const char *why)
{
    char shown[DNS_NAME_BYTES * 4], text[DNS_NAME_BYTES], said[DNS_TEXT_MAX];
    size_t n = dnswire_text(&who->query.question.name, text);
    quote_into(shown, sizeof(shown), text, n);
    const struct refusal r = {.kind = GATE_NAME, .name = shown, .port = 53, .rule = rule, .why = why};
    liaison_deny(g, &r);
    snprintf(said, sizeof(said), "pale: %s (%s)", why, rule);
    const struct dns_answer a = {.result = DNS_NXDOMAIN, .ttl = REFUSED_TTL, .reason = DNS_REASON_BLOCKED, .text = said};
    reply(g, who, &a);
}

/* What of the addresses may be told: none that may not be dialled. */
static void tell(struct gateway *g, struct asker *who, const struct known *k)
{
    struct address good[KNOWN_ADDRESSES_MAX];
    struct judgement j = {0};
    size_t count = 0;
    int64_t left = k->fresh_ms - clock_ms();
    /* What could be reached at no port is not told. */
    for (uint8_t i = 0; i < k->current; i++) {
        const struct egress_question q = {.name = k->name.text, .address = &k->address[i], .port = 443};
        verdict_judge(g, &q, 0, &j);
        if (j.egress.ground != EGRESS_BY_ADDRESS &&
            !(j.egress.ground == EGRESS_BY_RULE && !j.egress.rule->domain && j.verdict == VERDICT_DENY))
            good[count++] = k->address[i];
    }
    if (k->current && !count) {
        refuse(g, who, j.rule, j.why);
        return;
    }
    const struct dns_answer a = {.result = k->current ? DNS_NOERROR : DNS_NXDOMAIN,
                                 .address = good,
                                 .count = count,
                                 .ttl = left > 1000 ? (uint32_t)(left / 1000) : 1};
    reply(g, who, &a);
}

void oracle_found(struct gateway *g, struct asker *who, struct known *k, bool failed)
{
    const struct dns_answer unreachable = {
        .result = DNS_SERVFAIL, .reason = DNS_REASON_UNREACHABLE, .text = "pale: the host's name servers do not answer"};
    if (failed)
        reply(g, who, &unreachable);
    else
        tell(g, who, k);
}

static bool is_local(const struct hostname *n)
{
    static const char local[] = ".localhost";
    size_t m = sizeof(local) - 1;
    return strcmp(n->text, "localhost") == 0 || (n->len > m && strcmp(n->text + n->len - m, local) == 0);
}

static void oracle_local(struct gateway *g, struct asker *who)
{
    static const struct address own[2] = {{.family = ADDRESS_V4, .byte = {127, 0, 0, 1}}, {.family = ADDRESS_V6, .byte = {[15] = 1}}};
    const struct dns_answer a = {.result = DNS_NOERROR, .address = own, .count = 2, .ttl = 60};
    reply(g, who, &a);
}

static void make_up(struct gateway *g, struct asker *who)
{
    struct address one = known_make_up(g, known_add(g, &who->query.host));
    const struct dns_answer a = {.result = DNS_NOERROR, .address = &one, .count = 1, .ttl = MADE_UP_TTL};
    reply(g, who, &a);
}

/* One question, from whichever socket. */
static void take_question(struct gateway *g, struct asker *who)
{
    static const struct dns_answer nothing = {.result = DNS_NOERROR, .ttl = 60};
    static const struct dns_answer busy = {.result = DNS_SERVFAIL, .reason = DNS_REASON_OTHER, .text = "pale: too many questions at once"};
    const struct dns_query *q = &who->query;
    struct judgement j;
    g->meters->questions++;
    if (q->trouble != HOSTNAME_GOOD) {
        refuse(g, who, "names of hosts", "it is no name of a host");
        return;
    }
    if (is_local(&q->host)) {
        oracle_local(g, who);
        return;
    }
    verdict_name(g, &q->host, &j);
    if (j.verdict == VERDICT_DENY) {
        refuse(g, who, j.rule, j.why);
        return;
    }
    if (q->question.type != DNS_A && q->question.type != DNS_AAAA) {
        reply(g, who, &nothing);
        return;
    }
    struct known *k = known_find(g, &q->host);
    if ((j.verdict == VERDICT_ASK || rule_is_host_name(q->host.text)) && !(k && k->current && k->fresh_ms > clock_ms())) {
        make_up(g, who);
        return;
    }
    if (k && k->fresh_ms > clock_ms()) {
        k->used_ms = clock_ms();
        tell(g, who, k);
        return;
    }
    if (!k && !j.is_exact && g->policy.network < NETWORK_OPEN && !known_spend(g, &q->host) && !is_weak(g->weaken, WEAKEN_GATE_NAMES)) {
        refuse(g, who, j.rule, "more different names of this zone were asked for than any program needs; wait an hour");
        return;
    }
    if (!resolve_start(g, &q->host, who))
        reply(g, who, &busy);
}

static void unreadable(struct gateway *g)
{
    const struct refusal no = {.kind = GATE_NAME, .port = 53, .rule = "DNS", .why = "a question that cannot be read"};
    liaison_deny(g, &no);
}

void oracle_datagram(struct loop_source *s, uint32_t events)
{
    uint8_t bytes[DNS_PLAIN_BYTES_MAX * 4], fault[DNS_ANSWER_BYTES];
    struct listener *l = (struct listener *)((char *)s - offsetof(struct listener, source));
    struct gateway *g = l->g;
    (void)events;
    for (int i = 0; i < QUESTIONS_PER_TURN; i++) {
        struct asker who = {.kind = ASKER_DATAGRAM, .socket = l->which, .from_len = sizeof(who.from)};
        ssize_t n = recvfrom(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&who.from, &who.from_len);
        if (n < 0)
            return;
        if (is_weak(g->weaken, WEAKEN_GATE_FORWARD))
            resolve_forward(g, bytes, (size_t)n);
        int r = dnsmsg_parse(bytes, (size_t)n, &who.query);
        if (r == 0) {
            take_question(g, &who);
            continue;
        }
        unreadable(g);
        size_t m = dnsmsg_fault(bytes, (size_t)n, r, false, fault);
        if (m)
            send_back(g, &who, fault, m);
    }
}

/* --- over connections --- */

static void close_stream(struct stream *s)
{
    loop_remove(&s->g->loop, &s->source);
    own_close(&s->source.fd);
    s->used = false;
}

/* As many questions as have come, one after the other: the next is read when the one before is answered. */
static void read_stream(struct stream *s)
{
    uint8_t fault[DNS_ANSWER_BYTES];
    size_t len = 0;
    int r = dnsmsg_frame(s->query, s->got, &len);
    if (r < 0) {
        close_stream(s);
        return;
    }
    if (r == 0)
        return;
    struct asker who = {.kind = ASKER_STREAM, .socket = (int)(s - s->g->streams), .generation = s->generation};
    s->waits = true;
    loop_want(&s->g->loop, &s->source, 0);
    if (is_weak(s->g->weaken, WEAKEN_GATE_FORWARD))
        resolve_forward(s->g, s->query + 2, len);
    r = dnsmsg_parse(s->query + 2, len, &who.query);
    size_t m = r ? dnsmsg_fault(s->query + 2, len, r, true, fault) : 0;
    memmove(s->query, s->query + 2 + len, s->got - 2 - len);
    s->got -= 2 + len;
    if (r)
        unreadable(s->g);
    if (r == 0)
        take_question(s->g, &who);
    else if (m)
        send_back(s->g, &who, fault, m);
    else
        close_stream(s);
}

static void on_stream(struct loop_source *source, uint32_t events)
{
    struct stream *s = (struct stream *)((char *)source - offsetof(struct stream, source));
    if (s->waits && (events & (EPOLLHUP | EPOLLERR))) {
        close_stream(s);
        return;
    }
    ssize_t n = recv(source->fd, s->query + s->got, sizeof(s->query) - s->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close_stream(s);
        return;
    }
    s->got += (size_t)n;
    uint32_t generation = s->generation;
    size_t before;
    do {
        before = s->got;
        read_stream(s);
    } while (s->used && s->generation == generation && !s->waits && s->got < before);
}

void oracle_stream(struct loop_source *source, uint32_t events)
{
    struct listener *l = (struct listener *)((char *)source - offsetof(struct listener, source));
    struct gateway *g = l->g;
    struct pale_err e;
    (void)events;
    own_fd fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    for (struct stream *s = g->streams; s < g->streams + STREAMS_MAX; s++) {
        if (s->used)
            continue;
        uint32_t generation = s->generation + 1;
        *s = (struct stream){
            .used = true, .g = g, .generation = generation, .due_ms = clock_ms() + STREAM_MS, .source = {.fd = fd, .ready = on_stream}};
        s->used = loop_add(&g->loop, &s->source, EPOLLIN, &e) == 0;
        if (s->used)
            (void)take_fd(&fd);
        return;
    }
}

bool oracle_tick(struct gateway *g, int64_t now)
{
    bool waits = false;
    for (struct stream *s = g->streams; s < g->streams + STREAMS_MAX; s++) {
        if (s->used && s->due_ms <= now)
            close_stream(s);
        waits |= s->used;
    }
    return waits;
}
