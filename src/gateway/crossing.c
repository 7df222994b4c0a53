/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from a name to a server: the verdict, the operator's word, the address, the dialling.
 *
 * How it works: a connection comes here when it is known whom it wants. The rules judge the name first, and again with the address that it
 * led to, which must be the one that the client dialled. The server is dialled while the keeper writes the audit; no byte goes out before
 * both are done. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "confine/weaken.h"
#include "gateway/gateway.h"

/* The server is there and the audit is written: what the client said may go. */
void crossing_begin(struct flow *f)
{
    flow_wait_for(&f->client, 0);
    f->due_ms = INT64_MAX;
    if (f->silent) {
        f->state = FLOW_GREET;
        f->down.may_pass = UINT64_MAX;
    } else if (f->is_http && !is_weak(f->g->weaken, WEAKEN_GATE_HTTP)) {
        f->state = FLOW_HTTP;
        plain_step(f);
        return;
    } else if (f->is_tls) {
        f->state = FLOW_HELLO;
        f->due_ms = clock_ms() + HELLO_MS;
        f->up.may_pass = f->seen;
        if (relay_move(f->g, &f->up, f->client.fd, f->server.fd) == RELAY_BROKEN) {
            flow_reset(f);
            return;
        }
    } else {
        f->state = FLOW_OPEN;
        f->up.may_pass = f->down.may_pass = UINT64_MAX;
    }
    flow_watch(f);
}

