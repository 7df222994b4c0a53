/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the first bytes of a connection: whom they ask for.
 *
 * How it works: both sides are hostile. The client's bytes are looked at while they stay with the kernel, until what they are is certain: a
 * TLS hello and an HTTP request name somebody; of anything else, the name is one that led the client to this address. Some servers speak
 * first: to a client that is silent the server may speak, but what the client says at last is looked at all the same. A TLS server that
 * asks for a second hello gets one that was read as well. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "confine/weaken.h"
#include "gateway/gateway.h"
#include "net/sniff.h"

static uint8_t scratch[HELLO_BYTES_MAX + 1]; /* for what is looked at; of one connection at a time */

/* The name that led the client to this address, if one that is allowed at this port did. */
static void name_by_address(struct flow *f)
{
    struct gateway *g = f->g;
    struct judgement j;
    uint32_t at = 0;
    const struct known *k = known_made_up(g, &f->to), *best = k;
    enum policy_verdict v = VERDICT_DENY;
    while ((k = known_next(g, &f->to, &at))) {
        const struct egress_question q = {.name = k->name.text, .address = &f->to, .port = f->port, .flow = EGRESS_OPAQUE};
        verdict_judge(g, &q, 0, &j);
        if (!best || (v != VERDICT_ALLOW && j.verdict != VERDICT_DENY)) {
            best = k;
            v = j.verdict;
        }
    }
    if (best)
        f->name = best->name;
}

/* A name that the bytes gave, in its one form. */
bool opening_name(struct flow *f, const char *p, size_t n)
{
    struct hostname name;
    enum hostname_trouble t = hostname_canon(p, n, false, &name);
    char why[GATE_TEXT_MAX];
    if (t == HOSTNAME_GOOD) {
        f->name = name;
        return true;
    }
    if (is_weak(f->g->weaken, WEAKEN_GATE_STRICT)) {
        name_by_address(f);
        return true;
    }
    snprintf(why, sizeof(why), "the name that was asked for %s", hostname_trouble_text(t));
    flow_refuse(f, "names of hosts", why);
    return false;
}

/* Neither TLS nor HTTP, as far as can be seen. */
void opening_other(struct flow *f)
{
    f->is_other = true;
    f->is_tls = f->is_http = false;
    if (f->state == FLOW_GREET) {
        f->state = FLOW_OPEN;
        flow_wait_for(&f->client, 0);
        f->up.may_pass = UINT64_MAX;
        flow_watch(f);
        return;
    }
    name_by_address(f);
    crossing_decide(f);
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
    if (r <= 0 && is_weak(f->g->weaken, WEAKEN_GATE_STRICT)) {
        opening_other(f);
        return;
    }
    if (r <= 0) {
        flow_refuse(f, "TLS", r < 0 ? hello_say(h.wrong) : "the connection ended within its first message");
        return;
    }
    if (h.has_ech && verdict_minds_names(f->g)) {
        flow_refuse(f, "TLS", "a name that is encrypted (ECH) cannot be held to a rule; turn ECH off in this program");
        return;
    }
    struct judgement j;
    if (h.name_len == 0) {
        /* By its address alone, or not at all. */
        f->name = (struct hostname){0};
        verdict_flow(f, false, &j);
        if (j.verdict == VERDICT_DENY) {
            flow_refuse(f, j.rule, "the program does not say whom it wants (TLS without SNI), and no rule allows the address");
            return;
        }
    }
    if (h.name_len && !opening_name(f, h.name, h.name_len))
        return;
    if (strcmp(before.text, f->name.text) != 0)
        f->granted &= (uint8_t)~GRANT_NAME; /* it was for another */
    f->seen = used;
    if (f->state != FLOW_GREET) {
        crossing_decide(f);
        return;
    }
    /* The server has been dialled for another reason: it must be this name's all the same. */
    const struct known *k = known_find(f->g, &f->name);
    verdict_flow(f, true, &j);
    bool same = had_name && strcmp(before.text, f->name.text) == 0;
    if (j.verdict == VERDICT_DENY || (!same && (j.verdict != VERDICT_ALLOW || !k || !known_has(k, &f->at)))) {
        flow_refuse(f, j.rule, "the name that was asked for is not the one this server was dialled for");
        return;
    }
    f->silent = false;
    crossing_begin(f);
}

/* It went without a word: it may have looked who is there. */
static void unspoken(struct flow *f)
{
    struct judgement j = {.verdict = VERDICT_ALLOW};
    if (f->state == FLOW_FIRST) {
        name_by_address(f);
        verdict_flow(f, false, &j);
    }
    if (j.verdict == VERDICT_DENY)
        flow_refuse(f, j.rule, j.why);
    else
        flow_drop(f);
}

void opening_first(struct flow *f, bool ended)
{
    ssize_t n = flow_peek(f, &f->client, scratch, HELLO_BYTES_MAX);
    if (n < 0)
        return;
    if (n == 0) {
        unspoken(f);
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
    } else if (s == SNIFF_HTTP2 && f->g->policy.network < NETWORK_OPEN && !is_weak(f->g->weaken, WEAKEN_GATE_STRICT)) {
        name_by_address(f);
        flow_refuse(f, "HTTP", "HTTP/2 without TLS cannot be held to a name; use HTTP/1.1 or TLS");
    } else {
        opening_other(f);
    }
}

/* The second hello, which asks for the same name as the first. */
void opening_again(struct flow *f, bool ended)
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
    f->due_ms = INT64_MAX;
    f->up.may_pass = UINT64_MAX;
    flow_watch(f);
}

/* The server's first bytes: is the client asked again? */
void opening_greeting(struct flow *f)
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
    if (r != 1) {
        f->up.may_pass = UINT64_MAX;
        f->due_ms = INT64_MAX;
    }
}

/* It has said nothing so far. Some protocols begin with the server: it may speak, if the connection may be without a name from the
 * client. */
void opening_silence(struct flow *f)
{
    struct judgement j;
    name_by_address(f);
    verdict_flow(f, false, &j);
    f->due_ms = clock_ms() + FIRST_BYTES_MS;
    f->silent = j.verdict != VERDICT_DENY && (!f->name.len || j.is_port_listed);
    if (f->silent)
        crossing_decide(f);
    else if (j.verdict == VERDICT_DENY && !f->name.len)
        flow_refuse(f, j.rule, j.why);
    else
        f->name = (struct hostname){0}; /* it may still say one */
}