void crossing_dialled(struct flow *f)
{
    int error = 0;
    socklen_t n = sizeof(error);
    if (getsockopt(f->server.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error) {
        flow_fail(f, error == ECONNREFUSED ? "the server refused the connection" : "the server cannot be reached");
        return;
    }
    f->dialled = true;
    if (f->audited)
        crossing_begin(f);
    else
        flow_watch(f);
}

static void dial(struct flow *f, const char *rule)
{
    static const int on = 1;
    struct sockaddr_storage to;
    socklen_t n = flow_sockaddr(&f->at, f->host_port ? f->host_port : f->port, &to);
    f->server = (struct loop_source){.fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .ready = flow_on_server};
    if (f->server.fd < 0) {
        flow_fail(f, "the gateway has no more sockets");
        return;
    }
    setsockopt(f->server.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(f->server.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    f->state = FLOW_DIAL;
    f->due_ms = clock_ms() + DIAL_MS;
    f->g->meters->connections++;
    f->g->meters->host[f->host].connections++;
    liaison_allow(f->g, f, rule);
    int r = connect(f->server.fd, (struct sockaddr *)&to, n);
    if (r < 0 && errno != EINPROGRESS) {
        flow_fail(f, "the host has no way to the server");
        return;
    }
    f->dialled = r == 0;
    flow_watch(f);
}

void crossing_go(struct gateway *g, uint64_t number)
{
    uint32_t index = (uint32_t)number;
    struct flow *f = &g->flows[index < FLOWS_MAX ? index : 0];
    if (index >= FLOWS_MAX || f->generation != number >> 32 || f->state != FLOW_DIAL || f->audited)
        return;
    f->audited = true;
    if (f->dialled)
        crossing_begin(f);
}

/* --- deciding --- */

static const struct address *target(const struct flow *f)
{
    return f->at.family ? &f->at : &f->to;
}

static bool wants_the_same(const struct flow *f, const struct flow *o)
{
    return o->port == f->port && strcmp(o->name.text, f->name.text) == 0 && o->asks_address == f->asks_address &&
           (!f->asks_address || memcmp(target(o), target(f), sizeof(*target(f))) == 0);
}

static void ask(struct flow *f, const struct judgement *j)
{
    struct gateway *g = f->g;
    f->state = FLOW_ASK;
    f->due_ms = clock_ms() + ASK_MS;
    f->asks_address = j->asks_address;
    /* One question for all who want the same. */
    for (uint32_t i = 0; i < g->flow_top && !f->question; i++) {
        const struct flow *o = &g->flows[i];
        if (o != f && o->state == FLOW_ASK && o->question && wants_the_same(f, o))
            f->question = o->question;
    }
    if (!f->question) {
        f->question = ++g->question_next;
        liaison_ask(g, f, j->rule);
    }
    flow_watch(f);
}

void crossing_withdraw(struct flow *f)
{
    struct gateway *g = f->g;
    uint32_t question = f->question;
    f->question = 0;
    for (uint32_t i = 0; question && i < g->flow_top; i++)
        if (g->flows[i].state == FLOW_ASK && g->flows[i].question == question)
            return;
    if (question)
        liaison_take_back(g, f, question);
}

void crossing_verdict(struct gateway *g, uint64_t question, enum gate_verdict v)
{
    for (uint32_t i = 0; i < g->flow_top; i++) {
        struct flow *f = &g->flows[i];
        if (f->state != FLOW_ASK || f->question != question)
            continue;
        f->question = 0;
        if (v == GATE_YES) {
            f->granted |= f->asks_address ? GRANT_ADDRESS : GRANT_NAME;
            crossing_decide(f);
        } else if (v == GATE_FULL) {
            flow_refuse(f, "ask", "too many questions are open or were asked in the last minute; the operator answers them first");
        } else if (v == GATE_NOBODY) {
            flow_refuse(f, "ask", "nobody can be asked for a one-shot box; `pale create` makes one whose questions `pale approvals` shows");
        } else {
            flow_refuse(f, "operator", "the operator said no");
        }
    }
}

static void look_up(struct flow *f)
{
    const struct asker me = {.kind = ASKER_FLOW, .flow = flow_index(f), .generation = f->generation};
    f->state = FLOW_NAME;
    f->looked_up = true;
    f->due_ms = clock_ms() + DIAL_MS;
    flow_watch(f);
    if (!resolve_start(f->g, &f->name, &me))
        flow_fail(f, "too many names are looked up at once");
}

void crossing_found(struct gateway *g, uint32_t index, uint32_t generation, struct known *k, bool failed)
{
    struct flow *f = &g->flows[index];
    (void)k;
    if (f->generation != generation || f->state != FLOW_NAME)
        return;
    if (failed)
        flow_fail(f, "the host's name servers do not answer");
    else
        crossing_decide(f);
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

/* Is it an address of this very host? Then that is where the kernel would dial it from. Nothing is sent. */
static bool is_own(const struct address *a)
{
    own_fd fd = socket(a->family == ADDRESS_V4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage to, from;
    socklen_t n = flow_sockaddr(a, 443, &to), m = sizeof(from);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, n) < 0 || getsockname(fd, (struct sockaddr *)&from, &m) < 0)
        return false;
    return a->family == ADDRESS_V4 ? memcmp(&((struct sockaddr_in *)&from)->sin_addr, a->byte, 4) == 0
                                   : memcmp(&((struct sockaddr_in6 *)&from)->sin6_addr, a->byte, 16) == 0;
}

/* What serves the host alone is not for a name to open, wherever it leads: a rule for addresses does, or one for a port of the host's. */
static void judge_own(struct flow *f, struct judgement *j)
{
    bool meant = f->host_port || (j->egress.ground == EGRESS_BY_RULE && !j->egress.rule->domain);
    if (j->verdict == VERDICT_DENY || meant || is_weak(f->g->weaken, WEAKEN_GATE_ADDRESS) || !is_own(&f->at))
        return;
    j->verdict = VERDICT_DENY;
    snprintf(j->rule, sizeof(j->rule), "addresses of the host");
    snprintf(j->why, sizeof(j->why), "it leads to the host itself; only a rule for that address or for a port of the host's opens it");
}

/* The last word, with the address that is to be dialled. */
static void decide_address(struct flow *f, struct judgement *j)
{
    verdict_flow(f, true, j);
    judge_own(f, j);
    f->host = meter_row(f->g, f);
    if (j->verdict == VERDICT_ASK)
        ask(f, j);
    else if (j->verdict == VERDICT_ALLOW && verdict_take(f, j))
        dial(f, j->rule);
    else
        flow_refuse(f, j->rule, j->why);
}

void crossing_decide(struct flow *f)
{
    static const struct address loopback = {.family = ADDRESS_V4, .byte = {127, 0, 0, 1}};
    struct judgement j;
    char why[GATE_TEXT_MAX + DOMAIN_NAME_MAX];
    verdict_flow(f, false, &j);
    if (j.verdict == VERDICT_DENY) {
        flow_refuse(f, j.rule, j.why);
        return;
    }
    if (!f->is_tls && !f->is_http && f->name.len && !j.is_port_listed) {
        flow_refuse(f, j.rule, "only TLS and HTTP name whom they want; a rule that lists the port allows any protocol there");
        return;
    }
    if (j.verdict == VERDICT_ASK) {
        ask(f, &j);
        return;
    }
    int r = 1;
    const struct address before = f->at;
    f->host_port = j.egress.host_port;
    if (f->host_port)
        f->at = loopback;
    else if (f->name.len)
        r = find_address(f, why, sizeof(why));
    else
        f->at = f->to;
    if (before.family && memcmp(&before, &f->at, sizeof(before)) != 0)
        f->granted &= (uint8_t)~GRANT_ADDRESS; /* it was for another */
    if (r == 0)
        look_up(f);
    else if (r < 0)
        flow_refuse(f, "names and addresses agree", why);
    else
        decide_address(f, &j);
}
